#include "engine/cost/layer.h"

#include <string.h>

#include "engine/cost/layer_memory.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"

static const uint32_t feed_forward_names =
    UINT32_C(1) << ADV_TENSOR_MLPWI | UINT32_C(1) << ADV_TENSOR_MLPWI_0 | UINT32_C(1) << ADV_TENSOR_MLPWI_1 |
    UINT32_C(1) << ADV_TENSOR_MLPWO;

/* Whether the weights' gradient is that of the whole width on each device of a tensor group. */
static bool repeats(const struct adv_cost *cost, const struct adv_projection *p)
{
    return (p->names & feed_forward_names) != 0 && adv_cost_repeats_width(cost);
}

double adv_cost_projection_s(const struct adv_cost *cost, const struct adv_projection *p, enum adv_pass pass)
{
    double tp = p->split == ADV_SPLIT_NONE ? 1.0 : cost->tp;
    double rows = cost->tokens * tp;
    double k = p->split == ADV_SPLIT_K ? p->k / tp : p->k;
    double n = p->split == ADV_SPLIT_N ? p->n / tp : p->n;
    const bool low = cost->quantizes_dense;
    if (pass != ADV_PASS_BWD) return adv_cost_matmul_s(cost, rows, k, n, low);
    const bool again = repeats(cost, p);
    const double gradient_k = again ? p->k : k, gradient_n = again ? p->n : n;
    return adv_cost_matmul_s(cost, rows, n, k, low) +
           adv_cost_matmul_s(cost, gradient_k, rows, gradient_n, low);
}

/* A layer kind's matmuls; remembered in the scratch, or else written to `fresh`. */
static const struct adv_cost_projections *
projections_of(const struct adv_cost *cost, const struct adv_layer *layer, struct adv_cost_projections *fresh)
{
    struct adv_cost_projections *projections =
        cost->scratch ? &cost->scratch->projections[adv_cost_kind(cost, layer)] : fresh;
    if (cost->scratch && projections->known) return projections;
    projections->count = adv_projections(cost->model, layer, projections->table);
    projections->known = true;
    return projections;
}

/* Their times, in the same way. */
static const struct adv_cost_matmuls *matmuls_of(const struct adv_cost *cost, const struct adv_layer *layer,
                                                 const struct adv_cost_projections *projections,
                                                 struct adv_cost_matmuls *fresh)
{
    struct adv_cost_matmuls *matmuls =
        cost->scratch ? &cost->scratch->compute->kinds[adv_cost_kind(cost, layer)].matmuls : fresh;
    if (cost->scratch && matmuls->known) return matmuls;
    matmuls->forward_s = matmuls->backward_s = matmuls->forward_flops = matmuls->backward_flops = 0.0;
    for (int i = 0; i < projections->count; i++) {
        const struct adv_projection *p = &projections->table[i];
        matmuls->seconds[i] = adv_cost_projection_s(cost, p, ADV_PASS_FWD);
        matmuls->forward_s += matmuls->seconds[i];
        matmuls->backward_s += adv_cost_projection_s(cost, p, ADV_PASS_BWD);
        const double flops = 2.0 * cost->tokens * p->k * p->n;
        matmuls->forward_flops += flops;
        matmuls->backward_flops += flops * (1.0 + (repeats(cost, p) ? cost->tp : 1));
    }
    matmuls->known = true;
    return matmuls;
}

/* `count` matmuls of one layer; `seconds` and `flops` of all of them. */
static void add_matmuls(struct adv_account *account, struct adv_layer_time *time, enum adv_pass pass,
                        enum adv_term_id id, int count, double seconds, double times, double flops)
{
    adv_cost_add(account, time, pass, id, seconds, times, flops, 0.0);
    if (!account->only_exposed)
        account->slots[id].count +=
            times * adv_cost_pass_share(time, pass) * (count - 1); /* one by one, as the device runs them */
}

static void add_projections(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                            struct adv_account *account, struct adv_layer_time *time)
{
    struct adv_cost_projections fresh_projections;
    struct adv_cost_matmuls fresh_matmuls;
    const struct adv_cost_projections *projections = projections_of(cost, layer, &fresh_projections);
    const struct adv_cost_matmuls *matmuls = matmuls_of(cost, layer, projections, &fresh_matmuls);
    add_matmuls(account, time, ADV_PASS_FWD, ADV_TERM_MATMUL_FWD, projections->count, matmuls->forward_s,
                times, matmuls->forward_flops);
    add_matmuls(account, time, ADV_PASS_BWD, ADV_TERM_MATMUL_BWD, projections->count, matmuls->backward_s,
                times, matmuls->backward_flops);
}

static void add_projections_again(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                                  struct adv_account *account, struct adv_layer_time *time)
{
    struct adv_cost_projections fresh_projections;
    struct adv_cost_matmuls fresh_matmuls;
    const struct adv_cost_projections *projections = projections_of(cost, layer, &fresh_projections);
    const struct adv_cost_matmuls *matmuls = matmuls_of(cost, layer, projections, &fresh_matmuls);
    double seconds = 0.0, flops = 0.0;
    int again = 0;
    for (int i = 0; i < projections->count; i++) {
        const struct adv_projection *p = &projections->table[i];
        if (!p->needed_in_backward || adv_projection_kept(cost->kept, p)) continue;
        seconds += matmuls->seconds[i];
        flops += 2.0 * cost->tokens * p->k * p->n;
        again++;
    }
    if (again > 0)
        add_matmuls(account, time, ADV_PASS_RECOMPUTE, ADV_TERM_MATMUL_RECOMPUTE, again, seconds, times,
                    flops);
}

/* HBM bytes per token of a layer's fused elementwise work, forward: each norm reads and writes the residual
 * stream, the two residual additions read twice and write once, rotary reads and writes queries and keys
 * around their projection, the activation reads its inputs and writes its product. */
static double elementwise_bytes_per_token(const struct adv_model *model, const struct adv_layer *layer)
{
    double emb = (double)model->emb_dim;
    double bytes = 2.0 * emb * (2.0 * layer->norms + 6.0);
    if (layer->attention == ADV_ATTENTION_LINEAR) {
        double key_dim = (double)layer->linear_key_heads * layer->linear_key_head_dim;
        double value_dim = (double)layer->linear_value_heads * layer->linear_value_head_dim;
        bytes += 2.0 * (6.0 * (2.0 * key_dim + value_dim) + 5.0 * value_dim);
    } else {
        double q = (double)layer->q_heads * layer->head_dim_qk;
        double kv = layer->reuses_kv ? 0.0 : (double)layer->kv_heads * layer->head_dim_qk;
        bytes += 2.0 * (3.0 * (q + kv) + (double)layer->q_heads * layer->head_dim_v);
        if (layer->has_qk_norm) bytes += 4.0 * (q + 2.0 * kv);
    }
    double width = (double)layer->mlp_dim + (layer->shared_experts > 0 ? (double)layer->shared_mlp_dim : 0.0);
    return bytes + 2.0 * width * (layer->mlp_inputs + 1.0);
}

/* Share of the forward elementwise traffic that a recompute repeats (the last residual add and output are
 * not), and of the gradient's traffic over the forward's. Both by counting the tensors above. */
static const double recompute_share = 0.8;
static const double backward_share = 2.0;

/* HBM bytes per token of the biases' gradients: each reads the gradient of its projection's output once more.
 * The additions themselves ride on the matmuls; biases of routed experts are T-route's. */
static double bias_gradient_bytes_per_token(const struct adv_model *model, const struct adv_layer *layer)
{
    double columns = 0.0;
    if (layer->has_attention_bias)
        columns += (double)layer->q_heads * layer->head_dim_qk +
                   (double)layer->kv_heads * (layer->head_dim_qk + layer->head_dim_v);
    if (layer->has_attention_out_bias) columns += (double)model->emb_dim;
    if (layer->has_mlp_bias && layer->mlp_dim > 0)
        columns += (double)layer->mlp_inputs * (double)layer->mlp_dim + (double)model->emb_dim;
    return 2.0 * columns;
}

/* Load-balanced context shards gather keys and values in the order of the shards; each device then puts the
 * whole sequence in its own order, every time it gathers, and the gradients back into that of the shards. The
 * compiler reads and writes all of it in a copy, in taking the halves apart, in joining them and in another
 * copy, and turns one half round on the way forward. */
static double reorder_bytes(const struct adv_cost *cost, const struct adv_layer *layer, enum adv_pass pass)
{
    const struct adv_plan_family *family = &cost->plan->family;
    if (cost->cp_ring <= 1 || !family->cp_load_balance || adv_plan_circulates_keys(cost->plan)) return 0.0;
    return (pass == ADV_PASS_BWD ? 8.0 : 9.0) * adv_cost_keys_values_bytes(cost, layer);
}

static void add_elementwise(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                            struct adv_account *account, struct adv_layer_time *time)
{
    static const enum adv_term_id ids[ADV_PASS_COUNT] = {
        ADV_TERM_ELEMENTWISE_FWD, ADV_TERM_ELEMENTWISE_RECOMPUTE, ADV_TERM_ELEMENTWISE_BWD};
    double once = cost->tokens * elementwise_bytes_per_token(cost->model, layer);
    double biases = cost->tokens * bias_gradient_bytes_per_token(cost->model, layer);
    const double passes[ADV_PASS_COUNT] = {once, recompute_share * once, backward_share * once + biases};
    for (int p = 0; p < ADV_PASS_COUNT; p++) {
        double bytes = passes[p] + reorder_bytes(cost, layer, (enum adv_pass)p);
        adv_cost_add(account, time, (enum adv_pass)p, ids[p], adv_cost_stream_s(cost, bytes), times, 0.0,
                     bytes);
    }
}

/* 8-bit matmuls: activations are scaled and cast in every pass; each device casts the whole gathered weights
 * of the layer in every pass, which does not shrink with more devices. */
static void add_quantization(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                             struct adv_account *account, struct adv_layer_time *time)
{
    if (!cost->quantizes_dense) return;
    struct adv_layer_params params = cost->layer_params[adv_cost_kind(cost, layer)];
    double dense = (params.attention + params.dense_ffn + params.shared_experts) / cost->tp;
    double experts = cost->quantizes_experts ? params.routed_experts / (cost->ep * cost->tp) : 0.0;
    double weight_s = adv_cost_stream_s(cost, cost->quantize_bytes * (dense + experts));
    double width = (double)layer->mlp_dim + (layer->shared_experts > 0 ? (double)layer->shared_mlp_dim : 0.0);
    double elements = 2.0 * (double)cost->model->emb_dim + (double)layer->q_heads * layer->head_dim_v + width;
    if (cost->quantizes_experts)
        elements += layer->experts_per_token * (double)(layer->moe_input_dim + layer->moe_mlp_dim);
    double activation_s = adv_cost_stream_s(cost, cost->quantize_bytes * elements * cost->tokens);
    for (int pass = 0; pass < ADV_PASS_COUNT; pass++) {
        adv_cost_add(account, time, (enum adv_pass)pass, ADV_TERM_QUANTIZE_WEIGHTS, weight_s, times, 0.0,
                     0.0);
        adv_cost_add(account, time, (enum adv_pass)pass, ADV_TERM_QUANTIZE_ACTIVATIONS, activation_s, times,
                     0.0, 0.0);
    }
}

/* Layers with a checkpoint of their own behind the scan run in loops of their own, too. */
static double layers_merged(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return layer->remat_block < layer->scan_block ? 0.0 : adv_memory_layers_behind(cost, layer);
}

double adv_cost_again_frac(const struct adv_cost *cost, const struct adv_layer *layer)
{
    if (cost->recompute_elided) return 0.0;
    if (cost->offloads) return 1.0;
    return 1.0 - layers_merged(cost, layer) / (double)layer->count;
}

bool adv_cost_has_merged(const struct adv_cost *cost)
{
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        if (layers_merged(cost, &cost->model->layers[i]) > 0.0) return true;
    return false;
}

adv_code adv_cost_layer_fixed(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                              struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    memset(time, 0, sizeof *time);
    time->again_frac = adv_cost_again_frac(cost, layer);
    add_projections(cost, layer, times, account, time);
    adv_code code = adv_cost_attention_fixed(cost, layer, times, account, time, err);
    if (code == ADV_OK && layer->experts > 0)
        code = adv_cost_experts_fixed(cost, layer, times, account, time, err);
    if (code != ADV_OK) return code;
    adv_cost_index(cost, layer, times, account, time);
    add_elementwise(cost, layer, times, account, time);
    add_quantization(cost, layer, times, account, time);
    return ADV_OK;
}

adv_code adv_cost_layer_placed(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                               struct adv_account *account, struct adv_layer_time *time, adv_err *err)
{
    add_projections_again(cost, layer, times, account, time);
    adv_code code = adv_cost_attention_placed(cost, layer, times, account, time, err);
    if (code == ADV_OK && layer->experts > 0)
        code = adv_cost_experts_placed(cost, layer, times, account, time, err);
    return code;
}
