#include <stdio.h>
#include <string.h>

#include "engine/json/decode_bodies.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_runs.h"
#include "server/store_verifications.h"

#define VERIFICATION_LIMIT_BYTES (8u * 1024u * 1024u) /* 100 plans of 16 KiB take 1.6 MiB */
#define EVENTS_RETRY_MS          1000

static adv_code create(struct adv_exchange *exchange, const struct adv_proof_request *request,
                       const struct adv_idempotency *idempotency, char id[ADV_UUID_BYTES], bool *created,
                       adv_err *err)
{
    struct adv_stored_run run;
    adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    const struct adv_verification_order order = {.run_id = run.id,
                                                 .principal = exchange->principal,
                                                 .response = run.response,
                                                 .catalog = exchange->app->catalog,
                                                 .first_rank = request->first_rank,
                                                 .last_rank = request->last_rank,
                                                 .whole = request->whole,
                                                 .idempotency = idempotency->key ? idempotency : NULL};
    adv_err found = adv_err_empty();
    code = adv_verification_create(exchange->db, &order, id, created, &found);
    if (code == ADV_E_NOT_FOUND && strcmp(found.findings[0].pointer, "") != 0)
        code = adv_err_add(err, ADV_E_INVALID, "/rank", NULL, "%s", found.findings[0].detail);
    else if (code)
        adv_err_merge(err, &found, "");
    adv_store_run_free(&run);
    return code;
}

/* Answers with the verification as it stands. */
static adv_code reply_state(struct adv_exchange *exchange, int status, const char *id, adv_err *err)
{
    struct adv_text json = adv_text_empty(VERIFICATION_LIMIT_BYTES);
    const adv_code code = adv_verification_print(exchange->db, id, &json, NULL, NULL, err);
    return adv_api_reply_printed(exchange, status, code, &json);
}

adv_code adv_api_word_of(struct adv_exchange *exchange, const char *response, int rank,
                         struct adv_verification_word *word, adv_err *err)
{
    struct adv_proof_plan plan;
    int ranks_count = 0;
    adv_err ignored = adv_err_empty(); /* of a kernel, without a plan that fits, or of no MaxText model */
    memset(word, 0, sizeof *word);
    if (adv_proof_plan_read(exchange->app->catalog, response, strlen(response), rank, &plan, &ranks_count,
                            &ignored))
        return ADV_OK;
    const adv_code code = adv_verification_find(exchange->db, plan.plan, word, err);
    adv_proof_plan_free(&plan);
    return code;
}

adv_code adv_api_verification_post(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_proof_request request;
    struct adv_idempotency idempotency;
    char id[ADV_UUID_BYTES];
    bool created = false;
    adv_code code = adv_api_read_key(exchange, &idempotency, err);
    if (!code)
        code = adv_decode_proof_request(adv_exchange_body(exchange), exchange->body_bytes, &request, err);
    if (!code) code = create(exchange, &request, &idempotency, id, &created, err);
    if (code) return code;
    adv_reply_header(exchange, "Location", "/v1/verifications/%s", id);
    if (!created) adv_reply_header(exchange, "Idempotency-Replayed", "true");
    return reply_state(exchange, 202, id, err);
}

adv_code adv_api_verification_get(struct adv_exchange *exchange, adv_err *err)
{
    return reply_state(exchange, 200, exchange->parameters[0], err);
}

adv_code adv_api_verifications_list(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_verification_filter filter = {.run_id = exchange->parameters[0],
                                             .after = adv_exchange_query(exchange, "cursor")};
    adv_code code = adv_api_read_page(exchange, NULL, filter.after, &filter.limit_count, err);
    if (!code && adv_exchange_query(exchange, "rank")) code = adv_api_read_rank(exchange, &filter.rank, err);
    if (code) return code;
    struct adv_text json = adv_text_empty(VERIFICATION_LIMIT_BYTES);
    code = adv_verifications_list(exchange->db, &filter, &json, err);
    return adv_api_reply_page(exchange, code, &json, err);
}

adv_code adv_api_verification_delete(struct adv_exchange *exchange, adv_err *err)
{
    return adv_api_reply_done(exchange, adv_verification_cancel(exchange->db, exchange->parameters[0], err));
}

/* One event with what has changed since the client's last one; the client's library asks again after `retry`.
 * A compile says something every ten seconds: no connection and no thread waits for it. 204 ends the stream.
 */
adv_code adv_api_verification_events(struct adv_exchange *exchange, adv_err *err)
{
    char state[16] = "", id[24];
    long changes = 0;
    struct adv_text json = adv_text_empty(VERIFICATION_LIMIT_BYTES);
    struct adv_text events = adv_text_empty(VERIFICATION_LIMIT_BYTES + 256);
    const adv_code code =
        adv_verification_print(exchange->db, exchange->parameters[0], &json, state, &changes, err);
    if (code) return adv_api_reply_printed(exchange, 200, code, &json);
    const char *last = exchange->headers[ADV_HEADER_LAST_EVENT_ID];
    const bool ended = strcmp(state, "done") == 0 || strcmp(state, "cancelled") == 0;
    (void)snprintf(id, sizeof id, "%ld", changes);
    const bool seen = last && strcmp(last, id) == 0;
    if (seen && ended) {
        adv_reply_empty(exchange, 204);
    } else {
        adv_text_format(&events, "retry: %d\n", EVENTS_RETRY_MS);
        if (!seen) {
            adv_text_format(&events, "id: %s\nevent: %s\ndata: ", id, ended ? state : "progress");
            adv_text_append(&events, json.data);
        }
        adv_text_append(&events, "\n\n");
        adv_reply_text(exchange, 200, "text/event-stream", events.data, events.length_bytes);
    }
    adv_text_free(&json);
    return ADV_OK;
}
