#include "engine/cost/step.h"

#include <math.h>

#include "engine/base/units.h"

/* The slowest of many slices falls further behind with each, but less than in proportion. dcn_straggler_frac
 * is fitted per (slices - 1) to this power: engine/README.md, T-dcn. */
static const double straggler_power = 0.6;

/* Weights sharded over slices, bf16: gathered forward and backward, gradients scattered. */
static double dcn_weights_s(const struct adv_cost *cost, int slices, double shard_params)
{
    struct adv_collective_time gather = adv_collective_dcn_time(
        cost->cluster, cost->constants, slices, ADV_COLLECTIVE_ALL_GATHER, 2.0 * shard_params * slices);
    return 3.0 * (gather.bandwidth_s + gather.latency_s);
}

/* Gradients leave a slice while the layers before theirs are differentiated, in the last microbatch: of its
 * matmuls two passes of three. A share of all that the step takes so far, so that what makes a step shorter
 * never makes this one longer by more. */
static double backward_s(const struct adv_cost *cost, const struct adv_account *account)
{
    return 2.0 / 3.0 * adv_account_total_s(account) / cost->plan->family.gradient_accumulation_steps;
}

void adv_cost_slices(const struct adv_cost *cost, double dense, double experts, struct adv_account *account)
{
    int slices = cost->cluster->slices;
    if (slices <= 1) return;
    const struct adv_plan *plan = cost->plan;
    double bytes = adv_cost_gradient_bytes(plan) * (dense + experts);
    struct adv_collective_time reduce = adv_collective_dcn_time(
        cost->cluster, cost->constants, plan->family.dcn[ADV_AXIS_DATA], ADV_COLLECTIVE_ALL_REDUCE, bytes);
    double reduce_s = reduce.bandwidth_s + reduce.latency_s;
    const double seen_s = cost->constants->dcn_exposed_frac * reduce_s;
    const double late_s = adv_max(0.0, reduce_s - seen_s - backward_s(cost, account));
    adv_account_hidden(account, ADV_TERM_DCN_REDUCE, reduce_s, seen_s + late_s, 1.0, bytes);
    int expert_slices = plan->family.dcn[ADV_AXIS_FSDP] * plan->family.dcn[ADV_AXIS_FSDP_TRANSPOSE] *
                        plan->family.dcn[ADV_AXIS_CONTEXT] * plan->family.dcn[ADV_AXIS_ULYSSES];
    int dense_slices =
        expert_slices * (plan->family.rule == ADV_RULE_EP_AS_DP ? 1 : plan->family.dcn[ADV_AXIS_EXPERT]);
    if (dense_slices > 1) {
        double gather_s =
            dcn_weights_s(cost, dense_slices, dense) + dcn_weights_s(cost, expert_slices, experts);
        adv_account_hidden(account, ADV_TERM_DCN_WEIGHTS, gather_s, gather_s, cost->passes,
                           6.0 * (dense * dense_slices + experts * expert_slices));
    }
    /* slices step together: two already wait for each other, more have more stragglers among them */
    const struct adv_constants *k = cost->constants;
    double straggler_s = adv_account_total_s(account) *
                         (k->dcn_lockstep_frac + k->dcn_straggler_frac * pow(slices - 1.0, straggler_power));
    adv_account_busy(account, ADV_TERM_DCN_STRAGGLER, straggler_s, 1.0, 0.0, 0.0);
}
