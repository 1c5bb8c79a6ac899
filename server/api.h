/* api.h: the handlers that the route table names; one file per resource, api_<resource>.c. */
#ifndef ADV_SERVER_API_H
#define ADV_SERVER_API_H

#include "engine/base/text.h"
#include "engine/advise.h"
#include "server/exchange.h"

void adv_api_answer(
    struct adv_exchange *exchange); /* POST estimate, advise, kernels, lint: route->kind says which */

/* On the HTTP thread: a question that was answered before is answered without a worker. */
bool adv_api_answer_at_once(struct adv_exchange *exchange);

/* ADV_E_FORBIDDEN: the token may not store. */
adv_code adv_api_refuse_store(adv_err *err);

/* Runs the engine for a handler: counts its time and its evaluations, and refuses "store" (ADV_E_FORBIDDEN)
 * to a token that may not write. `answer` needs adv_answer_free only on ADV_OK. */
ADV_MUST_CHECK adv_code adv_api_run_engine(struct adv_exchange *exchange, int kind, const char *json,
                                           size_t json_bytes, struct adv_answer *answer, adv_err *err);

/* The request's Idempotency-Key into `idempotency`, whose key is NULL without one; false with the problem in
 * the reply when it is malformed. */
struct adv_idempotency;
ADV_MUST_CHECK bool adv_api_read_key(struct adv_exchange *exchange, struct adv_idempotency *idempotency);

/* ?limit= of a list's page and ?rank= of an advise run's plan, 50 and 1 without. false with the problem in
 * the reply. */
ADV_MUST_CHECK bool adv_api_read_limit(struct adv_exchange *exchange, int *limit);
ADV_MUST_CHECK bool adv_api_read_rank(struct adv_exchange *exchange, int *rank);
/* The same with ?cursor= and ?since=, NULL when left out, by their form. */
ADV_MUST_CHECK bool adv_api_read_page(struct adv_exchange *exchange, const char *since, const char *cursor,
                                      int *limit);

/* Answers with a page from the store, or with why there is none; `page` is given away. */
void adv_api_reply_page(struct adv_exchange *exchange, adv_code code, struct adv_text *page,
                        const adv_err *err);

/* {"version", "catalog_hash", "calibration"} appended: every answer names the engine it is by. */
#define ADV_LIMIT_ENGINE_BYTES 256 /* what follows; three names */
void adv_api_print_engine(const struct adv_app *app, struct adv_text *json);

/* Answers with the object `json`, which is given away, and the engine added to it. */
void adv_api_reply_made(struct adv_exchange *exchange, int status, struct adv_text *json);

/* Link: <…>; rel="next" for a page that names a next_cursor. */
void adv_api_link_next(struct adv_exchange *exchange, const struct adv_text *page);

void adv_api_catalog_list(struct adv_exchange *exchange);
void adv_api_catalog_entry(struct adv_exchange *exchange);

void adv_api_runs_list(struct adv_exchange *exchange);
void adv_api_run_get(struct adv_exchange *exchange);
void adv_api_run_delete(struct adv_exchange *exchange);
void adv_api_run_patch(struct adv_exchange *exchange);
void adv_api_run_restore(struct adv_exchange *exchange);
void adv_api_run_reevaluate(struct adv_exchange *exchange);
void adv_api_run_artifact(struct adv_exchange *exchange);
void adv_api_artifact(struct adv_exchange *exchange);
void adv_api_measurement_post(struct adv_exchange *exchange);
void adv_api_measurements_list(struct adv_exchange *exchange);
void adv_api_measurement_delete(struct adv_exchange *exchange);
void adv_api_accuracy(struct adv_exchange *exchange);
void adv_api_compare(struct adv_exchange *exchange);
void adv_api_check(struct adv_exchange *exchange);
void adv_api_baseline_get(struct adv_exchange *exchange);
void adv_api_baseline_put(struct adv_exchange *exchange);
void adv_api_baseline_delete(struct adv_exchange *exchange);
void adv_api_baselines_list(struct adv_exchange *exchange);

/* Queues the first plans of a run that has just been stored, and names the verification in the answer
 * ("verification_id"; null where it could not be queued: logged, and asked for again by POST). */
void adv_api_verify_behind(struct adv_exchange *exchange, const char *run_id, const struct adv_answer *answer,
                           struct adv_text *response);

/* The compiler's verdict on plan `rank` of an answer; not known where the answer has no such plan. */
struct adv_verification_word;
ADV_MUST_CHECK adv_code adv_api_word_of(struct adv_exchange *exchange, const char *response, int rank,
                                        struct adv_verification_word *word, adv_err *err);

void adv_api_verification_post(struct adv_exchange *exchange);
void adv_api_verifications_list(struct adv_exchange *exchange);
void adv_api_verification_get(struct adv_exchange *exchange);
void adv_api_verification_events(struct adv_exchange *exchange);
void adv_api_verification_delete(struct adv_exchange *exchange);

void adv_api_sweep_post(struct adv_exchange *exchange);
void adv_api_sweeps_list(struct adv_exchange *exchange);
void adv_api_sweep_get(struct adv_exchange *exchange);
void adv_api_sweep_item_get(struct adv_exchange *exchange);
void adv_api_sweep_events(struct adv_exchange *exchange);
void adv_api_sweep_delete(struct adv_exchange *exchange);

/* Whether the client would rather not wait (Prefer: respond-async), and may have its answer kept. */
bool adv_api_wants_async(const struct adv_exchange *exchange);
/* On a worker that has a database: the request becomes a sweep of one item. */
void adv_api_answer_async(struct adv_exchange *exchange);

void adv_api_calibration_post(struct adv_exchange *exchange);
void adv_api_calibrations_list(struct adv_exchange *exchange);
void adv_api_calibration_get(struct adv_exchange *exchange);
void adv_api_calibration_activate(struct adv_exchange *exchange);
void adv_api_calibration_revert(struct adv_exchange *exchange);

void adv_api_explain_oom(struct adv_exchange *exchange);

void adv_api_livez(struct adv_exchange *exchange);
void adv_api_readyz(struct adv_exchange *exchange);
void adv_api_metrics(struct adv_exchange *exchange);
void adv_api_version(struct adv_exchange *exchange);
void adv_api_openapi(struct adv_exchange *exchange);

/* The web form's files. `adv_api_web_has`: whether a path ("/", "/js/form.js") is one of them. */
void adv_api_web(struct adv_exchange *exchange);
bool adv_api_web_has(const char *path);

#endif
