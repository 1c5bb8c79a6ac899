/* api_reevaluate.c: the request of an old run asked again, of the engine of today. The answer is a run of its
 * own that names the old one; both numbers and the terms between them are told. Three steps: the store has
 * the request, a worker of the engine answers it, the store keeps the answer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/gate_side.h"
#include "server/api.h"
#include "server/app.h"
#include "server/gate.h"
#include "server/json_text.h"
#include "server/keep.h"
#include "server/routes.h"

#define MADE_LIMIT_BYTES (8u * 1024u * 1024u) /* the comparison is the bulk: below 200 KiB */

struct reevaluation {
    struct adv_idempotency idempotency;
    enum adv_request_kind kind;
    struct adv_answer answer; /* its document is held by the exchange */
};

/* Numbers of one side, or null: an answer without a plan that fits has none. */
static void print_side(struct adv_text *json, const char *name, const char *run_id,
                       const struct adv_gate_numbers *numbers)
{
    adv_json_text_raw(json, name, "{");
    adv_json_text_string(json, "run_id", run_id);
    adv_json_text_number(json, "step_time_s", numbers->step_time_s);
    adv_json_text_number(json, "step_time_low_s", numbers->step_time_low_s);
    adv_json_text_number(json, "step_time_high_s", numbers->step_time_high_s);
    adv_json_text_number(json, "hbm_bytes_per_device", numbers->hbm_bytes_per_device);
    adv_json_text_bool(json, "fits", numbers->fits);
    adv_gate_print_engine(numbers, json);
    adv_text_append(json, "}");
}

/* {"run_id", "reevaluates", "before", "after", …, "compare", "engine"}: the engine is that of `response`. */
static adv_code print_both(const struct adv_stored_run *old, const char *run_id, const char *response,
                           struct adv_text *json, adv_err *err)
{
    struct adv_gate_numbers before, after;
    adv_code code = adv_gate_read_answer(old->response, &before, err);
    if (!code) code = adv_gate_read_answer(response, &after, err);
    if (code) return code;
    adv_text_append(json, "{");
    adv_json_text_string(json, "run_id", run_id);
    adv_json_text_string(json, "reevaluates", old->id);
    print_side(json, "before", old->id, &before);
    print_side(json, "after", run_id, &after);
    adv_json_text_number(json, "step_time_change_frac", after.step_time_s / before.step_time_s - 1.0);
    adv_json_text_number(json, "hbm_change_frac",
                         after.hbm_bytes_per_device / before.hbm_bytes_per_device - 1.0);
    const char *const ids[] = {old->id, run_id}, *const responses[] = {old->response, response};
    struct adv_answer compare = {0};
    adv_err ignored = adv_err_empty(); /* the numbers stand without the terms */
    code = adv_compare_json(ids, responses, 2, &compare, &ignored);
    adv_json_text_raw(json, "compare", code ? NULL : compare.json);
    if (!code) adv_answer_free(&compare);
    adv_gate_print_engine(&after, json);
    adv_text_append(json, "}");
    return ADV_OK;
}

/* The run that a request with the same key has made; nothing is replied where there is none. */
static adv_code replay(struct adv_exchange *exchange, const struct adv_idempotency *key, adv_err *err)
{
    enum adv_store_outcome outcome = ADV_STORE_UNKNOWN_KEY;
    struct adv_stored_run old;
    char id[ADV_UUID_BYTES] = "", *response = NULL;
    if (!key->key) return ADV_OK;
    adv_code code = adv_store_key_find(exchange->db, key, &outcome, &response, err);
    if (!code && outcome == ADV_STORE_OTHER_BODY) code = adv_store_refuse_key(err);
    if (!code && outcome == ADV_STORE_REPLAYED) code = adv_store_key_run(exchange->db, key, id, err);
    if (!code && id[0]) code = adv_store_run_get(exchange->db, exchange->parameters[0], &old, err);
    if (!code && id[0]) {
        struct adv_text json = adv_text_empty(MADE_LIMIT_BYTES);
        code = print_both(&old, id, response, &json, err);
        adv_store_run_free(&old);
        adv_reply_header(exchange, "Location", "/v1/runs/%s", id);
        adv_reply_header(exchange, "Idempotency-Replayed", "true");
        code = adv_api_reply_named(exchange, 201, code, &json);
    }
    free(response);
    return code;
}

/* On a worker that has a database. */
static adv_code keep_and_reply(struct adv_exchange *exchange, adv_err *err)
{
    struct reevaluation *asked = exchange->state;
    struct adv_stored_run old;
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &old, err);
    if (code) return code; /* deleted meanwhile */
    const struct adv_idempotency *key = asked->idempotency.key ? &asked->idempotency : NULL;
    struct adv_kept kept = {
        .kind = asked->kind, .request = exchange->body, .reevaluates = old.id, .idempotency = key};
    struct adv_text json = adv_text_empty(MADE_LIMIT_BYTES);
    asked->answer.store_may_fail = false;
    code = adv_keep(exchange, &asked->answer, &kept, err);
    const bool is_taken = !code && kept.outcome == ADV_STORE_UNKNOWN_KEY;
    if (!code && !is_taken) code = print_both(&old, kept.run_id, kept.response.data, &json, err);
    adv_store_run_free(&old);
    adv_text_free(&kept.response);
    if (is_taken) { /* another request with the key was faster: its run counts */
        adv_text_free(&json);
        code = replay(exchange, &asked->idempotency, err);
        return code || exchange->reply.status ? code : adv_store_refuse_pending_key(err);
    }
    if (!code) adv_reply_header(exchange, "Location", "/v1/runs/%s", kept.run_id);
    return adv_api_reply_named(exchange, 201, code, &json);
}

/* On a worker of the engine. */
static adv_code compute(struct adv_exchange *exchange, adv_err *err)
{
    struct reevaluation *asked = exchange->state;
    struct adv_gate_numbers now;
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    adv_code code = adv_api_run_engine(exchange, (int)asked->kind, exchange->body, exchange->body_bytes,
                                       &asked->answer, err);
    if (code == ADV_E_INVALID || code == ADV_E_ILLEGAL)
        adv_err_hint(
            err,
            "this engine does not take the run's request any more: ask in today's words, and store that");
    if (!code) {
        exchange->held = asked->answer.json;
        code = adv_gate_read_answer(asked->answer.json, &now, err); /* before it is stored */
    }
    exchange->next = code ? NULL : keep_and_reply;
    exchange->next_place = ADV_ROUTE_STORE;
    return code;
}

static adv_code read_run(struct adv_exchange *exchange, struct reevaluation *asked, adv_err *err)
{
    struct adv_stored_run run;
    struct adv_gate_numbers before;
    adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    asked->kind = strcmp(run.kind, "advise") == 0 ? ADV_REQUEST_ADVISE : ADV_REQUEST_ESTIMATE;
    code = adv_gate_read_answer(run.response, &before, err);
    if (!code) {
        free(exchange->body); /* from here on the request is the run's */
        exchange->body = NULL;
        code = adv_gate_name_project(run.request, run.project, &exchange->body, err);
        exchange->body_bytes = exchange->body ? strlen(exchange->body) : 0;
    }
    adv_store_run_free(&run);
    return code;
}

adv_code adv_api_run_reevaluate(struct adv_exchange *exchange, adv_err *err)
{
    struct reevaluation *asked = adv_arena_alloc(&exchange->arena, sizeof *asked);
    exchange->state = asked;
    if (!asked) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
    adv_code code = adv_api_read_key(exchange, &asked->idempotency, err);
    if (!code) code = replay(exchange, &asked->idempotency, err);
    if (code || exchange->reply.status) return code;
    code = read_run(exchange, asked, err);
    exchange->next = code ? NULL : compute;
    exchange->next_place = asked->kind == ADV_REQUEST_ADVISE ? ADV_ROUTE_SEARCH : ADV_ROUTE_QUICK;
    return code;
}
