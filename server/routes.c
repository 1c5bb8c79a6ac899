#include "server/routes.h"

#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/metrics.h"
#include "server/tokens.h"

#define JSON "application/json"
#define JSON_OR_YAML                                                                                         \
    "application/json application/yaml application/x-yaml text/yaml text/plain" /* or a command line */

/* Adding a resource = adding rows here and the same paths in openapi.yaml. */
static const struct adv_route routes[] = {
    {"POST", "/v1/estimate", "estimate", adv_api_answer, ADV_ROUTE_ENGINE, ADV_SCOPE_READ, JSON,
     ADV_REQUEST_ESTIMATE, JSON},
    {"POST", "/v1/advise", "advise", adv_api_answer, ADV_ROUTE_ENGINE, ADV_SCOPE_READ, JSON,
     ADV_REQUEST_ADVISE, JSON},
    {"POST", "/v1/kernels/simulate", "simulateKernel", adv_api_answer, ADV_ROUTE_ENGINE, ADV_SCOPE_READ, JSON,
     ADV_REQUEST_SIMULATE, JSON},
    {"POST", "/v1/kernels/tune", "tuneKernel", adv_api_answer, ADV_ROUTE_ENGINE, ADV_SCOPE_READ, JSON,
     ADV_REQUEST_TUNE, JSON},
    {"POST", "/v1/lint", "lint", adv_api_answer, ADV_ROUTE_ENGINE, ADV_SCOPE_READ, JSON_OR_YAML,
     ADV_REQUEST_LINT, JSON},
    {"GET", "/v1/catalog/{collection}", "listCatalog", adv_api_catalog_list, ADV_ROUTE_INLINE, ADV_SCOPE_READ,
     NULL, 0, JSON},
    {"GET", "/v1/catalog/{collection}/{name}", "getCatalogEntry", adv_api_catalog_entry, ADV_ROUTE_INLINE,
     ADV_SCOPE_READ, NULL, 0, JSON},
    {"GET", "/v1/runs", "listRuns", adv_api_runs_list, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, JSON},
    {"GET", "/v1/runs/{run_id}", "getRun", adv_api_run_get, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, JSON},
    {"DELETE", "/v1/runs/{run_id}", "deleteRun", adv_api_run_delete, ADV_ROUTE_STORE, ADV_SCOPE_ADMIN, NULL,
     0, NULL},
    {"GET", "/v1/runs/{run_id}/artifacts/{name}", "getRunArtifact", adv_api_run_artifact, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, NULL},
    {"POST", "/v1/runs/{run_id}/measurements", "postMeasurement", adv_api_measurement_post, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, "application/json text/plain", 0, JSON},
    {"GET", "/v1/runs/{run_id}/measurements", "listMeasurements", adv_api_measurements_list, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, JSON},
    {"DELETE", "/v1/runs/{run_id}/measurements/{measurement_id}", "deleteMeasurement",
     adv_api_measurement_delete, ADV_ROUTE_STORE, ADV_SCOPE_ADMIN, NULL, 0, NULL},
    {"GET", "/v1/accuracy", "getAccuracy", adv_api_accuracy, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, JSON},
    {"GET", "/v1/compare", "compareRuns", adv_api_compare, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, JSON},
    {"POST", "/v1/checks", "check", adv_api_check, ADV_ROUTE_ENGINE, ADV_SCOPE_READ, JSON, 0, NULL},
    {"GET", "/v1/baselines/{project}/{label}", "getBaseline", adv_api_baseline_get, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, JSON},
    {"PUT", "/v1/baselines/{project}/{label}", "putBaseline", adv_api_baseline_put, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, JSON, 0, JSON},
    {"GET", "/v1/openapi.json", "getOpenapi", adv_api_openapi, ADV_ROUTE_INLINE, 0, NULL, 0, JSON},
    {"GET", "/livez", "getLivez", adv_api_livez, ADV_ROUTE_INLINE, 0, NULL, 0, NULL},
    {"GET", "/readyz", "getReadyz", adv_api_readyz, ADV_ROUTE_INLINE, 0, NULL, 0, NULL},
    {"GET", "/metrics", "getMetrics", adv_api_metrics, ADV_ROUTE_INLINE, 0, NULL, 0, NULL},
    {"GET", "/version", "getVersion", adv_api_version, ADV_ROUTE_INLINE, 0, NULL, 0, JSON},
    {"GET", "/", "getWebForm", adv_api_web, ADV_ROUTE_INLINE, 0, NULL, 0, NULL},
};

#define ROUTES_COUNT ((int)(sizeof routes / sizeof routes[0]))
_Static_assert(ROUTES_COUNT < ADV_LIMIT_ROUTES, "metrics has a row per route and one more");

/* Matches segment by segment; parameters are copied when `exchange` is given. */
static bool match(const char *template, const char *path, struct adv_exchange *exchange)
{
    int parameters = 0;
    while (*template && *path) {
        if (*template != '{') {
            if (*template ++ != *path++) return false;
            continue;
        }
        size_t length = strcspn(path, "/");
        if (length == 0) return false;
        if (exchange) {
            char *copy = adv_arena_alloc(&exchange->arena, length + 1);
            if (!copy) return false;
            memcpy(copy, path, length);
            exchange->parameters[parameters++] = copy;
        }
        template += strcspn(template, "}") + 1;
        path += length;
    }
    return *template == '\0' && *path == '\0';
}

static void add_allowed(char allow[96], const char *method)
{
    if (strstr(allow, method)) return;
    size_t used = strlen(allow);
    const char *head = strcmp(method, "GET") == 0 ? ", HEAD" : "";
    (void)snprintf(allow + used, 96 - used, "%s%s%s", used ? ", " : "", method, head);
}

enum adv_route_match adv_routes_find(struct adv_exchange *exchange, const char *method, const char *path,
                                     char allow[96])
{
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    allow[0] = '\0';
    for (int i = 0; i < ROUTES_COUNT; i++) {
        if (!match(routes[i].path, path, NULL)) continue;
        if (strcmp(routes[i].method, wanted) == 0) {
            exchange->route = &routes[i];
            return match(routes[i].path, path, exchange) ? ADV_ROUTE_FOUND : ADV_ROUTE_NO_PATH;
        }
        add_allowed(allow, routes[i].method);
    }
    if (!*allow && adv_api_web_has(path)) {
        exchange->route = &routes[ROUTES_COUNT - 1];
        if (strcmp(wanted, "GET") == 0) return ADV_ROUTE_FOUND;
        add_allowed(allow, "GET");
    }
    return *allow ? ADV_ROUTE_NO_METHOD : ADV_ROUTE_NO_PATH;
}

int adv_routes_index(const struct adv_route *route)
{
    return route ? (int)(route - routes) : ROUTES_COUNT;
}

const char *adv_routes_method(int index)
{
    return index < ROUTES_COUNT ? routes[index].method : index == ROUTES_COUNT ? "other" : NULL;
}

const char *adv_routes_path(int index)
{
    return index < ROUTES_COUNT ? routes[index].path : "none";
}

void adv_routes_print(FILE *out)
{
    for (int i = 0; i < ROUTES_COUNT; i++)
        (void)fprintf(out, "%s %s %s\n", routes[i].method, routes[i].path, routes[i].operation);
}
