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

/* The question behind a stored answer. */
struct adv_asked {
    const char *request;
    const char *reevaluates; /* id of the run whose request this is; NULL */
    const char *question;    /* its digest, see api_answer.c; NULL: the answer is not found again */
};

/* Stores the answer and appends it, with run_id and "stored": true, to `response`: ADV_OK means that it is in
 * the database. Where it cannot be stored (logged, counted) and the request said "try", `response` is the
 * answer with "stored": false and the code ADV_OK all the same; otherwise the code and `err` say why not.
 * Exception: *outcome ADV_STORE_UNKNOWN_KEY, another request took the key meanwhile, nothing is counted,
 * `response` is empty. `idempotency` may be NULL; `run_id` gets the id when stored, otherwise "". Runs on a
 * worker that has a database. */
ADV_MUST_CHECK adv_code adv_keep(struct adv_exchange *exchange, enum adv_request_kind kind,
                                 const struct adv_asked *asked, const struct adv_answer *answer,
                                 const struct adv_idempotency *idempotency, struct adv_text *response,
                                 char run_id[ADV_UUID_BYTES], enum adv_store_outcome *outcome, adv_err *err);
