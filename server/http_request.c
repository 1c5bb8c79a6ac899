/* http_request.c: the life of a request, from its first line to its line in the log. */
#include "server/http_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/monotonic.h"
#include "server/raw_guard.h"
#include "server/routes.h"

#define EXCHANGE_ARENA_BYTES (256u * 1024u) /* many times the largest head */
#define EXCHANGE_BLOCK_BYTES 2048u          /* a usual one: target, path, query and headers, copied */

void adv_http_request_free(struct request *request)
{
    adv_reply_clear(&request->exchange.reply);
    adv_answer_cache_release(request->http->app->answers, request->exchange.cached);
    free(request->exchange.body);
    if (request->exchange.drop)
        request->exchange.drop(request->exchange.held);
    else
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
    request->start_us = adv_monotonic_us();
    request->exchange.app = http->app;
    adv_arena_init(&request->exchange.arena, EXCHANGE_ARENA_BYTES);
    request->exchange.arena.first_bytes = EXCHANGE_BLOCK_BYTES;
    request->target = adv_arena_copy(&request->exchange.arena, target);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    request->slot = info ? info->socket_context : NULL;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    request->patience.socket = info ? info->connect_fd : -1;
    (void)atomic_fetch_add(&http->app->metrics.in_flight, 1);
    if (request->target) return request;
    adv_http_request_free(request);
    return NULL;
}

/* ---- a filled reply, given to the HTTP library ---- */

static void add_trace(struct MHD_Response *response, const struct adv_trace *trace)
{
    char value[64];
    if (!trace->trace_id[0]) return;
    (void)snprintf(value, sizeof value, "00-%s-%s-%s", trace->trace_id, trace->span_id, trace->flags);
    (void)MHD_add_response_header(response, "traceparent", value);
}

enum MHD_Result adv_http_send(struct request *request, struct adv_reply *reply)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        reply->body_bytes, reply->body, reply->owned ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!response) return MHD_NO;
    request->sent_bytes = reply->body_bytes;
    reply->owned = reply->body = NULL; /* the library frees it */
    bool cache_control = false;
    if (reply->content_type) (void)MHD_add_response_header(response, "Content-Type", reply->content_type);
    for (int i = 0; i < reply->headers_count; i++) {
        cache_control = cache_control || strcmp(reply->headers[i].name, "Cache-Control") == 0;
        (void)MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    }
    if (!cache_control) (void)MHD_add_response_header(response, "Cache-Control", "no-store");
    if (reply->varies) (void)MHD_add_response_header(response, "Vary", "Accept-Encoding");
    if (reply->is_gzip) (void)MHD_add_response_header(response, "Content-Encoding", "gzip");
    add_trace(response, &request->exchange.trace);
    (void)MHD_add_response_header(response, "X-Request-Id", request->exchange.request_id);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (request->close_after || atomic_load(&request->http->app->draining))
        (void)MHD_add_response_header(response, "Connection", "close");
    request->status = reply->status;
    request->stage = ADV_STAGE_QUEUED;
    adv_connections_enter(request->http->connections, request->slot, ADV_CONNECTION_WRITING,
                          request->sent_bytes);
    enum MHD_Result result = MHD_queue_response(request->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

/* The worker still writes to the exchange: the reply is made beside it. */
enum MHD_Result adv_http_send_abandoned(struct request *request)
{
    struct adv_exchange other = {
        .app = request->http->app, .route = request->exchange.route, .scopes = request->exchange.scopes};
    memcpy(other.request_id, request->exchange.request_id, sizeof other.request_id);
    if (request->overdue)
        adv_reply_error(&other, ADV_E_BUSY, "", "try again after Retry-After seconds",
                        "no worker was free within %ld s", adv_app_live(request->http->app)->queue_wait_s);
    else
        adv_reply_error(&other, ADV_E_TIMEOUT, "", "ask for less, or again later", "no answer within %.3g s",
                        (double)(request->deadline_us - request->start_us) * 1e-6);
    adv_metrics_add(&request->http->app->metrics,
                    request->overdue ? ADV_COUNTER_REJECTED_QUEUE : ADV_COUNTER_REJECTED_DEADLINE, 1);
    enum MHD_Result result = adv_http_send(request, &other.reply);
    adv_reply_clear(&other.reply);
    return result;
}

/* ---- its end ---- */

static void log_request(const struct request *request, int64_t duration_us)
{
    const struct adv_exchange *exchange = &request->exchange;
    struct adv_log_line line;
    adv_log_begin(&request->http->app->log, &line, ADV_LOG_INFO, "request");
    adv_log_string(&line, "request_id", exchange->request_id);
    adv_log_string(&line, "method", exchange->method ? exchange->method : "");
    adv_log_string(&line, "route", exchange->route ? exchange->route->path : "");
    adv_log_string(&line, "target", request->target);
    if (exchange->trace.trace_id[0]) {
        adv_log_string(&line, "trace_id", exchange->trace.trace_id);
        adv_log_string(&line, "span_id", exchange->trace.span_id);
        adv_log_string(&line, "parent_id", exchange->trace.parent_id);
    }
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
    int64_t duration_us = adv_monotonic_us() - request->start_us;
    (void)atomic_fetch_sub(&http->app->metrics.in_flight, 1);
    if (request->status) {
        adv_metrics_request(&http->app->metrics, adv_routes_index(request->exchange.route), request->status,
                            duration_us);
        log_request(request, duration_us);
    }
    adv_connections_enter(http->connections, request->slot, ADV_CONNECTION_READING, 0);
    (void)pthread_mutex_lock(&http->lock);
    bool last = --request->owners == 0;
    (void)pthread_mutex_unlock(&http->lock);
    if (last) adv_http_request_free(request);
}

void adv_http_on_connection(void *closure, struct MHD_Connection *connection, void **socket_context,
                            enum MHD_ConnectionNotificationCode what)
{
    struct adv_http *http = closure;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (info && adv_raw_guard_is_within(info->connect_fd))
            adv_linger_take(http->linger, info->connect_fd);
        if (info) adv_raw_guard_close(info->connect_fd);
        adv_connections_close(http->connections, *socket_context);
        *socket_context = NULL;
        return;
    }
    if (info && !adv_raw_guard_open(info->connect_fd)) (void)shutdown(info->connect_fd, SHUT_RDWR);
    *socket_context = info ? adv_connections_open(http->connections, info->connect_fd) : NULL;
}
