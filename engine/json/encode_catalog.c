/* encode_catalog.c: GET /v1/catalog/…: one pair of functions per collection. Lists hold what a chooser needs,
 * entries everything; every number stands beside its source, date and confidence. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/text.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_load.h"
#include "engine/json/kernel_members.h"
#include "engine/kernel/families.h"

/* "source", "date", "confidence", "note"? as members of `object`: the pedigree of all its numbers. */
static void set_provenance(json_t *object, const struct adv_provenance *provenance)
{
    ADV_SET(object, provenance, source, date, confidence);
    if (*provenance->note) adv_encode_set_string(object, "note", provenance->note);
}

/* {"value", "unit", "source", "date", "confidence", "note"?} */
static json_t *encode_sourced(double value, const struct adv_provenance *provenance)
{
    json_t *object = json_object();
    adv_encode_set_number(object, "value", value);
    if (*provenance->unit) adv_encode_set_string(object, "unit", provenance->unit);
    set_provenance(object, provenance);
    return object;
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
    (void)json_object_set_new(object, #field, encode_sourced(row->chip.field, &row->field##_provenance));
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
    set_provenance(object, adv_catalog_topologies_provenance(catalog));
    return object;
}

static void add_topologies_source(const struct adv_catalog *catalog, json_t *root)
{
    set_provenance(root, adv_catalog_topologies_provenance(catalog));
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
    set_provenance(root, adv_catalog_keys_provenance(catalog));
    (void)json_object_set_new(root, "old_keys", old_keys);
    (void)json_object_set_new(root, "xla_flags", flags);
    (void)json_object_set_new(root, "xla_flag_bundles", bundles);
}

static json_t *encode_types(unsigned types)
{
    static const char *const names[] = {
        [ADV_KEY_BOOL] = "bool",     [ADV_KEY_INT] = "int",   [ADV_KEY_FLOAT] = "float",
        [ADV_KEY_STRING] = "string", [ADV_KEY_LIST] = "list", [ADV_KEY_OBJECT] = "object",
    };
    json_t *list = json_array();
    for (unsigned type = 0; type < sizeof names / sizeof names[0]; type++)
        if (types & (1u << type)) (void)json_array_append_new(list, json_string(names[type]));
    return list;
}

static json_t *encode_key(const struct adv_catalog_key *key)
{
    json_t *object = json_object();
    adv_encode_set_string(object, "name", key->name);
    (void)json_object_set_new(object, "types", encode_types(key->types));
    (void)json_object_set_new(object, "nullable", json_boolean(key->nullable));
    (void)json_object_set_new(object, "default", adv_json_load_string(key->default_json, JSON_DECODE_ANY));
    if (key->allowed_count > 0) {
        json_t *allowed = json_array();
        for (int i = 0; i < key->allowed_count; i++)
            (void)json_array_append_new(allowed, json_string(key->allowed[i]));
        (void)json_object_set_new(object, "allowed", allowed);
    }
    if (*key->constraints) adv_encode_set_string(object, "constraints", key->constraints);
    if (*key->what) adv_encode_set_string(object, "what", key->what);
    if (*key->note) adv_encode_set_string(object, "note", key->note);
    adv_encode_set_string(object, "group", key->group);
    return object;
}

static json_t *encode_keys(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_keys_count(catalog); i++)
        (void)json_array_append_new(list, encode_key(adv_catalog_key_at(catalog, i)));
    return list;
}

/* A key of today, one MaxText once had, or an XLA flag (with or without its dashes). */
static json_t *encode_key_entry(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    if (key) {
        json_t *object = encode_key(key);
        set_provenance(object, adv_catalog_keys_provenance(catalog));
        return object;
    }
    const struct adv_catalog_old_key *old_key = adv_catalog_old_key(catalog, name);
    if (old_key) {
        json_t *object = json_object();
        adv_encode_set_string(object, "name", old_key->name);
        (void)json_object_set_new(object, "current",
                                  old_key->current ? json_string(old_key->current) : json_null());
        adv_encode_set_string(object, "why", old_key->why);
        return object;
    }
    const struct adv_catalog_flag *flag = adv_catalog_flag(catalog, name + strspn(name, "-"));
    if (!flag) return NULL;
    json_t *object = json_pack("{s:s,s:s,s:s}", "name", flag->name, "type", flag->type, "what", flag->what);
    set_provenance(object, adv_catalog_flags_provenance(catalog));
    return object;
}

static json_t *encode_kernel(enum adv_kernel kernel)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(kernel);
    json_t *object = json_object();
    adv_encode_set_string(object, "name", adv_kernel_name(kernel));
    adv_encode_set_string(object, "what", adv_kernel_info_of(kernel)->what);
    (void)json_object_set_new(object, "shape", adv_kernel_members_describe(kernel, ADV_KERNEL_SHAPE));
    (void)json_object_set_new(object, "tile",
                              family->operation ? json_array() /* XLA tiles it itself */
                                                : adv_kernel_members_describe(kernel, ADV_KERNEL_TILE));
    adv_encode_set_string(object, "search_space", family->space);
    return object;
}

static json_t *encode_kernels(const struct adv_catalog *catalog)
{
    (void)catalog;
    json_t *list = json_array();
    for (int i = 0; i < ADV_KERNEL_COUNT; i++)
        (void)json_array_append_new(list, encode_kernel((enum adv_kernel)i));
    return list;
}

/* Was the kernel measured? A flag among the chip's constants. */
static bool is_measured(const struct adv_constants *constants, enum adv_kernel kernel)
{
    const size_t at = adv_kernel_info_of(kernel)->measured;
    double flag = 0.0;
    if (at != ADV_KERNEL_NEVER_MEASURED) memcpy(&flag, (const char *)constants + at, sizeof flag);
    return flag > 0.0;
}

static json_t *encode_kernel_entry(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) {
        if (strcmp(adv_kernel_name((enum adv_kernel)i), name) != 0) continue;
        json_t *object = encode_kernel((enum adv_kernel)i);
        json_t *measured = json_array();
        for (int c = 0; c < adv_catalog_chips_count(catalog); c++) {
            const struct adv_catalog_chip *chip = adv_catalog_chip_at(catalog, c);
            if (chip->chip.is_tpu && is_measured(&chip->constants, (enum adv_kernel)i))
                (void)json_array_append_new(measured, json_string(chip->chip.name));
        }
        (void)json_object_set_new(object, "measured_on", measured);
        return object;
    }
    return NULL;
}

static const char *attention_name(enum adv_attention_kind attention)
{
    static const char *const names[] = {
        [ADV_ATTENTION_FULL] = "full",
        [ADV_ATTENTION_WINDOW] = "window",
        [ADV_ATTENTION_CHUNKED] = "chunked",
        [ADV_ATTENTION_LINEAR] = "linear",
        [ADV_ATTENTION_COMPRESSED] = "compressed",
    };
    return names[attention];
}

static json_t *encode_layer(const struct adv_model *model, const struct adv_layer *layer)
{
    struct adv_layer_params params = adv_model_layer_params(model, layer);
    json_t *object = json_object();
    adv_encode_set_integer(object, "count", layer->count);
    adv_encode_set_string(object, "attention", attention_name(layer->attention));
    if (layer->window_tokens > 0) adv_encode_set_integer(object, "window_tokens", layer->window_tokens);
    ADV_SET(object, layer, q_heads, kv_heads, head_dim_qk, head_dim_v, mlp_dim, experts);
    if (layer->experts > 0) {
        ADV_SET(object, layer, experts_per_token, moe_mlp_dim, shared_mlp_dim);
    }
    adv_encode_set_integer(object, "layers_per_scan_step", layer->scan_block);
    adv_encode_set_number(object, "params", round(adv_layer_params_total(&params)));
    return object;
}

static json_t *encode_params(const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    const struct {
        const char *name;
        double value;
    } parts[] = {
        {"total", params.total},
        {"active", params.active},
        {"active_matmul_per_token", params.active_matmul_per_token},
        {"embedding", params.embedding},
        {"unembedding", params.unembedding},
        {"positions", params.positions},
        {"attention", params.attention},
        {"dense_ffn", params.dense_ffn},
        {"router", params.router},
        {"routed_experts", params.routed_experts},
        {"shared_experts", params.shared_experts},
        {"norms", params.norms},
        {"other", params.other},
        {"largest_layer", params.largest_layer},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        adv_encode_set_number(object, parts[i].name, round(parts[i].value));
    return object;
}

static json_t *encode_model(const struct adv_catalog_model *info, const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    json_t *object = json_object();
    adv_encode_set_string(object, "name", model->name);
    adv_encode_set_string(object, "decoder_block", adv_decoder_name(model->decoder));
    adv_encode_set_number(object, "total_params", round(params.total));
    adv_encode_set_number(object, "active_params", round(params.active));
    adv_encode_set_number(object, "advertised_total_params", info->advertised_total_b * 1e9);
    adv_encode_set_integer(object, "emb_dim", model->emb_dim);
    adv_encode_set_integer(object, "layers", model->layers_count);
    ADV_SET(object, model, vocab_size, confident);
    if (!model->confident) adv_encode_set_string(object, "caveat", model->caveat);
    set_provenance(object, &info->provenance);
    return object;
}

static json_t *encode_models(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_models_count(catalog); i++) {
        const char *name = adv_catalog_model_name(catalog, i);
        struct adv_model model;
        if (adv_catalog_model(catalog, name, &model, NULL) == ADV_OK)
            (void)json_array_append_new(list, encode_model(adv_catalog_model_info(catalog, name), &model));
    }
    return list;
}

/* Model FLOPs of one token at common sequence lengths, in each convention. */
static json_t *encode_flops(const struct adv_model *model)
{
    static const int64_t lengths[] = {2048, 8192, 32768, 131072};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        double tokens = (double)lengths[i];
        json_t *row = json_object();
        adv_encode_set_integer(row, "seq_len", lengths[i]);
        adv_encode_set_number(row, "causal_half",
                              adv_model_flops(model, 1, lengths[i], ADV_FLOPS_CAUSAL_HALF).total / tokens);
        adv_encode_set_number(row, "full",
                              adv_model_flops(model, 1, lengths[i], ADV_FLOPS_FULL).total / tokens);
        adv_encode_set_number(row, "params_only",
                              adv_model_flops(model, 1, lengths[i], ADV_FLOPS_PARAMS_ONLY).total / tokens);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_model_entry(const struct adv_catalog *catalog, const char *name)
{
    struct adv_model model;
    const struct adv_catalog_model *info = adv_catalog_model_info(catalog, name);
    if (!info || adv_catalog_model(catalog, name, &model, NULL) != ADV_OK) return NULL;
    json_t *object = encode_model(info, &model);
    json_t *layers = json_array();
    for (int i = 0; i < model.layer_kinds_count; i++)
        (void)json_array_append_new(layers, encode_layer(&model, &model.layers[i]));
    (void)json_object_set_new(object, "params", encode_params(&model));
    (void)json_object_set_new(object, "layer_kinds", layers);
    (void)json_object_set_new(object, "model_flops_per_token", encode_flops(&model));
    (void)json_object_set_new(object, "keys", adv_json_load_string(info->keys_json, 0));
    (void)json_object_set_new(object, "pinned_keys", adv_json_load_string(info->pins_json, 0));
    return object;
}

static const struct collection {
    const char *name;
    json_t *(*list)(const struct adv_catalog *catalog);
    json_t *(*entry)(const struct adv_catalog *catalog, const char *name); /* NULL: unknown */
    void (*add)(const struct adv_catalog *catalog, json_t *root);          /* beside the list; may be NULL */
} collections[] = {
    {"models", encode_models, encode_model_entry, NULL},
    {"chips", encode_chips, encode_chip_entry, NULL},
    {"topologies", encode_topologies, encode_topology_entry, add_topologies_source},
    {"kernels", encode_kernels, encode_kernel_entry, NULL},
    {"keys", encode_keys, encode_key_entry, add_key_tables},
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
