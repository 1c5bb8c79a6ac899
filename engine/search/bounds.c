#include "engine/search/bounds.h"

#include <stdint.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/search/space_pipelines.h"

double adv_bound_hbm_bytes_per_device(const struct adv_plan *plan, const struct adv_model_params *params)
{
    double dense = (params->total - params->routed_experts) / adv_plan_weight_shards(plan);
    double experts = params->routed_experts / adv_plan_expert_shards(plan);
    double replicas = (double)adv_plan_degree(plan, ADV_AXIS_DATA);
    double weight = adv_format_bytes(plan->family.weight_dtype);
    double moments =
        plan->family.optimizer == ADV_OPT_SGD ? 0 : adv_min(weight, adv_format_bytes(plan->family.mu_dtype));
    if (plan->optimizer_host_offload) moments = 0;
    if (plan->shard_optimizer_over_data) moments /= replicas;
    return (dense + experts) * (weight + moments);
}

struct adv_bound adv_bound_derived(const struct adv_space *space, const struct adv_bound *by, int family)
{
    const struct adv_family *bounded = &space->families[family];
    struct adv_bound bound = *by;
    bound.family = family;
    if (!bounded->deeper) return bound;
    const double stages = bounded->ici[ADV_AXIS_STAGE] * bounded->dcn[ADV_AXIS_STAGE];
    const struct adv_pipeline pipeline = {adv_plan_pipelined_layers(&space->base, &space->request->model),
                                          stages, adv_max(stages, bounded->pipeline_microbatches)};
    bound.metric += adv_pipeline_deeper_s(&pipeline, space->families[by->family].layers_per_stage,
                                          bounded->layers_per_stage, by->bubble, by->hand_overs);
    return bound;
}

enum { DIGIT_VALUES = 256, DIGITS = 8 };

/* One of the digits by which bounds are in order, the last digit first. The bits of a positive number are in
 * its order, of a negative one in the opposite. */
static unsigned digit_of(const struct adv_bound *bound, int digit)
{
    uint64_t bits;
    memcpy(&bits, &bound->metric, sizeof bits);
    bits = bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
    return (unsigned)(bits >> 8 * digit) % DIGIT_VALUES;
}

/* Puts `from` into `to` by one digit, of which there are `counts`. */
static void sort_by(int digit, const int counts[DIGIT_VALUES], const struct adv_bound *from,
                    struct adv_bound *to, int count)
{
    int starts[DIGIT_VALUES] = {0};
    for (int value = 1; value < DIGIT_VALUES; value++) starts[value] = starts[value - 1] + counts[value - 1];
    for (int i = 0; i < count; i++) to[starts[digit_of(&from[i], digit)]++] = from[i];
}

bool adv_bound_sort(struct adv_bound *bounds, struct adv_bound *scratch, int count,
                    const struct adv_budget *budget)
{
    int counts[DIGITS][DIGIT_VALUES] = {{0}};
    for (int i = 0; i < count; i++)
        for (int digit = 0; digit < DIGITS; digit++) counts[digit][digit_of(&bounds[i], digit)]++;
    struct adv_bound *sorted = bounds, *other = scratch;
    for (int digit = 0; digit < DIGITS && count > 0; digit++) {
        if (counts[digit][digit_of(&bounds[0], digit)] == count) continue; /* the same in all */
        if (adv_budget_over(budget)) return false;
        sort_by(digit, counts[digit], sorted, other, count);
        struct adv_bound *swap = sorted;
        sorted = other;
        other = swap;
    }
    if (adv_budget_over(budget)) return false;
    if (sorted != bounds) memcpy(bounds, sorted, (size_t)count * sizeof *bounds);
    return true;
}
