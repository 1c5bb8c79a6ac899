#include "engine/json/decode_measurements.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_request.h"
#include "engine/json/json_read.h"

static const char *format_name(const struct adv_plan *plan)
{
    static const char *const names[] = {"bf16", "int8", "fp8", "fp8"};
    return names[plan->quantization];
}

/* The measured time: judged_step_time_s, null when the row is published but not judged. */
static double measured_s(const json_t *row, const char *at, adv_err *err)
{
    const json_t *value = json_object_get(row, "judged_step_time_s");
    if (!value || json_is_null(value)) return (double)NAN;
    double seconds = (double)NAN;
    (void)adv_json_number(row, at, "judged_step_time_s", ADV_JSON_REQUIRED, 1e-9, 1e9, &seconds, err);
    return seconds;
}

/* "2025-11-23" or "2025-11" as a year with its fraction, NAN when absent. */
static double software_year(const json_t *row, const char *at, adv_err *err)
{
    const char *date = NULL;
    if (!adv_json_string(row, at, "date_of_result", ADV_JSON_OPTIONAL, &date, err)) return (double)NAN;
    int year = 0, month = 1, day = 1;
    return sscanf(date, "%4d-%2d-%2d", &year, &month, &day) >= 1
               ? year + (month - 1) / 12.0 + (day - 1) / 365.0
               : (double)NAN;
}

static void decode_row(const struct adv_catalog *catalog, const json_t *json, const char *at,
                       struct adv_arena *arena, struct adv_measurement *row, adv_err *err)
{
    const char *id = "";
    (void)adv_json_string(json, at, "id", ADV_JSON_REQUIRED, &id, err);
    (void)snprintf(row->id, sizeof row->id, "%s", id);
    row->measured_step_time_s = measured_s(json, at, err);
    const json_t *body = adv_json_object(json, at, "request", ADV_JSON_REQUIRED, err);
    struct adv_estimate_request *request = adv_arena_alloc(arena, sizeof *request);
    if (!request) {
        (void)adv_err_add(err, ADV_E_MEMORY, at, NULL,
                          "the measurement file needs more memory than its limit");
        return;
    }
    if (!body) return;
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_json_pointer(pointer, at, "request");
    if (adv_decode_estimate_request(catalog, body, pointer, arena, request, err, NULL) != ADV_OK) return;
    row->model = request->model;
    row->cluster = request->cluster;
    row->plan = request->plan;
    row->plan.software_date = software_year(json, at, err);
    row->flops_convention = request->flops_convention;
    (void)snprintf(row->chip, sizeof row->chip, "%s", request->cluster.chip.name);
    (void)snprintf(row->family, sizeof row->family, "%s", request->model.name);
    (void)snprintf(row->format, sizeof row->format, "%s", format_name(&request->plan));
}

adv_code adv_decode_measurements(const struct adv_catalog *catalog, const char *text, size_t text_bytes,
                                 struct adv_arena *arena, struct adv_measurement **rows, int *rows_count,
                                 adv_err *err)
{
    json_t *root = NULL;
    adv_code code = adv_json_parse_file_text(text, text_bytes, &root, err);
    if (code != ADV_OK) return code;
    if (!json_is_array(root)) {
        json_decref(root);
        return adv_err_add(err, ADV_E_INVALID, "", "wrap the row in [ ]",
                           "a measurement file is a JSON array of rows");
    }
    size_t count = json_array_size(root);
    *rows = adv_arena_array(arena, count ? count : 1, sizeof **rows);
    *rows_count = (int)count;
    if (!*rows) {
        json_decref(root);
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "%zu rows need more memory than the limit", count);
    }
    for (size_t i = 0; i < count; i++) {
        char at[ADV_LIMIT_POINTER];
        (void)adv_json_pointer_index(at, "", i);
        if (adv_json_is_object(json_array_get(root, i), at, err))
            decode_row(catalog, json_array_get(root, i), at, arena, &(*rows)[i], err);
    }
    json_decref(root);
    return err->code;
}
