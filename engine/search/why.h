/* why.h: why a request has no plan, or no better one: what breaks the rules, what does not fit, and what
 * would help. */
#pragma once

#include "engine/catalog/constants.h"
#include "engine/cost/estimate.h"
#include "engine/search/price.h"
#include "engine/search/search.h"
#include "engine/search/space.h"
#include "engine/spec/request.h"

/* ---- Why no combination of a request is legal: the nearest plan, the rule it breaks with its
 * numbers, and what to give up. */

/* For a space without families. Writes a sentence: of the simplest mesh that honours the pins (fsdp takes the
 * rest) and each split of the batch, the one that breaks fewest rules, what it breaks and what would be
 * right; and which single requirements (a pin, search.axes, batch, length, optimizer) would leave a space of
 * plans if they were given up, as found by asking for each. Scratch comes from `arena`. */
void adv_space_explain_empty(const struct adv_space *space, struct adv_arena *arena, char *text,
                             size_t text_bytes);

/* ---- The plans that would have been better but do not fit, and the cheapest change that makes
 * each fit. */

/* Fills result->near_misses: result->unsure, then from what the search priced plans faster than the best
 * found one, or, when none was found, those nearest to fitting; the one with the cheapest remedy
 * (adv_remedy_find) first, of those that cost as much the one that becomes fastest. Where no change helps any
 * of them, a larger slice that holds the request is named (adv_larger_slice). ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_near_misses_find(const struct adv_advise_request *request,
                                             const struct adv_constants *constants, struct adv_pricer *pricer,
                                             struct adv_arena *arena, struct adv_search_result *result,
                                             adv_err *err);

/* ---- The cheapest change of a plan that makes it fit its memory. */

struct adv_remedy {
    bool found;
    bool tight;           /* fits, with less left than a search leaves (adv_rank_memory_frac, or what the
                             request asks for) */
    int cost;             /* orders remedies: less is better, INT_MAX where none is found */
    struct adv_plan plan; /* changed, and its estimate; of all savers together where none is found */
    struct adv_estimate estimate;
    char text[ADV_LIMIT_DETAIL + 128]; /* what it is and what it costs, or why nothing helps */
};

/* Changes are rows of a table (tiling, offload, remat, accumulation, formats, batch); each is estimated. In
 * this order: the fastest single change that leaves the training as it is, the fastest that does not (number
 * formats, the largest batch that fits), the fewest of all of them together; then the same with memory filled
 * to the very limit, which the text says; then, of a request that leaves a share of it, with all of the
 * memory. A plan that is tight already is only helped by what leaves room. A rule that `plan` breaks already
 * does not count against a change; nor does a pin, which the text names. */
void adv_remedy_find(const struct adv_advise_request *request, const struct adv_constants *constants,
                     const struct adv_plan *plan, struct adv_remedy *remedy);

/* ---- A larger slice of the same chip that holds a request which does not fit its own. */

/* Doubles the slice (in its most even catalog shape) until one of the plans that need least memory there
 * (frugal.h) fits, and writes " (4x8, 32 devices, would hold it)"; "" when none up to 64 times the size
 * does. That plan is estimated, so the slice is enough; a smaller one between two sizes may be, too. */
void adv_larger_slice(const struct adv_advise_request *request, const struct adv_constants *constants,
                      char *text, size_t text_bytes);
