#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"
#include "engine/search/frugal.h"
#include "engine/search/run.h"

/* The first of the most frugal families' plans that fits; or, with memory filled to the very limit, the first
 * that fits then. Returns its index, -1 when there is none. */
static int first_fitting(struct adv_search_run *run, const struct adv_frugal *frugal, int count,
                         struct adv_plan *plan, struct adv_estimate *estimate)
{
    int found = -1;
    for (int i = 0; i < count; i++) {
        struct adv_plan trial;
        struct adv_estimate priced;
        adv_frugal_plan(&run->space, &run->open, &frugal[i], &trial);
        if (!adv_price(&run->pricer, &trial, &priced)) continue;
        bool fits = adv_rank_fits_share(&priced, run->pricer.share);
        if (!fits && (found >= 0 || !adv_rank_fits(&priced, 1))) continue;
        adv_estimate_again_interval(run->pricer.scratch, &priced);
        found = i;
        *plan = trial;
        *estimate = priced;
        if (fits) return found;
    }
    if (found >= 0) run->pricer.share = (struct adv_rank_share){1.0, 1.0};
    return found;
}

/* Shares of memory up to which the rough count of frugal.h is trusted: that one surely fits, and that there
 * is a simpler or faster one. */
static const double sure_frac = 0.7, bold_frac = 1.15;

/* Families that may not fit, but are simpler or take larger microsteps: the fastest that fits replaces the
 * one found. */
static void try_bolder(struct adv_search_run *run, struct adv_frugal *found, struct adv_plan *plan,
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
        if (!adv_rank_fits_share(&priced, run->pricer.share) ||
            !adv_run_comes_before(ADV_OBJECTIVE_STEP_TIME, &priced, estimate))
            continue;
        *found = bolder[i];
        *plan = trial;
        *estimate = priced;
    }
}

void adv_run_frugally(struct adv_search_run *run)
{
    struct adv_frugal frugal[ADV_FRUGAL_PLANS];
    struct adv_plan plan, better;
    struct adv_estimate estimate, priced;
    bool for_speed = run->request->objective != ADV_OBJECTIVE_HBM;
    run->space.base.optimizer_host_offload = run->request->workload.base.optimizer_host_offload;
    run->pricer.share = run->share;
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
    adv_run_insert(run, &plan, &estimate);
}
