/* MaxText's keys, the names keys once had, XLA flags and their bundles. */
#include "engine/json/decode_catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool decode_types(const json_t *list, struct adv_catalog_key *key)
{
    static const struct {
        const char *name;
        enum adv_key_type type;
    } types[] = {
        {"bool", ADV_KEY_BOOL},     {"int", ADV_KEY_INT},   {"float", ADV_KEY_FLOAT},
        {"string", ADV_KEY_STRING}, {"list", ADV_KEY_LIST}, {"object", ADV_KEY_OBJECT},
    };
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *name = json_string_value(json_array_get(list, k));
        bool known = name && strcmp(name, "null") == 0;
        if (known) key->nullable = true;
        for (size_t i = 0; name && !known && i < sizeof types / sizeof *types; i++) {
            if (strcmp(types[i].name, name) != 0) continue;
            key->types |= 1u << types[i].type;
            known = true;
        }
        if (!known) return false;
    }
    return key->types != 0;
}

/* Enumerated values are kept as text: "full", "8", "true". */
static void decode_allowed(const struct adv_catalog_file *file, const json_t *list,
                           struct adv_catalog_key *key)
{
    size_t count = json_array_size(list);
    if (count == 0) return;
    const char **allowed = adv_catalog_rows(file, count, sizeof *allowed);
    if (!allowed) return;
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_array_get(list, i);
        char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        allowed[i] = adv_catalog_keep(file, text ? text : json_string_value(value));
        free(text);
    }
    key->allowed = allowed;
    key->allowed_count = (int)count;
}

/* {name, types, default, group, allowed?, constraints?, derived?, what?} */
static bool decode_key(const struct adv_catalog_file *file, const json_t *row, struct adv_catalog_key *key)
{
    const char *name, *group, *constraints = "", *what = "";
    json_t *types, *fallback, *allowed = NULL;
    int derived = 0;
    if (json_unpack((json_t *)(uintptr_t)row, "{s:s,s:o,s:o,s:s,s?o,s?s,s?b,s?s!}", "name", &name, "types",
                    &types, "default", &fallback, "group", &group, "allowed", &allowed, "constraints",
                    &constraints, "derived", &derived, "what", &what) != 0)
        return false;
    if (!decode_types(types, key)) return false;
    char *default_json = json_dumps(fallback, JSON_ENCODE_ANY | JSON_COMPACT);
    key->name = adv_catalog_keep(file, name);
    key->default_json = adv_catalog_keep(file, default_json);
    free(default_json);
    key->group = adv_catalog_keep(file, group);
    key->constraints = adv_catalog_keep(file, constraints);
    key->what = adv_catalog_keep(file, what);
    key->note = derived ? "MaxText computes it; do not set it" : "";
    key->derived = derived;
    decode_allowed(file, allowed, key);
    return true;
}

static int compare_names(const void *a, const void *b)
{
    /* The name is the first member of keys, flags and old keys alike. */
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void adv_decode_catalog_keys(const struct adv_catalog_file *file)
{
    struct adv_catalog *catalog = file->catalog;
    const json_t *list = adv_json_array(file->root, file->at, "rows", ADV_JSON_REQUIRED, file->err);
    size_t count = json_array_size(list);
    catalog->keys_provenance = adv_catalog_file_provenance(file);
    catalog->keys = adv_catalog_rows(file, count, sizeof *catalog->keys);
    if (!catalog->keys) return;
    for (size_t i = 0; i < count; i++)
        if (!decode_key(file, json_array_get(list, i), &catalog->keys[i])) {
            adv_catalog_refuse(
                file, "rows", i,
                "must be {name, types, default, group, allowed?, constraints?, derived?, what?}");
            return;
        }
    qsort(catalog->keys, count, sizeof *catalog->keys, compare_names);
    catalog->keys_count = (int)count;
}

void adv_decode_catalog_old_keys(const struct adv_catalog_file *file)
{
    struct adv_catalog *catalog = file->catalog;
    const json_t *list = adv_json_array(file->root, file->at, "rows", ADV_JSON_REQUIRED, file->err);
    size_t count = json_array_size(list);
    catalog->old_keys = adv_catalog_rows(file, count, sizeof *catalog->old_keys);
    if (!catalog->old_keys) return;
    for (size_t i = 0; i < count; i++) {
        const char *name, *why;
        json_t *current;
        if (json_unpack(json_array_get(list, i), "[s,o,s!]", &name, &current, &why) != 0) {
            adv_catalog_refuse(file, "rows", i, "must be [old name, current name or null, why]");
            return;
        }
        const char *now = json_string_value(current);
        catalog->old_keys[i] =
            (struct adv_catalog_old_key){.name = adv_catalog_keep(file, name),
                                         .current = now ? adv_catalog_keep(file, now) : NULL,
                                         .why = adv_catalog_keep(file, why)};
    }
    catalog->old_keys_count = (int)count;
}

static bool decode_bundle(const struct adv_catalog_file *file, const json_t *row, const char *at,
                          struct adv_catalog_bundle *bundle)
{
    const char *name, *purpose, *source;
    json_t *chips, *flags;
    if (json_unpack((json_t *)(uintptr_t)row, "{s:s,s:s,s:s,s:o,s:o!}", "name", &name, "purpose", &purpose,
                    "source", &source, "chips", &chips, "flags", &flags) != 0)
        return false;
    bundle->name = adv_catalog_keep(file, name);
    bundle->purpose = adv_catalog_keep(file, purpose);
    bundle->source = adv_catalog_keep(file, source);
    bundle->chips = adv_catalog_keep_list(file, chips, at, &bundle->chips_count);
    bundle->flags = adv_catalog_keep_list(file, flags, at, &bundle->flags_count);
    return bundle->chips_count > 0 && bundle->flags_count > 0;
}

void adv_decode_catalog_flags(const struct adv_catalog_file *file)
{
    struct adv_catalog *catalog = file->catalog;
    const json_t *list = adv_json_array(file->root, file->at, "flags", ADV_JSON_REQUIRED, file->err);
    const json_t *bundles = adv_json_array(file->root, file->at, "bundles", ADV_JSON_REQUIRED, file->err);
    size_t count = json_array_size(list);
    size_t bundles_count = json_array_size(bundles);
    catalog->flags_provenance = adv_catalog_file_provenance(file);
    catalog->flags = adv_catalog_rows(file, count, sizeof *catalog->flags);
    catalog->bundles = adv_catalog_rows(file, bundles_count, sizeof *catalog->bundles);
    if (!catalog->flags || !catalog->bundles) return;
    for (size_t i = 0; i < count; i++) {
        const char *name, *type, *what;
        if (json_unpack(json_array_get(list, i), "[s,s,s!]", &name, &type, &what) != 0) {
            adv_catalog_refuse(file, "flags", i, "must be [name, type, what]");
            return;
        }
        catalog->flags[i] = (struct adv_catalog_flag){.name = adv_catalog_keep(file, name),
                                                      .type = adv_catalog_keep(file, type),
                                                      .what = adv_catalog_keep(file, what)};
    }
    qsort(catalog->flags, count, sizeof *catalog->flags, compare_names);
    catalog->flags_count = (int)count;
    for (size_t i = 0; i < bundles_count; i++)
        if (!decode_bundle(file, json_array_get(bundles, i), file->at, &catalog->bundles[i])) {
            adv_catalog_refuse(file, "bundles", i, "must be {name, purpose, source, chips, flags}");
            return;
        }
    catalog->bundles_count = (int)bundles_count;
}
