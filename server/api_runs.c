#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_measured.h"
#include "engine/json/decode_tags.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_run_row.h"
#include "server/store_runs.h"
#include "server/store_verifications.h"

#define PAGE_COUNT         50
#define LONGEST_PAGE_COUNT 200
#define LONGEST_SEARCH     200
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

/* Whether a search has a word: a letter or a digit; what is not ASCII is taken for one. */
static bool has_word(const char *words)
{
    for (; *words; words++)
        if (isalnum((unsigned char)*words) || (unsigned char)*words >= 0x80) return true;
    return false;
}

/* ?q=, ?tags= and ?deleted= by their form; false with the problem in the reply. */
static bool read_search(struct adv_exchange *exchange, struct adv_run_filter *filter)
{
    const char *deleted = adv_exchange_query(exchange, "deleted");
    filter->deleted = deleted && strcmp(deleted, "true") == 0;
    if (filter->words && (!has_word(filter->words) || strlen(filter->words) > LONGEST_SEARCH))
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/q", "q=llama nightly",
                        "q has words, of %d bytes in all at most", LONGEST_SEARCH);
    else if (filter->tags && !filter->tags[0])
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/tags", "tags=nightly,release",
                        "tags are names separated by commas");
    else if (deleted && !filter->deleted && strcmp(deleted, "false") != 0)
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/deleted", NULL, "deleted is true or false");
    else
        return true;
    return false;
}

void adv_api_runs_list(struct adv_exchange *exchange)
{
    static const char *const allowed[] = {"project", "label", "git_ref", "model", "chip",
                                          "kind",    "since", "q",       "tags",  "sort",
                                          "deleted", "limit", "cursor",  NULL};
    struct adv_run_filter filter = {.project = adv_exchange_query(exchange, "project"),
                                    .label = adv_exchange_query(exchange, "label"),
                                    .git_ref = adv_exchange_query(exchange, "git_ref"),
                                    .model = adv_exchange_query(exchange, "model"),
                                    .chip = adv_exchange_query(exchange, "chip"),
                                    .kind = adv_exchange_query(exchange, "kind"),
                                    .since = adv_exchange_query(exchange, "since"),
                                    .words = adv_exchange_query(exchange, "q"),
                                    .tags = adv_exchange_query(exchange, "tags"),
                                    .sort = adv_exchange_query(exchange, "sort"),
                                    .cursor = adv_exchange_query(exchange, "cursor")};
    if (!adv_exchange_check_query(exchange, allowed) ||
        !adv_api_read_page(exchange, filter.since, NULL, &filter.limit_count) ||
        !read_search(exchange, &filter))
        return;
    /* The rows of a project's token are those of its project: said, so that an index finds them. */
    if (exchange->project[0] && !filter.project) filter.project = exchange->project;
    adv_err err = adv_err_empty();
    struct adv_text page = adv_text_empty(LIST_LIMIT_BYTES);
    if (adv_store_runs_list(exchange->db, &filter, &page, &err)) {
        adv_text_free(&page);
        adv_reply_problem(exchange, &err);
        return;
    }
    adv_api_link_next(exchange, &page);
    adv_api_reply_made(exchange, 200, &page);
}

/* The answer of a run never changes, but the engine that shows it does, and what the compiler says of it, and
 * what it is tagged with: all are its entity tag. */
static void reply_run(struct adv_exchange *exchange, const struct adv_stored_run *run,
                      const char *verification)
{
    char tag[ADV_UUID_BYTES + ADV_LIMIT_ENGINE_BYTES], digest[ADV_SHA256_HEX];
    const struct adv_catalog *catalog = exchange->app->catalog;
    struct adv_text both = adv_text_empty(2 * LIST_LIMIT_BYTES);
    adv_text_format(&both, "%s%s", run->tags, verification);
    adv_sha256_hex(both.data ? both.data : "", both.length_bytes, digest);
    adv_text_free(&both);
    (void)snprintf(tag, sizeof tag, "%s-%.40s-%.40s-%.80s-%.12s", run->id, adv_engine_version(),
                   adv_catalog_hash(catalog), adv_catalog_calibration(catalog), digest);
    adv_reply_header(exchange, "Cache-Control", "private, no-cache");
    if (adv_reply_not_modified(exchange, tag)) return;
    struct adv_text json = adv_text_empty(RUN_LIMIT_BYTES);
    adv_store_run_print(run, &json);
    if (json.length_bytes > 0) json.data[--json.length_bytes] = '\0'; /* the } */
    adv_json_text_raw(&json, "verification", verification);
    adv_text_append(&json, "}");
    adv_api_reply_made(exchange, 200, &json);
}

void adv_api_run_get(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err = adv_err_empty();
    struct adv_stored_run run;
    if (adv_store_run_get(exchange->db, exchange->parameters[0], &run, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    struct adv_text verification = adv_text_empty(LIST_LIMIT_BYTES);
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
    adv_err err = adv_err_empty();
    if (adv_store_run_delete(exchange->db, exchange->parameters[0], &err))
        adv_reply_problem(exchange, &err);
    else
        adv_reply_empty(exchange, 204);
}

/* The run as it is now. */
static void reply_changed(struct adv_exchange *exchange)
{
    adv_err err = adv_err_empty();
    struct adv_stored_run run;
    struct adv_text json;
    if (adv_store_run_get(exchange->db, exchange->parameters[0], &run, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    adv_text_init(&json, LIST_LIMIT_BYTES);
    adv_run_row_print(&run.rows, 0, &json);
    adv_text_append(&json, "}");
    adv_store_run_free(&run);
    adv_api_reply_made(exchange, 200, &json);
}

void adv_api_run_restore(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err = adv_err_empty();
    if (adv_store_run_restore(exchange->db, exchange->parameters[0], &err))
        adv_reply_problem(exchange, &err);
    else
        reply_changed(exchange);
}

void adv_api_run_patch(struct adv_exchange *exchange)
{
    if (!adv_exchange_check_query(exchange, no_query)) return;
    adv_err err = adv_err_empty();
    char *tags = NULL;
    adv_code code = adv_decode_tags(exchange->body ? exchange->body : "", exchange->body_bytes, &tags, &err);
    if (code)
        adv_err_hint(&err, "{\"tags\": [\"nightly\"]}: of a stored run nothing else changes");
    else
        code = adv_store_run_tag(exchange->db, exchange->parameters[0], tags, &err);
    free(tags);
    if (code)
        adv_reply_problem(exchange, &err);
    else
        reply_changed(exchange);
}
