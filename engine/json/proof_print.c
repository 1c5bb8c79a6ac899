/* proof_print.c: a result of the compiler for people. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/json/json_read.h"
#include "engine/json/proof.h"

#define LINE "  %-28s %10s %10s\n"

static void gibibytes(const json_t *object, const char *member, char text[16])
{
    const json_t *bytes = json_object_get(object, member);
    if (json_is_number(bytes))
        (void)snprintf(text, 16, "%.2f GiB", json_number_value(bytes) / ADV_GIB);
    else
        (void)snprintf(text, 16, "-");
}

static void print_list(const json_t *result, const char *member, const char *what, struct adv_text *text)
{
    size_t index = 0;
    json_t *item = NULL;
    json_array_foreach(json_object_get(result, member), index, item)
        adv_text_format(text, "%s%s", index ? ", " : what, json_string_value(item));
    if (index) adv_text_append(text, "\n");
}

static void print_parts(const json_t *result, struct adv_text *text)
{
    char compiled[16], predicted[16];
    size_t index = 0;
    json_t *part = NULL;
    gibibytes(result, "compiled_hbm_bytes_per_device", compiled);
    gibibytes(result, "predicted_hbm_bytes_per_device", predicted);
    adv_text_format(text, LINE LINE, "per device", "XLA", "predicted", "in all", compiled, predicted);
    json_array_foreach(json_object_get(result, "parts"), index, part)
    {
        gibibytes(part, "compiled_bytes_per_device", compiled);
        gibibytes(part, "predicted_bytes_per_device", predicted);
        adv_text_format(text, LINE, json_string_value(json_object_get(part, "name")), compiled, predicted);
    }
}

static void print_buffers(const json_t *result, struct adv_text *text)
{
    const char *peak = json_string_value(json_object_get(result, "peak_at"));
    size_t index = 0;
    json_t *buffer = NULL;
    if (peak) adv_text_format(text, "alive at the peak (%s):\n", peak);
    json_array_foreach(json_object_get(result, "buffers"), index, buffer)
    {
        char bytes[16];
        gibibytes(buffer, "bytes", bytes);
        const char *part = json_string_value(json_object_get(buffer, "part"));
        const char *shape = json_string_value(json_object_get(buffer, "shape"));
        adv_text_format(text, "  %10s %2d x %-28s %s\n", bytes,
                        (int)json_integer_value(json_object_get(buffer, "count")), shape ? shape : "",
                        part ? part : "");
    }
}

adv_code adv_proof_print(const char *joined, struct adv_text *text, adv_err *err)
{
    json_t *result = NULL;
    adv_code code = adv_json_parse_file_text(joined, strlen(joined), &result, err);
    if (code) return code;
    const char *verdict = json_string_value(json_object_get(result, "verdict"));
    const char *reason = json_string_value(json_object_get(result, "reason"));
    adv_text_format(text, "plan %d: %s", (int)json_integer_value(json_object_get(result, "rank")),
                    verdict ? verdict : "");
    adv_text_format(text, "%s%s (%.0f s)\n", reason ? ": " : "", reason ? reason : "",
                    json_number_value(json_object_get(result, "seconds")));
    print_parts(result, text);
    print_buffers(result, text);
    print_list(result, "refused_keys", "refused keys: ", text);
    print_list(result, "refused_flags", "refused flags: ", text);
    print_list(result, "unknown_flags", "unknown flags, left out: ", text);
    const char *name = NULL;
    json_t *version = NULL;
    json_object_foreach(json_object_get(result, "versions"), name, version)
        adv_text_format(text, "%s %s  ", name, json_string_value(version));
    adv_text_append(text, "\n");
    json_decref(result);
    return text->overflow ? adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the text") : ADV_OK;
}
