/* db_internal.h: what db.c, db_watch.c and db_migrate.c share. Nobody else includes it. */
#pragma once

#include <libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

#include "server/db.h"

struct adv_database {
    char *url;
    bool auto_migrate;
    const struct adv_log *log;
    struct adv_metrics *metrics;
    _Atomic(struct adv_keyring *) keyring; /* NULL: tokens are not the database's affair */
    struct adv_retention retention;
    _Atomic bool tidies; /* `retention` is there and stays as it is */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_int state;           /* enum adv_database_state */
    struct adv_backlog backlog; /* under `lock` */
    bool backlog_known;
    bool stopping, lost;
    pthread_t watcher;
};

/* A statement. NULL: not within `limit_ms`; the connection is then good for nothing but PQfinish. */
PGresult *adv_db_exec(PGconn *connection, const char *sql, struct adv_values values, long limit_ms);

bool adv_db_is_good(const PGresult *result); /* NULL is not */

/* Several statements without values, and the result of the last. */
#define ADV_STATEMENTS adv_db_values(0, NULL)

/* A connection with our timeouts set, or NULL with the reason in `reason` (256 bytes). */
PGconn *adv_db_connect(const char *url, char reason[256]);

/* Brings the schema to the embedded migrations, or (apply false) only checks. Each file runs in its own
 * transaction under an advisory lock. ADV_E_CONFLICT: an applied file was changed, or (apply false) some are
 * missing. */
ADV_MUST_CHECK adv_code adv_db_migrate(PGconn *connection, bool apply, const struct adv_log *log);

/* Reads the tokens that are not revoked into the keyring; a failure is logged and leaves those in force. */
void adv_db_serve_tokens(PGconn *connection, struct adv_keyring *keyring, const struct adv_log *log);

/* A connection was lost: the watcher takes over. */
void adv_database_report_lost(struct adv_database *database);
