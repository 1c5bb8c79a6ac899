#include "engine/cost/memory.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"

double adv_memory_lanes(double elements)
{
    static const double row_lanes = 128.0;
    return ceil(elements / row_lanes) * row_lanes;
}

/* Adds one named tensor to where the policy puts it. */
static void place(const struct adv_plan *plan, enum adv_tensor name, double bytes, struct adv_saved *saved)
{
    saved->bytes[plan->placements[name]] += bytes;
}

double adv_memory_routed_growth(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_plan *plan = cost->plan;
    if (cost->ep <= 1 || plan->family.moe == ADV_MOE_DENSE) return 1.0;
    if (plan->family.ragged_buffer_factor > 0.0) return plan->family.ragged_buffer_factor;
    if (plan->family.use_ring_of_experts) return cost->ep;
    return adv_min(cost->ep, adv_max(1.0, (double)layer->experts / layer->experts_per_token));
}

static void save_attention(const struct adv_cost *cost, const struct adv_layer *layer,
                           struct adv_saved *saved)
{
    const struct adv_plan *plan = cost->plan;
    double t = cost->tokens;
    double heads = layer->q_heads;
    /* the kernel writes [heads, tokens, head_dim]; XLA lays the others out so that nothing is padded */
    double context = t * (2.0 * heads * adv_memory_lanes(layer->head_dim_v) + 4.0 * heads);
    place(plan, ADV_TENSOR_QUERY_PROJ, t * 2.0 * heads * layer->head_dim_qk, saved);
    place(plan, ADV_TENSOR_CONTEXT, context, saved);
    place(plan, ADV_TENSOR_ATTENTION_OUT, t * 2.0 * heads * layer->head_dim_v, saved);
    place(plan, ADV_TENSOR_OUT_PROJ, t * 2.0 * (double)cost->model->emb_dim, saved);
    if (layer->kv_lora_rank > 0) {
        double qk = layer->qk_nope_head_dim + layer->qk_rope_head_dim;
        place(plan, ADV_TENSOR_QUERY_WA_PROJ, t * 2.0 * layer->q_lora_rank, saved);
        place(plan, ADV_TENSOR_MLA_Q, t * 2.0 * layer->q_lora_rank, saved);
        place(plan, ADV_TENSOR_KV_WA_PROJ, t * 2.0 * (layer->kv_lora_rank + layer->qk_rope_head_dim), saved);
        place(plan, ADV_TENSOR_MLA_KV, t * 2.0 * layer->kv_lora_rank, saved);
        place(plan, ADV_TENSOR_KEY_PROJ, t * 2.0 * heads * qk, saved);
        place(plan, ADV_TENSOR_VALUE_PROJ, t * 2.0 * heads * layer->head_dim_v, saved);
        return;
    }
    if (layer->reuses_kv) return;
    place(plan, ADV_TENSOR_KEY_PROJ, t * 2.0 * layer->kv_heads * layer->head_dim_qk, saved);
    place(plan, ADV_TENSOR_VALUE_PROJ, t * 2.0 * layer->kv_heads * layer->head_dim_v, saved);
}

static void save_dense(const struct adv_cost *cost, const struct adv_layer *layer, double width,
                       struct adv_saved *saved)
{
    const struct adv_plan *plan = cost->plan;
    double bytes = 2.0 * width * cost->tokens;
    if (layer->mlp_inputs == 2) {
        place(plan, ADV_TENSOR_MLPWI_0, bytes, saved);
        place(plan, ADV_TENSOR_MLPWI_1, bytes, saved);
    } else {
        place(plan, ADV_TENSOR_MLPWI, bytes, saved);
    }
    if (layer->has_post_ffw_norm)
        place(plan, ADV_TENSOR_MLPWO, 2.0 * (double)cost->model->emb_dim * cost->tokens, saved);
}

/* A tensor that goes by two names is where either keeps it. */
static enum adv_tensor kept_name(const struct adv_plan *plan, enum adv_tensor first, enum adv_tensor second)
{
    return adv_remat_keeps(plan, first) ? first : second;
}

static void save_experts(const struct adv_cost *cost, const struct adv_layer *layer, struct adv_saved *saved)
{
    const struct adv_plan *plan = cost->plan;
    bool grouped = plan->family.moe != ADV_MOE_DENSE;
    double rows = cost->tokens * layer->experts_per_token * adv_memory_routed_growth(cost, layer);
    if (!grouped)
        rows = plan->family.capacity_factor > 0.0 ? rows * plan->family.capacity_factor
                                                  : cost->tokens * layer->experts;
    double wide = 2.0 * adv_memory_lanes((double)layer->moe_mlp_dim) * rows;
    /* every tensor of the einsums carries both names; of the grouped matmuls only the gate's output does */
    place(plan, kept_name(plan, ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MLPWI_0), wide, saved);
    place(plan,
          grouped ? ADV_TENSOR_MOE_MLPWI_1 : kept_name(plan, ADV_TENSOR_MOE_MLPWI_1, ADV_TENSOR_MLPWI_1),
          wide, saved);
    place(plan, grouped ? ADV_TENSOR_MOE_MLPWO : kept_name(plan, ADV_TENSOR_MOE_MLPWO, ADV_TENSOR_MLPWO),
          2.0 * adv_memory_lanes((double)cost->model->emb_dim) * rows, saved);
}

static struct adv_saved layer_saved(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_saved saved = {{0.0}};
    double input = 2.0 * (double)cost->model->emb_dim * cost->tokens / adv_max(1.0, layer->scan_block);
    bool offloads = cost->plan->placements[ADV_TENSOR_DECODER_LAYER_INPUT] == ADV_PLACE_OFFLOAD;
    saved.bytes[offloads ? ADV_PLACE_OFFLOAD : ADV_PLACE_DEVICE] += input;
    if (layer->attention == ADV_ATTENTION_LINEAR) return saved; /* its tensors carry no names */
    save_attention(cost, layer, &saved);
    if (layer->mlp_dim > 0) save_dense(cost, layer, (double)layer->mlp_dim, &saved);
    if (layer->shared_experts > 0) save_dense(cost, layer, (double)layer->shared_mlp_dim, &saved);
    if (layer->experts > 0) save_experts(cost, layer, &saved);
    return saved;
}

struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_cost_scratch *scratch = cost->scratch;
    int kind = adv_cost_kind(cost, layer);
    if (!scratch) return layer_saved(cost, layer);
    if (!scratch->saved_known[kind]) scratch->saved[kind] = layer_saved(cost, layer);
    scratch->saved_known[kind] = true;
    return scratch->saved[kind];
}
