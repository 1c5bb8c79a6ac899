#include "server/db_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/embed.h"
#include "server/sha256.h"

#define LIMIT_MS 660000       /* more than the statement_timeout of a migration */
#define LOCK_KEY "7232814201" /* any constant; all daemons use the same */

static bool command(PGconn *connection, const char *sql)
{
    PGresult *result = adv_db_exec(connection, sql, ADV_STATEMENTS, LIMIT_MS);
    const bool good = adv_db_is_good(result);
    PQclear(result);
    return good;
}

static adv_code failed(PGconn *connection, const char *what, const struct adv_log *log)
{
    struct adv_log_line line;
    adv_log_begin(log, &line, ADV_LOG_ERROR, "migration failed");
    adv_log_string(&line, "what", what);
    adv_log_string(&line, "reason", PQerrorMessage(connection));
    adv_log_end(&line);
    if (PQstatus(connection) != CONNECTION_OK) return ADV_E_STORE;
    (void)command(connection, "ROLLBACK");
    return ADV_E_INTERNAL;
}

enum applied { APPLIED_SAME, APPLIED_OTHER, APPLIED_NOT, APPLIED_UNKNOWN };

/* Whether the table of migrations has this file. */
static enum applied find_applied(PGconn *connection, const char *version, const char *digest)
{
    /* Asked of the catalog's rows: to_regclass would answer from a cache that a lock does not refresh. */
    static const char sql[] =
        "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'schema_migrations' AND relkind = 'r' "
        "AND relnamespace = current_schema()::regnamespace)";
    PGresult *result = adv_db_exec(connection, sql, ADV_STATEMENTS, LIMIT_MS);
    bool known = PQresultStatus(result) == PGRES_TUPLES_OK;
    bool exists = known && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    if (!exists) return known ? APPLIED_NOT : APPLIED_UNKNOWN;
    result = adv_db_exec(connection, "SELECT sha256 FROM schema_migrations WHERE version = $1",
                         ADV_VALUES(version), LIMIT_MS);
    enum applied applied = APPLIED_UNKNOWN;
    if (PQresultStatus(result) == PGRES_TUPLES_OK) {
        applied = APPLIED_NOT;
        if (PQntuples(result))
            applied = strcmp(PQgetvalue(result, 0, 0), digest) == 0 ? APPLIED_SAME : APPLIED_OTHER;
    }
    PQclear(result);
    return applied;
}

/* In one transaction: takes the lock, looks again, runs the file, notes it. */
static adv_code apply_file(PGconn *connection, const struct adv_embedded_file *file, const char *version,
                           const char *digest, const struct adv_log *log)
{
    if (!command(connection, "BEGIN") || !command(connection, "SET LOCAL lock_timeout = '60s'") ||
        !command(connection, "SET LOCAL statement_timeout = '600s'") ||
        !command(connection, "SELECT pg_advisory_xact_lock(" LOCK_KEY ")"))
        return failed(connection, file->name, log);
    enum applied applied = find_applied(connection, version, digest);
    if (applied == APPLIED_SAME)
        return command(connection, "COMMIT") ? ADV_OK : failed(connection, file->name, log);
    if (applied != APPLIED_NOT) return failed(connection, file->name, log);
    if (!command(
            connection,
            "CREATE TABLE IF NOT EXISTS schema_migrations (version integer PRIMARY KEY, name text NOT NULL, "
            "sha256 text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())") ||
        !command(connection, (const char *)file->data))
        return failed(connection, file->name, log);

    PGresult *result =
        adv_db_exec(connection, "INSERT INTO schema_migrations (version, name, sha256) VALUES ($1, $2, $3)",
                    ADV_VALUES(version, file->name, digest), LIMIT_MS);
    const bool noted = adv_db_is_good(result);
    PQclear(result);
    if (!noted || !command(connection, "COMMIT")) return failed(connection, file->name, log);
    adv_log_message(log, ADV_LOG_INFO, "migration %s applied", file->name);
    return ADV_OK;
}

static adv_code migrate_file(PGconn *connection, const struct adv_embedded_file *file, bool apply,
                             const struct adv_log *log)
{
    char digest[ADV_SHA256_HEX];
    adv_sha256_hex(file->data, file->length_bytes, digest);
    char version[16];
    (void)snprintf(version, sizeof version, "%d", atoi(file->name));
    switch (find_applied(connection, version, digest)) {
    case APPLIED_SAME:
        return ADV_OK;
    case APPLIED_OTHER:
        adv_log_message(
            log, ADV_LOG_ERROR,
            "migration %s was applied with other content; the database belongs to another version",
            file->name);
        return ADV_E_CONFLICT;
    case APPLIED_UNKNOWN:
        return failed(connection, file->name, log);
    case APPLIED_NOT:
        break;
    }
    if (apply) return apply_file(connection, file, version, digest, log);
    adv_log_message(log, ADV_LOG_ERROR, "migration %s is not applied; run `tpu-advisor migrate`", file->name);
    return ADV_E_CONFLICT;
}

adv_code adv_db_migrate(PGconn *connection, bool apply, const struct adv_log *log)
{
    for (const struct adv_embedded_file *file = adv_embedded_sql; file->name; file++) {
        adv_code code = migrate_file(connection, file, apply, log);
        if (code) return code;
    }
    return ADV_OK;
}
