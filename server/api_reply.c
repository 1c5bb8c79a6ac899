/* api_reply.c: what all answers of the store have in common: the engine they are by, and the way to the next
 * page. */
#include <ctype.h>
#include <string.h>

#include "engine/advise.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"

#define LINK_LIMIT_BYTES                                                                                     \
    250 /* a reply header has room for 255; a longer way is found in next_cursor alone                       \
         */

void adv_api_print_engine(const struct adv_app *app, struct adv_text *json)
{
    adv_text_append(json, "{");
    adv_json_text_string(json, "version", adv_engine_version());
    adv_json_text_string(json, "catalog_hash", adv_catalog_hash(app->catalog));
    adv_json_text_string(json, "calibration", adv_catalog_calibration(app->catalog));
    adv_text_append(json, "}");
}

void adv_api_reply_made(struct adv_exchange *exchange, int status, struct adv_text *json)
{
    json->limit_bytes += ADV_LIMIT_ENGINE_BYTES;
    if (json->length_bytes > 0 && !json->overflow) json->data[--json->length_bytes] = '\0'; /* the } */
    adv_text_append(json, ",\"engine\":");
    adv_api_print_engine(exchange->app, json);
    adv_text_append(json, "}");
    if (json->overflow) adv_text_free(json);
    adv_reply_json(exchange, status, json->data, json->length_bytes);
}

static void put_encoded(struct adv_text *text, const char *value)
{
    for (const char *at = value; *at; at++) {
        if (isalnum((unsigned char)*at) || strchr("-._~", *at))
            adv_text_append_bytes(text, at, 1);
        else
            adv_text_format(text, "%%%02X", (unsigned char)*at);
    }
}

void adv_api_link_next(struct adv_exchange *exchange, const struct adv_text *page)
{
    static const char member[] = "\"next_cursor\":";
    struct adv_text link;
    const char *at = NULL;
    if (page->overflow || !page->data) return;
    for (const char *found = page->data; (found = strstr(found, member)); found++) at = found;
    if (!at) return;
    at += sizeof member - 1;
    at += strspn(at, " ");
    if (*at != '"') return;
    const size_t length = strcspn(++at, "\"");
    adv_text_init(&link, LINK_LIMIT_BYTES);
    adv_text_format(&link, "<%s?", exchange->path);
    for (int i = 0; i < exchange->query_count; i++) {
        if (strcmp(exchange->query[i].name, "cursor") == 0) continue;
        adv_text_format(&link, "%s=", exchange->query[i].name);
        put_encoded(&link, exchange->query[i].value);
        adv_text_append(&link, "&");
    }
    adv_text_append(&link, "cursor=");
    adv_text_append_bytes(&link, at, length);
    adv_text_append(&link, ">; rel=\"next\"");
    if (!link.overflow) adv_reply_header(exchange, "Link", "%s", link.data);
    adv_text_free(&link);
}
