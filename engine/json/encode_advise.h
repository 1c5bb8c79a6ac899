/* encode_advise.h: the answer to an advise request, complete, and the same as JSON (api.md, POST /v1/advise).
 *
 * answer/ fills the struct, and lets each plan be written where it was told; encoding reads the rest once
 * from top to bottom and computes nothing.
 */
#pragma once

#include "engine/explain/advice.h"
#include "engine/explain/changes.h"
#include "engine/explain/sensitivity.h"
#include "engine/explain/why.h"
#include "engine/json/encode_common.h"
#include "engine/search/search.h"

/* One plan as an answer tells it. NULL: the answer does not tell it of this plan. */
struct adv_told_plan {
    const struct adv_config *config;     /* keys and flags; never NULL */
    const struct adv_estimate *estimate; /* never NULL */
    const struct adv_ledger *ledger;
    const struct adv_advice_list *advice;
    const adv_err *warnings;
    const struct adv_why *why;
    const struct adv_changes *changes;
    const char *written; /* by adv_encode_told; never NULL but of the baseline */
};

struct adv_advise_answer {
    const struct adv_catalog *catalog;
    const struct adv_advise_request *request;
    const struct adv_search_result *result;
    struct adv_told_plan *ranked, *pareto, *near_misses; /* in the order and number of `result`, one array */
    struct adv_told_plan baseline;                       /* of result->has_baseline */
    const struct adv_sensitivities *sensitivities;       /* NULL: not asked for */
    const adv_err *warnings;                             /* of the request */
};

/* Plan `which` of answer->ranked and those behind them, of which all is told, as text in the arena: so that
 * several can be written at once. NULL: out of memory. */
const char *adv_encode_told(const struct adv_advise_answer *answer, int which, struct adv_arena *arena);

/* A new reference. elapsed_ms and evaluations_per_s are null: the engine has no clock. */
json_t *adv_encode_advise(const struct adv_advise_answer *answer);

/* One plan as {config, xla_flags, estimate}; a new reference. */
json_t *adv_encode_told_plan(const struct adv_cluster *cluster, const struct adv_told_plan *plan);
