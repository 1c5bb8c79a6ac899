#include <stdio.h>
#include <string.h>

#include "engine/json/decode_gate.h"
#include "server/api.h"
#include "server/app.h"
#include "server/gate.h"
#include "server/keep.h"
#include "server/store_baselines.h"

#define VERDICT_LIMIT_BYTES                                                                                  \
    (8u * 1024u * 1024u) /* the comparison is the bulk: two answers' terms, below 200 KiB */

/* One side of the check and the answer that stands for it; `response` points into `stored` or `made`. */
struct side {
    struct adv_gate_side gate;
    struct adv_stored_run stored;
    struct adv_text made;
    bool has_stored;
    const char *response;
};

static adv_code load_side(struct adv_exchange *exchange, const char *run_id, const char *pointer,
                          struct side *side, adv_err *err)
{
    adv_err found;
    adv_err_init(&found);
    adv_code code = adv_store_run_get(exchange->db, run_id, &side->stored, &found);
    if (code) {
        adv_err_merge(err, &found, pointer);
        return code;
    }
    side->has_stored = true;
    side->response = side->stored.response;
    side->gate.step_time_s = side->stored.step_time_s;
    side->gate.hbm_bytes_per_device = side->stored.hbm_bytes;
    side->gate.fits = side->stored.fits;
    (void)snprintf(side->gate.run_id, sizeof side->gate.run_id, "%s", side->stored.id);
    if (side->gate.step_time_s > 0.0) return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, pointer, "use a run of an estimate or advise",
                       "the run has no step time to compare");
}

static adv_code load_baseline(struct adv_exchange *exchange, const struct adv_gate_request *request,
                              struct side *side, adv_err *err)
{
    if (request->baseline_run_id[0])
        return load_side(exchange, request->baseline_run_id, "/baseline/run_id", side, err);
    struct adv_baseline baseline;
    adv_err found;
    adv_err_init(&found);
    adv_code code = adv_store_baseline_get(exchange->db, request->baseline_project, request->baseline_label,
                                           true, &baseline, &found);
    if (code) {
        adv_err_merge(err, &found, "/baseline");
        return code;
    }
    return load_side(exchange, baseline.run_id, "/baseline", side, err);
}

/* The candidate is estimated here, and stored when it asks for it. */
static adv_code make_candidate(struct adv_exchange *exchange, const struct adv_gate_request *request,
                               struct side *side, adv_err *err)
{
    struct adv_answer answer;
    adv_err found;
    adv_err_init(&found);
    adv_code code = adv_api_run_engine(exchange, ADV_REQUEST_ESTIMATE, request->candidate_request,
                                       request->candidate_request_bytes, &answer, &found);
    if (code) {
        adv_err_merge(err, &found, "/candidate");
        return code;
    }
    adv_text_init(&side->made, ADV_LIMIT_STORED_BYTES);
    enum adv_store_outcome outcome = ADV_STORE_SAVED;
    if (answer.wants_store)
        (void)adv_keep(exchange, ADV_REQUEST_ESTIMATE, request->candidate_request, &answer, NULL, &side->made,
                       side->gate.run_id, &outcome);
    else
        adv_text_append_bytes(&side->made, answer.json, answer.json_bytes);
    side->gate.step_time_s = answer.step_time_s;
    side->gate.hbm_bytes_per_device = answer.hbm_bytes_per_device;
    side->gate.fits = answer.fits;
    adv_answer_free(&answer);
    side->response = side->made.data;
    return side->made.overflow
               ? adv_err_add(err, ADV_E_MEMORY, "/candidate", NULL, "no memory for the answer")
               : ADV_OK;
}

static void reply_verdict(struct adv_exchange *exchange, const struct adv_gate_request *request,
                          const struct side *baseline, const struct side *candidate)
{
    const struct adv_gate_limits limits = {request->step_time_increase_frac, request->hbm_increase_frac,
                                           request->must_fit};
    struct adv_gate_verdict verdict;
    adv_gate_judge(&baseline->gate, &candidate->gate, &limits, &verdict);
    const char *fail_status = adv_exchange_query(exchange, "fail_status");
    int status = !verdict.pass && fail_status && strcmp(fail_status, "true") == 0 ? 409 : 200;
    struct adv_text text;
    adv_text_init(&text, VERDICT_LIMIT_BYTES);
    const char *type = "application/json";
    if (adv_exchange_accepts(exchange, type)) {
        const char *const ids[] = {baseline->gate.run_id,
                                   candidate->gate.run_id[0] ? candidate->gate.run_id : "candidate"};
        const char *const responses[] = {baseline->response, candidate->response};
        struct adv_answer compare = {0};
        adv_err ignored; /* runs of other kinds cannot be compared term by term; the verdict stands */
        adv_err_init(&ignored);
        adv_code code = adv_compare_json(ids, responses, 2, &compare, &ignored);
        adv_gate_print_json(&baseline->gate, &candidate->gate, &limits, &verdict, code ? NULL : compare.json,
                            &text);
        if (!code) adv_answer_free(&compare);
    } else if (adv_exchange_accepts(exchange, "text/markdown")) {
        type = "text/markdown; charset=utf-8";
        adv_gate_print_markdown(&baseline->gate, &candidate->gate, &verdict, &text);
    } else {
        type = "application/junit+xml";
        adv_gate_print_junit(&verdict, &limits, &text);
    }
    if (text.overflow) adv_text_free(&text);
    adv_reply_text(exchange, status, type, text.data, text.length_bytes);
}

static bool check_head(struct adv_exchange *exchange)
{
    static const char *const allowed[] = {"fail_status", NULL};
    if (!adv_exchange_check_query(exchange, allowed)) return false;
    const char *fail_status = adv_exchange_query(exchange, "fail_status");
    if (fail_status && strcmp(fail_status, "true") != 0 && strcmp(fail_status, "false") != 0) {
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/fail_status", NULL,
                        "fail_status is true or false");
        return false;
    }
    if (adv_exchange_accepts(exchange, "application/json") ||
        adv_exchange_accepts(exchange, "text/markdown") ||
        adv_exchange_accepts(exchange, "application/junit+xml"))
        return true;
    adv_reply_error(exchange, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", NULL,
                    "a check is answered as application/json, text/markdown or application/junit+xml");
    return false;
}

void adv_api_check(struct adv_exchange *exchange)
{
    if (!check_head(exchange)) return;
    struct adv_gate_request request;
    adv_err err;
    adv_err_init(&err);
    if (adv_decode_gate(exchange->body ? exchange->body : "", exchange->body_bytes, &request, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    struct side baseline = {0};
    struct side candidate = {0};
    adv_code code = load_baseline(exchange, &request, &baseline, &err);
    if (!code && request.candidate_run_id[0])
        code = load_side(exchange, request.candidate_run_id, "/candidate/run_id", &candidate, &err);
    else if (!code)
        code = make_candidate(exchange, &request, &candidate, &err);
    if (code)
        adv_reply_problem(exchange, &err);
    else
        reply_verdict(exchange, &request, &baseline, &candidate);
    if (baseline.has_stored) adv_store_run_free(&baseline.stored);
    if (candidate.has_stored) adv_store_run_free(&candidate.stored);
    adv_text_free(&candidate.made);
    adv_gate_request_free(&request);
}
