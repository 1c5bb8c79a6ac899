#include "engine/json/request_text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_hf_families.h"
#include "engine/json/decode_recipe.h"
#include "engine/json/decode_text.h"
#include "engine/json/decode_value.h"
#include "engine/json/json_load.h"

/* Members of a request that can be given beside a recipe, as text. */
static const struct place {
    const char *name, *object, *member; /* object "": the request itself */
} places[] = {
    {"model", "", "model"},
    {"chip", "cluster", "chip"},
    {"topology", "cluster", "topology"},
    {"accelerator", "cluster", "accelerator"},
    {"slices", "cluster", "slices"},
    {"price_usd_per_chip_hour", "cluster", "price_usd_per_chip_hour"},
    {"command", "", "recipe_command"},
    {"strict", "", "strict"},
    {"lenient", "", "lenient"},
    {"flops_convention", "", "flops_convention"},
    {"store", "", "store"},
    {"label", "", "label"},
    {"project", "", "project"},
    {"git_ref", "", "git_ref"},
    {"tags", "", "tags"},
    {"seq_len", "workload", "seq_len"},
    {"global_batch_sequences", "workload", "global_batch_sequences"},
    {"tokens_per_step", "workload", "tokens_per_step"},
    {"objective", "search", "objective"},
    {"top_k", "search", "top_k"},
};
enum { PLACES = sizeof places / sizeof *places };

static const char *const rules[] = {"recipe-variable", "recipe-condition", "recipe-file", "recipe-flags",
                                    "catalog-model"};

void adv_decode_recipe_notes(const json_t *root, adv_err *warnings)
{
    for (struct adv_json_walk note = {.in = json_object_get(root, "recipe_notes")}; adv_json_next(&note);) {
        const char *detail = json_string_value(json_object_get(note.value, "detail"));
        const char *code = json_string_value(json_object_get(note.value, "code"));
        const char *pointer = json_string_value(json_object_get(note.value, "pointer"));
        if (!detail || !code || !pointer || !warnings) continue;
        const char *rule = NULL;
        for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
            if (strcmp(rules[i], code) == 0) rule = rules[i];
        ADV_WARN(warnings, rule, pointer, json_string_value(json_object_get(note.value, "hint")), "%s",
                 detail);
    }
}

static void keep_notes(json_t *root, const adv_err *warnings)
{
    json_t *notes = json_object_get(root, "recipe_notes"); /* of a request that was stored */
    if (warnings->count == 0) return;
    if (!json_is_array(notes) && json_object_set_new(root, "recipe_notes", json_array()) == 0)
        notes = json_object_get(root, "recipe_notes");
    for (int i = 0; i < warnings->count; i++) {
        const struct adv_finding *found = &warnings->findings[i];
        json_t *note = json_pack("{s:s, s:s, s:s}", "pointer", found->pointer, "code",
                                 found->rule ? found->rule : "", "detail", found->detail);
        if (note && *found->hint) (void)json_object_set_new(note, "hint", json_string(found->hint));
        (void)json_array_append_new(notes, note);
    }
}

static json_t *object_under(json_t *root, const char *name)
{
    json_t *object = json_object_get(root, name);
    if (json_is_object(object)) return object;
    (void)json_object_set_new(root, name, json_object());
    return json_object_get(root, name);
}

/* Where the keys of the recipe's configuration go. */
static json_t *config_under(json_t *root, enum adv_request_kind kind)
{
    return object_under(kind == ADV_REQUEST_ADVISE ? object_under(root, "baseline") : root, "config");
}

/* XLA flags as LIBTPU_INIT_ARGS has them, one word each. */
static json_t *flag_words(const char *text)
{
    json_t *words = json_array();
    for (const char *at = text + strspn(text, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
        const size_t bytes = strcspn(at, " \t\r\n");
        (void)json_array_append_new(words, json_stringn(at, bytes));
        at += bytes;
    }
    return words;
}

static void refuse_given(const struct adv_catalog *catalog, const char *name, adv_err *err)
{
    const char *names[PLACES];
    char pointer[ADV_LIMIT_POINTER],
        hint[ADV_LIMIT_DETAIL] = "a MaxText key, or chip, topology, slices, model, …";
    for (int i = 0; i < PLACES; i++) names[i] = places[i].name;
    const char *nearest = adv_err_has_room(err) ? adv_text_nearest(name, names, PLACES) : NULL;
    if (!nearest && adv_err_has_room(err)) nearest = adv_catalog_nearest_key(catalog, name);
    if (nearest) (void)snprintf(hint, sizeof hint, "did you mean %s?", nearest);
    (void)snprintf(pointer, sizeof pointer, "/query/%.100s", name);
    (void)adv_err_add(err, ADV_E_BAD_REQUEST, pointer, hint,
                      "%.100s is neither a member of the request nor a key of MaxText", name);
}

/* "a,b" as an array of strings. */
static json_t *list_of(const char *text)
{
    json_t *list = json_array();
    for (const char *at = text; at;) {
        const size_t length = strcspn(at, ",");
        (void)json_array_append_new(list, json_stringn(at, length));
        at = at[length] ? at + length + 1 : NULL;
    }
    return list;
}

static void give(const struct adv_catalog *catalog, enum adv_request_kind kind, json_t *root,
                 const struct adv_given_member *given, adv_err *err)
{
    static const char *const texts[] = {"model", "chip",    "topology", "accelerator",
                                        "label", "project", "git_ref"};
    if (strcmp(given->name, "xla_flags") == 0) {
        json_t *holder = kind == ADV_REQUEST_ADVISE ? object_under(root, "baseline") : root;
        (void)json_object_set_new(holder, given->name, flag_words(given->value));
        return;
    }
    bool is_text = false;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) is_text |= strcmp(given->name, texts[i]) == 0;
    ADV_JSON_OWN json_t *value = strcmp(given->name, "tags") == 0 ? list_of(given->value)
                                 : is_text                        ? json_string(given->value)
                                                                  : adv_decode_scalar_text(given->value);
    const bool is_key = adv_catalog_key(catalog, given->name) || adv_catalog_old_key(catalog, given->name);
    for (int i = 0; i < PLACES; i++) {
        if (strcmp(places[i].name, given->name) != 0) continue;
        json_t *object = *places[i].object ? object_under(root, places[i].object) : root;
        (void)json_object_set(object, places[i].member, value);
        return;
    }
    if (is_key)
        (void)json_object_set(config_under(root, kind), given->name, value);
    else
        refuse_given(catalog, given->name, err);
}

/* An object or array, or a short text that is JSON all through (null, 1, "x"). */
static bool is_json(const char *text, size_t bytes)
{
    enum { SCALAR_BYTES_MAX = 256 };
    size_t at = 0;
    while (at < bytes && isspace((unsigned char)text[at])) at++;
    if (at < bytes && (text[at] == '[' || text[at] == '{'))
        return !(text[at] == '{' && at + 1 < bytes && text[at + 1] == '{');
    ADV_JSON_OWN json_t *scalar =
        bytes <= SCALAR_BYTES_MAX ? adv_json_load(text, bytes, JSON_DECODE_ANY, NULL) : NULL;
    return scalar != NULL;
}

static adv_code read_text(const char *text, size_t bytes, json_t **root, adv_err *err)
{
    text = adv_json_after_mark(text, &bytes);
    if (is_json(text, bytes)) return adv_json_parse(text, bytes, root, err);
    if (bytes > ADV_LIMIT_BODY_BYTES)
        return adv_err_add(err, ADV_E_TOO_LARGE, "", NULL, "%zu bytes; at most %d", bytes,
                           ADV_LIMIT_BODY_BYTES);
    json_t *recipe = json_stringn(text, bytes);
    if (!recipe)
        return adv_err_add(err, ADV_E_SYNTAX, "", "a JSON request, YAML, a script or a command line",
                           "the text is not UTF-8");
    *root = json_object();
    (void)json_object_set_new(*root, "recipe", recipe);
    return ADV_OK;
}

adv_code adv_decode_request_text(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                 const char *text, size_t text_bytes, const struct adv_given_member *given,
                                 int given_count, struct adv_arena *arena, json_t **root, adv_err *err)
{
    static const enum adv_recipe_use uses[] = {[ADV_REQUEST_ESTIMATE] = ADV_RECIPE_ESTIMATE,
                                               [ADV_REQUEST_ADVISE] = ADV_RECIPE_ADVISE,
                                               [ADV_REQUEST_LINT] = ADV_RECIPE_LINT};
    adv_err warnings = adv_err_empty();
    *root = NULL;
    if (kind == ADV_REQUEST_SIMULATE || kind == ADV_REQUEST_TUNE)
        return adv_json_parse(text, text_bytes, root, err);
    adv_code code = read_text(text, text_bytes, root, err);
    if (code != ADV_OK) return code;
    *root = kind == ADV_REQUEST_LINT ? adv_text_as_request(*root) : adv_text_model_as_request(*root);
    for (int i = 0; i < given_count; i++) {
        if (json_is_object(*root)) give(catalog, kind, *root, &given[i], err);
        for (struct adv_json_walk element = {.in = *root}; adv_json_next(&element);) /* a file with several */
        {
            if (json_is_object(element.value)) give(catalog, kind, element.value, &given[i], err);
        }
    }
    code = err->code;
    if (code == ADV_OK && json_is_object(*root))
        code = adv_decode_recipe_member(catalog, uses[kind], arena, root, err, &warnings);
    if (code == ADV_OK && json_is_object(*root))
        code = adv_decode_hf_catalogued(catalog, *root, err, &warnings);
    if (code == ADV_OK) {
        keep_notes(*root, &warnings);
        return ADV_OK;
    }
    json_decref(*root);
    *root = NULL;
    return code;
}

adv_code adv_request_expand(const struct adv_catalog *catalog, enum adv_request_kind kind, const char *text,
                            size_t text_bytes, const struct adv_given_member *given, int given_count,
                            char **json, size_t *json_bytes, adv_err *err)
{
    struct adv_arena arena;
    ADV_JSON_OWN json_t *root = NULL;
    *json = NULL;
    *json_bytes = 0;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    adv_code code =
        adv_decode_request_text(catalog, kind, text, text_bytes, given, given_count, &arena, &root, err);
    adv_arena_free(&arena);
    if (code != ADV_OK) return code;
    *json = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!*json) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the request");
    *json_bytes = strlen(*json);
    return ADV_OK;
}
