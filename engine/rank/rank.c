#include "engine/rank/rank.h"

#include <math.h>
#include <string.h>

#include "engine/base/list.h"
#include "engine/base/units.h"
#include "engine/cost/fit.h"
#include "engine/maxtext/write.h"

double adv_rank_memory_frac(const struct adv_estimate *estimate)
{
    const struct adv_fit_curve curve = adv_estimate_usual_curve(estimate);
    return adv_fit_limit_frac(&curve, ADV_FIT_SURE_PROBABILITY);
}

double adv_rank_hbm_room_bytes(const struct adv_estimate *estimate, struct adv_rank_share share)
{
    double sure = share.sure;
    if (estimate->memory_spread > 1.0 && sure < 1.0) sure = pow(sure, estimate->memory_spread);
    return share.asked * sure * estimate->hbm_limit_bytes_per_device;
}

static bool fits_into(double room_bytes, const struct adv_estimate *estimate, struct adv_rank_share share)
{
    return estimate->hbm_bytes_per_device <= room_bytes &&
           !(estimate->host_bytes_per_host >
             adv_rank_share_frac(share) * estimate->host_limit_bytes_per_host); /* no known limit: NAN */
}

bool adv_rank_fits_share(const struct adv_estimate *estimate, struct adv_rank_share share)
{
    return fits_into(adv_rank_hbm_room_bytes(estimate, share), estimate, share);
}

bool adv_rank_fits(const struct adv_estimate *estimate, double sure)
{
    return adv_rank_fits_share(estimate, (struct adv_rank_share){1.0, sure});
}

double adv_rank_room_again(struct adv_rank_room *room, const struct adv_estimate *estimate,
                           struct adv_rank_share share)
{
    for (int i = 0; i < ADV_RANK_ROOM_ROWS; i++) {
        const struct adv_rank_room_row *row = &room->rows[i];
        if (row->share.asked == share.asked && row->share.sure == share.sure &&
            row->spread == estimate->memory_spread &&
            row->limit_bytes == estimate->hbm_limit_bytes_per_device)
            return row->bytes;
    }
    struct adv_rank_room_row *row = &room->rows[room->next++ % ADV_RANK_ROOM_ROWS];
    *row = (struct adv_rank_room_row){share, estimate->memory_spread, estimate->hbm_limit_bytes_per_device,
                                      adv_rank_hbm_room_bytes(estimate, share)};
    return row->bytes;
}

bool adv_rank_fits_again(struct adv_rank_room *room, const struct adv_estimate *estimate,
                         struct adv_rank_share share)
{
    return fits_into(adv_rank_room_again(room, estimate, share), estimate, share);
}

bool adv_rank_same_mesh(const struct adv_plan *a, const struct adv_plan *b)
{
    return !memcmp(a->family.ici, b->family.ici, sizeof a->family.ici) &&
           !memcmp(a->family.dcn, b->family.dcn, sizeof a->family.dcn);
}

/* Predicted alike on another mesh that shards alike: the same plan by another name (fsdp 128 and fsdp 64 x
 * fsdp_transpose 2 gather the same bytes over the same links). One of them is enough for an answer. */
static bool same_prediction(const struct adv_candidate *a, const struct adv_candidate *b)
{
    const int *x = a->plan.family.ici, *y = b->plan.family.ici;
    bool alias = x[ADV_AXIS_FSDP] != y[ADV_AXIS_FSDP] && x[ADV_AXIS_FSDP] * x[ADV_AXIS_FSDP_TRANSPOSE] ==
                                                             y[ADV_AXIS_FSDP] * y[ADV_AXIS_FSDP_TRANSPOSE];
    for (int i = 0; i < ADV_AXIS_COUNT; i++)
        alias = alias && (i == ADV_AXIS_FSDP || i == ADV_AXIS_FSDP_TRANSPOSE || x[i] == y[i]);
    double apart_s = fabs(a->estimate.step_time_s - b->estimate.step_time_s);
    return alias && apart_s <= 1e-3 * a->estimate.step_time_s;
}

/* Whether the answer has room for `candidate` beside those taken. */
static bool adds_something(const struct adv_candidate *sorted, const int *taken, int count,
                           const struct adv_candidate *candidate)
{
    int same = 0;
    for (int i = 0; i < count; i++) {
        const struct adv_candidate *other = &sorted[taken[i]];
        if (same_prediction(other, candidate)) return false;
        same += adv_rank_same_mesh(&other->plan, &candidate->plan);
    }
    return same < ADV_RANK_PER_MESH;
}

double adv_rank_cutoff(enum adv_objective objective, const struct adv_candidate *sorted, int count, int top_k)
{
    int taken[ADV_LIMIT_RANKED];
    int taken_count = 0;
    for (int i = 0; i < count && taken_count < top_k && taken_count < ADV_LIMIT_RANKED; i++)
        if (adds_something(sorted, taken, taken_count, &sorted[i])) taken[taken_count++] = i;
    if (taken_count < top_k) return (double)INFINITY;
    return adv_max(adv_rank_metric(objective, &sorted[taken[taken_count - 1]].estimate),
                   adv_rank_metric(objective, &sorted[0].estimate) * (1 + ADV_RANK_TIE_FRAC));
}

/* Tensor axes count twice: their collectives stand between the matmuls of every layer, the others run beside
 * them. Accumulation and tensors on the host are one more thing each that may go wrong. */
struct adv_simplicity adv_rank_simplicity(const struct adv_candidate *candidate)
{
    const int *ici = candidate->plan.family.ici;
    int tensor = (ici[ADV_AXIS_TENSOR] > 1) + (ici[ADV_AXIS_TENSOR_SEQUENCE] > 1);
    int accumulates = candidate->plan.family.gradient_accumulation_steps > 1;
    int offloads = candidate->estimate.host_bytes_per_host > 0;
    const struct adv_fit_curve curve = adv_estimate_usual_curve(&candidate->estimate);
    double danger_frac = 0.5 * (1.0 + adv_rank_memory_frac(&candidate->estimate));
    double sure_frac = adv_fit_limit_frac(&curve, ADV_RANK_ALMOST_SURE_PROBABILITY);
    double high_frac = candidate->estimate.step_time_high_s / candidate->estimate.step_time_s - 1.0;
    return (struct adv_simplicity){!adv_rank_fits(&candidate->estimate, danger_frac),
                                   candidate->plan.family.quantization != ADV_QUANT_NONE,
                                   !adv_rank_fits(&candidate->estimate, sure_frac),
                                   (int)lround(1e3 * high_frac),
                                   adv_config_axes_count(&candidate->plan) + tensor + accumulates + offloads,
                                   adv_config_departures(&candidate->plan)};
}

bool adv_rank_simpler(struct adv_simplicity a, struct adv_simplicity b)
{
    if (a.dangerous != b.dangerous) return a.dangerous < b.dangerous;
    if (a.quantised != b.quantised) return a.quantised < b.quantised;
    if (a.unsure != b.unsure) return a.unsure < b.unsure;
    if (a.doubt_permille != b.doubt_permille) return a.doubt_permille < b.doubt_permille;
    if (a.axes != b.axes) return a.axes < b.axes;
    return a.keys < b.keys;
}

/* Of two tied plans: the simpler one; where memory is the objective, the faster one, and the simpler one of
 * those that are as fast. */
static bool comes_first(enum adv_objective objective, const struct adv_candidate *a,
                        const struct adv_candidate *b)
{
    const double a_s = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &a->estimate);
    const double b_s = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &b->estimate);
    if (objective == ADV_OBJECTIVE_HBM && a_s != b_s) return a_s < b_s;
    return adv_rank_simpler(adv_rank_simplicity(a), adv_rank_simplicity(b));
}

/* Puts a candidate among those tied with it; stable, so equal ones stay in the order of their metric. */
static void insert_tied(enum adv_objective objective, const struct adv_candidate *sorted, int *tied,
                        int *tied_count, int which)
{
    int at = *tied_count;
    while (at > 0 && comes_first(objective, &sorted[which], &sorted[tied[at - 1]])) at--;
    (void)adv_list_open(tied, sizeof *tied, tied_count, ADV_RANK_KEPT, at);
    tied[at] = which;
}

/* In whole percent; what is sure is not surer than another that is. */
static int sure_percent(const struct adv_estimate *estimate)
{
    struct adv_estimate judged = *estimate;
    adv_estimate_verdict(&judged);
    return (int)lround(1e2 * adv_min(judged.fit_probability, ADV_FIT_SURE_PROBABILITY));
}

bool adv_rank_outdoes(enum adv_objective objective, const struct adv_estimate *a,
                      const struct adv_estimate *b)
{
    return objective != ADV_OBJECTIVE_HBM && adv_rank_metric(objective, a) < adv_rank_metric(objective, b) &&
           sure_percent(a) > sure_percent(b);
}

/* Which of the first `count` another one outdoes. */
static void find_outdone(enum adv_objective objective, const struct adv_candidate *sorted, int count,
                         bool outdone[ADV_RANK_KEPT])
{
    int surest = 0, surest_before = 0; /* of those so far; of those that are predicted better */
    for (int i = 0; i < count; i++) {
        const int sure = objective == ADV_OBJECTIVE_HBM ? 0 : sure_percent(&sorted[i].estimate);
        if (i > 0 && adv_rank_metric(objective, &sorted[i].estimate) >
                         adv_rank_metric(objective, &sorted[i - 1].estimate))
            surest_before = surest;
        outdone[i] = surest_before > sure;
        surest = sure > surest ? sure : surest;
    }
}

/* Plans closer than the tie to the first of their group are of one. Returns how many are in the first. */
static int set_groups(enum adv_objective objective, struct adv_candidate *sorted, int count)
{
    int group = 0, first_count = 0;
    double limit = 0.0;
    for (int i = 0; i < count; i++) {
        const double metric = adv_rank_metric(objective, &sorted[i].estimate);
        if (i == 0 || metric > limit) {
            limit = metric * (1 + ADV_RANK_TIE_FRAC);
            group += i > 0;
        }
        sorted[i].tie_group = group;
        first_count += group == 0;
    }
    return first_count;
}

int adv_rank_select(enum adv_objective objective, struct adv_candidate *sorted, int count, int top_k,
                    bool as_predicted, int *order)
{
    const int tied_with_first = set_groups(objective, sorted, count);
    const int looked_at = as_predicted                      ? 0
                          : tied_with_first < ADV_RANK_KEPT ? tied_with_first
                                                            : ADV_RANK_KEPT;
    int tied[ADV_RANK_KEPT];
    bool outdone[ADV_RANK_KEPT];
    int taken = 0, tied_count = 0;
    find_outdone(objective, sorted, looked_at, outdone);
    for (int pass = 0; pass < 2; pass++) {
        int added = 0;
        for (int i = 0; i < looked_at; i++)
            if (outdone[i] == (pass == 1)) insert_tied(objective, sorted, tied + tied_count, &added, i);
        tied_count += added;
    }
    for (int i = 0; i < tied_count && taken < top_k; i++)
        if (adds_something(sorted, order, taken, &sorted[tied[i]])) order[taken++] = tied[i];
    for (int i = as_predicted ? 0 : tied_with_first; i < count && taken < top_k; i++)
        if (adds_something(sorted, order, taken, &sorted[i])) order[taken++] = i;
    return taken;
}
