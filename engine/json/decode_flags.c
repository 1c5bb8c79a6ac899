#include "engine/json/decode_flags.h"

#include "engine/maxtext/flags.h"

adv_code adv_decode_flags(const struct adv_catalog *catalog, const json_t *json, const char *at, bool strict,
                          struct adv_arena *arena, struct adv_flags *flags, struct adv_config *config,
                          adv_err *err, adv_err *warnings)
{
    struct adv_flags_reader reader = {catalog, strict, arena, flags, config, err, warnings, false, 0};
    adv_flags_unset(flags);
    if (!json || json_is_null(json)) return ADV_OK;
    int errors_before = err->count + err->lost_count;
    if (json_is_string(json)) {
        adv_flags_read_text(&reader, json_string_value(json), at);
    } else if (!json_is_array(json)) {
        return adv_err_add(err, ADV_E_INVALID, at, NULL, "must be a list of strings or one string, not %s",
                           adv_json_type_name(json));
    }
    size_t index = 0;
    json_t *element = NULL;
    json_array_foreach(json, index, element)
    {
        if (reader.is_full) break;
        char pointer[ADV_LIMIT_POINTER];
        (void)adv_json_pointer_index(pointer, at, index);
        if (json_is_string(element))
            adv_flags_read_text(&reader, json_string_value(element), pointer);
        else
            (void)adv_err_add(err, ADV_E_INVALID, pointer, NULL, "must be a string, not %s",
                              adv_json_type_name(element));
    }
    if (reader.is_full) {
        (void)adv_err_add(err, ADV_E_TOO_LARGE, at, NULL, "more than %d flags", ADV_LIMIT_XLA_FLAGS);
    }
    return err->count + err->lost_count > errors_before ? err->code : ADV_OK;
}
