#include "server/keep.h"

#include <stdio.h>
#include <string.h>

#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_verifications.h"

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

adv_code adv_keep_within(const char *owner, const char *project, const struct adv_answer *answer,
                         adv_err *err)
{
    if (!*project || !answer->project[0] || strcmp(project, answer->project) == 0) return ADV_OK;
    return adv_err_add(err, ADV_E_FORBIDDEN, "/project",
                       "leave it out, or use a token of that project, or of none",
                       "the %s is for the project '%.95s'", owner, project);
}

adv_code adv_keep_verify(const struct adv_app *app, struct adv_db *db, const char *principal,
                         const char *run_id, const struct adv_answer *answer, struct adv_text *response,
                         adv_err *err)
{
    const struct adv_verification_order order = {.run_id = run_id,
                                                 .principal = principal,
                                                 .response = answer->json,
                                                 .catalog = app->catalog,
                                                 .first_rank = 1,
                                                 .last_rank = answer->verify_top};
    char id[ADV_UUID_BYTES] = "";
    bool created = false;
    if (!answer->verify_top) return ADV_OK;
    adv_code code = adv_verification_newest_id(db, run_id, id, err);
    if (!code && !id[0]) code = adv_verification_create(db, &order, id, &created, err);
    if (response->length_bytes > 0) response->data[--response->length_bytes] = '\0'; /* the } */
    adv_json_text_string(response, "verification_id", code ? NULL : id);
    if (code)
        adv_json_text_string(response, "verification_refused", err->count ? err->findings[0].detail : "");
    adv_text_append(response, "}");
    return code;
}

adv_code adv_keep(struct adv_exchange *exchange, const struct adv_answer *answer, struct adv_kept *kept,
                  adv_err *err)
{
    struct adv_app *app = exchange->app;
    struct adv_answer named = *answer; /* under the project that the token is for, where none was said */
    if (exchange->project[0] && !named.project[0])
        (void)snprintf(named.project, sizeof named.project, "%s", exchange->project);
    struct adv_run run = {
        .request = kept->request, .reevaluates = kept->reevaluates, .question = kept->question};
    adv_uuid_make(run.id);
    adv_text_init(&kept->response, ADV_LIMIT_STORED_BYTES);
    adv_keep_prepare(&run, app, kept->kind, &named, &kept->response);
    kept->outcome = ADV_STORE_SAVED;
    adv_err found = adv_err_empty();
    adv_code code = ADV_OK;
    if (kept->response.overflow)
        code = adv_err_add(&found, ADV_E_MEMORY, "/store", NULL, "no memory for the answer");
    else if (exchange->refused)
        code = adv_err_add(&found, ADV_E_BUSY, "/store",
                           "try again after Retry-After seconds, or \"store\": \"try\"",
                           "%ld requests wait for the database already", app->config.queue_count);
    else
        code = adv_store_run_save(exchange->db, &run, kept->idempotency, &kept->outcome, &found);
    if (!code && kept->outcome == ADV_STORE_SAVED) {
        memcpy(kept->run_id, run.id, sizeof run.id);
        adv_metrics_add(&app->metrics, ADV_COUNTER_RUNS_STORED, 1);
        return ADV_OK;
    }
    kept->run_id[0] = '\0';
    adv_text_free(&kept->response);
    adv_text_init(&kept->response, ADV_LIMIT_STORED_BYTES);
    if (!code) return ADV_OK;
    kept->outcome = ADV_STORE_SAVED;
    adv_api_warn(exchange, "run not stored", &found);
    adv_metrics_add(&app->metrics, ADV_COUNTER_RUNS_NOT_STORED, 1);
    if (!answer->store_may_fail) {
        adv_err_merge(err, &found, "");
        return code;
    }
    adv_json_text_extend(&kept->response, answer->json, answer->json_bytes, "\"stored\":false");
    return ADV_OK;
}
