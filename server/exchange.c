#include "server/exchange.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/routes.h"

#define PROBLEM_LIMIT_BYTES (256u * 1024u) /* 48 findings of at most 900 bytes, escaped */
#define RETRY_AFTER_S       2              /* a full queue of searches is worked off in about this time */
#define NO_DATABASE_RETRY_S 3600           /* until somebody has given the daemon one */

const char *adv_exchange_query(const struct adv_exchange *exchange, const char *name)
{
    for (int i = 0; i < exchange->query_count; i++)
        if (strcmp(exchange->query[i].name, name) == 0) return exchange->query[i].value;
    return NULL;
}

bool adv_exchange_lists(const char *list, const char *word, size_t length,
                        int (*compare)(const char *, const char *, size_t))
{
    for (const char *at = list; *at; at += strspn(at, ", \t")) {
        const size_t one = strcspn(at, ", \t");
        if (one == length && compare(at, word, length) == 0) return true;
        at += one;
    }
    return false;
}

adv_code adv_exchange_check_query(const struct adv_exchange *exchange, const char *allowed, adv_err *err)
{
    if (exchange->query_overflow)
        (void)adv_err_add(err, ADV_E_BAD_REQUEST, "", NULL, "more than %d query parameters", ADV_LIMIT_QUERY);
    for (int i = 0; i < exchange->query_count; i++) {
        const char *name = exchange->query[i].name;
        char pointer[ADV_LIMIT_POINTER];
        (void)snprintf(pointer, sizeof pointer, "/query/%.100s", name);
        if (allowed && !adv_exchange_lists(allowed, name, strlen(name), strncmp))
            (void)adv_err_add(err, ADV_E_BAD_REQUEST, pointer, NULL, "there is no query parameter '%.100s'",
                              name);
        for (int j = 0; j < i; j++)
            if (strcmp(exchange->query[j].name, name) == 0)
                (void)adv_err_add(err, ADV_E_BAD_REQUEST, pointer, NULL,
                                  "the query parameter '%.100s' is given twice", name);
    }
    return err->code;
}

/* How closely a range of Accept names a type (up to its parameters): 3 itself, 2 its family, 1 anything, 0
 * not.
 */
static int range_fit(const char *range, size_t length, const char *type)
{
    size_t name = 0;
    while (name < length && !strchr("; \t", range[name])) name++;
    if (name == 3 && strncmp(range, "*/*", 3) == 0) return 1;
    size_t major = strcspn(type, "/") + 1;
    if (name == major + 1 && range[major] == '*') return strncasecmp(range, type, major) == 0 ? 2 : 0;
    return name == strcspn(type, ";") && strncasecmp(range, type, name) == 0 ? 3 : 0;
}

/* The range's q; without one it is 1. */
static double range_quality(const char *range, size_t length)
{
    const char *end = range + length;
    for (const char *at = memchr(range, ';', length); at; at = memchr(at, ';', (size_t)(end - at))) {
        at++;
        while (at < end && (*at == ' ' || *at == '\t')) at++;
        if (end - at >= 2 && strncasecmp(at, "q=", 2) == 0) return strtod(at + 2, NULL);
    }
    return 1.0;
}

static double quality_of(const struct adv_exchange *exchange, const char *type)
{
    const char *at = exchange->headers[ADV_HEADER_ACCEPT];
    if (!at || !*at) return 1.0;
    int closest = 0; /* the range that names the type most closely decides (RFC 9110, 12.5.1) */
    double quality = 0.0;
    while (*at) {
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ",");
        int fit = range_fit(at, length, type);
        if (fit > closest) {
            closest = fit;
            quality = range_quality(at, length);
        }
        at += length;
    }
    return quality;
}

bool adv_exchange_accepts(const struct adv_exchange *exchange, const char *type)
{
    return quality_of(exchange, type) > 0.0;
}

int adv_exchange_preferred(const struct adv_exchange *exchange, const char *const *types, int count)
{
    int preferred = -1;
    double highest = 0.0;
    for (int i = 0; i < count; i++) {
        const double quality = quality_of(exchange, types[i]);
        if (quality > highest) {
            highest = quality;
            preferred = i;
        }
    }
    return preferred;
}

void adv_reply_clear(struct adv_reply *reply)
{
    free(reply->owned);
    memset(reply, 0, sizeof *reply);
}

static void out_of_memory(struct adv_exchange *exchange)
{
    static const char body[] =
        "{\"type\":\"https://tpu-advisor.dev/problems/out-of-memory\",\"title\":\"Out of memory\","
        "\"status\":503,\"errors\":[]}";
    adv_reply_constant(exchange, 503, "application/problem+json", body, sizeof body - 1);
    adv_reply_header(exchange, "Retry-After", "%d", RETRY_AFTER_S);
}

void adv_reply_text(struct adv_exchange *exchange, int status, const char *content_type, char *body,
                    size_t body_bytes)
{
    if (!body) {
        out_of_memory(exchange);
        return;
    }
    adv_reply_constant(exchange, status, content_type, body, body_bytes);
    exchange->reply.owned = body;
}

void adv_reply_json(struct adv_exchange *exchange, int status, char *body, size_t body_bytes)
{
    adv_reply_text(exchange, status, "application/json", body, body_bytes);
}

void adv_reply_constant(struct adv_exchange *exchange, int status, const char *content_type, const void *body,
                        size_t body_bytes)
{
    exchange->reply.status = status;
    exchange->reply.content_type = content_type;
    exchange->reply.body = (char *)(uintptr_t)body; /* nobody writes to it */
    exchange->reply.body_bytes = body_bytes;
    exchange->reply.owned = NULL;
}

void adv_reply_document(struct adv_exchange *exchange, const char *content_type,
                        const struct adv_document *document)
{
    adv_reply_header(exchange, "Cache-Control",
                     document->lasts ? "public, max-age=31536000, immutable" : "no-cache");
    if (adv_reply_not_modified(exchange, document->tag)) return;
    adv_reply_constant(exchange, 200, content_type, document->body, document->body_bytes);
    exchange->reply.coded = document->coded;
    exchange->reply.coded_bytes = document->coded_bytes;
}

void adv_reply_empty(struct adv_exchange *exchange, int status)
{
    adv_reply_constant(exchange, status, NULL, "", 0);
}

void adv_reply_header(struct adv_exchange *exchange, const char *name, const char *format, ...)
{
    if (exchange->reply.headers_count == ADV_LIMIT_REPLY_HEADERS) return;
    int index = exchange->reply.headers_count++;
    exchange->reply.headers[index].name = name;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(exchange->reply.headers[index].value, sizeof exchange->reply.headers[index].value, format,
                    args);
    va_end(args);
}

/* Whether the client listens for events: its library gives up for good on any status but 200. Who has no
 * valid token is to give up. */
static bool listens(const struct adv_exchange *exchange)
{
    const char *answers = exchange->route ? exchange->route->answers : NULL;
    return answers && strcmp(answers, "text/event-stream") == 0 && exchange->scopes;
}

/* After how long the same request may be answered; 0: never. */
static int comes_after_s(const struct adv_exchange *exchange, adv_code code)
{
    const int status = adv_code_http_status(code);
    if (status == 429) return exchange->wait_s;
    if (status != 503) return 0;
    return code == ADV_E_STORE && !exchange->app->database ? NO_DATABASE_RETRY_S : RETRY_AFTER_S;
}

/* The problem that the reply is becomes an event. It has no id: the client asks again for what follows the
 * last one that it had. */
static void tell_away(struct adv_exchange *exchange, int wait_s)
{
    struct adv_text events = adv_text_empty(PROBLEM_LIMIT_BYTES);
    adv_text_format(&events, "retry: %d\nevent: away\ndata: ", wait_s * 1000);
    adv_text_append_bytes(&events, exchange->reply.body, exchange->reply.body_bytes);
    adv_text_append(&events, "\n\n");
    if (events.overflow) adv_text_free(&events);
    adv_reply_clear(&exchange->reply);
    adv_reply_text(exchange, 200, "text/event-stream", events.data, events.length_bytes);
}

void adv_reply_problem(struct adv_exchange *exchange, const adv_err *err)
{
    char instance[ADV_LIMIT_REQUEST_ID + 32];
    (void)snprintf(instance, sizeof instance, "urn:tpu-advisor:request:%s", exchange->request_id);
    const int status = adv_code_http_status(err->code), wait_s = comes_after_s(exchange, err->code);
    struct adv_text text = adv_text_empty(PROBLEM_LIMIT_BYTES);
    char *body = adv_problem_json(err, instance);
    if (body) adv_text_append(&text, body);
    free(body);
    adv_api_reply_made(exchange, status, &text);
    if (wait_s > 0 && wait_s < NO_DATABASE_RETRY_S && listens(exchange)) {
        tell_away(exchange, wait_s);
        return;
    }
    exchange->reply.content_type = "application/problem+json";
    if (wait_s > 0) adv_reply_header(exchange, "Retry-After", "%d", wait_s);
    if (status == 401) adv_reply_header(exchange, "WWW-Authenticate", "Bearer realm=\"tpu-advisor\"");
}

bool adv_reply_error(struct adv_exchange *exchange, adv_code code, const char *pointer, const char *hint,
                     const char *format, ...)
{
    char detail[ADV_LIMIT_DETAIL];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(detail, sizeof detail, format, args);
    va_end(args);
    adv_err err = adv_err_empty();
    (void)adv_err_add(&err, code, pointer, hint, "%s", detail);
    adv_reply_problem(exchange, &err);
    return false;
}
