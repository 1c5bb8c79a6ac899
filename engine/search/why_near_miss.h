/* why_near_miss.h: the plans that would have been better but do not fit, and the cheapest change that makes
 * each fit. */
#ifndef ADV_SEARCH_WHY_NEAR_MISS_H
#define ADV_SEARCH_WHY_NEAR_MISS_H

#include "engine/search/price.h"
#include "engine/search/search.h"

/* Fills result->near_misses from what the search priced: plans faster than the best found one, or, when none
 * was found, those nearest to fitting; the one with the cheapest remedy (why_remedy.h) first. Where no change
 * helps any of them, a larger slice that holds the request is named (why_larger.h). ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_near_misses_find(const struct adv_advise_request *request,
                                             const struct adv_constants *constants,
                                             const struct adv_pricer *pricer, struct adv_arena *arena,
                                             struct adv_search_result *result, adv_err *err);

#endif
