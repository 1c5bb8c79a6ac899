#include "engine/json/decode_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_hf_families.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/run.h"

#define INTEGER_NAME(key, fallback, low, high) #key,
#define PLAIN_NAME(key)                        #key,
static const char *const key_names[] = {
    ADV_MODEL_INTEGER_KEYS(INTEGER_NAME) ADV_MODEL_BOOL_KEYS(PLAIN_NAME)
        ADV_MODEL_NUMBER_KEYS(PLAIN_NAME) "decoder_block",
    "attention_type",
    "mlp_activations",
    "compress_ratios",
    "engram_layers",
    "name",
};
#undef INTEGER_NAME
#undef PLAIN_NAME
enum { KEY_NAMES = sizeof key_names / sizeof key_names[0] };

#define DECODER_NAME(id, name) name,
static const char *const decoder_names[] = {ADV_DECODER_TABLE(DECODER_NAME)};
#undef DECODER_NAME

static void decode_activations(const json_t *object, const char *at, struct adv_model_keys *keys,
                               adv_err *err)
{
    json_t *list = adv_json_array(object, at, "mlp_activations", ADV_JSON_OPTIONAL, err);
    if (!list) return;
    size_t count = json_array_size(list);
    const char *pointer = ADV_AT(at, "mlp_activations");
    if (count < 1 || count > 2) {
        ADV_REFUSE(err, pointer, "[\"silu\", \"linear\"] (gated) or [\"gelu\"]",
                   "mlp_activations names %zu functions, 1 or 2 are possible", count);
        return;
    }
    for (struct adv_json_walk name = {.in = list}; adv_json_next(&name);) {
        const char *text = json_string_value(name.value);
        if (text && adv_maxtext_has_activation(text)) continue;
        if (text)
            ADV_REFUSE(err, pointer, "a function of jax.nn: silu, gelu, relu, …",
                       "MaxText has no activation \"%.80s\"", text);
        else
            ADV_REFUSE(err, pointer, NULL, "mlp_activations must hold names, not %s",
                       adv_json_type_name(name.value));
        return;
    }
    keys->mlp_activations_count = (int)count;
}

static void decode_ratios(const json_t *object, const char *at, struct adv_model_keys *keys, adv_err *err)
{
    json_t *list = adv_json_array(object, at, "compress_ratios", ADV_JSON_OPTIONAL, err);
    if (!list) return;
    size_t count = json_array_size(list);
    bool valid = count <= ADV_LIMIT_COMPRESS_RATIOS;
    for (size_t i = 0; valid && i < count; i++) {
        const json_t *ratio = json_array_get(list, i);
        valid =
            json_is_integer(ratio) && json_integer_value(ratio) >= 0 && json_integer_value(ratio) <= 65536;
        if (valid) keys->compress_ratios[i] = (int)json_integer_value(ratio);
    }
    keys->compress_ratios_count = valid ? (int)count : 0;
    if (valid) return;
    ADV_REFUSE(err, ADV_AT(at, "compress_ratios"), NULL,
               "compress_ratios must hold at most %d whole numbers from 0 to 65536",
               ADV_LIMIT_COMPRESS_RATIOS);
}

static void decode_name(const json_t *object, const char *at, struct adv_model_keys *keys, adv_err *err)
{
    const char *name;
    if (!adv_json_string(object, at, "name", ADV_JSON_OPTIONAL, &name, err)) return;
    if (strlen(name) >= sizeof keys->name) {
        ADV_REFUSE(err, ADV_AT(at, "name"), NULL, "name is longer than %d bytes", ADV_LIMIT_NAME - 1);
        return;
    }
    (void)snprintf(keys->name, sizeof keys->name, "%s", name);
}

/* decoder_block; where nobody chose one, experts mean mixtral (MaxText's own default, llama2, has none). */
static void decode_block(const json_t *object, const char *at, bool is_chosen, struct adv_model_keys *keys,
                         adv_err *err)
{
    int index;
    if (adv_json_choice(object, at, "decoder_block", ADV_JSON_OPTIONAL, decoder_names, ADV_DECODER_COUNT,
                        &index, err))
        keys->decoder_block = (enum adv_decoder)index;
    else if (!json_object_get(object, "decoder_block") && !is_chosen && keys->num_experts > 1)
        keys->decoder_block = ADV_DECODER_MIXTRAL;
}

/* The keys present in `object` on top of what `keys` holds already, in which the block `is_chosen`. */
static adv_code decode_keys_over(const json_t *object, const char *at, bool is_chosen,
                                 struct adv_model_keys *keys, adv_err *err)
{
    int before = err->count + err->lost_count;
    if (!adv_json_is_object(object, at, err)) return ADV_E_INVALID;
#define DECODE_INTEGER(key, fallback, low, high)                                                             \
    (void)adv_json_integer(object, at, #key, ADV_JSON_OPTIONAL, (low), (high), &keys->key, err);
#define DECODE_BOOL(key) (void)adv_json_bool(object, at, #key, ADV_JSON_OPTIONAL, &keys->key, err);
#define DECODE_NUMBER(key)                                                                                   \
    (void)adv_json_number(object, at, #key, ADV_JSON_OPTIONAL, 0, 1e6, &keys->key, err);
    ADV_MODEL_INTEGER_KEYS(DECODE_INTEGER)
    ADV_MODEL_BOOL_KEYS(DECODE_BOOL)
    ADV_MODEL_NUMBER_KEYS(DECODE_NUMBER)
#undef DECODE_INTEGER
#undef DECODE_BOOL
#undef DECODE_NUMBER
    decode_name(object, at, keys, err);
    decode_block(object, at, is_chosen, keys, err);
    decode_activations(object, at, keys, err);
    decode_ratios(object, at, keys, err);
    const json_t *engram = adv_json_array(object, at, "engram_layers", ADV_JSON_OPTIONAL, err);
    if (engram) keys->engram_layers_count = (int)json_array_size(engram);
    const char *attention_type;
    if (adv_json_string(object, at, "attention_type", ADV_JSON_OPTIONAL, &attention_type, err))
        keys->is_mla = strcmp(attention_type, "mla") == 0;
    /* A model of experts only has one width: MaxText reads either key. */
    if (keys->base_mlp_dim < 0 && keys->base_moe_mlp_dim > 0) keys->base_mlp_dim = keys->base_moe_mlp_dim;
    return err->count + err->lost_count > before ? ADV_E_INVALID : ADV_OK;
}

adv_code adv_decode_model_keys(const json_t *object, const char *at, struct adv_model_keys *keys,
                               adv_err *err, adv_err *unknown)
{
    adv_model_keys_defaults(keys);
    (void)snprintf(keys->name, sizeof keys->name, "custom");
    adv_code code = decode_keys_over(object, at, false, keys, err);
    if (unknown && json_is_object(object))
        (void)adv_json_known_members(object, at, key_names, KEY_NAMES, unknown);
    return code;
}

/* Warnings for members that are no architecture keys: other MaxText keys belong into config. */
static void warn_of_others(const struct adv_catalog *catalog, const json_t *object, const char *at,
                           adv_err *warnings)
{
    for (struct adv_json_walk given = {.in = object}; adv_json_next_member(&given);) {
        const char *member = given.key, *pointer = ADV_AT(at, member);
        bool known = false;
        for (int i = 0; i < KEY_NAMES && !known; i++) known = strcmp(member, key_names[i]) == 0;
        if (known) continue;
        char hint[ADV_LIMIT_DETAIL] = "";
        if (adv_catalog_key(catalog, member)) {
            ADV_REFUSE(warnings, pointer, "put it into `config` if it is meant for the run",
                       "`%.80s` does not shape the decoder and is ignored here", member);
            continue;
        }
        const char *nearest =
            adv_err_has_room(warnings) ? adv_text_nearest(member, key_names, KEY_NAMES) : NULL;
        if (nearest) (void)snprintf(hint, sizeof hint, "did you mean `%s`?", nearest);
        ADV_REFUSE(warnings, pointer, hint, "`%.80s` is not a MaxText key and is ignored", member);
    }
}

static adv_code decode_object(const struct adv_catalog *catalog, const json_t *value, const char *at,
                              struct adv_model_keys *keys, adv_err *err, adv_err *warnings)
{
    if (warnings) warn_of_others(catalog, value, at, warnings);
    return adv_decode_model_keys(value, at, keys, err, NULL);
}

static adv_code decode_hf(const json_t *value, const char *at, struct adv_model_keys *keys, adv_err *err,
                          adv_err *warnings)
{
    const char *pointer = ADV_AT(at, "hf_config");
    (void)adv_json_known_members(value, at, ADV_JSON_NAMES("hf_config", "name"), err);
    const json_t *config = json_object_get(value, "hf_config");
    const char *type = json_string_value(json_object_get(config, "model_type"));
    adv_code code = adv_hf_is_plain(type) ? adv_decode_hf_plain(config, type, pointer, keys, err, warnings)
                                          : adv_decode_hf_config(config, pointer, keys, err, warnings);
    if (code != ADV_OK) return code;
    const char *name;
    if (adv_json_string(value, at, "name", ADV_JSON_OPTIONAL, &name, err))
        (void)snprintf(keys->name, sizeof keys->name, "%s", name);
    return ADV_OK;
}

static adv_code decode_named(const struct adv_catalog *catalog, const char *name, const char *at,
                             struct adv_model_keys *keys, adv_err *err)
{
    const struct adv_model_keys *found = adv_catalog_model_keys(catalog, name);
    if (found) {
        *keys = *found;
        return ADV_OK;
    }
    struct adv_model unused;
    adv_err missing = adv_err_empty();
    if (adv_catalog_model(catalog, name, &unused, &missing) == ADV_OK) return ADV_OK;
    for (int i = 0; i < missing.count; i++)
        ADV_REFUSE(err, at, missing.findings[i].hint, "%s", missing.findings[i].detail);
    return ADV_E_INVALID;
}

/* The catalogued model that an object is named after, by either member; NULL: none. */
static const char *namesake_of(const struct adv_catalog *catalog, const json_t *object)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    if (!name) name = json_string_value(json_object_get(object, ADV_NAME_MODEL_NAME));
    struct adv_model unused;
    adv_err missing = adv_err_empty();
    const bool is_known = name && (adv_catalog_model_keys(catalog, name) ||
                                   adv_catalog_model(catalog, name, &unused, &missing) == ADV_OK);
    return is_known ? name : NULL;
}

/* An object that has nothing but the name of a catalogued model, or that and some keys: its writer means that
 * model, or a variant of it, while the name is a label. `keys` as far as they are known. */
static bool refuse_label(const struct adv_catalog *catalog, const json_t *object, const char *at,
                         const char *overrides_at, const struct adv_model_keys *keys, adv_err *err)
{
    const char *name = json_is_object(object) ? namesake_of(catalog, object) : NULL;
    char hint[ADV_LIMIT_DETAIL], given[ADV_LIMIT_DETAIL] = "";
    if (!name || keys->base_emb_dim >= 0) return false;
    for (struct adv_json_walk member = {.in = object}; adv_json_next_member(&member);)
        if (strcmp(member.key, "name") != 0 && strcmp(member.key, ADV_NAME_MODEL_NAME) != 0)
            adv_append(given, sizeof given, "%s%.64s", *given ? ", " : "", member.key);
    (void)snprintf(hint, sizeof hint, "for the catalog's model write \"model\": \"%.80s\"", name);
    if (*given)
        adv_append(hint, sizeof hint, ", and put %s into %s with \"override_model_config\": true", given,
                   *overrides_at ? overrides_at + 1 : "config");
    ADV_REFUSE(err, at, hint,
               "`model` is an object that has a name, which is but a label, and no %sarchitecture",
               *given ? "whole " : "");
    return true;
}

/* Whether the model says which block it has: by its name, as one of Hugging Face, or by a key. */
static bool chooses_block(const json_t *model)
{
    return !json_is_object(model) || json_object_get(model, "hf_config") ||
           json_object_get(model, "decoder_block");
}

/* Findings about members that nothing has been said about: one of the wrong type is not missing, too. A
 * finding at "`at`/key" about a key that was set over the model is about the one that set it. */
static void add_unknown(adv_err *err, const adv_err *found, const char *at, const json_t *overrides,
                        const char *overrides_at)
{
    int known = err->count;
    for (int i = 0; i < found->count; i++) {
        const struct adv_finding *finding = &found->findings[i];
        const char *key = finding->pointer + strlen(at) + 1;
        const bool is_set_over = strlen(finding->pointer) > strlen(at) && json_object_get(overrides, key);
        const char *pointer = is_set_over ? ADV_AT(overrides_at, key) : finding->pointer;
        bool told = false;
        for (int k = 0; k < known; k++) told |= strcmp(err->findings[k].pointer, pointer) == 0;
        if (told) continue;
        (void)adv_err_add_rule(err, finding->code, finding->rule, pointer, finding->hint, "%s",
                               finding->detail);
    }
    err->lost_count += found->lost_count;
}

/* Of shared_experts the block reads less than is asked for, as MaxText does. */
static void warn_of_unread(const struct adv_model_keys *keys, const char *at, const json_t *overrides,
                           const char *overrides_at, adv_err *warnings)
{
    static const char key[] = "shared_experts";
    const int built = adv_model_shared_experts(keys);
    if (!warnings || keys->shared_experts == built) return;
    ADV_WARN(warnings, "ignored-key", ADV_AT(json_object_get(overrides, key) ? overrides_at : at, key),
             built ? "set it to 1" : "leave it out, or use deepseek as decoder_block",
             "decoder_block \"%s\" has %s: MaxText ignores %s", adv_decoder_name(keys->decoder_block),
             built ? "one shared expert" : "no shared experts", built ? "the number" : "the key");
}

/* Which blocks read the key, as far as there is room. */
static void name_readers(const char *key, char hint[ADV_LIMIT_DETAIL])
{
    (void)snprintf(hint, ADV_LIMIT_DETAIL, "leave it out; these blocks read it:");
    for (int i = 0; i < ADV_DECODER_COUNT; i++)
        if (adv_decoder_reads((enum adv_decoder)i, key))
            adv_append(hint, ADV_LIMIT_DETAIL, " %s", decoder_names[i]);
}

/* Keys that somebody gave and the block does not read. */
static void warn_of_ignored(const struct adv_model_keys *keys, const json_t *value, const char *at,
                            const json_t *overrides, const char *overrides_at, adv_err *warnings)
{
    const char *unread[ADV_MODEL_UNREAD_MAX];
    const int count = warnings ? adv_model_unread(keys, unread) : 0;
    for (int i = 0; i < count; i++) {
        const bool is_set_over = json_object_get(overrides, unread[i]) != NULL;
        char hint[ADV_LIMIT_DETAIL];
        if (!is_set_over && !json_object_get(value, unread[i])) continue;
        name_readers(unread[i], hint);
        ADV_WARN(warnings, "ignored-key", ADV_AT(is_set_over ? overrides_at : at, unread[i]), hint,
                 "decoder_block \"%s\" does not read %s: MaxText ignores the key",
                 adv_decoder_name(keys->decoder_block), unread[i]);
    }
}

/* MaxText takes the scale of gemma3's queries from its own names, and stops at others. Of files of Hugging
 * Face such a name is written. */
static void warn_of_name(const struct adv_model_keys *keys, const json_t *value, const char *at,
                         adv_err *warnings)
{
    static const char prefix[] = "gemma3-";
    if (keys->decoder_block != ADV_DECODER_GEMMA3 || json_object_get(value, "hf_config") ||
        strncmp(keys->maxtext_name, prefix, sizeof prefix - 1) == 0)
        return;
    (void)adv_err_add_rule(
        warnings, ADV_E_ILLEGAL, "gemma3-name", at,
        "give gemma3-4b, gemma3-12b or gemma3-27b as model, and its keys in config with override_model_config",
        "MaxText builds gemma3 layers under the names of its own gemma3 models only: the time is right, but "
        "it refuses the command");
}

adv_code adv_decode_model_over(const struct adv_catalog *catalog, const json_t *value, const char *at,
                               const json_t *overrides, const char *overrides_at, struct adv_model *model,
                               adv_err *err, adv_err *warnings)
{
    struct adv_model_keys keys;
    adv_code code;
    bool members_wrong = false;
    const bool has_overrides = overrides && json_object_size(overrides) > 0;
    if (json_is_string(value)) {
        code = decode_named(catalog, json_string_value(value), at, &keys, err);
    } else if (json_is_object(value) && json_object_get(value, "hf_config")) {
        code = decode_hf(value, at, &keys, err, warnings);
    } else if (json_is_object(value)) {
        /* Even when a member is wrong: the missing ones are reported too. */
        members_wrong = decode_object(catalog, value, at, &keys, err, warnings) != ADV_OK;
        code = ADV_OK;
    } else {
        return adv_err_add(err, ADV_E_INVALID, at,
                           "a catalog name, an object of MaxText keys, or {\"hf_config\": {…}}",
                           "`model` must be a name or an object, not %s", adv_json_type_name(value));
    }
    if (code != ADV_OK) return code;
    if (has_overrides &&
        decode_keys_over(overrides, overrides_at, chooses_block(value), &keys, err) != ADV_OK)
        members_wrong = true;
    adv_err unbuilt = adv_err_empty();
    code = adv_model_build(&keys, at, model, &unbuilt);
    if (code == ADV_OK || !refuse_label(catalog, value, at, overrides_at, &keys, err))
        add_unknown(err, &unbuilt, at, overrides, overrides_at);
    const json_t *hf = json_object_get(value, "hf_config");
    if (keys.mtp_num_layers == 0) adv_hf_warn_of_next_tokens(hf, ADV_AT(at, "hf_config"), warnings);
    warn_of_unread(&keys, at, overrides, overrides_at, warnings);
    warn_of_ignored(&keys, value, at, overrides, overrides_at, warnings);
    if (warnings) warn_of_name(&keys, value, at, warnings);
    return members_wrong ? ADV_E_INVALID : code;
}

/* Keys that differ from MaxText's defaults, as MaxText would read them. */
static json_t *keys_as_json(const struct adv_model_keys *keys)
{
    struct adv_model_keys defaults;
    adv_model_keys_defaults(&defaults);
    json_t *object = json_object();
    (void)json_object_set_new(object, "decoder_block", json_string(adv_decoder_name(keys->decoder_block)));
#define PUT_INTEGER(key, fallback, low, high)                                                                \
    if (keys->key != defaults.key)                                                                           \
        (void)json_object_set_new(object, #key, json_integer((json_int_t)keys->key));
#define PUT_BOOL(key)                                                                                        \
    if (keys->key != defaults.key) (void)json_object_set_new(object, #key, json_boolean(keys->key));
#define PUT_NUMBER(key)                                                                                      \
    if (keys->key < defaults.key || keys->key > defaults.key)                                                \
        (void)json_object_set_new(object, #key, json_real(keys->key));
    ADV_MODEL_INTEGER_KEYS(PUT_INTEGER)
    ADV_MODEL_BOOL_KEYS(PUT_BOOL)
    ADV_MODEL_NUMBER_KEYS(PUT_NUMBER)
#undef PUT_INTEGER
#undef PUT_BOOL
#undef PUT_NUMBER
    if (keys->is_mla) (void)json_object_set_new(object, "attention_type", json_string("mla"));
    if (keys->mlp_activations_count == 1)
        (void)json_object_set_new(object, "mlp_activations", json_pack("[s]", "gelu"));
    return object;
}

/* The members of `value` that shape the decoder; new reference. */
static json_t *given_keys(const json_t *value)
{
    json_t *object = json_object();
    for (int i = 0; i < KEY_NAMES; i++) {
        json_t *member = json_object_get(value, key_names[i]);
        if (member && !json_is_null(member) && strcmp(key_names[i], "name") != 0)
            (void)json_object_set(object, key_names[i], member);
    }
    return object;
}

adv_code adv_decode_model_given(const json_t *value, struct adv_arena *arena, const struct adv_pin **keys,
                                int *count)
{
    *keys = NULL;
    *count = 0;
    if (!json_is_object(value)) return ADV_OK;
    const json_t *hf = json_object_get(value, "hf_config");
    struct adv_model_keys decoded;
    adv_err reported = adv_err_empty(); /* the decoder of the model has told it all */
    ADV_JSON_OWN json_t *object = NULL;
    if (adv_hf_is_plain(json_string_value(json_object_get(hf, "model_type")))) return ADV_OK;
    if (!hf)
        object = given_keys(value);
    else if (adv_decode_hf_config(hf, "", &decoded, &reported, NULL) == ADV_OK && !decoded.without_maxtext)
        object = keys_as_json(&decoded);
    if (hf && object) adv_decode_hf_settings(hf, &decoded, object);
    size_t room = json_object_size(object);
    struct adv_pin *made = adv_arena_array(arena, room ? room : 1, sizeof *made);
    adv_code code = made ? ADV_OK : ADV_E_MEMORY;
    for (struct adv_json_walk member = {.in = object}; adv_json_next_member(&member);) {
        char *text = json_dumps(member.value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
        if (code == ADV_OK)
            made[*count] = (struct adv_pin){adv_arena_copy(arena, member.key),
                                            text ? adv_arena_copy(arena, text) : NULL};
        free(text);
        if (code == ADV_OK && (!made[*count].key || !made[*count].value_json)) code = ADV_E_MEMORY;
        if (code == ADV_OK) ++*count;
    }
    *keys = made;
    return code;
}
