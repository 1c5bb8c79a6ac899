/* keep.h: storing an answer as a run, and telling its reader: run_id and "stored" are added to the answer. */
#ifndef ADV_SERVER_KEEP_H
#define ADV_SERVER_KEEP_H

#include "engine/advise.h"
#include "server/exchange.h"
#include "server/store_runs.h"

#define ADV_LIMIT_STORED_BYTES (64u * 1024u * 1024u) /* an advise with 100 rows of 40 KiB takes 4 MiB */

/* Appends the answer, with run_id and "stored": true, to `response` and stores it; true when it is in the
 * database. false: it is not, for whatever reason (logged, counted); `response` is then the answer with
 * "stored": false. Exception: *outcome ADV_STORE_UNKNOWN_KEY, another request took the key meanwhile, nothing
 * is counted, `response` is empty. `idempotency` may be NULL; `run_id` gets the id when stored, otherwise "".
 */
bool adv_keep(struct adv_exchange *exchange, enum adv_request_kind kind, const char *request,
              const struct adv_answer *answer, const struct adv_idempotency *idempotency,
              struct adv_text *response, char run_id[ADV_UUID_BYTES], enum adv_store_outcome *outcome);

#endif
