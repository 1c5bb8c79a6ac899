/* within_changes.h: the best plans that change at most so many keys of a baseline.
 *
 * First each of the best plans found without that limit, and the baseline's own mesh with its best placements
 * and tiles, lends the baseline some of its groups of keys (maxtext/changes.h): all subsets that stay within
 * the limit are priced. Then all plans that change up to so many single keys are gone through
 * (within_single_keys.h), which is exact where that space is small enough for the whole limit; beyond, the
 * groups reach further than single keys can.
 */
#ifndef ADV_SEARCH_WITHIN_CHANGES_H
#define ADV_SEARCH_WITHIN_CHANGES_H

#include "engine/base/arena.h"
#include "engine/search/price.h"

enum { ADV_WITHIN_DONORS = 24, ADV_WITHIN_KEPT = 128 };

/* Fills `best` (room for `capacity`; at most ADV_WITHIN_KEPT), by cautious metric, without repeats; returns
 * the count. The baseline itself is among them when it fits. True in *complete: no plan within the limit on
 * single keys is better; false when the space is too large for that, or the budget ran out. */
int adv_search_within(struct adv_pricer *pricer, const struct adv_plan *baseline,
                      const struct adv_candidate *donors, int donors_count, struct adv_arena *arena,
                      struct adv_candidate *best, int capacity, bool *complete);

#endif
