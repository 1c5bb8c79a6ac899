/* decode_hf_window.c: sliding windows of Hugging Face families whose block attends over all keys here, as it
 * does in MaxText. */
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_hf_families.h"

/* Of the library: which families have windows, and those that use theirs only where use_sliding_window says
 * so. Adding a family = adding a row. */
static const struct windowed {
    const char *model_type;
    bool only_where_used;
} families[] = {
    {"mistral", false},  {"mixtral", false}, {"phi3", false},       {"phimoe", false},
    {"cohere2", false},  {"minimax", false}, {"starcoder2", false}, {"qwen2", true},
    {"qwen2_moe", true}, {"qwen3", true},    {"qwen3_moe", true},   {"smollm3", true},
};

/* NULL: a family without windows, or one whose windows are priced. */
static const struct windowed *family_of(const json_t *config)
{
    static const struct windowed other = {.only_where_used = true};
    const char *type = json_string_value(json_object_get(config, "model_type"));
    for (size_t i = 0; type && i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].model_type, type) == 0) return &families[i];
    return adv_hf_is_plain(type) ? &other : NULL;
}

static int64_t whole(const json_t *config, const char *member)
{
    const double number = json_number_value(json_object_get(config, member));
    return number > 0 && number < 1e15 ? (int64_t)number : 0;
}

/* Whether some layers have a window: as the list of layers says, or the members that it is made of. */
static bool has_window(const json_t *config, const struct windowed *family)
{
    const json_t *types = json_object_get(config, "layer_types");
    const json_t *used = json_object_get(config, "use_sliding_window");
    if (json_is_array(types)) {
        for (struct adv_json_walk layer = {.in = types}; adv_json_next(&layer);)
            if (json_is_string(layer.value) && strstr(json_string_value(layer.value), "sliding")) return true;
        return false;
    }
    if (whole(config, "sliding_window_pattern") > 1) return true;
    if (json_is_boolean(used) ? !json_is_true(used) : family->only_where_used) return false;
    const int64_t full_layers = whole(config, "max_window_layers"),
                  layers = whole(config, "num_hidden_layers");
    return whole(config, "sliding_window") > 0 &&
           !(family->only_where_used && layers > 0 && full_layers >= layers);
}

void adv_hf_warn_of_window(const json_t *model, const char *at, int64_t seq_len, adv_err *warnings)
{
    const json_t *config = json_object_get(model, "hf_config");
    const struct windowed *family = family_of(config);
    if (!family || !has_window(config, family)) return;
    const int64_t window = whole(config, "sliding_window");
    if (window > 0 && seq_len > 0 && seq_len <= window) return; /* it holds every key */
    char keys[64] = "all keys of a sequence";
    if (seq_len > 0) (void)snprintf(keys, sizeof keys, "all %lld keys of a sequence", (long long)seq_len);
    ADV_WARN(
        warnings, "approximated-value", ADV_AT(ADV_AT(at, "hf_config"), "sliding_window"), NULL,
        "the windows of its layers are left out: attention over %s is priced, so the time is an upper bound",
        keys);
}
