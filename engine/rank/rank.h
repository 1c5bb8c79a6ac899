/* rank.h: which plan is better, when two are as good, and how many of a kind an answer holds.
 *
 * Order: by the objective; plans within ADV_RANK_TIE_FRAC of the first of their group count as tied
 * (published repetitions of one configuration differ by 1 to 1.5 %, and the model is not asked to tell plans
 * closer than 3 % apart) and are ordered by safety of the memory verdict, then by simplicity: fewer mesh
 * axes, fewer keys away from MaxText's defaults. At most ADV_RANK_PER_MESH plans of one mesh.
 */
#ifndef ADV_RANK_RANK_H
#define ADV_RANK_RANK_H

#include "engine/rank/candidate.h"

#define ADV_RANK_TIE_FRAC    0.02
#define ADV_RANK_MEMORY_FRAC 0.94 /* the verdict "fits" of cost/estimate.c */
/* A key that gains less than this share of the step is not worth a line in the configuration. */
#define ADV_RANK_KEY_FRAC 0.002
enum {
    ADV_RANK_PER_MESH = 3,
    ADV_RANK_KEPT = 512, /* best plans of families a search holds at once: top_k and its ties */
};

/* Lower is better. Step time, tokens/s and dollars per token order plans of one cluster and workload alike:
 * all are the time of one token. */
double adv_rank_metric(enum adv_objective objective, const struct adv_estimate *estimate);

/* Whether the search may propose the plan: HBM and host memory within `memory_frac` of their limits. The
 * search asks for ADV_RANK_MEMORY_FRAC, where the verdict is still "fits", and for 1 only when nothing fits
 * otherwise: a plan at the very limit is as likely to run out of memory as not. */
bool adv_rank_fits(const struct adv_estimate *estimate, double memory_frac);

bool adv_rank_same_mesh(const struct adv_plan *a, const struct adv_plan *b);

/* The metric of the top_k-th plan if plans were taken by metric alone (at most ADV_RANK_PER_MESH of one
 * mesh), or INFINITY when there are fewer. `sorted` is by metric. No plan slower than (1 + tie) times it can
 * be in the answer. */
double adv_rank_cutoff(enum adv_objective objective, const struct adv_candidate *sorted, int count,
                       int top_k);

/* Puts the answer's order into `order` (indices into `sorted`, by metric), sets tie_group; returns how many
 * <= top_k. */
int adv_rank_select(enum adv_objective objective, const struct adv_model *model, struct adv_candidate *sorted,
                    int count, int top_k, int *order);

#endif
