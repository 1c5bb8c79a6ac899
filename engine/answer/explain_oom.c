/* explain_oom.c: an out-of-memory message explained, and with the request that met it, what to change at
 * which price. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_read.h"
#include "engine/maxtext/oom_message.h"

#define LEAST_FRAC 0.2 /* of the memory, that a plan is looked for in */

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *names(const char *const keys[ADV_LIMIT_OOM_KEYS])
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_LIMIT_OOM_KEYS && keys[i]; i++)
        (void)json_array_append_new(list, json_string(keys[i]));
    return list;
}

static json_t *text_or_null(const char *text)
{
    json_t *value = text && text[0] ? json_string(text) : NULL;
    return value ? value : json_null();
}

static json_t *encode_message(const struct adv_oom_message *message)
{
    json_t *buffers = json_array();
    for (int i = 0; i < message->buffers_count; i++) {
        const struct adv_oom_buffer *buffer = &message->buffers[i];
        (void)json_array_append_new(
            buffers, json_pack("{so so so so so so so}", "bytes", number(buffer->bytes), "unpadded_bytes",
                               number(buffer->unpadded_bytes), "shape", text_or_null(buffer->shape),
                               "op_name", text_or_null(buffer->operator_name), "allocation_type",
                               text_or_null(buffer->allocation), "part", text_or_null(buffer->part), "keys",
                               names(buffer->keys)));
    }
    return json_pack("{ss sb so so so so so so so so ss so so}", "memory_space", message->space,
                     "at_run_time", message->at_run_time, "used_bytes", number(message->used_bytes),
                     "limit_bytes", number(message->limit_bytes), "exceeded_bytes",
                     number(message->exceeded_bytes), "reserved_bytes", number(message->reserved_bytes),
                     "program_bytes", number(message->program_bytes), "arguments_bytes",
                     number(message->arguments_bytes), "buffers", buffers, "keys", names(message->keys),
                     "remedy", message->remedy, "predicted", json_null(), "levers", json_array());
}

/* One answer of the engine as JSON; NULL with findings below `at`. */
static json_t *ask(const struct adv_catalog *catalog, enum adv_request_kind kind, const json_t *request,
                   const struct adv_budget *budget, const char *at, adv_err *err)
{
    struct adv_answer answer;
    json_t *root = NULL;
    adv_err found = adv_err_empty();
    char *text = json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
        return NULL;
    }
    if (adv_answer_within(catalog, kind, text, strlen(text), budget, &answer, &found) == ADV_OK) {
        if (adv_json_parse_file_text(answer.json, answer.json_bytes, &root, &found)) root = NULL;
        adv_answer_free(&answer);
    }
    free(text);
    adv_err_merge(err, &found, at);
    return root;
}

/* The job of an estimate request as a question for plans near it that fit. A compiler that counts more bytes
 * than were predicted has its way: plans are looked for in as much less. */
static json_t *make_search(const json_t *request, const json_t *estimate,
                           const struct adv_oom_message *message)
{
    const double batch = json_number_value(json_object_get(estimate, "global_batch_sequences"));
    const double tokens = json_number_value(json_object_get(estimate, "tokens_per_step"));
    const double predicted = json_number_value(json_object_get(estimate, "hbm_bytes_per_device"));
    const bool of_hbm = strcmp(message->space, "hbm") == 0 && !message->at_run_time;
    double frac = of_hbm && message->used_bytes > predicted ? predicted / message->used_bytes : 1.0;
    frac = isfinite(frac) && frac > LEAST_FRAC ? frac : LEAST_FRAC;
    json_t *baseline = json_object();
    json_t *config = json_object_get(request, "config"), *flags = json_object_get(request, "xla_flags");
    (void)json_object_set(baseline, "config", config);
    if (flags) (void)json_object_set(baseline, "xla_flags", flags);
    json_t *search = json_pack(
        "{so so s{sI sI} so s{ss si si sf}}", "model", json_incref(json_object_get(request, "model")),
        "cluster", json_incref(json_object_get(request, "cluster")), "workload", "seq_len",
        (json_int_t)llround(tokens / batch), "global_batch_sequences", (json_int_t)llround(batch), "baseline",
        baseline, "search", "objective", "step_time", "max_changes", 3, "top_k", 5, "memory_frac", frac);
    const json_t *quantization = json_object_get(config, "quantization");
    if (json_is_string(quantization) && json_string_length(quantization) > 0)
        (void)json_object_set(json_object_get(search, "workload"), "quantization",
                              json_object_get(config, "quantization"));
    return search;
}

/* The plans that fit, each with what it changes and what that costs. */
static json_t *encode_levers(const json_t *advice, double step_time_s)
{
    json_t *levers = json_array();
    for (struct adv_json_walk row = {.in = json_object_get(advice, "ranked")}; adv_json_next(&row);) {
        const json_t *estimate = json_object_get(row.value, "estimate");
        json_t *lever = json_object();
        static const char *const kept[] = {"changes_from_baseline", "config", "xla_flags"};
        static const char *const told[] = {"step_time_s", "hbm_bytes_per_device",
                                           "hbm_limit_bytes_per_device", "fit_probability", "fit_verdict"};
        for (size_t k = 0; k < sizeof kept / sizeof *kept; k++)
            (void)json_object_set(lever, kept[k], json_object_get(row.value, kept[k]));
        for (size_t k = 0; k < sizeof told / sizeof *told; k++)
            (void)json_object_set(lever, told[k], json_object_get(estimate, told[k]));
        const double time_s = json_number_value(json_object_get(estimate, "step_time_s"));
        (void)json_object_set_new(lever, "step_time_increase_frac", number(time_s / step_time_s - 1.0));
        (void)json_array_append_new(levers, lever);
    }
    return levers;
}

static void add_levers(const struct adv_catalog *catalog, const json_t *request,
                       const struct adv_oom_message *message, const struct adv_budget *budget, json_t *result,
                       adv_err *err)
{
    static const char *const told[] = {
        "step_time_s", "hbm_bytes_per_device", "hbm_limit_bytes_per_device", "fit_verdict",
        "hbm_parts",   "host_bytes_per_host",  "host_limit_bytes_per_host",  "warnings"};
    ADV_JSON_OWN json_t *estimate = ask(catalog, ADV_REQUEST_ESTIMATE, request, budget, "/request", err);
    if (!estimate) return;
    json_t *predicted = json_object();
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        (void)json_object_set(predicted, told[i], json_object_get(estimate, told[i]));
    (void)json_object_set_new(result, "predicted", predicted);
    ADV_JSON_OWN json_t *search = make_search(request, estimate, message);
    ADV_JSON_OWN json_t *advice =
        search ? ask(catalog, ADV_REQUEST_ADVISE, search, budget, "/request", err) : NULL;
    if (!advice) return;
    const double step_time_s = json_number_value(json_object_get(estimate, "step_time_s"));
    (void)json_object_set_new(result, "levers", encode_levers(advice, step_time_s));
    (void)json_object_set(result, "near_misses", json_object_get(advice, "near_misses"));
}

adv_code adv_explain_oom(const struct adv_catalog *catalog, const char *json, size_t json_bytes,
                         const struct adv_budget *budget, char **answer, adv_err *err)
{
    ADV_JSON_OWN json_t *root = adv_json_body(json, json_bytes, ADV_JSON_NAMES("message", "request"), err);
    ADV_JSON_OWN json_t *result = NULL;
    const char *text = NULL;
    struct adv_oom_message message;
    *answer = NULL;
    if (!root) return err->code;
    const json_t *request = adv_json_object(root, "", "request", ADV_JSON_OPTIONAL, err);
    if (json_is_true(json_object_get(request, "store")) || json_is_string(json_object_get(request, "store")))
        ADV_REFUSE(err, "/request/store", "send the request to estimate for that",
                   "an explanation is not stored");
    if (adv_json_lines(root, "", "message", ADV_JSON_REQUIRED, &text, err) &&
        adv_oom_message_read(text, &message, err) == ADV_OK)
        result = encode_message(&message);
    if (result && request && !err->code) add_levers(catalog, request, &message, budget, result, err);
    if (err->code) return err->code;
    (void)json_object_set_new(result, "engine", adv_encode_engine(catalog));
    *answer = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(12));
    return *answer ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
}
