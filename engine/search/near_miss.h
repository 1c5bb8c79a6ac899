/* near_miss.h: the plans that would have been better but do not fit, and the cheapest change that makes each
 * fit. */
#ifndef ADV_SEARCH_NEAR_MISS_H
#define ADV_SEARCH_NEAR_MISS_H

#include "engine/search/price.h"
#include "engine/search/search.h"

/* Fills result->near_misses from what the search priced: plans faster than the best found one, or, when none
 * was found, those nearest to fitting. The changes tried are rows of a table (tiling, offload, remat,
 * accumulation, formats); each is estimated. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_near_misses_find(const struct adv_advise_request *request,
                                             const struct adv_constants *constants,
                                             const struct adv_pricer *pricer, struct adv_arena *arena,
                                             struct adv_search_result *result, adv_err *err);

/* The cheapest single change, or the shortest prefix of all changes, that makes `plan` fit; writes what it is
 * and what it costs into `text` (bounded) and the changed plan into `fitting` (may be NULL). False: nothing
 * in the table helps. */
bool adv_near_miss_remedy(const struct adv_model *model, const struct adv_cluster *cluster,
                          const struct adv_constants *constants, const struct adv_plan *plan, char *text,
                          size_t text_bytes, struct adv_plan *fitting, struct adv_estimate *fitting_estimate);

#endif
