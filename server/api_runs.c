#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_measured.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_runs.h"
#include "server/store_verifications.h"

#define PAGE_COUNT         50
#define LONGEST_PAGE_COUNT 200
#define LIST_LIMIT_BYTES   (1024u * 1024u)       /* 200 rows of at most 1.5 KiB */
#define RUN_LIMIT_BYTES    (64u * 1024u * 1024u) /* as long as what is stored */

static const char *const no_query[] = {NULL};

bool adv_api_read_limit(struct adv_exchange *exchange, int *limit)
{
    const char *text = adv_exchange_query(exchange, "limit");
    *limit = PAGE_COUNT;
    if (!text) return true;
    char *end = NULL;
    long number = strtol(text, &end, 10);
    if (end != text && *end == '\0' && number >= 1 && number <= LONGEST_PAGE_COUNT) {
        *limit = (int)number;
        return true;
    }
    adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/limit", NULL, "limit is a whole number from 1 to %d",
                    LONGEST_PAGE_COUNT);
    return false;
}

static void refuse_since(struct adv_exchange *exchange)
{
    adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/since", "2026-11-21 or 2026-11-21T05:00:00Z",
                    "since is not a time");
}

bool adv_api_read_page(struct adv_exchange *exchange, const char *since, const char *cursor, int *limit)
{
    if (!adv_api_read_limit(exchange, limit)) return false;
    bool is_cursor = !cursor || adv_uuid_valid(cursor), is_time = !since || adv_looks_like_time(since);
    if (!is_cursor)
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/cursor", "use next_cursor of the page before",
                        "this is not a cursor of this list");
    else if (!is_time)
        refuse_since(exchange);
    return is_cursor && is_time;
}

void adv_api_reply_page(struct adv_exchange *exchange, adv_code code, struct adv_text *page,
                        const adv_err *err)
{
    if (code == ADV_OK) {
        adv_api_link_next(exchange, page);
        adv_api_reply_made(exchange, 200, page);
        return;
    }
    adv_text_free(page);
    if (code == ADV_E_BAD_REQUEST)
        refuse_since(exchange); /* every other value was looked at: a day that is not in the calendar */
    else
        adv_reply_problem(exchange, err);
}

void adv_api_runs_list(struct adv_exchange *exchange)
{
    static const char *const allowed[] = {"project", "label", "model",  "chip", "kind",
                                          "since",   "limit", "cursor", NULL};
    struct adv_run_filter filter = {.project = adv_exchange_query(exchange, "project"),
                                    .label = adv_exchange_query(exchange, "label"),
                                    .model = adv_exchange_query(exchange, "model"),
                                    .chip = adv_exchange_query(exchange, "chip"),
                                    .kind = adv_exchange_query(exchange, "kind"),
                                    .since = adv_exchange_query(exchange, "since"),
                                    .after = adv_exchange_query(exchange, "cursor")};
    if (!adv_exchange_check_query(exchange, allowed) ||
        !adv_api_read_page(exchange, filter.since, filter.after, &filter.limit_count))
        return;
    adv_err err;
    adv_err_init(&err);
    struct adv_text page;
    adv_text_init(&page, LIST_LIMIT_BYTES);
    adv_code code = adv_store_runs_list(exchange->db, &filter, &page, &err);
    adv_api_reply_page(exchange, code, &page, &err);
}

/* A run never changes, but the engine that shows it does, and what the compiler says of it: all are its tag.
 */
static void reply_run(struct adv_exchange *exchange, const struct adv_stored_run *run,
                      const char *verification)
{
    char tag[ADV_UUID_BYTES + ADV_LIMIT_ENGINE_BYTES], digest[ADV_SHA256_HEX];
    const struct adv_catalog *catalog = exchange->app->catalog;
    adv_sha256_hex(verification, strlen(verification), digest);
    (void)snprintf(tag, sizeof tag, "%s-%.40s-%.40s-%.80s-%.12s", run->id, adv_engine_version(),
                   adv_catalog_hash(catalog), adv_catalog_calibration(catalog), digest);
    adv_reply_header(exchange, "Cache-Control", "private, no-cache");
    if (adv_reply_not_modified(exchange, tag)) return;
    struct adv_text json;
    adv_text_init(&json, RUN_LIMIT_BYTES);
    adv_store_run_print(run, &json);
    if (json.length_bytes > 0) json.data[--json.length_bytes] = '\0'; /* the } */
    adv_json_text_raw(&json, "verification", verification);
    adv_text_append(&json, "}");
    adv_api_reply_made(exchange, 200, &json);
}

void adv_api_run_get(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err;
    adv_err_init(&err);
    struct adv_stored_run run;
    if (adv_store_run_get(exchange->db, exchange->parameters[0], &run, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    struct adv_text verification;
    adv_text_init(&verification, LIST_LIMIT_BYTES);
    if (adv_verification_of_run(exchange->db, run.id, &verification, &err))
        adv_reply_problem(exchange, &err);
    else
        reply_run(exchange, &run, verification.data ? verification.data : "null");
    adv_text_free(&verification);
    adv_store_run_free(&run);
}

void adv_api_run_delete(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err;
    adv_err_init(&err);
    if (adv_store_run_delete(exchange->db, exchange->parameters[0], &err))
        adv_reply_problem(exchange, &err);
    else
        adv_reply_empty(exchange, 204);
}
