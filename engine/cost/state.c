#include "engine/cost/state.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/cost/regime.h"

double adv_moment_bytes_per_param(const struct adv_plan *plan)
{
    double w = adv_format_bytes(plan->family.weight_dtype);
    double mu = adv_format_bytes(plan->family.mu_dtype);
    if (plan->family.optimizer == ADV_OPT_SGD) return 0.0;
    if (plan->family.optimizer == ADV_OPT_MUON) return mu;
    if (plan->family.optimizer == ADV_OPT_ADAM_PAX) return 2.0 * w;
    return mu + w;
}

double adv_moment_shards(const struct adv_cost *cost)
{
    const struct adv_plan *plan = cost->plan;
    return plan->shard_optimizer_over_data ? (double)cost->dp * plan->family.dcn[ADV_AXIS_DATA] : 1.0;
}

/* Gradients of models with experts, which cross slices out of one buffer into another, both in the weights'
 * format: with two slices DeepSeek is reported, by an older compiler, to need 8 GiB and more over the same
 * shards on one slice, and does not compile in time here. Today's has no such buffers in steps of qwen3-30b,
 * with the data-parallel overlap flags or without, whatever grad_dtype: there this is 13 to 17 % too much.
 * Compiled steps of dense layers have none. */
static double between_slices_bytes(const struct adv_cost *cost, double weights)
{
    const struct adv_plan *plan = cost->plan;
    bool routed = false;
    for (int i = 0; i < cost->model->layer_kinds_count; i++) routed |= cost->model->layers[i].experts > 0;
    const bool crosses = plan->family.dcn[ADV_AXIS_DATA] > 1 && plan->flags.data_parallel_overlap != 1;
    return crosses && routed ? 2.0 * weights : 0.0;
}

/* Elements of experts beyond a device's shard that are whole over fsdp_transpose all through the loop over
 * layers. Grouped matmuls need the width over tensor alone; where a tensor axis shards it too, and inside
 * fsdp_transpose, no gather of a layer's weights leaves that part, so XLA turns the stacks of all layers
 * before the loop, and those of the gradients behind it (compiled with MaxText 0.2.5). */
static double turned_experts(const struct adv_cost *cost, const struct adv_model_params *params)
{
    const bool is_turned = cost->tp > 1 && cost->width_shards > 1 && cost->expert_width_shards == 1;
    return is_turned && cost->plan->family.scan_layers
               ? params->routed_experts / cost->expert_shards * (cost->width_shards - 1.0)
               : 0.0;
}

/* Gradients of dense layers beyond a device's shard. Where layers are not scanned and their weights are
 * gathered whole, XLA scatters the gradients of all of them together, after the last. */
static double whole_gradients_bytes(const struct adv_cost *cost, const struct adv_model_params *params)
{
    if (cost->plan->family.scan_layers || adv_memory_windowed(cost)) return 0.0;
    const double layers = params->total - params->routed_experts - params->embedding - params->unembedding;
    return adv_format_bytes(cost->plan->family.dtype) * layers *
           adv_max(0.0, 1.0 / (cost->tp * cost->stages) - 1.0 / cost->weight_shards);
}

static double padded(double rows, double columns)
{
    enum { TILE_ROWS = 8, LANES = 128 };
    return (double)adv_round_up((int64_t)ceil(rows), TILE_ROWS) *
           (double)adv_round_up((int64_t)ceil(columns), LANES);
}

/* The first kind of layer with routed experts; NULL: the model has none. */
static const struct adv_layer *routed_layer(const struct adv_cost *cost)
{
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        if (cost->model->layers[i].experts > 0) return &cost->model->layers[i];
    return NULL;
}

/* Elements beyond a device's shard that the gradients of experts take between microbatches. Sums go through
 * the loop over microbatches in the order of MaxText's tensors, [experts, layers, width, emb] of wo, whose
 * last dimension is that of a shard, filled up to whole tiles; alone in a step gradients are turned instead
 * (18 of 18 compiled steps with a shard narrower than 128). */
static double padded_experts(const struct adv_cost *cost, const struct adv_model_params *params)
{
    const struct adv_plan_family *family = &cost->plan->family;
    const struct adv_layer *layer = routed_layer(cost);
    if (!layer || family->gradient_accumulation_steps == 1 || !family->scan_layers ||
        family->shard_exp_on_fsdp)
        return 0.0;
    const double width_shards = cost->tp * adv_plan_degree(cost->plan, ADV_AXIS_FSDP_TRANSPOSE);
    const double emb_shards = cost->expert_shards / (width_shards * cost->ep * cost->stages);
    const double emb = (double)layer->moe_input_dim / emb_shards;
    const double width = (double)layer->moe_mlp_dim / width_shards;
    const double tiles = layer->mlp_inputs * padded(emb, width) + padded(width, emb);
    const double elements = (layer->mlp_inputs + 1.0) * emb * width;
    return params->routed_experts / cost->expert_shards * (tiles / elements - 1.0);
}

/* Whether experts come in two gathers, one over fsdp and one over fsdp_transpose, beside an expert axis.
 * Sharded by their number they lie otherwise: a recipe published so runs. */
static bool gathers_experts_twice(const struct adv_cost *cost)
{
    const struct adv_plan_family *family = &cost->plan->family;
    const bool by_number = family->shard_exp_on_fsdp || family->rule == ADV_RULE_SHARD_EXP_ON_FSDP;
    return family->two_stage_gather && family->moe != ADV_MOE_DENSE && cost->ep > 1 && !by_number &&
           family->ici[ADV_AXIS_FSDP] > 1 && family->ici[ADV_AXIS_FSDP_TRANSPOSE] > 1;
}

/* Elements of experts beyond a device's shard that the gradients hold then: XLA shards them over as many
 * devices less as fsdp_transpose has, [experts, layers, emb, width / fsdp_transpose] with the experts cut
 * further instead of emb (compiled steps of deepseek3-test and envy-switch-base, tests/compile/truth). */
static double unscattered_experts(const struct adv_cost *cost, const struct adv_model_params *params)
{
    if (!gathers_experts_twice(cost)) return 0.0;
    const double transpose = cost->plan->family.ici[ADV_AXIS_FSDP_TRANSPOSE];
    return params->routed_experts / cost->expert_shards * (transpose - 1.0);
}

/* Elements that it may hold behind the loop, where it finds no way from there to the weights' own shards but
 * through whole experts: two of their matrices at once, sharded over fsdp_transpose alone (envy-switch-base
 * on 128 v6e). */
static double whole_experts(const struct adv_cost *cost, const struct adv_model_params *params)
{
    static const double matrices_at_once = 2.0;
    const struct adv_layer *layer = routed_layer(cost);
    if (!layer || !gathers_experts_twice(cost)) return 0.0;
    const double shards = cost->plan->family.ici[ADV_AXIS_FSDP_TRANSPOSE] * cost->stages * cost->tp;
    return matrices_at_once / (layer->mlp_inputs + 1.0) * params->routed_experts / shards;
}

struct adv_state adv_state_of(const struct adv_cost *cost, const struct adv_model_params *params)
{
    const struct adv_plan *plan = cost->plan;
    const double turned = turned_experts(cost, params);
    double sharded = params->total - params->routed_experts - adv_params_whole(params, 1.0);
    double shard = sharded / cost->weight_shards + params->routed_experts / cost->expert_shards +
                   adv_params_whole(params, cost->tp) / cost->stages;
    /* every stage of a pipeline holds the embedding and the head; their gradients come last */
    double held =
        shard + (params->embedding + params->unembedding) / cost->weight_shards * (cost->stages - 1.0);
    struct adv_state s = {.weights = adv_format_bytes(plan->family.weight_dtype) * held,
                          .moments = adv_moment_bytes_per_param(plan) * held / adv_moment_shards(cost)};
    /* XLA moves the cast of float32 gradients to bfloat16 into the loop over layers, not the other cast */
    const double gradient_bytes =
        adv_min(adv_format_bytes(plan->family.weight_dtype), adv_format_bytes(plan->family.grad_dtype));
    const double gradients =
        gradient_bytes * (shard + turned + padded_experts(cost, params) + unscattered_experts(cost, params));
    s.device_weights = plan->parameter_host_offload ? 0.0 : s.weights;
    s.device_moments = plan->optimizer_host_offload ? 0.0 : s.moments;
    /* before the loop over layers XLA casts and turns all that it will slice in it */
    if (plan->family.scan_layers)
        s.copies =
            adv_format_bytes(plan->family.dtype) * (shard + turned - params->embedding / cost->weight_shards);
    s.accumulated = plan->family.gradient_accumulation_steps > 1 ? gradients : 0.0;
    s.gradients = gradients + s.accumulated + whole_gradients_bytes(cost, params);
    s.whole_experts = gradient_bytes * whole_experts(cost, params);
    s.between_slices = between_slices_bytes(cost, s.weights);
    return s;
}
