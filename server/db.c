#include "server/db_internal.h"

#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/monotonic.h"

#define STATEMENT_LIMIT_MS 6000 /* more than statement_timeout, whose answer says more */
#define CONNECT_LIMIT_MS   3000

struct adv_db {
    struct adv_database *database;
    PGconn *connection;
    const char *principal, *project; /* of whom it acts for; "" = anybody */
    bool writes;
    long limit_ms; /* of a statement; 0 = STATEMENT_LIMIT_MS */
};

/* ---- statements with an end: libpq waits for a server as long as the connection looks alive, and that of a
 * server that was stopped does ---- */

/* Until the socket can be read (or, with POLLOUT among `events`, written); false: the time is over. */
static bool wait_for(PGconn *connection, short events, int64_t until_ms)
{
    struct pollfd socket = {.fd = PQsocket(connection), .events = events};
    const int64_t left_ms = until_ms - adv_monotonic_us() / 1000;
    if (socket.fd < 0) return true; /* the connection is closed: the next call says so */
    return left_ms > 0 && poll(&socket, 1, (int)left_ms) != 0;
}

static bool send_all(PGconn *connection, int64_t until_ms)
{
    while (PQflush(connection) == 1) {
        if (!wait_for(connection, POLLIN | POLLOUT, until_ms)) return false;
        if (!PQconsumeInput(connection)) return true; /* lost: the result will say so */
    }
    return true;
}

PGresult *adv_db_exec(PGconn *connection, const char *sql, struct adv_values values, long limit_ms)
{
    const int64_t until_ms = adv_monotonic_us() / 1000 + limit_ms;
    const int sent = values.list
                         ? PQsendQueryParams(connection, sql, values.count, NULL, values.list, NULL, NULL, 0)
                         : PQsendQuery(connection, sql);
    if (!sent) return PQmakeEmptyPGresult(connection, PGRES_FATAL_ERROR);
    if (!send_all(connection, until_ms)) return NULL;
    PGresult *last = NULL;
    for (;;) {
        while (PQisBusy(connection)) {
            if (!wait_for(connection, POLLIN, until_ms)) {
                PQclear(last);
                return NULL;
            }
            if (!PQconsumeInput(connection)) break;
        }
        PGresult *result = PQgetResult(connection);
        if (!result) break;
        PQclear(last);
        last = result;
    }
    return last ? last : PQmakeEmptyPGresult(connection, PGRES_FATAL_ERROR);
}

bool adv_db_is_good(const PGresult *result)
{
    return PQresultStatus(result) == PGRES_TUPLES_OK || PQresultStatus(result) == PGRES_COMMAND_OK;
}

/* ---- connections ---- */

/* Notices of the server (a table that exists already, its own shutdown) are no news: failures come with
 * results. */
static void drop_notice(void *closure, const char *message)
{
    (void)closure;
    (void)message;
}

/* A bare name, which libpq takes for that of a database: what was meant for more has one of these. */
static bool is_bare_name(const char *url)
{
    return strpbrk(url, "=:/@") == NULL;
}

/* The mistake in the words of libpq, where they quote names only: others quote what may be a part of the
 * password. */
static const char *harmless_words(const char *message)
{
    static const char *const beginnings[] = {"invalid URI query parameter", "invalid connection option"};
    for (size_t i = 0; message && i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(message, beginnings[i], strlen(beginnings[i])) == 0) return message;
    return "it cannot be read";
}

adv_code adv_database_url_check(const char *url, adv_err *err)
{
    static const char form[] =
        "postgresql://user:password@host:5432/name, in which special characters of the password are "
        "written as %40 for @, or host=… dbname=… with 'quoted values'";
    char *message = NULL;
    adv_code code = ADV_OK;
    if (adv_text_has_control(url))
        return adv_err_add(
            err, ADV_E_INVALID, "", form,
            "database_url: it has a line break or another control character, at its end maybe");
    if (is_bare_name(url)) return ADV_OK;
    PQconninfoOption *options = PQconninfoParse(url, &message);
    const char *words = harmless_words(message);
    if (!options)
        code =
            adv_err_add(err, ADV_E_INVALID, "", form, "database_url: %.*s", (int)strcspn(words, "\n"), words);
    for (PQconninfoOption *option = options; option && option->keyword; option++)
        if (strcmp(option->keyword, "host") == 0 && option->val && strchr(option->val, '@') > option->val)
            code = adv_err_add(err, ADV_E_INVALID, "", form,
                               "database_url: there is an @ too many before its host");
    PQconninfoFree(options);
    PQfreemem(message);
    return code;
}

/* Values before the URL in the list are defaults: the URL's own win. A dead peer is noticed within 10 s. */
PGconn *adv_db_connect(const char *url, char reason[256])
{
    const char *const names[] = {"connect_timeout",
                                 "tcp_user_timeout",
                                 "keepalives_idle",
                                 "client_encoding",
                                 "fallback_application_name",
                                 "dbname",
                                 NULL};
    const char *const values[] = {"3", "10000", "30", "UTF8", "tpu-advisor", url, NULL};
    PGconn *connection = PQconnectdbParams(names, values, 1);
    if (connection && PQstatus(connection) == CONNECTION_OK) {
        (void)PQsetNoticeProcessor(connection, drop_notice, NULL);
        PGresult *result =
            PQsetnonblocking(connection, 1) != 0
                ? NULL
                : adv_db_exec(connection,
                              "SET statement_timeout = '5s'; SET lock_timeout = '2s'; "
                              "SET idle_in_transaction_session_timeout = '10s'; SET timezone = 'UTC'",
                              ADV_STATEMENTS, CONNECT_LIMIT_MS);
        bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
        if (good) return connection;
    }
    (void)snprintf(reason, 256, "%s", connection ? PQerrorMessage(connection) : "out of memory");
    reason[strcspn(reason, "\n")] = '\0';
    PQfinish(connection);
    return NULL;
}

struct adv_db *adv_db_open(struct adv_database *database)
{
    struct adv_db *db = calloc(1, sizeof *db);
    if (!db) return NULL;
    db->database = database;
    db->principal = db->project = "";
    return db;
}

void adv_db_close(struct adv_db *db)
{
    if (!db) return;
    PQfinish(db->connection);
    free(db);
}

static void drop_connection(struct adv_db *db)
{
    PQfinish(db->connection);
    db->connection = NULL;
}

static adv_code away(adv_err *err)
{
    return adv_err_add(err, ADV_E_STORE, "", "estimates, advice, kernels and the catalog go on working",
                       "the database cannot be reached");
}

/* A server has nothing to say on an idle connection but farewell (or that its settings were reloaded): either
 * way a new connection, made before a statement is sent, is cheaper than a statement of unknown fate. */
static bool spoke_unasked(PGconn *connection)
{
    struct pollfd waiting = {.fd = PQsocket(connection), .events = POLLIN};
    return poll(&waiting, 1, 0) != 0;
}

static adv_code make_ready(struct adv_db *db, adv_err *err)
{
    if (db->connection && spoke_unasked(db->connection)) drop_connection(db);
    if (db->connection) return ADV_OK;
    if (!adv_database_is_readable(db->database)) return away(err);
    char reason[256];
    db->connection = adv_db_connect(db->database->url, reason);
    if (db->connection) return ADV_OK;
    adv_metrics_add(db->database->metrics, ADV_COUNTER_DB_LOST, 1);
    adv_database_report_lost(db->database);
    return away(err);
}

/* What will be over some day, by classes of SQLSTATE: the same statement may then go well. NULL: nothing of
 * that kind. */
static const char *passing_trouble(const char *state)
{
    static const struct {
        const char *state_class, *detail;
    } rows[] = {
        {"40", "the database has taken back what two requests changed at once"},
        {"53", "the database is out of resources"}, /* its disk is full, say */
        {"57", "the database was told to stop this"},
        {"58", "the database cannot read or write its files"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strncmp(state, rows[i].state_class, 2) == 0) return rows[i].detail;
    return NULL;
}

/* What the rules of the tables say of values that a client sent, or of rows that two clients want at once:
 * the database works, and who counts its errors is not to be woken. */
static bool is_refusal(const struct adv_db *db, const char *state)
{
    return strncmp(state, "22", 2) == 0 || strncmp(state, "23", 2) == 0 ||
           (strcmp(state, "42501") == 0 && db->project[0]);
}

static adv_code classify(struct adv_db *db, const PGresult *result, adv_err *err)
{
    struct adv_metrics *metrics = db->database->metrics;
    /* After a lost connection there is no SQLSTATE: the connection's state says it. */
    if (PQstatus(db->connection) != CONNECTION_OK) {
        drop_connection(db);
        adv_metrics_add(metrics, ADV_COUNTER_DB_LOST, 1);
        adv_database_report_lost(db->database);
        return away(err);
    }
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (!state) state = "?????";
    bool timeout = strcmp(state, "57014") == 0 || strcmp(state, "55P03") == 0;
    adv_metrics_add(metrics,
                    timeout                 ? ADV_COUNTER_DB_TIMEOUT
                    : is_refusal(db, state) ? ADV_COUNTER_DB_REFUSED
                                            : ADV_COUNTER_DB_OTHER,
                    1);
    if (timeout) return adv_err_add(err, ADV_E_STORE, "", NULL, "the database took too long");
    if (strncmp(state, "23", 2) == 0)
        return adv_err_add(err, ADV_E_CONFLICT, "", NULL, "the database refuses: %s",
                           PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    if (strncmp(state, "22", 2) == 0)
        return adv_err_add(err, ADV_E_BAD_REQUEST, "", NULL, "a value is not of its type");
    if (strcmp(state, "42501") == 0 && db->project[0])
        return adv_err_add(err, ADV_E_FORBIDDEN, "", "use a token of that project, or of none",
                           "the token is for the project '%.95s'", db->project);
    const char *passing = passing_trouble(state);
    if (passing) return adv_err_add(err, ADV_E_STORE, "", "try again", "%s", passing);
    if (strcmp(state, "25006") == 0) { /* a standby, or a primary that somebody has closed */
        if (adv_database_state(db->database) == ADV_DATABASE_UP)
            adv_database_report_lost(db->database); /* the watcher looks at once */
        return adv_err_add(err, ADV_E_STORE, "", "what is stored can be read", "the database is read-only");
    }
    if (strcmp(state, "42501") == 0)
        return adv_err_add(err, ADV_E_STORE, "", "sql/roles.sql gives the daemon's role its rights",
                           "the database refuses: %.200s",
                           PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
    return adv_err_add(err, ADV_E_INTERNAL, "", NULL, "the database reports %.5s", state);
}

/* The server said nothing, not even that its own time limit is over: it is stopped, or the way to it is cut.
 */
static adv_code too_long(struct adv_db *db, adv_err *err)
{
    drop_connection(db);
    adv_metrics_add(db->database->metrics, ADV_COUNTER_DB_TIMEOUT, 1);
    if (!db->limit_ms) adv_database_report_lost(db->database);
    return adv_err_add(err, ADV_E_STORE, "", "estimates, advice, kernels and the catalog go on working",
                       "the database did not answer");
}

void adv_db_limit(struct adv_db *db, long limit_ms)
{
    if (db) db->limit_ms = limit_ms;
}

void adv_db_act_for(struct adv_db *db, const char *principal, const char *project, bool writes)
{
    if (!db) return;
    db->principal = principal ? principal : "";
    db->project = project ? project : "";
    db->writes = writes;
}

/* Settings of one transaction, so that a pooler which hands the session on takes nothing along. */
static const char *begin_for(struct adv_db *db, char *sql, size_t sql_bytes)
{
    char *principal = PQescapeLiteral(db->connection, db->principal, strlen(db->principal));
    char *project = PQescapeLiteral(db->connection, db->project, strlen(db->project));
    int length = -1;
    if (principal && project)
        length = snprintf(sql, sql_bytes,
                          "BEGIN; SELECT set_config('tpu_advisor.principal', %s, true), "
                          "set_config('tpu_advisor.project', %s, true)%s",
                          principal, project, db->project[0] ? "; SET LOCAL ROLE tpu_advisor_project" : "");
    PQfreemem(principal);
    PQfreemem(project);
    return length > 0 && (size_t)length < sql_bytes ? sql : NULL;
}

/* The statement, in a transaction of whom it is for where that matters. NULL: no answer in time. */
static PGresult *run_for(struct adv_db *db, const char *sql, struct adv_values values)
{
    char begin[1024];
    const long limit_ms = db->limit_ms ? db->limit_ms : STATEMENT_LIMIT_MS;
    if (!db->project[0] && !(db->writes && db->principal[0]))
        return adv_db_exec(db->connection, sql, values, limit_ms);
    if (!begin_for(db, begin, sizeof begin)) return PQmakeEmptyPGresult(db->connection, PGRES_FATAL_ERROR);
    PGresult *result = adv_db_exec(db->connection, begin, ADV_STATEMENTS, limit_ms);
    if (adv_db_is_good(result)) {
        PQclear(result);
        result = adv_db_exec(db->connection, sql, values, limit_ms);
    }
    if (!result) return NULL;
    PGresult *end =
        adv_db_exec(db->connection, adv_db_is_good(result) ? "COMMIT" : "ROLLBACK", ADV_STATEMENTS, limit_ms);
    if (end && (adv_db_is_good(end) || !adv_db_is_good(result))) {
        PQclear(end);
        return result; /* what it was, and committed if it was good */
    }
    PQclear(result);
    return end;
}

adv_code adv_db_run(struct adv_db *db, const char *sql, struct adv_values values, struct adv_rows *rows,
                    adv_err *err)
{
    if (rows) memset(rows, 0, sizeof *rows);
    if (!db)
        return adv_err_add(err, ADV_E_STORE, "", "start the daemon with --database-url",
                           "no database is configured");
    adv_code code = make_ready(db, err);
    if (code) return code;
    adv_metrics_add(db->database->metrics, ADV_COUNTER_DB_QUERIES, 1);
    PGresult *result = run_for(db, sql, values);
    if (!result) return too_long(db, err);
    if (!adv_db_is_good(result)) {
        code = classify(db, result, err);
        PQclear(result);
        return code;
    }
    if (!rows) {
        PQclear(result);
        return ADV_OK;
    }
    rows->result = result;
    rows->count = PQntuples(result);
    rows->affected_count = atoi(PQcmdTuples(result));
    return ADV_OK;
}

const char *adv_rows_text(const struct adv_rows *rows, int row, int column)
{
    return PQgetisnull(rows->result, row, column) ? NULL : PQgetvalue(rows->result, row, column);
}

double adv_rows_number(const struct adv_rows *rows, int row, int column)
{
    const char *text = adv_rows_text(rows, row, column);
    return text ? strtod(text, NULL) : (double)NAN;
}

bool adv_rows_true(const struct adv_rows *rows, int row, int column)
{
    const char *text = adv_rows_text(rows, row, column);
    return text && *text == 't';
}

void adv_rows_free(struct adv_rows *rows)
{
    PQclear(rows->result);
    memset(rows, 0, sizeof *rows);
}

adv_code adv_db_change(struct adv_db *db, const char *sql, struct adv_values values, int *rows_count,
                       adv_err *err)
{
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, values, &rows, err);
    if (rows_count) *rows_count = rows.affected_count;
    if (!code) adv_rows_free(&rows);
    return code;
}

adv_code adv_db_print(struct adv_db *db, const char *sql, struct adv_values values, struct adv_text *json,
                      adv_err *err)
{
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, values, &rows, err);
    if (code) return code;
    const char *text = rows.count > 0 ? adv_rows_text(&rows, 0, 0) : NULL;
    if (text) adv_text_append(json, text);
    adv_rows_free(&rows);
    return text ? ADV_OK : ADV_E_NOT_FOUND;
}

adv_code adv_db_id(struct adv_db *db, const char *sql, struct adv_values values, char id[ADV_UUID_BYTES],
                   adv_err *err)
{
    struct adv_rows rows;
    const adv_code code = adv_db_run(db, sql, values, &rows, err);
    (void)snprintf(id, ADV_UUID_BYTES, "%s", !code && rows.count > 0 ? adv_rows_text(&rows, 0, 0) : "");
    adv_rows_free(&rows);
    return code;
}

const struct adv_db_kind adv_db_run_kind = {"run", "a run id is a UUID"};

adv_code adv_db_not_found(const struct adv_db_kind *kind, const char *id, adv_err *err)
{
    return adv_err_add(err, ADV_E_NOT_FOUND, "", kind->hint, "there is no %s '%.64s'", kind->name, id);
}

adv_code adv_db_print_of(struct adv_db *db, const struct adv_db_kind *kind, const char *sql,
                         struct adv_values values, struct adv_text *json, adv_err *err)
{
    const char *id = values.list[0];
    const adv_code code = adv_uuid_valid(id) ? adv_db_print(db, sql, values, json, err) : ADV_E_NOT_FOUND;
    return code == ADV_E_NOT_FOUND ? adv_db_not_found(kind, id, err) : code;
}

adv_code adv_db_change_of(struct adv_db *db, const struct adv_db_kind *kind, const char *sql,
                          struct adv_values values, adv_err *err)
{
    int found = 0;
    const char *id = values.list[0];
    const adv_code code = adv_uuid_valid(id) ? adv_db_change(db, sql, values, &found, err) : ADV_OK;
    return code || found ? code : adv_db_not_found(kind, id, err);
}

const char *adv_db_integer(long value, char buffer[24])
{
    (void)snprintf(buffer, 24, "%ld", value);
    return buffer;
}

const char *adv_db_number(double value, char buffer[32])
{
    if (!isfinite(value)) return NULL;
    (void)snprintf(buffer, 32, "%.17g", value);
    return buffer;
}
