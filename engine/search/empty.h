/* empty.h: why no combination of a request is legal: the nearest plan, and the rule it breaks, with its
 * numbers. */
#ifndef ADV_SEARCH_EMPTY_H
#define ADV_SEARCH_EMPTY_H

#include "engine/search/space.h"

/* For a space without families. Writes one sentence: of the simplest mesh that honours the pins (fsdp takes
 * the rest) and each split of the batch, the one that breaks fewest rules, what it breaks and what would be
 * right. */
void adv_space_explain_empty(const struct adv_space *space, char *text, size_t text_bytes);

#endif
