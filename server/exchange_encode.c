/* exchange_encode.c: which form of an answer a client has or takes: entity tags and the coding gzip. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "server/exchange.h"
#include "server/gzip.h"

#define CODED_TAG "-gzip" /* behind the tag of a coded body: other bytes, another tag */

/* Whether an element of a list of tags names `tag`, coded or not. */
static bool names_tag(const char *element, size_t bytes, const char *tag, bool takes_weak)
{
    const size_t length = strlen(tag), coded = sizeof CODED_TAG - 1;
    if (takes_weak && bytes >= 2 && strncmp(element, "W/", 2) == 0) {
        element += 2;
        bytes -= 2;
    }
    if (bytes == 1 && *element == '*') return true;
    if (bytes < length + 2 || element[0] != '"' || element[bytes - 1] != '"' ||
        memcmp(element + 1, tag, length) != 0)
        return false;
    return bytes == length + 2 ||
           (bytes == length + 2 + coded && memcmp(element + 1 + length, CODED_TAG, coded) == 0);
}

bool adv_tags_name(const char *tags, const char *tag, bool takes_weak)
{
    const char *at = tags;
    while (at && *at) {
        at += strspn(at, ", \t");
        const size_t length = strcspn(at, ",");
        size_t bytes = length;
        while (bytes && (at[bytes - 1] == ' ' || at[bytes - 1] == '\t')) bytes--;
        if (names_tag(at, bytes, tag, takes_weak)) return true;
        at += length;
    }
    return false;
}

bool adv_reply_not_modified(struct adv_exchange *exchange, const char *tag)
{
    adv_reply_header(exchange, "ETag", "\"%s\"", tag);
    const bool is_known = adv_tags_name(exchange->headers[ADV_HEADER_IF_NONE_MATCH], tag, true);
    if (is_known) adv_reply_empty(exchange, 304);
    return is_known;
}

/* Whether Accept-Encoding takes gzip: by its name, or by * where it is not named; q=0 refuses. */
static bool takes_gzip(const char *at)
{
    bool named = false, wanted = false;
    while (at && *at) {
        at += strspn(at, ", \t");
        const size_t length = strcspn(at, ","), name = strcspn(at, ",; \t");
        const bool is_gzip = name == 4 && strncasecmp(at, "gzip", 4) == 0;
        if (is_gzip || (name == 1 && *at == '*' && !named)) {
            const char *weight = memchr(at, '=', length);
            wanted = !weight || strtod(weight + 1, NULL) > 0.0;
            named = named || is_gzip;
        }
        at += length;
    }
    return wanted;
}

static bool is_text(const char *type)
{
    return type && (strncmp(type, "text/", 5) == 0 || strncmp(type, "application/", 12) == 0 ||
                    strncmp(type, "image/svg", 9) == 0);
}

static void mark_tag(struct adv_reply *reply)
{
    for (int i = 0; i < reply->headers_count; i++) {
        char *value = reply->headers[i].value;
        const size_t length = strlen(value);
        if (strcmp(reply->headers[i].name, "ETag") != 0 || length < 2) continue;
        (void)snprintf(value + length - 1, sizeof reply->headers[i].value - length + 1, CODED_TAG "\"");
    }
}

void adv_reply_encode(struct adv_exchange *exchange)
{
    struct adv_reply *reply = &exchange->reply;
    if (reply->is_gzip || reply->body_bytes < ADV_GZIP_LEAST_BYTES || !is_text(reply->content_type)) return;
    if (strncmp(reply->content_type, "text/event-stream", 17) == 0) return;
    reply->varies = true;
    if (!takes_gzip(exchange->headers[ADV_HEADER_ACCEPT_ENCODING])) return;
    size_t coded_bytes = reply->coded_bytes;
    char *made = reply->coded ? NULL : adv_gzip(reply->body, reply->body_bytes, ADV_GZIP_FAST, &coded_bytes);
    if (!reply->coded && !made) return;
    free(reply->owned);
    reply->owned = made;
    reply->body = made ? made : (char *)(uintptr_t)reply->coded;
    reply->body_bytes = coded_bytes;
    reply->is_gzip = true;
    mark_tag(reply);
}
