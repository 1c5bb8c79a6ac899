#include "server/http_internal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

#include "server/guard.h"
#include "server/json_text.h"
#include "server/origin.h"
#include "server/patience.h"
#include "server/raw_guard.h"
#include "server/request_id.h"
#include "server/routes.h"

/* copies of target, path, query and headers; together they are at most 64 KiB when they arrive */
#define EXCHANGE_ARENA_BYTES (256u * 1024u)

enum stage {
    STAGE_HEADERS,   /* not seen by the application yet */
    STAGE_BODY,      /* reading the body */
    STAGE_SUBMITTED, /* suspended, with a worker */
    STAGE_ANSWERED,  /* the reply is filled */
    STAGE_ABANDONED, /* the deadline passed; the worker still owns the reply */
    STAGE_QUEUED     /* the answer is with the library */
};

struct request {
    struct adv_exchange exchange;
    struct adv_http *http;
    struct MHD_Connection *connection;
    struct adv_connection_slot *slot;
    const char *target; /* as sent */
    enum stage stage;   /* from STAGE_SUBMITTED on guarded by http->lock */
    bool close_after, body_over;
    int64_t content_length_bytes;
    size_t body_capacity;
    int64_t start_us, deadline_us;
    struct adv_patience patience;
    int status;
    size_t sent_bytes;
    int owners; /* the connection and, once submitted, the worker; guarded by http->lock */
    struct request *next, *previous; /* list of submitted requests */
};

int64_t adv_http_now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- the request's life ---- */

static void request_free(struct request *request)
{
    adv_reply_clear(&request->exchange.reply);
    free(request->exchange.body);
    free(request->exchange.held);
    adv_arena_free(&request->exchange.arena);
    free(request);
}

void *adv_http_on_request_line(void *closure, const char *target, struct MHD_Connection *connection)
{
    struct adv_http *http = closure;
    struct request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->http = http;
    request->connection = connection;
    request->owners = 1;
    request->start_us = adv_http_now_us();
    request->exchange.app = http->app;
    adv_arena_init(&request->exchange.arena, EXCHANGE_ARENA_BYTES);
    request->target = adv_arena_copy(&request->exchange.arena, target);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->slot = info ? info->socket_context : NULL;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    request->patience.socket = info ? info->connect_fd : -1;
    (void)atomic_fetch_add(&http->app->metrics.in_flight, 1);
    if (request->target) return request;
    request_free(request);
    return NULL;
}

static void log_request(const struct request *request, int64_t duration_us)
{
    const struct adv_exchange *exchange = &request->exchange;
    struct adv_log_line line;
    adv_log_begin(&request->http->app->log, &line, ADV_LOG_INFO, "request");
    adv_log_string(&line, "request_id", exchange->request_id);
    adv_log_string(&line, "method", exchange->method ? exchange->method : "");
    adv_log_string(&line, "route", exchange->route ? exchange->route->path : "");
    adv_log_string(&line, "target", request->target);
    if (exchange->principal && *exchange->principal) adv_log_string(&line, "token", exchange->principal);
    adv_log_number(&line, "status", request->status);
    adv_log_number(&line, "dur_us", duration_us);
    adv_log_number(&line, "in_bytes", (int64_t)exchange->body_bytes);
    adv_log_number(&line, "out_bytes", (int64_t)request->sent_bytes);
    adv_log_end(&line);
}

void adv_http_on_completed(void *closure, struct MHD_Connection *connection, void **request_closure,
                           enum MHD_RequestTerminationCode why)
{
    (void)closure;
    (void)connection;
    (void)why;
    struct request *request = *request_closure;
    if (!request) return;
    *request_closure = NULL;
    struct adv_http *http = request->http;
    int64_t duration_us = adv_http_now_us() - request->start_us;
    (void)atomic_fetch_sub(&http->app->metrics.in_flight, 1);
    if (request->status) {
        adv_metrics_request(&http->app->metrics, adv_routes_index(request->exchange.route), request->status,
                            duration_us);
        log_request(request, duration_us);
    }
    adv_connections_enter(http->connections, request->slot, ADV_CONNECTION_READING);
    (void)pthread_mutex_lock(&http->lock);
    bool last = --request->owners == 0;
    (void)pthread_mutex_unlock(&http->lock);
    if (last) request_free(request);
}

void adv_http_on_connection(void *closure, struct MHD_Connection *connection, void **socket_context,
                            enum MHD_ConnectionNotificationCode what)
{
    struct adv_http *http = closure;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (info) adv_raw_guard_close(info->connect_fd);
        adv_connections_close(http->connections, *socket_context);
        *socket_context = NULL;
        return;
    }
    if (info && !adv_raw_guard_open(info->connect_fd)) (void)shutdown(info->connect_fd, SHUT_RDWR);
    *socket_context = info ? adv_connections_open(http->connections, info->connect_fd) : NULL;
}

/* ---- the answer ---- */

static enum MHD_Result send_reply(struct request *request, struct adv_reply *reply)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body_bytes, reply->body, reply->owns_body ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    request->sent_bytes = reply->body_bytes;
    reply->owns_body = false; /* the library frees it */
    reply->body = NULL;
    bool cache_control = false;
    if (reply->content_type) (void)MHD_add_response_header(response, "Content-Type", reply->content_type);
    for (int i = 0; i < reply->headers_count; i++) {
        cache_control = cache_control || strcmp(reply->headers[i].name, "Cache-Control") == 0;
        (void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    }
    if (!cache_control) (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    (void)MHD_add_response_header(response, "X-Request-Id", request->exchange.request_id);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (request->close_after || atomic_load(&request->http->app->draining))
        (void)MHD_add_response_header(response, "Connection", "close");
    request->status = reply->status;
    request->stage = STAGE_QUEUED;
    adv_connections_enter(request->http->connections, request->slot, ADV_CONNECTION_WRITING);
    enum MHD_Result result = MHD_queue_response(request->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

/* The worker still writes to the exchange: the reply is made beside it. */
static enum MHD_Result send_abandoned(struct request *request)
{
    struct adv_exchange other = {.app = request->http->app};
    memcpy(other.request_id, request->exchange.request_id, sizeof other.request_id);
    adv_reply_error(&other, ADV_E_TIMEOUT, "", "ask for less, or again later", "no answer within %.3g s",
                    (double)(request->deadline_us - request->start_us) * 1e-6);
    adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_DEADLINE, 1);
    enum MHD_Result result = send_reply(request, &other.reply);
    adv_reply_clear(&other.reply);
    return result;
}

/* ---- workers ---- */

static void unlink_submitted(struct adv_http *http, struct request *request)
{
    if (request->previous)
        request->previous->next = request->next;
    else
        http->submitted = request->next;
    if (request->next) request->next->previous = request->previous;
    request->next = request->previous = NULL;
}

static void count_abandoned(struct request *request)
{
    static const enum adv_counter counters[] = {
        [ADV_PATIENCE_CLIENT_GONE] = ADV_COUNTER_ABANDONED_CLIENT,
        [ADV_PATIENCE_DEADLINE] = ADV_COUNTER_ABANDONED_DEADLINE,
        [ADV_PATIENCE_GIVEN_UP] = ADV_COUNTER_ABANDONED_DAEMON,
    };
    const int end = atomic_load(&request->patience.end);
    if (end != ADV_PATIENCE_LASTS) adv_metrics_add(&request->http->app->metrics, counters[end], 1);
}

static struct adv_pool *pool_of(const struct adv_app *app, int place)
{
    struct adv_pool *const pools[] = {[ADV_ROUTE_SEARCH] = app->engine_pool,
                                      [ADV_ROUTE_QUICK] = app->quick_pool,
                                      [ADV_ROUTE_STORE] = app->store_pool};
    return pools[place];
}

/* The handler, or what it left to be done. false: another pool has the request now. */
static bool run_step(struct request *request, struct adv_db *db)
{
    struct adv_exchange *exchange = &request->exchange;
    void (*step)(struct adv_exchange *) = exchange->next ? exchange->next : exchange->route->handle;
    exchange->next = NULL;
    exchange->db = db;
    step(exchange);
    if (!exchange->next) return true;
    if (adv_pool_try_add(pool_of(exchange->app, exchange->next_place), request)) return false;
    adv_metrics_add(&exchange->app->metrics, ADV_COUNTER_REJECTED_QUEUE, 1);
    step = exchange->next;
    exchange->next = NULL;
    exchange->db = NULL;
    exchange->refused = true;
    step(exchange);
    return true;
}

void adv_http_run_job(void *job, void *context)
{
    struct request *request = job;
    struct adv_http *http = request->http;
    (void)pthread_mutex_lock(&http->lock);
    bool wanted = request->stage == STAGE_SUBMITTED;
    (void)pthread_mutex_unlock(&http->lock);
    if (wanted && adv_patience_over(&request->patience)) { /* who has gone while waiting costs nothing */
        adv_reply_error(&request->exchange, ADV_E_TIMEOUT, "", NULL, "nobody waits for the answer");
    } else if (wanted && !run_step(request, context)) {
        return; /* it goes on elsewhere */
    }
    count_abandoned(request);
    (void)pthread_mutex_lock(&http->lock);
    if (request->stage == STAGE_SUBMITTED) {
        request->stage = STAGE_ANSWERED;
        unlink_submitted(http, request);
        MHD_resume_connection(request->connection);
    }
    bool last = --request->owners == 0;
    (void)pthread_mutex_unlock(&http->lock);
    if (last) request_free(request);
}

/* Suspends the connection and hands the request to a pool. The lock keeps a fast worker from resuming first.
 */
static bool submit(struct request *request, struct adv_pool *pool)
{
    struct adv_http *http = request->http;
    (void)pthread_mutex_lock(&http->lock);
    request->stage = STAGE_SUBMITTED;
    request->patience.deadline_us = request->deadline_us;
    request->exchange.budget = (struct adv_budget){.over = adv_patience_over,
                                                   .closure = &request->patience,
                                                   .plans_max = (int)http->app->config.plans_count};
    request->owners++;
    bool added = !http->quiesced && adv_pool_try_add(pool, request);
    if (added) {
        MHD_suspend_connection(request->connection);
        request->next = http->submitted;
        if (http->submitted) http->submitted->previous = request;
        http->submitted = request;
    } else {
        request->owners--;
        request->stage = STAGE_BODY;
    }
    (void)pthread_mutex_unlock(&http->lock);
    return added;
}

/* Answers requests whose deadline passed (or all of them) with 503; returns how many. */
int adv_http_abandon(struct adv_http *http, int64_t at_us, bool all)
{
    int count = 0;
    (void)pthread_mutex_lock(&http->lock);
    for (struct request *request = http->submitted; request;) {
        struct request *next = request->next;
        if (all || request->deadline_us <= at_us) {
            int lasts = ADV_PATIENCE_LASTS;
            (void)atomic_compare_exchange_strong(&request->patience.end, &lasts, ADV_PATIENCE_GIVEN_UP);
            request->stage = STAGE_ABANDONED;
            unlink_submitted(http, request);
            MHD_resume_connection(request->connection);
            count++;
        }
        request = next;
    }
    (void)pthread_mutex_unlock(&http->lock);
    return count;
}

/* ---- reading the request ---- */

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
    if (exchange->query_count == ADV_LIMIT_QUERY) {
        exchange->query_overflow = true;
        return MHD_NO;
    }
    exchange->query[exchange->query_count].name = adv_arena_copy(&exchange->arena, name);
    exchange->query[exchange->query_count].value = adv_arena_copy(&exchange->arena, value ? value : "");
    if (!exchange->query[exchange->query_count].name || !exchange->query[exchange->query_count].value) {
        exchange->query_overflow = true;
        return MHD_NO;
    }
    exchange->query_count++;
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

static void copy_headers(struct request *request)
{
#define NAME(name, text) text,
    static const char *const names[] = {ADV_HEADER_TABLE(NAME)};
#undef NAME
    struct adv_exchange *exchange = &request->exchange;
    for (int i = 0; i < ADV_HEADER_COUNT; i++) {
        const char *value = MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, names[i]);
        if (value) exchange->headers[i] = adv_arena_copy(&exchange->arena, value);
    }
    adv_request_id_choose(exchange->headers[ADV_HEADER_REQUEST_ID], exchange->request_id);
}

/* Whether the media type of Content-Type (parameters aside) is one of the route's. */
static bool media_type_allowed(const char *content_type, const char *media_types)
{
    if (!content_type) return false;
    size_t length = strcspn(content_type, "; \t");
    for (const char *at = media_types; *at; at += strspn(at, " ")) {
        size_t one = strcspn(at, " ");
        if (one == length && strncasecmp(at, content_type, one) == 0) return true;
        at += one;
    }
    return false;
}

static bool check_token(struct request *request)
{
    struct adv_exchange *exchange = &request->exchange;
    const struct adv_tokens *tokens = request->http->app->tokens;
    exchange->scopes = ADV_SCOPE_ALL;
    exchange->principal = "";
    if (!tokens || !exchange->route->scope) return true;
    exchange->scopes =
        adv_tokens_check(tokens, exchange->headers[ADV_HEADER_AUTHORIZATION], &exchange->principal);
    if ((exchange->scopes & exchange->route->scope) == exchange->route->scope) return true;
    adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_TOKEN, 1);
    if (!exchange->scopes)
        adv_reply_error(exchange, ADV_E_UNAUTHORIZED, "", "send Authorization: Bearer TOKEN",
                        "no valid bearer token was sent");
    else
        adv_reply_error(exchange, ADV_E_FORBIDDEN, "", NULL,
                        "the token's scopes do not include this operation's");
    return false;
}

static bool check_body(struct request *request, const struct adv_guard *guard)
{
    struct adv_exchange *exchange = &request->exchange;
    bool has_body = guard->chunked || guard->content_length_bytes > 0;
    if (guard->content_length_bytes > ADV_LIMIT_BODY_BYTES) {
        adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_SIZE, 1);
        adv_reply_error(exchange, ADV_E_TOO_LARGE, "", NULL,
                        "the body has %" PRId64 " bytes; at most %d are taken", guard->content_length_bytes,
                        ADV_LIMIT_BODY_BYTES);
        return false;
    }
    if (!exchange->route->media_types) {
        if (has_body) adv_reply_error(exchange, ADV_E_BAD_REQUEST, "", NULL, "this operation takes no body");
        return !has_body;
    }
    const char *encoding = exchange->headers[ADV_HEADER_CONTENT_ENCODING];
    if (encoding && strcasecmp(encoding, "identity") != 0) {
        adv_reply_error(exchange, ADV_E_MEDIA_TYPE, "/headers/Content-Encoding", "send the body as it is",
                        "bodies in the encoding %.40s are not read", encoding);
        return false;
    }
    if (media_type_allowed(exchange->headers[ADV_HEADER_CONTENT_TYPE], exchange->route->media_types))
        return true;
    adv_reply_error(exchange, ADV_E_MEDIA_TYPE, "", "set Content-Type", "the body must be %s%s",
                    exchange->route->media_types,
                    exchange->headers[ADV_HEADER_CONTENT_TYPE] ? "" : " and no Content-Type was sent");
    return false;
}

/* Request-Timeout: seconds that the client will wait, if that is less than the daemon's own deadline. */
static bool check_timeout(struct request *request)
{
    const char *text = request->exchange.headers[ADV_HEADER_REQUEST_TIMEOUT];
    const double own_s = (double)request->http->app->config.deadline_s;
    double seconds = own_s;
    char *end = NULL;
    if (text && strspn(text, "0123456789.") == strlen(text)) seconds = strtod(text, &end);
    if (text && (!end || end == text || *end != '\0' || !(seconds > 0.0))) {
        adv_reply_error(&request->exchange, ADV_E_BAD_REQUEST, "/headers/Request-Timeout",
                        "Request-Timeout: 2.5", "Request-Timeout is a number of seconds above 0");
        return false;
    }
    request->deadline_us = request->start_us + (int64_t)((seconds < own_s ? seconds : own_s) * 1e6);
    return true;
}

static bool check_accept(struct adv_exchange *exchange)
{
    const char *type = exchange->route->answers;
    if (!type || adv_exchange_accepts(exchange, type)) return true;
    adv_reply_error(exchange, ADV_E_NOT_ACCEPTABLE, "/headers/Accept", "leave Accept out, or allow it",
                    "this is answered as %s only", type);
    return false;
}

/* Everything that can be said without the body. false: the reply is filled. */
static bool check_headers(struct request *request, const struct adv_guard *guard)
{
    struct adv_exchange *exchange = &request->exchange;
    if (!text_is_valid(exchange)) {
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "", NULL, "the path or the query is not UTF-8");
        return false;
    }
    char allow[96];
    switch (adv_routes_find(exchange, exchange->method, request->target, allow)) {
    case ADV_ROUTE_NO_PATH:
        adv_reply_error(exchange, ADV_E_NOT_FOUND, "", "GET /v1/openapi.json lists what there is",
                        "there is no resource %.200s", exchange->path);
        return false;
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
    if (!exchange->method || !exchange->path) return MHD_NO;
    copy_headers(request);
    (void)MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, take_query, exchange);
    request->content_length_bytes = guard.content_length_bytes;
    request->stage = STAGE_BODY;
    if (refusal) {
        adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_GUARD, 1);
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "", NULL, "%s", refusal);
        request->close_after = true;
        return send_reply(request, &exchange->reply);
    }
    if (guard.head_bytes > ADV_LIMIT_HEAD_BYTES) {
        adv_metrics_add(&request->http->app->metrics, ADV_COUNTER_REJECTED_SIZE, 1);
        adv_reply_error(exchange, ADV_E_HEAD, "", NULL,
                        "the target and the headers have %" PRId64 " bytes; at most %d are taken",
                        guard.head_bytes, ADV_LIMIT_HEAD_BYTES);
        request->close_after = true;
        return send_reply(request, &exchange->reply);
    }
    if (check_headers(request, &guard)) return MHD_YES;
    if (!guard.chunked && guard.content_length_bytes <= 0)
        return MHD_YES;          /* sent when the request has ended */
    request->close_after = true; /* the body stays unread */
    return send_reply(request, &exchange->reply);
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
    if (request->body_over || exchange->reply.status) return;
    if (exchange->body_bytes + count > ADV_LIMIT_BODY_BYTES ||
        !body_reserve(request, exchange->body_bytes + count + 1)) {
        request->body_over = true;
        return;
    }
    memcpy(exchange->body + exchange->body_bytes, bytes, count);
    exchange->body_bytes += count;
    exchange->body[exchange->body_bytes] = '\0';
}

static enum MHD_Result on_complete(struct request *request)
{
    struct adv_exchange *exchange = &request->exchange;
    struct adv_app *app = request->http->app;
    if (exchange->reply.status) return send_reply(request, &exchange->reply);
    adv_connections_enter(request->http->connections, request->slot, ADV_CONNECTION_WORKING);
    if (request->body_over) {
        adv_metrics_add(&app->metrics, ADV_COUNTER_REJECTED_SIZE, 1);
        adv_reply_error(exchange, ADV_E_TOO_LARGE, "", NULL, "the body has more than %d bytes",
                        ADV_LIMIT_BODY_BYTES);
        request->close_after = true;
        return send_reply(request, &exchange->reply);
    }
    if (exchange->route->place == ADV_ROUTE_INLINE) {
        exchange->route->handle(exchange);
        return send_reply(request, &exchange->reply);
    }
    /* A key is looked up in the database first, where nobody waits who does not need it. */
    const bool has_key = exchange->headers[ADV_HEADER_IDEMPOTENCY_KEY] != NULL;
    if (submit(request, pool_of(app, has_key ? (int)ADV_ROUTE_STORE : (int)exchange->route->place)))
        return MHD_YES;
    adv_metrics_add(&app->metrics, ADV_COUNTER_REJECTED_QUEUE, 1);
    adv_reply_error(exchange, ADV_E_BUSY, "", "try again after Retry-After seconds",
                    "%ld requests wait already", app->config.queue_count);
    return send_reply(request, &exchange->reply);
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
    enum stage stage = request->stage;
    (void)pthread_mutex_unlock(&request->http->lock);
    switch (stage) {
    case STAGE_HEADERS:
        return on_headers(request, url, method, version);
    case STAGE_BODY:
        if (*upload_bytes == 0) return on_complete(request);
        on_body_bytes(request, upload, *upload_bytes);
        *upload_bytes = 0;
        return MHD_YES;
    case STAGE_ANSWERED:
        return send_reply(request, &request->exchange.reply);
    case STAGE_ABANDONED:
        return send_abandoned(request);
    case STAGE_SUBMITTED:
    case STAGE_QUEUED:
        break;
    }
    return MHD_NO;
}
