/* db_exec.c: statements with an end. libpq waits for a server as long as the connection looks alive, and that
 * of a server that was stopped does. */
#include "server/db_internal.h"
#include "server/monotonic.h"

#include <poll.h>

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
