/* answer.c: text to document, document to answer by its kind, answer to text. */
#include "engine/answer/answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/answer/room.h"
#include "engine/base/crew.h"
#include "engine/base/version.h"
#include "engine/cost/estimate.h"
#include "engine/json/encode_common.h"
#include "engine/json/request_text.h"

const char *adv_engine_version(void)
{
    return adv_engine_version_text;
}

adv_code adv_answer_no_memory(adv_err *err)
{
    return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request needs more memory than its limit");
}

static void copy_text(char copy[ADV_LIMIT_NAME], const char *text)
{
    (void)snprintf(copy, ADV_LIMIT_NAME, "%s", text ? text : "");
}

void adv_answer_tag(struct adv_answer_job *job, const struct adv_model *model,
                    const struct adv_cluster *cluster, const struct adv_estimate *estimate)
{
    copy_text(job->answer->model, model->name);
    copy_text(job->answer->chip, cluster->chip.name);
    copy_text(job->answer->topology, cluster->topology);
    if (!estimate) return;
    job->answer->step_time_s = estimate->step_time_s;
    job->answer->hbm_bytes_per_device = round(estimate->hbm_bytes_per_device); /* as encoded */
    job->answer->fits = estimate->fit != ADV_FIT_NO;
    job->answer->fit_verdict = adv_fit_name(estimate->fit);
}

void adv_answer_tag_wish(struct adv_answer_job *job, const struct adv_store_wish *wish)
{
    job->answer->wants_store = wish->store;
    job->answer->store_may_fail = json_is_string(json_object_get(job->root, "store"));
    copy_text(job->answer->label, wish->label);
    copy_text(job->answer->project, wish->project);
    copy_text(job->answer->git_ref, wish->git_ref);
}

void adv_answer_warn_of_calibration(const struct adv_answer_job *job, const struct adv_constants *constants)
{
    const char *other = adv_catalog_fitted_elsewhere(job->catalog);
    if (!*other || (constants->step_time_correction_frac == 0.0 && constants->hbm_correction_frac == 0.0))
        return;
    ADV_WARN(job->warnings, "calibration-of-another-engine", "",
             "POST /v1/calibrations fits the project's measurements again; activate what it makes",
             "%s was fitted on predictions of %s, and this is engine %s (catalog %s): what it corrects may "
             "be corrected in the engine by now",
             adv_catalog_calibration(job->catalog), other, adv_engine_version_text,
             adv_catalog_hash(job->catalog));
}

static adv_code (*const steps[])(struct adv_answer_job *job) = {
    [ADV_REQUEST_ESTIMATE] = adv_answer_estimate, [ADV_REQUEST_ADVISE] = adv_answer_advise,
    [ADV_REQUEST_SIMULATE] = adv_answer_simulate, [ADV_REQUEST_TUNE] = adv_answer_tune,
    [ADV_REQUEST_LINT] = adv_answer_lint,
};

adv_code adv_answer_request(const struct adv_catalog *catalog, enum adv_request_kind kind, const char *json,
                            size_t json_bytes, struct adv_answer *answer, adv_err *err)
{
    return adv_answer_within(catalog, kind, json, json_bytes, NULL, answer, err);
}

adv_code adv_answer_within(const struct adv_catalog *catalog, enum adv_request_kind kind, const char *json,
                           size_t json_bytes, const struct adv_budget *budget, struct adv_answer *answer,
                           adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    adv_err warnings = adv_err_empty();
    memset(answer, 0, sizeof *answer);
    answer->step_time_s = answer->hbm_bytes_per_device = (double)NAN;
    struct adv_answer_job job = {
        .catalog = catalog, .budget = budget, .warnings = &warnings, .answer = answer, .err = err};
    adv_arena_init(&job.arena, ADV_LIMIT_ARENA_BYTES);
    adv_code code = adv_decode_request_text(catalog, kind, json, json_bytes, NULL, 0, &job.arena, &root, err);
    if (code != ADV_OK) {
        code = adv_room_judge(code, &job.arena, err);
        adv_arena_free(&job.arena);
        return code;
    }
    job.root = root;
    struct adv_crew *crew = budget ? budget->crew : NULL;
    adv_crew_enter(crew);
    code = adv_budget_over(budget) ? adv_budget_refuse(err) : steps[kind](&job);
    adv_crew_leave(crew);
    if (code == ADV_OK && adv_budget_over(budget)) {
        json_decref(job.result);
        code = adv_budget_refuse(err);
    }
    if (code == ADV_OK) {
        answer->json = adv_encode_text(job.result, &answer->json_bytes);
        if (!answer->json)
            code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the answer needs more memory than there is");
    }
    code = adv_room_judge(code, &job.arena, err);
    adv_arena_free(&job.arena);
    return code;
}

/* Replaces `"member":null` by `"member":value`. */
static void fill_number(struct adv_answer *answer, const char *member, double value)
{
    char empty[ADV_LIMIT_NAME];
    char filled[ADV_LIMIT_NAME];
    (void)snprintf(empty, sizeof empty, "\"%s\":null", member);
    (void)snprintf(filled, sizeof filled, "\"%s\":%.6g", member, value);
    char *at = answer->json ? strstr(answer->json, empty) : NULL;
    if (!at || !isfinite(value)) return;
    size_t before = (size_t)(at - answer->json);
    size_t after = answer->json_bytes - before - strlen(empty);
    size_t bytes = before + strlen(filled) + after;
    char *text = malloc(bytes + 1);
    if (!text) return;
    memcpy(text, answer->json, before);
    memcpy(text + before, filled, strlen(filled));
    memcpy(text + before + strlen(filled), at + strlen(empty), after + 1);
    free(answer->json);
    answer->json = text;
    answer->json_bytes = bytes;
}

void adv_answer_set_elapsed(struct adv_answer *answer, double elapsed_s)
{
    fill_number(answer, "elapsed_ms", elapsed_s * 1e3);
    fill_number(answer, "evaluations_per_s",
                elapsed_s > 0 ? (double)answer->evaluations / elapsed_s : (double)NAN);
}

void adv_answer_free(struct adv_answer *answer)
{
    free(answer->json);
    answer->json = NULL;
}
