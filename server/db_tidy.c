/* db_tidy.c: housekeeping in the database, a bounded piece at a time: keys out of date, runs that are too
 * old, deleted runs that nobody restored. */
#include "server/db_internal.h"

#include <stdio.h>
#include <string.h>

#define TIDY_LIMIT_MS 6000  /* more than statement_timeout, whose answer says more */
#define MOST_RUNS     "200" /* in a round; a tenth of a second, 288,000 a day of one daemon */

static void say(PGconn *connection, const PGresult *result, const struct adv_log *log)
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

bool adv_db_tidy(PGconn *connection, const struct adv_retention *retention, const struct adv_log *log)
{
    static const char keys[] =
        "DELETE FROM idempotency_keys WHERE ctid IN (SELECT ctid FROM idempotency_keys WHERE "
        "created_at < now() - interval '24 hours' LIMIT 1000)";
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
    say(connection, result, log);
    PQclear(result);
    return true;
}
