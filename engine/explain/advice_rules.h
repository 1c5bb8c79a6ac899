/* advice_rules.h: what the rules of advice.c share; nobody else needs it. */
#pragma once

#include "engine/base/arena.h"
#include "engine/explain/advice.h"
#include "engine/spec/request.h"

/* One plan under review. */
struct adv_review {
    const struct adv_estimate_input *input;
    const struct adv_plan *plan;
    const struct adv_estimate *estimate;
    const struct adv_ledger *ledger;
    const struct adv_reread *reread; /* may be NULL */
    bool searched;                   /* see adv_advice_find */
    struct adv_arena arena;          /* of the review, freed at its end */
    struct adv_advise_request
        *request; /* the plan as a search request, for the parts of the search that rules use */
    struct adv_advice_list *list;
};

typedef void adv_advice_rule(struct adv_review *review);

/* Changes that save time, in advice_rules.c; ends with NULL. */
extern adv_advice_rule *const adv_advice_time_rules[];

/* Estimates `changed`. False: it breaks a rule, or brings a warning, that the plan does not; unsupported; or
 * it breaks a memory limit that the plan keeps. */
bool adv_review_try(const struct adv_review *review, const struct adv_plan *changed,
                    struct adv_estimate *estimate);

/* Adds the advice to change the plan into `changed` when that saves at least `least_gain_frac` of the time of
 * a token; the numbers are appended to the message. Returns whether it was added. */
bool adv_review_offer(struct adv_review *review, enum adv_severity severity, const char *code,
                      const struct adv_plan *changed, double least_gain_frac, const char *format, ...)
    ADV_PRINTF(6, 7);

/* Adds a remark; `changed` (may be NULL) gives the keys. Gain unknown. */
void adv_review_remark(struct adv_review *review, enum adv_severity severity, const char *code,
                       const struct adv_plan *changed, const char *format, ...) ADV_PRINTF(5, 6);
