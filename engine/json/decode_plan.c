#include "engine/json/decode_plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_value.h"
#include "engine/json/json_load.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/run.h"

static void keep_model_key(const struct adv_catalog *catalog, const char *name, json_t *json, json_t *keys)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    struct adv_value raw, value;
    if (!key || !adv_config_is_model_key(name) || json_is_null(json) || !adv_decode_value(json, NULL, &raw) ||
        adv_value_read(key, &raw, "", &value, NULL) != ADV_OK)
        return;
    bool is_typed = !json_is_string(json) || value.kind == ADV_VALUE_STRING;
    (void)json_object_set_new(keys, name,
                              is_typed ? json_incref(json) : adv_decode_scalar_text(json_string_value(json)));
}

json_t *adv_decode_config_model(const struct adv_catalog *catalog, const json_t *config)
{
    json_t *keys = json_object();
    if (!keys || !json_is_object(config)) return keys;
    /* Old names of dimensions (scale, base_num_heads) are told, not applied: requests that carry them have
     * the dimensions they resulted in as the model. */
    for (struct adv_json_walk json = {.in = config}; adv_json_next_member(&json);)
        keep_model_key(catalog, json.key, json.value, keys);
    return keys;
}

static bool is_same(const json_t *a, const json_t *b)
{
    const double first = json_number_value(a), second = json_number_value(b);
    if (json_is_number(a) && json_is_number(b)) return first >= second && first <= second;
    return json_equal(a, b) == 1;
}

/* What the catalog's model has without its overrides: by its own file, else by base.yml; a new reference. */
static json_t *own_value(const struct adv_catalog *catalog, const json_t *file, const char *name)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    json_t *own = json_object_get(file, name);
    if (own) return json_incref(own);
    return key ? adv_json_load_string(key->default_json, JSON_DECODE_ANY) : NULL;
}

void adv_decode_say_variant(const struct adv_catalog *catalog, const char *name, const json_t *overrides,
                            const char *at, adv_err *warnings)
{
    const struct adv_catalog_model *info = adv_catalog_model_info(catalog, name);
    ADV_JSON_OWN json_t *file = info ? adv_json_load_string(info->keys_json, 0) : NULL;
    char text[ADV_LIMIT_DETAIL] = "";
    for (struct adv_json_walk given = {.in = overrides}; file && adv_json_next_member(&given);) {
        ADV_JSON_OWN json_t *own = own_value(catalog, file, given.key);
        if (!own || is_same(own, given.value)) continue;
        char *said = json_dumps(given.value, JSON_ENCODE_ANY | JSON_COMPACT);
        char *was = json_dumps(own, JSON_ENCODE_ANY | JSON_COMPACT);
        if (said && was)
            adv_append(text, sizeof text, "%s%s %.80s instead of %.80s", *text ? ", " : "", given.key, said,
                       was);
        free(said);
        free(was);
    }
    if (*text)
        ADV_WARN(warnings, "model-overridden", ADV_AT(at, ADV_NAME_OVERRIDE_MODEL_CONFIG), NULL,
                 "a variant of the named model: %s", text);
}

/* The echo of one key; those beyond the limit are refused together. */
static bool keep_entry(const struct adv_decode_config_input *input, struct adv_config *config,
                       const char *name, const json_t *json)
{
    if (config->count == ADV_LIMIT_CONFIG_KEYS) return true;
    char *text = json_dumps(json, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
    struct adv_config_entry entry = {adv_arena_copy(input->arena, name),
                                     text ? adv_arena_copy(input->arena, text) : NULL};
    free(text);
    if (entry.key && entry.value_json) config->entries[config->count++] = entry;
    return entry.key && entry.value_json;
}

/* A file of MaxText that the configuration starts from is not at hand: what it sets is missing. */
static void warn_of_base(const struct adv_decode_config_input *input, adv_err *warnings)
{
    const char *file = json_string_value(json_object_get(input->config, ADV_NAME_BASE_CONFIG));
    if (!file || !warnings || adv_maxtext_is_base_file(file)) return;
    ADV_WARN(warnings, "recipe-file", ADV_AT(input->at, ADV_NAME_BASE_CONFIG),
             "write its keys into the configuration",
             "the configuration starts from %.120s, which is not read: keys that it sets are missing here",
             file);
}

adv_code adv_decode_config(const struct adv_decode_config_input *input, struct adv_plan *plan,
                           struct adv_config *config, adv_err *err, adv_err *warnings)
{
    struct adv_config_source source = {.catalog = input->catalog,
                                       .model = input->model,
                                       .cluster = input->cluster,
                                       .at = input->at,
                                       .strict = input->strict,
                                       .binding = input->binding};
    int errors_before = err->count + err->lost_count;
    const json_t *json = input->config;
    size_t count = json_object_size(json);
    struct adv_given *given = adv_arena_array(input->arena, count, sizeof *given);
    if (config) config->count = 0;
    if (json && !json_is_null(json) && !json_is_object(json)) {
        ADV_REFUSE(err, input->at, NULL, "must be an object of MaxText keys, not %s",
                   adv_json_type_name(json));
    }
    if (count > ADV_LIMIT_CONFIG_KEYS) {
        (void)adv_err_add(err, ADV_E_TOO_LARGE, input->at, NULL, "%zu keys; at most %d", count,
                          ADV_LIMIT_CONFIG_KEYS);
    }
    bool kept = given || count == 0;
    for (struct adv_json_walk key = {.in = json}; given && kept && adv_json_next_member(&key);) {
        struct adv_given *next = &given[source.given_count++];
        const char *text = json_string_value(key.value);
        if (adv_text_has_control(key.key) || (text && adv_text_has_control(text)))
            ADV_REFUSE(err, ADV_AT(input->at, key.key), NULL, "%s has control characters", key.key);
        next->key = key.key;
        kept = adv_decode_value(key.value, input->arena, &next->value) &&
               (!config || keep_entry(input, config, key.key, key.value));
    }
    if (!kept) (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    source.given = given;
    warn_of_base(input, warnings);
    if (adv_config_of_model(input->catalog, input->model_name, input->arena, &source.defaults,
                            &source.defaults_count, err) != ADV_OK ||
        adv_config_read(&source, plan, err, warnings) != ADV_OK)
        return err->code;
    return err->count + err->lost_count > errors_before ? err->code : ADV_OK;
}

void adv_decode_explain_batch(adv_err *err, const adv_err *warnings)
{
    for (int i = 0; i < err->count; i++) {
        struct adv_finding *refused = &err->findings[i];
        if (!refused->rule || strcmp(refused->rule, "batch-by-shards") != 0) continue;
        for (int k = 0; k < warnings->count; k++) {
            const struct adv_finding *ignored = &warnings->findings[k];
            if (ignored->rule && strcmp(ignored->rule, "ignored-axis") == 0)
                adv_append(refused->hint, sizeof refused->hint, "; %s (%s)", ignored->detail, ignored->hint);
        }
    }
}
