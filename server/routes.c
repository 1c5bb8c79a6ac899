#include "server/routes.h"

#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/guard.h"
#include "server/metrics.h"
#include "server/tokens.h"

#define JSON "application/json"
/* A recipe as it lies in a repository. text/plain, which any page may send to any host, is for lint alone. */
#define JSON_OR_RECIPE                                                                                       \
    "application/json application/yaml application/x-yaml text/yaml text/x-shellscript application/x-sh"

/* Adding a resource = adding rows here and the same paths in openapi.yaml. */
static const struct adv_route routes[] = {
    {"POST", "/v1/estimate", "estimate", adv_api_answer, ADV_ROUTE_QUICK, ADV_SCOPE_READ, JSON_OR_RECIPE,
     ADV_REQUEST_ESTIMATE, NULL, JSON},
    {"POST", "/v1/advise", "advise", adv_api_answer, ADV_ROUTE_SEARCH, ADV_SCOPE_READ, JSON_OR_RECIPE,
     ADV_REQUEST_ADVISE, NULL, JSON},
    {"POST", "/v1/kernels/simulate", "simulateKernel", adv_api_answer, ADV_ROUTE_QUICK, ADV_SCOPE_READ, JSON,
     ADV_REQUEST_SIMULATE, NULL, JSON},
    {"POST", "/v1/kernels/tune", "tuneKernel", adv_api_answer, ADV_ROUTE_SEARCH, ADV_SCOPE_READ, JSON,
     ADV_REQUEST_TUNE, NULL, JSON},
    {"POST", "/v1/lint", "lint", adv_api_answer, ADV_ROUTE_QUICK, ADV_SCOPE_READ,
     JSON_OR_RECIPE " text/plain", ADV_REQUEST_LINT, NULL, JSON},
    {"POST", "/v1/artifacts/{name}", "makeArtifact", adv_api_artifact, ADV_ROUTE_QUICK, ADV_SCOPE_READ, JSON,
     0, "rank", NULL},
    {"POST", "/v1/explain/oom", "explainOom", adv_api_explain_oom, ADV_ROUTE_SEARCH, ADV_SCOPE_READ,
     "application/json text/plain", 0, "", JSON},
    {"GET", "/v1/catalog/{collection}", "listCatalog", adv_api_catalog_list, ADV_ROUTE_INLINE, ADV_SCOPE_READ,
     NULL, 0, "", JSON},
    {"GET", "/v1/catalog/{collection}/{name}", "getCatalogEntry", adv_api_catalog_entry, ADV_ROUTE_INLINE,
     ADV_SCOPE_READ, NULL, 0, "", JSON},
    {"GET", "/v1/runs", "listRuns", adv_api_runs_list, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0,
     "project label git_ref model chip kind since q tags sort deleted limit cursor", JSON},
    {"GET", "/v1/runs/{run_id}", "getRun", adv_api_run_get, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, "",
     JSON},
    {"DELETE", "/v1/runs/{run_id}", "deleteRun", adv_api_run_delete, ADV_ROUTE_STORE, ADV_SCOPE_ADMIN, NULL,
     0, "", NULL},
    {"PATCH", "/v1/runs/{run_id}", "patchRun", adv_api_run_patch, ADV_ROUTE_STORE, ADV_SCOPE_WRITE, JSON, 0,
     "", JSON},
    {"POST", "/v1/runs/{run_id}/restore", "restoreRun", adv_api_run_restore, ADV_ROUTE_STORE, ADV_SCOPE_ADMIN,
     NULL, 0, "", JSON},
    {"POST", "/v1/runs/{run_id}/reevaluate", "reevaluateRun", adv_api_run_reevaluate, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, NULL, 0, "", JSON},
    {"GET", "/v1/runs/{run_id}/artifacts/{name}", "getRunArtifact", adv_api_run_artifact, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "rank", NULL},
    {"POST", "/v1/runs/{run_id}/measurements", "postMeasurement", adv_api_measurement_post, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, "application/json text/plain application/jsonl application/x-ndjson", 0, NULL, JSON},
    {"GET", "/v1/runs/{run_id}/measurements", "listMeasurements", adv_api_measurements_list, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "rank limit cursor", JSON},
    {"DELETE", "/v1/runs/{run_id}/measurements/{measurement_id}", "deleteMeasurement",
     adv_api_measurement_delete, ADV_ROUTE_STORE, ADV_SCOPE_ADMIN, NULL, 0, "", NULL},
    {"POST", "/v1/runs/{run_id}/verifications", "postVerification", adv_api_verification_post,
     ADV_ROUTE_STORE, ADV_SCOPE_WRITE, JSON, 0, "", JSON},
    {"GET", "/v1/runs/{run_id}/verifications", "listVerifications", adv_api_verifications_list,
     ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, "rank limit cursor", JSON},
    {"GET", "/v1/verifications/{verification_id}", "getVerification", adv_api_verification_get,
     ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, "", JSON},
    {"GET", "/v1/verifications/{verification_id}/events", "getVerificationEvents",
     adv_api_verification_events, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, "", "text/event-stream"},
    {"DELETE", "/v1/verifications/{verification_id}", "cancelVerification", adv_api_verification_delete,
     ADV_ROUTE_STORE, ADV_SCOPE_WRITE, NULL, 0, "", NULL},
    {"POST", "/v1/sweeps", "postSweep", adv_api_sweep_post, ADV_ROUTE_STORE, ADV_SCOPE_WRITE, JSON, 0, "",
     JSON},
    {"GET", "/v1/sweeps", "listSweeps", adv_api_sweeps_list, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0,
     "project state limit cursor", JSON},
    {"GET", "/v1/sweeps/{sweep_id}", "getSweep", adv_api_sweep_get, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0,
     "state limit cursor", JSON},
    {"GET", "/v1/sweeps/{sweep_id}/items/{item}", "getSweepItem", adv_api_sweep_item_get, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "", JSON},
    {"GET", "/v1/sweeps/{sweep_id}/events", "getSweepEvents", adv_api_sweep_events, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "", "text/event-stream"},
    {"DELETE", "/v1/sweeps/{sweep_id}", "cancelSweep", adv_api_sweep_delete, ADV_ROUTE_STORE, ADV_SCOPE_WRITE,
     NULL, 0, "", NULL},
    {"POST", "/v1/calibrations", "postCalibration", adv_api_calibration_post, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, JSON, 0, "", JSON},
    {"GET", "/v1/calibrations", "listCalibrations", adv_api_calibrations_list, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "project limit cursor", JSON},
    {"GET", "/v1/calibrations/{calibration_id}", "getCalibration", adv_api_calibration_get, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "", JSON},
    {"POST", "/v1/calibrations/{calibration_id}/activate", "activateCalibration",
     adv_api_calibration_activate, ADV_ROUTE_STORE, ADV_SCOPE_WRITE, NULL, 0, "", JSON},
    {"POST", "/v1/calibrations/{calibration_id}/revert", "revertCalibration", adv_api_calibration_revert,
     ADV_ROUTE_STORE, ADV_SCOPE_WRITE, NULL, 0, "", JSON},
    {"GET", "/v1/accuracy", "getAccuracy", adv_api_accuracy, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0,
     "project label model chip since limit cursor", JSON},
    {"GET", "/v1/compare", "compareRuns", adv_api_compare, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL, 0, "runs",
     JSON},
    {"POST", "/v1/checks", "check", adv_api_check, ADV_ROUTE_STORE, ADV_SCOPE_READ, JSON, 0, "fail_status",
     NULL},
    {"GET", "/v1/baselines", "listBaselines", adv_api_baselines_list, ADV_ROUTE_STORE, ADV_SCOPE_READ, NULL,
     0, "project limit cursor", JSON},
    {"GET", "/v1/baselines/{project}/{label}", "getBaseline", adv_api_baseline_get, ADV_ROUTE_STORE,
     ADV_SCOPE_READ, NULL, 0, "history", JSON},
    {"PUT", "/v1/baselines/{project}/{label}", "putBaseline", adv_api_baseline_put, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, JSON, 0, "", JSON},
    {"DELETE", "/v1/baselines/{project}/{label}", "deleteBaseline", adv_api_baseline_delete, ADV_ROUTE_STORE,
     ADV_SCOPE_WRITE, NULL, 0, "", NULL},
    {"GET", "/v1/openapi.json", "getOpenapi", adv_api_openapi, ADV_ROUTE_INLINE, 0, NULL, 0, NULL, JSON},
    {"GET", "/livez", "getLivez", adv_api_livez, ADV_ROUTE_INLINE, 0, NULL, 0, NULL, NULL},
    {"GET", "/readyz", "getReadyz", adv_api_readyz, ADV_ROUTE_INLINE, 0, NULL, 0, "require", NULL},
    {"GET", "/metrics", "getMetrics", adv_api_metrics, ADV_ROUTE_INLINE, 0, NULL, 0, NULL, NULL},
    {"GET", "/version", "getVersion", adv_api_version, ADV_ROUTE_INLINE, 0, NULL, 0, NULL, JSON},
    {"GET", "/", "getWebForm", adv_api_web, ADV_ROUTE_INLINE, 0, NULL, 0, NULL, NULL},
};

#define ROUTES_COUNT ((int)(sizeof routes / sizeof routes[0]))
_Static_assert(ROUTES_COUNT < ADV_LIMIT_ROUTES, "metrics has a row per route and one more");

enum { SEPARATOR = -1, END = -2 }; /* beside the bytes of a segment */

/* The next byte of a path as sent, decoded, and moves on. A % that is followed by no number is itself. */
static int next_byte(const char **at)
{
    const char *here = *at;
    if (*here == '\0' || *here == '?') return END;
    *at = here + 1;
    if (*here == '/') return SEPARATOR;
    const int high = *here == '%' ? adv_guard_hex_digit(here[1]) : -1;
    const int low = high >= 0 ? adv_guard_hex_digit(here[2]) : -1;
    if (low < 0) return (unsigned char)*here;
    *at = here + 3;
    return high * 16 + low;
}

/* A segment of the path (with `rest`, all that is left of it) decoded into `copy`, which has room; its
 * length. `path` is left at what follows. */
static size_t take_segment(const char **path, bool rest, char *copy)
{
    size_t length = 0;
    for (;;) {
        const char *before = *path;
        const int byte = next_byte(path);
        if (byte == END || (byte == SEPARATOR && !rest)) {
            *path = before;
            copy[length] = '\0';
            return length;
        }
        copy[length++] = (char)(byte == SEPARATOR ? '/' : byte);
    }
}

/* Matches segment by segment; parameters are copied. */
static bool match(const char *template, const char *path, struct adv_exchange *exchange)
{
    int parameters = 0;
    while (*template) {
        if (*template != '{') {
            const int byte = next_byte(&path);
            if (byte != (*template == '/' ? SEPARATOR : (unsigned char)*template)) return false;
            template ++;
            continue;
        }
        const bool rest = strcmp(template, "{label}") == 0;
        template += strcspn(template, "}") + 1;
        char *copy = adv_arena_alloc(&exchange->arena, strlen(path) + 1);
        if (!copy || take_segment(&path, rest, copy) == 0) return false;
        exchange->parameters[parameters++] = copy;
    }
    return next_byte(&path) == END;
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
        if (!match(routes[i].path, path, exchange)) continue;
        if (strcmp(routes[i].method, wanted) == 0) {
            exchange->route = &routes[i];
            return ADV_ROUTE_FOUND;
        }
        add_allowed(allow, routes[i].method);
    }
    if (!*allow && adv_api_web_has(exchange->path)) {
        exchange->route = &routes[ROUTES_COUNT - 1];
        if (strcmp(wanted, "GET") == 0) return ADV_ROUTE_FOUND;
        add_allowed(allow, "GET");
    }
    return *allow ? ADV_ROUTE_NO_METHOD : ADV_ROUTE_NO_PATH;
}

void adv_routes_run(struct adv_exchange *exchange)
{
    const struct adv_route *route = exchange->route;
    adv_handler *next = exchange->next;
    adv_err err = adv_err_empty();
    adv_code code = next || !route->query ? ADV_OK : adv_exchange_check_query(exchange, route->query, &err);
    exchange->next = NULL;
    if (!code) code = next ? next(exchange, &err) : route->handle(exchange, &err);
    if (code) adv_reply_problem(exchange, &err);
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
