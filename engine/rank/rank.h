/* rank.h: which plan is better, when two are as good, and how many of a kind an answer holds.
 *
 * Order: by the objective as it is predicted (adv_rank_metric). Plans within ADV_RANK_TIE_FRAC of the best
 * count as tied with it (the model is not asked to tell them apart; published repetitions of one
 * configuration differ by 1 to 1.5 %), and the surest and simplest strategy that meets memory comes first:
 *  1. one that no other is both faster and surer to fit than: who asks for less sureness is not given a plan
 * that is slower for it;
 *  2. memory that is not dangerous: this speaks where none fits or less sureness is asked for; tight plans
 * that leave half of the margin that "fits" asks for are no worse than the others;
 *  3. matmuls in the format of the activations: fewer bits change the training, and have to pay for it;
 *  4. memory that is almost sure to suffice: of first plans at the certainty that a search asks for by itself
 * the compiler refuses one of 50, and of tied plans one can mostly do without that;
 *  5. a narrower interval of the step time: a kind of plan that was measured before one that nobody
 * published;
 *  6. fewer mesh axes, tensor axes counted twice, gradient accumulation and tensors on the host like one more
 * each;
 *  7. fewer keys away from MaxText's defaults.
 * Where the objective is memory, the faster of tied plans comes first, whatever its kind.
 * At most ADV_RANK_PER_MESH plans of one mesh.
 */
#pragma once

#include "engine/rank/candidate.h"

#define ADV_RANK_TIE_FRAC 0.03
/* Of tied plans that fit with less the others come first: above it the compiler refuses one step in hundreds,
 * between ADV_FIT_SURE_PROBABILITY and it one in forty (tests/compile/report.md, "How sure a plan fits"). */
#define ADV_RANK_ALMOST_SURE_PROBABILITY 0.99
/* A key that gains less than this share of the step is not worth a line in the configuration. */
#define ADV_RANK_KEY_FRAC 0.002
enum {
    ADV_RANK_PER_MESH = 3,
    ADV_RANK_KEPT = 512, /* best plans of families a search holds at once: top_k and its ties */
};

/* Lower is better; the answer is ordered by this, the prediction itself or, where that is asked for, the
 * upper end of its interval (which must be set then). Step time, tokens/s and dollars per token order plans
 * of one cluster and workload alike: all are the time of one token. */
static inline double adv_rank_metric(enum adv_objective objective, const struct adv_estimate *estimate)
{
    if (objective == ADV_OBJECTIVE_HBM) return estimate->hbm_bytes_per_device;
    if (objective == ADV_OBJECTIVE_STEP_TIME_HIGH)
        return estimate->step_time_high_s / estimate->tokens_per_step;
    return estimate->step_time_s / estimate->tokens_per_step;
}

/* Of the memory limits, what plans may take. */
struct adv_rank_share {
    double asked; /* search.memory_frac: of every plan alike */
    double sure;  /* of that, what a plan with nothing on the host may take to fit surely enough */
};

static inline double adv_rank_share_frac(struct adv_rank_share share)
{
    return share.asked * share.sure;
}

/* HBM bytes per device that such a plan may take: one whose bytes are known less well leaves more of what
 * is there for the sake of sureness. Where `sure` is 1 no plan does, and copies that XLA may make are not
 * counted. */
double adv_rank_hbm_room_bytes(const struct adv_estimate *estimate, struct adv_rank_share share);

/* Whether the search may propose the plan: HBM and host memory within their limits' share. The search asks
 * for search.memory_frac, of that for what fits with search.fit_probability or, where none is given, for
 * what the baseline fills if that is more. It asks for the limit itself only when nothing fits otherwise:
 * then an answer's fit_probability is below what was asked for. */
bool adv_rank_fits_share(const struct adv_estimate *estimate, struct adv_rank_share share);

/* The same where nobody asked for less than the limits. */
bool adv_rank_fits(const struct adv_estimate *estimate, double sure);

/* The same for many plans of one cluster: what they leave of the limit depends on the spread alone, of which
 * one model's plans have few. Zero-initialised means empty. */
enum { ADV_RANK_ROOM_ROWS = 3 };
struct adv_rank_room {
    struct adv_rank_room_row {
        struct adv_rank_share share;
        double spread, limit_bytes, bytes;
    } rows[ADV_RANK_ROOM_ROWS];
    unsigned next; /* row to be taken */
};
double adv_rank_room_again(struct adv_rank_room *room, const struct adv_estimate *estimate,
                           struct adv_rank_share share);
bool adv_rank_fits_again(struct adv_rank_room *room, const struct adv_estimate *estimate,
                         struct adv_rank_share share);

/* The share of the limits within which a plan of this estimate's chip fits with ADV_FIT_SURE_PROBABILITY. */
double adv_rank_memory_frac(const struct adv_estimate *estimate);

/* Whether `a` is predicted better than `b` and fits more surely, by a whole percent and up to
 * ADV_FIT_SURE_PROBABILITY. False where the objective is memory. */
bool adv_rank_outdoes(enum adv_objective objective, const struct adv_estimate *a,
                      const struct adv_estimate *b);

/* The order of two tied plans, most important first; less is simpler. */
struct adv_simplicity {
    int dangerous;      /* 1: leaves less than half of the margin that "fits" asks for */
    int quantised;      /* 1: matmuls in fewer bits, which a tie is not worth */
    int unsure;         /* 1: fits with less than ADV_RANK_ALMOST_SURE_PROBABILITY */
    int doubt_permille; /* how far the 90 % interval of the step time goes up */
    int axes; /* mesh axes, tensor axes twice, gradient accumulation and host tensors like one more each */
    int keys; /* away from MaxText's defaults */
};
struct adv_simplicity adv_rank_simplicity(const struct adv_candidate *candidate);
bool adv_rank_simpler(struct adv_simplicity a, struct adv_simplicity b);

bool adv_rank_same_mesh(const struct adv_plan *a, const struct adv_plan *b);

/* What no plan of the answer is above: the metric of the top_k-th plan if plans were taken by it alone (at
 * most ADV_RANK_PER_MESH of one mesh), or, if that is more, of the last that is tied with the best; INFINITY
 * when there are fewer. `sorted` is by metric. */
double adv_rank_cutoff(enum adv_objective objective, const struct adv_candidate *sorted, int count,
                       int top_k);

/* Puts the answer's order into `order` (indices into `sorted`, by metric, with intervals), sets tie_group:
 * plans within ADV_RANK_TIE_FRAC of the first of their group are of one, and only in the first group is the
 * order another than that of the metric. `as_predicted`: not even there, as steps from one configuration are
 * told apart more finely than strategies. Returns how many <= top_k. */
int adv_rank_select(enum adv_objective objective, struct adv_candidate *sorted, int count, int top_k,
                    bool as_predicted, int *order);
