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
#include "engine/kernel/family.h"

/* "source", "date", "confidence", "note"? as members of `object`: the pedigree of all its numbers. */
static void set_provenance(json_t *object, const struct adv_provenance *provenance)
{
    ADV_PUT(object, ADV_F(provenance, source), ADV_F(provenance, date), ADV_F(provenance, confidence),
            ADV_M_IF(*provenance->note, "note", provenance->note));
}

/* {"value", "unit", "source", "date", "confidence", "note"?} */
static json_t *encode_sourced(double value, const struct adv_provenance *provenance)
{
    json_t *object = ADV_OBJECT(ADV_M("value", value));
    if (*provenance->unit) ADV_PUT(object, ADV_M("unit", provenance->unit));
    set_provenance(object, provenance);
    return object;
}

static json_t *encode_chip(const struct adv_catalog *catalog, const struct adv_catalog_chip *row)
{
    json_t *object = json_object();
    const char *const *shapes;
    int shapes_count = adv_catalog_shapes(catalog, row->chip.name, &shapes);
    ADV_PUT(object, ADV_F(&row->chip, name), ADV_F(&row->chip, title),
            ADV_M("aliases", adv_encode_strings(row->aliases, row->aliases_count)), ADV_F(&row->chip, is_tpu),
            ADV_F(&row->chip, has_megacore), ADV_F(&row->chip, offloads_collectives),
            ADV_M("topologies", adv_encode_strings(shapes, shapes_count)));
#define ENCODE_FIELD(field, unit, what)                                                                      \
    (void)json_object_set_new(object, #field, encode_sourced(row->chip.field, &row->field##_provenance));
    ADV_CHIP_FIELDS(ENCODE_FIELD)
#undef ENCODE_FIELD
    return object;
}

static json_t *encode_chips(const struct adv_catalog *catalog)
{
    ADV_LIST(list, i, adv_catalog_tables(catalog)->chips_count,
             encode_chip(catalog, &adv_catalog_tables(catalog)->chips[i]));
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
        ADV_PUT(json_object_get(object, fields[i].name), ADV_M("what", json_string(fields[i].what)));
    json_t *constants = json_object();
    for (int i = 0; i < ADV_CATALOG_CONSTANT_FILES; i++) {
        if (!row->constants_json[i]) continue;
        ADV_JSON_OWN json_t *part = adv_json_load_string(row->constants_json[i], 0);
        (void)json_object_update(constants, part);
    }
    ADV_PUT(object, ADV_M("constants", constants));
    return object;
}

static json_t *encode_topology(const struct adv_catalog_topology *row)
{
    ADV_LIST(dims, i, 3, json_integer(row->dims[i]));
    ADV_LIST(wraps, i, 3, json_boolean(row->wraps[i]));
    return ADV_OBJECT(ADV_F(row, name), ADV_F(row, chip), ADV_F(row, topology), ADV_F(row, chips),
                      ADV_F(row, devices), ADV_F(row, hosts), ADV_M("dims", dims), ADV_M("wraps", wraps));
}

static json_t *encode_topologies(const struct adv_catalog *catalog)
{
    ADV_LIST(list, i, adv_catalog_tables(catalog)->topologies_count,
             encode_topology(&adv_catalog_tables(catalog)->topologies[i]));
    return list;
}

static json_t *encode_topology_entry(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_topology *row = adv_catalog_topology(catalog, name);
    if (!row) return NULL;
    json_t *object = encode_topology(row);
    set_provenance(object, &adv_catalog_tables(catalog)->topologies_provenance);
    return object;
}

static void add_topologies_source(const struct adv_catalog *catalog, json_t *root)
{
    set_provenance(root, &adv_catalog_tables(catalog)->topologies_provenance);
}

static json_t *encode_old_key(const struct adv_catalog_old_key *row)
{
    return ADV_OBJECT(ADV_F(row, name), ADV_F(row, current), ADV_F(row, why));
}

static json_t *encode_flag(const struct adv_catalog_flag *row)
{
    return ADV_OBJECT(ADV_F(row, name), ADV_F(row, type), ADV_F(row, what));
}

static json_t *encode_bundle(const struct adv_catalog_bundle *row)
{
    return ADV_OBJECT(ADV_F(row, name), ADV_F(row, purpose), ADV_F(row, source),
                      ADV_M("chips", adv_encode_strings(row->chips, row->chips_count)),
                      ADV_M("flags", adv_encode_strings(row->flags, row->flags_count)));
}

/* Beside MaxText's keys: what keys were called, XLA flags, and flags that belong together. */
static void add_key_tables(const struct adv_catalog *catalog, json_t *root)
{
    ADV_LIST(old_keys, i, adv_catalog_tables(catalog)->old_keys_count,
             encode_old_key(&adv_catalog_tables(catalog)->old_keys[i]));
    ADV_LIST(flags, i, adv_catalog_tables(catalog)->flags_count,
             encode_flag(&adv_catalog_tables(catalog)->flags[i]));
    ADV_LIST(bundles, i, adv_catalog_tables(catalog)->bundles_count,
             encode_bundle(&adv_catalog_tables(catalog)->bundles[i]));
    set_provenance(root, &adv_catalog_tables(catalog)->keys_provenance);
    ADV_PUT(root, ADV_M("old_keys", old_keys), ADV_M("xla_flags", flags), ADV_M("xla_flag_bundles", bundles));
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
    return ADV_OBJECT(
        ADV_F(key, name), ADV_M("types", encode_types(key->types)), ADV_F(key, nullable),
        ADV_M("default", adv_json_load_string(key->default_json, JSON_DECODE_ANY)),
        ADV_M_IF(key->allowed_count > 0, "allowed", adv_encode_strings(key->allowed, key->allowed_count)),
        ADV_M_IF(*key->constraints, "constraints", key->constraints), ADV_M_IF(*key->what, "what", key->what),
        ADV_M_IF(*key->note, "note", key->note), ADV_F(key, group));
}

static json_t *encode_keys(const struct adv_catalog *catalog)
{
    ADV_LIST(list, i, adv_catalog_tables(catalog)->keys_count,
             encode_key(&adv_catalog_tables(catalog)->keys[i]));
    return list;
}

/* A key of today, one MaxText once had, or an XLA flag (with or without its dashes). */
static json_t *encode_key_entry(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    if (key) {
        json_t *object = encode_key(key);
        set_provenance(object, &adv_catalog_tables(catalog)->keys_provenance);
        return object;
    }
    const struct adv_catalog_old_key *old_key = adv_catalog_old_key(catalog, name);
    if (old_key) return encode_old_key(old_key);
    const struct adv_catalog_flag *flag = adv_catalog_flag(catalog, name + strspn(name, "-"));
    if (!flag) return NULL;
    json_t *object = encode_flag(flag);
    set_provenance(object, &adv_catalog_tables(catalog)->flags_provenance);
    return object;
}

static json_t *encode_kernel(enum adv_kernel kernel)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(kernel);
    const bool by_xla = family->operation != NULL; /* which tiles it itself */
    return ADV_OBJECT(
        ADV_M("name", adv_kernel_name(kernel)), ADV_M("what", adv_kernel_info_of(kernel)->what),
        ADV_M("shape", adv_kernel_members_describe(kernel, ADV_KERNEL_SHAPE)),
        ADV_M("tile", by_xla ? json_array() : adv_kernel_members_describe(kernel, ADV_KERNEL_TILE)),
        ADV_M("search_space", family->space));
}

static json_t *encode_kernels(const struct adv_catalog *catalog)
{
    (void)catalog;
    ADV_LIST(list, i, ADV_KERNEL_COUNT, encode_kernel((enum adv_kernel)i));
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
        for (int c = 0; c < adv_catalog_tables(catalog)->chips_count; c++) {
            const struct adv_catalog_chip *chip = &adv_catalog_tables(catalog)->chips[c];
            if (chip->chip.is_tpu && is_measured(&chip->constants, (enum adv_kernel)i))
                (void)json_array_append_new(measured, json_string(chip->chip.name));
        }
        ADV_PUT(object, ADV_M("measured_on", measured));
        return object;
    }
    return NULL;
}

static json_t *encode_layer(const struct adv_model *model, const struct adv_layer *layer)
{
    const struct adv_layer_params params = adv_model_layer_params(model, layer);
    const bool is_moe = layer->experts > 0;
    return ADV_OBJECT(ADV_F(layer, count), ADV_M("attention", adv_encode_attention(layer)),
                      ADV_M_IF(layer->window_tokens > 0, "window_tokens", layer->window_tokens),
                      ADV_F(layer, q_heads), ADV_F(layer, kv_heads), ADV_F(layer, head_dim_qk),
                      ADV_F(layer, head_dim_v), ADV_F(layer, mlp_dim), ADV_F(layer, experts),
                      ADV_M_IF(is_moe, "experts_per_token", layer->experts_per_token),
                      ADV_M_IF(is_moe, "moe_mlp_dim", layer->moe_mlp_dim),
                      ADV_M_IF(is_moe, "shared_mlp_dim", layer->shared_mlp_dim),
                      ADV_M("layers_per_scan_step", layer->scan_block),
                      ADV_M("params", round(adv_layer_params_total(&params))));
}

static json_t *encode_params(const struct adv_model *model)
{
#define COUNT(field) ADV_M(#field, round(params.field))
    const struct adv_model_params params = adv_model_params(model);
    return ADV_OBJECT(COUNT(total), COUNT(active), COUNT(active_matmul_per_token), COUNT(embedding),
                      COUNT(unembedding), COUNT(positions), COUNT(attention), COUNT(dense_ffn), COUNT(router),
                      COUNT(routed_experts), COUNT(shared_experts), COUNT(norms), COUNT(other),
                      COUNT(largest_layer));
#undef COUNT
}

static json_t *encode_model(const struct adv_catalog_model *info, const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    json_t *object = ADV_OBJECT(
        ADV_M("name", model->name), ADV_M("decoder_block", adv_decoder_name(model->decoder)),
        ADV_M("total_params", round(params.total)), ADV_M("active_params", round(params.active)),
        ADV_M("advertised_total_params", info->advertised_total_b * 1e9), ADV_M("emb_dim", model->emb_dim),
        ADV_M("layers", model->layers_count), ADV_F(model, vocab_size), ADV_F(model, confident),
        ADV_M_IF(!model->confident, "caveat", model->caveat));
    set_provenance(object, &info->provenance);
    return object;
}

static json_t *encode_models(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        struct adv_model model;
        if (adv_catalog_model(catalog, name, &model, NULL) == ADV_OK)
            (void)json_array_append_new(list, encode_model(adv_catalog_model_info(catalog, name), &model));
    }
    return list;
}

/* Model FLOPs of one token of a sequence of so many, in each convention. */
static json_t *encode_flops(const struct adv_model *model, int64_t tokens)
{
#define PER_TOKEN(convention) (adv_model_flops(model, 1, tokens, convention).total / (double)tokens)
    return ADV_OBJECT(ADV_M("seq_len", tokens), ADV_M("causal_half", PER_TOKEN(ADV_FLOPS_CAUSAL_HALF)),
                      ADV_M("full", PER_TOKEN(ADV_FLOPS_FULL)),
                      ADV_M("params_only", PER_TOKEN(ADV_FLOPS_PARAMS_ONLY)));
#undef PER_TOKEN
}

static json_t *encode_model_entry(const struct adv_catalog *catalog, const char *name)
{
    static const int64_t lengths[] = {2048, 8192, 32768, 131072};
    struct adv_model model;
    const struct adv_catalog_model *info = adv_catalog_model_info(catalog, name);
    if (!info || adv_catalog_model(catalog, name, &model, NULL) != ADV_OK) return NULL;
    json_t *object = encode_model(info, &model);
    ADV_LIST(layers, i, model.layer_kinds_count, encode_layer(&model, &model.layers[i]));
    ADV_LIST(flops, i, (int)(sizeof lengths / sizeof *lengths), encode_flops(&model, lengths[i]));
    ADV_PUT(object, ADV_M("params", encode_params(&model)), ADV_M("layer_kinds", layers),
            ADV_M("model_flops_per_token", flops), ADV_M("keys", adv_json_load_string(info->keys_json, 0)),
            ADV_M("pinned_keys", adv_json_load_string(info->pins_json, 0)));
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
    ADV_JSON_OWN json_t *list = collection->list(catalog);
    for (size_t i = 0; i < json_array_size(list) && count < 1024; i++)
        names[count++] = json_string_value(json_object_get(json_array_get(list, i), "name"));
    const char *nearest = adv_text_nearest(name, names, count);
    if (nearest)
        (void)snprintf(hint, sizeof hint, "did you mean `%s`?", nearest);
    else
        (void)snprintf(hint, sizeof hint, "GET /v1/catalog/%s lists them", collection->name);
    return adv_err_add(err, ADV_E_NOT_FOUND, "", hint, "%s has no \"%.80s\"", collection->name, name);
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
    ADV_PUT(root, ADV_M("engine", adv_encode_engine(catalog)));
    *answer = (struct adv_answer){.step_time_s = (double)NAN, .hbm_bytes_per_device = (double)NAN};
    answer->json = adv_encode_text(root, &answer->json_bytes);
    return answer->json ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
}
