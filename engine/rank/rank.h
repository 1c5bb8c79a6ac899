/* rank.h: which plan is better, when two are as good, and how many of a kind an answer holds.
 *
 * Order: by the objective, where a time counts at the upper end of its 90 % interval (adv_rank_cautious): a
 * plan of a kind that nobody has published has to be faster by as much as its interval is wider, which is
 * what somebody asks of it who books the machine. Among plans of one kind that is the order of the
 * predictions. Plans within ADV_RANK_TIE_FRAC of the first of their group count as tied (published
 * repetitions of one configuration differ by 1 to 1.5 %, and the model is not asked to tell plans closer than
 * 3 % apart) and the simplest strategy that meets memory comes first:
 *  1. memory that is not dangerous: a search proposes plans of the verdict "fits" whenever there are any, so
 * this only speaks where none fits; tight plans that leave half of the margin that "fits" asks for are no
 * worse than the others;
 *  2. fewer mesh axes, tensor axes counted twice, gradient accumulation and tensors on the host like one more
 * each;
 *  3. fewer keys away from MaxText's defaults.
 * At most ADV_RANK_PER_MESH plans of one mesh.
 */
#pragma once

#include "engine/rank/candidate.h"

#define ADV_RANK_TIE_FRAC 0.02
/* A key that gains less than this share of the step is not worth a line in the configuration. */
#define ADV_RANK_KEY_FRAC 0.002
enum {
    ADV_RANK_PER_MESH = 3,
    ADV_RANK_KEPT = 512, /* best plans of families a search holds at once: top_k and its ties */
};

/* Lower is better; the prediction itself. Step time, tokens/s and dollars per token order plans of one
 * cluster and workload alike: all are the time of one token. */
static inline double adv_rank_metric(enum adv_objective objective, const struct adv_estimate *estimate)
{
    if (objective == ADV_OBJECTIVE_HBM) return estimate->hbm_bytes_per_device;
    return estimate->step_time_s / estimate->tokens_per_step;
}

/* The answer is ordered by this: the metric at the upper end of the interval (which must be set); HBM as it
 * is. */
double adv_rank_cautious(enum adv_objective objective, const struct adv_estimate *estimate);

/* HBM bytes per device that such a plan may take when one with nothing on the host may take `memory_frac` of
 * the limit: a plan whose bytes are known less well leaves more. At 1 every plan may take the limit, and
 * copies that XLA may make are not counted. */
double adv_rank_hbm_room_bytes(const struct adv_estimate *estimate, double memory_frac);

/* Whether the search may propose the plan: HBM and host memory within `memory_frac` of their limits. The
 * search asks for search.memory_frac times adv_rank_memory_frac(), or for what the baseline takes if that is
 * more, and for the limit itself only when nothing fits otherwise: then an answer's fit_probability is
 * below what was asked for. */
bool adv_rank_fits(const struct adv_estimate *estimate, double memory_frac);

/* The same for many plans of one cluster: what they leave of the limit depends on the spread alone, of which
 * there are two. Zero-initialised means empty. */
struct adv_rank_room {
    struct adv_rank_room_row {
        double memory_frac, spread, limit_bytes, bytes;
    } rows[2];
};
double adv_rank_room_again(struct adv_rank_room *room, const struct adv_estimate *estimate,
                           double memory_frac);
bool adv_rank_fits_again(struct adv_rank_room *room, const struct adv_estimate *estimate, double memory_frac);

/* The share of the limits within which a plan of this estimate's chip fits with ADV_FIT_SURE_PROBABILITY. */
double adv_rank_memory_frac(const struct adv_estimate *estimate);

/* The order of two tied plans, most important first; less is simpler. */
struct adv_simplicity {
    int dangerous; /* 1: leaves less than half of the margin that "fits" asks for */
    int axes; /* mesh axes, tensor axes twice, gradient accumulation and host tensors like one more each */
    int keys; /* away from MaxText's defaults */
};
struct adv_simplicity adv_rank_simplicity(const struct adv_candidate *candidate);
bool adv_rank_simpler(struct adv_simplicity a, struct adv_simplicity b);

bool adv_rank_same_mesh(const struct adv_plan *a, const struct adv_plan *b);

/* The cautious metric of the top_k-th plan if plans were taken by it alone (at most ADV_RANK_PER_MESH of one
 * mesh), or INFINITY when there are fewer. `sorted` is by that metric. No plan slower than (1 + tie) times it
 * can be in the answer. */
double adv_rank_cutoff(enum adv_objective objective, const struct adv_candidate *sorted, int count,
                       int top_k);

/* Puts the answer's order into `order` (indices into `sorted`, by cautious metric), sets tie_group; returns
 * how many
 * <= top_k. */
int adv_rank_select(enum adv_objective objective, struct adv_candidate *sorted, int count, int top_k,
                    int *order);
