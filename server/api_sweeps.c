#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/json/question.h"
#include "engine/json/sweep_request.h"
#include "server/api.h"
#include "server/app.h"
#include "server/routes.h"
#include "server/store_sweeps.h"
#include "server/sweep_check.h"
#include "server/sweeper.h"
#include "server/tokens.h"

#define SWEEP_LIMIT_BYTES (16u * 1024u * 1024u)
#define ITEM_LIMIT_BYTES  (64u * 1024u * 1024u)
#define EVENTS_COUNT      500
#define EVENTS_RETRY_MS   500
#define LAST_EVENT        "end"

/* Answers with the sweep as it stands. */
static adv_code reply_state(struct adv_exchange *exchange, int status, const char *id,
                            const struct adv_sweep_page *shown, adv_err *err)
{
    struct adv_text json = adv_text_empty(SWEEP_LIMIT_BYTES), engine = adv_text_empty(ADV_LIMIT_ENGINE_BYTES);
    struct adv_sweep_page page = *shown;
    adv_api_print_engine(exchange->app, &engine);
    page.engine = engine.data;
    const adv_code code = adv_sweep_print(exchange->db, id, &page, &json, err);
    adv_text_free(&engine);
    if (!code && status == 200) adv_api_link_next(exchange, &json);
    return adv_api_reply_named(exchange, status, code, &json);
}

adv_code adv_api_replay_sweep(struct adv_exchange *exchange, const struct adv_idempotency *idempotency,
                              adv_err *err)
{
    static const struct adv_sweep_page nothing = {.limit_count = 0};
    char id[ADV_UUID_BYTES] = "";
    adv_err ignored = adv_err_empty();
    if (!exchange->db) return ADV_OK;
    const adv_code code = adv_sweep_of_key(exchange->db, idempotency, id, &ignored);
    if (code == ADV_E_INVALID) return adv_store_refuse_key(err);
    if (code || !id[0]) return ADV_OK;
    adv_reply_header(exchange, "Location", "/v1/sweeps/%s", id);
    adv_reply_header(exchange, "Idempotency-Replayed", "true");
    return reply_state(exchange, 202, id, &nothing, err);
}

/* Takes the requests as a sweep; those of a token with a project are of that one where they name none. */
static adv_code create(struct adv_exchange *exchange, const struct adv_sweep_request *request,
                       const struct adv_idempotency *idempotency, adv_err *err)
{
    static const struct adv_sweep_page nothing = {.limit_count = 0};
    const char *project = request->project[0] ? request->project : exchange->project;
    const struct adv_sweep_order order = {.principal = exchange->principal,
                                          .project = project,
                                          .label = request->label,
                                          .kind = adv_sweep_kind_name(request->kind),
                                          .items_count = request->items_count,
                                          .list = request->list,
                                          .idempotency = idempotency->key ? idempotency : NULL};
    char id[ADV_UUID_BYTES];
    bool created = false;
    adv_code code = adv_sweep_create(exchange->db, &order, id, &created, err);
    if (code) return code;
    if (!id[0]) { /* a run took the key meanwhile: its answer counts */
        code = adv_api_replay(exchange, idempotency, err);
        return code || exchange->reply.status ? code : adv_store_refuse_pending_key(err);
    }
    adv_sweeper_wake(exchange->app->sweeper);
    adv_reply_header(exchange, "Location", "/v1/sweeps/%s", id);
    if (!created) adv_reply_header(exchange, "Idempotency-Replayed", "true");
    return reply_state(exchange, 202, id, &nothing, err);
}

adv_code adv_api_sweep_post(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_sweep_request request;
    struct adv_idempotency idempotency;
    const char *body = adv_exchange_body(exchange);
    adv_code code = adv_api_read_key(exchange, &idempotency, err);
    if (!code) code = adv_sweep_request_read(body, exchange->body_bytes, &request, err);
    if (code) return code;
    adv_sweep_check(exchange, &request, err);
    code = err->code ? err->code : create(exchange, &request, &idempotency, err);
    adv_sweep_request_free(&request);
    return code;
}

bool adv_api_wants_async(const struct adv_exchange *exchange)
{
    static const char wish[] = "respond-async";
    const char *at = exchange->headers[ADV_HEADER_PREFER];
    struct adv_database *database = exchange->app->database;
    /* A preference: where it cannot be met now, the answer comes at once. */
    if (!database || adv_database_state(database) != ADV_DATABASE_UP || !(exchange->scopes & ADV_SCOPE_WRITE))
        return false;
    while (at && *at) {
        at += strspn(at, ", \t");
        const size_t length = strcspn(at, ", \t;");
        if (length == sizeof wish - 1 && strncasecmp(at, wish, length) == 0) return true;
        at += strcspn(at, ",");
    }
    return false;
}

adv_code adv_api_answer_async(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_idempotency idempotency;
    struct adv_sweep_request request = {.kind = (enum adv_request_kind)exchange->route->kind,
                                        .items_count = 1};
    if (exchange->refused) return adv_api_refuse_busy(exchange, err);
    adv_code code = adv_api_read_key(exchange, &idempotency, err);
    if (!code) code = adv_api_replay(exchange, &idempotency, err);
    if (code || exchange->reply.status) return code;
    char *body = exchange->body;
    request.items = &body;
    if (!body) return adv_err_add(err, ADV_E_SYNTAX, "", NULL, "the body is empty");
    adv_sweep_check(exchange, &request, err);
    for (int i = 0; i < err->count; i++) { /* the request itself is the document */
        char *pointer = err->findings[i].pointer;
        memmove(pointer, pointer + strlen("/requests/0"), strlen(pointer) - strlen("/requests/0") + 1);
    }
    if (err->code) return err->code;
    struct adv_text list = adv_text_empty(ADV_LIMIT_BODY_BYTES + 8);
    adv_text_append(&list, "[");
    adv_text_append_bytes(&list, body, exchange->body_bytes);
    adv_text_append(&list, "]");
    request.list = list.data;
    struct adv_question question;
    if (adv_question_read(body, exchange->body_bytes, &question)) {
        memcpy(request.project, question.project, sizeof request.project);
        memcpy(request.label, question.label, sizeof request.label);
        adv_question_free(&question);
    }
    code = create(exchange, &request, &idempotency, err);
    if (exchange->reply.status == 202) adv_reply_header(exchange, "Preference-Applied", "respond-async");
    adv_text_free(&list);
    return code;
}

/* ?state= of items or sweeps: one of `names`, or NULL. `listed` are the names as people read them. */
static adv_code read_state(const struct adv_exchange *exchange, const char *const *names, const char *listed,
                           const char **state, adv_err *err)
{
    *state = adv_exchange_query(exchange, "state");
    if (!*state) return ADV_OK;
    for (; *names; names++)
        if (strcmp(*names, *state) == 0) return ADV_OK;
    return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/state", listed, "there is no such state");
}

adv_code adv_api_sweep_get(struct adv_exchange *exchange, adv_err *err)
{
    static const char *const states[] = {"queued", "running", "done", "failed", "cancelled", NULL};
    struct adv_sweep_page page = {.cursor = adv_exchange_query(exchange, "cursor")};
    adv_code code = adv_api_read_limit(exchange, &page.limit_count, err);
    if (!code)
        code = read_state(exchange, states, "queued, running, done, failed or cancelled", &page.state, err);
    if (code) return code;
    if (page.cursor &&
        (strlen(page.cursor) > 6 || page.cursor[strspn(page.cursor, "0123456789")] || !*page.cursor))
        return adv_api_refuse_cursor(err);
    return reply_state(exchange, 200, exchange->parameters[0], &page, err);
}

adv_code adv_api_sweep_item_get(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_text json = adv_text_empty(ITEM_LIMIT_BYTES), engine = adv_text_empty(ADV_LIMIT_ENGINE_BYTES);
    adv_api_print_engine(exchange->app, &engine);
    const adv_code code = adv_sweep_item_print(exchange->db, exchange->parameters[0], exchange->parameters[1],
                                               engine.data, &json, err);
    adv_text_free(&engine);
    return adv_api_reply_named(exchange, 200, code, &json);
}

adv_code adv_api_sweeps_list(struct adv_exchange *exchange, adv_err *err)
{
    static const char *const states[] = {"running", "done", "cancelled", NULL};
    struct adv_sweeps_filter filter = {.project = adv_exchange_query(exchange, "project"),
                                       .after = adv_exchange_query(exchange, "cursor")};
    adv_code code = adv_api_read_page(exchange, NULL, filter.after, &filter.limit_count, err);
    if (!code) code = read_state(exchange, states, "running, done or cancelled", &filter.state, err);
    if (code) return code;
    struct adv_text page = adv_text_empty(SWEEP_LIMIT_BYTES);
    return adv_api_reply_page(exchange, adv_sweeps_list(exchange->db, &filter, &page, err), &page, err);
}

adv_code adv_api_sweep_delete(struct adv_exchange *exchange, adv_err *err)
{
    return adv_api_reply_done(exchange, adv_sweep_cancel(exchange->db, exchange->parameters[0], err));
}

/* The items that have ended since the client's last event; the client's library asks again after `retry`, so
 * that no connection and no thread waits. 204 ends the stream. */
adv_code adv_api_sweep_events(struct adv_exchange *exchange, adv_err *err)
{
    const char *last = exchange->headers[ADV_HEADER_LAST_EVENT_ID];
    const bool ended = last && strcmp(last, LAST_EVENT) == 0;
    int after = 0;
    if (last && !ended && !adv_text_whole(last, INT_MAX, &after))
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/headers/Last-Event-ID",
                           "send the id of the last event back", "there is no such event");
    struct adv_text events = adv_text_empty(SWEEP_LIMIT_BYTES);
    adv_text_format(&events, "retry: %d\n\n", EVENTS_RETRY_MS);
    adv_code code =
        adv_sweep_events(exchange->db, exchange->parameters[0], after, EVENTS_COUNT, &events, err);
    if (!code && !ended && events.overflow)
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the events");
    if (code || ended) {
        adv_text_free(&events);
        return adv_api_reply_done(exchange, code);
    }
    adv_reply_text(exchange, 200, "text/event-stream", events.data, events.length_bytes);
    return ADV_OK;
}
