/* budget.h: how much one request may cost, and whether anybody still waits for it.
 *
 * The engine has no clock and knows no clients: it asks. Every loop whose length a request decides asks once
 * a turn, and a turn takes far less than 50 ms, so that is how soon the engine gives up after the answer
 * turned to true. Asking costs a call; what takes microseconds does not ask.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/err.h"

struct adv_crew; /* crew.h */

struct adv_budget {
    bool (*over)(void *closure); /* true: nobody waits for the answer any more; stays true; NULL = never */
    void *closure;
    int machines_max;      /* that an advise may search; 0 = as many as a request can name */
    int plans_max;         /* machines times search.top_k, and once more with sensitivities; 0 = any */
    struct adv_crew *crew; /* may help; the answer is the same with and without; NULL: nobody does */
};

/* `budget` may be NULL: none. */
static inline bool adv_budget_over(const struct adv_budget *budget)
{
    return budget && budget->over && budget->over(budget->closure);
}

enum { ADV_BUDGET_TURNS = 4096 };

/* For loops whose turns take far less than a microsecond: asks at turn 0 and every ADV_BUDGET_TURNS turns. */
static inline bool adv_budget_over_at(const struct adv_budget *budget, int turn)
{
    return turn % ADV_BUDGET_TURNS == 0 && adv_budget_over(budget);
}

/* ADV_E_TIMEOUT, with its finding. */
static inline adv_code adv_budget_refuse(adv_err *err)
{
    return adv_err_add(err, ADV_E_TIMEOUT, "", "ask for less, or again later",
                       "the request was given up before its answer was complete");
}
