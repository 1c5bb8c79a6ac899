#include "server/db_internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/monotonic.h"

#define CHECK_PERIOD_MS  5000 /* while up */
#define TOKENS_PERIOD_MS 2000 /* until a revoked token is refused */
#define CHECK_LIMIT_MS   2000 /* for the server to answer a check */
#define FIRST_PAUSE_MS   50   /* while away, doubled up to the last */
#define LAST_PAUSE_MS    2000
#define TIDY_PERIOD_MS   60000
#define TIDY_LIMIT_MS    6000  /* more than statement_timeout, whose answer says more */
#define MOST_RUNS        "200" /* in a round; a tenth of a second, 288,000 a day of one daemon */

static void set_state(struct adv_database *database, enum adv_database_state state, const char *reason)
{
    if (atomic_exchange(&database->state, (int)state) == (int)state) return;
    struct adv_log_line line;
    adv_log_begin(database->log, &line, state == ADV_DATABASE_UP ? ADV_LOG_INFO : ADV_LOG_WARNING,
                  "database");
    adv_log_string(&line, "state", adv_database_state_name(state));
    if (reason) adv_log_string(&line, "reason", reason);
    adv_log_end(&line);
}

/* Waits until the time is over, a connection is reported lost (when `until_lost`), or the end; false: the
 * end. */
static bool wait_ms(struct adv_database *database, long ms, bool until_lost)
{
    const int64_t until_us = adv_monotonic_us() + ms * 1000;
    bool is_over = false;
    (void)pthread_mutex_lock(&database->lock);
    while (!database->stopping && !(until_lost && database->lost) && !is_over)
        is_over = adv_monotonic_wait(&database->wake, &database->lock, until_us);
    database->lost = false;
    bool go_on = !database->stopping;
    (void)pthread_mutex_unlock(&database->lock);
    return go_on;
}

/* Asks the server something that costs it nothing, and whether it takes changes, which makes the state.
 * False: it has `answered` with an error, or not at all. */
static bool check(struct adv_database *database, PGconn *connection, bool *answered)
{
    PGresult *result = adv_db_exec(connection, "SHOW transaction_read_only", ADV_STATEMENTS, CHECK_LIMIT_MS);
    *answered = result != NULL;
    const bool good = adv_db_is_good(result) && PQntuples(result) == 1;
    const bool read_only = good && strcmp(PQgetvalue(result, 0, 0), "on") == 0;
    if (good)
        set_state(database, read_only ? ADV_DATABASE_READ_ONLY : ADV_DATABASE_UP,
                  read_only ? "the database is read-only" : NULL);
    PQclear(result);
    return good;
}

static void set_backlog(struct adv_database *database, const struct adv_backlog *backlog)
{
    (void)pthread_mutex_lock(&database->lock);
    database->backlog_known = backlog != NULL;
    if (backlog) database->backlog = *backlog;
    (void)pthread_mutex_unlock(&database->lock);
}

/* Counts what waits, by partial indexes. False: no answer in time. */
static bool count_backlog(struct adv_database *database, PGconn *connection)
{
    static const char sql[] =
        "SELECT v.queued, v.running, v.busy, (SELECT count(*) FROM sweep_items WHERE state = 'queued'), "
        "(SELECT count(*) FROM sweep_items WHERE state = 'running') FROM (SELECT "
        "count(*) FILTER (WHERE state = 'queued') AS queued, count(*) FILTER (WHERE state = 'running') AS "
        "running, count(DISTINCT worker) FILTER (WHERE lease_until > clock_timestamp()) AS busy FROM "
        "verification_plans WHERE state IN ('queued', 'running')) v";
    PGresult *result = adv_db_exec(connection, sql, ADV_STATEMENTS, CHECK_LIMIT_MS);
    const bool answered = result != NULL;
    const bool counted = adv_db_is_good(result) && PQntuples(result) == 1;
    int64_t counts[5] = {0};
    for (int i = 0; counted && i < 5; i++) counts[i] = strtoll(PQgetvalue(result, 0, i), NULL, 10);
    PQclear(result);
    const struct adv_backlog backlog = {counts[0], counts[1], counts[2], counts[3], counts[4]};
    set_backlog(database, counted ? &backlog : NULL);
    return answered;
}

/* Connects and brings the schema up to date. */
static PGconn *try_connect(struct adv_database *database)
{
    char reason[256];
    PGconn *connection = adv_db_connect(database->url, reason);
    if (!connection) {
        set_state(database, ADV_DATABASE_AWAY, reason);
        return NULL;
    }
    adv_code code = adv_db_migrate(connection, database->auto_migrate, database->log);
    bool answered = true;
    if (code == ADV_OK && check(database, connection, &answered) && count_backlog(database, connection))
        return connection;
    set_state(database, code == ADV_OK || code == ADV_E_STORE ? ADV_DATABASE_AWAY : ADV_DATABASE_REFUSED,
              code == ADV_OK ? "the server does not answer" : "the schema is not up to date");
    PQfinish(connection);
    return NULL;
}

static void say_tidied(PGconn *connection, const PGresult *result, const struct adv_log *log)
{
    struct adv_log_line line;
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        adv_log_begin(log, &line, ADV_LOG_WARNING, "runs not tidied");
        adv_log_string(&line, "reason", PQerrorMessage(connection));
        adv_log_end(&line);
        return;
    }
    const char *retired = PQgetvalue(result, 0, 0), *purged = PQgetvalue(result, 0, 1);
    if (strcmp(retired, "0") == 0 && strcmp(purged, "0") == 0) return;
    adv_log_begin(log, &line, ADV_LOG_INFO, "runs tidied");
    adv_log_string(&line, "retired", retired);
    adv_log_string(&line, "purged", purged);
    adv_log_end(&line);
}

/* One round of housekeeping, a bounded piece at a time: keys out of date, runs that are too old, deleted runs
 * that nobody restored. What fails is logged. false: no answer in time, the connection is good for nothing.
 */
static bool tidy(PGconn *connection, const struct adv_retention *retention, const struct adv_log *log)
{
    static const char keys[] =
        "DELETE FROM idempotency_keys WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE "
        "created_at < now() - interval '24 hours' LIMIT 1000 FOR UPDATE SKIP LOCKED)";
    static const char runs[] =
        "SELECT retired_count, purged_count FROM tidy_runs($1::int, $2::int, " MOST_RUNS ")";

    PGresult *result = adv_db_exec(connection, keys, ADV_STATEMENTS, TIDY_LIMIT_MS);
    if (!result) return false;
    PQclear(result);
    result = adv_db_exec(
        connection, runs,
        ADV_VALUES(ADV_INTEGER(retention->keep_days_count), ADV_INTEGER(retention->restore_days_count)),
        TIDY_LIMIT_MS);
    if (!result) return false;
    say_tidied(connection, result, log);
    PQclear(result);
    return true;
}

static void *watch(void *argument)
{
    struct adv_database *database = argument;
    PGconn *connection = NULL;
    long pause_ms = FIRST_PAUSE_MS;
    unsigned jitter = (unsigned)(uintptr_t)database; /* spreads the attempts of many daemons */
    int64_t tidy_at_ms = 0;
    bool go_on = true;
    while (go_on) {
        if (!connection) connection = try_connect(database);
        if (!connection) {
            go_on = wait_ms(database, pause_ms + rand_r(&jitter) % (pause_ms / 2 + 1), false);
            pause_ms = pause_ms * 2 > LAST_PAUSE_MS ? LAST_PAUSE_MS : pause_ms * 2;
            continue;
        }
        pause_ms = FIRST_PAUSE_MS;
        struct adv_keyring *keyring = atomic_load(&database->keyring);
        if (keyring && PQstatus(connection) == CONNECTION_OK)
            adv_db_serve_tokens(connection, keyring, database->log);
        go_on = wait_ms(database, keyring ? TOKENS_PERIOD_MS : CHECK_PERIOD_MS, true);
        bool answered = true;
        if (go_on && atomic_load(&database->tidies) && adv_database_state(database) == ADV_DATABASE_UP &&
            adv_monotonic_us() / 1000 >= tidy_at_ms) {
            answered = tidy(connection, &database->retention, database->log);
            tidy_at_ms = adv_monotonic_us() / 1000 + TIDY_PERIOD_MS;
        }
        if (go_on && answered) answered = count_backlog(database, connection);
        if (go_on && (!answered || !check(database, connection, &answered)) &&
            (!answered || PQstatus(connection) != CONNECTION_OK)) {
            set_state(database, ADV_DATABASE_AWAY,
                      answered ? PQerrorMessage(connection) : "the server does not answer");
            set_backlog(database, NULL);
            PQfinish(connection);
            connection = NULL;
        }
    }
    PQfinish(connection);
    return NULL;
}

struct adv_database *adv_database_open(const char *url, bool auto_migrate, const struct adv_log *log,
                                       struct adv_metrics *metrics)
{
    struct adv_database *database = calloc(1, sizeof *database);
    if (!database) return NULL;
    database->url = strdup(url);
    database->auto_migrate = auto_migrate;
    database->log = log;
    database->metrics = metrics;
    (void)pthread_mutex_init(&database->lock, NULL);
    adv_monotonic_init(&database->wake);
    if (database->url && pthread_create(&database->watcher, NULL, watch, database) == 0) return database;
    free(database->url);
    free(database);
    return NULL;
}

void adv_database_serve_tokens(struct adv_database *database, struct adv_keyring *keyring)
{
    atomic_store(&database->keyring, keyring);
    adv_database_report_lost(database); /* wakes the watcher */
}

void adv_database_serve_retention(struct adv_database *database, const struct adv_retention *retention)
{
    database->retention = *retention;
    atomic_store(&database->tidies, true);
    adv_database_report_lost(database); /* wakes the watcher */
}

void adv_database_close(struct adv_database *database)
{
    if (!database) return;
    (void)pthread_mutex_lock(&database->lock);
    database->stopping = true;
    (void)pthread_cond_signal(&database->wake);
    (void)pthread_mutex_unlock(&database->lock);
    (void)pthread_join(database->watcher, NULL);
    (void)pthread_cond_destroy(&database->wake);
    (void)pthread_mutex_destroy(&database->lock);
    free(database->url);
    free(database);
}

enum adv_database_state adv_database_state(struct adv_database *database)
{
    return (enum adv_database_state)atomic_load(&database->state);
}

const char *adv_database_state_name(enum adv_database_state state)
{
    static const char *const names[] = {"connecting", "up", "away", "refused", "read-only"};
    return names[state];
}

bool adv_database_is_readable(struct adv_database *database)
{
    const enum adv_database_state state = adv_database_state(database);
    return state == ADV_DATABASE_UP || state == ADV_DATABASE_READ_ONLY;
}

bool adv_database_backlog(struct adv_database *database, struct adv_backlog *backlog)
{
    (void)pthread_mutex_lock(&database->lock);
    *backlog = database->backlog;
    const bool known = database->backlog_known;
    (void)pthread_mutex_unlock(&database->lock);
    return known;
}

void adv_database_report_lost(struct adv_database *database)
{
    (void)pthread_mutex_lock(&database->lock);
    database->lost = true;
    (void)pthread_cond_signal(&database->wake);
    (void)pthread_mutex_unlock(&database->lock);
}

adv_code adv_database_migrate(const char *url, const struct adv_log *log)
{
    char reason[256];
    PGconn *connection = adv_db_connect(url, reason);
    if (!connection) {
        adv_log_message(log, ADV_LOG_ERROR, "the database cannot be reached: %s", reason);
        return ADV_E_STORE;
    }
    adv_code code = adv_db_migrate(connection, true, log);
    PQfinish(connection);
    return code;
}
