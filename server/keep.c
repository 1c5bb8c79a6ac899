#include "server/keep.h"

#include <stdio.h>

#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"

static adv_code save(struct adv_exchange *exchange, const struct adv_run *run,
                     const struct adv_idempotency *idempotency, enum adv_store_outcome *outcome,
                     adv_err *into)
{
    adv_err err = adv_err_empty();
    adv_code code =
        exchange->refused
            ? adv_err_add(&err, ADV_E_BUSY, "/store",
                          "try again after Retry-After seconds, or \"store\": \"try\"",
                          "%ld requests wait for the database already", exchange->app->config.queue_count)
            : adv_store_run_save(exchange->db, run, idempotency, outcome, &err);
    if (!code) return ADV_OK;
    adv_api_warn(exchange, "run not stored", &err);
    adv_err_merge(into, &err, "");
    return code;
}

void adv_keep_prepare(struct adv_run *run, const struct adv_app *app, enum adv_request_kind kind,
                      const struct adv_answer *answer, struct adv_text *response)
{
    static const char *const kinds[] = {
        [ADV_REQUEST_ESTIMATE] = "estimate",
        [ADV_REQUEST_ADVISE] = "advise",
        [ADV_REQUEST_SIMULATE] = "kernel",
        [ADV_REQUEST_TUNE] = "kernel",
    };
    char members[96];
    run->kind = kinds[kind];
    run->answer = answer;
    run->engine_version = adv_engine_version();
    run->catalog_hash = adv_catalog_hash(app->catalog);
    (void)snprintf(members, sizeof members, "\"run_id\":\"%s\",\"stored\":true", run->id);
    adv_json_text_extend(response, answer->json, answer->json_bytes, members);
    run->response = response->data;
}

adv_code adv_keep(struct adv_exchange *exchange, enum adv_request_kind kind, const struct adv_asked *asked,
                  const struct adv_answer *answer, const struct adv_idempotency *idempotency,
                  struct adv_text *response, char run_id[ADV_UUID_BYTES], enum adv_store_outcome *outcome,
                  adv_err *err)
{
    struct adv_app *app = exchange->app;
    struct adv_answer named = *answer; /* under the project that the token is for, where none was said */
    if (exchange->project[0] && !named.project[0])
        (void)snprintf(named.project, sizeof named.project, "%s", exchange->project);
    struct adv_run run = {
        .request = asked->request, .reevaluates = asked->reevaluates, .question = asked->question};
    adv_uuid_make(run.id);
    adv_keep_prepare(&run, app, kind, &named, response);
    *outcome = ADV_STORE_SAVED;
    adv_err found = adv_err_empty();
    adv_code code = response->overflow
                        ? adv_err_add(&found, ADV_E_MEMORY, "/store", NULL, "no memory for the answer")
                        : save(exchange, &run, idempotency, outcome, &found);
    if (!code && *outcome == ADV_STORE_SAVED) {
        (void)snprintf(run_id, ADV_UUID_BYTES, "%s", run.id);
        adv_metrics_add(&app->metrics, ADV_COUNTER_RUNS_STORED, 1);
        return ADV_OK;
    }
    run_id[0] = '\0';
    adv_text_free(response);
    adv_text_init(response, ADV_LIMIT_STORED_BYTES);
    if (!code) return ADV_OK;
    *outcome = ADV_STORE_SAVED;
    adv_metrics_add(&app->metrics, ADV_COUNTER_RUNS_NOT_STORED, 1);
    if (!answer->store_may_fail) {
        adv_err_merge(err, &found, "");
        return code;
    }
    adv_json_text_extend(response, answer->json, answer->json_bytes, "\"stored\":false");
    return ADV_OK;
}
