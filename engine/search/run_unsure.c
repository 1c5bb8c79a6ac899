/* run_unsure.c: the plan that would be faster than what is ranked and fits with less certainty than is asked
 * for.
 *
 * The spread of the memory model keeps it out of the answer; a compile of half a minute could let it in. It
 * is looked for where it is: in the families of the best plans, each solved once more with all of the memory.
 */
#include "engine/base/units.h"
#include "engine/rank/rank.h"
#include "engine/search/run.h"
#include "engine/search/space_choices.h"

enum { FAMILIES = 4 };

/* Less is better: the prediction, and the upper end of its interval. */
struct mark {
    double metric, cautious;
};

static struct mark mark_of(const struct adv_estimate *estimate)
{
    return (struct mark){adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, estimate),
                         adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, estimate)};
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

/* The family's fastest plan, if it beats `mark` and is not one that is sure to fit. */
static adv_code solve(struct adv_search_run *run, struct adv_pricer *pricer, const struct adv_plan *family,
                      struct mark *mark, adv_err *err)
{
    struct adv_candidate found = {.plan = *family};
    const struct adv_estimate_input input = {&run->request->model, &run->request->cluster, pricer->constants,
                                             &found.plan, ADV_FLOPS_CAUSAL_HALF};
    if (adv_remat_solve(&run->open, pricer, mark->metric, &found.plan, &found.estimate) != ADV_REMAT_SOLVED)
        return ADV_OK;
    adv_choices_finish(&found.plan);
    const adv_code code = adv_estimate_plan(&input, &found.estimate, NULL, err);
    if (code != ADV_OK || adv_rank_fits(&found.estimate, run->pricer.memory_frac)) return code;
    const struct mark its = mark_of(&found.estimate);
    if (its.cautious >= mark->cautious) return ADV_OK;
    *mark = its;
    run->result->unsure = found;
    run->result->has_unsure = true;
    return ADV_OK;
}

adv_code adv_run_find_unsure(struct adv_search_run *run, adv_err *err)
{
    struct adv_search_result *result = run->result;
    struct adv_pricer pricer = run->pricer;
    struct adv_candidate shown; /* to a front of its own: what is priced here is none of the answer */
    const struct adv_advise_request *request = run->request;
    if (result->found_count == 0 || run->pricer.memory_frac >= 1 || request->memory_frac < 1 ||
        request->objective == ADV_OBJECTIVE_HBM)
        return ADV_OK; /* nothing fits surely; or whoever asks wants memory left */
    pricer.front = (struct adv_front){.capacity = 1, .items = &shown};
    pricer.memory_frac = 1;
    struct mark mark = to_beat(run);
    adv_code code = ADV_OK;
    for (int i = 0; i < run->kept_count && i < FAMILIES && code == ADV_OK && !pricer.spent; i++)
        code = solve(run, &pricer, &run->kept[i].plan, &mark, err);
    result->evaluated = pricer.evaluated;
    return code;
}
