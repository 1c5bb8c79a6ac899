/* search.h: all legal plans of one request, priced, the best kept.
 *
 * 1. A family fixes mesh, batch, strategies and formats; space.c enumerates all legal ones (space_*.c: what
 * is varied, and what is set to one good value).
 * 2. Inside a family it is open where tensors are kept (remat_space.h). A relaxed plan, all on the device,
 *    bounds the family's time from below.
 * 3. Families are solved best bound first (run_families.c), each exactly by branch and bound over its tensors
 *    (remat_solve.c), until no further bound can enter the answer.
 * 4. A limited budget starts with a plan that is likely to fit (frugal.h), and every later plan can only
 *    improve on it. run.c lists the passes, the budget and the compromises.
 * 5. With max_changes the answer is steps from the baseline (within_*.c).
 * 6. A faster plan that may fit is looked for among the nearest and the best (run_unsure.c): a near miss.
 *    Requests without a plan get the reason and a remedy (why_*.c).
 * 7. A helper, where one is idle, prices families ahead (in_order.h, tape.h): taken in order, what it found
 *    gives the same answer.
 *
 * Deterministic. The budget counts evaluations. All memory is of the arena, but for a helper's.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/maxtext/read.h"
#include "engine/rank/candidate.h"
#include "engine/search/cloud.h"

enum {
    ADV_SEARCH_BUDGET = 1000000, /* evaluations when the request names no limit */
    ADV_SEARCH_NEAR = 5,         /* near misses reported */
    ADV_SEARCH_PARETO = 48,      /* points of the front kept */
};

/* A plan that would gain less is not worth the reader's time as a near miss. */
#define ADV_WORTH_TELLING_FRAC 0.01

struct adv_near_miss {
    struct adv_candidate candidate;
    char reason[3 * ADV_LIMIT_DETAIL]; /* what is short, by how much, and the cheapest change that would fit;
                                          of a plan that may fit, how likely it does */
};

struct adv_search_result {
    int found_count;
    struct adv_candidate *found;      /* best first by the objective; at most request->top_k */
    const struct adv_candidate *next; /* what comes after found[0], in the answer or not; NULL: nothing that
                                         fits and differs was found */
    int pareto_count;
    struct adv_candidate *pareto; /* step time against HBM, fastest first, of all plans evaluated that fit:
                                     run.c sees to both ends */
    bool has_unsure; /* faster than found[], and fits with less certainty than is asked for (run_unsure.c) */
    struct adv_candidate unsure; /* the first near miss */
    double unsure_probability;   /* search.fit_probability that ranks it */
    int near_count;
    struct adv_near_miss *near_misses;
    bool has_baseline;
    struct adv_candidate baseline;
    const struct adv_reread *baseline_reread; /* as it was given to the search */
    struct adv_plan base; /* the request's base plan with the house choices: what every plan starts from */
    long considered, illegal, pruned, out_of_memory,
        left_out;                  /* families: enumerated = the sum of these and those solved; left out are
                                      those that the request's memory has no room for */
    long evaluated;                /* plans priced */
    double memory_frac;            /* of the memory limits, that the ranked plans were allowed: see rank.h */
    bool compromised;              /* they were allowed more than is asked for: nothing fitted into that */
    const struct adv_cloud *cloud; /* of all plans priced; NULL: the request does not include it */
    bool exhaustive; /* no plan of the space can be better than found[]: no budget or memory cut */
    /* when no combination is legal: the nearest, what it breaks, and what would work; when none can be
     * priced, or the budget found none that fits: what would do; else "" */
    char empty_why[2 * ADV_LIMIT_DETAIL];
};

/* `baseline`: the configuration that the request's baseline was read from, in which changes are counted;
 * NULL: they are counted between plans. ADV_E_INVALID, ADV_E_RANGE: the workload itself is impossible (batch,
 * objective without a price). ADV_E_REQUEST_MEMORY: there is room for no combination. No plan that fits is
 * not an error: found_count is 0 and the near misses say what is short. */
ADV_MUST_CHECK adv_code adv_search_run(const struct adv_advise_request *request,
                                       const struct adv_reread *baseline,
                                       const struct adv_constants *constants, struct adv_arena *arena,
                                       struct adv_search_result *result, adv_err *err);
