#include <ctype.h>
#include <string.h>

#include "engine/json/decode_gate.h"
#include "server/api.h"
#include "server/app.h"
#include "server/json_text.h"
#include "server/store_baselines.h"

#define BASELINE_LIMIT_BYTES (64 * 1024)  /* with 100 changes of 200 bytes */
#define LIST_LIMIT_BYTES     (256 * 1024) /* 200 rows of at most 700 bytes */

static const char *const no_query[] = {NULL};

static struct adv_baseline_name name_of(const struct adv_exchange *exchange)
{
    return (struct adv_baseline_name){exchange->parameters[0], exchange->parameters[1]};
}

/* If-Match and If-None-Match. false: the reply says what is wrong with them. */
static bool read_condition(struct adv_exchange *exchange, struct adv_baseline_condition *condition)
{
    const char *match = exchange->headers[ADV_HEADER_IF_MATCH];
    const char *none = exchange->headers[ADV_HEADER_IF_NONE_MATCH];
    *condition = (struct adv_baseline_condition){.must_exist = match != NULL, .maker = exchange->principal};
    if (none && (strcmp(none, "*") != 0 || match)) {
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/headers/If-None-Match", "If-None-Match: *",
                        "a change takes If-Match, or If-None-Match with *");
        return false;
    }
    condition->must_be_new = none != NULL;
    if (!match || strcmp(match, "*") == 0) return true;
    char *tags = adv_arena_copy(&exchange->arena, match);
    char *end = tags;
    for (const char *at = match; tags && *at; at++)
        if (*at != '"' && !isspace((unsigned char)*at)) *end++ = *at;
    if (end) *end = '\0';
    condition->tags = tags ? tags : "";
    return true;
}

static void print_baseline(const struct adv_baseline_name *name, const struct adv_baseline *baseline,
                           struct adv_text *json)
{
    adv_text_append(json, "{");
    adv_json_text_string(json, "project", name->project);
    adv_json_text_string(json, "label", name->label);
    adv_json_text_string(json, "run_id", baseline ? baseline->run_id : NULL);
    adv_json_text_string(json, "updated_at", baseline ? baseline->updated_at : NULL);
}

static void reply_baseline(struct adv_exchange *exchange, int status)
{
    const struct adv_baseline_name name = name_of(exchange);
    adv_err err = adv_err_empty();
    struct adv_baseline baseline;
    if (adv_store_baseline_get(exchange->db, &name, &baseline, &err)) {
        adv_reply_problem(exchange, &err);
        return;
    }
    if (status == 200 && strcmp(exchange->method, "PUT") != 0) {
        if (adv_reply_not_modified(exchange, baseline.tag)) return;
    } else {
        adv_reply_header(exchange, "ETag", "\"%s\"", baseline.tag);
    }
    struct adv_text json = adv_text_empty(BASELINE_LIMIT_BYTES);
    print_baseline(&name, &baseline, &json);
    adv_text_append(&json, "}");
    adv_api_reply_made(exchange, status, &json);
}

/* The baseline and its earlier values, also when there is none now. */
static void reply_history(struct adv_exchange *exchange)
{
    const struct adv_baseline_name name = name_of(exchange);
    struct adv_baseline baseline;
    struct adv_text json = adv_text_empty(BASELINE_LIMIT_BYTES), history;
    adv_err err = adv_err_empty();
    adv_text_init(&history, BASELINE_LIMIT_BYTES);
    adv_code code = adv_store_baseline_history(exchange->db, &name, &history, &err);
    adv_code now = code ? code : adv_store_baseline_get(exchange->db, &name, &baseline, &err);
    const bool never = now == ADV_E_NOT_FOUND && history.data && strcmp(history.data, "[]") == 0;
    if (now && (now != ADV_E_NOT_FOUND || never)) {
        adv_reply_problem(exchange, &err);
    } else {
        print_baseline(&name, now ? NULL : &baseline, &json);
        adv_json_text_raw(&json, "history", history.data);
        adv_text_append(&json, "}");
        json.overflow = json.overflow || history.overflow;
        adv_api_reply_made(exchange, 200, &json);
    }
    adv_text_free(&history);
}

void adv_api_baseline_get(struct adv_exchange *exchange)
{
    static const char *const allowed[] = {"history", NULL};
    if (!adv_exchange_check_query(exchange, allowed)) return;
    const char *history = adv_exchange_query(exchange, "history");
    if (history && strcmp(history, "true") == 0)
        reply_history(exchange);
    else if (history && strcmp(history, "false") != 0)
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/history", NULL, "history is true or false");
    else
        reply_baseline(exchange, 200);
}

void adv_api_baseline_put(struct adv_exchange *exchange)
{
    struct adv_baseline_condition condition;
    if (!adv_exchange_check_query(exchange, no_query) || !read_condition(exchange, &condition)) return;
    const struct adv_baseline_name name = name_of(exchange);
    adv_err err = adv_err_empty();
    for (int i = 0; i < 2; i++)
        if (strlen(exchange->parameters[i]) >= ADV_LIMIT_NAME)
            (void)adv_err_add(&err, ADV_E_INVALID, i ? "/path/label" : "/path/project", NULL,
                              "longer than %d bytes", ADV_LIMIT_NAME - 1);
    char run_id[ADV_LIMIT_NAME];
    bool created = false;
    adv_code code =
        adv_decode_run_id(exchange->body ? exchange->body : "", exchange->body_bytes, run_id, &err);
    if (!code && !err.code)
        code = adv_store_baseline_put(exchange->db, &name, run_id, &condition, &created, &err);
    if (code || err.code)
        adv_reply_problem(exchange, &err);
    else
        reply_baseline(exchange, created ? 201 : 200);
}

void adv_api_baseline_delete(struct adv_exchange *exchange)
{
    struct adv_baseline_condition condition;
    if (!adv_exchange_check_query(exchange, no_query) || !read_condition(exchange, &condition)) return;
    const struct adv_baseline_name name = name_of(exchange);
    adv_err err = adv_err_empty();
    if (adv_store_baseline_delete(exchange->db, &name, &condition, &err))
        adv_reply_problem(exchange, &err);
    else
        adv_reply_empty(exchange, 204);
}

void adv_api_baselines_list(struct adv_exchange *exchange)
{
    static const char *const allowed[] = {"project", "limit", "cursor", NULL};
    int limit = 0;
    if (!adv_exchange_check_query(exchange, allowed) || !adv_api_read_limit(exchange, &limit)) return;
    adv_err err = adv_err_empty();
    struct adv_text page = adv_text_empty(LIST_LIMIT_BYTES);
    adv_code code = adv_store_baselines_list(exchange->db, adv_exchange_query(exchange, "project"),
                                             adv_exchange_query(exchange, "cursor"), limit, &page, &err);
    if (code == ADV_E_BAD_REQUEST) {
        adv_text_free(&page);
        adv_reply_error(exchange, ADV_E_BAD_REQUEST, "/query/cursor", "use next_cursor of the page before",
                        "this is not a cursor of this list");
        return;
    }
    adv_api_reply_page(exchange, code, &page, &err);
}
