/* http_answer.c: a filled reply, given to the HTTP library. */
#include "server/http_internal.h"

#include <stdio.h>
#include <string.h>

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
    if (reply->varies) (void)MHD_add_response_header(response, "Vary", "Accept-Encoding");
    if (reply->is_gzip) (void)MHD_add_response_header(response, "Content-Encoding", "gzip");
    add_trace(response, &request->exchange.trace);
    (void)MHD_add_response_header(response, "X-Request-Id", request->exchange.request_id);
    (void)MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (request->close_after || atomic_load(&request->http->app->draining))
        (void)MHD_add_response_header(response, "Connection", "close");
    request->status = reply->status;
    request->stage = ADV_STAGE_QUEUED;
    adv_connections_write(request->http->connections, request->slot, request->sent_bytes);
    enum MHD_Result result = MHD_queue_response(request->connection, (unsigned)reply->status, response);
    MHD_destroy_response(response);
    return result;
}

/* The worker still writes to the exchange: the reply is made beside it. */
enum MHD_Result adv_http_send_abandoned(struct request *request)
{
    struct adv_exchange other = {.app = request->http->app};
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
