/* within.h: the best plans that change at most so many keys of a baseline.
 *
 * Each of the best plans found without that limit, and the baseline's own mesh with its best placements and
 * tiles, lends the baseline some of its groups of keys (emit/groups.h): all subsets that stay within the
 * limit are priced. Groups are the smallest steps that make sense on their own, so a limit below the size of
 * a group leaves that group as it is.
 */
#ifndef ADV_SEARCH_WITHIN_H
#define ADV_SEARCH_WITHIN_H

#include "engine/base/arena.h"
#include "engine/search/price.h"

enum { ADV_WITHIN_DONORS = 24 };

/* Fills `best` (room for `capacity`), by metric, without repeats; returns the count. The baseline itself is
 * among them when it fits. False in *complete when memory or budget ran out. */
int adv_search_within(struct adv_pricer *pricer, const struct adv_plan *baseline,
                      const struct adv_candidate *donors, int donors_count, struct adv_arena *arena,
                      struct adv_candidate *best, int capacity, bool *complete);

#endif
