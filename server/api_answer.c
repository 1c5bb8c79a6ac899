#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/routes.h"
#include "server/store_runs.h"

#define LONGEST_KEY 255
#define STORED_LIMIT_BYTES (64u * 1024u * 1024u) /* an advise with 100 rows of 40 KiB takes 4 MiB */

static const char *kind_name(int kind)
{
    static const char *const names[] = {"estimate", "advise", "simulate", "tune", "lint"};
    return names[kind];
}

/* The request's Idempotency-Key into `idempotency`; false with the problem in the reply when it is malformed. */
static bool read_key(struct adv_exchange *exchange, struct adv_idempotency *idempotency)
{
    const char *key = exchange->headers[ADV_HEADER_IDEMPOTENCY_KEY];
    memset(idempotency, 0, sizeof *idempotency);
    if (!key) return true;
    size_t length = strlen(key);
    bool good = length > 0 && length <= LONGEST_KEY;
    for (size_t i = 0; i < length && good; i++) good = key[i] > ' ' && key[i] < 0x7f;
    if (!good) {
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/headers/Idempotency-Key", NULL,
                        "an Idempotency-Key has 1 to %d visible ASCII characters", LONGEST_KEY);
        return false;
    }
    idempotency->principal = exchange->principal;
    idempotency->key = key;
    /* The same body sent to another operation is another request. */
    struct adv_text text;
    adv_text_init(&text, STORED_LIMIT_BYTES);
    adv_text_append(&text, exchange->route->path);
    adv_text_append(&text, "\n");
    adv_text_append_bytes(&text, exchange->body ? exchange->body : "", exchange->body_bytes);
    if (text.data) adv_sha256_hex(text.data, text.length_bytes, idempotency->body_digest);
    adv_text_free(&text);
    return true;
}

/* true: the reply is filled, from an earlier answer or with a problem. A database that is away is no obstacle. */
static bool replay(struct adv_exchange *exchange, const struct adv_idempotency *idempotency)
{
    if (!idempotency->key || !exchange->db) return false;
    enum adv_store_outcome outcome = ADV_STORE_UNKNOWN_KEY;
    char *response = NULL;
    adv_err err;
    adv_err_init(&err);
    if (adv_store_key_find(exchange->db, idempotency, &outcome, &response, &err)) return false;
    if (outcome == ADV_STORE_REPLAYED) {
        adv_reply_json(exchange, 200, response, strlen(response));
        adv_reply_header(exchange, "Idempotency-Replayed", "true");
        return true;
    }
    if (outcome == ADV_STORE_OTHER_BODY)
        adv_reply_error(exchange, ADV_E_INVALID, "/headers/Idempotency-Key", "use a new key for a new request",
                        "the key was used with another request");
    return outcome == ADV_STORE_OTHER_BODY;
}

/* Tries to keep the answer as a run; `response` gets the text with its run_id, or with "stored": false. Returns the
 * outcome; a database error counts as not stored and is logged. */
static bool keep(struct adv_exchange *exchange, const struct adv_answer *answer, const struct adv_idempotency *idempotency,
                 struct adv_text *response, enum adv_store_outcome *outcome)
{
    struct adv_app *app = exchange->app;
    struct adv_run run = {.kind = kind_name(exchange->route->kind),
                          .answer = answer,
                          .engine_version = adv_engine_version(),
                          .catalog_hash = adv_catalog_hash(app->catalog),
                          .request = exchange->body};
    adv_uuid_make(run.id);
    char members[96];
    (void)snprintf(members, sizeof members, "\"run_id\":\"%s\",\"stored\":true", run.id);
    adv_json_text_extend(response, answer->json, answer->json_bytes, members);
    run.response = response->data;
    adv_err err;
    adv_err_init(&err);
    adv_code code = response->overflow ? ADV_E_MEMORY
                                       : adv_store_run_save(exchange->db, &run, idempotency->key ? idempotency : NULL, outcome, &err);
    if (!code) return *outcome == ADV_STORE_SAVED;
    struct adv_log_line line;
    adv_log_begin(&app->log, &line, ADV_LOG_WARNING, "run not stored");
    adv_log_string(&line, "request_id", exchange->request_id);
    adv_log_string(&line, "reason", err.count ? err.findings[0].detail : "no memory");
    adv_log_end(&line);
    *outcome = ADV_STORE_SAVED; /* nobody else has it either */
    return false;
}

static void reply_stored(struct adv_exchange *exchange, struct adv_answer *answer, const struct adv_idempotency *idempotency)
{
    struct adv_metrics *metrics = &exchange->app->metrics;
    struct adv_text response;
    adv_text_init(&response, STORED_LIMIT_BYTES);
    enum adv_store_outcome outcome = ADV_STORE_SAVED;
    bool stored = exchange->db && keep(exchange, answer, idempotency, &response, &outcome);
    /* The key was taken while we computed: the other request's answer counts. */
    if (!stored && outcome == ADV_STORE_UNKNOWN_KEY && replay(exchange, idempotency)) {
        adv_text_free(&response);
        return;
    }
    adv_metrics_add(metrics, stored ? ADV_COUNTER_RUNS_STORED : ADV_COUNTER_RUNS_NOT_STORED, 1);
    if (!stored) {
        adv_text_free(&response);
        adv_text_init(&response, STORED_LIMIT_BYTES);
        adv_json_text_extend(&response, answer->json, answer->json_bytes, "\"stored\":false");
    }
    if (response.overflow) adv_text_free(&response);
    adv_reply_json(exchange, 200, response.data, response.length_bytes);
}

static int64_t now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void adv_api_answer(struct adv_exchange *exchange)
{
    static const char *const no_query[] = {NULL};
    struct adv_metrics *metrics = &exchange->app->metrics;
    struct adv_idempotency idempotency;
    if (!adv_exchange_check_query(exchange, no_query) || !read_key(exchange, &idempotency) || replay(exchange, &idempotency))
        return;
    struct adv_answer answer = {0};
    adv_err err;
    adv_err_init(&err);
    int64_t start_us = now_us();
    adv_code code = adv_answer_request(exchange->app->catalog, (enum adv_request_kind)exchange->route->kind,
                                       exchange->body ? exchange->body : "", exchange->body_bytes, &answer, &err);
    adv_metrics_add(metrics, ADV_COUNTER_ENGINE_US, (uint64_t)(now_us() - start_us));
    if (code) {
        adv_reply_problem(exchange, &err);
        return;
    }
    if (answer.evaluations > 0) adv_metrics_add(metrics, ADV_COUNTER_EVALUATIONS, (uint64_t)answer.evaluations);
    if (!answer.wants_store) {
        adv_reply_json(exchange, 200, answer.json, answer.json_bytes);
        answer.json = NULL;
    } else if (!(exchange->scopes & ADV_SCOPE_WRITE)) {
        adv_reply_error(exchange, ADV_E_FORBIDDEN, "/store", "leave \"store\" out, or use a token with the scope write",
                        "the token may not store runs");
    } else {
        reply_stored(exchange, &answer, &idempotency);
    }
    adv_answer_free(&answer);
}
