/* explain_oom.c: an out-of-memory message explained, and with the request that met it, what to change at
 * which price. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/budget.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_value.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_read.h"
#include "engine/maxtext/oom_message.h"

#define LEAST_FRAC 0.1 /* of the memory, that a plan is looked for in */

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { LEVERS = 5, LOOKED_AT = 20 }; /* plans: told; looked at where the search does not know the limit */

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

/* The request as estimate decodes it: what a recipe or a file of a model says is in its members. */
static json_t *expand(const struct adv_catalog *catalog, const json_t *request, adv_err *err)
{
    adv_err found = adv_err_empty();
    char *text = json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(17)), *plain = NULL;
    size_t bytes = 0;
    json_t *root = NULL;
    if (!text) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
        return NULL;
    }
    if (adv_request_expand(catalog, ADV_REQUEST_ESTIMATE, text, strlen(text), NULL, 0, &plain, &bytes,
                           &found) == ADV_OK &&
        adv_json_parse_file_text(plain, bytes, &root, &found) != ADV_OK)
        root = NULL;
    free(plain);
    free(text);
    adv_err_merge(err, &found, "/request");
    return root;
}

/* The memory that ran out, of the plan as it was predicted. */
struct shortage {
    const char *used, *limit; /* members of an estimate */
    double predicted_bytes, limit_bytes;
    double allowed_bytes; /* that a lever may take, and less than the plan takes */
};

/* A compiler that counts more bytes than were predicted has its way: plans have as much less. At run time
 * they have to leave what could not be allocated. */
static void find_shortage(const json_t *estimate, const struct adv_oom_message *message,
                          struct shortage *shortage)
{
    const bool of_host = strcmp(message->space, "host") == 0;
    shortage->used = of_host ? "host_bytes_per_host" : "hbm_bytes_per_device";
    shortage->limit = of_host ? "host_limit_bytes_per_host" : "hbm_limit_bytes_per_device";
    const double predicted = json_number_value(json_object_get(estimate, shortage->used));
    const double limit = json_number_value(json_object_get(estimate, shortage->limit));
    shortage->predicted_bytes = predicted;
    shortage->limit_bytes = limit;
    shortage->allowed_bytes = fmin(limit, message->limit_bytes); /* hosts differ in memory */
    if (message->at_run_time)
        shortage->allowed_bytes = predicted - fmax(0.0, message->exceeded_bytes);
    else if (message->used_bytes > predicted)
        shortage->allowed_bytes *= predicted / message->used_bytes;
}

/* Whether a plan of the search needs less of the memory that ran out. */
static bool helps(const json_t *estimate, const struct shortage *shortage)
{
    const double bytes = json_number_value(json_object_get(estimate, shortage->used));
    return bytes < shortage->predicted_bytes && bytes <= shortage->allowed_bytes;
}

/* The dimensions among the keys are the model's in every plan, and so is a format of numbers that no member
 * of the workload says. */
static json_t *make_pins(const struct adv_catalog *catalog, const json_t *config)
{
    static const char *const said[] = {"", "int8", "fp8", "fp8_full"};
    ADV_JSON_OWN json_t *typed = adv_decode_typed_config(catalog, config);
    json_t *pins = adv_decode_config_model(catalog, typed);
    const char *format = json_string_value(json_object_get(config, "quantization"));
    bool is_said = !format;
    for (size_t i = 0; i < COUNT(said) && format; i++) is_said = is_said || strcmp(format, said[i]) == 0;
    if (!is_said) (void)json_object_set_new(pins, "quantization", json_string(format));
    return pins;
}

/* The job of an estimate request as a question for plans near it that fit. */
static json_t *make_search(const struct adv_catalog *catalog, const json_t *request, const json_t *estimate,
                           const struct shortage *shortage, const struct adv_budget *budget)
{
    static const char *const kept[] = {"model", "cluster", "software"};
    const bool of_host = strcmp(shortage->used, "host_bytes_per_host") == 0;
    int top_k = of_host ? LOOKED_AT : LEVERS;
    if (budget && budget->plans_max > 0 && budget->plans_max < top_k) top_k = budget->plans_max;
    const double batch = json_number_value(json_object_get(estimate, "global_batch_sequences"));
    const double tokens = json_number_value(json_object_get(estimate, "tokens_per_step"));
    const double share = of_host ? 1.0 : shortage->allowed_bytes / shortage->limit_bytes;
    const double frac = isfinite(share) ? fmin(1.0, fmax(LEAST_FRAC, share)) : 1.0;
    json_t *config = json_object_get(request, "config"), *flags = json_object_get(request, "xla_flags");
    json_t *baseline = json_object();
    (void)json_object_set_new(baseline, "config", config ? json_incref(config) : json_object());
    if (flags) (void)json_object_set(baseline, "xla_flags", flags);
    json_t *search =
        json_pack("{s{sI sI} so so s{ss si si sf}}", "workload", "seq_len",
                  (json_int_t)llround(tokens / batch), "global_batch_sequences", (json_int_t)llround(batch),
                  "baseline", baseline, "pins", make_pins(catalog, config), "search", "objective",
                  "step_time", "max_changes", 3, "top_k", top_k, "memory_frac", frac);
    for (size_t i = 0; i < COUNT(kept); i++)
        if (json_object_get(request, kept[i]))
            (void)json_object_set(search, kept[i], json_object_get(request, kept[i]));
    return search;
}

static json_t *encode_lever(const json_t *ranked, double step_time_s)
{
    static const char *const kept[] = {"changes_from_baseline", "config", "xla_flags"};
    static const char *const told[] = {
        "step_time_s",         "hbm_bytes_per_device", "hbm_limit_bytes_per_device",
        "host_bytes_per_host", "fit_probability",      "fit_verdict"};
    const json_t *estimate = json_object_get(ranked, "estimate");
    json_t *lever = json_object();
    for (size_t k = 0; k < COUNT(kept); k++)
        (void)json_object_set(lever, kept[k], json_object_get(ranked, kept[k]));
    for (size_t k = 0; k < COUNT(told); k++)
        (void)json_object_set(lever, told[k], json_object_get(estimate, told[k]));
    const double time_s = json_number_value(json_object_get(estimate, "step_time_s"));
    (void)json_object_set_new(lever, "step_time_increase_frac", number(time_s / step_time_s - 1.0));
    return lever;
}

static double lever_time_s(const json_t *levers, size_t at)
{
    return json_number_value(json_object_get(json_array_get(levers, at), "step_time_s"));
}

/* The plans that fit, fastest first, each with what it changes and what that costs. */
static json_t *encode_levers(const json_t *advice, const struct shortage *shortage, double step_time_s)
{
    json_t *levers = json_array();
    for (struct adv_json_walk row = {.in = json_object_get(advice, "ranked")}; adv_json_next(&row);) {
        if (!helps(json_object_get(row.value, "estimate"), shortage)) continue;
        json_t *lever = encode_lever(row.value, step_time_s);
        const double time_s = json_number_value(json_object_get(lever, "step_time_s"));
        size_t at = json_array_size(levers);
        while (at > 0 && time_s < lever_time_s(levers, at - 1)) at--;
        (void)json_array_insert_new(levers, at, lever);
    }
    while (json_array_size(levers) > LEVERS) (void)json_array_remove(levers, LEVERS);
    return levers;
}

/* From `begin` to the end of the `end` behind it: `by`. */
static void replace(char *text, const char *begin, const char *end, const char *by)
{
    char *at = strstr(text, begin), *last = at ? strstr(at + strlen(begin), end) : NULL;
    if (!last || strlen(by) > (size_t)(last - at) + strlen(end)) return;
    last += strlen(end);
    memcpy(at, by, strlen(by));
    memmove(at + strlen(by), last, strlen(last) + 1);
}

/* A near miss without the members of the search, which the request does not have. That all of the memory
 * would do is not told: it did not. */
static json_t *encode_near_miss(const json_t *miss)
{
    json_t *told = json_copy((json_t *)(uintptr_t)miss);
    const char *reason = json_string_value(json_object_get(miss, "reason"));
    char *text = reason ? strdup(reason) : NULL;
    if (!text) return told;
    replace(text, " that search.memory_frac=", " allows", " that the message leaves");
    replace(text, ", a shorter sequence or a larger search.", "memory_frac", " or a shorter sequence");
    replace(text, "search.fit_probability=", "and ", "");
    char *remedy = strstr(text, "search.") ? strstr(text, "; ") : NULL;
    if (remedy) *remedy = '\0';
    (void)json_object_set_new(told, "reason", json_string(text));
    free(text);
    return told;
}

/* What the search refuses of the job, at the members of the request. */
static void point_into_request(adv_err *err)
{
    static const struct {
        const char *at, *in_request;
        bool whole; /* what is behind it is not in the request */
    } places[] = {{"/baseline/config", "/config", false},
                  {"/baseline/xla_flags", "/xla_flags", false},
                  {"/pins", "/config", false},
                  {"/workload/seq_len", "/config/max_target_length", true},
                  {"/workload/quantization", "/config/quantization", true},
                  {"/workload", "/config", true},
                  {"/search", "", true}};
    for (int i = 0; i < err->count; i++) {
        char *pointer = err->findings[i].pointer, rest[ADV_LIMIT_POINTER] = "";
        size_t k = 0;
        while (k < COUNT(places) && strncmp(pointer, places[k].at, strlen(places[k].at)) != 0) k++;
        if (k == COUNT(places)) continue;
        if (!places[k].whole) (void)snprintf(rest, sizeof rest, "%s", pointer + strlen(places[k].at));
        (void)snprintf(pointer, sizeof err->findings[i].pointer, "%s", places[k].in_request);
        const size_t used = strlen(pointer);
        (void)snprintf(pointer + used, sizeof err->findings[i].pointer - used, "%s", rest);
    }
}

static void search_levers(const struct adv_catalog *catalog, const json_t *request, const json_t *estimate,
                          const struct shortage *shortage, const struct adv_budget *budget, json_t *result,
                          adv_err *err)
{
    adv_err found = adv_err_empty();
    ADV_JSON_OWN json_t *search = make_search(catalog, request, estimate, shortage, budget);
    ADV_JSON_OWN json_t *advice =
        search ? ask(catalog, ADV_REQUEST_ADVISE, search, budget, "", &found) : NULL;
    point_into_request(&found);
    adv_err_merge(err, &found, "/request");
    if (!advice) return;
    const double step_time_s = json_number_value(json_object_get(estimate, "step_time_s"));
    (void)json_object_set_new(result, "levers", encode_levers(advice, shortage, step_time_s));
    json_t *misses = json_array();
    for (struct adv_json_walk row = {.in = json_object_get(advice, "near_misses")}; adv_json_next(&row);)
        (void)json_array_append_new(misses, encode_near_miss(row.value));
    (void)json_object_set_new(result, "near_misses", misses);
}

/* Of VMEM the kernel's own keys are all there is: plans are told apart by HBM and host memory. A plan that
 * puts nothing on the host cannot put less there. */
static void add_levers(const struct adv_catalog *catalog, const json_t *given,
                       const struct adv_oom_message *message, const struct adv_budget *budget, json_t *result,
                       adv_err *err)
{
    static const char *const told[] = {
        "step_time_s", "hbm_bytes_per_device", "hbm_limit_bytes_per_device", "fit_verdict",
        "hbm_parts",   "host_bytes_per_host",  "host_limit_bytes_per_host",  "warnings"};
    struct shortage shortage;
    ADV_JSON_OWN json_t *request = expand(catalog, given, err);
    ADV_JSON_OWN json_t *estimate =
        request ? ask(catalog, ADV_REQUEST_ESTIMATE, request, budget, "/request", err) : NULL;
    if (!estimate) return;
    json_t *predicted = json_object();
    for (size_t i = 0; i < COUNT(told); i++)
        (void)json_object_set(predicted, told[i], json_object_get(estimate, told[i]));
    (void)json_object_set_new(result, "predicted", predicted);
    if (strcmp(message->space, "hbm") != 0 && strcmp(message->space, "host") != 0) return;
    find_shortage(estimate, message, &shortage);
    if (shortage.predicted_bytes > 0)
        search_levers(catalog, request, estimate, &shortage, budget, result, err);
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
