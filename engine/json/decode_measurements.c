#include "engine/json/decode_measurements.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_request.h"
#include "engine/json/json_read.h"

static const char *format_name(const struct adv_plan *plan)
{
    static const char *const names[] = {"bf16", "int8", "fp8", "fp8"};
    return names[plan->family.quantization];
}

enum { INDEX_DIGITS = 12 }; /* room for "/<index>" and the end in a pointer */

/* One row while it is read: findings go to `err`, pointers below the row. */
struct row_reader {
    const struct adv_catalog *catalog;
    struct adv_arena *arena;
    struct adv_estimate_request *request; /* scratch, one for all rows */
    adv_err *err;
};

/* The measured time: judged_step_time_s, null when the row is published but not judged. */
static double measured_s(const struct row_reader *reader, const json_t *row)
{
    double seconds = (double)NAN;
    (void)adv_json_number(row, "", "judged_step_time_s", ADV_JSON_OPTIONAL, 1e-9, 1e9, &seconds, reader->err);
    return seconds;
}

/* "2025-11-23" or "2025-11" as a year with its fraction; NAN when absent or written otherwise. */
static double software_year(const json_t *row)
{
    enum { FIRST_TPU_YEAR = 2015, LAST_YEAR = 2100 };
    const char *date = json_string_value(json_object_get(row, "date_of_result"));
    int year = 0, month = 1, day = 1;
    if (!date || sscanf(date, "%4d-%2d-%2d", &year, &month, &day) < 1) return (double)NAN;
    bool is_date =
        year >= FIRST_TPU_YEAR && year <= LAST_YEAR && month >= 1 && month <= 12 && day >= 1 && day <= 31;
    return is_date ? year + (month - 1) / 12.0 + (day - 1) / 365.0 : (double)NAN;
}

static void set_id(const json_t *row, size_t index, struct adv_measurement *out)
{
    const json_t *id = json_object_get(row, "id");
    if (json_is_string(id))
        (void)snprintf(out->id, sizeof out->id, "%s", json_string_value(id));
    else if (json_is_integer(id))
        (void)snprintf(out->id, sizeof out->id, "%lld", (long long)json_integer_value(id));
    else
        (void)snprintf(out->id, sizeof out->id, "row %zu", index);
    const char *whole = json_is_string(id) ? json_string_value(id) : out->id;
    size_t length = strlen(out->id); /* where it was cut: moved before the character, not into it */
    while (length > 0 && ((unsigned char)whole[length] & 0xc0) == 0x80) length--;
    out->id[length] = '\0';
}

/* A measured plan has run, whatever today's rules say of it: broken rules and members that say nothing about
 * the step leave it predictable; a model, cluster or value that cannot be read does not. */
static bool is_forgivable(const struct adv_finding *finding)
{
    static const char *const decisive[] = {"/model", "/cluster", "/config", "/xla_flags",
                                           "/flops_convention"};
    bool about_step = *finding->pointer == '\0';
    for (size_t i = 0; i < sizeof decisive / sizeof *decisive; i++) {
        size_t length = strlen(decisive[i]);
        char next = strncmp(finding->pointer, decisive[i], length) == 0 ? finding->pointer[length] : 'x';
        about_step |= next == '\0' || next == '/';
    }
    return finding->code == ADV_E_ILLEGAL || !about_step;
}

/* Gives axis `filling` what the others leave of `total`; false when they do not divide it. */
static bool refill(int degrees[ADV_AXIS_COUNT], int filling, int total)
{
    int64_t others = 1;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        if (i == filling) continue;
        if (degrees[i] < 1 || others > total) return false;
        others *= degrees[i];
    }
    if (others > total || total % others != 0) return false;
    degrees[filling] = (int)(total / others);
    return true;
}

/* Degrees that do not multiply to the machine: the axis that usually takes the rest takes it, else the
 * largest one; between slices that are only one there is nothing to divide. */
static bool fit_axes(int degrees[ADV_AXIS_COUNT], enum adv_axis usual, int total)
{
    int largest = 0;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        if (total == 1) degrees[i] = 1;
        if (degrees[i] > degrees[largest]) largest = i;
    }
    return refill(degrees, (int)usual, total) || refill(degrees, largest, total);
}

/* A table of measurements has a null wherever nothing was published: such keys are not given. */
static json_t *without_nulls(const json_t *body)
{
    json_t *copy = json_deep_copy(body);
    json_t *config = json_object_get(copy, "config");
    const char *key = NULL;
    json_t *value = NULL;
    void *next = NULL;
    json_object_foreach_safe(config, next, key, value)
    {
        if (json_is_null(value)) (void)json_object_del(config, key);
    }
    return copy;
}

/* A published model that the catalog does not have: its dimensions are in the row beside the request. */
static void name_dims(const struct row_reader *reader, const json_t *json, json_t *request)
{
    const char *name = json_string_value(json_object_get(request, "model"));
    json_t *dims = json_object_get(json, "model_dims");
    if (!name || strcmp(name, "default") == 0 || !json_is_object(dims) ||
        adv_catalog_model_keys(reader->catalog, name))
        return;
    json_t *model = json_copy(dims);
    (void)json_object_set_new(model, "name", json_string(name));
    ADV_WARN(reader->err, "model-dims", "/request/model", NULL,
             "the catalog has no model %.80s: the row's model_dims are used", name);
    (void)json_object_set_new(request, "model", model);
}

static void decode_request(const struct row_reader *reader, const json_t *json, const json_t *body,
                           struct adv_measurement *row)
{
    struct adv_estimate_request *request = reader->request;
    adv_err own = adv_err_empty();
    ADV_JSON_OWN json_t *given = without_nulls(body);
    name_dims(reader, json, given);
    adv_code code =
        given ? adv_decode_estimate_request(reader->catalog, given, reader->arena, request, &own, NULL)
              : adv_err_add(&own, ADV_E_MEMORY, "", NULL, "out of memory");
    row->decoded = code == ADV_OK || (own.lost_count == 0 && request->model.layer_kinds_count > 0 &&
                                      request->cluster.devices > 0);
    for (int i = 0; i < own.count; i++) row->decoded &= is_forgivable(&own.findings[i]);
    adv_err_merge(reader->err, &own, "/request");
    row->model = request->model;
    row->cluster = request->cluster;
    row->plan = request->plan;
    row->flops_convention = request->flops_convention;
    (void)snprintf(row->chip, sizeof row->chip, "%s", request->cluster.chip.name);
    (void)snprintf(row->family, sizeof row->family, "%s", request->model.name);
    (void)snprintf(row->format, sizeof row->format, "%s", format_name(&request->plan));
    if (!row->decoded) return;
    row->decoded = fit_axes(row->plan.family.ici, ADV_AXIS_FSDP, row->cluster.devices_per_slice) &&
                   fit_axes(row->plan.family.dcn, ADV_AXIS_DATA, row->cluster.slices);
}

adv_code adv_measurement_keep_findings(struct adv_measurement *row, size_t index, const adv_err *found,
                                       struct adv_arena *arena)
{
    int count = row->findings_count + found->count;
    struct adv_finding *kept = count ? adv_arena_array(arena, (size_t)count, sizeof *kept) : NULL;
    if (count && !kept) return ADV_E_MEMORY;
    for (int i = 0; i < count; i++) {
        const struct adv_finding *new_finding = &found->findings[i - row->findings_count];
        kept[i] = i < row->findings_count ? row->findings[i] : *new_finding;
        if (i >= row->findings_count)
            (void)snprintf(kept[i].pointer, sizeof kept[i].pointer, "/%zu%.*s", index,
                           ADV_LIMIT_POINTER - INDEX_DIGITS, new_finding->pointer);
    }
    row->findings = kept;
    row->findings_count = count;
    return ADV_OK;
}

static adv_code decode_row(const struct row_reader *reader, const json_t *json, size_t index,
                           struct adv_measurement *row)
{
    adv_err_init(reader->err);
    set_id(json, index, row);
    row->measured_step_time_s = (double)NAN;
    row->error_frac = (double)NAN;
    if (adv_json_is_object(json, "", reader->err)) {
        row->measured_step_time_s = measured_s(reader, json);
        const json_t *body = adv_json_object(json, "", "request", ADV_JSON_REQUIRED, reader->err);
        if (body) decode_request(reader, json, body, row);
        row->plan.family.software_date = software_year(json);
    }
    return adv_measurement_keep_findings(row, index, reader->err, reader->arena);
}

adv_code adv_decode_measurements(const struct adv_catalog *catalog, const char *text, size_t text_bytes,
                                 struct adv_arena *arena, struct adv_measurement **rows, int *rows_count,
                                 adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    adv_code code = adv_json_parse_file_text(text, text_bytes, &root, err);
    if (code != ADV_OK) return code;
    if (!json_is_array(root))
        return adv_err_add(err, ADV_E_INVALID, "", "wrap the row in [ ]",
                           "a measurement file is a JSON array of rows");
    size_t count = json_array_size(root);
    *rows = adv_arena_array(arena, count ? count : 1, sizeof **rows);
    *rows_count = (int)count;
    adv_err found;
    struct row_reader reader = {catalog, arena, adv_arena_alloc(arena, sizeof *reader.request), &found};
    if (!*rows || !reader.request) code = ADV_E_MEMORY;
    for (size_t i = 0; i < count && code == ADV_OK; i++)
        code = decode_row(&reader, json_array_get(root, i), i, &(*rows)[i]);
    if (code == ADV_OK) return code;
    return adv_err_add(err, code, "", NULL, "%zu rows need more memory than the limit", count);
}
