/* api_reply.c: what handlers have in common: how they read the query, the engine that their answers are by,
 * and the way to the next page. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_bodies.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/request_id.h"

#define LINK_LIMIT_BYTES                                                                                     \
    250 /* a reply header has room for 255; a longer way is found in next_cursor alone                       \
         */

#define PAGE_COUNT         50
#define LONGEST_PAGE_COUNT 200

static adv_code read_whole(const struct adv_exchange *exchange, const char *name, int most, int *value,
                           adv_err *err)
{
    const char *text = adv_exchange_query(exchange, name);
    if (text && (!adv_text_whole(text, most, value) || *value < 1))
        return adv_err_add(err, ADV_E_BAD_REQUEST, ADV_AT("/query", name), NULL,
                           "%s is a whole number from 1 to %d", name, most);
    return ADV_OK;
}

adv_code adv_api_read_limit(const struct adv_exchange *exchange, int *limit, adv_err *err)
{
    *limit = PAGE_COUNT;
    return read_whole(exchange, "limit", LONGEST_PAGE_COUNT, limit, err);
}

adv_code adv_api_read_rank(const struct adv_exchange *exchange, int *rank, adv_err *err)
{
    *rank = 1;
    return read_whole(exchange, "rank", ADV_LIMIT_RANKED, rank, err);
}

adv_code adv_api_read_switch(const struct adv_exchange *exchange, const char *name, bool *value, adv_err *err)
{
    const char *text = adv_exchange_query(exchange, name);
    *value = text && strcmp(text, "true") == 0;
    if (!text || *value || strcmp(text, "false") == 0) return ADV_OK;
    return adv_err_add(err, ADV_E_BAD_REQUEST, ADV_AT("/query", name), NULL, "%s is true or false", name);
}

adv_code adv_api_refuse_cursor(adv_err *err)
{
    return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/cursor", "use next_cursor of the page before",
                       "this is not a cursor of this list");
}

static adv_code refuse_since(adv_err *err)
{
    return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/since", "2026-11-21 or 2026-11-21T05:00:00Z",
                       "since is not a time");
}

adv_code adv_api_read_page(const struct adv_exchange *exchange, const char *since, const char *cursor,
                           int *limit, adv_err *err)
{
    const adv_code code = adv_api_read_limit(exchange, limit, err);
    if (code) return code;
    if (cursor && !adv_uuid_valid(cursor)) return adv_api_refuse_cursor(err);
    return since && !adv_looks_like_time(since) ? refuse_since(err) : ADV_OK;
}

adv_code adv_api_read_chip(const struct adv_exchange *exchange, const char **chip, adv_err *err)
{
    const char *name = adv_exchange_query(exchange, "chip");
    const struct adv_catalog_chip *known = name ? adv_catalog_chip(exchange->app->catalog, name) : NULL;
    *chip = known ? known->chip.name : NULL;
    return name && !known ? adv_err_add(err, ADV_E_BAD_REQUEST, "/query/chip", "see /v1/catalog/chips",
                                        "there is no chip %.60s", name)
                          : ADV_OK;
}

adv_code adv_api_refuse_busy(const struct adv_exchange *exchange, adv_err *err)
{
    return adv_err_add(err, ADV_E_BUSY, "", "try again after Retry-After seconds",
                       "%ld requests wait already", exchange->app->config.queue_count);
}

adv_code adv_api_reply_printed(struct adv_exchange *exchange, int status, adv_code code,
                               struct adv_text *json)
{
    if (code)
        adv_text_free(json);
    else
        adv_api_reply_made(exchange, status, json);
    return code;
}

adv_code adv_api_reply_named(struct adv_exchange *exchange, int status, adv_code code, struct adv_text *json)
{
    if (json->overflow || code) adv_text_free(json);
    if (!code) adv_reply_json(exchange, status, json->data, json->length_bytes);
    return code;
}

adv_code adv_api_reply_page(struct adv_exchange *exchange, adv_code code, struct adv_text *page, adv_err *err)
{
    if (code == ADV_E_BAD_REQUEST) { /* every other value was looked at: a day that is not in the calendar */
        adv_err_init(err);
        (void)refuse_since(err);
    }
    if (!code) adv_api_link_next(exchange, page);
    return adv_api_reply_printed(exchange, 200, code, page);
}

void adv_api_warn(const struct adv_exchange *exchange, const char *message, const adv_err *err)
{
    struct adv_log_line line;
    adv_log_begin(&exchange->app->log, &line, ADV_LOG_WARNING, message);
    adv_log_string(&line, "request_id", exchange->request_id);
    adv_log_string(&line, "reason", err->count ? err->findings[0].detail : "");
    adv_log_end(&line);
}

adv_code adv_api_reply_done(struct adv_exchange *exchange, adv_code code)
{
    if (!code) adv_reply_empty(exchange, 204);
    return code;
}

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
    static const char member[] = "\"next_cursor\""; /* blanks may follow: the database writes them */
    struct adv_text link;
    const char *at = NULL;
    if (page->overflow || !page->data) return;
    for (const char *found = page->data; (found = strstr(found, member)); found++) at = found;
    if (!at) return;
    at += sizeof member - 1;
    at += strspn(at, " :");
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
