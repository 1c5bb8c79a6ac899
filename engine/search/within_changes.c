#include "engine/search/within_changes.h"
#include "engine/base/list.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/flags.h"
#include "engine/rank/rank.h"
#include "engine/search/run.h"
#include "engine/search/space_choices.h"

enum { KEYS_MAX = 160, COUNT_BYTES = 512 * 1024 };

/* Keys and flags that make the baseline's configuration `changed`; above any limit when none do, or when
 * memory ran out. */
static int count_keys(const struct adv_pricer *pricer, const struct adv_plan *baseline,
                      const struct adv_plan *changed)
{
    const struct adv_advise_request *request = pricer->request;
    struct adv_config_change keys[KEYS_MAX];
    struct adv_flag_change flags[ADV_FLAG_CHANGES];
    struct adv_arena arena; /* some whole configurations, for this count only */
    struct adv_config_changes changes = {.items = keys, .capacity = KEYS_MAX};
    adv_arena_init(&arena, COUNT_BYTES);
    adv_code code = adv_config_changes(pricer->baseline, baseline, changed, &request->model,
                                       &request->cluster, &arena, &changes, NULL);
    adv_arena_free(&arena);
    return code == ADV_OK && changes.exact
               ? changes.count + adv_flags_changes(&baseline->flags, &changed->flags, flags)
               : KEYS_MAX;
}

/* The best plans so far, by the objective. */
struct best {
    struct adv_pricer *pricer;
    const struct adv_plan *baseline; /* changes are counted from it */
    const struct adv_plan *start;    /* the same, of the work that is asked for */
    int start_keys;                  /* between the two */
    struct adv_candidate *items;
    int count, capacity;
};

static bool is_better(const struct best *best, const struct adv_estimate *a, const struct adv_estimate *b)
{
    return adv_run_comes_before(best->pricer->request->objective, a, b);
}

/* Equal in all that is predicted, on the same mesh: once is enough. */
static bool is_known(const struct best *best, const struct adv_plan *plan,
                     const struct adv_estimate *estimate)
{
    for (int i = 0; i < best->count; i++) {
        const struct adv_estimate *other = &best->items[i].estimate;
        bool same = other->step_time_s == estimate->step_time_s &&
                    other->hbm_bytes_per_device == estimate->hbm_bytes_per_device &&
                    other->host_bytes_per_host == estimate->host_bytes_per_host;
        if (same && adv_rank_same_mesh(&best->items[i].plan, plan)) return true;
    }
    return false;
}

static void insert(struct best *best, const struct adv_plan *plan, const struct adv_estimate *estimate)
{
    int at = best->count;
    while (at > 0 && is_better(best, estimate, &best->items[at - 1].estimate)) at--;
    struct adv_candidate *place =
        adv_list_open(best->items, sizeof *best->items, &best->count, best->capacity, at);
    if (place) *place = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
}

/* Prices a legal plan; keeps it when it fits, is good enough and does not change too many keys after all. */
static void offer_one(struct best *best, const struct adv_plan *plan)
{
    const struct adv_advise_request *request = best->pricer->request;
    struct adv_estimate estimate;
    if (!adv_price_as_it_is(best->pricer, plan, &estimate) ||
        !adv_rank_fits_share(&estimate, best->pricer->share))
        return;
    adv_estimate_again_interval(best->pricer->scratch, &estimate);
    bool full = best->count == best->capacity;
    if (full && !is_better(best, &estimate, &best->items[best->count - 1].estimate)) return;
    if (is_known(best, plan, &estimate)) return;
    if (count_keys(best->pricer, best->baseline, plan) <= request->max_changes &&
        adv_price_compiles(best->pricer, plan))
        insert(best, plan, &estimate);
}

/* The flag that would go with what a plan has on the host is a change like any other. */
static void offer(void *context, const struct adv_plan *plan)
{
    struct best *best = context;
    offer_one(best, plan);
    if (adv_choices_are_finished(plan)) return;
    struct adv_plan finished = *plan;
    adv_choices_finish(&finished);
    offer_one(best, &finished);
}

/* All subsets of the groups of keys in which the donor differs. */
static void lend(struct best *best, const struct adv_plan *donor)
{
    const struct adv_advise_request *request = best->pricer->request;
    int keys[ADV_GROUPS];
    for (int group = 0; group < ADV_GROUPS; group++) {
        struct adv_plan changed = *best->start;
        adv_change_group_apply(group, donor, &changed);
        keys[group] = count_keys(best->pricer, best->start, &changed);
    }
    for (unsigned subset = 0; subset < 1u << ADV_GROUPS; subset++) {
        struct adv_plan changed = *best->start;
        int total = best->start_keys;
        bool idle = false; /* a group that changes nothing only repeats a smaller subset */
        for (int group = 0; group < ADV_GROUPS; group++) {
            if (!(subset & 1u << group)) continue;
            idle = idle || keys[group] == 0;
            total += keys[group];
        }
        if (idle || total > request->max_changes) continue;
        for (int group = 0; group < ADV_GROUPS; group++)
            if (subset & 1u << group) adv_change_group_apply(group, donor, &changed);
        if (!adv_plan_broken_rule(&changed, &request->model, &request->cluster)) offer(best, &changed);
    }
}

/* Where single keys cannot be exact for the whole limit: on from the best plans so far, with the keys they
 * leave. */
static void go_on(struct best *best, int asked, struct adv_arena *arena)
{
    enum { ROUNDS = 3, BEAM = 3 };
    struct adv_plan from[BEAM];
    for (int round = 0; round < ROUNDS; round++) {
        int count = best->count < BEAM ? best->count : BEAM;
        for (int i = 0; i < count; i++) from[i] = best->items[i].plan;
        for (int i = 0; i < count; i++) {
            int left = asked - count_keys(best->pricer, best->baseline, &from[i]);
            if (left > 0) (void)adv_single_keys_visit(best->pricer, &from[i], left, arena, offer, best);
        }
    }
}

/* Whether two plans differ in nothing of what a workload asks for. */
static bool are_of_one_work(const struct adv_plan_family *a, const struct adv_plan_family *b)
{
    return a->seq_len == b->seq_len && a->weight_dtype == b->weight_dtype && a->mu_dtype == b->mu_dtype &&
           a->grad_dtype == b->grad_dtype && a->optimizer == b->optimizer &&
           a->quantization == b->quantization;
}

int adv_within_least_changes(const struct adv_pricer *pricer, const struct adv_plan *start)
{
    const struct adv_plan *baseline = &pricer->request->baseline;
    return are_of_one_work(&baseline->family, &start->family) ? 0 : count_keys(pricer, baseline, start);
}

int adv_search_within(struct adv_pricer *pricer, const struct adv_plan *start,
                      const struct adv_candidate *donors, int donors_count, struct adv_arena *arena,
                      struct adv_candidate *items, int capacity, bool *complete)
{
    const struct adv_plan *baseline = &pricer->request->baseline;
    const int asked = pricer->request->max_changes, start_keys = adv_within_least_changes(pricer, start);
    struct best best = {.pricer = pricer,
                        .baseline = baseline,
                        .start = start,
                        .start_keys = start_keys,
                        .items = items,
                        .capacity = capacity < ADV_WITHIN_KEPT ? capacity : ADV_WITHIN_KEPT};
    *complete = true;
    if (start_keys > asked) return 0;
    for (int i = 0; i < donors_count && i < ADV_WITHIN_DONORS; i++) lend(&best, &donors[i].plan);
    const int left = asked - start_keys;
    const int shown = adv_single_keys_visit(pricer, start, left, arena, offer, &best);
    if (shown < left) go_on(&best, asked, arena);
    *complete = shown >= left && !pricer->spent;
    return best.count;
}
