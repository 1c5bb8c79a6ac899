/* api_checks.c: a candidate compared with a baseline: two runs, or an estimate made for it.
 *
 * Both sides are priced by this engine under one calibration, that of the baseline's project, so that a check
 * compares plans and not engines. A run of another engine, catalog or calibration is priced again; what was
 * answered then is kept beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/calibrations.h"
#include "server/gate.h"
#include "server/keep.h"
#include "server/store_baselines.h"

#define VERDICT_LIMIT_BYTES                                                                                  \
    (8u * 1024u * 1024u) /* the comparison is the bulk: two answers' terms, below 200 KiB */

struct side {
    struct adv_gate_side gate;
    char *response; /* the answer that is judged; malloc'ed */
    /* Of a candidate that was estimated here: */
    char *request; /* as it is stored; malloc'ed */
    struct adv_answer made;
};

static void free_side(struct side *side)
{
    free(side->response);
    free(side->request);
    if (side->made.json) adv_answer_free(&side->made);
    memset(side, 0, sizeof *side);
}

/* Prices the side's plan with this engine, under the calibration of the project. */
static adv_code price_again(struct adv_exchange *exchange, const char *project, const char *request,
                            struct side *side, adv_err *err)
{
    char *json = NULL;
    struct adv_answer answer;
    struct adv_gate_numbers numbers;
    adv_code code = adv_gate_ask_again(request, side->response, 1, project, &json, err);
    if (code) return code;
    code = adv_api_run_engine(exchange, ADV_REQUEST_ESTIMATE, json, strlen(json), &answer, err);
    free(json);
    if (code) return code;
    free(side->response);
    side->response = answer.json;
    side->gate.reevaluated = true;
    code = adv_gate_read_answer(answer.json, &numbers, err);
    side->gate.now = numbers;
    return code;
}

/* Reads the side's numbers from its response, and prices it again where they are not by what is in force for
 * the project. */
static adv_code read_side(struct adv_exchange *exchange, const char *project, const char *request,
                          struct side *side, adv_err *err)
{
    struct adv_gate_numbers numbers;
    adv_code code = adv_gate_read_answer(side->response, &numbers, err);
    side->gate.now = side->gate.stored = numbers;
    if (code || adv_gate_is_todays(adv_calibrations_of(exchange->app, project), &side->gate.stored))
        return code;
    code = price_again(exchange, project, request, side, err);
    if (code == ADV_E_INVALID || code == ADV_E_ILLEGAL)
        adv_err_hint(err, "this engine does not take the run's request any more: use another run");
    return code;
}

/* `project`: whose calibration prices it; NULL: the run's own project's, which is then in `own`. */
static adv_code load_run(struct adv_exchange *exchange, const char *run_id, const char *project,
                         char own[ADV_LIMIT_NAME], struct side *side, adv_err *err)
{
    struct adv_stored_run run;
    adv_code code = adv_store_run_get(exchange->db, run_id, &run, err);
    if (code) return code;
    (void)snprintf(side->gate.run_id, sizeof side->gate.run_id, "%s", run.id);
    (void)snprintf(side->gate.created_at, sizeof side->gate.created_at, "%s", run.created_at);
    (void)snprintf(side->gate.git_ref, sizeof side->gate.git_ref, "%s", run.git_ref);
    (void)snprintf(own, ADV_LIMIT_NAME, "%s", run.project);
    side->response = strdup(run.response);
    if (!side->response)
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the run");
    else
        code = read_side(exchange, project ? project : own, run.request, side, err);
    adv_store_run_free(&run);
    return code;
}

/* Gives the findings of a part their place in the whole, and what was made back when there are some. */
static adv_code finish(struct side *side, adv_code code, const adv_err *found, const char *pointer,
                       adv_err *err)
{
    if (!code) return ADV_OK;
    adv_err_merge(err, found, pointer);
    free_side(side);
    return code;
}

/* A project's pinned baseline is there for all its tokens, whoever's the run is. */
static adv_code load_pinned(struct adv_exchange *exchange, const char *run_id, const char *project,
                            struct side *side, adv_err *err)
{
    char own[ADV_LIMIT_NAME];
    adv_db_act_for(exchange->db, exchange->principal, "", false);
    const adv_code code = load_run(exchange, run_id, project, own, side, err);
    adv_db_act_for(exchange->db, exchange->principal, exchange->project,
                   (exchange->scopes & ADV_SCOPE_WRITE) != 0);
    return code;
}

/* `project` gets the name of the project whose calibration prices both sides. */
static adv_code load_baseline(struct adv_exchange *exchange, const struct adv_gate_request *request,
                              char project[ADV_LIMIT_NAME], struct side *side, adv_err *err)
{
    const bool by_id = request->baseline_run_id[0] != '\0';
    const struct adv_baseline_name name = {request->baseline_project, request->baseline_label};
    struct adv_baseline baseline;
    adv_err found = adv_err_empty();
    adv_code code = ADV_OK;
    memset(side, 0, sizeof *side);
    if (by_id) {
        code = load_run(exchange, request->baseline_run_id, NULL, project, side, &found);
    } else {
        (void)snprintf(project, ADV_LIMIT_NAME, "%s", name.project);
        struct adv_idempotency kept; /* of a candidate that an earlier try may have stored */
        code = adv_api_read_key(exchange, &kept, err);
        if (code) return code;
        const struct adv_baseline_candidate candidate = {request->candidate_git_ref,
                                                         request->candidate_run_id, kept.principal, kept.key};
        code = adv_store_baseline_find(exchange->db, &name, &candidate, &baseline, &found);
        if (!code) code = load_pinned(exchange, baseline.run_id, project, side, &found);
        if (!code) side->gate.stands_in = !baseline.pinned;
    }
    if (!code && !side->gate.stored.fits)
        code = adv_err_add(&found, ADV_E_INVALID, "", "use a run that fits",
                           "the run does not fit in memory: it is nothing to compare with");
    return finish(side, code, &found, by_id ? "/baseline/run_id" : "/baseline", err);
}

/* The candidate is estimated here; keep_candidate stores it. */
static adv_code make_candidate(struct adv_exchange *exchange, const struct adv_gate_request *request,
                               const char *project, struct side *side, adv_err *err)
{
    size_t request_bytes = 0; /* without a recipe, as it is stored */
    adv_code code =
        adv_request_expand(exchange->app->catalog, ADV_REQUEST_ESTIMATE, request->candidate_request,
                           request->candidate_request_bytes, NULL, 0, &side->request, &request_bytes, err);
    if (!code)
        code = adv_api_run_engine(exchange, ADV_REQUEST_ESTIMATE, side->request, request_bytes, &side->made,
                                  err);
    if (code) return code;
    side->response = strdup(side->made.json);
    if (!side->response) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    memcpy(side->gate.git_ref, request->candidate_git_ref, sizeof side->gate.git_ref);
    return read_side(exchange, project, side->request, side, err);
}

/* Stores a candidate that asked for it, once it is known that the check has a verdict. One that an earlier
 * request with the same key has stored is that run. */
static adv_code keep_candidate(struct adv_exchange *exchange, struct side *side, adv_err *err)
{
    struct adv_idempotency idempotency;
    if (!side->made.wants_store) return ADV_OK;
    adv_code code = adv_api_read_key(exchange, &idempotency, err);
    if (code) return code;
    struct adv_kept kept = {.kind = ADV_REQUEST_ESTIMATE,
                            .request = side->request,
                            .idempotency = idempotency.key ? &idempotency : NULL};
    adv_err found = adv_err_empty();
    code = adv_keep(exchange, &side->made, &kept, &found);
    adv_text_free(&kept.response);
    memcpy(side->gate.run_id, kept.run_id, sizeof kept.run_id);
    if (code)
        adv_err_merge(err, &found, "/candidate");
    else if (kept.outcome == ADV_STORE_UNKNOWN_KEY)
        code = adv_store_key_run(exchange->db, &idempotency, side->gate.run_id, err);
    return code;
}

static adv_code load_candidate(struct adv_exchange *exchange, const struct adv_gate_request *request,
                               const char *project, struct side *side, adv_err *err)
{
    const bool by_id = request->candidate_run_id[0] != '\0';
    char own[ADV_LIMIT_NAME];
    adv_err found = adv_err_empty();
    memset(side, 0, sizeof *side);
    adv_code code = by_id ? load_run(exchange, request->candidate_run_id, project, own, side, &found)
                          : make_candidate(exchange, request, project, side, &found);
    return finish(side, code, &found, by_id ? "/candidate/run_id" : "/candidate", err);
}

/* Notes the verdict about a stored candidate: only a run that passed may ever stand in for a baseline, and
 * one that was compared with itself has passed nothing. What fails only because something is not known yet
 * (the compiler's word, a price) is asked again and not held against it. What passed without a limit on time
 * may be as slow as it likes, and where one side's hardware does not exist nothing is passed that others
 * could be held to. A read token leaves no trace, and a verdict that could not be noted is a verdict all the
 * same.
 */
static void note_verdict(struct adv_exchange *exchange, const struct adv_gate_side *baseline,
                         const struct adv_gate_side *candidate, const struct adv_gate_verdict *verdict)
{
    if (!candidate->run_id[0] || !(exchange->scopes & ADV_SCOPE_WRITE)) return;
    if (!verdict->pass && verdict->unknown_count == verdict->reasons_count) return;
    if (strcmp(candidate->run_id, baseline->run_id) == 0) return;
    if (verdict->pass && (!verdict->judges_time || baseline->now.is_what_if || candidate->now.is_what_if))
        return;
    adv_err err = adv_err_empty();
    if (adv_store_verdict(exchange->db, candidate->run_id, baseline->run_id, verdict->pass, &err))
        adv_api_warn(exchange, "verdict not noted", &err);
}

static const char *print_json(struct adv_gate_report *report, const struct side *baseline,
                              const struct side *candidate, struct adv_text *text)
{
    const char *const ids[] = {baseline->gate.run_id,
                               candidate->gate.run_id[0] ? candidate->gate.run_id : "candidate"};
    const char *const responses[] = {baseline->response, candidate->response};
    struct adv_answer compare = {0};
    adv_err ignored = adv_err_empty(); /* the verdict stands without the terms */
    adv_code code = adv_compare_json(ids, responses, 2, &compare, &ignored);
    report->compare = code ? NULL : compare.json;
    adv_gate_print_json(report, text);
    if (!code) adv_answer_free(&compare);
    return "application/json";
}

enum { AS_JSON, AS_MARKDOWN, AS_JUNIT, FORMS_COUNT };

static int form_of(const struct adv_exchange *exchange)
{
    static const char *const types[FORMS_COUNT] = {[AS_JSON] = "application/json",
                                                   [AS_MARKDOWN] = "text/markdown",
                                                   [AS_JUNIT] = "application/junit+xml"};
    return adv_exchange_preferred(exchange, types, FORMS_COUNT);
}

static void reply_verdict(struct adv_exchange *exchange, const struct adv_gate_request *request,
                          const struct side *baseline, const struct side *candidate, bool fail_status)
{
    struct adv_gate_limits limits = {.must_fit = request->must_fit, .must_compile = request->must_compile};
    memcpy(limits.frac, request->limits_frac, sizeof limits.frac);
    struct adv_gate_verdict verdict;
    adv_gate_judge(&baseline->gate, &candidate->gate, &limits, &verdict);
    note_verdict(exchange, &baseline->gate, &candidate->gate, &verdict);
    struct adv_gate_report report = {.baseline = &baseline->gate,
                                     .candidate = &candidate->gate,
                                     .limits = &limits,
                                     .verdict = &verdict,
                                     .reports = request->reports};
    struct adv_text text = adv_text_empty(VERDICT_LIMIT_BYTES);
    const char *type = "application/junit+xml";
    const int form = form_of(exchange);
    if (form == AS_JSON) {
        type = print_json(&report, baseline, candidate, &text);
    } else if (form == AS_MARKDOWN) {
        type = "text/markdown; charset=utf-8";
        adv_gate_print_markdown(&report, &text);
    } else {
        adv_gate_print_junit(&report, &text);
    }
    if (text.overflow) adv_text_free(&text);
    adv_reply_text(exchange, fail_status && !verdict.pass ? 409 : 200, type, text.data, text.length_bytes);
}

/* Looks up the real compiler's verdicts on both plans. */
static adv_code find_words(struct adv_exchange *exchange, struct side *baseline, struct side *candidate,
                           adv_err *err)
{
    adv_code code = adv_api_word_of(exchange, baseline->response, 1, &baseline->gate.word, err);
    return code ? code : adv_api_word_of(exchange, candidate->response, 1, &candidate->gate.word, err);
}

adv_code adv_api_check(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_gate_request request;
    struct side baseline = {0}, candidate = {0};
    char project[ADV_LIMIT_NAME] = "";
    bool fail_status = false;
    adv_code code = adv_api_read_switch(exchange, "fail_status", &fail_status, err);
    if (code) return code;
    if (form_of(exchange) < 0)
        return adv_err_add(err, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", NULL,
                           "a check is answered as application/json, text/markdown or application/junit+xml");
    code = adv_decode_gate(adv_exchange_body(exchange), exchange->body_bytes, &request, err);
    if (code) return code;
    code = load_baseline(exchange, &request, project, &baseline, err);
    if (!code) code = load_candidate(exchange, &request, project, &candidate, err);
    if (!code) code = find_words(exchange, &baseline, &candidate, err);
    if (!code) code = adv_gate_compare_like(&baseline.gate, &candidate.gate, request.may_differ, err);
    if (!code) code = keep_candidate(exchange, &candidate, err);
    if (!code) reply_verdict(exchange, &request, &baseline, &candidate, fail_status);
    free_side(&baseline);
    free_side(&candidate);
    adv_gate_request_free(&request);
    return code;
}
