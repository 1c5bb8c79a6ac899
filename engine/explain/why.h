/* why.h: why a ranked plan stands where it stands, in sentences whose numbers come from ledgers.
 *
 * The sentences name the bound of the step, the use of memory, the difference to the neighbour in the answer
 * and, for the first plan, what the next family (tensor, context, expert parallelism) would cost instead:
 * that plan is estimated too. A setting that is there because recipes of the chip have it, and that the
 * plan's own price speaks against, is named with that price.
 */
#pragma once

#include "engine/search/search.h"

enum { ADV_WHY_SENTENCES = 10 };

struct adv_why {
    int count;
    char sentences[ADV_WHY_SENTENCES][ADV_LIMIT_DETAIL];
};

/* Explains result->found[index]; `ledger` is that plan's. Some ten estimates for index 0, one to three for
 * the others. */
void adv_why_explain(const struct adv_advise_request *request, const struct adv_constants *constants,
                     const struct adv_search_result *result, int index, const struct adv_ledger *ledger,
                     struct adv_why *why);
