/* run_surer.c: a plan as fast as the best that fits almost surely.
 *
 * The search keeps the fastest plan of a family, which fills its memory up to the certainty asked for. Of 50
 * such plans the compiler refuses one, and a little less of a tensor on the device often costs less time than
 * the model can tell apart. So where the plan that would be first is not almost sure to fit, the families of
 * the tied plans are solved once more with less of the memory.
 */
#include "engine/cost/fit.h"
#include "engine/rank/rank.h"
#include "engine/search/run.h"
#include "engine/search/space_choices.h"

enum { FAMILIES = 8, EVALUATIONS = 4096 }; /* some milliseconds */

static bool is_almost_sure(const struct adv_candidate *candidate)
{
    return !adv_rank_simplicity(candidate).unsure;
}

/* Whether `a` comes before `b` where both are as sure to fit. */
static bool comes_first(const struct adv_candidate *a, const struct adv_candidate *b)
{
    struct adv_simplicity mine = adv_rank_simplicity(a), its = adv_rank_simplicity(b);
    mine.unsure = its.unsure = 0;
    return adv_rank_simpler(mine, its);
}

static bool is_tied(const struct adv_search_run *run, const struct adv_estimate *estimate)
{
    const enum adv_objective objective = run->request->objective;
    return adv_rank_metric(objective, estimate) <=
           adv_rank_metric(objective, &run->kept[0].estimate) * (1 + ADV_RANK_TIE_FRAC);
}

/* Of the tied plans the one that would be first. */
static int find_first(const struct adv_search_run *run)
{
    int first = 0;
    for (int i = 1; i < run->kept_count && is_tied(run, &run->kept[i].estimate); i++)
        if (comes_first(&run->kept[i], &run->kept[first])) first = i;
    return first;
}

/* Solves the family of a kept plan within the pricer's share. False: none of its plans is tied. */
static bool solve(struct adv_search_run *run, struct adv_pricer *pricer, const struct adv_candidate *kept,
                  struct adv_candidate *found, adv_code *code, adv_err *err)
{
    const double most = adv_rank_metric(run->request->objective, &run->kept[0].estimate);
    *found = (struct adv_candidate){.plan = kept->plan};
    if (adv_remat_solve(&run->open, pricer, most * (1 + ADV_RANK_TIE_FRAC), &found->plan, &found->estimate) !=
        ADV_REMAT_SOLVED)
        return false;
    adv_choices_finish(&found->plan);
    const struct adv_estimate_input input = {&run->request->model, &run->request->cluster, pricer->constants,
                                             &found->plan, ADV_FLOPS_CAUSAL_HALF};
    *code = adv_estimate_plan(&input, &found->estimate, NULL, err);
    return *code == ADV_OK && is_tied(run, &found->estimate) && is_almost_sure(found);
}

adv_code adv_run_add_surer(struct adv_search_run *run, adv_err *err)
{
    const double sure = adv_run_limit_frac(run, ADV_RANK_ALMOST_SURE_PROBABILITY);
    if (run->kept_count == 0 || run->request->objective == ADV_OBJECTIVE_HBM || run->pricer.spent ||
        run->pricer.share.sure <= sure ||
        adv_rank_share_frac(run->pricer.share) > adv_rank_share_frac(run->share))
        return ADV_OK; /* memory is what counts, or all are as sure, or none is */
    const int first = find_first(run);
    if (is_almost_sure(&run->kept[first])) return ADV_OK;
    struct adv_pricer pricer = run->pricer; /* what is priced here is no near miss */
    pricer.share.sure = sure;
    const long left = pricer.budget - pricer.evaluated;
    pricer.budget = pricer.evaluated + (left < EVALUATIONS ? left : EVALUATIONS);
    struct adv_candidate best;
    bool has_best = false;
    adv_code code = ADV_OK;
    for (int i = 0; i < run->kept_count && i < FAMILIES && code == ADV_OK && !pricer.spent; i++) {
        struct adv_candidate found;
        const struct adv_candidate *kept = &run->kept[i == 0 ? first : i - (i <= first)];
        if (!is_tied(run, &kept->estimate)) break;
        if (is_almost_sure(kept) || !solve(run, &pricer, kept, &found, &code, err)) continue;
        if (has_best && !comes_first(&found, &best)) continue;
        best = found;
        has_best = true;
    }
    run->pricer.evaluated = pricer.evaluated;
    run->pricer.front = pricer.front;
    if (has_best) adv_run_add(run, &best.plan, &best.estimate);
    return code;
}
