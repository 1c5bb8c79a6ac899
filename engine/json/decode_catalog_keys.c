/* MaxText's keys, the names keys once had, XLA flags and their bundles. */
#include "engine/json/decode_catalog.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool decode_types(const json_t *list, struct adv_catalog_key *key)
{
    static const char *const names[] = {
        [ADV_KEY_BOOL] = "bool",     [ADV_KEY_INT] = "int",   [ADV_KEY_FLOAT] = "float",
        [ADV_KEY_STRING] = "string", [ADV_KEY_LIST] = "list", [ADV_KEY_OBJECT] = "object",
    };
    enum { TYPES = sizeof names / sizeof *names };
    for (size_t k = 0; k < json_array_size(list); k++) {
        const char *name = json_string_value(json_array_get(list, k));
        unsigned type = 0;
        while (name && type < TYPES && strcmp(names[type], name) != 0) type++;
        if (!name || (type == TYPES && strcmp(name, "null") != 0)) return false;
        if (type == TYPES)
            key->nullable = true;
        else
            key->types |= 1u << type;
    }
    return key->types != 0;
}

/* Enumerated values are kept as text: "full", "8", "true". */
static void decode_allowed(const struct adv_catalog_file *file, const json_t *list,
                           struct adv_catalog_key *key)
{
    if (json_array_size(list) == 0) return;
    const char **allowed = adv_catalog_rows(file, json_array_size(list), sizeof *allowed);
    if (!allowed) return;
    for (struct adv_json_walk item = {.in = list}; adv_json_next(&item);)
        allowed[key->allowed_count++] = json_is_string(item.value)
                                            ? adv_catalog_keep(file, json_string_value(item.value))
                                            : adv_catalog_keep_json(file, item.value);
    key->allowed = allowed;
}

/* {name, types, default, group, allowed?, constraints?, derived?, what?} */
static bool decode_key(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_key *key = element;
    json_t *types, *fallback, *allowed = NULL;
    int derived = 0;
    key->constraints = key->what = "";
    if (json_unpack(row, "{s:s,s:o,s:o,s:s,s?o,s?s,s?b,s?s!}", "name", &key->name, "types", &types, "default",
                    &fallback, "group", &key->group, "allowed", &allowed, "constraints", &key->constraints,
                    "derived", &derived, "what", &key->what) != 0)
        return false;
    if (!decode_types(types, key)) return false;
    key->default_json = adv_catalog_keep_json(file, fallback);
    ADV_CATALOG_KEEP(file, &key->name, &key->group, &key->constraints, &key->what);
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
    struct adv_catalog_tables *tables = &file->catalog->tables;
    struct adv_catalog_key *keys = adv_catalog_decode_rows(
        file, file->root, "rows", "{name, types, default, group, allowed?, constraints?, derived?, what?}",
        sizeof *keys, decode_key, &tables->keys_count);
    tables->keys_provenance = adv_catalog_file_provenance(file);
    if (keys) qsort(keys, (size_t)tables->keys_count, sizeof *keys, compare_names);
    tables->keys = keys;
}

static bool decode_old_key(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_old_key *key = element;
    json_t *current;
    if (json_unpack(row, "[s,o,s!]", &key->name, &current, &key->why) != 0) return false;
    ADV_CATALOG_KEEP(file, &key->name, &key->why);
    if (json_is_string(current)) key->current = adv_catalog_keep(file, json_string_value(current));
    return true;
}

void adv_decode_catalog_old_keys(const struct adv_catalog_file *file)
{
    struct adv_catalog_tables *tables = &file->catalog->tables;
    tables->old_keys =
        adv_catalog_decode_rows(file, file->root, "rows", "[old name, current name or null, why]",
                                sizeof *tables->old_keys, decode_old_key, &tables->old_keys_count);
}

static bool decode_flag(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_flag *flag = element;
    if (json_unpack(row, "[s,s,s!]", &flag->name, &flag->type, &flag->what) != 0) return false;
    ADV_CATALOG_KEEP(file, &flag->name, &flag->type, &flag->what);
    return true;
}

static bool decode_bundle(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_bundle *bundle = element;
    json_t *chips, *flags;
    if (json_unpack(row, "{s:s,s:s,s:s,s:o,s:o!}", "name", &bundle->name, "purpose", &bundle->purpose,
                    "source", &bundle->source, "chips", &chips, "flags", &flags) != 0)
        return false;
    ADV_CATALOG_KEEP(file, &bundle->name, &bundle->purpose, &bundle->source);
    bundle->chips = adv_catalog_keep_list(file, chips, file->at, &bundle->chips_count);
    bundle->flags = adv_catalog_keep_list(file, flags, file->at, &bundle->flags_count);
    return bundle->chips_count > 0 && bundle->flags_count > 0;
}

void adv_decode_catalog_flags(const struct adv_catalog_file *file)
{
    struct adv_catalog_tables *tables = &file->catalog->tables;
    struct adv_catalog_flag *flags = adv_catalog_decode_rows(
        file, file->root, "flags", "[name, type, what]", sizeof *flags, decode_flag, &tables->flags_count);
    tables->flags_provenance = adv_catalog_file_provenance(file);
    if (flags) qsort(flags, (size_t)tables->flags_count, sizeof *flags, compare_names);
    tables->flags = flags;
    tables->bundles =
        adv_catalog_decode_rows(file, file->root, "bundles", "{name, purpose, source, chips, flags}",
                                sizeof *tables->bundles, decode_bundle, &tables->bundles_count);
}
