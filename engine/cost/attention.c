#include "engine/cost/layer.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/kernel/splash_blocks.h"
#include "engine/kernel/vmem.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"

static int clamp_block(int block, int64_t length)
{
    return block > length ? (int)length : block;
}

static struct adv_attention_shape shape_of(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_plan *plan = cost->plan;
    int64_t q_len = plan->family.seq_len / cost->cp_ring;
    double shards = (double)cost->tp * cost->ulysses;
    int q_heads = (int)adv_max_i(1, (int64_t)(layer->q_heads / shards));
    return (struct adv_attention_shape){
        .batch = cost->tokens * shards / (double)q_len,
        .q_heads = q_heads,
        .kv_heads = (int)adv_max_i(1, (int64_t)(layer->kv_heads / shards)),
        .q_len = q_len,
        .kv_len = plan->family.seq_len,
        .head_dim_qk = layer->head_dim_qk,
        .head_dim_v = layer->head_dim_v,
        .causal = true,
        .window = layer->attention == ADV_ATTENTION_WINDOW || layer->attention == ADV_ATTENTION_COMPRESSED
                      ? layer->window_tokens
                      : 0,
        .chunk = layer->attention == ADV_ATTENTION_CHUNKED ? layer->window_tokens : 0,
        .context_shards = cost->cp_ring,
        .context_load_balanced = plan->family.cp_load_balance,
        .context_ring = adv_plan_circulates_keys(plan),
        .dtype = ADV_FORMAT_BF16,
    };
}

static struct adv_attention_tile tile_of(const struct adv_plan *plan, const struct adv_layer *layer,
                                         const struct adv_attention_shape *shape)
{
    struct adv_splash_blocks b = plan->family.blocks[adv_layer_has_local_tiles(layer)];
    int *q_blocks[] = {&b.block_q, &b.block_q_dkv, &b.block_q_dq};
    int *kv_blocks[] = {&b.block_kv, &b.block_kv_dkv, &b.block_kv_dq};
    for (int i = 0; i < 3; i++) {
        *q_blocks[i] = clamp_block(*q_blocks[i], shape->q_len);
        *kv_blocks[i] = clamp_block(*kv_blocks[i], adv_splash_call_keys(shape));
    }
    b.block_kv_compute = clamp_block(b.block_kv_compute, b.block_kv);
    b.block_kv_dkv_compute = clamp_block(b.block_kv_dkv_compute, b.block_kv_dkv);
    return (struct adv_attention_tile){b, plan->family.q_layout, plan->family.k_layout,
                                       plan->family.v_layout};
}

static void list_kernel(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                        const struct adv_attention_tile *tile, double seconds, double times,
                        struct adv_account *account)
{
    struct adv_kernel_use use = {.kernel = kernel,
                                 .time_us = seconds / ADV_US,
                                 .count = times,
                                 .vmem_bytes = adv_vmem_splash_bytes(kernel, shape, tile)};
    const struct adv_splash_blocks *b = &tile->blocks;
    (void)snprintf(use.shape, sizeof use.shape, "%gx%d/%d heads, %lld x %lld, head %d/%d%s", shape->batch,
                   shape->q_heads, shape->kv_heads, (long long)shape->q_len, (long long)shape->kv_len,
                   shape->head_dim_qk, shape->head_dim_v,
                   shape->window  ? ", window"
                   : shape->chunk ? ", chunks"
                                  : "");
    if (kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS)
        (void)snprintf(use.tile, sizeof use.tile, "q %d, kv %d, compute %d", b->block_q, b->block_kv,
                       b->block_kv_compute);
    else if (kernel == ADV_KERNEL_SPLASH_BWD_DQ)
        (void)snprintf(use.tile, sizeof use.tile, "q %d, kv %d", b->block_q_dq, b->block_kv_dq);
    else
        (void)snprintf(use.tile, sizeof use.tile, "q %d, kv %d, compute %d", b->block_q_dkv, b->block_kv_dkv,
                       b->block_kv_dkv_compute);
    adv_account_kernel(account, &use);
}

/* One layer's call of a splash kernel. */
struct call {
    const struct adv_cost *cost;
    const struct adv_layer *layer;
    struct adv_attention_shape shape;
    struct adv_attention_tile tile;
};

/* Everything of a call that is not of the layer kind. Two numbers of 32 bits share a word. */
static void write_key(const struct call *call, enum adv_kernel kernel,
                      const struct adv_attention_flags *flags, uint64_t key[16])
{
    const struct adv_attention_shape *shape = &call->shape;
    const struct adv_splash_blocks *b = &call->tile.blocks;
#define PAIR(a, b) ((uint64_t)(uint32_t)(a) << 32 | (uint32_t)(b))
    const uint64_t words[16] = {
        PAIR(kernel, adv_cost_kind(call->cost, call->layer)),
        adv_scratch_bits(shape->batch),
        PAIR(shape->q_heads, shape->kv_heads),
        (uint64_t)shape->q_len,
        (uint64_t)shape->kv_len,
        PAIR(shape->context_shards, shape->context_load_balanced),
        PAIR(b->block_q, b->block_kv),
        PAIR(b->block_kv_compute, b->block_q_dkv),
        PAIR(b->block_kv_dkv, b->block_kv_dkv_compute),
        PAIR(b->block_q_dq, b->block_kv_dq),
        PAIR(call->tile.q_layout, call->tile.k_layout),
        PAIR(call->tile.v_layout, flags->dq_reduction_steps),
        PAIR(flags->max_logit_constant, flags->use_experimental_scheduler),
        adv_scratch_bits(call->cost->machine.scoped_vmem_limit_bytes),
        shape->context_ring,
        0,
    };
#undef PAIR
    memcpy(key, words, sizeof words);
}

static adv_code simulated_s(const struct call *call, enum adv_kernel kernel,
                            const struct adv_attention_flags *flags, double *time_s, adv_err *err)
{
    struct adv_cost_kernel *known = NULL;
    if (call->cost->scratch) {
        uint64_t key[16];
        write_key(call, kernel, flags, key);
        known = adv_scratch_kernel(call->cost->scratch, key);
    }
    if (known && known->known) {
        *time_s = known->time_s;
        return ADV_OK;
    }
    struct adv_kernel_time time;
    adv_code code =
        adv_splash_time(&call->cost->machine, kernel, &call->shape, &call->tile, flags, &time, err);
    if (code != ADV_OK) return code;
    *time_s = time.time_s;
    if (known) {
        known->time_s = time.time_s;
        known->known = true;
    }
    return ADV_OK;
}

static adv_code call_s(const struct adv_cost *cost, const struct adv_layer *layer, enum adv_kernel kernel,
                       double times, struct adv_account *account, double *seconds, adv_err *err)
{
    struct call call = {.cost = cost, .layer = layer, .shape = shape_of(cost, layer)};
    call.tile = tile_of(cost->plan, layer, &call.shape);
    struct adv_attention_flags flags = {
        .max_logit_constant = cost->plan->family.max_logit_estimate > 0,
        .soft_cap = cost->model->attention_soft_cap > 0.0,
        .dq_reduction_steps = cost->plan->family.dq_reduction_steps,
        .use_experimental_scheduler = cost->plan->family.use_splash_scheduler,
    };
    double time_s = 0.0;
    adv_code code = simulated_s(&call, kernel, &flags, &time_s, err);
    if (code != ADV_OK) return code;
    *seconds = time_s * cost->constants->step_attention_factor;
    if (account->ledger) list_kernel(kernel, &call.shape, &call.tile, *seconds, times, account);
    return ADV_OK;
}

/* One kernel of a layer kind; remembered in the scratch. */
static adv_code kernel_s(const struct adv_cost *cost, const struct adv_layer *layer, enum adv_kernel kernel,
                         double times, struct adv_account *account, double *seconds, adv_err *err)
{
    struct adv_cost_compute_kind *compute =
        cost->scratch ? &cost->scratch->compute->kinds[adv_cost_kind(cost, layer)] : NULL;
    if (!compute) return call_s(cost, layer, kernel, times, account, seconds, err);
    adv_code code = ADV_OK;
    if (!compute->splash_known[kernel]) {
        code = call_s(cost, layer, kernel, times, account, &compute->splash_s[kernel], err);
        compute->splash_known[kernel] = code == ADV_OK;
    }
    *seconds = compute->splash_s[kernel];
    return code;
}

/* Of one layer's scores and weighted values, forward. */
static double splash_flops(const struct adv_cost *cost, const struct adv_layer *layer)
{
    double half = (double)cost->plan->family.seq_len / 2.0;
    double span = layer->window_tokens > 0 ? adv_min((double)layer->window_tokens, half) : half;
    return 2.0 * cost->tokens * span * layer->q_heads * (layer->head_dim_qk + layer->head_dim_v);
}

static adv_code splash_backward(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    const bool fused = cost->plan->family.use_fused_bwd || cost->plan->family.use_tokamax_splash;
    double first_s = 0.0, second_s = 0.0;
    adv_code code = kernel_s(cost, layer, fused ? ADV_KERNEL_SPLASH_BWD_FUSED : ADV_KERNEL_SPLASH_BWD_DQ,
                             times, account, &first_s, err);
    if (code == ADV_OK && !fused)
        code = kernel_s(cost, layer, ADV_KERNEL_SPLASH_BWD_DKV, times, account, &second_s, err);
    if (code != ADV_OK) return code;
    adv_cost_add(account, time, ADV_PASS_BWD, ADV_TERM_ATTENTION_BWD, first_s + second_s, times,
                 2.0 * splash_flops(cost, layer), 0.0);
    return ADV_OK;
}

/* Keeping the context keeps the softmax residuals too; otherwise the plain kernel runs forward and the one
 * that writes residuals runs in the recompute, or forward where a layer has none. */
static adv_code splash_forward(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                               struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    bool kept = adv_cost_keeps(cost, ADV_TENSOR_CONTEXT);
    double forward_s = 0.0, again_s = 0.0;
    adv_code code = kernel_s(cost, layer, kept ? ADV_KERNEL_SPLASH_FWD_RESIDUALS : ADV_KERNEL_SPLASH_FWD,
                             times, account, &forward_s, err);
    if (code == ADV_OK && !kept)
        code = kernel_s(cost, layer, ADV_KERNEL_SPLASH_FWD_RESIDUALS, times, account, &again_s, err);
    if (code != ADV_OK) return code;
    double flops = splash_flops(cost, layer);
    const double residuals_s = kept ? 0.0 : adv_max(0.0, again_s - forward_s);
    forward_s += (1.0 - time->again_frac) * residuals_s;
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_ATTENTION_FWD, forward_s, times, flops, 0.0);
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_ATTENTION_RECOMPUTE, again_s, times, flops, 0.0);
    time->attention_again_s = time->again_frac * again_s;
    time->residuals_s = time->again_frac * residuals_s;
    return ADV_OK;
}

/* XLA's own attention: scores of the whole square. */
static double square_flops(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return 2.0 * cost->tokens * (double)cost->plan->family.seq_len * layer->q_heads *
           (layer->head_dim_qk + layer->head_dim_v);
}

static adv_code xla_s(const struct adv_cost *cost, const struct adv_layer *layer, bool backward,
                      double *seconds, adv_err *err)
{
    struct adv_attention_shape shape = shape_of(cost, layer);
    struct adv_kernel_time time = {.time_s = 0.0};
    adv_code code = adv_attention_xla_time(&cost->machine, backward, &shape, &time, err);
    *seconds = cost->constants->step_attention_factor * time.time_s;
    return code;
}

static adv_code dot_product(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                            struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    double forward_s = 0.0, backward_s = 0.0, flops = square_flops(cost, layer);
    adv_code code = xla_s(cost, layer, false, &forward_s, err);
    if (code == ADV_OK) code = xla_s(cost, layer, true, &backward_s, err);
    if (code != ADV_OK) return code;
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_ATTENTION_FWD, forward_s, times, flops, 0.0);
    adv_cost_add(account, time, ADV_PASS_BWD, ADV_TERM_ATTENTION_BWD, backward_s, times, 2.0 * flops, 0.0);
    return ADV_OK;
}

/* Its scores have no name in a remat policy, nor has what it makes of them ("context" is a kernel's): the
 * backward pass always computes them again. */
static adv_code dot_product_again(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                  struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    double forward_s = 0.0;
    adv_code code = xla_s(cost, layer, false, &forward_s, err);
    if (code != ADV_OK) return code;
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_ATTENTION_RECOMPUTE, forward_s, times,
                 square_flops(cost, layer), 0.0);
    return ADV_OK;
}

/* Gated delta net, chunked form: per token and value head, the chunk's triangular products and the state's
 * read and update, 8 x key dim x value dim FLOPs (MaxText's own count) on matrices of one chunk (64 rows),
 * which leave three quarters of a 256-row MXU pass unused. No measurement stands behind it: the estimate says
 * extrapolated. */
static void gated_delta_net(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                            struct adv_account *account, struct adv_layer_time *time)
{
    double flops = cost->tokens * 8.0 * layer->linear_value_heads * (double)layer->linear_key_head_dim *
                   layer->linear_value_head_dim;
    double chunk = layer->linear_chunk > 0 ? layer->linear_chunk : 64.0;
    double fill = adv_min(1.0, chunk / cost->mxu_k);
    double seconds = flops / (cost->bf16_flops_per_s * fill);
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_ATTENTION_FWD, seconds, times, flops, 0.0);
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_ATTENTION_RECOMPUTE, seconds, times, flops, 0.0);
    adv_cost_add(account, time, ADV_PASS_BWD, ADV_TERM_ATTENTION_BWD, 2.0 * seconds, times, 2.0 * flops, 0.0);
}

adv_code adv_cost_attention_fixed(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                  struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    if (layer->attention == ADV_ATTENTION_LINEAR) {
        gated_delta_net(cost, layer, times, account, time);
        return ADV_OK;
    }
    if (cost->plan->family.attention == ADV_ATTENTION_IMPL_DOT_PRODUCT)
        return dot_product(cost, layer, times, account, time, err);
    return splash_backward(cost, layer, times, account, time, err);
}

adv_code adv_cost_attention_placed(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                   struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    if (layer->attention == ADV_ATTENTION_LINEAR) return ADV_OK;
    if (cost->plan->family.attention == ADV_ATTENTION_IMPL_DOT_PRODUCT)
        return dot_product_again(cost, layer, times, account, time, err);
    return splash_forward(cost, layer, times, account, time, err);
}
