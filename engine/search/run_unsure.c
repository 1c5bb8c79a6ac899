/* run_unsure.c: plans that would be faster than what is ranked and fit with less certainty than is asked for.
 *
 * The spread of the memory model keeps them out of the answer; a compile of half a minute could let them in.
 * They are looked for where they are: in the families of the best plans, each solved once more with memory
 * filled up to where a plan fits as likely as not.
 */
#include <math.h>

#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/rank/rank.h"
#include "engine/search/run.h"
#include "engine/search/space_choices.h"

enum { FAMILIES = 4 };
/* One plan is looked for that fits as likely as not, and one that is likelier to. */
static const double probabilities[ADV_SEARCH_UNSURE] = {ADV_UNSURE_PROBABILITY, 0.8};

static double cautious(const struct adv_estimate *estimate)
{
    return adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, estimate);
}

/* Less is better: the prediction, and the upper end of its interval. */
struct mark {
    double metric, cautious;
};

static struct mark mark_of(const struct adv_estimate *estimate)
{
    return (struct mark){adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate), cautious(estimate)};
}

/* The best that fits, which among tied plans need not be ranked, less what a near miss has to gain. */
static struct mark to_beat(const struct adv_search_run *run)
{
    const struct adv_search_result *result = run->result;
    struct mark best = mark_of(&run->kept[0].estimate);
    for (int i = 0; i < result->found_count; i++) {
        const struct mark its = mark_of(&result->found[i].estimate);
        best = (struct mark){adv_min(best.metric, its.metric), adv_min(best.cautious, its.cautious)};
    }
    const double share = 1 - ADV_WORTH_TELLING_FRAC;
    return (struct mark){best.metric * share, best.cautious * share};
}

/* The fastest plan of the families, if it beats `mark`, into `best`. */
static adv_code find(struct adv_search_run *run, struct adv_pricer *pricer, struct mark mark,
                     struct adv_candidate *best, bool *found, adv_err *err)
{
    for (int i = 0; i < run->kept_count && i < FAMILIES && !pricer->spent; i++) {
        struct adv_candidate candidate = {.plan = run->kept[i].plan};
        const struct adv_estimate_input input = {&run->request->model, &run->request->cluster,
                                                 pricer->constants, &candidate.plan, ADV_FLOPS_CAUSAL_HALF};
        if (adv_remat_solve(&run->open, pricer, mark.metric, &candidate.plan, &candidate.estimate) !=
            ADV_REMAT_SOLVED)
            continue;
        adv_choices_finish(&candidate.plan);
        const adv_code code = adv_estimate_plan(&input, &candidate.estimate, NULL, err);
        if (code != ADV_OK) return code;
        const bool is_sure = adv_rank_fits(&candidate.estimate, run->pricer.memory_frac);
        if (is_sure || cautious(&candidate.estimate) >= mark.cautious) continue;
        *found = true;
        *best = candidate;
        mark = mark_of(&candidate.estimate);
    }
    return ADV_OK;
}

adv_code adv_run_find_unsure(struct adv_search_run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    struct adv_pricer pricer = run->pricer; /* with a front of its own: what it prices is none of the answer */
    struct adv_candidate shown;
    const struct adv_advise_request *request = run->request;
    if (result->found_count == 0 || request->objective == ADV_OBJECTIVE_HBM || request->memory_frac < 1)
        return ADV_OK; /* nothing fits at all; or whoever asks wants memory left */
    pricer.front = (struct adv_front){.capacity = 1, .items = &shown};
    const struct mark mark = to_beat(run);
    adv_code code = ADV_OK;
    for (int i = 0; i < ADV_SEARCH_UNSURE && code == ADV_OK; i++) {
        struct adv_candidate *best = &result->unsure[result->unsure_count];
        bool found = false;
        pricer.memory_frac = adv_fit_limit_frac(probabilities[i], pricer.constants->memory_log_sd);
        if (pricer.memory_frac <= run->pricer.memory_frac) continue;
        code = find(run, &pricer, mark, best, &found, err);
        /* what is likelier to fit is slower, or the same plan */
        const bool again = found && i > 0 && result->unsure_count > 0 &&
                           best->estimate.step_time_s <= best[-1].estimate.step_time_s;
        if (found && !again) result->unsure_count++;
    }
    result->evaluated = pricer.evaluated;
    return code;
}
