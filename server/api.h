/* api.h: the handlers that the route table names; one file per resource, api_<resource>.c. */
#pragma once

#include "engine/base/text.h"
#include "engine/advise.h"
#include "server/exchange.h"

adv_handler adv_api_answer; /* POST estimate, advise, kernels, lint: route->kind says which */

/* On the HTTP thread: a question that was answered before is answered without a worker. */
bool adv_api_answer_at_once(struct adv_exchange *exchange);

/* ADV_E_BUSY: there was no room where the request would have gone on. */
adv_code adv_api_refuse_busy(const struct adv_exchange *exchange, adv_err *err);

/* Runs the engine for a handler: counts its time and its evaluations, and refuses "store" (ADV_E_FORBIDDEN)
 * to a token that may not write. `answer` needs adv_answer_free only on ADV_OK. */
ADV_MUST_CHECK adv_code adv_api_run_engine(struct adv_exchange *exchange, int kind, const char *json,
                                           size_t json_bytes, struct adv_answer *answer, adv_err *err);

/* The request's Idempotency-Key into `idempotency`, whose key is NULL without one. */
struct adv_idempotency;
ADV_MUST_CHECK adv_code adv_api_read_key(const struct adv_exchange *exchange,
                                         struct adv_idempotency *idempotency, adv_err *err);

/* Fills the reply from an earlier answer with the key, if there is one: a stored run's, or a sweep of one
 * that was made in its place. A database that is away is no obstacle. ADV_E_INVALID: with another request. */
ADV_MUST_CHECK adv_code adv_api_replay(struct adv_exchange *exchange,
                                       const struct adv_idempotency *idempotency, adv_err *err);
ADV_MUST_CHECK adv_code adv_api_replay_sweep(struct adv_exchange *exchange,
                                             const struct adv_idempotency *idempotency, adv_err *err);

/* ?limit= of a list's page and ?rank= of an advise run's plan, 50 and 1 without. */
ADV_MUST_CHECK adv_code adv_api_read_limit(const struct adv_exchange *exchange, int *limit, adv_err *err);
ADV_MUST_CHECK adv_code adv_api_read_rank(const struct adv_exchange *exchange, int *rank, adv_err *err);
/* The same with ?cursor= and ?since=, NULL when left out, by their form. */
ADV_MUST_CHECK adv_code adv_api_read_page(const struct adv_exchange *exchange, const char *since,
                                          const char *cursor, int *limit, adv_err *err);
/* A switch of the query, false when left out. */
ADV_MUST_CHECK adv_code adv_api_read_switch(const struct adv_exchange *exchange, const char *name,
                                            bool *value, adv_err *err);
/* ?chip= as runs are stored with it: of an alias, in any case, the chip's own name; NULL: not asked. A name
 * that no chip has is refused: a list without rows would say that nothing ran on it. */
ADV_MUST_CHECK adv_code adv_api_read_chip(const struct adv_exchange *exchange, const char **chip,
                                          adv_err *err);
/* ADV_E_BAD_REQUEST: ?cursor= is none of this list's. */
adv_code adv_api_refuse_cursor(adv_err *err);

/* Answers with a page that the store printed; `code` is whether it did and is returned. `page` is given away.
 */
adv_code adv_api_reply_page(struct adv_exchange *exchange, adv_code code, struct adv_text *page,
                            adv_err *err);

/* The same with any object. */
adv_code adv_api_reply_printed(struct adv_exchange *exchange, int status, adv_code code,
                               struct adv_text *json);
/* And with one that names its engine itself: that of the numbers in it. */
adv_code adv_api_reply_named(struct adv_exchange *exchange, int status, adv_code code, struct adv_text *json);
/* Logs what went wrong beside an answer that stands. */
void adv_api_warn(const struct adv_exchange *exchange, const char *message, const adv_err *err);
/* 204 where `code` is ADV_OK; returns it. */
adv_code adv_api_reply_done(struct adv_exchange *exchange, adv_code code);

/* {"version", "catalog_hash", "calibration"} appended: every answer names the engine it is by. */
#define ADV_LIMIT_ENGINE_BYTES 256 /* what follows; three names */
void adv_api_print_engine(const struct adv_app *app, struct adv_text *json);

/* Answers with the object `json`, which is given away, and the engine added to it. */
void adv_api_reply_made(struct adv_exchange *exchange, int status, struct adv_text *json);

/* Link: <…>; rel="next" for a page that names a next_cursor. */
void adv_api_link_next(struct adv_exchange *exchange, const struct adv_text *page);

adv_handler adv_api_catalog_list, adv_api_catalog_entry;

adv_handler adv_api_runs_list, adv_api_run_get, adv_api_run_delete, adv_api_run_patch, adv_api_run_restore,
    adv_api_run_reevaluate, adv_api_run_artifact, adv_api_artifact, adv_api_measurement_post,
    adv_api_measurements_list, adv_api_measurement_delete, adv_api_accuracy, adv_api_compare, adv_api_check,
    adv_api_baseline_get, adv_api_baseline_put, adv_api_baseline_delete, adv_api_baselines_list;

/* The compiler's verdict on plan `rank` of an answer; not known where the answer has no such plan. */
struct adv_verification_word;
ADV_MUST_CHECK adv_code adv_api_word_of(struct adv_exchange *exchange, const char *response, int rank,
                                        struct adv_verification_word *word, adv_err *err);

adv_handler adv_api_verification_post, adv_api_verifications_list, adv_api_verification_get,
    adv_api_verification_events, adv_api_verification_delete;

adv_handler adv_api_sweep_post, adv_api_sweeps_list, adv_api_sweep_get, adv_api_sweep_item_get,
    adv_api_sweep_events, adv_api_sweep_delete;

/* Whether the client would rather not wait (Prefer: respond-async), and may have its answer kept. */
bool adv_api_wants_async(const struct adv_exchange *exchange);
/* On a worker that has a database: the request becomes a sweep of one item. */
adv_handler adv_api_answer_async;

adv_handler adv_api_calibration_post, adv_api_calibrations_list, adv_api_calibration_get,
    adv_api_calibration_activate, adv_api_calibration_revert;

adv_handler adv_api_explain_oom;

adv_handler adv_api_livez, adv_api_readyz, adv_api_metrics, adv_api_version, adv_api_openapi;

/* The web form's files. `adv_api_web_has`: whether a path ("/", "/js/form.js") is one of them. */
adv_handler adv_api_web;
bool adv_api_web_has(const char *path);
