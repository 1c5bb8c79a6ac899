#include "server/check_sides.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api.h"
#include "server/app.h"
#include "server/keep.h"
#include "server/store_baselines.h"

/* Prices the side's plan with this engine. */
static adv_code price_again(struct adv_exchange *exchange, const struct adv_stored_run *run,
                            struct adv_check_side *side, adv_err *err)
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

static adv_code load_run(struct adv_exchange *exchange, const char *run_id, struct adv_check_side *side,
                         adv_err *err)
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
static adv_code finish(struct adv_check_side *side, adv_code code, const adv_err *found, const char *pointer,
                       adv_err *err)
{
    if (!code) return ADV_OK;
    adv_err_merge(err, found, pointer);
    free(side->response);
    side->response = NULL;
    return code;
}

adv_code adv_check_load_baseline(struct adv_exchange *exchange, const struct adv_gate_request *request,
                                 struct adv_check_side *side, adv_err *err)
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
                               struct adv_check_side *side, adv_err *err)
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
    struct adv_text made = adv_text_empty(ADV_LIMIT_STORED_BYTES);
    enum adv_store_outcome outcome = ADV_STORE_SAVED;
    if (answer.wants_store)
        code = adv_keep(exchange, ADV_REQUEST_ESTIMATE, &(struct adv_asked){.request = plain}, &answer, NULL,
                        &made, side->gate.run_id, &outcome, err);
    else
        adv_text_append_bytes(&made, answer.json, answer.json_bytes);
    adv_answer_free(&answer);
    free(plain);
    side->response = made.data;
    if (code) return code;
    if (made.overflow || !made.data)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    code = adv_gate_read_answer(made.data, &side->gate.now, err);
    side->gate.stored = side->gate.now;
    return code;
}

adv_code adv_check_load_candidate(struct adv_exchange *exchange, const struct adv_gate_request *request,
                                  struct adv_check_side *side, adv_err *err)
{
    const bool by_id = request->candidate_run_id[0] != '\0';
    adv_err found = adv_err_empty();
    memset(side, 0, sizeof *side);
    adv_code code = by_id ? load_run(exchange, request->candidate_run_id, side, &found)
                          : make_candidate(exchange, request, side, &found);
    return finish(side, code, &found, by_id ? "/candidate/run_id" : "/candidate", err);
}
