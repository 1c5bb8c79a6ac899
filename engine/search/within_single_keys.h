/* within_single_keys.h: every plan that changes at most so many single keys of a baseline.
 *
 * The keys are those a search sets: mesh degrees, batch and accumulation, context strategy, pipeline shape,
 * remat policy and the place of each open tensor, vocabulary tiling, host offload of the optimizer, kernel
 * choices, attention and expert tiles, layouts, number format where the workload leaves it open, and the
 * switches of the XLA flags that change a prediction. Each has a list of values; pinned keys are left alone.
 * All subsets of up to k keys with all their values are gone through, as long as that is at most
 * ADV_SINGLE_KEYS_VISITS combinations; else for the largest smaller k for which it is. Left out are those
 * that no later key can make legal (degrees that do not multiply to the devices, another global batch) and
 * those that set a key which nothing reads in such a plan (tensor keys under a preset, tiles of a kernel that
 * does not run, …): the plan without it is predicted the same and has a key to spare.
 */
#ifndef ADV_SEARCH_WITHIN_SINGLE_KEYS_H
#define ADV_SEARCH_WITHIN_SINGLE_KEYS_H

#include "engine/base/arena.h"
#include "engine/search/price.h"

enum { ADV_SINGLE_KEYS_VISITS = 1000000 };

/* Shows each legal plan of the global batch of the baseline or the workload to `found`; which prices it.
 * Returns the number of keys up to which all were shown: `keys`, when the space is small enough and the
 * budget lasted. */
int adv_single_keys_visit(struct adv_pricer *pricer, const struct adv_plan *baseline, int keys,
                          struct adv_arena *arena, void (*found)(void *context, const struct adv_plan *plan),
                          void *context);

#endif
