#include "engine/advise_platforms.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_request.h"
#include "engine/json/encode_advise.h"
#include "engine/json/encode_platforms.h"
#include "engine/search/search.h"

struct tour {
    const struct adv_catalog *catalog;
    const struct adv_budget *budget;
    struct adv_platforms_answer *answer;
    adv_err *err;
    int count; /* modelled machines */
    int job_of[ADV_PLATFORMS_MAX];
    struct adv_platform_row rows[ADV_PLATFORMS_MAX];
    struct adv_platform platforms[ADV_PLATFORMS_MAX];
    enum adv_objective objective;
    bool has_model; /* of a request that decoded: what headline rows are counted for */
    struct adv_model model;
    struct adv_workload workload;
    adv_err refused; /* findings of the first machine that was refused */
};

/* Pointers into the cluster of a plain request, as pointers into the document that was given. */
static void note_refusal(struct tour *tour, const struct adv_platform_job *job, const adv_err *found,
                         struct adv_platform_row *row)
{
    static const char own[] = "/cluster";
    const struct adv_finding *first = &found->findings[0];
    (void)snprintf(row->reason, sizeof row->reason, "%s", first->detail);
    size_t used = strlen(row->reason);
    if (first->hint[0] && used + strlen(first->hint) + 4 < sizeof row->reason)
        (void)snprintf(row->reason + used, sizeof row->reason - used, " (%.*s)",
                       (int)(sizeof row->reason - used - 4), first->hint);
    row->refused = true;
    if (tour->refused.code != ADV_OK) return;
    tour->refused = *found;
    for (int i = 0; i < tour->refused.count; i++) {
        struct adv_finding *finding = &tour->refused.findings[i];
        if (strncmp(finding->pointer, own, strlen(own)) != 0) continue;
        char joined[2 * ADV_LIMIT_POINTER];
        (void)snprintf(joined, sizeof joined, "%s%s", job->at, finding->pointer + strlen(own));
        (void)snprintf(finding->pointer, sizeof finding->pointer, "%.*s", ADV_LIMIT_POINTER - 1, joined);
    }
}

static void note_nothing_fits(const struct adv_search_result *found, struct adv_platform_row *row)
{
    const char *why = "no plan fits";
    if (found->near_count > 0) why = found->near_misses[0].reason;
    if (found->empty_why[0]) why = found->empty_why;
    (void)snprintf(row->reason, sizeof row->reason, "%s", why);
}

#define BUDGET_RULE "request-budget"

static bool is_budget(const adv_err *err)
{
    const char *rule = err->findings[0].rule;
    return rule && strcmp(rule, BUDGET_RULE) == 0;
}

adv_code adv_budget_check(const struct adv_budget *budget, int machines,
                          const struct adv_advise_request *request, adv_err *err)
{
    const int plans = machines * request->top_k * (request->wants_sensitivities ? 2 : 1);
    if (!budget) return ADV_OK;
    if (budget->machines_max > 0 && machines > budget->machines_max)
        (void)adv_err_add(err, ADV_E_RANGE, "/clusters", "ask in several requests",
                          "%d machines are to be searched; a request may ask for %d", machines,
                          budget->machines_max);
    else if (budget->plans_max > 0 && plans > budget->plans_max)
        (void)adv_err_add(
            err, ADV_E_RANGE, "/search/top_k", "fewer machines, fewer plans, or no sensitivities",
            "%d machines times top_k %d%s are %d plans; a request may ask for %d", machines, request->top_k,
            request->wants_sensitivities ? ", twice with sensitivities," : "", plans, budget->plans_max);
    else
        return ADV_OK;
    adv_err_rule(err, BUDGET_RULE);
    return ADV_E_RANGE;
}

static adv_code search_one(struct tour *tour, const struct adv_platform_job *job, struct adv_arena *arena,
                           struct adv_platform_row *row, struct adv_platform *platform)
{
    struct adv_advise_request *request = adv_arena_alloc(arena, sizeof *request);
    struct adv_search_result *found = adv_arena_alloc(arena, sizeof *found);
    adv_err *own = adv_arena_alloc(arena, sizeof *own);
    if (!request || !found || !own)
        return adv_err_add(tour->err, ADV_E_MEMORY, "", NULL, "the request needs more memory than its limit");
    adv_err_init(own);
    adv_code code = adv_decode_advise_request(tour->catalog, job->document, arena, request, own, NULL);
    if (code == ADV_OK && tour->count == 1)
        code = adv_budget_check(tour->budget, tour->answer->jobs.modelled, request, own);
    if (code == ADV_OK) {
        tour->objective = request->objective;
        tour->model = request->model;
        tour->workload = request->workload;
        tour->has_model = true;
        request->top_k = 1;
        request->budget = tour->budget;
        const struct adv_catalog_chip *chip = adv_catalog_chip(tour->catalog, request->cluster.chip.name);
        const struct adv_reread *baseline;
        code = adv_reread_baseline(tour->catalog, request, arena, &baseline, own);
        if (code == ADV_OK) code = adv_search_run(request, baseline, &chip->constants, arena, found, own);
        tour->answer->evaluations += found->evaluated;
    }
    if (code == ADV_E_MEMORY || code == ADV_E_TIMEOUT || (code == ADV_E_RANGE && is_budget(own))) {
        adv_err_merge(tour->err, own, "");
        return code;
    }
    row->cluster = adv_encode_cluster(&request->cluster);
    platform->chips = request->cluster.chips_per_slice * request->cluster.slices;
    platform->price_usd_per_chip_hour = request->cluster.price_usd_per_chip_hour;
    platform->power_watts_per_chip = request->cluster.chip.power_watts_per_chip;
    platform->step_time_s = platform->tokens_per_step = platform->hbm_bytes_per_device = (double)NAN;
    if (code != ADV_OK) {
        note_refusal(tour, job, own, row);
        return ADV_OK;
    }
    if (found->found_count == 0) {
        note_nothing_fits(found, row);
        return ADV_OK;
    }
    const struct adv_estimate *estimate = &found->found[0].estimate;
    platform->step_time_s = estimate->step_time_s;
    platform->tokens_per_step = estimate->tokens_per_step;
    platform->hbm_bytes_per_device = estimate->hbm_bytes_per_device;
    return adv_encode_best(tour->catalog, job->document, request, &found->found[0], arena, &row->best,
                           tour->err);
}

static adv_code search_all(struct tour *tour)
{
    const struct adv_platform_jobs *jobs = &tour->answer->jobs;
    adv_code code = ADV_OK;
    for (int i = 0; i < jobs->count && code == ADV_OK; i++) {
        if (!jobs->items[i].document) continue;
        struct adv_arena arena;
        adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
        int at = tour->count++;
        tour->job_of[at] = i;
        code = search_one(tour, &jobs->items[i], &arena, &tour->rows[at], &tour->platforms[at]);
        adv_arena_free(&arena);
    }
    if (code != ADV_OK || tour->has_model) return code;
    adv_err_merge(tour->err, &tour->refused, "");
    return tour->refused.code;
}

static void finish(struct tour *tour)
{
    struct adv_platforms_answer *answer = tour->answer;
    int order[ADV_PLATFORMS_MAX];
    adv_platform_rank(tour->objective, tour->platforms, tour->count, order);
    int best = 0; /* where no machine has a plan: the first whose request holds, for its near misses */
    while (best < tour->count - 1 && tour->rows[order[best]].refused) best++;
    if (tour->rows[order[best]].refused) best = 0;
    answer->best = answer->jobs.items[tour->job_of[order[best]]].document;
    answer->rows =
        adv_encode_platforms(tour->rows, tour->platforms, order, tour->count, answer->jobs.token_budget);
    for (int i = 0; i < answer->jobs.count; i++) {
        const struct adv_platform_job *job = &answer->jobs.items[i];
        if (job->document) continue;
        (void)json_array_append_new(
            answer->rows, adv_encode_headline(job, &tour->model, &tour->workload, answer->jobs.token_budget));
    }
}

adv_code adv_advise_platforms(const struct adv_catalog *catalog, const json_t *root,
                              const struct adv_budget *budget, struct adv_platforms_answer *answer,
                              adv_err *err)
{
    memset(answer, 0, sizeof *answer);
    adv_code code = adv_decode_platforms(catalog, root, &answer->jobs, err);
    if (code != ADV_OK) return code;
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct tour *tour = adv_arena_alloc(&arena, sizeof *tour);
    if (tour) {
        tour->catalog = catalog;
        tour->budget = budget;
        tour->answer = answer;
        tour->err = err;
        code = search_all(tour);
        if (code == ADV_OK) finish(tour);
        for (int i = 0; i < tour->count; i++) {
            json_decref(tour->rows[i].cluster);
            json_decref(tour->rows[i].best);
        }
    } else {
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request needs more memory than its limit");
    }
    adv_arena_free(&arena);
    return code;
}
