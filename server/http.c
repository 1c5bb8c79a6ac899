#include "server/http.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <microhttpd.h>

#include "server/connections.h"
#include "server/guard.h"
#include "server/json_text.h"
#include "server/request_id.h"
#include "server/routes.h"

#define EXCHANGE_ARENA_BYTES                                                                                 \
    (256u * 1024u) /* copies of path, query and headers; the headers are at most 32 KiB */
#define CONNECTION_MEMORY_BYTES                                                                              \
    (32u * 1024u)               /* request line and headers; more is answered 431 by the library */
#define WRITING_LIMIT_MS  60000 /* to take an answer; the largest is about 1 MiB */
#define JANITOR_PERIOD_MS 250
#define DRAIN_IDLE_MS     250 /* while draining a connection without a request is closed after this */

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
    int status;
    size_t sent_bytes;
    int owners; /* the connection and, once submitted, the worker; guarded by http->lock */
    struct request *next, *previous; /* list of submitted requests */
};

struct adv_http {
    struct adv_app *app;
    struct MHD_Daemon *daemon;
    struct adv_connections *connections;
    char address[80];
    pthread_mutex_t lock;
    struct request *submitted;
    pthread_t janitor;
    pthread_cond_t janitor_wake;
    bool stopping, quiesced;
};

static int64_t now_us(void)
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
    adv_arena_free(&request->exchange.arena);
    free(request);
}

static void *on_request_line(void *closure, const char *target, struct MHD_Connection *connection)
{
    struct adv_http *http = closure;
    struct request *request = calloc(1, sizeof *request);
    if (!request) return NULL;
    request->http = http;
    request->connection = connection;
    request->owners = 1;
    request->start_us = now_us();
    request->exchange.app = http->app;
    adv_arena_init(&request->exchange.arena, EXCHANGE_ARENA_BYTES);
    request->target = adv_arena_copy(&request->exchange.arena, target);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->slot = info ? info->socket_context : NULL;
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

static void on_completed(void *closure, struct MHD_Connection *connection, void **request_closure,
                         enum MHD_RequestTerminationCode why)
{
    (void)closure;
    (void)connection;
    (void)why;
    struct request *request = *request_closure;
    if (!request) return;
    *request_closure = NULL;
    struct adv_http *http = request->http;
    int64_t duration_us = now_us() - request->start_us;
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

static void on_connection(void *closure, struct MHD_Connection *connection, void **socket_context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct adv_http *http = closure;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        adv_connections_close(http->connections, *socket_context);
        *socket_context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
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
    adv_reply_error(&other, ADV_E_TIMEOUT, "", "ask for less, or again later", "no answer within %ld s",
                    request->http->app->config.deadline_s);
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

void adv_http_run_job(void *job, void *context)
{
    struct request *request = job;
    struct adv_http *http = request->http;
    (void)pthread_mutex_lock(&http->lock);
    bool wanted = request->stage == STAGE_SUBMITTED;
    (void)pthread_mutex_unlock(&http->lock);
    if (wanted) {
        request->exchange.db = context;
        request->exchange.route->handle(&request->exchange);
    }
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
    request->deadline_us = request->start_us + http->app->config.deadline_s * 1000000;
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
static int abandon_late(struct adv_http *http, int64_t at_us, bool all)
{
    int count = 0;
    (void)pthread_mutex_lock(&http->lock);
    for (struct request *request = http->submitted; request;) {
        struct request *next = request->next;
        if (all || request->deadline_us <= at_us) {
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
    if (media_type_allowed(exchange->headers[ADV_HEADER_CONTENT_TYPE], exchange->route->media_types))
        return true;
    adv_reply_error(exchange, ADV_E_MEDIA_TYPE, "", "set Content-Type", "the body must be %s%s",
                    exchange->route->media_types,
                    exchange->headers[ADV_HEADER_CONTENT_TYPE] ? "" : " and no Content-Type was sent");
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
    switch (adv_routes_find(exchange, exchange->method, exchange->path, allow)) {
    case ADV_ROUTE_NO_PATH:
        adv_reply_error(exchange, ADV_E_NOT_FOUND, "", "GET /v1/openapi.json lists what there is",
                        "there is no resource %.200s", exchange->path);
        return false;
    case ADV_ROUTE_NO_METHOD:
        adv_reply_error(exchange, ADV_E_METHOD, "", NULL, "%.200s takes %s, not %.20s", exchange->path, allow,
                        exchange->method);
        adv_reply_header(exchange, "Allow", "%s", allow);
        return false;
    case ADV_ROUTE_FOUND:
        break;
    }
    return check_token(request) && check_body(request, guard);
}

static enum MHD_Result on_headers(struct request *request, const char *path, const char *method,
                                  const char *version)
{
    struct adv_exchange *exchange = &request->exchange;
    struct adv_guard guard;
    adv_guard_init(&guard);
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, take_guard_header, &guard);
    const char *refusal = adv_guard_finish(&guard, method, request->target, version);
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
    struct adv_pool *pool = exchange->route->place == ADV_ROUTE_ENGINE ? app->engine_pool : app->store_pool;
    if (submit(request, pool)) return MHD_YES;
    adv_metrics_add(&app->metrics, ADV_COUNTER_REJECTED_QUEUE, 1);
    adv_reply_error(exchange, ADV_E_BUSY, "", "try again after Retry-After seconds",
                    "%ld requests wait already", app->config.queue_count);
    return send_reply(request, &exchange->reply);
}

static enum MHD_Result on_access(void *closure, struct MHD_Connection *connection, const char *url,
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

/* ---- the daemon ---- */

static void *janitor_loop(void *argument)
{
    struct adv_http *http = argument;
    struct adv_app *app = http->app;
    (void)pthread_mutex_lock(&http->lock);
    while (!http->stopping) {
        bool quiesced = http->quiesced;
        (void)pthread_mutex_unlock(&http->lock);
        long reading_ms = app->config.request_timeout_s * 1000;
        int swept =
            adv_connections_sweep(http->connections, quiesced ? DRAIN_IDLE_MS : reading_ms, WRITING_LIMIT_MS);
        adv_metrics_add(&app->metrics, ADV_COUNTER_SWEPT, (uint64_t)swept);
        (void)abandon_late(http, now_us(), false);
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += JANITOR_PERIOD_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000L;
        }
        (void)pthread_mutex_lock(&http->lock);
        if (!http->stopping) (void)pthread_cond_timedwait(&http->janitor_wake, &http->lock, &until);
    }
    (void)pthread_mutex_unlock(&http->lock);
    return NULL;
}

static void on_library_log(void *closure, const char *format, va_list args)
{
    const struct adv_http *http = closure;
    char message[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)vsnprintf(message, sizeof message, format, args);
#pragma GCC diagnostic pop
    message[strcspn(message, "\n")] = '\0';
    adv_log_message(&http->app->log, ADV_LOG_DEBUG, "http: %s", message);
}

static int listen_on(struct adv_http *http, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(host, port, &hints, &found);
    if (failure) {
        adv_log_message(&http->app->log, ADV_LOG_ERROR, "cannot listen on %s: %s", host,
                        gai_strerror(failure));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;
    struct sockaddr_storage own;
    socklen_t own_bytes = sizeof own;
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1024) == 0 &&
                getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0;
    char own_host[64];
    char own_port[8];
    good = good && getnameinfo((struct sockaddr *)&own, own_bytes, own_host, sizeof own_host, own_port,
                               sizeof own_port, NI_NUMERICHOST | NI_NUMERICSERV) == 0;
    if (good) {
        bool v6 = found->ai_family == AF_INET6;
        (void)snprintf(http->address, sizeof http->address, "%s%s%s:%s", v6 ? "[" : "", own_host,
                       v6 ? "]" : "", own_port);
    } else {
        adv_log_message(&http->app->log, ADV_LOG_ERROR, "cannot listen on %s port %s: %s", host, port,
                        strerror(errno));
        if (fd >= 0) (void)close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

static struct MHD_Daemon *start_library(struct adv_http *http, int fd)
{
    const struct adv_config *config = &http->app->config;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(flags, 0, NULL, NULL, on_access, http, MHD_OPTION_EXTERNAL_LOGGER, on_library_log,
                            http, MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_THREAD_POOL_SIZE,
                            (unsigned)config->http_threads_count, MHD_OPTION_CONNECTION_LIMIT,
                            (unsigned)config->connections_count, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                            (unsigned)config->connections_per_ip_count, MHD_OPTION_CONNECTION_TIMEOUT,
                            (unsigned)config->idle_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 1,
                            MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION,
                            on_connection, http, MHD_OPTION_URI_LOG_CALLBACK, on_request_line, http,
                            MHD_OPTION_END);
}

struct adv_http *adv_http_start(struct adv_app *app)
{
    char host[ADV_LIMIT_SETTING];
    char port[6];
    struct adv_http *http = calloc(1, sizeof *http);
    if (!http || !adv_config_address(app->config.listen, host, port)) {
        free(http);
        return NULL;
    }
    http->app = app;
    (void)pthread_mutex_init(&http->lock, NULL);
    (void)pthread_cond_init(&http->janitor_wake, NULL);
    http->connections = adv_connections_new((int)app->config.connections_count);
    int fd = http->connections ? listen_on(http, host, port) : -1;
    if (fd >= 0 && pthread_create(&http->janitor, NULL, janitor_loop, http) == 0) {
        http->daemon = start_library(http, fd);
        if (http->daemon) return http;
        adv_log_message(&app->log, ADV_LOG_ERROR, "the HTTP server cannot be started: %s", strerror(errno));
        adv_http_stop(http);
    }
    if (fd >= 0) (void)close(fd);
    return NULL;
}

const char *adv_http_address(const struct adv_http *http)
{
    return http->address;
}

int adv_http_connections(struct adv_http *http)
{
    return adv_connections_count(http->connections);
}

static bool has_submitted(struct adv_http *http)
{
    (void)pthread_mutex_lock(&http->lock);
    bool some = http->submitted != NULL;
    (void)pthread_mutex_unlock(&http->lock);
    return some;
}

static void sleep_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    (void)nanosleep(&time, NULL);
}

int adv_http_drain(struct adv_http *http, long deadline_s)
{
    int64_t until_us = now_us() + deadline_s * 1000000;
    MHD_socket fd = MHD_quiesce_daemon(http->daemon);
    if (fd != MHD_INVALID_SOCKET) (void)close(fd);
    while (has_submitted(http) && now_us() < until_us) sleep_ms(10);
    /* From here on nothing is submitted and idle connections are closed: a suspended connection would abort
     * the library's stop. */
    (void)pthread_mutex_lock(&http->lock);
    http->quiesced = true;
    (void)pthread_mutex_unlock(&http->lock);
    int cut_off = abandon_late(http, 0, true);
    int64_t close_until_us = now_us() + 2000000;
    while (adv_http_connections(http) > 0 && now_us() < close_until_us) sleep_ms(10);
    return cut_off;
}

void adv_http_stop(struct adv_http *http)
{
    if (http->daemon) MHD_stop_daemon(http->daemon);
    (void)pthread_mutex_lock(&http->lock);
    http->stopping = true;
    (void)pthread_cond_signal(&http->janitor_wake);
    (void)pthread_mutex_unlock(&http->lock);
    (void)pthread_join(http->janitor, NULL);
    adv_connections_free(http->connections);
    (void)pthread_cond_destroy(&http->janitor_wake);
    (void)pthread_mutex_destroy(&http->lock);
    free(http);
}
