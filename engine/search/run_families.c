#include <math.h>

#include "engine/base/list.h"
#include "engine/base/units.h"
#include "engine/cost/scratch.h"
#include "engine/rank/rank.h"
#include "engine/search/space_choices.h"
#include "engine/search/run.h"
#include "engine/search/space_settle.h"

bool adv_run_comes_before(enum adv_objective objective, const struct adv_estimate *a,
                          const struct adv_estimate *b)
{
    double left = adv_rank_cautious(objective, a), right = adv_rank_cautious(objective, b);
    if (left != right) return left < right;
    return adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, a) < adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, b);
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

void adv_run_insert(struct adv_search_run *run, const struct adv_plan *plan,
                    const struct adv_estimate *estimate)
{
    enum adv_objective objective = run->request->objective;
    if (!replaces(run, plan, estimate)) return;
    int at = run->kept_count;
    while (at > 0 && adv_run_comes_before(objective, estimate, &run->kept[at - 1].estimate)) at--;
    struct adv_candidate *place =
        adv_list_open(run->kept, sizeof *run->kept, &run->kept_count, ADV_RANK_KEPT, at);
    if (!place) return;
    *place = (struct adv_candidate){.plan = *plan, .estimate = *estimate};
    run->cutoff =
        adv_rank_cutoff(objective, run->kept, run->kept_count, run->request->top_k) * (1 + ADV_RANK_TIE_FRAC);
}

/* The plan is of the family that was priced last. */
static void keep(struct adv_search_run *run, const struct adv_plan *plan, struct adv_estimate *estimate)
{
    adv_estimate_again_interval(run->pricer.scratch, estimate);
    adv_run_insert(run, plan, estimate);
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
static int bound_families(struct adv_search_run *run, const struct adv_model_params *params,
                          struct adv_bound *bounds, struct adv_bound *of_family)
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
        double bytes = adv_bound_hbm_bytes_per_device(&plan, params) *
                       (1.0 + run->pricer.constants->hbm_correction_frac);
        if (bytes > limit) {
            run->result->out_of_memory++;
            if (bytes < least_bytes) smallest = &space->families[i];
            least_bytes = adv_min(bytes, least_bytes);
            continue;
        }
        adv_remat_relax(&run->open, &plan);
        if (!adv_price(&run->pricer, &plan, &estimate)) {
            if (run->pricer.spent) {
                run->complete = false;
                run->result->pruned += space->families_count - i;
                break;
            }
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
static void solve_smallest(struct adv_search_run *run, struct adv_plan *plan)
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

static void solve_families(struct adv_search_run *run, const struct adv_bound *bounds, int count)
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

/* Memory that all passes over the families share. False: there is none left. */
static bool make_room(struct adv_search_run *run)
{
    size_t room = (size_t)(run->space.families_count > 0 ? run->space.families_count : 1);
    run->bounds = adv_arena_array(run->arena, room, sizeof *run->bounds);
    run->scratch = adv_arena_array(run->arena, room, sizeof *run->scratch);
    run->least = adv_arena_array(run->arena, room, sizeof *run->least);
    if (!run->bounds || !run->scratch || !run->least) return false;
    for (size_t i = 0; i < room; i++) run->least[i] = -(double)INFINITY;
    return true;
}

void adv_run_families(struct adv_search_run *run)
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
