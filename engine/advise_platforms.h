/* advise_platforms.h: the same workload searched on every machine a request names. */
#ifndef ADV_ADVISE_PLATFORMS_H
#define ADV_ADVISE_PLATFORMS_H

#include "engine/base/arena.h"
#include "engine/base/budget.h"
#include "engine/json/decode_platforms.h"
#include "engine/spec/request.h"

struct adv_platforms_answer {
    struct adv_platform_jobs jobs; /* freed by the caller, also on error: adv_platform_jobs_free */
    const json_t *best;            /* the plain request of the best machine, owned by `jobs` */
    json_t *rows;                  /* "platforms" of the answer, a new reference */
    long evaluations;
};

/* Each machine is decoded and searched by itself, for its first plan only; one whose request is refused (a
 * batch its devices cannot divide) or where nothing fits becomes a row with the reason. Refused on all: the
 * findings of the first. Each search has an arena of its own, so that memory does not grow with their number.
 */
/* Whether a decoded request for `machines` asks for no more than the budget (may be NULL) allows.
 * ADV_E_RANGE. */
ADV_MUST_CHECK adv_code adv_budget_check(const struct adv_budget *budget, int machines,
                                         const struct adv_advise_request *request, adv_err *err);

ADV_MUST_CHECK adv_code adv_advise_platforms(const struct adv_catalog *catalog, const json_t *root,
                                             const struct adv_budget *budget,
                                             struct adv_platforms_answer *answer, adv_err *err);

#endif
