#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_bodies.h"
#include "engine/json/decode_store.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_runs.h"
#include "server/store_verifications.h"

#define LONGEST_SEARCH   200
#define TAG_BYTES        (ADV_UUID_BYTES + ADV_LIMIT_ENGINE_BYTES)
#define LIST_LIMIT_BYTES (1024u * 1024u)       /* 200 rows of at most 1.5 KiB */
#define RUN_LIMIT_BYTES  (64u * 1024u * 1024u) /* as long as what is stored */

/* Whether a search has a word: a letter or a digit; what is not ASCII is taken for one. */
static bool has_word(const char *words)
{
    for (; *words; words++)
        if (isalnum((unsigned char)*words) || (unsigned char)*words >= 0x80) return true;
    return false;
}

/* Kinds of runs: a simulation and a tuning are of one. */
static bool is_kind(const char *kind)
{
    static const char *const kinds[] = {"estimate", "advise", "kernel"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0) return true;
    return false;
}

/* ?kind=, ?q=, ?tags= and ?deleted= by their form. */
static adv_code read_search(const struct adv_exchange *exchange, struct adv_run_filter *filter, adv_err *err)
{
    if (filter->kind && !is_kind(filter->kind))
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/kind", "estimate, advise or kernel",
                           "there are no runs of kind '%.40s'", filter->kind);
    if (filter->words && (!has_word(filter->words) || strlen(filter->words) > LONGEST_SEARCH))
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/q", "q=llama nightly",
                           "q has words, of %d bytes in all at most", LONGEST_SEARCH);
    if (filter->tags && !filter->tags[0])
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/query/tags", "tags=nightly,release",
                           "tags are names separated by commas");
    return adv_api_read_switch(exchange, "deleted", &filter->deleted, err);
}

adv_code adv_api_runs_list(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_run_filter filter = {.project = adv_exchange_query(exchange, "project"),
                                    .label = adv_exchange_query(exchange, "label"),
                                    .git_ref = adv_exchange_query(exchange, "git_ref"),
                                    .model = adv_exchange_query(exchange, "model"),
                                    .kind = adv_exchange_query(exchange, "kind"),
                                    .since = adv_exchange_query(exchange, "since"),
                                    .words = adv_exchange_query(exchange, "q"),
                                    .tags = adv_exchange_query(exchange, "tags"),
                                    .sort = adv_exchange_query(exchange, "sort"),
                                    .cursor = adv_exchange_query(exchange, "cursor")};
    adv_code code = adv_api_read_page(exchange, filter.since, NULL, &filter.limit_count, err);
    if (!code) code = adv_api_read_chip(exchange, &filter.chip, err);
    if (!code) code = read_search(exchange, &filter, err);
    if (code) return code;
    /* The rows of a project's token are those of its project: said, so that an index finds them. */
    if (exchange->project[0] && !filter.project) filter.project = exchange->project;
    struct adv_text page = adv_text_empty(LIST_LIMIT_BYTES);
    code = adv_store_runs_list(exchange->db, &filter, &page, err);
    if (!code) adv_api_link_next(exchange, &page);
    return adv_api_reply_printed(exchange, 200, code, &page);
}

/* The answer of a run never changes, but the engine that shows it does, and what the compiler says of it, and
 * what it is tagged with: all are its entity tag. */
static void tag_of(const struct adv_exchange *exchange, const struct adv_stored_run *run,
                   const char *verification, char tag[TAG_BYTES])
{
    char digest[ADV_SHA256_HEX];
    const struct adv_catalog *catalog = exchange->app->catalog;
    struct adv_text both = adv_text_empty(2 * LIST_LIMIT_BYTES);
    adv_text_format(&both, "%s%s", run->tags, verification);
    adv_sha256_hex(both.data ? both.data : "", both.length_bytes, digest);
    adv_text_free(&both);
    (void)snprintf(tag, TAG_BYTES, "%s-%.40s-%.40s-%.80s-%.12s", run->id, adv_engine_version(),
                   adv_catalog_hash(catalog), adv_catalog_calibration(catalog), digest);
}

static void reply_run(struct adv_exchange *exchange, const struct adv_stored_run *run,
                      const char *verification)
{
    char tag[TAG_BYTES];
    tag_of(exchange, run, verification, tag);
    adv_reply_header(exchange, "Cache-Control", "private, no-cache");
    if (adv_reply_not_modified(exchange, tag)) return;
    struct adv_text json = adv_text_empty(RUN_LIMIT_BYTES);
    adv_store_run_print(run, &json);
    adv_json_text_raw(&json, "verification", verification);
    adv_text_append(&json, "}");
    adv_api_reply_made(exchange, 200, &json);
}

/* Whether the run is still what the writer has read (If-Match). `tags` gets a copy of its tags then, to be
 * freed: a change of them meanwhile is to be refused too; NULL where nothing was asked. */
static adv_code check_match(struct adv_exchange *exchange, char **tags, adv_err *err)
{
    const char *match = exchange->headers[ADV_HEADER_IF_MATCH];
    struct adv_stored_run run;
    char tag[TAG_BYTES];
    *tags = NULL;
    if (!match) return ADV_OK;
    adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    struct adv_text verification = adv_text_empty(LIST_LIMIT_BYTES);
    code = adv_verification_of_run(exchange->db, run.id, &verification, err);
    if (!code) tag_of(exchange, &run, verification.data ? verification.data : "null", tag);
    adv_text_free(&verification);
    if (!code && !adv_tags_name(match, tag, false)) code = adv_store_refuse_match("run", err);
    if (!code && !(*tags = strdup(run.tags)))
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the run");
    adv_store_run_free(&run);
    return code;
}

adv_code adv_api_run_get(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_stored_run run;
    adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    struct adv_text verification = adv_text_empty(LIST_LIMIT_BYTES);
    code = adv_verification_of_run(exchange->db, run.id, &verification, err);
    if (!code) reply_run(exchange, &run, verification.data ? verification.data : "null");
    adv_text_free(&verification);
    adv_store_run_free(&run);
    return code;
}

adv_code adv_api_run_delete(struct adv_exchange *exchange, adv_err *err)
{
    char *read_tags = NULL;
    adv_code code = check_match(exchange, &read_tags, err);
    if (!code) code = adv_store_run_delete(exchange->db, exchange->parameters[0], read_tags, err);
    free(read_tags);
    return adv_api_reply_done(exchange, code);
}

/* The run as it is now. */
static adv_code reply_changed(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_stored_run run;
    struct adv_text json = adv_text_empty(LIST_LIMIT_BYTES);
    const adv_code code = adv_store_run_get(exchange->db, exchange->parameters[0], &run, err);
    if (code) return code;
    adv_run_row_print(&run.rows, 0, &json);
    adv_text_append(&json, "}");
    adv_store_run_free(&run);
    adv_api_reply_made(exchange, 200, &json);
    return ADV_OK;
}

adv_code adv_api_run_restore(struct adv_exchange *exchange, adv_err *err)
{
    const adv_code code = adv_store_run_restore(exchange->db, exchange->parameters[0], err);
    return code ? code : reply_changed(exchange, err);
}

adv_code adv_api_run_patch(struct adv_exchange *exchange, adv_err *err)
{
    char *tags = NULL, *read_tags = NULL;
    adv_code code = adv_decode_tags(adv_exchange_body(exchange), exchange->body_bytes, &tags, err);
    if (code)
        adv_err_hint(err, "{\"tags\": [\"nightly\"]}: of a stored run nothing else changes");
    else
        code = check_match(exchange, &read_tags, err);
    if (!code) code = adv_store_run_tag(exchange->db, exchange->parameters[0], read_tags, tags, err);
    free(tags);
    free(read_tags);
    return code ? code : reply_changed(exchange, err);
}
