/* advise.c: decode, search, explain, write. Read this file first. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/answer/answer.h"
#include "engine/answer/estimate.h"
#include "engine/answer/microbatches.h"
#include "engine/answer/needs.h"
#include "engine/answer/platforms.h"
#include "engine/answer/room.h"
#include "engine/explain/whatif.h"
#include "engine/json/decode_request.h"
#include "engine/json/decode_store.h"
#include "engine/json/encode_common.h"
#include "engine/json/lint_rules.h"
#include "engine/search/in_order.h"
#include "engine/search/remat_space.h"
#include "engine/search/space_batch.h"

/* Whether the ranked plans have the best placements and tiles there are: nothing fixed them, and the search
 * was for speed and came to its end. */
static bool ranked_are_searched(const struct adv_advise_answer *answer, const struct adv_constants *constants)
{
    const struct adv_advise_request *request = answer->request;
    struct adv_remat_space open;
    adv_remat_space_build(request, constants, &open);
    bool within = answer->result->has_baseline && request->max_changes != ADV_CHANGES_ANY;
    return answer->result->exhaustive && !within && request->objective != ADV_OBJECTIVE_HBM && !open.pinned &&
           !open.any_fixed && open.tilings_count > 1 && !request->tiles_pinned;
}

static adv_code tell_changes(const struct adv_teller *teller, const struct adv_search_result *result,
                             const struct adv_candidate *candidate, struct adv_told_plan *told)
{
    struct adv_changes *changes = adv_arena_alloc(teller->arena, sizeof *changes);
    if (!changes) return adv_answer_no_memory(teller->err);
    told->changes = changes;
    return adv_changes_find(teller->request, teller->constants, &result->baseline, candidate,
                            result->baseline_reread, teller->arena, changes, teller->err);
}

/* The plans of an answer, told and written by two threads: the ranked, then the points of the front and the
 * near misses. */
struct telling {
    const struct adv_teller *teller;
    struct adv_advise_answer *answer;
    bool searched;
    adv_code code; /* of all */
    struct told_ahead {
        adv_code code;
        struct adv_arena arena; /* holds what was told and written */
    } ahead[ADV_IN_ORDER_SLOTS];
};

static bool is_ranked(const struct telling *telling, int which)
{
    return which < telling->answer->result->found_count;
}

/* Of ranked plans beside a baseline the way there is told, too, for which the budget is asked: finish_one. */
static bool is_finished_later(const struct telling *telling, int which)
{
    return is_ranked(telling, which) && telling->answer->result->has_baseline;
}

/* A plan of which all is told. */
static adv_code write_one(const struct telling *telling, const struct adv_teller *teller, int which)
{
    struct adv_told_plan *told = &telling->answer->ranked[which];
    told->written = adv_encode_told(telling->answer, which, teller->arena);
    return told->written ? ADV_OK : adv_answer_no_memory(teller->err);
}

static adv_code tell_plan(const struct telling *telling, const struct adv_teller *teller, int which)
{
    const struct adv_search_result *result = telling->answer->result;
    const struct adv_plan *plan = &result->found[which].plan;
    struct adv_told_plan *told = &telling->answer->ranked[which];
    struct adv_why *why = adv_arena_alloc(teller->arena, sizeof *why);
    if (!why) return adv_answer_no_memory(teller->err);
    adv_code code = adv_tell_config(teller, plan, &told->config);
    if (code == ADV_OK) code = adv_tell_estimate(teller, plan, told);
    if (code == ADV_OK) code = adv_tell_advice(teller, plan, NULL, telling->searched, told);
    if (code != ADV_OK) return code;
    adv_why_explain(teller->request, teller->constants, result, which, told->ledger, why);
    told->why = why;
    return ADV_OK;
}

/* A point of the front or a near miss: as it was priced, without advice. */
static adv_code tell_point(const struct telling *telling, const struct adv_teller *teller, int which)
{
    const struct adv_search_result *result = telling->answer->result;
    const int point = which - result->found_count, near = point - result->pareto_count;
    const struct adv_candidate *candidate =
        near < 0 ? &result->pareto[point] : &result->near_misses[near].candidate;
    struct adv_told_plan *told = &telling->answer->ranked[which];
    told->estimate = &candidate->estimate;
    return adv_tell_config(teller, &candidate->plan, &told->config);
}

static adv_code tell_one(const struct telling *telling, const struct adv_teller *teller, int which)
{
    const adv_code code =
        is_ranked(telling, which) ? tell_plan(telling, teller, which) : tell_point(telling, teller, which);
    if (code != ADV_OK || is_finished_later(telling, which)) return code;
    return write_one(telling, teller, which);
}

static void tell_ahead(void *context, int worker, int slot, int item)
{
    struct telling *telling = context;
    struct told_ahead *ahead = &telling->ahead[slot];
    adv_err err = adv_err_empty();
    struct adv_teller teller = *telling->teller;
    (void)worker;
    adv_arena_init(&ahead->arena, teller.arena->limit_bytes);
    teller.arena = &ahead->arena;
    teller.err = &err;
    ahead->code = tell_one(telling, &teller, item);
}

static bool finish_one(struct telling *telling, int item)
{
    const struct adv_teller *teller = telling->teller;
    const struct adv_search_result *result = telling->answer->result;
    if (telling->code != ADV_OK || !is_finished_later(telling, item)) return telling->code == ADV_OK;
    telling->code = tell_changes(teller, result, &result->found[item], &telling->answer->ranked[item]);
    if (telling->code == ADV_OK) telling->code = write_one(telling, teller, item);
    return telling->code == ADV_OK;
}

static bool is_given_up(void *context)
{
    struct telling *telling = context;
    if (telling->code == ADV_OK && adv_budget_over(telling->teller->request->budget))
        telling->code = adv_budget_refuse(telling->teller->err);
    return telling->code != ADV_OK;
}

static bool tell_now(void *context, int item)
{
    struct telling *telling = context;
    if (is_given_up(telling)) return false;
    telling->code = tell_one(telling, telling->teller, item);
    return finish_one(telling, item);
}

static bool take_told(void *context, int slot, int item)
{
    struct telling *telling = context;
    struct told_ahead *ahead = &telling->ahead[slot];
    const bool good = ahead->code == ADV_OK && adv_arena_adopt(telling->teller->arena, &ahead->arena);
    if (good) return finish_one(telling, item);
    adv_arena_free(&ahead->arena);
    return tell_now(telling, item); /* to say what is wrong */
}

static adv_code tell_all(const struct adv_teller *teller, int count, struct adv_advise_answer *answer)
{
    struct telling telling = {.teller = teller,
                              .answer = answer,
                              .searched = ranked_are_searched(answer, teller->constants),
                              .code = ADV_OK};
    struct adv_in_order job = {.context = &telling,
                               .count = count,
                               .work = tell_ahead,
                               .take = take_told,
                               .direct = tell_now,
                               .over = is_given_up};
    const struct adv_budget *budget = teller->request->budget;
    adv_in_order_run(&job, budget ? budget->crew : NULL);
    for (int i = 0; i < ADV_IN_ORDER_SLOTS; i++) adv_arena_free(&telling.ahead[i].arena);
    return telling.code;
}

static adv_code tell_baseline(const struct adv_teller *teller, struct adv_advise_answer *answer)
{
    const struct adv_search_result *result = answer->result;
    if (!result->has_baseline) return ADV_OK;
    const struct adv_plan *baseline = &result->baseline.plan;
    adv_code code = adv_tell_estimate(teller, baseline, &answer->baseline);
    if (code == ADV_OK)
        code = adv_tell_advice(teller, baseline, result->baseline_reread, false, &answer->baseline);
    answer->baseline.config = &teller->request->baseline_config;
    return code;
}

static adv_code tell_sensitivities(const struct adv_teller *teller, struct adv_advise_answer *answer)
{
    if (!teller->request->wants_sensitivities || answer->result->found_count == 0) return ADV_OK;
    struct adv_sensitivities *found = adv_arena_alloc(teller->arena, sizeof *found);
    if (!found) return adv_answer_no_memory(teller->err);
    if (adv_budget_over(teller->request->budget)) return adv_budget_refuse(teller->err);
    answer->sensitivities = found;
    return adv_sensitivity_find(teller->request, teller->constants, &answer->result->found[0], teller->arena,
                                found, teller->err);
}

/* What MaxText refuses of keys that no plan is made of, as the pins leave them in the first plan. */
static void warn_of_refusals(const struct adv_advise_answer *answer, adv_err *warnings)
{
    const struct adv_advise_request *request = answer->request;
    if (request->pins_count == 0 || answer->result->found_count == 0) return;
    adv_err refused = adv_err_empty();
    ADV_JSON_OWN json_t *config = adv_encode_config(answer->ranked[0].config);
    adv_lint_rules(answer->catalog, request->model.maxtext_name, config, NULL, 0, &refused);
    for (int i = 0; i < refused.count; i++) {
        const struct adv_finding *finding = &refused.findings[i];
        const char *key = finding->pointer + strlen("/config/");
        char pointer[ADV_LIMIT_POINTER];
        if (!adv_request_pins(request, key)) continue;
        (void)snprintf(pointer, sizeof pointer, "/pins/%s", key);
        (void)adv_err_add_rule(warnings, finding->code, finding->rule, pointer,
                               "pin what it needs, or unpin it", "%s", finding->detail);
    }
}

static adv_code explain(struct adv_answer_job *job, const struct adv_constants *constants,
                        struct adv_advise_answer *answer)
{
    const struct adv_search_result *result = answer->result;
    const struct adv_teller teller = {job->catalog, answer->request, constants, &job->arena, job->err};
    const int count = result->found_count + result->pareto_count + result->near_count;
    answer->ranked = adv_arena_array(&job->arena, (size_t)count + 1, sizeof *answer->ranked);
    if (!answer->ranked) return adv_answer_no_memory(job->err);
    answer->pareto = answer->ranked + result->found_count;
    answer->near_misses = answer->pareto + result->pareto_count;
    adv_code code = tell_all(&teller, count, answer);
    if (code == ADV_OK) code = tell_baseline(&teller, answer);
    if (code == ADV_OK) code = tell_sensitivities(&teller, answer);
    if (code == ADV_OK) warn_of_refusals(answer, job->warnings);
    return code;
}

/* Plans are ranked that take more memory, or fit less surely, than was asked for; the probability is rounded
 * down lest it read as that. */
static void warn_of_compromise(const struct adv_advise_request *request,
                               const struct adv_search_result *found, adv_err *warnings)
{
    if (!found->compromised) return;
    const char *pointer = request->memory_frac < 1.0 ? "/search/memory_frac" : "/search/fit_probability";
    ADV_WARN(
        warnings, "memory-compromise", pointer, "more chips or a smaller batch leave more memory",
        "no legal plan fits into %.4g %% of the memory with a probability of %.4g: the ranked plans take "
        "up to %.1f %% of it, the first fits with a probability of %.2f",
        100.0 * request->memory_frac, request->fit_probability, 100.0 * found->memory_frac,
        floor(100.0 * found->found[0].estimate.fit_probability) / 100.0);
}

static adv_code advise_on_one(struct adv_answer_job *job, const json_t *root)
{
    struct adv_arena *arena = &job->arena;
    struct adv_advise_request *request = adv_arena_alloc(arena, sizeof *request);
    struct adv_search_result *found = adv_arena_alloc(arena, sizeof *found);
    if (!request || !found) return adv_answer_no_memory(job->err);
    adv_code code = adv_decode_advise_request(job->catalog, root, arena, request, job->err, job->warnings);
    if (code == ADV_OK) code = adv_budget_check(job->budget, 1, request, job->err);
    if (code != ADV_OK) return code;
    job->answer->verify_top = adv_decode_verify(root, job->err);
    request->budget = job->budget;

    const struct adv_catalog_chip *chip = adv_catalog_chip(job->catalog, request->cluster.chip.name);
    const struct adv_reread *baseline;
    code = adv_reread_baseline(job->catalog, request, arena, &baseline, job->err);
    if (code == ADV_OK) code = adv_room_search(request, baseline, &chip->constants, arena, found, job->err);
    if (code != ADV_OK) return code;
    if (request->has_baseline)
        adv_gathers_warn(job->catalog, &request->software, &request->cluster, &request->baseline,
                         "/baseline/xla_flags", job->warnings);
    adv_room_warn(request, found, job->warnings);
    adv_microbatches_warn(request, &chip->constants, found, job->warnings);
    adv_answer_warn_of_calibration(job, &chip->constants);
    warn_of_compromise(request, found, job->warnings);
    const struct adv_candidate *first = found->found_count > 0 ? &found->found[0] : NULL;
    if (request->cluster.has_overrides && first) {
        const struct adv_estimate_input input = {&request->model, &request->cluster, &chip->constants,
                                                 &first->plan, ADV_FLOPS_CAUSAL_HALF};
        adv_whatif_idle(&chip->chip, &input, &first->estimate, job->warnings);
    }
    adv_answer_tag(job, &request->model, &request->cluster, first ? &first->estimate : NULL);
    adv_answer_tag_wish(job, &request->wish);
    job->answer->evaluations = found->evaluated;

    struct adv_advise_answer answer = {
        .catalog = job->catalog, .request = request, .result = found, .warnings = job->warnings};
    code = explain(job, &chip->constants, &answer);
    if (code == ADV_OK) job->result = adv_encode_advise(&answer);
    return code;
}

/* Several machines: the answer is that of the best one, with all of them beside it. */
static adv_code advise_on_many(struct adv_answer_job *job)
{
    struct adv_platform_tour *tour = adv_arena_alloc(&job->arena, sizeof *tour);
    if (!tour) return adv_answer_no_memory(job->err);
    adv_code code = adv_platforms_search(job->catalog, job->root, job->budget, &job->arena, tour, job->err);
    if (code == ADV_OK && tour->in_part_count > 0)
        ADV_WARN(
            job->warnings, "space-too-large", "/clusters", "ask for each of them by itself, or narrow all",
            "on %d of the machines only a part of the space was searched: the request's memory has no room "
            "for more",
            tour->in_part_count);
    if (code == ADV_OK) adv_platforms_warn(tour, job->warnings);
    if (code == ADV_OK) code = advise_on_one(job, tour->best);
    if (code == ADV_OK) {
        (void)json_object_set_new(job->result, "platforms", adv_encode_platforms(&tour->answer));
        job->answer->evaluations += tour->evaluations;
    }
    adv_platform_jobs_free(&tour->jobs);
    return code;
}

adv_code adv_answer_advise(struct adv_answer_job *job)
{
    return adv_platforms_asked(job->root) ? advise_on_many(job) : advise_on_one(job, job->root);
}
