/* run_unsure.c: the plan that would be faster than what is ranked and fits with less certainty than is asked
 * for.
 *
 * The spread of the memory model keeps it out of the answer; a compile of half a minute could let it in. It
 * is looked for where it is: in the families of plans that were priced and are within the limit, and in those
 * of the best plans, each solved once more with all of the memory.
 */
#include <math.h>

#include "engine/base/units.h"
#include "engine/rank/rank.h"
#include "engine/search/run.h"
#include "engine/search/space_choices.h"

/* Of the best plans, whose families are solved; evaluations for all of it, which take some milliseconds; how
 * often a family is asked for what it holds at the probability that its last solution has; and evaluations
 * that then go into the probability to ask for. */
enum { FAMILIES = 8, EVALUATIONS = 4096, ROUNDS = 8, RAISING = 1024 };

struct looking {
    struct adv_search_run *run;
    struct adv_pricer *pricer;
    double mark; /* to beat: by the objective, which a time of a token is not above */
    adv_code code;
    adv_err *err;
};

static double mark_of(const struct adv_search_run *run, const struct adv_estimate *estimate)
{
    return adv_rank_metric(run->request->objective, estimate);
}

/* So many evaluations more, as far as the search's budget goes. */
static void limit_pricer(struct looking *looking, long evaluations)
{
    const long left = looking->run->pricer.budget - looking->pricer->evaluated;
    looking->pricer->budget = looking->pricer->evaluated + (left < evaluations ? left : evaluations);
    looking->pricer->spent = false;
}

/* The best that fits, which among tied plans need not be ranked, less what a near miss has to gain. */
static double to_beat(const struct adv_search_run *run)
{
    const struct adv_search_result *result = run->result;
    double best = mark_of(run, &run->kept[0].estimate);
    for (int i = 0; i < result->found_count; i++)
        best = adv_min(best, mark_of(run, &result->found[i].estimate));
    return best * (1 - ADV_WORTH_TELLING_FRAC);
}

/* As much as ranks the plan, in hundredths: what a reason asks for. */
static double probability_of(const struct adv_candidate *candidate)
{
    return floor(candidate->estimate.fit_probability * 100) / 100;
}

static bool solve_within(struct looking *looking, double sure, struct adv_candidate *found)
{
    struct adv_search_run *run = looking->run;
    const struct adv_estimate_input input = {&run->request->model, &run->request->cluster,
                                             looking->pricer->constants, &found->plan, ADV_FLOPS_CAUSAL_HALF};
    looking->pricer->share = (struct adv_rank_share){1.0, sure};
    if (adv_remat_solve(&run->open, looking->pricer, looking->mark, &found->plan, &found->estimate) !=
        ADV_REMAT_SOLVED)
        return false;
    adv_choices_finish(&found->plan);
    looking->code = adv_estimate_plan(&input, &found->estimate, NULL, looking->err);
    return looking->code == ADV_OK && mark_of(run, &found->estimate) < looking->mark &&
           !adv_rank_fits_share(&found->estimate, run->pricer.share);
}

/* The most that a search may ask for, in hundredths, which fills all of the memory. */
static double full_probability(const struct looking *looking)
{
    const struct adv_constants *constants = looking->pricer->constants;
    const struct adv_fit_curve curve = adv_fit_curve(constants, constants->memory_log_sd);
    return floor(adv_fit_probability(&curve, 1.0, 1.0) * 100) / 100;
}

/* A search that asks for the probability that a plan has may come to another one: it has less memory, and
 * what waits near the limit is counted as if it did not. False: no plan beats the mark and is what a search
 * finds that asks for its probability. */
static bool settle(struct looking *looking, struct adv_candidate *found)
{
    for (int round = 0; round < ROUNDS; round++) {
        const double time_s = found->estimate.step_time_s, probability = probability_of(found);
        if (!solve_within(looking, adv_run_limit_frac(looking->run, probability), found)) return false;
        if (found->estimate.step_time_s == time_s && probability_of(found) == probability) return true;
    }
    return false;
}

/* The family's fastest plan in all of the memory, and the probability that ranks it; or one that is surer and
 * hardly slower. False: none beats the mark and is less sure to fit than is asked for. */
static bool find(struct looking *looking, struct adv_candidate *found, double *probability)
{
    if (!solve_within(looking, 1, found) || looking->pricer->spent) return false;
    struct adv_candidate surer = *found;
    const double worth_s = (1 + ADV_WORTH_TELLING_FRAC) * found->estimate.step_time_s;
    *probability = full_probability(looking);
    if (!settle(looking, &surer) || looking->pricer->spent || surer.estimate.step_time_s > worth_s)
        return looking->code == ADV_OK;
    *found = surer;
    *probability = probability_of(found);
    return true;
}

/* The plan's own probability need not rank it, but less than all of the memory may be enough: the most, in
 * hundredths and up to its own, with which its family still has a plan as fast. */
static void raise_probability(struct looking *looking)
{
    struct adv_search_result *result = looking->run->result;
    const double most_s = result->unsure.estimate.step_time_s * (1 + 1e-9);
    int ranks = (int)lround(100 * result->unsure_probability);
    int above = (int)lround(100 * probability_of(&result->unsure)) + 1;
    looking->mark = mark_of(looking->run, &result->unsure.estimate) * (1 + 1e-9);
    while (above - ranks > 1 && looking->code == ADV_OK) {
        struct adv_candidate found = {.plan = result->unsure.plan};
        const int middle = ranks + (above - ranks) / 2;
        const double sure = adv_run_limit_frac(looking->run, middle / 100.0);
        const bool solved = solve_within(looking, sure, &found);
        if (looking->pricer->spent) return;
        if (solved && found.estimate.step_time_s <= most_s)
            ranks = middle;
        else
            above = middle;
        result->unsure_probability = ranks / 100.0;
    }
}

/* Takes the plan of such a family. False: no further one can be looked at. */
static bool solve(struct looking *looking, const struct adv_plan *family, bool offloads)
{
    struct adv_search_result *result = looking->run->result;
    struct adv_candidate found = {.plan = *family};
    double probability = 0.0;
    found.plan.optimizer_host_offload = offloads;
    if (find(looking, &found, &probability)) {
        looking->mark = mark_of(looking->run, &found.estimate);
        result->unsure = found;
        result->unsure_probability = probability;
        result->has_unsure = true;
    }
    return looking->code == ADV_OK && !looking->pricer->spent;
}

/* The families of plans that were priced and are within the limit. False: see solve. */
static bool solve_near(struct looking *looking, const struct adv_near_list *list)
{
    for (int i = 0; i < list->count; i++) {
        const struct adv_candidate *near = &list->items[i];
        if (adv_rank_fits(&near->estimate, 1) &&
            !solve(looking, &near->plan, near->plan.optimizer_host_offload))
            return false;
    }
    return true;
}

/* The families of the best plans, also with the optimizer state on the device where the search moved it. */
static void solve_best(struct looking *looking)
{
    const struct adv_search_run *run = looking->run;
    for (int i = 0; i < run->kept_count && i < FAMILIES; i++) {
        const struct adv_plan *plan = &run->kept[i].plan;
        if (plan->optimizer_host_offload && run->offloaded && !solve(looking, plan, false)) return;
        if (!solve(looking, plan, plan->optimizer_host_offload)) return;
    }
}

adv_code adv_run_find_unsure(struct adv_search_run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    struct adv_pricer pricer = run->pricer;
    struct adv_candidate shown; /* to a front of its own: what is priced here is none of the answer */
    const struct adv_advise_request *request = run->request;
    if (result->found_count == 0 || adv_rank_share_frac(run->pricer.share) >= 1 || request->memory_frac < 1 ||
        request->objective == ADV_OBJECTIVE_HBM || pricer.spent)
        return ADV_OK; /* nothing fits surely; or whoever asks wants memory left */
    pricer.front = (struct adv_front){.capacity = 1, .items = &shown};
    struct looking looking = {run, &pricer, to_beat(run), ADV_OK, err};
    limit_pricer(&looking, EVALUATIONS);
    if (solve_near(&looking, &run->pricer.tight) && solve_near(&looking, &run->pricer.fast))
        solve_best(&looking);
    limit_pricer(&looking, RAISING);
    if (result->has_unsure) raise_probability(&looking);
    result->evaluated = pricer.evaluated;
    return looking.code;
}
