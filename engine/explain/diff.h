/* diff.h: which time terms account for the difference of two plans. */
#pragma once

#include "engine/cost/ledger.h"

struct adv_term_move {
    const char *name;         /* of the term, static */
    double before_s, after_s; /* exposed seconds in each plan; 0 where the plan has no such term */
};

/* Exposed seconds by term, largest change first; terms of either ledger, at most ADV_LIMIT_LEDGER_TERMS. The
 * changes add up to the difference of the two step times. Returns the count. */
int adv_diff_terms(const struct adv_ledger *before, const struct adv_ledger *after,
                   struct adv_term_move moves[ADV_LIMIT_LEDGER_TERMS]);

/* Exposed seconds of all terms of any of the groups, bits of enum adv_term_group. */
double adv_diff_group_s(const struct adv_ledger *ledger, unsigned groups);
