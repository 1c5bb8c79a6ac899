#include "engine/explain/changes.h"

#include <math.h>

#include "engine/emit/flags.h"
#include "engine/rank/rank.h"

/* Keys of one group: those by which the baseline with the group taken over differs from the baseline. */
static adv_code list_group(const struct adv_advise_request *request, const struct adv_plan *baseline,
                           const struct adv_plan *changed, int group, struct adv_arena *arena,
                           struct adv_changes *changes, adv_err *err)
{
    struct adv_config_change keys[ADV_CHANGES_MAX];
    int count = 0;
    adv_code code = adv_emit_changes(baseline, changed, &request->model, &request->cluster, arena, keys,
                                     ADV_CHANGES_MAX - changes->count, &count, err);
    for (int i = 0; i < count; i++)
        changes->items[changes->count++] =
            (struct adv_change){keys[i].key, keys[i].from_json, keys[i].to_json, group};
    struct adv_flag_change switches[ADV_FLAG_CHANGES];
    count = code == ADV_OK ? adv_emit_flag_changes(&baseline->flags, &changed->flags, switches) : 0;
    for (int i = 0; i < count && changes->count < ADV_CHANGES_MAX; i++) {
        struct adv_change change = {switches[i].name, adv_arena_copy(arena, switches[i].from),
                                    adv_arena_copy(arena, switches[i].to), group};
        if (!change.from_json || !change.to_json)
            return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
        changes->items[changes->count++] = change;
    }
    return code;
}

adv_code adv_changes_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                          const struct adv_candidate *baseline, const struct adv_candidate *candidate,
                          struct adv_arena *arena, struct adv_changes *changes, adv_err *err)
{
    changes->count = 0;
    double now = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &baseline->estimate);
    changes->gain_frac = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &candidate->estimate) / now;
    for (int group = 0; group < ADV_CHANGE_GROUPS; group++) {
        struct adv_plan changed = baseline->plan;
        adv_change_group_apply(group, &candidate->plan, &changed);
        int before = changes->count;
        changes->group_gain_frac[group] = (double)NAN;
        changes->group_fits[group] = false;
        adv_code code = list_group(request, &baseline->plan, &changed, group, arena, changes, err);
        if (code != ADV_OK) return code;
        if (changes->count == before || adv_plan_broken_rule(&changed, &request->model, &request->cluster))
            continue;
        struct adv_estimate estimate;
        struct adv_estimate_input input = {&request->model, &request->cluster, constants, &changed,
                                           ADV_FLOPS_CAUSAL_HALF};
        if (adv_estimate_plan(&input, &estimate, NULL, NULL) != ADV_OK) continue;
        changes->group_gain_frac[group] = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) / now;
        changes->group_fits[group] = adv_rank_fits(&estimate, 1);
    }
    return ADV_OK;
}
