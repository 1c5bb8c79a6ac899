/* encode_compare.c: stored answers side by side (adv_compare_json of engine/advise.h). */
#include "engine/advise.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_read.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One stored answer: the estimate in it (an advise answer's first plan) and what is compared. */
struct run {
    const char *id;
    json_t *document; /* owned */
    const json_t *estimate;
};

static double number_of(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static adv_code read_run(const char *id, const char *text, int index, struct run *run, adv_err *err)
{
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_json_pointer_index(pointer, "/runs", (size_t)index);
    run->id = id;
    run->document = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    run->estimate = run->document;
    const json_t *ranked = json_object_get(run->document, "ranked");
    if (ranked) run->estimate = json_object_get(json_array_get(ranked, 0), "estimate");
    if (json_is_number(json_object_get(run->estimate, "step_time_s"))) return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, pointer,
                       "compare estimates, or advise answers with a plan that fits",
                       "run %.90s holds no step time", id);
}

/* Which peak decides the memory: parts are counted when they are there always or at that peak. */
static const char *deciding_peak(const json_t *parts)
{
    static const char *const peaks[] = {"loss", "backward", "update"};
    double sums[3] = {0, 0, 0};
    size_t index = 0;
    json_t *part = NULL;
    json_array_foreach((json_t *)(uintptr_t)parts, index, part)
    {
        const char *at = json_string_value(json_object_get(part, "at"));
        for (int i = 0; at && i < 3; i++) {
            if (strcmp(at, peaks[i]) == 0) sums[i] += number_of(part, "bytes");
        }
    }
    int best = 0;
    for (int i = 1; i < 3; i++) {
        if (sums[i] > sums[best]) best = i;
    }
    return peaks[best];
}

/* Adds what the parts say under each name to {name: value}; `peak` NULL takes all of them. */
static json_t *sums_by_name(const json_t *parts, const char *member, const char *peak)
{
    json_t *sums = json_object();
    size_t index = 0;
    json_t *part = NULL;
    json_array_foreach((json_t *)(uintptr_t)parts, index, part)
    {
        const char *name = json_string_value(json_object_get(part, "name"));
        const char *at = json_string_value(json_object_get(part, "at"));
        double value = number_of(part, member);
        bool counts = !peak || !at || strcmp(at, "always") == 0 || strcmp(at, peak) == 0;
        if (!name || !counts || !isfinite(value)) continue;
        const json_t *before = json_object_get(sums, name);
        (void)json_object_set_new(sums, name, json_real((before ? json_real_value(before) : 0) + value));
    }
    return sums;
}

static void add_term(json_t *list, const char *name, double from, double to)
{
    json_t *row = json_object();
    adv_encode_set_string(row, "name", name);
    adv_encode_set_number(row, "from", from);
    adv_encode_set_number(row, "to", to);
    adv_encode_set_number(row, "delta", to - from);
    (void)json_array_append_new(list, row);
}

static double sum_of(const json_t *sums)
{
    double total = 0;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)sums, name, value) total += json_real_value(value);
    return total;
}

/* Rows that add up to to_total - from_total: what the parts do not explain is a row of its own. */
static json_t *compare_terms(json_t *from, json_t *to, double from_total, double to_total)
{
    json_t *list = json_array();
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(from, name, value)
        add_term(list, name, json_real_value(value), json_real_value(json_object_get(to, name)));
    json_object_foreach(to, name, value)
    {
        if (!json_object_get(from, name)) add_term(list, name, 0, json_real_value(value));
    }
    double from_rest = from_total - sum_of(from);
    double to_rest = to_total - sum_of(to);
    bool explained = fabs(from_rest) <= 1e-9 * fabs(from_total) && fabs(to_rest) <= 1e-9 * fabs(to_total);
    if (!explained) add_term(list, "not_itemised", from_rest, to_rest);
    json_decref(from);
    json_decref(to);
    return list;
}

static json_t *compare_times(const struct run *from, const struct run *to)
{
    json_t *left = sums_by_name(json_object_get(from->estimate, "time_parts"), "exposed_seconds", NULL);
    json_t *right = sums_by_name(json_object_get(to->estimate, "time_parts"), "exposed_seconds", NULL);
    return compare_terms(left, right, number_of(from->estimate, "step_time_s"),
                         number_of(to->estimate, "step_time_s"));
}

static json_t *compare_memory(const struct run *from, const struct run *to)
{
    const json_t *left = json_object_get(from->estimate, "hbm_parts");
    const json_t *right = json_object_get(to->estimate, "hbm_parts");
    return compare_terms(
        sums_by_name(left, "bytes", deciding_peak(left)), sums_by_name(right, "bytes", deciding_peak(right)),
        number_of(from->estimate, "hbm_bytes_per_device"), number_of(to->estimate, "hbm_bytes_per_device"));
}

static double relative(double from, double to)
{
    return from > 0 ? to / from - 1 : (double)NAN;
}

static json_t *compare_two(const struct run *from, const struct run *to)
{
    json_t *object = json_object();
    double from_s = number_of(from->estimate, "step_time_s");
    double to_s = number_of(to->estimate, "step_time_s");
    double from_bytes = number_of(from->estimate, "hbm_bytes_per_device");
    double to_bytes = number_of(to->estimate, "hbm_bytes_per_device");
    adv_encode_set_string(object, "from", from->id);
    adv_encode_set_string(object, "to", to->id);
    adv_encode_set_number(object, "step_time_s", to_s - from_s);
    adv_encode_set_number(object, "step_time_frac", relative(from_s, to_s));
    adv_encode_set_number(object, "hbm_bytes_per_device", to_bytes - from_bytes);
    adv_encode_set_number(object, "hbm_frac", relative(from_bytes, to_bytes));
    (void)json_object_set_new(object, "time_terms", compare_times(from, to));
    (void)json_object_set_new(object, "memory_terms", compare_memory(from, to));
    return object;
}

static json_t *side(const struct run *run)
{
    static const char *const members[] = {"step_time_s",
                                          "step_time_low_s",
                                          "step_time_high_s",
                                          "tokens_per_s_per_chip",
                                          "mfu_frac",
                                          "hbm_bytes_per_device",
                                          "fits",
                                          "fit_verdict",
                                          "bound",
                                          "usd_per_billion_tokens",
                                          "confidence"};
    static const char *const of_document[] = {"label", "model", "cluster", "engine"};
    json_t *object = json_object();
    adv_encode_set_string(object, "run_id", run->id);
    for (size_t i = 0; i < sizeof of_document / sizeof *of_document; i++) {
        json_t *value = json_object_get(run->document, of_document[i]);
        if (value) (void)json_object_set(object, of_document[i], value);
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(run->estimate, members[i]);
        (void)json_object_set_new(object, members[i], value ? json_incref(value) : json_null());
    }
    return object;
}

adv_code adv_compare_json(const char *const *run_ids, const char *const *responses, int count,
                          struct adv_answer *answer, adv_err *err)
{
    enum { RUNS_MAX = 64 };
    struct run runs[RUNS_MAX];
    memset(answer, 0, sizeof *answer);
    answer->step_time_s = answer->hbm_bytes_per_device = (double)NAN;
    if (count < 1 || count > RUNS_MAX) {
        return adv_err_add(err, ADV_E_RANGE, "/runs", NULL, "%d runs; from 1 to %d can be compared", count,
                           RUNS_MAX);
    }
    adv_code code = ADV_OK;
    json_t *sides = json_array();
    json_t *differences = json_array();
    for (int i = 0; i < count; i++) {
        adv_code read = read_run(run_ids[i], responses[i], i, &runs[i], err);
        if (read != ADV_OK) code = read;
    }
    for (int i = 0; code == ADV_OK && i < count; i++) {
        (void)json_array_append_new(sides, side(&runs[i]));
        if (i > 0) (void)json_array_append_new(differences, compare_two(&runs[0], &runs[i]));
    }
    for (int i = 0; i < count; i++) json_decref(runs[i].document);
    json_t *root = json_object();
    (void)json_object_set_new(root, "runs", sides);
    (void)json_object_set_new(root, "differences", differences);
    if (code != ADV_OK) {
        json_decref(root);
        return code;
    }
    answer->json = adv_encode_text(root, &answer->json_bytes);
    return answer->json
               ? ADV_OK
               : adv_err_add(err, ADV_E_MEMORY, "", NULL, "the answer needs more memory than there is");
}
