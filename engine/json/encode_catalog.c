#include "engine/json/encode_catalog.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/text.h"
#include "engine/json/json_load.h"

json_t *adv_encode_sourced(double value, const struct adv_provenance *provenance)
{
    json_t *object = json_object();
    adv_encode_set_number(object, "value", value);
    if (*provenance->unit) adv_encode_set_string(object, "unit", provenance->unit);
    adv_encode_set_provenance(object, provenance);
    return object;
}

void adv_encode_set_provenance(json_t *object, const struct adv_provenance *provenance)
{
    ADV_SET(object, provenance, source, date, confidence);
    if (*provenance->note) adv_encode_set_string(object, "note", provenance->note);
}

static json_t *encode_strings(const char *const *strings, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) (void)json_array_append_new(list, json_string(strings[i]));
    return list;
}

static json_t *encode_chip(const struct adv_catalog *catalog, const struct adv_catalog_chip *row)
{
    json_t *object = json_object();
    const char *const *shapes;
    int shapes_count = adv_catalog_shapes(catalog, row->chip.name, &shapes);
    ADV_SET(object, &row->chip, name, title);
    (void)json_object_set_new(object, "aliases", encode_strings(row->aliases, row->aliases_count));
    ADV_SET(object, &row->chip, is_tpu, has_megacore, offloads_collectives);
    (void)json_object_set_new(object, "topologies", encode_strings(shapes, shapes_count));
#define ENCODE_FIELD(field, unit, what)                                                                      \
    (void)json_object_set_new(object, #field, adv_encode_sourced(row->chip.field, &row->field##_provenance));
    ADV_CHIP_FIELDS(ENCODE_FIELD)
#undef ENCODE_FIELD
    return object;
}

static json_t *encode_chips(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_chips_count(catalog); i++)
        (void)json_array_append_new(list, encode_chip(catalog, adv_catalog_chip_at(catalog, i)));
    return list;
}

/* The chip with what each field means and the fitted constants with their pedigree. */
static json_t *encode_chip_entry(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_chip *row = adv_catalog_chip(catalog, name);
    if (!row) return NULL;
    json_t *object = encode_chip(catalog, row);
    int count;
    const struct adv_chip_field *fields = adv_chip_fields(&count);
    for (int i = 0; i < count; i++)
        (void)json_object_set_new(json_object_get(object, fields[i].name), "what",
                                  json_string(fields[i].what));
    json_t *constants = json_object();
    for (int i = 0; i < ADV_CATALOG_CONSTANT_FILES; i++) {
        if (!row->constants_json[i]) continue;
        json_t *part = adv_json_load_string(row->constants_json[i], 0);
        (void)json_object_update(constants, part);
        json_decref(part);
    }
    (void)json_object_set_new(object, "constants", constants);
    return object;
}

static json_t *encode_topology(const struct adv_catalog_topology *row)
{
    json_t *object = json_object();
    json_t *dims = json_array();
    json_t *wraps = json_array();
    for (int axis = 0; axis < 3; axis++) {
        (void)json_array_append_new(dims, json_integer(row->dims[axis]));
        (void)json_array_append_new(wraps, json_boolean(row->wraps[axis]));
    }
    ADV_SET(object, row, name, chip, topology, chips, devices, hosts);
    (void)json_object_set_new(object, "dims", dims);
    (void)json_object_set_new(object, "wraps", wraps);
    return object;
}

static json_t *encode_topologies(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_topologies_count(catalog); i++)
        (void)json_array_append_new(list, encode_topology(adv_catalog_topology_at(catalog, i)));
    return list;
}

static json_t *encode_topology_entry(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_topology *row = adv_catalog_topology(catalog, name);
    if (!row) return NULL;
    json_t *object = encode_topology(row);
    adv_encode_set_provenance(object, adv_catalog_topologies_provenance(catalog));
    return object;
}

static void add_topologies_source(const struct adv_catalog *catalog, json_t *root)
{
    adv_encode_set_provenance(root, adv_catalog_topologies_provenance(catalog));
}

/* Beside MaxText's keys: what keys were called, XLA flags, and flags that belong together. */
static void add_key_tables(const struct adv_catalog *catalog, json_t *root)
{
    json_t *old_keys = json_array();
    json_t *flags = json_array();
    json_t *bundles = json_array();
    for (int i = 0; i < adv_catalog_old_keys_count(catalog); i++) {
        const struct adv_catalog_old_key *row = adv_catalog_old_key_at(catalog, i);
        json_t *object = json_object();
        ADV_SET(object, row, name, current, why);
        (void)json_array_append_new(old_keys, object);
    }
    for (int i = 0; i < adv_catalog_flags_count(catalog); i++) {
        const struct adv_catalog_flag *row = adv_catalog_flag_at(catalog, i);
        (void)json_array_append_new(
            flags, json_pack("{s:s,s:s,s:s}", "name", row->name, "type", row->type, "what", row->what));
    }
    for (int i = 0; i < adv_catalog_bundles_count(catalog); i++) {
        const struct adv_catalog_bundle *row = adv_catalog_bundle_at(catalog, i);
        json_t *object =
            json_pack("{s:s,s:s,s:s}", "name", row->name, "purpose", row->purpose, "source", row->source);
        (void)json_object_set_new(object, "chips", encode_strings(row->chips, row->chips_count));
        (void)json_object_set_new(object, "flags", encode_strings(row->flags, row->flags_count));
        (void)json_array_append_new(bundles, object);
    }
    adv_encode_set_provenance(root, adv_catalog_keys_provenance(catalog));
    (void)json_object_set_new(root, "old_keys", old_keys);
    (void)json_object_set_new(root, "xla_flags", flags);
    (void)json_object_set_new(root, "xla_flag_bundles", bundles);
}

static const struct collection {
    const char *name;
    json_t *(*list)(const struct adv_catalog *catalog);
    json_t *(*entry)(const struct adv_catalog *catalog, const char *name); /* NULL: unknown */
    void (*add)(const struct adv_catalog *catalog, json_t *root);          /* beside the list; may be NULL */
} collections[] = {
    {"models", adv_encode_catalog_models, adv_encode_catalog_model, NULL},
    {"chips", encode_chips, encode_chip_entry, NULL},
    {"topologies", encode_topologies, encode_topology_entry, add_topologies_source},
    {"kernels", adv_encode_catalog_kernels, adv_encode_catalog_kernel, NULL},
    {"keys", adv_encode_catalog_keys, adv_encode_catalog_key, add_key_tables},
};

static adv_code refuse_entry(const struct collection *collection, const struct adv_catalog *catalog,
                             const char *name, adv_err *err)
{
    const char *names[1024];
    int count = 0;
    char hint[ADV_LIMIT_DETAIL];
    json_t *list = collection->list(catalog);
    for (size_t i = 0; i < json_array_size(list) && count < 1024; i++)
        names[count++] = json_string_value(json_object_get(json_array_get(list, i), "name"));
    const char *nearest = adv_text_nearest(name, names, count);
    if (nearest)
        (void)snprintf(hint, sizeof hint, "did you mean `%s`?", nearest);
    else
        (void)snprintf(hint, sizeof hint, "GET /v1/catalog/%s lists them", collection->name);
    adv_code code =
        adv_err_add(err, ADV_E_NOT_FOUND, "", hint, "%s has no \"%.80s\"", collection->name, name);
    json_decref(list);
    return code;
}

adv_code adv_catalog_json(const struct adv_catalog *catalog, const char *collection, const char *name,
                          struct adv_answer *answer, adv_err *err)
{
    const struct collection *found = NULL;
    for (size_t i = 0; i < sizeof collections / sizeof collections[0]; i++)
        if (strcmp(collections[i].name, collection) == 0) found = &collections[i];
    if (!found)
        return adv_err_add(err, ADV_E_NOT_FOUND, "", "models, chips, topologies, kernels, keys",
                           "there is no collection \"%.80s\"", collection);
    json_t *root;
    if (name) {
        root = found->entry(catalog, name);
        if (!root) return refuse_entry(found, catalog, name, err);
    } else {
        root = json_object();
        (void)json_object_set_new(root, found->name, found->list(catalog));
        if (found->add) found->add(catalog, root);
    }
    (void)json_object_set_new(root, "engine", adv_encode_engine(catalog));
    *answer = (struct adv_answer){.step_time_s = (double)NAN, .hbm_bytes_per_device = (double)NAN};
    answer->json = adv_encode_text(root, &answer->json_bytes);
    return answer->json ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
}
