/* why_empty.h: why no combination of a request is legal: the nearest plan, the rule it breaks with its
 * numbers, and what to give up. */
#ifndef ADV_SEARCH_WHY_EMPTY_H
#define ADV_SEARCH_WHY_EMPTY_H

#include "engine/search/space.h"

/* For a space without families. Writes a sentence: of the simplest mesh that honours the pins (fsdp takes the
 * rest) and each split of the batch, the one that breaks fewest rules, what it breaks and what would be
 * right; and which single requirements (a pin, search.axes, batch, length, optimizer) would leave a space of
 * plans if they were given up, as found by asking for each. Scratch comes from `arena`. */
void adv_space_explain_empty(const struct adv_space *space, struct adv_arena *arena, char *text,
                             size_t text_bytes);

#endif
