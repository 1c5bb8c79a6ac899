/* encode_advise.h: the result of a search as JSON, with the members of the contract (api.md, POST
 * /v1/advise).
 *
 * Writes each ranked plan's keys and flags, estimates it once more with its ledger, and asks explain/ for its
 * sentences.
 */
#ifndef ADV_JSON_ENCODE_ADVISE_H
#define ADV_JSON_ENCODE_ADVISE_H

#include "engine/base/arena.h"
#include "engine/json/encode_common.h"
#include "engine/search/search.h"

/* The whole answer to the document `root`; a new reference in `answer`. elapsed_ms and evaluations_per_s are
 * null: the engine has no clock, and the same request gives the same bytes. `warnings`, of the request, may
 * be NULL; each plan has those of its own estimate. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_encode_advise(const struct adv_catalog *catalog, const json_t *root,
                                          const struct adv_advise_request *request,
                                          const struct adv_search_result *result, const adv_err *warnings,
                                          struct adv_arena *arena, json_t **answer, adv_err *err);

/* One plan as {config, xla_flags, estimate}, the estimate with its ledger and without advice; a new reference
 * in `row`. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_encode_best(const struct adv_catalog *catalog, const json_t *root,
                                        const struct adv_advise_request *request,
                                        const struct adv_candidate *candidate, struct adv_arena *arena,
                                        json_t **row, adv_err *err);

#endif
