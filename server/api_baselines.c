#include <ctype.h>
#include <string.h>

#include "engine/json/decode_gate.h"
#include "server/api.h"
#include "server/app.h"
#include "server/gate.h"
#include "server/json_text.h"
#include "server/store_baselines.h"
#include "server/store_runs.h"

#define BASELINE_LIMIT_BYTES (64 * 1024)  /* with 100 changes of 200 bytes */
#define LIST_LIMIT_BYTES     (256 * 1024) /* 200 rows of at most 700 bytes */

static struct adv_baseline_name name_of(const struct adv_exchange *exchange)
{
    return (struct adv_baseline_name){exchange->parameters[0], exchange->parameters[1]};
}

/* If-Match and If-None-Match. */
static adv_code read_condition(struct adv_exchange *exchange, struct adv_baseline_condition *condition,
                               adv_err *err)
{
    const char *match = exchange->headers[ADV_HEADER_IF_MATCH];
    const char *none = exchange->headers[ADV_HEADER_IF_NONE_MATCH];
    *condition = (struct adv_baseline_condition){.must_exist = match != NULL, .maker = exchange->principal};
    if (none && (strcmp(none, "*") != 0 || match))
        return adv_err_add(err, ADV_E_BAD_REQUEST, "/headers/If-None-Match", "If-None-Match: *",
                           "a change takes If-Match, or If-None-Match with *");
    condition->must_be_new = none != NULL;
    if (!match || strcmp(match, "*") == 0) return ADV_OK;
    char *tags = adv_arena_copy(&exchange->arena, match);
    char *end = tags;
    for (const char *at = match; tags && *at; at++)
        if (*at != '"' && !isspace((unsigned char)*at)) *end++ = *at;
    if (end) *end = '\0';
    condition->tags = tags ? tags : "";
    return ADV_OK;
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

static void reply_baseline(struct adv_exchange *exchange, int status, const struct adv_baseline_name *name,
                           const struct adv_baseline *baseline)
{
    struct adv_text json = adv_text_empty(BASELINE_LIMIT_BYTES);
    print_baseline(name, baseline, &json);
    adv_text_append(&json, "}");
    adv_api_reply_made(exchange, status, &json);
}

static adv_code reply_current(struct adv_exchange *exchange, adv_err *err)
{
    const struct adv_baseline_name name = name_of(exchange);
    struct adv_baseline baseline;
    const adv_code code = adv_store_baseline_get(exchange->db, &name, &baseline, err);
    if (code) return code;
    if (!adv_reply_not_modified(exchange, baseline.tag)) reply_baseline(exchange, 200, &name, &baseline);
    return ADV_OK;
}

/* The baseline and its earlier values, also when there is none now. */
static adv_code reply_history(struct adv_exchange *exchange, adv_err *err)
{
    const struct adv_baseline_name name = name_of(exchange);
    struct adv_baseline baseline;
    struct adv_text json = adv_text_empty(BASELINE_LIMIT_BYTES);
    struct adv_text history = adv_text_empty(BASELINE_LIMIT_BYTES);
    adv_code code = adv_store_baseline_history(exchange->db, &name, &history, err);
    if (!code) code = adv_store_baseline_get(exchange->db, &name, &baseline, err);
    const bool is_set = code == ADV_OK;
    if (code == ADV_E_NOT_FOUND && history.data && strcmp(history.data, "[]") != 0) code = ADV_OK;
    if (!code) {
        print_baseline(&name, is_set ? &baseline : NULL, &json);
        adv_json_text_raw(&json, "history", history.data);
        adv_text_append(&json, "}");
        json.overflow = json.overflow || history.overflow;
        adv_api_reply_made(exchange, 200, &json);
    }
    adv_text_free(&history);
    return code;
}

adv_code adv_api_baseline_get(struct adv_exchange *exchange, adv_err *err)
{
    bool with_history = false;
    const adv_code code = adv_api_read_switch(exchange, "history", &with_history, err);
    if (code) return code;
    return with_history ? reply_history(exchange, err) : reply_current(exchange, err);
}

/* What does not start, by the prediction or by the real compiler's word, is as little to compare with as what
 * does not fit. A run that cannot be read is refused by adv_store_baseline_put. */
static adv_code refuse_what_does_not_start(struct adv_exchange *exchange, const char *run_id, adv_err *err)
{
    struct adv_stored_run run;
    struct adv_gate_side side = {0};
    adv_err ignored = adv_err_empty();
    if (!adv_uuid_valid(run_id) || adv_store_run_get(exchange->db, run_id, &run, &ignored)) return ADV_OK;
    adv_code code = ADV_OK;
    if (!adv_gate_read_answer(run.response, &side.now, &ignored))
        code = adv_api_word_of(exchange, run.response, 1, &side.word, err);
    adv_store_run_free(&run);
    if (!code && side.now.over_vmem[0])
        code = adv_err_add(err, ADV_E_INVALID, "/run_id", "use a run that starts",
                           "the run does not start: %.200s", side.now.over_vmem);
    if (!code && adv_gate_is_refuted(&side))
        code = adv_err_add(err, ADV_E_INVALID, "/run_id", "use a run that fits",
                           "the real compiler says that the run does not fit in memory (%.100s): it is "
                           "nothing to compare with",
                           side.word.versions);
    return code;
}

adv_code adv_api_baseline_put(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_baseline_condition condition;
    const struct adv_baseline_name name = name_of(exchange);
    char run_id[ADV_LIMIT_NAME];
    bool created = false;
    adv_code code = read_condition(exchange, &condition, err);
    if (code) return code;
    for (int i = 0; i < 2; i++) {
        const char *pointer = i ? "/path/label" : "/path/project";
        if (strlen(exchange->parameters[i]) >= ADV_LIMIT_NAME)
            (void)adv_err_add(err, ADV_E_INVALID, pointer, NULL, "longer than %d bytes", ADV_LIMIT_NAME - 1);
        if (adv_text_has_control(exchange->parameters[i]))
            (void)adv_err_add(err, ADV_E_INVALID, pointer, NULL, "the name has control characters");
    }
    code = adv_decode_run_id(adv_exchange_body(exchange), exchange->body_bytes, run_id, err);
    if (!code) code = err->code;
    if (!code) code = refuse_what_does_not_start(exchange, run_id, err);
    struct adv_baseline baseline;
    if (!code)
        code = adv_store_baseline_put(exchange->db, &name, run_id, &condition, &baseline, &created, err);
    if (code) return code;
    adv_reply_header(exchange, "ETag", "\"%s\"", baseline.tag);
    reply_baseline(exchange, created ? 201 : 200, &name, &baseline);
    return ADV_OK;
}

adv_code adv_api_baseline_delete(struct adv_exchange *exchange, adv_err *err)
{
    struct adv_baseline_condition condition;
    const struct adv_baseline_name name = name_of(exchange);
    adv_code code = read_condition(exchange, &condition, err);
    if (!code) code = adv_store_baseline_delete(exchange->db, &name, &condition, err);
    return adv_api_reply_done(exchange, code);
}

adv_code adv_api_baselines_list(struct adv_exchange *exchange, adv_err *err)
{
    int limit = 0;
    adv_code code = adv_api_read_limit(exchange, &limit, err);
    if (code) return code;
    struct adv_text page = adv_text_empty(LIST_LIMIT_BYTES);
    code = adv_store_baselines_list(exchange->db, adv_exchange_query(exchange, "project"),
                                    adv_exchange_query(exchange, "cursor"), limit, &page, err);
    if (code == ADV_E_BAD_REQUEST) {
        adv_err_init(err);
        (void)adv_api_refuse_cursor(err);
    }
    if (!code) adv_api_link_next(exchange, &page);
    return adv_api_reply_printed(exchange, 200, code, &page);
}
