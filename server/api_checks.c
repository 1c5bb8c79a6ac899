/* api_checks.c: a candidate compared with a baseline: two runs, or an estimate made for it.
 *
 * A run of another engine (version, catalog or calibration) is priced again by this one, so that a check
 * compares plans and not engines; what the other engine answered is kept beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/gate.h"
#include "server/keep.h"
#include "server/store_baselines.h"

#define VERDICT_LIMIT_BYTES                                                                                  \
    (8u * 1024u * 1024u) /* the comparison is the bulk: two answers' terms, below 200 KiB */
#define ENGINE_LIMIT_BYTES 1024

struct side {
    struct adv_gate_side gate;
    char *response; /* the answer that is judged; malloc'ed */
};

/* Prices the side's plan with this engine. */
static adv_code price_again(struct adv_exchange *exchange, const struct adv_stored_run *run,
                            struct side *side, adv_err *err)
{
    char *json = NULL;
    struct adv_answer answer;
    adv_code code = adv_gate_ask_again(run->request, run->response, &json, err);
    if (code) return code;
    code = adv_api_run_engine(exchange, ADV_REQUEST_ESTIMATE, json, strlen(json), &answer, err);
    free(json);
    if (code) return code;
    side->response = answer.json;
    side->gate.reevaluated = true;
    return adv_gate_read_answer(answer.json, &side->gate.now, err);
}

static adv_code load_run(struct adv_exchange *exchange, const char *run_id, struct side *side, adv_err *err)
{
    struct adv_stored_run run;
    adv_code code = adv_store_run_get(exchange->db, run_id, &run, err);
    if (code) return code;
    (void)snprintf(side->gate.run_id, sizeof side->gate.run_id, "%s", run.id);
    code = adv_gate_read_answer(run.response, &side->gate.stored, err);
    side->gate.now = side->gate.stored;
    if (!code && !adv_gate_is_todays(exchange->app->catalog, &side->gate.stored)) {
        code = price_again(exchange, &run, side, err);
        if (code == ADV_E_INVALID || code == ADV_E_ILLEGAL)
            adv_err_hint(err, "this engine does not take the run's request any more: use another run");
    } else if (!code) {
        side->response = strdup(run.response);
        if (!side->response) code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the run");
    }
    adv_store_run_free(&run);
    return code;
}

/* Gives the findings of a part their place in the whole, and what was made back when there are some. */
static adv_code finish(struct side *side, adv_code code, const adv_err *found, const char *pointer,
                       adv_err *err)
{
    if (!code) return ADV_OK;
    adv_err_merge(err, found, pointer);
    free(side->response);
    side->response = NULL;
    return code;
}

static adv_code load_baseline(struct adv_exchange *exchange, const struct adv_gate_request *request,
                              struct side *side, adv_err *err)
{
    const bool by_id = request->baseline_run_id[0] != '\0';
    const char *run_id = request->baseline_run_id;
    const struct adv_baseline_name name = {request->baseline_project, request->baseline_label};
    struct adv_baseline baseline;
    adv_err found = adv_err_empty();
    memset(side, 0, sizeof *side);
    adv_code code =
        by_id ? ADV_OK
              : adv_store_baseline_find(exchange->db, &name, request->candidate_run_id, &baseline, &found);
    if (!code) code = load_run(exchange, by_id ? run_id : baseline.run_id, side, &found);
    if (!code && !side->gate.stored.fits)
        code = adv_err_add(&found, ADV_E_INVALID, "", "use a run that fits",
                           "the run does not fit in memory: it is nothing to compare with");
    return finish(side, code, &found, by_id ? "/baseline/run_id" : "/baseline", err);
}

/* The candidate is estimated here, and stored when it asks for it. */
static adv_code make_candidate(struct adv_exchange *exchange, const struct adv_gate_request *request,
                               struct side *side, adv_err *err)
{
    struct adv_answer answer;
    char *plain = NULL; /* without a recipe, as it is stored */
    size_t plain_bytes = 0;
    adv_code code =
        adv_request_expand(exchange->app->catalog, ADV_REQUEST_ESTIMATE, request->candidate_request,
                           request->candidate_request_bytes, NULL, 0, &plain, &plain_bytes, err);
    if (!code) code = adv_api_run_engine(exchange, ADV_REQUEST_ESTIMATE, plain, plain_bytes, &answer, err);
    if (code) {
        free(plain);
        return code;
    }
    struct adv_kept kept = {.kind = ADV_REQUEST_ESTIMATE, .request = plain};
    if (answer.wants_store) {
        code = adv_keep(exchange, &answer, &kept, err);
    } else {
        kept.response = adv_text_empty(ADV_LIMIT_STORED_BYTES);
        adv_text_append_bytes(&kept.response, answer.json, answer.json_bytes);
    }
    adv_answer_free(&answer);
    free(plain);
    side->response = kept.response.data;
    memcpy(side->gate.run_id, kept.run_id, sizeof kept.run_id);
    if (code) return code;
    if (kept.response.overflow || !side->response)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    code = adv_gate_read_answer(side->response, &side->gate.now, err);
    side->gate.stored = side->gate.now;
    return code;
}

static adv_code load_candidate(struct adv_exchange *exchange, const struct adv_gate_request *request,
                               struct side *side, adv_err *err)
{
    const bool by_id = request->candidate_run_id[0] != '\0';
    adv_err found = adv_err_empty();
    memset(side, 0, sizeof *side);
    adv_code code = by_id ? load_run(exchange, request->candidate_run_id, side, &found)
                          : make_candidate(exchange, request, side, &found);
    return finish(side, code, &found, by_id ? "/candidate/run_id" : "/candidate", err);
}

/* Notes the verdict about a stored candidate: only a run that passed may ever stand in for a baseline, and
 * one that was compared with itself has passed nothing. A read token leaves no trace, and a verdict that
 * could not be noted is a verdict all the same. */
static void note_verdict(struct adv_exchange *exchange, const struct adv_gate_side *baseline,
                         const struct adv_gate_side *candidate, bool passed)
{
    if (!candidate->run_id[0] || !(exchange->scopes & ADV_SCOPE_WRITE)) return;
    if (strcmp(candidate->run_id, baseline->run_id) == 0) return;
    adv_err err = adv_err_empty();
    if (adv_store_verdict(exchange->db, candidate->run_id, baseline->run_id, passed, &err))
        adv_api_warn(exchange, "verdict not noted", &err);
}

static const char *print_json(struct adv_exchange *exchange, struct adv_gate_report *report,
                              const struct side *baseline, const struct side *candidate,
                              struct adv_text *text)
{
    const char *const ids[] = {baseline->gate.run_id,
                               candidate->gate.run_id[0] ? candidate->gate.run_id : "candidate"};
    const char *const responses[] = {baseline->response, candidate->response};
    struct adv_answer compare = {0};
    struct adv_text engine = adv_text_empty(ENGINE_LIMIT_BYTES);
    adv_err ignored = adv_err_empty(); /* the verdict stands without the terms */
    adv_api_print_engine(exchange->app, &engine);
    adv_code code = adv_compare_json(ids, responses, 2, &compare, &ignored);
    report->compare = code ? NULL : compare.json;
    report->engine = engine.data;
    adv_gate_print_json(report, text);
    if (!code) adv_answer_free(&compare);
    adv_text_free(&engine);
    return "application/json";
}

static void reply_verdict(struct adv_exchange *exchange, const struct adv_gate_request *request,
                          const struct side *baseline, const struct side *candidate, bool fail_status)
{
    struct adv_gate_limits limits = {.must_fit = request->must_fit, .must_compile = request->must_compile};
    memcpy(limits.frac, request->limits_frac, sizeof limits.frac);
    struct adv_gate_verdict verdict;
    adv_gate_judge(&baseline->gate, &candidate->gate, &limits, &verdict);
    note_verdict(exchange, &baseline->gate, &candidate->gate, verdict.pass);
    struct adv_gate_report report = {.baseline = &baseline->gate,
                                     .candidate = &candidate->gate,
                                     .limits = &limits,
                                     .verdict = &verdict,
                                     .reports = request->reports};
    struct adv_text text = adv_text_empty(VERDICT_LIMIT_BYTES);
    const char *type = "application/junit+xml";
    if (adv_exchange_accepts(exchange, "application/json")) {
        type = print_json(exchange, &report, baseline, candidate, &text);
    } else if (adv_exchange_accepts(exchange, "text/markdown")) {
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
    bool fail_status = false;
    adv_code code = adv_api_read_switch(exchange, "fail_status", &fail_status, err);
    if (code) return code;
    if (!adv_exchange_accepts(exchange, "application/json") &&
        !adv_exchange_accepts(exchange, "text/markdown") &&
        !adv_exchange_accepts(exchange, "application/junit+xml"))
        return adv_err_add(err, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", NULL,
                           "a check is answered as application/json, text/markdown or application/junit+xml");
    code = adv_decode_gate(adv_exchange_body(exchange), exchange->body_bytes, &request, err);
    if (code) return code;
    code = load_baseline(exchange, &request, &baseline, err);
    if (!code) code = load_candidate(exchange, &request, &candidate, err);
    if (!code) code = find_words(exchange, &baseline, &candidate, err);
    if (!code) code = adv_gate_compare_like(&baseline.gate, &candidate.gate, request.may_differ, err);
    if (!code) reply_verdict(exchange, &request, &baseline, &candidate, fail_status);
    free(baseline.response);
    free(candidate.response);
    adv_gate_request_free(&request);
    return code;
}
