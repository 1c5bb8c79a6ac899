/* estimate.h: one plan as an answer tells it: its keys and flags, its estimate and what that warns of. */
#pragma once

#include "engine/answer/answer.h"
#include "engine/cost/input.h"
#include "engine/json/encode_advise.h"

/* The context in which plans of one request are told. */
struct adv_teller {
    const struct adv_catalog *catalog;
    const struct adv_advise_request *request;
    const struct adv_constants *constants;
    struct adv_arena *arena; /* holds what is told */
    adv_err *err;
};

/* The plan as keys and flags. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_tell_config(const struct adv_teller *teller, const struct adv_plan *plan,
                                        const struct adv_config **config);

/* Fills told->estimate and told->ledger. With told->config, also told->warnings: those that the configuration
 * gets when it is given back for an estimate. */
ADV_MUST_CHECK adv_code adv_tell_estimate(const struct adv_teller *teller, const struct adv_plan *plan,
                                          struct adv_told_plan *told);

/* Fills told->advice. `reread`: the configuration that the plan was read from; NULL: told->config.
 * `searched`: as in explain/advice.h. */
ADV_MUST_CHECK adv_code adv_tell_advice(const struct adv_teller *teller, const struct adv_plan *plan,
                                        const struct adv_reread *reread, bool searched,
                                        struct adv_told_plan *told);
