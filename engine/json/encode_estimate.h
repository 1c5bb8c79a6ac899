/* encode_estimate.h: an estimate as JSON, with the members of the contract (api.md, POST /v1/estimate).
 *
 * Reads the estimate, the ledger and the advice; computes nothing but sums. Used for the estimate itself and
 * for every plan an advise answer holds.
 */
#pragma once

#include "engine/cost/estimate.h"
#include "engine/explain/advice.h"
#include "engine/json/encode_common.h"

/* `ledger` is that of the estimate. `advice` NULL: an empty array.
 * `warnings` may be NULL. New reference; NULL when memory is exhausted. */
json_t *adv_encode_estimate(const struct adv_cluster *cluster, const struct adv_estimate *estimate,
                            const struct adv_ledger *ledger, const struct adv_advice_list *advice,
                            const adv_err *warnings);

/* The whole answer: the estimate, the job and configuration as understood, and the engine's name tag. */
json_t *adv_encode_estimate_answer(const struct adv_catalog *catalog,
                                   const struct adv_estimate_request *request,
                                   const struct adv_estimate *estimate, const struct adv_ledger *ledger,
                                   const struct adv_advice_list *advice, const adv_err *warnings);
