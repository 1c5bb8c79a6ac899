/* http_read.c: a request as it arrives: its head is judged before its body is read. */
#include "server/http_internal.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "server/api.h"
#include "server/guard.h"
#include "server/json_text.h"
#include "server/origin.h"
#include "server/raw_guard.h"
#include "server/request_id.h"
#include "server/routes.h"

#define USUAL_RATE_PER_S   200.0 /* of one address beyond loopback: a pipeline that asks as fast as it can */
#define BURST_S            5     /* of its rate at once */
#define WRONG_TOKENS_PER_S 0.2   /* who tries more is not a mistake any more */
#define WRONG_TOKENS_BURST 10

static enum MHD_Result take_guard_header(void *closure, enum MHD_ValueKind kind, const char *name,
                                         const char *value)
{
    (void)kind;
    adv_guard_header(closure, name, value);
    return MHD_YES;
}

static enum MHD_Result take_query(void *closure, enum MHD_ValueKind kind, const char *name, const char *value)
{
    (void)kind;
    struct adv_exchange *exchange = closure;
    const char *own_name = adv_arena_copy(&exchange->arena, name);
    const char *own_value = adv_arena_copy(&exchange->arena, value ? value : "");
    exchange->query_overflow = exchange->query_count == ADV_LIMIT_QUERY || !own_name || !own_value;
    if (exchange->query_overflow) return MHD_NO;
    exchange->query[exchange->query_count].name = own_name;
    exchange->query[exchange->query_count++].value = own_value;
    return MHD_YES;
}

static bool text_is_valid(const struct adv_exchange *exchange)
{
    if (!adv_utf8_valid(exchange->path)) return false;
    for (int i = 0; i < exchange->query_count; i++)
        if (!adv_utf8_valid(exchange->query[i].name) || !adv_utf8_valid(exchange->query[i].value))
            return false;
    return true;
}

#define NAME(name, text) text,
static const char *const header_names[] = {ADV_HEADER_TABLE(NAME)};
#undef NAME

struct header_copy {
    struct adv_exchange *exchange;
    size_t head_bytes;              /* more than all of a header's fields together */
    char *joined[ADV_HEADER_COUNT]; /* of a header that came in several, as many bytes */
    bool lost;                      /* memory is exhausted */
};

/* A header that comes in several fields is one list (RFC 9110, 5.3); those that are none came once, or the
 * guard refuses the request. */
static enum MHD_Result take_header(void *closure, enum MHD_ValueKind kind, const char *name,
                                   const char *value)
{
    struct header_copy *copy = closure;
    struct adv_exchange *exchange = copy->exchange;
    (void)kind;
    int i = 0;
    while (i < ADV_HEADER_COUNT && strcasecmp(name, header_names[i]) != 0) i++;
    if (i == ADV_HEADER_COUNT) return MHD_YES;
    if (!value) value = "";
    if (!exchange->headers[i]) {
        exchange->headers[i] = adv_arena_copy(&exchange->arena, value);
    } else {
        if (!copy->joined[i] && (copy->joined[i] = adv_arena_alloc(&exchange->arena, copy->head_bytes)))
            adv_append(copy->joined[i], copy->head_bytes, "%s", exchange->headers[i]);
        if (copy->joined[i]) adv_append(copy->joined[i], copy->head_bytes, ", %s", value);
        exchange->headers[i] = copy->joined[i];
    }
    copy->lost = copy->lost || !exchange->headers[i];
    return copy->lost ? MHD_NO : MHD_YES;
}

/* Of two traceparents, which make none, neither is believed: a request has one parent (W3C Trace Context). */
static bool copy_headers(struct request *request, const struct adv_guard *guard)
{
    struct adv_exchange *exchange = &request->exchange;
    struct header_copy copy = {.exchange = exchange, .head_bytes = (size_t)guard->head_bytes + 1};
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, take_header, &copy);
    adv_trace_read(exchange->headers[ADV_HEADER_TRACEPARENT], &exchange->trace);
    adv_request_id_choose(exchange->headers[ADV_HEADER_REQUEST_ID], exchange->request_id);
    return !copy.lost;
}

/* ---- how often an address or a token may ask ---- */

static const struct sockaddr *address_of(const struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info ? info->client_addr : NULL;
}

static bool is_loopback(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address && address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (!address || address->sa_family != AF_INET6) return false;
    memcpy(&v6, address, sizeof v6);
    return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

static bool take(struct request *request, enum adv_limit_kind kind, uint64_t who, const struct adv_rate *rate,
                 const char *whose)
{
    struct adv_exchange *exchange = &request->exchange;
    const int64_t wait_us = adv_limits_take(exchange->app->limits, kind, who, rate, request->start_us);
    if (wait_us == 0) return true;
    adv_metrics_add(&exchange->app->metrics, ADV_COUNTER_REJECTED_RATE, 1);
    exchange->wait_s = (int)((wait_us + 999999) / 1000000);
    return adv_reply_error(exchange, ADV_E_RATE, "", "try again after Retry-After seconds",
                           "%s: more than %.3g a second", whose, rate->per_s);
}

/* false here and below: the reply is filled, 429 with Retry-After, or the event that stands for it. */
static bool within_rate(struct request *request)
{
    const struct adv_app *app = request->http->app;
    const long asked_per_s = adv_app_live(app)->address_rate_per_s;
    const struct sockaddr *address = address_of(request);
    if (asked_per_s == 0 || (asked_per_s < 0 && is_loopback(address))) return true;
    const struct adv_rate rate = {asked_per_s < 0 ? USUAL_RATE_PER_S : (double)asked_per_s,
                                  (int)(asked_per_s < 0 ? USUAL_RATE_PER_S : (double)asked_per_s) * BURST_S};
    return take(request, ADV_LIMIT_REQUESTS_OF_ADDRESS, adv_limits_of_address(app->limits, address), &rate,
                "requests of this address");
}

static bool within_token_rate(struct request *request)
{
    const struct adv_app *app = request->http->app;
    const long per_s = adv_app_live(app)->token_rate_per_s;
    const struct adv_rate rate = {(double)per_s, (int)per_s * BURST_S};
    return take(request, ADV_LIMIT_REQUESTS_OF_TOKEN,
                adv_limits_of_name(app->limits, request->exchange.principal), &rate,
                "requests with this token");
}

/* 401 to who sent no valid token, 429 to who goes on trying. A right one passes at any time: others behind
 * the same address are not shut out by one that is out of date. */
static bool refuse_token(struct request *request, bool expired)
{
    static const struct adv_rate rate = {WRONG_TOKENS_PER_S, WRONG_TOKENS_BURST};
    const uint64_t who = adv_limits_of_address(request->http->app->limits, address_of(request));
    if (!expired && !take(request, ADV_LIMIT_WRONG_TOKENS, who, &rate, "wrong tokens from this address"))
        return false;
    return adv_reply_error(&request->exchange, ADV_E_UNAUTHORIZED, "", "send Authorization: Bearer TOKEN",
                           expired ? "the token has expired" : "no valid bearer token was sent");
}

/* ---- what can be said of a request without its body ---- */

static bool check_token(struct request *request)
{
    struct adv_exchange *exchange = &request->exchange;
    struct adv_app *app = request->http->app;
    struct adv_caller caller;
    exchange->scopes = ADV_SCOPE_ALL;
    exchange->principal = exchange->project = "";
    if (!exchange->route->scope) return true;
    if (!within_rate(request)) return false;
    if (!app->keyring) return true;
    if (app->config.tokens_database && !adv_keyring_has(app->keyring, ADV_KEYRING_DATABASE) &&
        !app->config.tokens_file[0])
        return adv_reply_error(exchange, ADV_E_STORE, "", "try again after Retry-After seconds",
                               "the tokens have not been read from the database yet");
    adv_keyring_check(app->keyring, exchange->headers[ADV_HEADER_AUTHORIZATION], (int64_t)time(NULL),
                      &caller);
    exchange->scopes = caller.scopes;
    exchange->principal = adv_arena_copy(&exchange->arena, caller.name);
    exchange->project = adv_arena_copy(&exchange->arena, caller.project);
    if (!exchange->principal || !exchange->project)
        return adv_reply_error(exchange, ADV_E_MEMORY, "", NULL, "no memory for the request");
    if (caller.scopes && !within_token_rate(request)) return false;
    if ((exchange->scopes & exchange->route->scope) == exchange->route->scope) return true;
    adv_metrics_add(&app->metrics, ADV_COUNTER_REJECTED_TOKEN, 1);
    if (!exchange->scopes) return refuse_token(request, caller.expired);
    return adv_reply_error(exchange, ADV_E_FORBIDDEN, "", NULL,
                           "the token's scopes do not include this operation's");
}

/* A log of training may be longer than any request: its end tells the same time. A first line that is cut
 * through names no step. */
static bool refuse_size(struct request *request)
{
    struct adv_exchange *exchange = &request->exchange;
    const bool is_log = exchange->route->handle == adv_api_measurement_post;
    adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_SIZE, 1);
    return adv_reply_error(exchange, ADV_E_TOO_LARGE, "",
                           is_log ? "of a log the last lines are enough: tail -c 1000000 LOG"
                                  : "send less at once",
                           "the body has more than the %d bytes that are taken", ADV_LIMIT_BODY_BYTES);
}

static bool check_body(struct request *request, const struct adv_guard *guard)
{
    struct adv_exchange *exchange = &request->exchange;
    bool has_body = guard->chunked || guard->content_length_bytes > 0;
    if (guard->content_length_bytes > ADV_LIMIT_BODY_BYTES) return refuse_size(request);
    if (!exchange->route->media_types)
        return !has_body ||
               adv_reply_error(exchange, ADV_E_BAD_REQUEST, "", NULL, "this operation takes no body");
    const char *encoding = exchange->headers[ADV_HEADER_CONTENT_ENCODING];
    if (encoding && strcasecmp(encoding, "identity") != 0)
        return adv_reply_error(exchange, ADV_E_MEDIA_TYPE, "/headers/Content-Encoding",
                               "send the body as it is, uncompressed, without Content-Encoding",
                               "bodies in the encoding %.40s are not read", encoding);
    const char *type = exchange->headers[ADV_HEADER_CONTENT_TYPE];
    if (type && adv_exchange_lists(exchange->route->media_types, type, strcspn(type, "; \t"), strncasecmp))
        return true;
    return adv_reply_error(exchange, ADV_E_MEDIA_TYPE, "", "set Content-Type", "the body must be %s%s",
                           exchange->route->media_types, type ? "" : " and no Content-Type was sent");
}

/* Request-Timeout: seconds that the client will wait, if that is less than the daemon's own deadline. */
static bool check_timeout(struct request *request)
{
    const char *text = request->exchange.headers[ADV_HEADER_REQUEST_TIMEOUT];
    const double own_s = (double)adv_app_live(request->http->app)->deadline_s;
    double seconds = own_s;
    char *end = NULL;
    if (text && strspn(text, "0123456789.") == strlen(text)) seconds = strtod(text, &end);
    if (text && (!end || end == text || *end != '\0' || !(seconds > 0.0)))
        return adv_reply_error(&request->exchange, ADV_E_BAD_REQUEST, "/headers/Request-Timeout",
                               "Request-Timeout: 2.5",
                               "Request-Timeout is a number of seconds above 0, in digits");
    request->deadline_us = request->start_us + (int64_t)((seconds < own_s ? seconds : own_s) * 1e6);
    return true;
}

static bool check_accept(struct adv_exchange *exchange)
{
    const char *type = exchange->route->answers;
    if (!type || adv_exchange_accepts(exchange, type)) return true;
    return adv_reply_error(exchange, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", "leave Accept out, or allow it",
                           "this is answered as %s only", type);
}

/* Everything that can be said without the body. false: the reply is filled. */
static bool check_headers(struct request *request, const struct adv_guard *guard)
{
    struct adv_exchange *exchange = &request->exchange;
    if (!text_is_valid(exchange))
        return adv_reply_error(exchange, ADV_E_BAD_REQUEST, "", NULL, "the path or the query is not UTF-8");
    char allow[96];
    switch (adv_routes_find(exchange, exchange->method, request->target, allow)) {
    case ADV_ROUTE_NO_PATH:
        return adv_reply_error(exchange, ADV_E_NOT_FOUND, "", "GET /v1/openapi.json lists what there is",
                               "there is no resource %.200s", exchange->path);
    case ADV_ROUTE_NO_METHOD:
        if (strcmp(exchange->method, "OPTIONS") == 0) {
            adv_reply_empty(exchange, 204);
            adv_reply_header(exchange, "Allow", "%s, OPTIONS", allow);
            return false;
        }
        adv_reply_error(exchange, ADV_E_METHOD, "", NULL, "%.200s takes %s, not %.20s", exchange->path, allow,
                        exchange->method);
        adv_reply_header(exchange, "Allow", "%s", allow);
        return false;
    case ADV_ROUTE_FOUND:
        break;
    }
    return adv_origin_check(exchange) && check_token(request) && check_timeout(request) &&
           check_accept(exchange) && check_body(request, guard);
}

/* What is left of the request stays unread. */
static enum MHD_Result send_and_close(struct request *request)
{
    request->close_after = true;
    return adv_http_send(request, &request->exchange.reply);
}

static enum MHD_Result on_headers(struct request *request, const char *path, const char *method,
                                  const char *version)
{
    struct adv_exchange *exchange = &request->exchange;
    struct adv_guard guard;
    adv_guard_init(&guard);
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, take_guard_header, &guard);
    const char *refusal = adv_guard_finish(&guard, method, request->target, version);
    if (!adv_raw_guard_has_seen(request->patience.socket)) refusal = "the connection's bytes are not guarded";
    exchange->method = adv_arena_copy(&exchange->arena, method);
    exchange->path = adv_arena_copy(&exchange->arena, path);
    if (!exchange->method || !exchange->path || !copy_headers(request, &guard)) return MHD_NO;
    (void)MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, take_query, exchange);
    request->content_length_bytes = guard.content_length_bytes;
    request->stage = ADV_STAGE_BODY;
    if (refusal) {
        adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_GUARD, 1);
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "", NULL, "%s", refusal);
        return send_and_close(request);
    }
    if (guard.head_bytes > ADV_LIMIT_HEAD_BYTES) {
        adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_SIZE, 1);
        adv_reply_error(exchange, ADV_E_HEAD, "", NULL,
                        "the target and the headers have %" PRId64 " bytes; at most %d are taken",
                        guard.head_bytes, ADV_LIMIT_HEAD_BYTES);
        return send_and_close(request);
    }
    if (check_headers(request, &guard)) return MHD_YES;
    const bool has_body = guard.chunked || guard.content_length_bytes > 0;
    return has_body ? send_and_close(request) : MHD_YES; /* sent when the request has ended */
}

static bool body_reserve(struct request *request, size_t needed)
{
    if (needed <= request->body_capacity) return true;
    size_t capacity = request->body_capacity ? request->body_capacity * 2 : 4096;
    if (request->content_length_bytes > 0) capacity = (size_t)request->content_length_bytes + 1;
    while (capacity < needed) capacity *= 2;
    char *grown = realloc(request->exchange.body, capacity);
    if (!grown) return false;
    request->exchange.body = grown;
    request->body_capacity = capacity;
    return true;
}

static void on_body_bytes(struct request *request, const char *bytes, size_t count)
{
    struct adv_exchange *exchange = &request->exchange;
    if (request->body_over || request->body_lost || exchange->reply.status) return;
    request->body_over = exchange->body_bytes + count > ADV_LIMIT_BODY_BYTES;
    if (request->body_over) return;
    request->body_lost = !body_reserve(request, exchange->body_bytes + count + 1);
    if (request->body_lost) return;
    memcpy(exchange->body + exchange->body_bytes, bytes, count);
    exchange->body_bytes += count;
    exchange->body[exchange->body_bytes] = '\0';
}

static enum MHD_Result on_complete(struct request *request)
{
    struct adv_exchange *exchange = &request->exchange;
    struct adv_app *app = request->http->app;
    if (exchange->reply.status) return adv_http_send(request, &exchange->reply);
    adv_connections_enter(request->http->connections, request->slot, ADV_CONNECTION_WORKING, 0);
    if (request->body_lost) {
        adv_reply_error(exchange, ADV_E_MEMORY, "", NULL, "no memory for the body");
        return send_and_close(request);
    }
    if (request->body_over) {
        (void)refuse_size(request);
        return send_and_close(request);
    }
    const bool is_inline = exchange->route->place == ADV_ROUTE_INLINE;
    if (is_inline) adv_routes_run(exchange);
    if (is_inline || (exchange->route->handle == adv_api_answer && adv_api_answer_at_once(exchange))) {
        adv_reply_encode(exchange);
        return adv_http_send(request, &exchange->reply);
    }
    /* A key is looked up in the database first, where nobody waits who does not need it. */
    const bool has_key = exchange->headers[ADV_HEADER_IDEMPOTENCY_KEY] != NULL;
    if (adv_http_submit(request,
                        adv_http_pool(app, has_key ? (int)ADV_ROUTE_STORE : (int)exchange->route->place)))
        return MHD_YES;
    adv_metrics_add(&app->metrics, ADV_COUNTER_REJECTED_QUEUE, 1);
    adv_reply_error(exchange, ADV_E_BUSY, "", "try again after Retry-After seconds",
                    "%ld requests wait already", app->config.queue_count);
    return adv_http_send(request, &exchange->reply);
}

enum MHD_Result adv_http_on_access(void *closure, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_bytes, void **request_closure)
{
    (void)closure;
    (void)connection;
    struct request *request = *request_closure;
    if (!request) return MHD_NO;
    (void)pthread_mutex_lock(&request->http->lock);
    enum adv_http_stage stage = request->stage;
    (void)pthread_mutex_unlock(&request->http->lock);
    switch (stage) {
    case ADV_STAGE_HEADERS:
        return on_headers(request, url, method, version);
    case ADV_STAGE_BODY:
        if (*upload_bytes == 0) return on_complete(request);
        on_body_bytes(request, upload, *upload_bytes);
        *upload_bytes = 0;
        return MHD_YES;
    case ADV_STAGE_ANSWERED:
        return adv_http_send(request, &request->exchange.reply);
    case ADV_STAGE_ABANDONED:
        return adv_http_send_abandoned(request);
    case ADV_STAGE_SUBMITTED:
    case ADV_STAGE_QUEUED:
        break;
    }
    return MHD_NO;
}
