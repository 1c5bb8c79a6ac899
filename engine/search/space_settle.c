#include "engine/search/space_settle.h"

#include <math.h>

#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"

/* The step of the first family, all on the device, with `base`; INFINITY where that is not legal, or has no
 * tiles that compile. */
static double first_family_s(struct adv_space *space, const struct adv_remat_space *open,
                             struct adv_pricer *pricer, const struct adv_plan *base)
{
    const struct adv_advise_request *request = space->request;
    struct adv_plan kept = space->base, plan;
    struct adv_estimate estimate;
    space->base = *base;
    const bool compiles = adv_space_plan(space, &space->families[0], &plan);
    space->base = kept;
    if (!compiles || adv_plan_broken_rule(&plan, &request->model, &request->cluster)) return (double)INFINITY;
    adv_remat_relax(open, &plan);
    bool priced = adv_price(pricer, &plan, &estimate);
    return priced ? adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &estimate) : (double)INFINITY;
}

/* The wider published VMEM limit of tpu7x leaves nothing for spills: its tiles, of attention or experts,
 * have to save more of the step than `limit_worth_frac`. */
static bool widen_vmem_limit(struct adv_plan *base)
{
    enum { NARROW_KIB = 61440, WIDE_KIB = 65536 };
    if (base->flags.scoped_vmem_limit_kib != NARROW_KIB) return false;
    base->flags.scoped_vmem_limit_kib = WIDE_KIB;
    return true;
}

void adv_settle_base(struct adv_space *space, const struct adv_remat_space *open, struct adv_pricer *pricer)
{
    static const double limit_worth_frac = 0.002;
    if (space->families_count == 0 || pricer->budget < ADV_SETTLE_LEAST_BUDGET) return;
    double best_s = first_family_s(space, open, pricer, &space->base);
    for (int i = -1; i < ADV_CHOICES_FLIPS; i++) {
        struct adv_plan other = space->base;
        bool differs = i < 0 ? widen_vmem_limit(&other) : adv_choices_flip(space->request, i, &other);
        double worth_frac = i < 0 ? limit_worth_frac : ADV_RANK_KEY_FRAC;
        double time_s = differs ? first_family_s(space, open, pricer, &other) : (double)INFINITY;
        if (!(time_s < best_s * (1 - worth_frac))) continue;
        best_s = time_s;
        space->base = other;
    }
}
