/* db.h: the database as the rest of the server sees it; only db*.c know libpq.
 *
 * `struct adv_database` is shared: where the database is, whether it is up, and a watcher thread that
 * connects, applies migrations, checks every few seconds and, when it is away, tries again with growing
 * pauses. `struct adv_db` is one connection and belongs to one thread; it connects on first use and fails at
 * once while the watcher says the database is away, so that no worker waits for a dead host.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/err.h"
#include "engine/base/text.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/request_id.h"
#include "server/tokens.h"

struct adv_database;
struct adv_db;

enum adv_database_state {
    ADV_DATABASE_CONNECTING, /* the first attempt has not ended */
    ADV_DATABASE_UP,
    ADV_DATABASE_AWAY,     /* cannot be reached */
    ADV_DATABASE_REFUSED,  /* reached, but its schema is not ours: see the log */
    ADV_DATABASE_READ_ONLY /* a standby, or a primary that somebody has closed: it answers, and takes nothing
                            */
};

/* Whether a URL can be one of a database at all, of which no attempt to connect would ever come true.
 * Findings quote nothing that may be a part of its password. ADV_E_INVALID: it cannot. */
ADV_MUST_CHECK adv_code adv_database_url_check(const char *url, adv_err *err);

/* Starts the watcher. `url` is a connection URI or key=value words. NULL when memory or threads are
 * exhausted. */
struct adv_database *adv_database_open(const char *url, bool auto_migrate, const struct adv_log *log,
                                       struct adv_metrics *metrics);
/* For how long runs are kept. */
struct adv_retention {
    long keep_days_count;    /* of those that are neither baselines nor measured; 0 = for ever */
    long restore_days_count; /* of deleted ones */
};
/* From now on, and every minute, what is too old goes. */
void adv_database_serve_retention(struct adv_database *database, const struct adv_retention *retention);

/* Reads the tokens now and every two seconds into the keyring, which outlives the database. */
void adv_database_serve_tokens(struct adv_database *database, struct adv_keyring *keyring);
void adv_database_close(struct adv_database *database); /* after all adv_db of it; NULL is fine */

enum adv_database_state adv_database_state(struct adv_database *database);
const char *adv_database_state_name(enum adv_database_state state);
/* Whether what is stored can be read: up, or read-only. */
bool adv_database_is_readable(struct adv_database *database);

/* What waits in the database for all daemons and verifiers, and is being done. */
struct adv_backlog {
    int64_t verifications_queued, verifications_running, verifiers_busy; /* verifiers: with a live lease */
    int64_t sweep_items_queued, sweep_items_running;
};

/* As counted some seconds ago; false: not known, since the database cannot be read. */
bool adv_database_backlog(struct adv_database *database, struct adv_backlog *backlog);

/* Applies the migrations now and leaves; progress and failure are logged. For `tpu-advisor migrate`. */
ADV_MUST_CHECK adv_code adv_database_migrate(const char *url, const struct adv_log *log);

/* A thread's connection; NULL when memory is exhausted. */
struct adv_db *adv_db_open(struct adv_database *database);
void adv_db_close(struct adv_db *db); /* NULL is fine */

/* For whom the statements are from now on: `principal` is noted in the audit of what they write; `project`,
 * when not "", is the only one they see. Both live until the next call; NULL is "". */
void adv_db_act_for(struct adv_db *db, const char *principal, const char *project, bool writes);

/* How long a statement may take from now on, in ms; 0: as long as ever. A shorter one that is over says
 * nothing about the database. NULL is fine. */
void adv_db_limit(struct adv_db *db, long limit_ms);

struct adv_rows {
    void *result;
    int count;
    int affected_count; /* rows changed by INSERT, UPDATE or DELETE */
};

/* The values of a statement, $1 and on: ADV_VALUES(id, ADV_INTEGER(rank), NULL). They live as long as the
 * block they stand in. */
struct adv_values {
    int count;
    const char *const *list;
};
static inline struct adv_values adv_db_values(size_t bytes, const char *const *list)
{
    return (struct adv_values){(int)(bytes / sizeof *list), list};
}
#define ADV_VALUES(...)                                                                                      \
    adv_db_values(sizeof((const char *const[]){__VA_ARGS__}), (const char *const[]){__VA_ARGS__})
#define ADV_NO_VALUES      adv_db_values(0, (const char *const[]){NULL})
#define ADV_INTEGER(value) adv_db_integer(value, (char[24]){0})
#define ADV_NUMBER(value)  adv_db_number(value, (char[32]){0}) /* NULL when it is not finite */
const char *adv_db_integer(long value, char buffer[24]);
const char *adv_db_number(double value, char buffer[32]);

/* SQL behind "to_char(column": a time as answers show it. */
#define ADV_AS_TIME " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

/* One statement with $1 … as text; NULL is SQL's NULL. `rows` is to be freed with adv_rows_free, also on an
 * error (it is then empty); it may be NULL when no result is looked at. ADV_E_STORE: away or timed out;
 * ADV_E_CONFLICT: a key or a reference (SQLSTATE class 23); ADV_E_BAD_REQUEST: a value cannot be read as its
 * type (class 22); ADV_E_FORBIDDEN: another project's; else ADV_E_INTERNAL. No finding quotes values. A
 * statement is never sent twice. */
ADV_MUST_CHECK adv_code adv_db_run(struct adv_db *db, const char *sql, struct adv_values values,
                                   struct adv_rows *rows, adv_err *err);

/* The same, of which only the rows that were changed or found are counted; `rows_count` may be NULL. */
ADV_MUST_CHECK adv_code adv_db_change(struct adv_db *db, const char *sql, struct adv_values values,
                                      int *rows_count, adv_err *err);

/* Runs a statement and appends the first field of its first row. ADV_E_NOT_FOUND without a finding: there is
 * none. */
ADV_MUST_CHECK adv_code adv_db_print(struct adv_db *db, const char *sql, struct adv_values values,
                                     struct adv_text *json, adv_err *err);
/* Runs a statement that gives an id, "" when it gives no row. The ids of new rows are made by the database,
 * uuid_v7(): they sort by its clock, whatever those of daemons say. */
ADV_MUST_CHECK adv_code adv_db_id(struct adv_db *db, const char *sql, struct adv_values values,
                                  char id[ADV_UUID_BYTES], adv_err *err);
/* What has a UUID for its id: "sweep", "a sweep id is a UUID". */
struct adv_db_kind {
    const char *name, *hint;
};
extern const struct adv_db_kind adv_db_run_kind;
/* ADV_E_NOT_FOUND: there is no such … */
adv_code adv_db_not_found(const struct adv_db_kind *kind, const char *id, adv_err *err);
/* The two above, of a statement about the thing $1; ADV_E_NOT_FOUND with a finding: there is none, or nothing
 * was changed or found. */
ADV_MUST_CHECK adv_code adv_db_print_of(struct adv_db *db, const struct adv_db_kind *kind, const char *sql,
                                        struct adv_values values, struct adv_text *json, adv_err *err);
ADV_MUST_CHECK adv_code adv_db_change_of(struct adv_db *db, const struct adv_db_kind *kind, const char *sql,
                                         struct adv_values values, adv_err *err);

/* The field as text, NULL for SQL's NULL, valid until adv_rows_free; as a number, NAN for NULL; whether it is
 * true. */
const char *adv_rows_text(const struct adv_rows *rows, int row, int column);
double adv_rows_number(const struct adv_rows *rows, int row, int column);
bool adv_rows_true(const struct adv_rows *rows, int row, int column);
void adv_rows_free(struct adv_rows *rows);
