/* check_sides.h: the two sides of a check: runs, or an estimate made for it.
 *
 * A run of another engine (version, catalog or calibration) is priced again by this one, so that a check
 * compares plans and not engines; what the other engine answered is kept beside it.
 */
#pragma once

#include "server/exchange.h"
#include "server/gate.h"

struct adv_check_side {
    struct adv_gate_side gate;
    char *response; /* the answer that is judged; malloc'ed */
};

/* `request` names them; on an error, whose pointers lie in `request`, nothing is to be freed. */
ADV_MUST_CHECK adv_code adv_check_load_baseline(struct adv_exchange *exchange,
                                                const struct adv_gate_request *request,
                                                struct adv_check_side *side, adv_err *err);
ADV_MUST_CHECK adv_code adv_check_load_candidate(struct adv_exchange *exchange,
                                                 const struct adv_gate_request *request,
                                                 struct adv_check_side *side, adv_err *err);
