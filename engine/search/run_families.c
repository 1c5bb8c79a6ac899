#include <math.h>
#include <stdlib.h>

#include "engine/base/list.h"
#include "engine/base/units.h"
#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"
#include "engine/search/run.h"
#include "engine/search/space_settle.h"

bool adv_run_comes_before(enum adv_objective objective, const struct adv_estimate *a,
                          const struct adv_estimate *b)
{
    double left = adv_rank_metric(objective, a), right = adv_rank_metric(objective, b);
    if (left != right) return left < right;
    return adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, a) < adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, b);
}

/* Takes a plan of the same family out of the answer when it is not as good; false when it is as good. */
static bool replaces(struct adv_search_run *run, const struct adv_plan *plan,
                     const struct adv_estimate *estimate)
{
    for (int i = 0; i < run->kept_count; i++) {
        if (!adv_plan_same_family(&run->kept[i].plan, plan)) continue;
        if (!adv_run_comes_before(run->request->objective, estimate, &run->kept[i].estimate)) return false;
        adv_list_close(run->kept, sizeof *run->kept, &run->kept_count, i);
        return true;
    }
    return true;
}

void adv_run_add(struct adv_search_run *run, const struct adv_plan *plan, const struct adv_estimate *estimate)
{
    enum adv_objective objective = run->request->objective;
    int at = run->kept_count;
    while (at > 0 && adv_run_comes_before(objective, estimate, &run->kept[at - 1].estimate)) at--;
    struct adv_candidate *place =
        adv_list_open(run->kept, sizeof *run->kept, &run->kept_count, ADV_RANK_KEPT, at);
    if (!place) return;
    *place = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
    const int ranked = adv_run_ranked_count(run->request);
    run->cutoff = adv_rank_cutoff(objective, run->kept, run->kept_count, ranked);
}

void adv_run_insert(struct adv_search_run *run, const struct adv_plan *plan,
                    const struct adv_estimate *estimate)
{
    if (replaces(run, plan, estimate)) adv_run_add(run, plan, estimate);
}

/* The plan is of the family that was priced last. */
static void keep(struct adv_search_run *run, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    adv_estimate_again_interval(run->pricer.scratch, estimate);
    adv_run_insert(run, plan, estimate);
}

/* Least HBM is the goal: each family's smallest plan. */
static void solve_smallest(struct adv_search_run *run, struct adv_plan *plan)
{
    struct adv_estimate estimate;
    if (!adv_remat_smallest(&run->open, &run->pricer, plan, &estimate)) return;
    if (!adv_rank_fits_share(&estimate, run->pricer.share)) {
        run->result->out_of_memory++;
        return;
    }
    adv_choices_finish(plan);
    keep(run, plan, &estimate);
}

/* `count` bounds from `first` on. */
static void sort_bounds(struct adv_search_run *run, int first, int count)
{
    if (!adv_bound_sort(&run->bounds[first], run->scratch, count, run->request->budget))
        run->pricer.spent = true;
}

static void solve_all_smallest(struct adv_search_run *run, int priced)
{
    const int derived = adv_run_derive(run, priced, (double)INFINITY), count = priced + derived;
    sort_bounds(run, priced, derived);
    for (int i = 0; i < count; i++) {
        struct adv_plan plan;
        adv_space_plan(&run->space, &run->space.families[run->bounds[i].family], &plan);
        solve_smallest(run, &plan);
        if (!run->pricer.spent) continue;
        run->complete = false;
        run->result->pruned += count - 1 - i;
        return;
    }
}

/* A family that was solved ahead, with a cutoff that may have sunk since. */
struct solved {
    struct adv_tape tape;
    bool whole;    /* solved to the end */
    double cutoff; /* that was taken */
    struct adv_remat_reach reach;
    enum adv_remat_outcome outcome;
    struct adv_plan family, plan; /* what its plans have in common; the solution */
    struct adv_estimate estimate;
};

struct solving {
    struct adv_search_run *run;
    const struct adv_bound *bounds;
    int count;
    _Atomic double cutoff; /* of the run, for threads ahead of it */
    struct adv_in_order job;
    struct solved *ahead; /* of each slot */
};

static void count_outcome(struct adv_search_run *run, enum adv_remat_outcome outcome, struct adv_plan *plan,
                          struct adv_estimate *estimate)
{
    switch (outcome) {
    case ADV_REMAT_SOLVED:
        adv_choices_finish(plan);
        adv_run_insert(run, plan, estimate);
        break;
    case ADV_REMAT_SLOWER:
        run->result->pruned++;
        break;
    case ADV_REMAT_TOO_BIG:
        run->result->out_of_memory++;
        break;
    }
}

static bool after(struct solving *solving, int item)
{
    struct adv_search_run *run = solving->run;
    atomic_store_explicit(&solving->cutoff, run->cutoff, memory_order_relaxed);
    if (!run->pricer.spent) return true;
    run->result->pruned += solving->count - 1 - item;
    return false;
}

static bool solve_now(void *context, int item)
{
    struct solving *solving = context;
    struct adv_search_run *run = solving->run;
    const struct adv_bound *bound = &solving->bounds[item];
    if (bound->metric > run->cutoff) { /* and so are those behind it */
        run->result->pruned += solving->count - item;
        return false;
    }
    struct adv_plan plan;
    struct adv_estimate estimate;
    adv_space_plan(&run->space, &run->space.families[bound->family], &plan);
    const enum adv_remat_outcome outcome =
        adv_remat_solve(&run->open, &run->pricer, run->cutoff / bound->doubt, &plan, &estimate);
    if (outcome == ADV_REMAT_SOLVED) adv_estimate_again_interval(run->pricer.scratch, &estimate);
    count_outcome(run, outcome, &plan, &estimate);
    return after(solving, item);
}

static void solve_ahead(void *context, int worker, int slot, int item)
{
    struct solving *solving = context;
    struct adv_search_run *run = solving->run;
    struct solved *solved = &solving->ahead[slot];
    const struct adv_bound *bound = &solving->bounds[item];
    const double cutoff = atomic_load_explicit(&solving->cutoff, memory_order_relaxed);
    adv_tape_rewind(&solved->tape);
    solved->whole = false;
    if (bound->metric > cutoff) return;
    solved->cutoff = cutoff / bound->doubt;
    struct adv_pricer *pricer = adv_run_pricer(run, worker, &solved->tape, &solving->job.stop);
    adv_space_plan(&run->space, &run->space.families[bound->family], &solved->plan);
    solved->family = solved->plan;
    adv_remat_relax(&run->open, &solved->family);
    solved->outcome = adv_remat_solve_within(&run->open, pricer, solved->cutoff, &solved->plan,
                                             &solved->estimate, &solved->reach);
    solved->whole = !pricer->spent && !solved->tape.broken;
    if (solved->outcome == ADV_REMAT_SOLVED) adv_estimate_again_interval(pricer->scratch, &solved->estimate);
}

static void write_family(const void *context, struct adv_plan *plan)
{
    *plan = ((const struct solved *)context)->family;
}

static bool take_solved(void *context, int slot, int item)
{
    struct solving *solving = context;
    struct adv_search_run *run = solving->run;
    struct solved *solved = &solving->ahead[slot];
    const struct adv_bound *bound = &solving->bounds[item];
    const double cutoff = run->cutoff / bound->doubt;
    enum adv_remat_outcome outcome = solved->outcome;
    if (!solved->whole || bound->metric > run->cutoff || cutoff > solved->cutoff ||
        !adv_remat_outcome_below(&solved->reach, cutoff, &outcome) ||
        solved->tape.count > run->pricer.budget - run->pricer.evaluated)
        return solve_now(context, item);
    const struct adv_plan_source family = {write_family, solved};
    for (int i = 0; i < solved->tape.count; i++)
        if (solved->tape.rows[i].above < cutoff)
            (void)adv_price_again(&run->pricer, &solved->tape, i, &family);
    if (!run->pricer.spent) count_outcome(run, outcome, &solved->plan, &solved->estimate);
    return after(solving, item);
}

static bool is_given_up(void *context)
{
    struct adv_search_run *run = ((const struct solving *)context)->run;
    run->pricer.spent |= adv_budget_over(run->request->budget);
    return run->pricer.spent;
}

/* Families in the order of their bounds. */
static void solve_families(struct adv_search_run *run, const struct adv_bound *bounds, int count,
                           struct solved *ahead)
{
    struct solving solving = {
        .run = run,
        .bounds = bounds,
        .count = count,
        .cutoff = run->cutoff,
        .ahead = ahead,
        .job = {.count = count,
                .work = solve_ahead,
                .take = take_solved,
                .direct = solve_now,
                .over = is_given_up},
    };
    solving.job.context = &solving;
    adv_run_in_order(run, &solving.job, ahead != NULL);
}

/* The families that were priced first: most derived bounds are above the cutoff that these leave. */
static void solve_all(struct adv_search_run *run, int priced)
{
    struct solved *ahead = run->workers ? calloc(ADV_IN_ORDER_SLOTS, sizeof *ahead) : NULL;
    solve_families(run, run->bounds, priced, ahead);
    const int derived = run->pricer.spent ? 0 : adv_run_derive(run, priced, run->cutoff);
    run->result->pruned += run->derived_count - derived;
    sort_bounds(run, priced, derived);
    if (derived > 0 && !run->pricer.spent) solve_families(run, &run->bounds[priced], derived, ahead);
    if (run->pricer.spent) run->complete = false;
    for (int i = 0; ahead && i < ADV_IN_ORDER_SLOTS; i++) adv_tape_free(&ahead[i].tape);
    free(ahead);
}

/* Memory that all passes over the families share. False: there is none left. */
static bool make_room(struct adv_search_run *run)
{
    size_t room = (size_t)(run->space.families_count > 0 ? run->space.families_count : 1);
    run->bounds = adv_arena_bare(run->arena, room * sizeof *run->bounds);
    run->scratch = adv_arena_bare(run->arena, room * sizeof *run->scratch);
    run->least = adv_arena_bare(run->arena, room * sizeof *run->least);
    run->bound_at = adv_arena_bare(run->arena, room * sizeof *run->bound_at);
    if (!run->bounds || !run->scratch || !run->least || !run->bound_at) return false;
    for (size_t i = 0; i < room; i++) run->least[i] = -(double)INFINITY;
    return true;
}

void adv_run_families(struct adv_search_run *run)
{
    bool first = !run->least;
    if (first && !make_room(run)) {
        run->complete = false;
        run->no_memory = true;
        return;
    }
    const int priced = adv_run_bound(run);
    if (priced == 0) return;
    sort_bounds(run, 0, priced);
    struct adv_plan plan;
    adv_space_plan(&run->space, &run->space.families[run->bounds[0].family], &plan);
    if (first && run->pricer.budget >= ADV_SETTLE_LEAST_BUDGET)
        adv_remat_space_order(&run->open, &run->pricer, &plan);
    if (run->request->objective == ADV_OBJECTIVE_HBM)
        solve_all_smallest(run, priced);
    else
        solve_all(run, priced);
}
