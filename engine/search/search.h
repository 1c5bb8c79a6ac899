/* search.h: all legal plans of one request, priced, the best kept.
 *
 * space.c enumerates (axes x batch x remat x tiles x vocabulary tiling x formats), run.c prices with
 * adv_estimate_plan and keeps the front. Deterministic; budget in evaluations; allocation only from the arena.
 */
#ifndef ADV_SEARCH_SEARCH_H
#define ADV_SEARCH_SEARCH_H

#include "engine/base/arena.h"
#include "engine/cost/estimate.h"
#include "engine/spec/request.h"

struct adv_candidate {
    struct adv_plan plan;
    struct adv_estimate estimate;
};

struct adv_near_miss {
    struct adv_candidate candidate;
    char reason[ADV_LIMIT_DETAIL]; /* what is short, by how much, and the cheapest change that would fit */
};

struct adv_search_result {
    int found_count;
    struct adv_candidate *found;      /* best first by the objective; at most what rank/ asked for */
    int pareto_count;
    struct adv_candidate *pareto;     /* step time against HBM */
    int near_count;
    struct adv_near_miss *near_misses;
    bool has_baseline;
    struct adv_candidate baseline;
    long considered, illegal, pruned, out_of_memory, evaluated;
    bool exhaustive;
};

ADV_MUST_CHECK adv_code adv_search_run(const struct adv_advise_request *request, const struct adv_constants *constants,
                                       struct adv_arena *arena, struct adv_search_result *result, adv_err *err);

#endif
