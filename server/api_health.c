#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/calibrations.h"
#include "server/http.h"
#include "server/json_text.h"
#include "server/monotonic.h"
#include "server/raw_guard.h"

#define STATUS_LIMIT_BYTES  4096
#define STUCK_AFTER_S       2               /* beyond the deadline; giving up takes 50 ms */
#define METRICS_LIMIT_BYTES (1024u * 1024u) /* 48 routes with all their codes and buckets take 200 KiB */

adv_code adv_api_livez(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_text text = adv_text_empty(STATUS_LIMIT_BYTES);
    (void)err;
    adv_text_append(&text, "{\"status\":\"alive\"}");
    return adv_api_reply_printed(exchange, 200, ADV_OK, &text);
}

enum { SEARCH, QUICK, STORE, POOLS };

/* Of all pools. Stuck is a worker that is still at a request whose deadline passed long ago: what should have
 * given up has not; how many are. */
static int read_loads(const struct adv_app *app, struct adv_pool_load loads[POOLS])
{
    struct adv_pool *const pools[] = {
        [SEARCH] = app->engine_pool, [QUICK] = app->quick_pool, [STORE] = app->store_pool};
    const int64_t since_us = adv_monotonic_us() - (adv_app_live(app)->deadline_s + STUCK_AFTER_S) * 1000000;
    int stuck = 0;
    for (int i = 0; i < POOLS; i++) {
        loads[i] = adv_pool_load(pools[i], since_us);
        stuck += loads[i].stuck;
    }
    return stuck;
}

/* Ready means: send work here. A database that is away, or takes no changes, leaves the daemon ready but
 * degraded, because everything but the store goes on; ?require=database makes it count. Which calibrations
 * are in force is known before the first request. */
adv_code adv_api_readyz(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_app *app = exchange->app;
    const char *require = adv_exchange_query(exchange, "require");
    if (require && strcmp(require, "database") != 0)
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/require", NULL, "require is 'database'");
    const char *database = "none";
    enum adv_database_state state = ADV_DATABASE_UP;
    if (app->database) {
        state = adv_database_state(app->database);
        database = adv_database_state_name(state);
    }
    bool draining = atomic_load(&app->draining);
    struct adv_pool_load loads[POOLS];
    const int stuck = read_loads(app, loads);
    bool ready = !draining && stuck == 0 && state != ADV_DATABASE_CONNECTING;
    if (app->database && adv_database_is_readable(app->database) && !adv_calibrations_known(app))
        ready = false;
    if (require && (!app->database || state != ADV_DATABASE_UP)) ready = false;
    const char *status = draining                   ? "draining"
                         : stuck                    ? "stuck"
                         : !ready                   ? "not ready"
                         : state == ADV_DATABASE_UP ? "ready"
                                                    : "degraded";
    struct adv_text text = adv_text_empty(STATUS_LIMIT_BYTES);
    adv_text_append(&text, "{");
    adv_json_text_string(&text, "status", status);
    adv_json_text_string(&text, "database", database);
    adv_text_format(&text, ",\"waiting\":%d,\"running\":%d,\"store_waiting\":%d,\"stuck\":%d}",
                    loads[SEARCH].waiting + loads[QUICK].waiting,
                    loads[SEARCH].running + loads[QUICK].running, loads[STORE].waiting, stuck);
    adv_api_reply_made(exchange, ready ? 200 : 503, &text);
    if (!ready) adv_reply_header(exchange, "Retry-After", "1");
    return ADV_OK;
}

/* The engine's own members, and the engine as in every other answer. */
adv_code adv_api_version(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_text text = adv_text_empty(STATUS_LIMIT_BYTES);
    (void)err;
    adv_api_print_engine(exchange->app, &text);
    return adv_api_reply_printed(exchange, 200, ADV_OK, &text);
}

adv_code adv_api_openapi(struct adv_exchange *exchange, adv_err *err)
{
    (void)err;
    adv_reply_document(exchange, "application/json", &exchange->app->documents->openapi);
    return ADV_OK;
}

/* What waits in the database (NULL: there is none, and nothing waits): the same of every daemon that shares
 * it, to be taken once (max, not sum). Nothing is said while it is not known. */
static void print_backlog(struct adv_database *database, struct adv_text *text)
{
    struct adv_backlog backlog = {0};
    if (database && (!adv_database_is_readable(database) || !adv_database_backlog(database, &backlog)))
        return;
    adv_metrics_print_gauge(text, "verifications_waiting",
                            "Plans that wait for a verifier, of all daemons of the database",
                            (double)backlog.verifications_queued);
    adv_metrics_print_gauge(text, "verifications_running", "Plans that verifiers compile",
                            (double)backlog.verifications_running);
    adv_metrics_print_gauge(text, "verifiers_busy", "Verifiers that hold a plan and renew it",
                            (double)backlog.verifiers_busy);
    adv_metrics_print_gauge(text, "sweep_items_waiting", "Items of sweeps that wait for a daemon",
                            (double)backlog.sweep_items_queued);
    adv_metrics_print_gauge(text, "sweep_items_running", "Items of sweeps that daemons work at",
                            (double)backlog.sweep_items_running);
}

adv_code adv_api_metrics(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_app *app = exchange->app;
    struct adv_text text = adv_text_empty(METRICS_LIMIT_BYTES);
    struct adv_pool_load loads[POOLS];
    const int stuck = read_loads(app, loads);
    (void)err;
    adv_metrics_print(&app->metrics, &text);
    adv_metrics_print_gauge(&text, "queue_depth{pool=\"engine\"}", "Requests waiting for a worker",
                            loads[SEARCH].waiting);
    adv_metrics_print_gauge(&text, "queue_depth{pool=\"quick\"}", NULL, loads[QUICK].waiting);
    adv_metrics_print_gauge(&text, "queue_depth{pool=\"store\"}", NULL, loads[STORE].waiting);
    adv_metrics_print_gauge(&text, "workers_busy{pool=\"engine\"}", "Workers running a request",
                            loads[SEARCH].running);
    adv_metrics_print_gauge(&text, "workers_busy{pool=\"quick\"}", NULL, loads[QUICK].running);
    adv_metrics_print_gauge(&text, "workers_busy{pool=\"store\"}", NULL, loads[STORE].running);
    adv_metrics_print_counter(&text, "connections_refused_total",
                              "Connections whose bytes no two parsers read alike",
                              (double)adv_raw_guard_refused());
    adv_metrics_print_gauge(&text, "answer_cache_bytes", "Memory of the kept answers",
                            (double)adv_answer_cache_bytes(app->answers));
    adv_metrics_print_gauge(&text, "connections_open", "Open client connections",
                            adv_http_connections(app->http));
    adv_metrics_print_gauge(&text, "workers_stuck", "Workers at a request whose deadline has long passed",
                            stuck);
    const bool readable = app->database && adv_database_is_readable(app->database);
    adv_metrics_print_gauge(&text, "database_up", "1 while the database can be used", readable);
    adv_metrics_print_gauge(&text, "database_read_only",
                            "1 while the database can be read and takes no changes",
                            readable && adv_database_state(app->database) == ADV_DATABASE_READ_ONLY);
    print_backlog(app->database, &text);
    char build[256];
    (void)snprintf(build, sizeof build, "build_info{version=\"%.100s\",catalog_hash=\"%.40s\"}",
                   adv_engine_version(), adv_catalog_hash(app->catalog));
    adv_metrics_print_gauge(&text, build, "The program and its catalog", 1.0);
    if (text.overflow) adv_text_free(&text);
    adv_reply_text(exchange, 200, "text/plain; version=0.0.4; charset=utf-8", text.data, text.length_bytes);
    return ADV_OK;
}
