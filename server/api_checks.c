#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/check_sides.h"
#include "server/store_baselines.h"

#define VERDICT_LIMIT_BYTES                                                                                  \
    (8u * 1024u * 1024u) /* the comparison is the bulk: two answers' terms, below 200 KiB */
#define ENGINE_LIMIT_BYTES 1024

/* Notes the verdict about a stored candidate: only a run that passed may ever stand in for a baseline, and
 * one that was compared with itself has passed nothing. A read token leaves no trace, and a verdict that
 * could not be noted is a verdict all the same. */
static void note_verdict(struct adv_exchange *exchange, const struct adv_gate_side *baseline,
                         const struct adv_gate_side *candidate, bool passed)
{
    if (!candidate->run_id[0] || !(exchange->scopes & ADV_SCOPE_WRITE)) return;
    if (strcmp(candidate->run_id, baseline->run_id) == 0) return;
    adv_err err = adv_err_empty();
    if (!adv_store_verdict(exchange->db, candidate->run_id, baseline->run_id, passed, &err)) return;
    struct adv_log_line line;
    adv_log_begin(&exchange->app->log, &line, ADV_LOG_WARNING, "verdict not noted");
    adv_log_string(&line, "request_id", exchange->request_id);
    adv_log_string(&line, "reason", err.count ? err.findings[0].detail : "");
    adv_log_end(&line);
}

static const char *print_json(struct adv_exchange *exchange, struct adv_gate_report *report,
                              const struct adv_check_side *baseline, const struct adv_check_side *candidate,
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
                          const struct adv_check_side *baseline, const struct adv_check_side *candidate,
                          bool fail_status)
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
static adv_code find_words(struct adv_exchange *exchange, struct adv_check_side *baseline,
                           struct adv_check_side *candidate, adv_err *err)
{
    adv_code code = adv_api_word_of(exchange, baseline->response, 1, &baseline->gate.word, err);
    return code ? code : adv_api_word_of(exchange, candidate->response, 1, &candidate->gate.word, err);
}

adv_code adv_api_check(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_gate_request request;
    struct adv_check_side baseline = {0}, candidate = {0};
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
    code = adv_check_load_baseline(exchange, &request, &baseline, err);
    if (!code) code = adv_check_load_candidate(exchange, &request, &candidate, err);
    if (!code) code = find_words(exchange, &baseline, &candidate, err);
    if (!code) code = adv_gate_compare_like(&baseline.gate, &candidate.gate, request.may_differ, err);
    if (!code) reply_verdict(exchange, &request, &baseline, &candidate, fail_status);
    free(baseline.response);
    free(candidate.response);
    adv_gate_request_free(&request);
    return code;
}
