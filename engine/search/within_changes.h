/* within_changes.h: the best plans that change at most so many keys of a baseline.
 *
 * First each of the best plans found without that limit, and the baseline's own mesh with its best placements
 * and tiles, lends the baseline some of its groups of keys (maxtext/changes.h): all subsets that stay within
 * the limit are priced. Then all plans that change up to so many single keys are gone through
 * (below), which is exact where that space is small enough for the whole limit; beyond, the
 * groups reach further than single keys can.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/search/price.h"

enum { ADV_WITHIN_DONORS = 24, ADV_WITHIN_KEPT = 128 };

/* Fills `best` (room for `capacity`; at most ADV_WITHIN_KEPT), by the objective, without repeats; returns
 * the count. `start` is the request's baseline with the length, the formats and the optimizer that the
 * workload asks for: keys in which the two differ are changes as well, and more than are allowed leave
 * nothing. It is itself among them when it fits. True in *complete: no plan within the limit on single keys
 * is better; false when the space is too large for that, or the budget ran out. */
int adv_search_within(struct adv_pricer *pricer, const struct adv_plan *start,
                      const struct adv_candidate *donors, int donors_count, struct adv_arena *arena,
                      struct adv_candidate *best, int capacity, bool *complete);

/* Keys of the request's baseline that the workload itself changes: between it and `start`. */
int adv_within_least_changes(const struct adv_pricer *pricer, const struct adv_plan *start);

/* ---- Every plan that changes at most so many single keys of a baseline.
 *
 * The keys are those a search sets: mesh degrees, batch and accumulation, context strategy, pipeline shape,
 * remat policy and the place of each open tensor, vocabulary tiling, host offload of the optimizer, kernel
 * choices, attention and expert tiles, layouts, number format where the workload leaves it open, and the
 * switches of the XLA flags that change a prediction. Each has a list of values; pinned keys are left alone.
 * All subsets of up to k keys with all their values are gone through, as long as that is at most
 * ADV_SINGLE_KEYS_VISITS combinations; else for the largest smaller k for which it is. Left out are those
 * that no later key can make legal (degrees that do not multiply to the devices, another global batch) and
 * those that set a key which nothing reads in such a plan (tensor keys under a preset, tiles of a kernel that
 * does not run, …): the plan without it is predicted the same and has a key to spare. */

enum { ADV_SINGLE_KEYS_VISITS = 1000000 };

/* Shows each legal plan of the global batch of the baseline or the workload to `found`; which prices it.
 * Returns the number of keys up to which all were shown: `keys`, when the space is small enough and the
 * budget lasted. */
int adv_single_keys_visit(struct adv_pricer *pricer, const struct adv_plan *baseline, int keys,
                          struct adv_arena *arena, void (*found)(void *context, const struct adv_plan *plan),
                          void *context);
