#include "engine/explain/changes.h"

#include <math.h>
#include <string.h>

#include "engine/maxtext/flags.h"
#include "engine/rank/rank.h"

static void add(struct adv_changes *changes, const char *key, const char *from_json, const char *to_json,
                int group)
{
    if (changes->count < ADV_CHANGES_MAX)
        changes->items[changes->count++] =
            (struct adv_change){key, from_json, to_json, group, 0, (double)NAN, (double)NAN};
}

/* Keys of one group: those by which the baseline with the group taken over differs from the baseline. */
static adv_code list_group(const struct adv_advise_request *request, const struct adv_plan *baseline,
                           const struct adv_plan *changed, int group, struct adv_arena *arena,
                           struct adv_changes *changes, adv_err *err)
{
    struct adv_config_change keys[ADV_CHANGES_MAX];
    struct adv_config_changes found = {.items = keys, .capacity = ADV_CHANGES_MAX - changes->count};
    adv_code code =
        adv_config_changes(NULL, baseline, changed, &request->model, &request->cluster, arena, &found, err);
    for (int i = 0; i < found.count; i++)
        add(changes, keys[i].key, keys[i].from_json, keys[i].to_json, group);
    struct adv_flag_change switches[ADV_FLAG_CHANGES];
    int count = code == ADV_OK ? adv_flags_changes(&baseline->flags, &changed->flags, switches) : 0;
    for (int i = 0; i < count; i++) {
        const char *from = adv_arena_copy(arena, switches[i].from),
                   *to = adv_arena_copy(arena, switches[i].to);
        if (!from || !to) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
        add(changes, switches[i].name, from, to, group);
    }
    return code;
}

static bool is_listed(const struct adv_changes *changes, const char *key)
{
    for (int i = 0; i < changes->count; i++)
        if (!strcmp(changes->items[i].key, key)) return true;
    return false;
}

/* Keys that both plans agree on, but that the configuration has to say once the others are changed. */
static adv_code list_awakened(const struct adv_advise_request *request, const struct adv_reread *reread,
                              const struct adv_plan *baseline, const struct adv_plan *candidate,
                              struct adv_arena *arena, struct adv_changes *changes, adv_err *err)
{
    struct adv_config_change keys[ADV_CHANGES_MAX];
    struct adv_config_changes found = {.items = keys, .capacity = ADV_CHANGES_MAX};
    adv_code code = adv_config_changes(reread, baseline, candidate, &request->model, &request->cluster, arena,
                                       &found, err);
    for (int i = 0; i < found.count && code == ADV_OK; i++)
        if (!is_listed(changes, keys[i].key))
            add(changes, keys[i].key, keys[i].from_json, keys[i].to_json, adv_change_group_of(keys[i].key));
    return code;
}

/* On the way from the baseline to the candidate. */
struct path {
    struct adv_estimate_input input;
    const struct adv_plan *baseline, *goal;
    const struct adv_budget *budget;
    struct adv_changes *changes;
    double whole;      /* the baseline's metric */
    double batches[2]; /* global, of the baseline and of the goal */
};

/* Whether `earlier`, taken over before, says its own only behind `change`: a place under a policy that was no
 * preset's, or a local block that else follows the global one. */
static bool speaks_behind(const struct adv_change *earlier, const struct adv_change *change,
                          bool opens_places)
{
    static const char local[] = "local_";
    const size_t prefix = sizeof local - 1;
    if (earlier->order == 0 || earlier->group != change->group) return false;
    return opens_places ||
           (strncmp(earlier->key, local, prefix) == 0 && strcmp(earlier->key + prefix, change->key) == 0);
}

static void take_over(const struct path *path, const struct adv_change *change, struct adv_plan *plan)
{
    const bool was_custom = plan->policy == ADV_POLICY_CUSTOM;
    if (adv_flags_copy(change->key, &path->goal->flags, &plan->flags)) return;
    (void)adv_key_copy(change->key, path->goal, plan);
    const bool opens_places = !was_custom && plan->policy == ADV_POLICY_CUSTOM;
    for (int i = 0; i < path->changes->count; i++)
        if (speaks_behind(&path->changes->items[i], change, opens_places))
            (void)adv_key_copy(path->changes->items[i].key, path->goal, plan);
}

/* NAN: not legal, or another batch than that of either end. */
static double metric_of(struct path *path, const struct adv_plan *plan)
{
    struct adv_estimate estimate;
    double batch = adv_plan_global_batch(plan, path->input.cluster);
    path->input.plan = plan;
    if (batch != path->batches[0] && batch != path->batches[1]) return (double)NAN;
    if (adv_plan_newly_broken_rule(path->baseline, plan, path->input.model, path->input.cluster, false) ||
        adv_estimate_plan(&path->input, &estimate, NULL, NULL) != ADV_OK)
        return (double)NAN;
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate);
}

/* The next step from `plan` at metric `now`: members of items get its number. Returns the metric behind it.
 */
static double step(struct path *path, struct adv_plan *plan, double now, int number)
{
    struct adv_changes *changes = path->changes;
    int best = -1, first = -1;
    double least = 0;
    for (int i = 0; i < changes->count; i++) {
        if (changes->items[i].order) continue;
        if (first < 0) first = i;
        struct adv_plan changed = *plan;
        take_over(path, &changes->items[i], &changed);
        double metric = metric_of(path, &changed);
        if (number == 1) changes->items[i].own_gain_frac = (path->whole - metric) / path->whole;
        if (isnan(metric) || (best >= 0 && metric >= least)) continue;
        best = i;
        least = metric;
    }
    for (int i = 0; i < changes->count; i++) { /* the best one, or the whole group of the first */
        struct adv_change *change = &changes->items[i];
        bool taken = best >= 0 ? i == best : change->group == changes->items[first].group;
        if (change->order || !taken) continue;
        take_over(path, change, plan);
        change->order = number;
    }
    if (best < 0) least = metric_of(path, plan);
    for (int i = 0; i < changes->count; i++)
        if (changes->items[i].order == number)
            changes->items[i].gain_frac = isnan(least) ? (double)NAN : (now - least) / path->whole;
    return isnan(least) ? now : least; /* still illegal: what follows makes up for it */
}

static void order(struct path *path, const struct adv_plan *baseline)
{
    struct adv_plan plan = *baseline;
    double now = path->whole;
    for (int number = 1; number <= path->changes->count; number++) {
        bool left = false;
        for (int i = 0; i < path->changes->count; i++) left = left || path->changes->items[i].order == 0;
        if (!left || adv_budget_over(path->budget)) return;
        now = step(path, &plan, now, number);
    }
}

adv_code adv_changes_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                          const struct adv_candidate *baseline, const struct adv_candidate *candidate,
                          const struct adv_reread *reread, struct adv_arena *arena,
                          struct adv_changes *changes, adv_err *err)
{
    changes->count = 0;
    double now = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &baseline->estimate);
    changes->gain_frac = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &candidate->estimate) / now;
    for (int group = 0; group < ADV_GROUPS; group++) {
        struct adv_plan changed = baseline->plan;
        adv_change_group_apply(group, &candidate->plan, &changed);
        int before = changes->count;
        changes->group_gain_frac[group] = (double)NAN;
        changes->group_fits[group] = false;
        adv_code code = list_group(request, &baseline->plan, &changed, group, arena, changes, err);
        if (code != ADV_OK) return code;
        if (changes->count == before ||
            adv_plan_newly_broken_rule(&baseline->plan, &changed, &request->model, &request->cluster, false))
            continue;
        struct adv_estimate estimate;
        struct adv_estimate_input input = {&request->model, &request->cluster, constants, &changed,
                                           ADV_FLOPS_CAUSAL_HALF};
        if (adv_estimate_plan(&input, &estimate, NULL, NULL) != ADV_OK) continue;
        changes->group_gain_frac[group] = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) / now;
        changes->group_fits[group] = adv_rank_fits(&estimate, 1);
    }
    if (reread) {
        adv_code code =
            list_awakened(request, reread, &baseline->plan, &candidate->plan, arena, changes, err);
        if (code != ADV_OK) return code;
    }
    if (changes->count <= ADV_CHANGES_ORDERED) {
        struct path path = {
            .input = {&request->model, &request->cluster, constants, NULL, ADV_FLOPS_CAUSAL_HALF},
            .baseline = &baseline->plan,
            .goal = &candidate->plan,
            .budget = request->budget,
            .changes = changes,
            .whole = now,
            .batches = {adv_plan_global_batch(&baseline->plan, &request->cluster),
                        adv_plan_global_batch(&candidate->plan, &request->cluster)},
        };
        order(&path, &baseline->plan);
    }
    return ADV_OK;
}
