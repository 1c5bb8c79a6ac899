/* advice.h: what would make one estimated plan better, each piece priced by estimating the changed plan.
 *
 * Rules are rows of a table in advice.c; a rule proposes a change of keys, the change is checked for legality
 * and estimated, and its gain is the difference: never a typed-in number. A piece without a gain (NAN) is a
 * remark. Pure and deterministic; some hundred estimates at most; thread safe.
 */
#pragma once

#include "engine/cost/estimate.h"
#include "engine/maxtext/read.h"

enum adv_severity { ADV_SEVERITY_INFO, ADV_SEVERITY_WARNING, ADV_SEVERITY_ERROR };
const char *adv_severity_name(enum adv_severity severity); /* "info" "warning" "error" */

enum { ADV_ADVICE_CHANGES = 64 }; /* all tiles of both kinds of kernels are 37 */

struct adv_advice_change {
    char key[ADV_LIMIT_NAME]; /* a MaxText key, or an XLA flag without dashes */
    char value_json[48];      /* the value to set, as JSON text */
};

struct adv_advice {
    enum adv_severity severity;
    const char *code; /* stable, static: "attention_tiles", "memory_tight", … */
    char message[ADV_LIMIT_DETAIL];
    int changes_count; /* 0: a remark, nothing to change */
    struct adv_advice_change changes[ADV_ADVICE_CHANGES];
    double gain_frac; /* step time saved over the step time now; NAN when not a matter of time */
};

struct adv_advice_list {
    int count;
    struct adv_advice items[ADV_LIMIT_ADVICE]; /* errors first, then by gain */
};

/* `ledger` and `estimate` are those of `input`. `reread`: the configuration that the plan was read from,
 * which with the changes of a piece of advice reads as exactly the plan that was priced; NULL: the changes
 * are those between the plans. `searched`: placements and tiles are the best that a search found
 * for this mesh and batch, and are not looked for again. Always answers; an empty list is a fine plan. */
void adv_advice_find(const struct adv_estimate_input *input, const struct adv_estimate *estimate,
                     const struct adv_ledger *ledger, const struct adv_reread *reread, bool searched,
                     struct adv_advice_list *list);
