/* run.c: the passes of a search, its budget and its compromises.
 *
 * 1. The baseline is priced; what it fills of the memory may be filled, unless it is asked how surely plans
 *    are to fit (price_baseline).
 * 2. The space is enumerated, and keys that are alike in all plans are settled (adv_search_run).
 * 3. A limited budget first finds a plan that is likely to fit, with RESERVE evaluations (start_frugally).
 * 4. All families, with the optimizer state on the device, then on the host (search_devices_and_hosts):
 *    run_bounds.c, run_families.c, where a processor is idle with a helper (run_workers.c).
 * 5. Compromise: where nothing fits, the same with more of the memory, and then all (search_with_compromise).
 * 6. The front's thrifty end (run_front.c).
 * 7. With max_changes, steps from the baseline, for which half of the budget is kept back (stay_within).
 * 8. The best are ranked and estimated whole; a faster one that only may fit (run_unsure.c) and near misses
 *    with their remedies (why.h) stand beside them.
 */
#include "engine/search/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/cost/scratch.h"
#include "engine/hardware/mesh.h"
#include "engine/maxtext/names.h"
#include "engine/rank/rank.h"
#include "engine/search/space_batch.h"
#include "engine/search/why.h"
#include "engine/search/frugal.h"
#include "engine/search/space_settle.h"
#include "engine/search/within_changes.h"

/* Evaluations of a limited budget that first go into a plan that is likely to fit: about what one family
 * takes.
 */
enum { RESERVE = 64 };

static bool may_offload_optimizer(const struct adv_search_run *run)
{
    const struct adv_plan *base = &run->request->workload.base;
    return !adv_request_pins(run->request, ADV_NAME_OPTIMIZER_MEMORY_HOST_OFFLOAD) &&
           !base->optimizer_host_offload && base->family.optimizer != ADV_OPT_SGD;
}

/* With a limit on changed keys the answer is made of steps from the baseline (within_changes.h). */
static bool is_within(const struct adv_search_run *run)
{
    return run->result->has_baseline && run->request->max_changes != ADV_CHANGES_ANY;
}

/* All families with the optimizer state on the device, then on the host (all of it crosses the host link each
 * step). */
static void search_devices_and_hosts(struct adv_search_run *run)
{
    adv_run_families(run);
    if (run->pricer.spent || !run->complete || !may_offload_optimizer(run)) return;
    run->offloaded = true;
    run->space.base.optimizer_host_offload = true;
    adv_run_families(run);
    run->space.base.optimizer_host_offload = false;
}

double adv_run_limit_frac(const struct adv_search_run *run, double probability)
{
    const struct adv_constants *constants = run->pricer.constants;
    const struct adv_fit_curve curve = adv_fit_curve(constants, constants->memory_log_sd);
    return adv_fit_limit_frac(&curve, probability);
}

static bool is_wider(struct adv_rank_share a, struct adv_rank_share b)
{
    return adv_rank_share_frac(a) > adv_rank_share_frac(b);
}

enum { SHARES = 4 };
static const double compromises[] = {0.95, 0.9, 0.8, 0.65}; /* probabilities */
enum { COMPROMISES = sizeof compromises / sizeof *compromises };

/* What is tried where nothing fits into the share of memory asked for, the least compromise first: a quarter
 * more of what was to be left, then the next, less and less surely, at last the very limit. */
static struct adv_rank_share compromise(const struct adv_search_run *run, int step)
{
    const double asked = run->share.asked;
    if (step < SHARES)
        return (struct adv_rank_share){asked + (1.0 - asked) * (step + 1) / SHARES, run->share.sure};
    if (step < SHARES + COMPROMISES)
        return (struct adv_rank_share){1.0, adv_run_limit_frac(run, compromises[step - SHARES])};
    return (struct adv_rank_share){1.0, 1.0};
}

/* Whether a plan was priced that would fit then: where none was, a pass is spared. */
static bool may_fit(const struct adv_search_run *run, struct adv_rank_share share)
{
    const struct adv_near_list *small = &run->pricer.small;
    bool may = false;
    for (int i = 0; i < small->count; i++) may |= adv_rank_fits_share(&small->items[i].estimate, share);
    return may;
}

static void search_with_compromise(struct adv_search_run *run)
{
    enum { LAST = SHARES + COMPROMISES };
    search_devices_and_hosts(run);
    for (int step = 0; step <= LAST; step++) {
        if (run->kept_count > 0 || run->pricer.spent || !run->complete) return; /* or it is not known */
        const struct adv_rank_share share = compromise(run, step);
        if (!is_wider(share, run->pricer.share) || (step < LAST && !may_fit(run, share))) continue;
        run->pricer.share = share;
        /* families are counted once, by the last pass */
        run->result->illegal = run->result->out_of_memory = run->result->pruned = 0;
        search_devices_and_hosts(run);
    }
}

/* A limited budget first goes, up to RESERVE evaluations, into a plan that is likely to fit: whatever is left
 * can only improve on it. Returns true when that plan fills memory to the very limit: it is then in `tight`
 * and stands back behind any that does not. */
static bool start_frugally(struct adv_search_run *run, struct adv_candidate *tight)
{
    long budget = run->pricer.budget, reserve = run->pricer.evaluated + RESERVE;
    run->pricer.budget = budget < reserve ? budget : reserve;
    adv_run_frugally(run);
    run->pricer.spent = run->pricer.evaluated >= budget;
    run->pricer.budget = budget;
    run->complete = !run->pricer.spent;
    if (run->kept_count == 0 || !is_wider(run->pricer.share, run->share)) return false;
    *tight = run->kept[0];
    run->kept_count = 0;
    run->cutoff = (double)INFINITY;
    run->pricer.share = run->share;
    return true;
}

/* The whole space; half of the budget is kept back for the steps from a baseline. */
static void search_all(struct adv_search_run *run)
{
    struct adv_candidate tight;
    bool has_tight = false;
    long budget = run->pricer.budget;
    if (is_within(run))
        run->pricer.budget = budget - (budget - run->pricer.evaluated + 1) / 2;
    else if (run->request->max_evaluations > 0 && run->space.families_count > 0)
        has_tight = start_frugally(run, &tight);
    if (!run->pricer.spent) search_with_compromise(run);
    if (run->complete && run->request->objective != ADV_OBJECTIVE_HBM)
        adv_run_widen_front(run, may_offload_optimizer(run));
    run->pricer.budget = budget;
    if (!has_tight || (run->kept_count > 0 && !is_wider(run->pricer.share, run->share))) return;
    run->pricer.share = (struct adv_rank_share){1.0, 1.0};
    adv_run_insert(run, &tight.plan, &tight.estimate);
}

static adv_code check_objective(const struct adv_advise_request *request, adv_err *err)
{
    if (request->objective != ADV_OBJECTIVE_USD_PER_TOKEN || !isnan(request->cluster.price_usd_per_chip_hour))
        return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, "/search/objective", "give /cluster/price_usd_per_chip_hour",
                       "dollars per token need a price, and no list price of %s is known",
                       request->cluster.chip.name);
}

/* What the workload asks for holds for what is made of the baseline, too. */
static struct adv_plan of_asked_work(const struct adv_advise_request *request)
{
    const struct adv_plan_family *asked = &request->workload.base.family;
    struct adv_plan plan = request->baseline;
    plan.family.seq_len = request->workload.seq_len;
    plan.family.weight_dtype = asked->weight_dtype;
    plan.family.mu_dtype = asked->mu_dtype;
    plan.family.grad_dtype = asked->grad_dtype;
    plan.family.optimizer = asked->optimizer;
    if (!request->workload.any_quantization) plan.family.quantization = asked->quantization;
    return plan;
}

/* The baseline's own mesh and batch with tuned tiles and its best placements: what changes fewest keys. */
static bool improve_in_place(struct adv_search_run *run, struct adv_candidate *candidate)
{
    candidate->plan = of_asked_work(run->request);
    if (!run->request->tiles_pinned) adv_tile_memo_apply(run->space.tiles, &candidate->plan);
    if (adv_remat_solve(&run->open, &run->pricer, (double)INFINITY, &candidate->plan, &candidate->estimate) !=
        ADV_REMAT_SOLVED)
        return false;
    return true;
}

static adv_code stay_within(struct adv_search_run *run, adv_err *err)
{
    const struct adv_advise_request *request = run->request;
    if (!is_within(run)) return ADV_OK;
    const struct adv_plan baseline = of_asked_work(request);
    run->pricer.spent = false; /* its share of the budget is left */
    run->pricer.ledger = run->ledger;
    struct adv_candidate *donors = adv_arena_array(run->arena, ADV_WITHIN_DONORS, sizeof *donors);
    if (!donors) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    bool affordable = run->pricer.budget - run->pricer.evaluated > RESERVE;
    int count = affordable && improve_in_place(run, &donors[0]) ? 1 : 0;
    for (int i = 0; i < run->kept_count && count < ADV_WITHIN_DONORS; i++) donors[count++] = run->kept[i];
    bool complete = true;
    run->kept_count = adv_search_within(&run->pricer, &baseline, donors, count, run->arena, run->kept,
                                        ADV_RANK_KEPT, &complete);
    if (run->kept_count == 0 && !adv_price_compiles(&run->pricer, &baseline)) {
        run->pricer.ledger = NULL; /* nothing near it compiles either: the answer warns */
        run->kept_count = adv_search_within(&run->pricer, &baseline, donors, count, run->arena, run->kept,
                                            ADV_RANK_KEPT, &complete);
    }
    run->complete = complete; /* of the plans within the limit, however far the search for donors got */
    run->space.left_out = 0;
    return ADV_OK;
}

/* Whether a plan is one of those that are asked for: the workload's, and with all that is pinned. */
static bool is_asked_for(const struct adv_advise_request *request, const struct adv_plan *plan)
{
    const struct adv_plan *base = &request->workload.base;
    struct adv_batch_split split[ADV_BATCH_SPLITS];
    if (plan->family.seq_len != request->workload.seq_len || adv_batch_splits(request, split, NULL) == 0)
        return false;
    struct adv_plan asked = *base; /* rounded as the plan is */
    asked.family.per_device_batch_size = split[0].per_device_batch_size;
    asked.family.gradient_accumulation_steps = split[0].gradient_accumulation_steps;
    if (adv_plan_global_batch(plan, &request->cluster) != adv_plan_global_batch(&asked, &request->cluster) ||
        plan->family.weight_dtype != base->family.weight_dtype ||
        plan->family.mu_dtype != base->family.mu_dtype ||
        plan->family.grad_dtype != base->family.grad_dtype ||
        plan->family.optimizer != base->family.optimizer)
        return false;
    if (!request->workload.any_quantization && plan->family.quantization != base->family.quantization)
        return false;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        if (plan->family.ici[i] > 1 && !request->axis_allowed[i] && !request->axis_pinned[i]) return false;
        const bool opens =
            i == ADV_AXIS_DATA || ((i == ADV_AXIS_FSDP || i == ADV_AXIS_STAGE) && request->axis_allowed[i]);
        if (plan->family.dcn[i] > 1 && !opens &&
            !adv_request_pins(request, adv_key_of_axis(true, (enum adv_axis)i)))
            return false;
    }
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->plan_bytes > 0 && adv_request_pins(request, key->name) &&
            !adv_key_says_the_same(key, plan, base))
            return false;
    }
    return !adv_plan_broken_rule(plan, &request->model, &request->cluster);
}

/* A baseline is a plan like any other, with flags and keys that the search may not try: it is ranked too, as
 * it is and with tiles and placements of the search, so that no plan is advised that it beats. */
static void offer_baseline(struct adv_search_run *run)
{
    const struct adv_search_result *result = run->result;
    struct adv_candidate improved;
    if (!result->has_baseline || is_within(run) || !is_asked_for(run->request, &run->request->baseline))
        return;
    run->pricer.ledger = run->ledger;
    if (adv_rank_fits_share(&result->baseline.estimate, run->pricer.share) &&
        adv_price_compiles(&run->pricer, &run->request->baseline))
        adv_run_insert(run, &run->request->baseline, &result->baseline.estimate);
    if (run->pricer.budget - run->pricer.evaluated > RESERVE && improve_in_place(run, &improved) &&
        is_asked_for(run->request, &improved.plan) && adv_price_compiles(&run->pricer, &improved.plan)) {
        adv_estimate_again_interval(run->pricer.scratch, &improved.estimate);
        adv_run_insert(run, &improved.plan, &improved.estimate);
    }
}

/* Where the workload asks for more changes of the baseline than are allowed. */
static bool say_changes(const struct adv_search_run *run, char *text, size_t text_bytes)
{
    if (!is_within(run)) return false;
    const struct adv_plan start = of_asked_work(run->request);
    const int least = adv_within_least_changes(&run->pricer, &start), most = run->request->max_changes;
    if (least <= most) return false;
    (void)snprintf(
        text, text_bytes,
        "the length, the formats and the optimizer of the workload change %d keys of the baseline, "
        "search.max_changes allows %d: give the baseline those of the workload, or allow more",
        least, most);
    return true;
}

static void say_budget(const struct adv_search_run *run, char *text, size_t text_bytes)
{
    char limit[64] = "";
    if (is_within(run))
        (void)snprintf(limit, sizeof limit, " within %d changed keys", run->request->max_changes);
    (void)snprintf(
        text, text_bytes,
        "%ld evaluation%s not enough to find a plan that fits%s among %d legal combinations; allow "
        "more in search.max_evaluations",
        run->pricer.evaluated, run->pricer.evaluated == 1 ? " was" : "s were", limit,
        run->space.families_count);
}

/* Of legal combinations that are all too large to be priced. */
static void say_uncountable(const struct adv_search_run *run, char *text, size_t text_bytes)
{
    struct adv_plan plan;
    adv_space_plan(&run->space, &run->space.families[0], &plan);
    const struct adv_layer *layer = adv_plan_uncountable(&plan, &run->request->model);
    if (!layer) return;
    (void)snprintf(
        text, text_bytes,
        "none of the %d legal combinations can be priced: %.6g tokens or more meet on a device and "
        "go to %d experts each, and at most %.0f rows can be counted; ask for fewer sequences a "
        "device, or shorter ones",
        run->space.families_count, adv_plan_tokens(&plan), layer->experts_per_token, ADV_PLAN_ROWS_MAX);
}

/* A plan that is in the answer, with all of its estimate. */
static adv_code complete_estimate(const struct adv_search_run *run, struct adv_candidate *candidate,
                                  adv_err *err)
{
    struct adv_estimate_input input = {&run->request->model, &run->request->cluster, run->pricer.constants,
                                       &candidate->plan, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_plan(&input, &candidate->estimate, NULL, err);
}

/* The best plans, and what comes after the first. */
static adv_code write_ranked(struct adv_search_run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    const int most = adv_run_ranked_count(run->request);
    int *order = adv_arena_array(run->arena, (size_t)most, sizeof *order);
    result->found = adv_arena_array(run->arena, (size_t)most, sizeof *result->found);
    if (!order || !result->found)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    const int count = adv_rank_select(run->request->objective, run->kept, run->kept_count, most,
                                      is_within(run) && run->request->objective != ADV_OBJECTIVE_HBM, order);
    for (int i = 0; i < count; i++) {
        if (adv_budget_over(run->request->budget)) return adv_budget_refuse(err);
        result->found[i] = run->kept[order[i]];
        adv_code code = complete_estimate(run, &result->found[i], err);
        if (code != ADV_OK) return code;
    }
    result->found_count = count < run->request->top_k ? count : run->request->top_k;
    result->next = count > 1 ? &result->found[1] : NULL;
    return ADV_OK;
}

static void say_why_empty(const struct adv_search_run *run, struct adv_search_result *result)
{
    char *text = result->empty_why;
    if (run->space.families_count == 0) {
        adv_space_explain_empty(&run->space, run->arena, text, sizeof result->empty_why);
        return;
    }
    if (result->found_count > 0 || say_changes(run, text, sizeof result->empty_why)) return;
    if (!run->complete)
        say_budget(run, text, sizeof result->empty_why);
    else if (run->pricer.small.count == 0)
        say_uncountable(run, text, sizeof result->empty_why);
}

static adv_code write_result(struct adv_search_run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    adv_code code = write_ranked(run, err);
    if (code != ADV_OK) return code;
    adv_front_thin(&run->pricer.front, ADV_RANK_KEY_FRAC);
    for (int i = 0; i < run->pricer.front.count; i++)
        adv_estimate_verdict(&run->pricer.front.items[i].estimate);
    result->pareto = run->pricer.front.items;
    result->pareto_count = run->pricer.front.count;
    result->evaluated = run->pricer.evaluated;
    result->left_out = run->space.left_out * (run->offloaded ? 2 : 1);
    result->considered = run->space.considered;
    if (run->offloaded) result->considered += run->space.families_count + run->space.left_out;
    result->illegal += run->space.illegal;
    result->memory_frac = adv_rank_share_frac(run->pricer.share);
    result->compromised = result->found_count > 0 && is_wider(run->pricer.share, run->share);
    result->exhaustive = run->complete && result->left_out == 0;
    say_why_empty(run, result);
    return ADV_OK;
}

/* A baseline that fills more of its memory than the search would dare shows how much can be used: what is no
 * fuller is as safe. Beyond the limit it shows nothing, nor at it, where parts of it wait for room. */
static double baseline_sure_frac(const struct adv_estimate *baseline, double sure)
{
    double used = pow(baseline->hbm_bytes_per_device / baseline->hbm_limit_bytes_per_device,
                      1.0 / baseline->memory_spread);
    if (!isnan(baseline->host_limit_bytes_per_host))
        used = adv_max(used, baseline->host_bytes_per_host / baseline->host_limit_bytes_per_host);
    double rounded_up = used * (1 + 1e-12); /* the baseline itself is among the plans */
    return used < 1 - 1e-9 ? adv_max(sure, rounded_up) : sure;
}

static adv_code price_baseline(struct adv_search_run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    const struct adv_advise_request *request = run->request;
    if (!request->has_baseline) return ADV_OK;
    run->ledger = adv_arena_alloc(run->arena, sizeof *run->ledger);
    if (!run->ledger) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    adv_err split = adv_err_empty();
    adv_mesh_report_split(&request->cluster, &request->baseline, ADV_E_ILLEGAL, &split);
    adv_err_merge(err, &split, "/baseline"); /* it runs nowhere, so it is nothing to compare with */
    if (split.count > 0) return ADV_E_ILLEGAL;
    result->baseline.plan = request->baseline;
    struct adv_estimate_input input = {&request->model, &request->cluster, run->pricer.constants,
                                       &request->baseline, ADV_FLOPS_CAUSAL_HALF};
    run->pricer.evaluated++;
    run->pricer.budget++; /* is for the plans that are searched */
    adv_code code = adv_estimate_plan(&input, &result->baseline.estimate, NULL, err);
    result->has_baseline = code == ADV_OK;
    if (result->has_baseline && run->pricer.cloud)
        adv_cloud_offer(run->pricer.cloud, &result->baseline.estimate);
    if (result->has_baseline && !request->fit_probability_given)
        run->share.sure = baseline_sure_frac(&result->baseline.estimate, run->share.sure);
    return code;
}

adv_code adv_search_run(const struct adv_advise_request *request, const struct adv_reread *baseline,
                        const struct adv_constants *constants, struct adv_arena *arena,
                        struct adv_search_result *result, adv_err *err)
{
    memset(result, 0, sizeof *result);
    struct adv_search_run *run = adv_arena_alloc(arena, sizeof *run);
    if (!run) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    run->request = request;
    run->arena = arena;
    run->result = result;
    run->cutoff = (double)INFINITY;
    run->complete = true;
    result->baseline_reread = baseline;
    run->pricer.request = request;
    run->pricer.baseline = baseline;
    run->pricer.constants = constants;
    run->share =
        (struct adv_rank_share){request->memory_frac, adv_run_limit_frac(run, request->fit_probability)};
    run->pricer.budget = request->max_evaluations > 0 ? request->max_evaluations : ADV_SEARCH_BUDGET;
    run->pricer.front.capacity = ADV_SEARCH_PARETO;
    run->pricer.front.items = adv_arena_array(arena, ADV_SEARCH_PARETO, sizeof(struct adv_candidate));
    run->pricer.scratch = adv_arena_bare(arena, sizeof *run->pricer.scratch);
    run->kept = adv_arena_bare(arena, (ADV_RANK_KEPT + 1) * sizeof *run->kept);
    if (!run->kept || !run->pricer.front.items || !run->pricer.scratch)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    run->pricer.scratch->valid = false;
    if (request->include & ADV_INCLUDE_TRADE_OFF) {
        result->cloud = run->pricer.cloud = adv_arena_alloc(arena, sizeof *run->pricer.cloud);
        if (!result->cloud)
            return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    }
    adv_code code = check_objective(request, err);
    if (code == ADV_OK) code = price_baseline(run, err);
    if (code == ADV_OK) code = adv_space_build(request, constants, arena, &run->space, err);
    if (code != ADV_OK) return code;
    run->pricer.share = run->share;
    adv_remat_space_build(request, constants, &run->open);
    adv_settle_base(&run->space, &run->open, &run->pricer);
    result->base = run->space.base;
    adv_run_make_workers(run);
    search_all(run);
    adv_run_free_workers(run);
    if (adv_budget_over(request->budget)) return adv_budget_refuse(err);
    if (run->no_memory) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "there is no memory for the search");
    offer_baseline(run);
    code = stay_within(run, err);
    if (code == ADV_OK && !is_within(run)) code = adv_run_add_surer(run, err);
    if (code == ADV_OK) code = write_result(run, err);
    if (code == ADV_OK && !is_within(run)) code = adv_run_find_unsure(run, err);
    if (code == ADV_OK) code = adv_near_misses_find(request, constants, &run->pricer, arena, result, err);
    return code;
}
