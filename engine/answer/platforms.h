/* platforms.h: the same workload searched on every machine that a request names. */
#pragma once

#include "engine/base/arena.h"
#include "engine/json/encode_platforms.h"

struct adv_platform_tour {
    struct adv_platform_jobs jobs; /* freed by the caller, also on error: adv_platform_jobs_free */
    struct adv_platforms_answer answer;
    const json_t *best; /* the plain request of the best machine, owned by `jobs` */
    long evaluations;
    int in_part_count; /* machines on which a part of the space was searched: search.h, left_out */
};

/* Each machine is decoded and searched by itself, for its first plan only. A machine whose request is refused
 * (a batch its devices cannot divide) or where nothing fits becomes a row with the reason. Refused on all:
 * the findings of the first. Each search has memory of its own; `arena` holds the rows alone. */
ADV_MUST_CHECK adv_code adv_platforms_search(const struct adv_catalog *catalog, const json_t *root,
                                             const struct adv_budget *budget, struct adv_arena *arena,
                                             struct adv_platform_tour *tour, adv_err *err);

/* Warns where no machine with a plan ends the training in time. */
void adv_platforms_warn(const struct adv_platform_tour *tour, adv_err *warnings);

/* Whether a decoded request for `machines` asks for no more than the budget (may be NULL) allows.
 * ADV_E_RANGE. */
ADV_MUST_CHECK adv_code adv_budget_check(const struct adv_budget *budget, int machines,
                                         const struct adv_advise_request *request, adv_err *err);
