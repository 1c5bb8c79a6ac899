#include "engine/cost/step.h"

#include "engine/base/units.h"
#include "engine/cost/state.h"

double adv_cost_update_bytes_per_param(const struct adv_plan *plan, double moments)
{
    double w = adv_format_bytes(plan->family.weight_dtype);
    return 2.0 * w + 2.0 * adv_format_bytes(plan->family.grad_dtype) +
           2.0 * moments * adv_moment_bytes_per_param(plan);
}

void adv_cost_update(const struct adv_cost *cost, double shard_params, struct adv_account *account)
{
    const struct adv_plan *plan = cost->plan;
    double moments = 1.0 / adv_moment_shards(cost); /* of the parameters of a device */
    double update_bytes = adv_cost_update_bytes_per_param(plan, moments) * shard_params;
    /* each accumulated microstep reads the running sum and the new gradient and writes the sum, in the
     * weights' format */
    if (plan->family.gradient_accumulation_steps > 1)
        update_bytes += 3.0 * adv_format_bytes(plan->family.weight_dtype) * shard_params *
                        plan->family.gradient_accumulation_steps;
    adv_account_busy(account, ADV_TERM_OPTIMIZER, adv_cost_stream_s(cost, update_bytes), 1.0, 0.0,
                     update_bytes);
    if (plan->parameter_host_offload) {
        /* layer by layer to the device in both passes, behind the passes' compute; whole for the update, and
         * back */
        double one_s = adv_format_bytes(plan->family.weight_dtype) * shard_params / cost->pcie_bytes_per_s;
        double bytes = adv_format_bytes(plan->family.weight_dtype) * shard_params;
        double loads_s = 2.0 * cost->passes * one_s;
        adv_account_hidden(account, ADV_TERM_HOST_OFFLOAD, loads_s,
                           adv_max(0.0, loads_s - adv_account_total_s(account)), 1.0,
                           2.0 * cost->passes * bytes);
        adv_account_busy(account, ADV_TERM_OPTIMIZER_OFFLOAD, 2.0 * one_s, 1.0, 0.0, 2.0 * bytes);
    }
    if (plan->optimizer_host_offload) {
        double bytes = 2.0 * moments * adv_moment_bytes_per_param(plan) * shard_params;
        double seconds = bytes / cost->pcie_bytes_per_s;
        adv_account_busy(account, ADV_TERM_OPTIMIZER_OFFLOAD, seconds, 1.0, 0.0, bytes);
    }
}
