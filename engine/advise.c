#include "engine/advise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise_kernel.h"
#include "engine/advise_platforms.h"
#include "engine/base/version.h"
#include "engine/explain/advice.h"
#include "engine/explain/whatif.h"
#include "engine/json/decode_request.h"
#include "engine/json/decode_store.h"
#include "engine/json/decode_text.h"
#include "engine/json/encode_advise.h"
#include "engine/json/encode_estimate.h"
#include "engine/json/lint.h"
#include "engine/json/plan_warnings.h"
#include "engine/search/search.h"
#include "engine/kernel/families.h"

/* One request on its way through the pipeline: document -> request -> numbers -> document. */
struct job {
    const struct adv_catalog *catalog;
    const json_t *root;
    const struct adv_budget *budget;
    struct adv_arena arena;
    adv_err *warnings;
    struct adv_answer *answer;
    adv_err *err;
    json_t *result;
};

const char *adv_engine_version(void)
{
    return ADV_ENGINE_VERSION;
}

static void *allocate(struct job *job, size_t bytes)
{
    void *memory = adv_arena_alloc(&job->arena, bytes);
    if (!memory)
        (void)adv_err_add(job->err, ADV_E_MEMORY, "", NULL, "the request needs more memory than its limit");
    return memory;
}

static void copy_text(char copy[ADV_LIMIT_NAME], const char *text)
{
    (void)snprintf(copy, ADV_LIMIT_NAME, "%s", text ? text : "");
}

static void tag_answer(struct job *job, const struct adv_model *model, const struct adv_cluster *cluster,
                       const struct adv_estimate *estimate)
{
    copy_text(job->answer->model, model->name);
    copy_text(job->answer->chip, cluster->chip.name);
    copy_text(job->answer->topology, cluster->topology);
    if (!estimate) return;
    job->answer->step_time_s = estimate->step_time_s;
    job->answer->hbm_bytes_per_device = round(estimate->hbm_bytes_per_device); /* as encoded */
    job->answer->fits = estimate->fit != ADV_FIT_NO;
}

static void tag_store(struct job *job, bool store, const char *label, const char *project,
                      const char *git_ref)
{
    job->answer->wants_store = store;
    job->answer->store_may_fail = json_is_string(json_object_get(job->root, "store"));
    copy_text(job->answer->label, label);
    copy_text(job->answer->project, project);
    copy_text(job->answer->git_ref, git_ref);
}

/* MaxText's default can mask the tail of a contraction, which the tuners do not try: it costs more than the
 * model says. */
static void warn_of_standard(const struct adv_kernel_tuning *tuning, adv_err *warnings)
{
    double best_s = tuning->choices_count > 0 ? tuning->choices[0].time.time_s : (double)INFINITY;
    double standard_s = tuning->standard.time.time_s;
    if (!tuning->has_standard || !tuning->standard.time.fits_vmem || standard_s >= best_s) return;
    (void)adv_err_add(warnings, ADV_OK, "", "its tail is masked; measure it beside the ranked tiles",
                      "MaxText's default tile is outside the tuners' space, and predicted %.1f %% faster "
                      "than the best tile in it",
                      100.0 * (best_s / standard_s - 1.0));
    adv_err_rule(warnings, "default-outside-space");
}

static adv_code answer_estimate(struct job *job)
{
    struct adv_estimate_request *request = allocate(job, sizeof *request);
    struct adv_estimate *estimate = allocate(job, sizeof *estimate);
    struct adv_ledger *ledger = allocate(job, sizeof *ledger);
    struct adv_advice_list *advice = allocate(job, sizeof *advice);
    if (!request || !estimate || !ledger || !advice) return ADV_E_MEMORY;
    adv_code code = adv_decode_estimate_request(job->catalog, job->root, "", &job->arena, request, job->err,
                                                job->warnings);
    if (code != ADV_OK) return code;
    const struct adv_catalog_chip *chip = adv_catalog_chip(job->catalog, request->cluster.chip.name);
    struct adv_estimate_input input = {&request->model, &request->cluster, &chip->constants, &request->plan,
                                       request->flops_convention};
    code = adv_estimate_plan(&input, estimate, ledger, job->err);
    if (code != ADV_OK) return code;
    adv_warn_of_estimate(job->catalog, &input, estimate, ledger, job->warnings);
    struct adv_reread *reread = allocate(job, sizeof *reread);
    if (!reread) return ADV_E_MEMORY;
    code = adv_reread_open(reread, job->catalog, &request->model,
                           json_string_value(json_object_get(job->root, "model")), &request->cluster,
                           &request->config, &job->arena, job->err);
    if (code != ADV_OK) return code;
    adv_advice_find(&input, estimate, ledger, reread, false, advice);
    tag_answer(job, &request->model, &request->cluster, estimate);
    tag_store(job, request->store, request->label, request->project, request->git_ref);
    job->answer->evaluations = 1;
    job->result = adv_encode_estimate_answer(job->catalog, request, estimate, ledger, advice, job->warnings);
    return ADV_OK;
}

static adv_code search(struct job *job, const json_t *root, struct adv_advise_request *request,
                       struct adv_search_result *found)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(job->catalog, request->cluster.chip.name);
    const struct adv_reread *baseline;
    adv_code code = adv_reread_baseline(job->catalog, request, &job->arena, &baseline, job->err);
    if (code == ADV_OK)
        code = adv_search_run(request, baseline, &chip->constants, &job->arena, found, job->err);
    if (code != ADV_OK) return code;
    if (request->cluster.has_overrides && found->found_count > 0) {
        struct adv_estimate_input input = {&request->model, &request->cluster, &chip->constants,
                                           &found->found[0].plan, ADV_FLOPS_CAUSAL_HALF};
        adv_whatif_idle(&chip->chip, &input, &found->found[0].estimate, job->warnings);
    }
    tag_answer(job, &request->model, &request->cluster,
               found->found_count > 0 ? &found->found[0].estimate : NULL);
    tag_store(job, request->store, request->label, request->project, request->git_ref);
    job->answer->evaluations = found->evaluated;
    return adv_encode_advise(job->catalog, root, request, found, job->warnings, &job->arena, &job->result,
                             job->err);
}

static adv_code advise_on_one(struct job *job, const json_t *root)
{
    struct adv_advise_request *request = allocate(job, sizeof *request);
    struct adv_search_result *found = allocate(job, sizeof *found);
    if (!request || !found) return ADV_E_MEMORY;
    adv_code code =
        adv_decode_advise_request(job->catalog, root, &job->arena, request, job->err, job->warnings);
    if (code == ADV_OK) code = adv_budget_check(job->budget, 1, request, job->err);
    if (code != ADV_OK) return code;
    job->answer->verify_top = adv_decode_verify(root, job->err);
    request->budget = job->budget;
    return search(job, root, request, found);
}

static void tag_kernel(struct job *job, const struct adv_kernel_request *request)
{
    const struct adv_store_wish *wish = &request->wish;
    copy_text(job->answer->chip, request->chip->chip.name);
    tag_store(job, wish->store, wish->label, wish->project, wish->git_ref);
}

/* Several machines: the answer is that of the best one, with all of them beside it. */
static adv_code answer_advise(struct job *job)
{
    if (!adv_platforms_asked(job->root)) return advise_on_one(job, job->root);
    struct adv_platforms_answer *platforms = allocate(job, sizeof *platforms);
    if (!platforms) return ADV_E_MEMORY;
    adv_code code = adv_advise_platforms(job->catalog, job->root, job->budget, platforms, job->err);
    if (code == ADV_OK) code = advise_on_one(job, platforms->best);
    if (code == ADV_OK) {
        (void)json_object_set(job->result, "platforms", platforms->rows);
        job->answer->evaluations += platforms->evaluations;
    }
    json_decref(platforms->rows);
    adv_platform_jobs_free(&platforms->jobs);
    return code;
}

static adv_code answer_simulate(struct job *job)
{
    struct adv_kernel_request request;
    struct adv_kernel_time time;
    adv_code code = adv_decode_kernel_request(job->catalog, job->root, true, &job->arena, &request, job->err,
                                              job->warnings);
    if (code == ADV_OK) code = adv_kernel_simulate(&request, &time, job->err, job->warnings);
    if (code != ADV_OK) return code;
    tag_kernel(job, &request);
    struct adv_timeline timeline = {.capacity = ADV_LIMIT_TIMELINE_STEPS};
    const bool drawn = request.timeline || request.trace;
    if (drawn) {
        timeline.steps = allocate(job, ADV_LIMIT_TIMELINE_STEPS * sizeof *timeline.steps);
        if (!timeline.steps) return ADV_E_MEMORY;
        code = adv_kernel_timeline(&request, &time, &timeline, job->err);
    }
    if (code == ADV_OK)
        job->result =
            adv_encode_simulation(job->catalog, &request, &time, drawn ? &timeline : NULL, job->warnings);
    return code;
}

/* What its program does not time as it was tuned. */
static void warn_of_sweep(const struct adv_kernel_request *request, adv_err *warnings)
{
    const char *lines[ADV_SWEEP_DIFFERENCES];
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    const int count = warnings && family->differences ? family->differences(request, lines) : 0;
    for (int i = 0; i < count; i++) {
        (void)adv_err_add(warnings, ADV_OK, "/sweep", NULL, "the sweep is not as tuned: %s", lines[i]);
        adv_err_rule(warnings, "sweep");
    }
}

static adv_code answer_tune(struct job *job)
{
    struct adv_kernel_request request;
    struct adv_kernel_tuning tuning;
    adv_code code = adv_decode_kernel_request(job->catalog, job->root, false, &job->arena, &request, job->err,
                                              job->warnings);
    if (code != ADV_OK) return code;
    code = adv_kernel_tune(&request, &job->arena, &tuning, job->err);
    job->answer->evaluations = tuning.evaluated_count;
    if (code != ADV_OK) return code;
    tag_kernel(job, &request);
    warn_of_standard(&tuning, job->warnings);
    warn_of_sweep(&request, job->warnings);
    job->result = adv_encode_tuning(job->catalog, &request, &tuning, job->warnings);
    return ADV_OK;
}

static adv_code answer_lint(struct job *job)
{
    adv_code code = adv_lint(job->catalog, job->root, &job->arena, &job->result, job->err);
    job->answer->refutes = code == ADV_OK && !json_is_true(json_object_get(job->result, "valid"));
    return code;
}

static adv_code (*const steps[])(struct job *job) = {
    [ADV_REQUEST_ESTIMATE] = answer_estimate, [ADV_REQUEST_ADVISE] = answer_advise,
    [ADV_REQUEST_SIMULATE] = answer_simulate, [ADV_REQUEST_TUNE] = answer_tune,
    [ADV_REQUEST_LINT] = answer_lint,
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
    json_t *root = NULL;
    adv_err warnings;
    adv_err_init(&warnings);
    memset(answer, 0, sizeof *answer);
    answer->step_time_s = answer->hbm_bytes_per_device = (double)NAN;
    adv_code code = kind == ADV_REQUEST_LINT ? adv_decode_lint_text(json, json_bytes, &root, err)
                                             : adv_json_parse(json, json_bytes, &root, err);
    if (code != ADV_OK) return code;
    struct job job = {.catalog = catalog,
                      .root = root,
                      .budget = budget,
                      .warnings = &warnings,
                      .answer = answer,
                      .err = err};
    adv_arena_init(&job.arena, ADV_LIMIT_ARENA_BYTES);
    code = adv_budget_over(budget) ? adv_budget_refuse(err) : steps[kind](&job);
    if (code == ADV_OK && adv_budget_over(budget)) {
        json_decref(job.result);
        code = adv_budget_refuse(err);
    }
    if (code == ADV_OK) {
        answer->json = adv_encode_text(job.result, &answer->json_bytes);
        if (!answer->json)
            code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the answer needs more memory than there is");
    }
    adv_arena_free(&job.arena);
    json_decref(root);
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
