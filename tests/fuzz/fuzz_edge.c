/* Any bytes as the values of headers and as cursors: traces, entity tags and codings, request ids, hosts.
 * A request that is taken is well-formed; a body that was coded is the body. */
#include "tests/fuzz/fuzz.h"

#include <zlib.h>

#include "server/exchange.h"
#include "server/origin.h"
#include "server/request_id.h"

static void read_trace(const char *text)
{
    struct adv_trace trace;
    adv_trace_read(text, &trace);
    if (!trace.trace_id[0]) return;
    FUZZ_PROMISE(strlen(trace.trace_id) == 32 && strlen(trace.parent_id) == 16 &&
                 strlen(trace.span_id) == 16);
    FUZZ_PROMISE(strspn(trace.trace_id, "0123456789abcdef") == 32 && strspn(trace.trace_id, "0") < 32);
}

/* The text as Accept-Encoding and If-None-Match of an answer that is the text itself, some times over. */
static void answer(const char *text, size_t size)
{
    struct adv_exchange exchange;
    memset(&exchange, 0, sizeof exchange);
    exchange.headers[ADV_HEADER_ACCEPT_ENCODING] = text;
    exchange.headers[ADV_HEADER_IF_NONE_MATCH] = text;
    if (adv_reply_not_modified(&exchange, "tag")) {
        FUZZ_PROMISE(exchange.reply.status == 304 && (strstr(text, "\"tag") || strchr(text, '*')));
        return;
    }
    const size_t bytes = (size + 1) * 64;
    char *body = malloc(bytes);
    if (!body) return;
    for (size_t i = 0; i < bytes; i++) body[i] = text[i % (size + 1)];
    adv_reply_text(&exchange, 200, "text/plain", body, bytes);
    adv_reply_encode(&exchange);
    if (exchange.reply.is_gzip) {
        Bytef *plain = malloc(bytes + 1);
        z_stream stream;
        memset(&stream, 0, sizeof stream);
        stream.next_in = (Bytef *)exchange.reply.body;
        stream.avail_in = (uInt)exchange.reply.body_bytes;
        stream.next_out = plain;
        stream.avail_out = (uInt)bytes + 1;
        FUZZ_PROMISE(plain && inflateInit2(&stream, 15 + 16) == Z_OK &&
                     inflate(&stream, Z_FINISH) == Z_STREAM_END);
        FUZZ_PROMISE(stream.total_out == bytes);
        for (size_t i = 0; i < bytes; i++) FUZZ_PROMISE(plain[i] == (Bytef)text[i % (size + 1)]);
        (void)inflateEnd(&stream);
        free(plain);
        FUZZ_PROMISE(strcmp(exchange.reply.headers[0].value, "\"tag-gzip\"") == 0);
    }
    adv_reply_clear(&exchange.reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char id[ADV_LIMIT_REQUEST_ID];
    if (size > 8192) return 0;
    char *text = malloc(size + 1);
    if (!text) return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    size = strlen(text);
    read_trace(text);
    answer(text, size);
    adv_request_id_choose(text, id);
    FUZZ_PROMISE(id[0] && strlen(id) < sizeof id);
    FUZZ_PROMISE(!adv_uuid_valid(text) || size == ADV_UUID_BYTES - 1);
    (void)adv_origin_is_host(text, "example.org");
    (void)adv_origin_is_ours(text, NULL, "example.org:8080");
    free(text);
    return 0;
}
