#include "engine/search/bounds.h"

#include "engine/base/units.h"

double adv_bound_hbm_bytes_per_device(const struct adv_plan *plan, const struct adv_model_params *params)
{
    double slices = (double)plan->dcn[ADV_AXIS_FSDP] * plan->dcn[ADV_AXIS_FSDP_TRANSPOSE];
    double dense = (params->total - params->routed_experts) / adv_plan_weight_shards(plan);
    double experts = params->routed_experts / adv_plan_expert_shards(plan);
    double replicas = (double)adv_plan_degree(plan, ADV_AXIS_DATA);
    double weight = adv_format_bytes(plan->weight_dtype);
    double moments = plan->optimizer == ADV_OPT_SGD ? 0 : adv_min(weight, adv_format_bytes(plan->mu_dtype));
    if (plan->optimizer_host_offload) moments = 0;
    if (plan->shard_optimizer_over_data) moments /= replicas;
    return (dense + experts) / adv_max(1, slices) * (weight + moments);
}
