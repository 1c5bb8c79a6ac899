#include "engine/rank/rank.h"

#include <math.h>
#include <string.h>

#include "engine/emit/config.h"

double adv_rank_metric(enum adv_objective objective, const struct adv_estimate *estimate)
{
    if (objective == ADV_OBJECTIVE_HBM) return estimate->hbm_bytes_per_device;
    return estimate->step_time_s / estimate->tokens_per_step;
}

bool adv_rank_fits(const struct adv_estimate *estimate)
{
    return estimate->fit != ADV_FIT_NO && estimate->hbm_bytes_per_device <= estimate->hbm_limit_bytes_per_device &&
           !(estimate->host_bytes_per_host > estimate->host_limit_bytes_per_host);
}

bool adv_rank_same_mesh(const struct adv_plan *a, const struct adv_plan *b)
{
    return !memcmp(a->ici, b->ici, sizeof a->ici) && !memcmp(a->dcn, b->dcn, sizeof a->dcn);
}

/* Earlier candidates of the same mesh, up to the cap. */
static int earlier_of_mesh(const struct adv_candidate *sorted, int at)
{
    int count = 0;
    for (int i = 0; i < at && count < ADV_RANK_PER_MESH; i++) count += adv_rank_same_mesh(&sorted[i].plan, &sorted[at].plan);
    return count;
}

double adv_rank_cutoff(enum adv_objective objective, const struct adv_candidate *sorted, int count, int top_k)
{
    int taken = 0;
    for (int i = 0; i < count; i++) {
        if (earlier_of_mesh(sorted, i) >= ADV_RANK_PER_MESH) continue;
        if (++taken == top_k) return adv_rank_metric(objective, &sorted[i].estimate);
    }
    return (double)INFINITY;
}

/* What orders two tied plans. */
struct simplicity {
    int verdict, axes, keys;
};

static struct simplicity simplicity_of(const struct adv_candidate *candidate, const struct adv_model *model)
{
    return (struct simplicity){(int)candidate->estimate.fit, adv_emit_config_axes_count(&candidate->plan),
                               adv_emit_config_changes_count(&candidate->plan, model)};
}

static bool simpler(struct simplicity a, struct simplicity b)
{
    if (a.verdict != b.verdict) return a.verdict < b.verdict;
    if (a.axes != b.axes) return a.axes < b.axes;
    return a.keys < b.keys;
}

/* Insertion sort of order[first..end) by simplicity; stable, so equal ones stay in the order of their metric. */
static void order_ties(const struct adv_candidate *sorted, const struct adv_model *model, int *order, int first, int end)
{
    for (int i = first + 1; i < end; i++) {
        int moved = order[i];
        struct simplicity key = simplicity_of(&sorted[moved], model);
        int at = i;
        while (at > first && simpler(key, simplicity_of(&sorted[order[at - 1]], model))) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = moved;
    }
}

int adv_rank_select(enum adv_objective objective, const struct adv_model *model, struct adv_candidate *sorted, int count,
                    int top_k, int *order)
{
    int taken = 0, group = 0;
    for (int first = 0; first < count && taken < top_k; group++) {
        double limit = adv_rank_metric(objective, &sorted[first].estimate) * (1 + ADV_RANK_TIE_FRAC);
        int end = first;
        while (end < count && adv_rank_metric(objective, &sorted[end].estimate) <= limit) {
            sorted[end].tie_group = group;
            end++;
        }
        int tied[ADV_RANK_KEPT];
        int tied_count = 0;
        for (int i = first; i < end && tied_count < ADV_RANK_KEPT; i++) tied[tied_count++] = i;
        order_ties(sorted, model, tied, 0, tied_count);
        for (int i = 0; i < tied_count && taken < top_k; i++) {
            int same = 0;
            for (int k = 0; k < taken; k++) same += adv_rank_same_mesh(&sorted[order[k]].plan, &sorted[tied[i]].plan);
            if (same < ADV_RANK_PER_MESH) order[taken++] = tied[i];
        }
        first = end;
    }
    return taken;
}
