#include "engine/search/bounds.h"

#include "engine/base/units.h"
#include "engine/search/space_pipelines.h"

double adv_bound_hbm_bytes_per_device(const struct adv_plan *plan, const struct adv_model_params *params)
{
    double slices = (double)plan->family.dcn[ADV_AXIS_FSDP] * plan->family.dcn[ADV_AXIS_FSDP_TRANSPOSE];
    double dense = (params->total - params->routed_experts) / adv_plan_weight_shards(plan);
    double experts = params->routed_experts / adv_plan_expert_shards(plan);
    double replicas = (double)adv_plan_degree(plan, ADV_AXIS_DATA);
    double weight = adv_format_bytes(plan->family.weight_dtype);
    double moments =
        plan->family.optimizer == ADV_OPT_SGD ? 0 : adv_min(weight, adv_format_bytes(plan->family.mu_dtype));
    if (plan->optimizer_host_offload) moments = 0;
    if (plan->shard_optimizer_over_data) moments /= replicas;
    return (dense + experts) / adv_max(1, slices) * (weight + moments);
}

struct adv_bound adv_bound_derived(const struct adv_space *space, const struct adv_bound *by, int family)
{
    const struct adv_family *bounded = &space->families[family];
    struct adv_bound bound = *by;
    bound.family = family;
    bound.derived = true;
    if (!bounded->deeper) return bound;
    const double stages = bounded->ici[ADV_AXIS_STAGE] * bounded->dcn[ADV_AXIS_STAGE];
    const struct adv_pipeline pipeline = {adv_plan_pipelined_layers(&space->base, &space->request->model),
                                          stages, adv_max(stages, bounded->pipeline_microbatches)};
    bound.metric += adv_pipeline_deeper_s(&pipeline, space->families[by->family].layers_per_stage,
                                          bounded->layers_per_stage, by->bubble, by->hand_overs);
    return bound;
}

static bool is_before(const struct adv_bound *a, const struct adv_bound *b)
{
    return a->derived != b->derived ? !a->derived : a->metric <= b->metric;
}

struct adv_bound *adv_bound_sort(struct adv_bound *bounds, struct adv_bound *scratch, int count)
{
    struct adv_bound *from = bounds, *to = scratch;
    for (int width = 1; width < count; width *= 2) {
        for (int first = 0; first < count; first += 2 * width) {
            int middle = first + width < count ? first + width : count;
            int end = first + 2 * width < count ? first + 2 * width : count;
            int a = first, b = middle;
            for (int i = first; i < end; i++) {
                bool left = a < middle && (b >= end || is_before(&from[a], &from[b]));
                to[i] = left ? from[a++] : from[b++];
            }
        }
        struct adv_bound *swap = from;
        from = to;
        to = swap;
    }
    return from;
}
