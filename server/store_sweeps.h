/* store_sweeps.h: sweeps in the database: asking for them, looking at them, and their items from the side of
 * the daemons that work them off.
 *
 * An item has the states queued, running, done, failed, cancelled. Who takes one holds it by a lease that he
 * renews; the number of the attempt tells him from a later holder, so that an item ends once. All functions
 * wait for the database. Errors are those of adv_db_run besides the named; ADV_E_NOT_FOUND: there is no such
 * sweep (or it is of another project).
 */
#pragma once

#include "engine/base/text.h"
#include "server/db.h"
#include "server/request_id.h"
#include "server/store_runs.h"

#define ADV_SWEEP_ATTEMPTS  5  /* that ended their daemon; then the item fails */
#define ADV_SWEEP_LEASE_S   15 /* without a sign of life, after which another takes an item */
#define ADV_SWEEP_TAKE_MOST 64 /* items at once; see sweeper.c */

struct adv_sweep_order {
    const char *principal, *project, *label, *kind;
    int items_count;
    const char *list;                          /* the requests as a JSON array */
    const struct adv_idempotency *idempotency; /* may be NULL */
};

/* `id` gets the sweep's. *created false: the key has made this sweep before, or, with `id` "", it has stored
 * a run: look it up. ADV_E_INVALID: it has made another. */
ADV_MUST_CHECK adv_code adv_sweep_create(struct adv_db *db, const struct adv_sweep_order *order,
                                         char id[ADV_UUID_BYTES], bool *created, adv_err *err);

/* Which items adv_sweep_print shows. */
struct adv_sweep_page {
    const char *state, *cursor; /* NULL: any, from the first */
    int limit_count;
    const char *engine; /* JSON: told where no item has an answer yet */
};

/* Appends {sweep_id, kind, state, …counts, items[], next_cursor, engine}; items without request and answer
 * but with its warnings. The engine is that of the answers shown, or of most of them. */
ADV_MUST_CHECK adv_code adv_sweep_print(struct adv_db *db, const char *id, const struct adv_sweep_page *page,
                                        struct adv_text *json, adv_err *err);
/* Appends one item, with request, answer and the engine of the answer, `engine` (JSON) where there is none.
 * ADV_E_NOT_FOUND also when there is no such item. */
ADV_MUST_CHECK adv_code adv_sweep_item_print(struct adv_db *db, const char *id, const char *item,
                                             const char *engine, struct adv_text *json, adv_err *err);

struct adv_sweeps_filter {
    const char *project, *state, *after;
    int limit_count;
};
/* {"sweeps": […], "next_cursor": …} appended, newest first. */
ADV_MUST_CHECK adv_code adv_sweeps_list(struct adv_db *db, const struct adv_sweeps_filter *filter,
                                        struct adv_text *json, adv_err *err);

/* Appends server-sent events after the one numbered `after`: an "item" for each item that ended, at most
 * `limit_count`, and when the sweep is over and nothing is left to tell, its "done" or "cancelled" with the
 * id "end". */
ADV_MUST_CHECK adv_code adv_sweep_events(struct adv_db *db, const char *id, long after, int limit_count,
                                         struct adv_text *events, adv_err *err);

/* The sweep that the key has made within its lifetime; "" when there is none. ADV_E_INVALID: with another
 * body. */
ADV_MUST_CHECK adv_code adv_sweep_of_key(struct adv_db *db, const struct adv_idempotency *idempotency,
                                         char id[ADV_UUID_BYTES], adv_err *err);

/* Items that have not ended become cancelled. */
ADV_MUST_CHECK adv_code adv_sweep_cancel(struct adv_db *db, const char *id, adv_err *err);

/* ---- the side of the daemons ---- */

/* What the database knows of the token by which a sweep was made. */
enum adv_sweep_token { ADV_SWEEP_TOKEN_UNKNOWN, ADV_SWEEP_TOKEN_IN_FORCE, ADV_SWEEP_TOKEN_ENDED };

/* Items of one sweep. Pointers live until adv_sweep_batch_free. */
struct adv_sweep_batch {
    struct adv_rows rows;
    const char *sweep_id, *kind, *project, *label, *principal;
    enum adv_sweep_token token; /* the principal's, as the items were taken */
    int count;
    struct adv_sweep_item {
        const char *item, *attempt, *run_id, *request;
    } items[ADV_SWEEP_TAKE_MOST];
};

/* Takes up to `most` waiting items; batch->count 0: none waits. On an error nothing is to be freed. */
ADV_MUST_CHECK adv_code adv_sweep_take(struct adv_db *db, const char *worker, int most,
                                       struct adv_sweep_batch *batch, adv_err *err);
void adv_sweep_batch_free(struct adv_sweep_batch *batch);

/* Renews the lease of the items from `first` on. *held: how many are still this holder's. */
ADV_MUST_CHECK adv_code adv_sweep_renew(struct adv_db *db, const struct adv_sweep_batch *batch, int first,
                                        int *held, adv_err *err);
/* Gives the items from `first` on back unfinished. */
ADV_MUST_CHECK adv_code adv_sweep_release(struct adv_db *db, const struct adv_sweep_batch *batch, int first,
                                          adv_err *err);
/* Ends items: `results` is a JSON array, see sweep_end in the migrations. *held: how many still were this
 * holder's. */
ADV_MUST_CHECK adv_code adv_sweep_end(struct adv_db *db, const char *sweep_id, const char *results, int *held,
                                      adv_err *err);
