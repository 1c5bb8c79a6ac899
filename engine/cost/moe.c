#include "engine/cost/layer.h"

#include <stddef.h>
#include <math.h>
#include <stdio.h>

#include "engine/base/units.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"
#include "engine/kernel/tune.h"
#include "engine/kernel/vmem.h"

enum { tokamax_rows = 1024 }; /* its largest row tile */

/* Rows, widths and groups of the expert matmuls on one device. */
struct expert_shape {
    double rows;  /* (token, expert) pairs, padded to capacity when dropping */
    double width; /* moe_mlp_dim / tp */
    double emb;
    int groups; /* experts on this device */
    int inputs; /* matrices before the activation */
};

static struct expert_shape shape_of(const struct adv_cost *cost, const struct adv_layer *layer)
{
    double capacity = cost->plan->family.moe == ADV_MOE_DENSE && cost->plan->family.capacity_factor > 0.0
                          ? cost->plan->family.capacity_factor
                          : 1.0;
    int tp = cost->tp;
    return (struct expert_shape){
        .rows = cost->tokens * tp * layer->experts_per_token * capacity,
        .width = (double)layer->moe_mlp_dim / tp,
        .emb = (double)layer->moe_input_dim,
        .groups = (int)adv_max_i(1, layer->experts / cost->ep),
        .inputs = layer->mlp_inputs,
    };
}

/* Without megablox MaxText calls jax.lax.ragged_dot, which XLA lowers itself. */
static bool xla_lowers(const struct adv_plan *plan)
{
    return plan->family.moe == ADV_MOE_RAGGED_DOT;
}

/* The tile of one grouped matmul pass from MaxText's keys: the contraction of wi forward is the embedding, of
 * its data gradient the mlp dimension, and the other way round for wo. */
static struct adv_gmm_tile tile_of(const struct adv_cost *cost, int projection, int pass,
                                   const struct adv_gmm_shape *shape)
{
    const struct adv_plan *plan = cost->plan;
    const struct adv_gmm_blocks *b = &plan->family.gmm_blocks[projection][pass];
    bool embed_first = (projection == 0) != (pass == ADV_GMM_DLHS);
    int contract = embed_first ? b->embed_dim : b->mlp_dim;
    int out = embed_first ? b->mlp_dim : b->embed_dim;
    return (struct adv_gmm_tile){
        .tile_m = (int)adv_min_i(b->batch_seq, shape->m),
        .tile_k = (int)adv_min_i(contract, shape->k),
        .tile_n = (int)adv_min_i(out, shape->n),
        .input_buffer_count = 2,
    };
}

/* The tile that tokamax's own tuning found for a shape, where it does not read MaxText's keys: the best tile
 * of its space under the chip's default limit, which it was tuned under, whatever the flags of the step. The
 * rows are padded so that its row tiles divide them. */
static adv_code tuned_by_tokamax(const struct adv_cost *cost, enum adv_kernel kernel,
                                 const struct adv_gmm_shape *shape, struct adv_gmm_tile *tile,
                                 struct adv_kernel_time *time, adv_err *err)
{
    struct adv_kernel_machine machine = cost->machine;
    struct adv_kernel_request request = {.kernel = kernel, .gmm = *shape};
    struct adv_ranking best = {.top_k = 1, .tiles = tile, .times = time};
    machine.scoped_vmem_limit_bytes = 0.0;
    request.gmm.m = adv_round_up(adv_max_i(shape->m, 1), tokamax_rows);
    return adv_tune(&machine, &request, &best, err);
}

/* The simulated kernel, remembered by all that differs between plans of one request. */
static adv_code simulated_s(const struct adv_cost *cost, enum adv_kernel kernel,
                            const struct adv_gmm_shape *shape, struct adv_gmm_tile *tile, double *time_s,
                            adv_err *err)
{
    const bool given = adv_plan_reads_expert_tiles(cost->plan);
    struct adv_cost_kernel *known = NULL;
    if (cost->scratch) {
        const uint64_t key[16] = {
            (uint64_t)kernel << 32 | (uint64_t)shape->rhs_transposed << 8 | (uint64_t)shape->lhs,
            (uint64_t)shape->m,
            (uint64_t)shape->k,
            (uint64_t)shape->n,
            (uint64_t)shape->num_groups << 32 | (uint64_t)cost->plan->family.moe,
            given ? (uint64_t)tile->tile_m << 32 | (uint64_t)tile->tile_k : 0,
            given ? (uint64_t)tile->tile_n << 32 | (uint64_t)tile->input_buffer_count : 0,
            given ? adv_scratch_bits(cost->machine.scoped_vmem_limit_bytes) : 0,
        };
        known = adv_scratch_kernel(cost->scratch, key);
    }
    if (known && known->known) {
        *time_s = known->time_s;
        return ADV_OK;
    }
    struct adv_kernel_time time;
    adv_code code = given                    ? adv_gmm_time(&cost->machine, kernel, shape, tile, &time, err)
                    : xla_lowers(cost->plan) ? adv_gmm_xla_time(&cost->machine, kernel, shape, &time, err)
                                             : tuned_by_tokamax(cost, kernel, shape, tile, &time, err);
    if (code != ADV_OK) return code;
    *time_s = time.time_s;
    if (known) {
        known->time_s = time.time_s;
        known->known = true;
    }
    return ADV_OK;
}

static adv_code simulate(const struct adv_cost *cost, const struct expert_shape *e, int projection, int pass,
                         struct adv_cost_grouped *out, adv_err *err)
{
    bool wi = projection == 0;
    enum adv_format format = cost->quantizes_experts ? ADV_FORMAT_FP8 : ADV_FORMAT_BF16;
    double in = wi ? e->emb : e->width;
    double to = wi ? e->width : e->emb;
    struct adv_gmm_shape shape = {
        .m = adv_max_i(1, (int64_t)(e->rows + 0.5)),
        .k = (int64_t)(pass == ADV_GMM_DLHS ? to : in),
        .n = (int64_t)(pass == ADV_GMM_DLHS ? in : to),
        .num_groups = e->groups,
        .distribution = ADV_GROUPS_MULTINOMIAL,
        .rhs_transposed = pass == ADV_GMM_DLHS,
        .lhs = format,
        .rhs = format,
        .out = ADV_FORMAT_BF16,
        .version = cost->plan->family.moe == ADV_MOE_GMM_V2 ? 2 : 1,
    };
    out->tile = tile_of(cost, projection, pass, &shape);
    if (adv_plan_reads_expert_tiles(cost->plan)) shape.m = adv_round_up(shape.m, out->tile.tile_m);
    double time_s = 0.0;
    /* nothing is published of version 2's weight gradient: it counts as its forward product */
    const bool transposed = pass == ADV_GMM_DRHS && shape.version == 1;
    adv_code code =
        simulated_s(cost, transposed ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM, &shape, &out->tile, &time_s, err);
    double factor = cost->plan->family.moe == ADV_MOE_TOKAMAX ? cost->constants->step_tokamax_factor
                                                              : cost->constants->step_gmm_factor;
    /* the factor is fitted to steps of other generations too: it must not carry a product beyond the peak */
    const struct adv_chip *chip = cost->chip;
    double peak = chip->peak_bf16_flops_per_s_per_chip;
    if (cost->quantizes_experts)
        peak = fmax(peak, fmax(chip->peak_fp8_flops_per_s_per_chip, chip->peak_int8_ops_per_s_per_chip));
    double floor_s = 2.0 * e->rows * in * to * chip->devices_per_chip / peak;
    out->seconds = adv_max(time_s * factor, floor_s);
    return code;
}

/* One grouped matmul pass of a layer kind; remembered in the scratch. */
static adv_code grouped_s(const struct adv_cost *cost, const struct adv_layer *layer,
                          const struct expert_shape *e, int projection, int pass,
                          struct adv_cost_grouped *out, adv_err *err)
{
    struct adv_cost_grouped *known =
        cost->scratch ? &cost->scratch->compute->kinds[adv_cost_kind(cost, layer)].grouped[projection][pass]
                      : NULL;
    if (known && known->known) {
        *out = *known;
        return ADV_OK;
    }
    adv_code code = simulate(cost, e, projection, pass, out, err);
    out->known = code == ADV_OK;
    if (known) *known = *out;
    return code;
}

/* Bytes of VMEM of a version 1 kernel with given tiles; 0 where the kernel picks them. */
static double vmem_bytes(const struct adv_cost *cost, enum adv_kernel kernel, const struct adv_gmm_tile *tile)
{
    const enum adv_format format = cost->quantizes_experts ? ADV_FORMAT_FP8 : ADV_FORMAT_BF16;
    const struct adv_gmm_shape shape = {.lhs = format, .rhs = format, .out = ADV_FORMAT_BF16};
    if (!adv_plan_reads_expert_tiles(cost->plan) || cost->plan->family.moe == ADV_MOE_GMM_V2) return 0.0;
    return adv_vmem_gmm_bytes(&cost->cluster->chip, kernel, &shape, tile);
}

static void list_kernel(const struct adv_cost *cost, struct adv_account *account,
                        const struct expert_shape *e, int projection, int pass,
                        const struct adv_cost_grouped *g, double count)
{
    if (!account->ledger) return;
    static const char *const passes[] = {"", " dlhs", " drhs"};
    struct adv_kernel_use use = {.kernel = pass == ADV_GMM_DRHS ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM,
                                 .time_us = g->seconds / ADV_US,
                                 .count = count};
    use.vmem_bytes = vmem_bytes(cost, use.kernel, &g->tile);
    (void)snprintf(use.shape, sizeof use.shape, "%s%s: %.0f rows, %.0f x %.0f, %d groups",
                   projection == 0 ? "wi" : "wo", passes[pass], e->rows, projection == 0 ? e->emb : e->width,
                   projection == 0 ? e->width : e->emb, e->groups);
    if (xla_lowers(cost->plan))
        (void)snprintf(use.tile, sizeof use.tile, "XLA's own (ragged_dot)");
    else
        (void)snprintf(use.tile, sizeof use.tile, "m %d, k %d, n %d", g->tile.tile_m, g->tile.tile_k,
                       g->tile.tile_n);
    adv_account_kernel(account, &use);
}

static adv_code add_grouped(const struct adv_cost *cost, const struct adv_layer *layer,
                            const struct expert_shape *e, double times, struct adv_account *account,
                            struct adv_layer_time *time, adv_err *err)
{
    double flops = 2.0 * e->rows * e->emb * e->width;
    for (int projection = 0; projection < 2; projection++) {
        int copies = projection == 0 ? e->inputs : 1;
        for (int pass = 0; pass < ADV_GMM_PASSES; pass++) {
            struct adv_cost_grouped g;
            adv_code code = grouped_s(cost, layer, e, projection, pass, &g, err);
            if (code != ADV_OK) return code;
            enum adv_pass at = pass == ADV_GMM_FWD ? ADV_PASS_FWD : ADV_PASS_BWD;
            enum adv_term_id id = pass == ADV_GMM_FWD ? ADV_TERM_GMM_FWD : ADV_TERM_GMM_BWD;
            adv_cost_add(account, time, at, id, copies * g.seconds, times, copies * flops, 0.0);
            list_kernel(cost, account, e, projection, pass, &g, times * copies);
        }
    }
    return ADV_OK;
}

/* The forward products that are not kept. */
static adv_code add_grouped_again(const struct adv_cost *cost, const struct adv_layer *layer,
                                  const struct expert_shape *e, double times, struct adv_account *account,
                                  struct adv_layer_time *time, adv_err *err)
{
    double flops = 2.0 * e->rows * e->emb * e->width;
    bool gate = adv_cost_keeps_either(cost, ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MLPWI_0);
    int again[2] = {!gate + (e->inputs > 1 && !adv_cost_keeps(cost, ADV_TENSOR_MOE_MLPWI_1)),
                    !adv_cost_keeps_either(cost, ADV_TENSOR_MOE_MLPWO, ADV_TENSOR_MLPWO)};
    for (int projection = 0; projection < 2; projection++) {
        struct adv_cost_grouped g;
        adv_code code = grouped_s(cost, layer, e, projection, ADV_GMM_FWD, &g, err);
        if (code != ADV_OK) return code;
        adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_GMM_RECOMPUTE, again[projection] * g.seconds,
                     times, again[projection] * flops, 0.0);
    }
    return ADV_OK;
}

/* How often token rows are gathered, in units of all rows of a balanced device. */
struct gathers {
    double dispatch, combine; /* into expert order; back, with the weighted sum over the choices */
    double weigh;             /* backward: the outputs once more, for the gradient of the weights */
};

/* With experts on other devices the rows are sorted for their owners, and by expert again where they arrive,
 * and the same on the way back; the second sorting is of whole buffers. The ring of experts gathers tokens
 * before it sorts, which is then of whole buffers too. */
static struct gathers gathers_of(const struct adv_cost *cost, double growth)
{
    double sum =
        cost->plan->family.float32_weight_sum ? 1.5 : 1.0; /* in float32 it writes and reads a wide copy */
    double tp = cost->tp;
    if (cost->ep > 1 && !cost->plan->family.use_ring_of_experts)
        return (struct gathers){tp * (1.0 + growth), growth + sum, 1.0};
    return (struct gathers){tp * growth, sum * growth, growth};
}

/* Permute: gather of the token rows into expert order; unpermute: gather back and weighted sum over the
 * choices. Random row access runs below streaming rate (step_gather_frac). The activation streams over the
 * buffers. */
static void add_routing(const struct adv_cost *cost, const struct adv_layer *layer,
                        const struct expert_shape *e, double times, struct adv_account *account,
                        struct adv_layer_time *time)
{
    double rows = e->rows / cost->tp;
    double row_bytes = 2.0 * e->emb * rows;
    double growth = adv_memory_routed_growth(cost, layer);
    struct gathers gathers = gathers_of(cost, growth);
    double gather_rate =
        cost->hbm_bytes_per_s / cost->constants->step_elementwise_frac * cost->constants->step_gather_frac;
    double gather_s = 2.0 * row_bytes / gather_rate;
    double activation_bytes = 2.0 * growth * e->rows * e->width * (e->inputs + 1.0);
    double activation_s = adv_cost_stream_s(cost, activation_bytes);
    if (layer->has_mlp_bias) {
        /* each row's expert biases are gathered and added, forward and again; their gradients are scattered
         * back */
        double bias_bytes = 2.0 * 2.0 * growth * e->rows * (e->inputs * e->width + e->emb / cost->tp);
        activation_s += bias_bytes / gather_rate;
        activation_bytes += bias_bytes;
    }
    double forward = gathers.dispatch + gathers.combine, backward = forward + gathers.weigh;
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_ROUTE_FWD, forward * gather_s + activation_s, times,
                 0.0, forward * 2.0 * row_bytes + activation_bytes);
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_ROUTE_RECOMPUTE,
                 gathers.dispatch * gather_s + activation_s, times, 0.0,
                 gathers.dispatch * 2.0 * row_bytes + activation_bytes);
    adv_cost_add(account, time, ADV_PASS_BWD, ADV_TERM_ROUTE_BWD, backward * gather_s + 2.0 * activation_s,
                 times, 0.0, backward * 2.0 * row_bytes + 2.0 * activation_bytes);
}

/* Capacity-based dense path: experts on padded rows. int8 and fp8 do not reach these einsums. */
struct dense {
    double rows, input_s, output_s, flops; /* of one matrix into and out of the experts' width; of all */
};

static struct dense dense_of(const struct adv_cost *cost, const struct adv_layer *layer,
                             const struct expert_shape *e)
{
    double rows =
        cost->plan->family.capacity_factor > 0.0 ? e->rows : cost->tokens * cost->tp * layer->experts;
    return (struct dense){.rows = rows,
                          .input_s = adv_cost_matmul_s(cost, rows, e->emb, e->width, false),
                          .output_s = adv_cost_matmul_s(cost, rows, e->width, e->emb, false),
                          .flops = 2.0 * rows * e->emb * e->width * (e->inputs + 1)};
}

/* Dispatch and combine are one-hot matmuls over the slots of a sequence. The combine mask is written in
 * bfloat16, read and written again as the dispatch mask; its gradient is written and read. A recompute
 * repeats the dispatch but not the combine, whose result nobody needs. */
static void add_dense(const struct adv_cost *cost, const struct adv_layer *layer,
                      const struct expert_shape *e, double times, struct adv_account *account,
                      struct adv_layer_time *time)
{
    struct dense d = dense_of(cost, layer, e);
    double forward_s = e->inputs * d.input_s + d.output_s;
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_GMM_FWD, forward_s, times, d.flops, 0.0);
    adv_cost_add(account, time, ADV_PASS_BWD, ADV_TERM_GMM_BWD, 2.0 * forward_s, times, 2.0 * d.flops, 0.0);
    if (cost->plan->family.capacity_factor <= 0.0) return;
    double slots_per_sequence = e->rows / (cost->tokens * cost->tp) * (double)cost->plan->family.seq_len;
    double einsum_flops = 2.0 * cost->tokens * slots_per_sequence * e->emb;
    double mask_bytes = 6.0 * cost->tokens * slots_per_sequence;
    double einsum_s = einsum_flops / cost->bf16_flops_per_s;
    double mask_s = adv_cost_stream_s(cost, mask_bytes);
    double activation_s = adv_cost_stream_s(cost, 2.0 * d.rows * e->width * (e->inputs + 1.0));
    adv_cost_add(account, time, ADV_PASS_FWD, ADV_TERM_ROUTE_FWD, 2.0 * einsum_s + mask_s + activation_s,
                 times, 2.0 * einsum_flops, mask_bytes);
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_ROUTE_RECOMPUTE,
                 einsum_s + mask_s + activation_s, times, einsum_flops, mask_bytes);
    adv_cost_add(account, time, ADV_PASS_BWD, ADV_TERM_ROUTE_BWD,
                 3.0 * einsum_s + mask_s + 2.0 * activation_s, times, 3.0 * einsum_flops, mask_bytes);
}

static void add_dense_again(const struct adv_cost *cost, const struct adv_layer *layer,
                            const struct expert_shape *e, double times, struct adv_account *account,
                            struct adv_layer_time *time)
{
    struct dense d = dense_of(cost, layer, e);
    int kept = adv_cost_keeps_either(cost, ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MLPWI_0) +
               adv_cost_keeps_either(cost, ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MLPWI_1);
    bool kept_out = adv_cost_keeps_either(cost, ADV_TENSOR_MOE_MLPWO, ADV_TENSOR_MLPWO);
    double again_s = (e->inputs - kept) * d.input_s + (kept_out ? 0.0 : d.output_s);
    double again_flops = d.flops * (e->inputs - kept + !kept_out) / (e->inputs + 1);
    adv_cost_add(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_GMM_RECOMPUTE, again_s, times, again_flops, 0.0);
}

adv_code adv_cost_experts_fixed(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    struct expert_shape e = shape_of(cost, layer);
    if (cost->plan->family.moe == ADV_MOE_DENSE) {
        add_dense(cost, layer, &e, times, account, time);
        return ADV_OK;
    }
    add_routing(cost, layer, &e, times, account, time);
    return add_grouped(cost, layer, &e, times, account, time, err);
}

adv_code adv_cost_experts_placed(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                 struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    struct expert_shape e = shape_of(cost, layer);
    if (cost->plan->family.moe != ADV_MOE_DENSE)
        return add_grouped_again(cost, layer, &e, times, account, time, err);
    add_dense_again(cost, layer, &e, times, account, time);
    return ADV_OK;
}
