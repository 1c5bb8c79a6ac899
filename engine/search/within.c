#include "engine/search/within.h"

#include <string.h>

#include "engine/emit/config.h"
#include "engine/emit/flags.h"
#include "engine/emit/groups.h"
#include "engine/rank/rank.h"

enum { KEYS_MAX = 160 };

/* Keys and flags by which `changed` differs from the baseline; above any limit when memory ran out. */
static int count_keys(const struct adv_advise_request *request, const struct adv_plan *baseline,
                      const struct adv_plan *changed, struct adv_arena *arena)
{
    struct adv_config_change keys[KEYS_MAX];
    struct adv_flag_change flags[ADV_FLAG_CHANGES];
    int count = 0;
    if (adv_emit_changes(baseline, changed, &request->model, &request->cluster, arena, keys, KEYS_MAX, &count,
                         NULL) != ADV_OK)
        return KEYS_MAX;
    return count + adv_emit_flag_changes(&baseline->flags, &changed->flags, flags);
}

static void insert(struct adv_candidate *best, int *count, int capacity, const struct adv_plan *plan,
                   const struct adv_estimate *estimate)
{
    double metric = adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, estimate);
    int at = *count;
    while (at > 0 && adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, &best[at - 1].estimate) > metric) at--;
    for (int i = 0; i < *count; i++) { /* equal in all that is predicted, on the same mesh: once is enough */
        const struct adv_estimate *other = &best[i].estimate;
        bool same = other->step_time_s == estimate->step_time_s &&
                    other->hbm_bytes_per_device == estimate->hbm_bytes_per_device &&
                    other->host_bytes_per_host == estimate->host_bytes_per_host;
        if (same && adv_rank_same_mesh(&best[i].plan, plan)) return;
    }
    if (at == capacity) return;
    int moved = *count < capacity ? (*count)++ - at : capacity - 1 - at;
    memmove(&best[at + 1], &best[at], (size_t)moved * sizeof *best);
    best[at] = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
}

static void lend(struct adv_pricer *pricer, const struct adv_plan *baseline, const struct adv_plan *donor,
                 struct adv_arena *arena, struct adv_candidate *best, int *count, int capacity)
{
    const struct adv_advise_request *request = pricer->request;
    int keys[ADV_CHANGE_GROUPS];
    for (int group = 0; group < ADV_CHANGE_GROUPS; group++) {
        struct adv_plan changed = *baseline;
        adv_change_group_apply(group, donor, &changed);
        keys[group] = count_keys(request, baseline, &changed, arena);
    }
    for (unsigned subset = 0; subset < 1u << ADV_CHANGE_GROUPS; subset++) {
        struct adv_plan changed = *baseline;
        int total = 0;
        bool idle = false; /* a group that changes nothing only repeats a smaller subset */
        for (int group = 0; group < ADV_CHANGE_GROUPS; group++) {
            if (!(subset & 1u << group)) continue;
            idle = idle || keys[group] == 0;
            total += keys[group];
            adv_change_group_apply(group, donor, &changed);
        }
        if (idle || total > request->max_changes ||
            adv_plan_broken_rule(&changed, &request->model, &request->cluster))
            continue;
        struct adv_estimate estimate;
        if (!adv_price(pricer, &changed, &estimate) || !adv_rank_fits(&estimate, pricer->memory_frac))
            continue;
        adv_estimate_again_interval(pricer->scratch, &estimate);
        insert(best, count, capacity, &changed, &estimate);
    }
}

int adv_search_within(struct adv_pricer *pricer, const struct adv_plan *baseline,
                      const struct adv_candidate *donors, int donors_count, struct adv_arena *arena,
                      struct adv_candidate *best, int capacity, bool *complete)
{
    int count = 0;
    for (int i = 0; i < donors_count && i < ADV_WITHIN_DONORS; i++)
        lend(pricer, baseline, &donors[i].plan, arena, best, &count, capacity);
    *complete = !pricer->spent;
    return count;
}
