/* run_bounds.c: a bound of every family, by the price of its relaxation or from another family's bound. */
#include <math.h>
#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/cost/scratch.h"
#include "engine/rank/rank.h"
#include "engine/search/run.h"

/* Families that a thread takes up at once, and in which of eight parts of them a helper starts: neighbours
 * have much in common that is worked out once by each thread, the first ones cost most, and the threads
 * should be done at the same time. */
enum { CHUNKS = ADV_IN_ORDER_SLOTS, LEAST_CHUNK = 32, AHEAD_FROM_EIGHTHS = 3 };

/* The verdict on a family by itself, or why it was not looked at ahead. */
enum verdict { LEFT_OUT, DERIVED, TOO_BIG, UNKNOWN, BOUNDED };

struct looked {
    enum verdict verdict;
    double bytes; /* of TOO_BIG: its least */
    int row;      /* of UNKNOWN and BOUNDED that were looked at ahead: on the tape */
    struct adv_bound bound;
};

struct ahead {
    struct adv_tape tape;  /* of UNKNOWN and BOUNDED families */
    struct looked *looked; /* of those and of TOO_BIG ones, in their order; room for a chunk of families */
    bool whole;
};

struct bounding {
    struct adv_search_run *run;
    struct adv_model_params params;
    long most;          /* evaluations: a budget that ends among the bounds would leave nothing solved */
    int priced;         /* of run->bounds, filled */
    double least_bytes; /* of the families that are too big */
    const struct adv_family *smallest;
    struct adv_in_order job;
    int chunk;               /* families */
    unsigned char *verdicts; /* of each family, set where it was looked at ahead; NULL: none is */
    struct ahead ahead[ADV_IN_ORDER_SLOTS];
};

/* An earlier pass bounded it above the cutoff: optimizer state on the host only adds its way there and back,
 * and doubt. */
static bool is_above_cutoff(const struct adv_search_run *run, int family)
{
    return run->request->objective != ADV_OBJECTIVE_HBM && run->least[family] > run->cutoff;
}

/* By the weights of a plan, which do not depend on its tiles. */
static bool is_too_big(const struct bounding *bounding, const struct adv_plan *plan, double *bytes)
{
    const struct adv_search_run *run = bounding->run;
    *bytes = adv_bound_hbm_bytes_per_device(plan, &bounding->params) *
             (1.0 + run->pricer.constants->hbm_correction_frac);
    return *bytes > run->request->cluster.chip.hbm_usable_bytes_per_device;
}

/* Of the family whose relaxation was priced last. */
static struct adv_bound bound_by_price(const struct adv_search_run *run, const struct adv_pricer *pricer,
                                       struct adv_estimate *estimate, int family)
{
    const enum adv_objective objective = run->request->objective;
    const double token_s = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate);
    double metric = token_s;
    if (objective == ADV_OBJECTIVE_STEP_TIME_HIGH) {
        adv_estimate_again_interval(pricer->scratch, estimate);
        metric = adv_rank_metric(objective, estimate);
    }
    const double per_s = metric / estimate->step_time_s;
    return (struct adv_bound){.metric = metric,
                              .doubt = metric / token_s,
                              .bubble = pricer->scratch->step.bubble_s * per_s,
                              .hand_overs = pricer->scratch->step.hand_overs_s * per_s,
                              .family = family};
}

/* By its weights, and by its relaxation (remat_space.h, P1). */
static struct looked look_at(const struct bounding *bounding, struct adv_pricer *pricer, int family)
{
    struct looked looked = {.verdict = TOO_BIG};
    struct adv_plan plan;
    struct adv_estimate estimate;
    const struct adv_space *space = &bounding->run->space;
    adv_space_plan(space, &space->families[family], &plan);
    if (is_too_big(bounding, &plan, &looked.bytes)) return looked;
    adv_remat_relax(&bounding->run->open, &plan);
    looked.verdict = adv_price(pricer, &plan, &estimate) ? BOUNDED : UNKNOWN;
    if (looked.verdict == BOUNDED) looked.bound = bound_by_price(bounding->run, pricer, &estimate, family);
    return looked;
}

struct of {
    const struct adv_search_run *run;
    const struct adv_family *family;
};

static void write_family(const void *context, struct adv_plan *plan)
{
    const struct of *of = context;
    adv_space_plan(&of->run->space, of->family, plan);
    adv_remat_relax(&of->run->open, plan);
}

static bool end_early(struct bounding *bounding, int family)
{
    struct adv_search_run *run = bounding->run;
    run->complete = false;
    for (int i = family; i < run->space.families_count; i++) run->bound_at[i] = ADV_RUN_UNBOUNDED;
    run->result->pruned += run->space.families_count - family;
    return false;
}

/* A family that was looked at ahead: its price is counted and shown now. False: the budget is spent. */
static bool show(struct bounding *bounding, const struct adv_tape *tape, int row, int family)
{
    struct adv_search_run *run = bounding->run;
    const struct of of = {run, &run->space.families[family]};
    const struct adv_plan_source source = {write_family, &of};
    return adv_price_again(&run->pricer, tape, row, &source);
}

/* Counts the family, and bounds it by another one where that is known; what is then still to be looked at is
 * `known` from `ahead`, or looked at here (NULL). False: the budget is spent. */
static bool enter(struct bounding *bounding, int family, const struct ahead *ahead,
                  const struct looked *known)
{
    struct adv_search_run *run = bounding->run;
    const int by = run->space.families[family].bounded_by;
    if (run->pricer.evaluated >= bounding->most) return end_early(bounding, family);
    run->bound_at[family] = ADV_RUN_UNBOUNDED;
    if (is_above_cutoff(run, family)) {
        run->result->pruned++;
        return true;
    }
    if (by >= 0 && run->bound_at[by] != ADV_RUN_UNBOUNDED) {
        run->bound_at[family] = ADV_RUN_DERIVED;
        run->derived_count++;
        return true;
    }
    const struct looked looked = known ? *known : look_at(bounding, &run->pricer, family);
    if (known && looked.verdict != TOO_BIG && !show(bounding, &ahead->tape, looked.row, family))
        return end_early(bounding, family);
    switch (looked.verdict) {
    case TOO_BIG:
        run->result->out_of_memory++;
        if (looked.bytes < bounding->least_bytes) bounding->smallest = &run->space.families[family];
        bounding->least_bytes = adv_min(looked.bytes, bounding->least_bytes);
        return true;
    case BOUNDED:
        run->bound_at[family] = bounding->priced;
        run->bounds[bounding->priced++] = looked.bound;
        return true;
    case UNKNOWN:
    case DERIVED:
    case LEFT_OUT:
        break;
    }
    if (run->pricer.spent) return end_early(bounding, family);
    run->result->illegal++;
    return true;
}

static int chunk_end(const struct bounding *bounding, int item)
{
    const int end = (item + 1) * bounding->chunk;
    return end < bounding->run->space.families_count ? end : bounding->run->space.families_count;
}

static bool bound_now(void *context, int item)
{
    struct bounding *bounding = context;
    for (int i = item * bounding->chunk; i < chunk_end(bounding, item); i++)
        if (!enter(bounding, i, NULL, NULL)) return false;
    return true;
}

static bool was_bounded(enum verdict verdict)
{
    return verdict == BOUNDED || verdict == DERIVED;
}

/* Whether a family will be bounded, as far as its weights and its forerunners tell. */
static bool will_be_bounded(const struct bounding *bounding, int family)
{
    const struct adv_space *space = &bounding->run->space;
    const struct adv_family *of = &space->families[family];
    double bytes;
    if (is_above_cutoff(bounding->run, family)) return false;
    if (of->bounded_by >= 0 && will_be_bounded(bounding, of->bounded_by)) return true;
    struct adv_plan plan = space->base;
    adv_space_write_mesh(space, of, &plan);
    adv_space_write_batch(space, of, &plan);
    return !is_too_big(bounding, &plan, &bytes);
}

/* Room for what is found of a chunk; false: there is none. */
static bool make_room(const struct bounding *bounding, struct ahead *ahead)
{
    adv_tape_rewind(&ahead->tape);
    if (!ahead->looked) ahead->looked = malloc((size_t)bounding->chunk * sizeof *ahead->looked);
    return ahead->looked != NULL;
}

static void bound_ahead(void *context, int worker, int slot, int item)
{
    struct bounding *bounding = context;
    const struct adv_search_run *run = bounding->run;
    struct ahead *ahead = &bounding->ahead[slot];
    unsigned char *verdicts = bounding->verdicts;
    ahead->whole = false;
    if (!make_room(bounding, ahead)) return;
    struct adv_pricer *pricer = adv_run_pricer(run, worker, &ahead->tape, &bounding->job.stop);
    const int first = item * bounding->chunk;
    int forerunner = -1, count = 0;
    bool derived = false;
    for (int i = first; i < chunk_end(bounding, item) && !pricer->spent; i++) {
        const int by = run->space.families[i].bounded_by;
        verdicts[i] = LEFT_OUT;
        if (is_above_cutoff(run, i)) continue;
        if (by >= 0 && by != forerunner)
            derived = by < first ? will_be_bounded(bounding, by) : was_bounded((enum verdict)verdicts[by]);
        if (by >= 0) forerunner = by;
        if (by >= 0 && derived) {
            verdicts[i] = DERIVED;
            continue;
        }
        const int row = ahead->tape.count;
        struct looked *looked = &ahead->looked[count++];
        *looked = look_at(bounding, pricer, i);
        looked->row = row;
        verdicts[i] = (unsigned char)looked->verdict;
    }
    ahead->whole = !pricer->spent && !ahead->tape.broken;
}

static bool take_bounds(void *context, int slot, int item)
{
    struct bounding *bounding = context;
    const struct ahead *ahead = &bounding->ahead[slot];
    if (!ahead->whole) return bound_now(context, item);
    const struct looked *next = ahead->looked;
    for (int i = item * bounding->chunk; i < chunk_end(bounding, item); i++) {
        const enum verdict verdict = (enum verdict)bounding->verdicts[i];
        const bool known = verdict != LEFT_OUT && verdict != DERIVED;
        if (!enter(bounding, i, ahead, known ? next++ : NULL)) return false;
    }
    return true;
}

static bool is_given_up(void *context)
{
    struct adv_search_run *run = ((const struct bounding *)context)->run;
    run->pricer.spent |= adv_budget_over(run->request->budget);
    return run->pricer.spent;
}

/* No plan of the family is below its bound, in this pass and in those that only add to its plans. */
static void raise_least(const struct adv_search_run *run, const struct adv_bound *bound)
{
    double *least = &run->least[bound->family];
    *least = adv_max(*least, bound->metric);
}

int adv_run_bound(struct adv_search_run *run)
{
    const int count = run->space.families_count;
    const int even = (count + CHUNKS - 1) / CHUNKS, chunk = even > LEAST_CHUNK ? even : LEAST_CHUNK;
    const int chunks = (count + chunk - 1) / chunk;
    struct bounding bounding = {
        .run = run,
        .params = adv_model_params(&run->request->model),
        .most = run->pricer.evaluated + (run->pricer.budget - run->pricer.evaluated + 1) / 2,
        .least_bytes = (double)INFINITY,
        .chunk = chunk,
        .verdicts = run->workers ? malloc((size_t)count + 1) : NULL,
        .job = {.count = chunks,
                .ahead_from = (AHEAD_FROM_EIGHTHS * chunks + 7) / 8,
                .work = bound_ahead,
                .take = take_bounds,
                .direct = bound_now,
                .over = is_given_up},
    };
    bounding.job.context = &bounding;
    run->derived_count = 0;
    adv_run_in_order(run, &bounding.job, bounding.verdicts != NULL);
    free(bounding.verdicts);
    for (int i = 0; i < ADV_IN_ORDER_SLOTS; i++) {
        adv_tape_free(&bounding.ahead[i].tape);
        free(bounding.ahead[i].looked);
    }
    for (int i = 0; i < bounding.priced; i++) raise_least(run, &run->bounds[i]);
    if (bounding.priced == 0 && bounding.smallest) { /* nothing can fit: say by how much the nearest misses */
        struct adv_plan plan;
        struct adv_estimate estimate;
        adv_space_plan(&run->space, bounding.smallest, &plan);
        (void)adv_remat_smallest(&run->open, &run->pricer, &plan, &estimate);
    }
    return bounding.priced;
}

static struct adv_bound derive(const struct adv_search_run *run, int family)
{
    const int by = run->space.families[family].bounded_by, at = run->bound_at[by];
    const struct adv_bound bound = at == ADV_RUN_DERIVED ? derive(run, by) : run->bounds[at];
    return adv_bound_derived(&run->space, &bound, family);
}

/* What a derived bound is not below, at a glance. */
static double derived_least(const struct adv_search_run *run, int family)
{
    int by = run->space.families[family].bounded_by, steps = 1;
    for (; run->bound_at[by] == ADV_RUN_DERIVED; steps++) by = run->space.families[by].bounded_by;
    return adv_bound_derived_least(&run->bounds[run->bound_at[by]], steps);
}

int adv_run_derive(struct adv_search_run *run, int priced, double cutoff)
{
    int count = 0;
    for (int i = 0; i < priced; i++) run->bound_at[run->bounds[i].family] = i; /* they were sorted */
    for (int family = 0; family < run->space.families_count && run->derived_count > 0; family++) {
        if (adv_budget_over_at(run->request->budget, family)) {
            run->pricer.spent = true;
            return count;
        }
        if (run->bound_at[family] != ADV_RUN_DERIVED) continue;
        struct adv_bound bound = {.metric = derived_least(run, family), .family = family};
        if (!(bound.metric > cutoff)) bound = derive(run, family);
        raise_least(run, &bound);
        if (!(bound.metric > cutoff)) run->bounds[priced + count++] = bound;
    }
    return count;
}
