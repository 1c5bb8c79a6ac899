/* keep.h: storing an answer as a run, and telling its reader: run_id and "stored" are added to the answer. */
#pragma once

#include "engine/advise.h"
#include "server/exchange.h"
#include "server/store_runs.h"

#define ADV_LIMIT_STORED_BYTES (64u * 1024u * 1024u) /* an advise with 100 rows of 40 KiB takes 4 MiB */

/* Fills what the answer and this engine say of a run whose id is there, and appends the answer, with run_id
 * and "stored": true, to `response`, which the run refers to. */
void adv_keep_prepare(struct adv_run *run, const struct adv_app *app, enum adv_request_kind kind,
                      const struct adv_answer *answer, struct adv_text *response);

/* ADV_E_FORBIDDEN: the request names another project than `project`, that of the token or sweep it came with:
 * neither that project's runs nor its calibration are its business. "" is every project's. `owner` is what
 * people call it. */
ADV_MUST_CHECK adv_code adv_keep_within(const char *owner, const char *project,
                                        const struct adv_answer *answer, adv_err *err);

/* Queues the first plans of a stored answer that asked for it ("verify") for the real compiler, unless the
 * run has a verification already, and adds `verification_id` to the response: null, with the reason as
 * `verification_refused`, and the code, when it could not be queued. Does nothing for other answers. */
adv_code adv_keep_verify(const struct adv_app *app, struct adv_db *db, const char *principal,
                         const char *run_id, const struct adv_answer *answer, struct adv_text *response,
                         adv_err *err);

/* An answer on its way into the database: what it answers, and what becomes of it. */
struct adv_kept {
    enum adv_request_kind kind;
    const char *request;
    const char *reevaluates; /* id of the run whose request this is; NULL */
    const char *question;    /* its digest, see api_answer.c; NULL: the answer is not found again */
    const struct adv_idempotency *idempotency; /* NULL: there is none */
    /* From adv_keep: */
    struct adv_text response;    /* the answer as its reader gets it */
    char run_id[ADV_UUID_BYTES]; /* "" where it is not stored */
    enum adv_store_outcome outcome;
};

/* Stores the answer and makes the response, with run_id and "stored": true: ADV_OK means that it is in the
 * database. Where it cannot be stored (logged, counted) and the request said "try", the response is the
 * answer with "stored": false and the code ADV_OK all the same; otherwise the code and `err` say why not.
 * Exception: the outcome ADV_STORE_UNKNOWN_KEY, another request took the key meanwhile, nothing is counted,
 * the response is empty. The response is to be freed. Runs on a worker that has a database. */
ADV_MUST_CHECK adv_code adv_keep(struct adv_exchange *exchange, const struct adv_answer *answer,
                                 struct adv_kept *kept, adv_err *err);
