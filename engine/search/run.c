#include "engine/search/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/cost/scratch.h"
#include "engine/maxtext/names.h"
#include "engine/rank/rank.h"
#include "engine/search/batch.h"
#include "engine/search/bounds.h"
#include "engine/search/choices.h"
#include "engine/search/empty.h"
#include "engine/search/frugal.h"
#include "engine/search/near_miss.h"
#include "engine/search/pipelines.h"
#include "engine/search/price.h"
#include "engine/search/remat_space.h"
#include "engine/search/settle.h"
#include "engine/search/space.h"
#include "engine/search/within.h"

/* Evaluations of a limited budget that first go into a plan that is likely to fit: about what one family
 * takes.
 */
enum { RESERVE = 64 };

/* One search from start to end. */
struct run {
    const struct adv_advise_request *request;
    struct adv_arena *arena;
    struct adv_search_result *result;
    struct adv_space space;
    struct adv_remat_space open;
    struct adv_pricer pricer;
    struct adv_candidate *kept; /* best plans of solved families, by cautious metric; ADV_RANK_KEPT entries */
    int kept_count;
    double cutoff; /* a family bounded above it cannot enter the answer */
    double *least; /* of each family: what none of its plans is below by the cautious metric */
    struct adv_bound *bounds, *scratch; /* room for one of each family */
    bool offloaded;     /* families were looked at once more with the optimizer state on the host */
    double memory_frac; /* of the limits, that plans may use before any compromise */
    bool complete;
};

/* By the objective; of plans that take the same memory the faster one. */
static bool comes_before(enum adv_objective objective, const struct adv_estimate *a,
                         const struct adv_estimate *b)
{
    double left = adv_rank_cautious(objective, a), right = adv_rank_cautious(objective, b);
    if (left != right) return left < right;
    return adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, a) < adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, b);
}

/* Takes a plan of the same family out of the answer when it is not as good; false when it is as good. */
static bool replaces(struct run *run, const struct adv_plan *plan, const struct adv_estimate *estimate)
{
    for (int i = 0; i < run->kept_count; i++) {
        if (memcmp(&run->kept[i].plan, plan, ADV_PLAN_FAMILY_BYTES) != 0) continue;
        if (!comes_before(run->request->objective, estimate, &run->kept[i].estimate)) return false;
        run->kept_count--;
        memmove(&run->kept[i], &run->kept[i + 1], (size_t)(run->kept_count - i) * sizeof *run->kept);
        return true;
    }
    return true;
}

/* The answer's last plan, with room for its ties (rank.h proves that no more is needed); of a family the best
 * only. The interval is set. */
static void insert(struct run *run, const struct adv_plan *plan, const struct adv_estimate *estimate)
{
    enum adv_objective objective = run->request->objective;
    if (!replaces(run, plan, estimate)) return;
    int at = run->kept_count;
    while (at > 0 && comes_before(objective, estimate, &run->kept[at - 1].estimate)) at--;
    if (at == ADV_RANK_KEPT) return;
    int moved = run->kept_count < ADV_RANK_KEPT ? run->kept_count++ - at : ADV_RANK_KEPT - 1 - at;
    memmove(&run->kept[at + 1], &run->kept[at], (size_t)moved * sizeof *run->kept);
    run->kept[at] = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
    run->cutoff =
        adv_rank_cutoff(objective, run->kept, run->kept_count, run->request->top_k) * (1 + ADV_RANK_TIE_FRAC);
}

/* The plan is of the family that was priced last. */
static void keep(struct run *run, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    adv_estimate_again_interval(run->pricer.scratch, estimate);
    insert(run, plan, estimate);
}

/* Of the family whose relaxation was priced last. */
static struct adv_bound bound_by_price(const struct adv_pricer *pricer, struct adv_estimate *estimate,
                                       int family)
{
    adv_estimate_again_interval(pricer->scratch, estimate);
    double metric = adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, estimate);
    double per_s = metric / estimate->step_time_s;
    return (struct adv_bound){.metric = metric,
                              .doubt = estimate->step_time_high_s / estimate->step_time_s,
                              .bubble = pricer->scratch->bubble_s * per_s,
                              .hand_overs = pricer->scratch->hand_overs_s * per_s,
                              .family = family};
}

/* Bounds every family by its relaxation (remat_space.h, P1), or by that of one that is no slower, into
 * `bounds`; those whose weights alone are too big leave at once, and so do those that an earlier pass bounded
 * above the cutoff: optimizer state on the host only adds its way there and back, and doubt. `of_family` has
 * room for all. Returns how many are left. */
static int bound_families(struct run *run, const struct adv_model_params *params, struct adv_bound *bounds,
                          struct adv_bound *of_family)
{
    const struct adv_space *space = &run->space;
    double limit = run->request->cluster.chip.hbm_usable_bytes_per_device;
    double least_bytes = (double)INFINITY;
    const struct adv_family *smallest = NULL;
    struct adv_plan plan;
    struct adv_estimate estimate;
    int left = 0;
    /* a budget that ends among the bounds would leave nothing solved: families come simplest first */
    long most = run->pricer.evaluated + (run->pricer.budget - run->pricer.evaluated + 1) / 2;
    for (int i = 0; i < space->families_count; i++) {
        if (run->pricer.evaluated >= most) {
            run->complete = false;
            run->result->pruned += space->families_count - i;
            break;
        }
        int by = space->families[i].bounded_by;
        of_family[i].doubt = 0; /* until it is bounded */
        if (run->request->objective != ADV_OBJECTIVE_HBM && run->least[i] > run->cutoff) {
            run->result->pruned++;
            continue;
        }
        if (by >= 0 && of_family[by].doubt > 0) {
            of_family[i] = adv_bound_derived(space, &of_family[by], i);
            run->least[i] = adv_max(run->least[i], of_family[i].metric);
            bounds[left++] = of_family[i];
            continue;
        }
        adv_space_plan(space, &space->families[i], &plan);
        double bytes = adv_bound_hbm_bytes_per_device(&plan, params);
        if (bytes > limit) {
            run->result->out_of_memory++;
            if (bytes < least_bytes) smallest = &space->families[i];
            least_bytes = adv_min(bytes, least_bytes);
            continue;
        }
        adv_remat_relax(&run->open, &plan);
        if (!adv_price(&run->pricer, &plan, &estimate)) {
            if (run->pricer.spent)
                run->complete = false;
            else
                run->result->illegal++;
            continue;
        }
        of_family[i] = bound_by_price(&run->pricer, &estimate, i);
        run->least[i] = adv_max(run->least[i], of_family[i].metric);
        bounds[left++] = of_family[i];
    }
    if (left == 0 && smallest) { /* nothing can fit: say by how much the nearest misses */
        adv_space_plan(space, smallest, &plan);
        (void)adv_remat_smallest(&run->open, &run->pricer, &plan, &estimate);
    }
    return left;
}

/* Least HBM is the goal: each family's smallest plan. */
static void solve_smallest(struct run *run, struct adv_plan *plan)
{
    struct adv_estimate estimate;
    if (!adv_remat_smallest(&run->open, &run->pricer, plan, &estimate)) return;
    if (!adv_rank_fits(&estimate, run->pricer.memory_frac)) {
        run->result->out_of_memory++;
        return;
    }
    adv_choices_finish(plan);
    keep(run, plan, &estimate);
}

static void solve_families(struct run *run, const struct adv_bound *bounds, int count)
{
    bool smallest = run->request->objective == ADV_OBJECTIVE_HBM;
    for (int i = 0; i < count; i++) {
        if (!smallest && bounds[i].metric > run->cutoff) {
            run->result->pruned++;
            continue;
        }
        struct adv_plan plan;
        struct adv_estimate estimate;
        adv_space_plan(&run->space, &run->space.families[bounds[i].family], &plan);
        if (smallest) {
            solve_smallest(run, &plan);
        } else {
            double cutoff = run->cutoff / bounds[i].doubt;
            switch (adv_remat_solve(&run->open, &run->pricer, cutoff, &plan, &estimate)) {
            case ADV_REMAT_SOLVED:
                adv_choices_finish(&plan);
                keep(run, &plan, &estimate);
                break;
            case ADV_REMAT_SLOWER:
                run->result->pruned++;
                break;
            case ADV_REMAT_TOO_BIG:
                run->result->out_of_memory++;
                break;
            }
        }
        if (run->pricer.spent) {
            run->complete = false;
            run->result->pruned += count - 1 - i;
            return;
        }
    }
}

/* What all passes over the families write to. False: no memory. */
static bool make_room(struct run *run)
{
    size_t room = (size_t)(run->space.families_count > 0 ? run->space.families_count : 1);
    run->bounds = adv_arena_array(run->arena, room, sizeof *run->bounds);
    run->scratch = adv_arena_array(run->arena, room, sizeof *run->scratch);
    run->least = adv_arena_array(run->arena, room, sizeof *run->least);
    if (!run->bounds || !run->scratch || !run->least) return false;
    for (size_t i = 0; i < room; i++) run->least[i] = -(double)INFINITY;
    return true;
}

static void search_space(struct run *run)
{
    struct adv_model_params params = adv_model_params(&run->request->model);
    bool first = !run->least;
    if (first && !make_room(run)) {
        run->complete = false;
        return;
    }
    int count = bound_families(run, &params, run->bounds, run->scratch);
    if (count == 0) return;
    struct adv_bound *bounds = adv_bound_sort(run->bounds, run->scratch, count);
    struct adv_plan plan;
    adv_space_plan(&run->space, &run->space.families[bounds[0].family], &plan);
    if (first && run->pricer.budget >= ADV_SETTLE_LEAST_BUDGET)
        adv_remat_space_order(&run->open, &run->pricer, &plan);
    solve_families(run, bounds, count);
}

static bool may_offload_optimizer(const struct run *run)
{
    const struct adv_plan *base = &run->request->workload.base;
    return !adv_request_pins(run->request, ADV_NAME_OPTIMIZER_MEMORY_HOST_OFFLOAD) &&
           !base->optimizer_host_offload && base->optimizer != ADV_OPT_SGD;
}

/* All families with the optimizer state on the device, then on the host (all of it crosses the host link each
 * step). */
static void search_devices_and_hosts(struct run *run)
{
    search_space(run);
    if (run->pricer.spent || !run->complete || !may_offload_optimizer(run)) return;
    run->offloaded = true;
    run->space.base.optimizer_host_offload = true;
    search_space(run);
    run->space.base.optimizer_host_offload = false;
}

/* Memory filled to the very limit is a compromise: looked at only when nothing fits without. */
static void search_with_compromise(struct run *run)
{
    search_devices_and_hosts(run);
    if (run->kept_count > 0 || run->pricer.spent || !run->complete) return; /* or it is not known */
    run->pricer.memory_frac = 1;
    /* families are counted once, by the last pass */
    run->result->illegal = run->result->out_of_memory = run->result->pruned = 0;
    search_devices_and_hosts(run);
}

/* The first of the most frugal families' plans that fits; or, with memory filled to the very limit, the first
 * that fits then. Returns its index, -1 when there is none. */
static int first_fitting(struct run *run, const struct adv_frugal *frugal, int count, struct adv_plan *plan,
                         struct adv_estimate *estimate)
{
    int found = -1;
    for (int i = 0; i < count; i++) {
        struct adv_plan trial;
        struct adv_estimate priced;
        adv_frugal_plan(&run->space, &run->open, &frugal[i], &trial);
        if (!adv_price(&run->pricer, &trial, &priced)) continue;
        bool fits = adv_rank_fits(&priced, run->pricer.memory_frac);
        if (!fits && (found >= 0 || !adv_rank_fits(&priced, 1))) continue;
        adv_estimate_again_interval(run->pricer.scratch, &priced);
        found = i;
        *plan = trial;
        *estimate = priced;
        if (fits) return found;
    }
    if (found >= 0) run->pricer.memory_frac = 1;
    return found;
}

/* Shares of memory up to which the rough count of frugal.h is trusted: that one surely fits, and that there
 * is a simpler or faster one. */
static const double sure_frac = 0.7, bold_frac = 1.15;

/* Families that may not fit, but are simpler or take larger microsteps: the fastest that fits replaces the
 * one found. */
static void try_bolder(struct run *run, struct adv_frugal *found, struct adv_plan *plan,
                       struct adv_estimate *estimate)
{
    struct adv_frugal bolder[ADV_FRUGAL_PLANS];
    int count = adv_frugal_families(&run->space, bold_frac, bolder);
    for (int i = 0; i < count; i++) {
        struct adv_plan trial;
        struct adv_estimate priced;
        adv_frugal_plan(&run->space, &run->open, &bolder[i], &trial);
        if (!adv_price(&run->pricer, &trial, &priced)) return;
        adv_estimate_again_interval(run->pricer.scratch, &priced);
        if (!adv_rank_fits(&priced, run->pricer.memory_frac) ||
            !comes_before(ADV_OBJECTIVE_STEP_TIME, &priced, estimate))
            continue;
        *found = bolder[i];
        *plan = trial;
        *estimate = priced;
    }
}

/* A plan that is likely to fit, for a budget that found none, improved with what is left. */
static void search_frugally(struct run *run)
{
    struct adv_frugal frugal[ADV_FRUGAL_PLANS];
    struct adv_plan plan, better;
    struct adv_estimate estimate, priced;
    bool for_speed = run->request->objective != ADV_OBJECTIVE_HBM;
    run->space.base.optimizer_host_offload = run->request->workload.base.optimizer_host_offload;
    run->pricer.memory_frac = run->memory_frac;
    int count = adv_frugal_families(&run->space, sure_frac, frugal);
    int found = first_fitting(run, frugal, count, &plan, &estimate);
    if (found < 0) return;
    if (for_speed) try_bolder(run, &frugal[found], &plan, &estimate);
    adv_remat_name_policy(&run->open, &plan);
    double cutoff = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate);
    adv_space_plan(&run->space, frugal[found].family, &better);
    better.optimizer_host_offload = plan.optimizer_host_offload;
    if (for_speed && run->pricer.evaluated < run->pricer.budget &&
        adv_remat_solve(&run->open, &run->pricer, cutoff, &better, &priced) == ADV_REMAT_SOLVED) {
        adv_estimate_again_interval(run->pricer.scratch, &priced);
        plan = better;
        estimate = priced;
    }
    adv_choices_finish(&plan);
    adv_front_offer(&run->pricer.front, &plan, &estimate);
    insert(run, &plan, &estimate);
}

/* With a limit on changed keys the answer is made of steps from the baseline (within.h). */
static bool is_within(const struct run *run)
{
    return run->result->has_baseline && run->request->max_changes != ADV_CHANGES_ANY;
}

/* The front's thrifty end, where a search for speed has no business: the smallest plans of the families in
 * the answer, and the most frugal families of all, with the optimizer state on the device and on the host.
 * They are shown to the front as they are priced. */
static void widen_front(struct run *run)
{
    struct adv_frugal frugal[ADV_FRUGAL_PLANS];
    struct adv_plan plan;
    struct adv_estimate estimate;
    for (int i = 0; i < run->kept_count && !run->pricer.spent; i++) {
        plan = run->kept[i].plan;
        (void)adv_remat_smallest(&run->open, &run->pricer, &plan, &estimate);
    }
    int count = adv_frugal_families(&run->space, 0, frugal);
    for (int i = 0; i < count; i++)
        for (int offload = 0; offload <= (may_offload_optimizer(run) ? 1 : 0) && !run->pricer.spent;
             offload++) {
            adv_space_plan(&run->space, frugal[i].family, &plan);
            if (offload) plan.optimizer_host_offload = true;
            (void)adv_remat_smallest(&run->open, &run->pricer, &plan, &estimate);
        }
}

/* A limited budget first goes, up to RESERVE evaluations, into a plan that is likely to fit: whatever is left
 * can only improve on it. Returns true when that plan fills memory to the very limit: it is then in `tight`
 * and stands back behind any that does not. */
static bool start_frugally(struct run *run, struct adv_candidate *tight)
{
    long budget = run->pricer.budget, reserve = run->pricer.evaluated + RESERVE;
    run->pricer.budget = budget < reserve ? budget : reserve;
    search_frugally(run);
    run->pricer.spent = run->pricer.evaluated >= budget;
    run->pricer.budget = budget;
    run->complete = !run->pricer.spent;
    if (run->kept_count == 0 || run->pricer.memory_frac <= run->memory_frac) return false;
    *tight = run->kept[0];
    run->kept_count = 0;
    run->cutoff = (double)INFINITY;
    run->pricer.memory_frac = run->memory_frac;
    return true;
}

/* The whole space; half of the budget is kept back for the steps from a baseline. */
static void search_all(struct run *run)
{
    struct adv_candidate tight;
    bool has_tight = false;
    long budget = run->pricer.budget;
    if (is_within(run))
        run->pricer.budget = budget - (budget - run->pricer.evaluated + 1) / 2;
    else if (run->request->max_evaluations > 0 && run->space.families_count > 0)
        has_tight = start_frugally(run, &tight);
    if (!run->pricer.spent) search_with_compromise(run);
    if (run->complete && run->request->objective != ADV_OBJECTIVE_HBM) widen_front(run);
    run->pricer.budget = budget;
    if (!has_tight || (run->kept_count > 0 && run->pricer.memory_frac <= run->memory_frac)) return;
    run->pricer.memory_frac = 1;
    insert(run, &tight.plan, &tight.estimate);
}

static adv_code check_objective(const struct adv_advise_request *request, adv_err *err)
{
    if (request->objective != ADV_OBJECTIVE_USD_PER_TOKEN || !isnan(request->cluster.price_usd_per_chip_hour))
        return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, "/search/objective", "give /cluster/price_usd_per_chip_hour",
                       "dollars per token need a price, and no list price of %s is known",
                       request->cluster.chip.name);
}

/* The baseline's own mesh and batch with tuned tiles and its best placements: what changes fewest keys. */
static bool improve_in_place(struct run *run, struct adv_candidate *candidate)
{
    candidate->plan = run->request->baseline;
    if (!run->request->tiles_pinned) adv_tile_memo_apply(run->space.tiles, &candidate->plan);
    if (adv_remat_solve(&run->open, &run->pricer, (double)INFINITY, &candidate->plan, &candidate->estimate) !=
        ADV_REMAT_SOLVED)
        return false;
    return true;
}

static adv_code stay_within(struct run *run, adv_err *err)
{
    const struct adv_advise_request *request = run->request;
    if (!is_within(run)) return ADV_OK;
    run->pricer.spent = false; /* its share of the budget is left */
    struct adv_candidate *donors = adv_arena_array(run->arena, ADV_WITHIN_DONORS, sizeof *donors);
    if (!donors) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    bool affordable = run->pricer.budget - run->pricer.evaluated > RESERVE;
    int count = affordable && improve_in_place(run, &donors[0]) ? 1 : 0;
    for (int i = 0; i < run->kept_count && count < ADV_WITHIN_DONORS; i++) donors[count++] = run->kept[i];
    bool complete = true;
    run->kept_count = adv_search_within(&run->pricer, &request->baseline, donors, count, run->arena,
                                        run->kept, ADV_RANK_KEPT, &complete);
    run->complete =
        complete; /* of the plans within the limit; how far the search for donors got is no matter */
    run->space.complete = true;
    return ADV_OK;
}

static void say_budget(const struct run *run, char *text, size_t text_bytes)
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

/* A plan that is in the answer, with all of its estimate. */
static adv_code complete_estimate(const struct run *run, struct adv_candidate *candidate, adv_err *err)
{
    struct adv_estimate_input input = {&run->request->model, &run->request->cluster, run->pricer.constants,
                                       &candidate->plan, ADV_FLOPS_CAUSAL_HALF};
    return adv_estimate_plan(&input, &candidate->estimate, NULL, err);
}

static adv_code write_result(struct run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    int top_k = run->request->top_k;
    int *order = adv_arena_array(run->arena, (size_t)top_k, sizeof *order);
    result->found = adv_arena_array(run->arena, (size_t)top_k, sizeof *result->found);
    if (!order || !result->found)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    result->found_count = adv_rank_select(run->request->objective, run->kept, run->kept_count, top_k, order);
    for (int i = 0; i < result->found_count; i++) {
        if (adv_budget_over(run->request->budget)) return adv_budget_refuse(err);
        result->found[i] = run->kept[order[i]];
        adv_code code = complete_estimate(run, &result->found[i], err);
        if (code != ADV_OK) return code;
    }
    adv_front_thin(&run->pricer.front, ADV_RANK_KEY_FRAC);
    result->pareto = run->pricer.front.items;
    result->pareto_count = run->pricer.front.count;
    result->evaluated = run->pricer.evaluated;
    result->considered = run->space.considered + (run->offloaded ? run->space.families_count : 0);
    result->illegal += run->space.illegal;
    result->memory_frac = run->pricer.memory_frac;
    result->exhaustive = run->complete && run->space.complete;
    if (run->space.families_count == 0)
        adv_space_explain_empty(&run->space, run->arena, result->empty_why, sizeof result->empty_why);
    else if (result->found_count == 0 && !run->complete)
        say_budget(run, result->empty_why, sizeof result->empty_why);
    return ADV_OK;
}

/* A baseline that fills more of its memory than the search would dare shows how much can be used: what is no
 * fuller is as safe. Beyond the limit it shows nothing. */
static double baseline_memory_frac(const struct adv_estimate *baseline, double memory_frac)
{
    double used = baseline->hbm_bytes_per_device / baseline->hbm_limit_bytes_per_device;
    if (!isnan(baseline->host_limit_bytes_per_host))
        used = adv_max(used, baseline->host_bytes_per_host / baseline->host_limit_bytes_per_host);
    double rounded_up = used * (1 + 1e-12); /* the baseline itself is among the plans */
    return used <= 1 ? adv_max(memory_frac, rounded_up) : memory_frac;
}

static adv_code price_baseline(struct run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    const struct adv_advise_request *request = run->request;
    if (!request->has_baseline) return ADV_OK;
    result->baseline.plan = request->baseline;
    struct adv_estimate_input input = {&request->model, &request->cluster, run->pricer.constants,
                                       &request->baseline, ADV_FLOPS_CAUSAL_HALF};
    run->pricer.evaluated++;
    run->pricer.budget++; /* is for the plans that are searched */
    adv_code code = adv_estimate_plan(&input, &result->baseline.estimate, NULL, err);
    result->has_baseline = code == ADV_OK;
    if (result->has_baseline)
        run->memory_frac = baseline_memory_frac(&result->baseline.estimate, run->memory_frac);
    return code;
}

adv_code adv_search_run(const struct adv_advise_request *request, const struct adv_reread *baseline,
                        const struct adv_constants *constants, struct adv_arena *arena,
                        struct adv_search_result *result, adv_err *err)
{
    memset(result, 0, sizeof *result);
    struct run *run = adv_arena_alloc(arena, sizeof *run);
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
    run->memory_frac =
        request->memory_frac * adv_fit_limit_frac(request->fit_probability, constants->memory_log_sd);
    run->pricer.budget = request->max_evaluations > 0 ? request->max_evaluations : ADV_SEARCH_BUDGET;
    run->pricer.front.capacity = ADV_SEARCH_PARETO;
    run->pricer.front.items = adv_arena_array(arena, ADV_SEARCH_PARETO, sizeof(struct adv_candidate));
    run->pricer.scratch = adv_arena_alloc(arena, sizeof *run->pricer.scratch);
    run->kept = adv_arena_array(arena, ADV_RANK_KEPT + 1, sizeof *run->kept);
    if (!run->kept || !run->pricer.front.items || !run->pricer.scratch)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    if (request->include & ADV_INCLUDE_TRADE_OFF) {
        result->cloud = run->pricer.cloud = adv_arena_alloc(arena, sizeof *run->pricer.cloud);
        if (!result->cloud)
            return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    }
    adv_code code = check_objective(request, err);
    if (code == ADV_OK) code = price_baseline(run, err);
    if (code == ADV_OK) code = adv_space_build(request, constants, arena, &run->space, err);
    if (code != ADV_OK) return code;
    run->pricer.memory_frac = run->memory_frac;
    adv_remat_space_build(request, &run->open);
    adv_settle_base(&run->space, &run->open, &run->pricer);
    result->base = run->space.base;
    search_all(run);
    if (adv_budget_over(request->budget)) return adv_budget_refuse(err);
    code = stay_within(run, err);
    if (code == ADV_OK) code = write_result(run, err);
    if (code == ADV_OK) code = adv_near_misses_find(request, constants, &run->pricer, arena, result, err);
    return code;
}
