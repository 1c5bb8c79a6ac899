/* Chips with their constants, models and slice shapes. */
#include "engine/json/decode_catalog.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/maxtext/flags.h"
#include "engine/json/decode_model.h"
#include "engine/spec/plan.h"
#include "engine/spec/request.h"

static const struct field {
    const char *name, *unit;
    size_t value_offset, provenance_offset; /* in struct adv_catalog_chip */
} chip_fields[] = {
#define CHIP_FIELD(name, unit, what)                                                                         \
    {#name, unit, offsetof(struct adv_catalog_chip, chip.name),                                              \
     offsetof(struct adv_catalog_chip, name##_provenance)},
    ADV_CHIP_FIELDS(CHIP_FIELD)
#undef CHIP_FIELD
};

/* The date of a source, or NULL when the file's table does not have it. */
static const char *source_row(const struct adv_catalog_file *file, const char *id, const char **text)
{
    const json_t *row = json_object_get(json_object_get(file->root, "sources"), id);
    *text = json_string_value(json_array_get(row, 0));
    return *text ? json_string_value(json_array_get(row, 1)) : NULL;
}

/* The value of `name`, a row [value, source, confidence, note?]; NULL and a finding when it is none. */
static json_t *sourced(const struct adv_catalog_file *file, const json_t *object, const char *at,
                       const char *name)
{
    const char *text = NULL;
    const json_t *row = json_object_get(object, name);
    const char *id = json_string_value(json_array_get(row, 1));
    if (id && source_row(file, id, &text) && json_is_string(json_array_get(row, 2)))
        return json_array_get(row, 0);
    if (row)
        ADV_REFUSE(file->err, ADV_AT(at, name), NULL,
                   "must be [value, source of the table, confidence, note?]");
    return NULL;
}

/* {flag: value} of a recipe; flags must be some that change a prediction. */
static void decode_recipe_flags(const struct adv_catalog_file *file, const json_t *recipe, const char *at,
                                const char *name, struct adv_flags *flags)
{
    json_t *given = sourced(file, recipe, at, name);
    for (struct adv_json_walk entry = {.in = given}; adv_json_next_member(&entry);) {
        struct adv_flags all, set, unset;
        adv_flags_unset(&set);
        all = unset = set;
        if (json_is_boolean(entry.value)) memset(&all, json_is_true(entry.value), sizeof all);
        all.scoped_vmem_limit_kib = 0;
        if (json_is_integer(entry.value)) all.scoped_vmem_limit_kib = (int)json_integer_value(entry.value);
        if (adv_flags_copy(entry.key, &all, &set) && memcmp(&set, &unset, sizeof set) != 0) {
            adv_flags_overlay(flags, &set);
            continue;
        }
        ADV_REFUSE(file->err, ADV_AT(at, name), NULL,
                   "%.80s is no flag that changes a prediction, or has a value of another kind", entry.key);
    }
}

/* Members that a recipe does not have stay unset. */
static void decode_recipe(const struct adv_catalog_file *file, const json_t *row, const char *row_at,
                          struct adv_chip_recipe *recipe)
{
    const char *at = ADV_AT(row_at, "recipe");
    const json_t *object = adv_json_object(row, row_at, "recipe", ADV_JSON_OPTIONAL, file->err);
    adv_flags_unset(&recipe->flags);
    (void)adv_json_known_members(object, at,
                                 ADV_JSON_NAMES("flags", "flags_with_experts", "tokamax_splash",
                                                "fixed_fp8_scales", "embedding_lookups", "overlap_gradients"),
                                 file->err);
    decode_recipe_flags(file, object, at, "flags", &recipe->flags);
    recipe->flags_with_experts = recipe->flags;
    decode_recipe_flags(file, object, at, "flags_with_experts", &recipe->flags_with_experts);
    recipe->tokamax_splash = json_is_true(sourced(file, object, at, "tokamax_splash"));
    recipe->fixed_fp8_scales = json_is_true(sourced(file, object, at, "fixed_fp8_scales"));
    recipe->embedding_lookups = json_is_true(sourced(file, object, at, "embedding_lookups"));
    recipe->overlap_gradients = json_is_true(sourced(file, object, at, "overlap_gradients"));
}

/* Nodes that are not given are called by the chip's name. */
static void decode_nodes(const struct adv_catalog_file *file, const json_t *row, const char *row_at,
                         const char *name, struct adv_chip_nodes *nodes)
{
    const char *label = name, *machine = name, *xpk = name;
    int splits_hosts = 0;
    json_t *value = sourced(file, row, row_at, "nodes");
    if (value && json_unpack(value, "{s:s,s:s,s:b,s:s,s:i!}", "label", &label, "machine", &machine,
                             "splits_hosts", &splits_hosts, "xpk", &xpk, "xpk_chips", &nodes->xpk_chips))
        ADV_REFUSE(file->err, ADV_AT(row_at, "nodes"), NULL,
                   "must be {label, machine, splits_hosts, xpk, xpk_chips}");
    (void)snprintf(nodes->label, sizeof nodes->label, "%s", label);
    (void)snprintf(nodes->machine, sizeof nodes->machine, "%s", machine);
    (void)snprintf(nodes->xpk, sizeof nodes->xpk, "%s", xpk);
    nodes->splits_hosts = splits_hosts;
}

/* Shapes of slices, "2x2x1" or "2x4". */
static void decode_any_mesh_slices(const struct adv_catalog_file *file, const json_t *row, const char *at,
                                   int slices[ADV_CHIP_ANY_MESH_SLICES_MAX][3])
{
    const json_t *list = sourced(file, row, at, "any_mesh_slices");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *shape = json_string_value(json_array_get(list, i));
        const int axes = shape && strchr(shape, 'x') != strrchr(shape, 'x') ? 3 : 2;
        if (i >= ADV_CHIP_ANY_MESH_SLICES_MAX || !shape || !adv_cluster_parse_shape(shape, axes, slices[i])) {
            ADV_REFUSE(file->err, ADV_AT(at, "any_mesh_slices"), NULL, "must list at most %d shapes",
                       ADV_CHIP_ANY_MESH_SLICES_MAX);
            return;
        }
    }
}

/* [value, source, confidence, note?] */
static void decode_field(const struct adv_catalog_file *file, const json_t *fields, const char *at,
                         const struct field *field, struct adv_catalog_chip *chip)
{
    const json_t *row = json_object_get(fields, field->name);
    const json_t *value = json_array_get(row, 0);
    const char *id = json_string_value(json_array_get(row, 1));
    const char *confidence = json_string_value(json_array_get(row, 2));
    const char *text = NULL;
    const char *date = id ? source_row(file, id, &text) : NULL;
    if (!(json_is_number(value) || json_is_null(value)) || !date || !confidence) {
        ADV_REFUSE(file->err, ADV_AT(at, field->name), NULL,
                   "must be [value or null, source of the table, confidence, note?]");
        return;
    }
    double number = json_is_null(value) ? (double)NAN : json_number_value(value);
    memcpy((char *)chip + field->value_offset, &number, sizeof number);
    struct adv_provenance provenance = {field->unit, text, date, confidence,
                                        json_string_value(json_array_get(row, 3))};
    ADV_CATALOG_KEEP(file, &provenance.source, &provenance.date, &provenance.confidence, &provenance.note);
    memcpy((char *)chip + field->provenance_offset, &provenance, sizeof provenance);
}

static void decode_chip(const struct adv_catalog_file *file, const json_t *row, const char *at,
                        struct adv_catalog_chip *chip)
{
    const char *name = "", *title = "";
    (void)adv_json_string(row, at, "name", ADV_JSON_REQUIRED, &name, file->err);
    (void)adv_json_string(row, at, "title", ADV_JSON_REQUIRED, &title, file->err);
    (void)snprintf(chip->chip.name, sizeof chip->chip.name, "%s", name);
    (void)snprintf(chip->chip.title, sizeof chip->chip.title, "%s", title);
    (void)adv_json_bool(row, at, "is_tpu", ADV_JSON_REQUIRED, &chip->chip.is_tpu, file->err);
    (void)adv_json_bool(row, at, "has_megacore", ADV_JSON_REQUIRED, &chip->chip.has_megacore, file->err);
    (void)adv_json_bool(row, at, "offloads_collectives", ADV_JSON_REQUIRED, &chip->chip.offloads_collectives,
                        file->err);
    const json_t *aliases = adv_json_array(row, at, "aliases", ADV_JSON_REQUIRED, file->err);
    if (aliases) chip->aliases = adv_catalog_keep_list(file, aliases, at, &chip->aliases_count);
    const json_t *fields = adv_json_object(row, at, "fields", ADV_JSON_REQUIRED, file->err);
    for (size_t i = 0; fields && i < sizeof chip_fields / sizeof chip_fields[0]; i++)
        decode_field(file, fields, ADV_AT(at, "fields"), &chip_fields[i], chip);
    chip->chip.whole_host_copies = json_is_true(sourced(file, row, at, "whole_host_copies"));
    decode_any_mesh_slices(file, row, at, chip->chip.any_mesh_slices);
    decode_nodes(file, row, at, name, &chip->chip.nodes);
    decode_recipe(file, row, at, &chip->chip.recipe);
    chip->chip.pcie_published_bytes_per_s_per_chip = chip->chip.pcie_bytes_per_s_per_chip;
}

void adv_decode_catalog_chips(const struct adv_catalog_file *file)
{
    const json_t *list = adv_json_array(file->root, file->at, "chips", ADV_JSON_REQUIRED, file->err);
    size_t count = json_array_size(list);
    const char *at = ADV_AT(file->at, "chips");
    if (count > ADV_CATALOG_CHIPS_MAX) {
        ADV_REFUSE(file->err, ADV_AT_INDEX(at, count), NULL, "too many chips");
        return;
    }
    struct adv_catalog_chip *chips = adv_catalog_rows(file, count, sizeof *chips);
    if (!chips) return;
    for (size_t i = 0; i < count; i++)
        decode_chip(file, json_array_get(list, i), ADV_AT_INDEX(at, i), &chips[i]);
    file->catalog->tables.chips = file->catalog->chips = chips;
    file->catalog->tables.chips_count = (int)count;
}

static const struct constant {
    const char *name, *unit;
    size_t offset;
}
#define CONSTANT(name, unit, what) {#name, unit, offsetof(struct adv_constants, name)},
kernel_constants[] = {ADV_KERNEL_CONSTANTS(CONSTANT)},
    link_constants[] = {ADV_LINK_CONSTANTS(CONSTANT)}, step_constants[] = {ADV_STEP_CONSTANTS(CONSTANT)},
    memory_constants[] = {ADV_MEMORY_CONSTANTS(CONSTANT)};
#undef CONSTANT

/* Which constants a file must hold, and the flag that says they were derived for a chip. */
static const struct constants_file {
    const char *at;
    const struct constant *rows;
    size_t rows_count;
    const char *flag; /* NULL = the file has none */
    size_t flag_offset;
} constants_files[] = {
    {"/kernel_constants.json", kernel_constants, sizeof kernel_constants / sizeof kernel_constants[0], NULL,
     0},
    {"/link_constants.json", link_constants, sizeof link_constants / sizeof link_constants[0], NULL, 0},
    {"/step_constants.json", step_constants, sizeof step_constants / sizeof step_constants[0],
     "steps_extrapolated", offsetof(struct adv_constants, steps_extrapolated)},
    {"/memory_constants.json", memory_constants, sizeof memory_constants / sizeof memory_constants[0], NULL,
     0},
};

/* Constants of which a prediction says when they are not fitted. */
static const struct {
    size_t constant, assumed;
} told[] = {
#define TOLD(way)                                                                                            \
    {                                                                                                        \
        offsetof(struct adv_constants, overlap_##way##_exposed_frac),                                        \
            offsetof(struct adv_constants, overlap_##way##_assumed)                                          \
    }
    TOLD(offload), TOLD(fusion), TOLD(async), TOLD(none)
#undef TOLD
};

static void tell_assumed(const struct constant *constant, const char *kind, struct adv_constants *constants)
{
    const bool assumed = strcmp(kind, "fitted") != 0 && strcmp(kind, "measured") != 0;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (told[i].constant == constant->offset)
            memcpy((char *)constants + told[i].assumed, &assumed, sizeof assumed);
}

static void decode_constant(const struct adv_catalog_file *file, const json_t *row, const char *at,
                            const struct constant *constant, struct adv_constants *constants)
{
    const char *pointer = ADV_AT(at, constant->name);
    const json_t *value = json_object_get(row, "value");
    const char *unit = json_string_value(json_object_get(row, "unit"));
    if (!row || !json_is_number(value)) {
        ADV_REFUSE(file->err, pointer, NULL, "the constant `%s` is missing or has no value", constant->name);
        return;
    }
    if (!unit || strcmp(unit, constant->unit) != 0)
        ADV_REFUSE(file->err, pointer, NULL, "the constant `%s` must be in %s, not %s", constant->name,
                   constant->unit, unit ? unit : "nothing");
    const json_t *kind = json_object_get(row, "kind");
    if (!json_is_string(kind) || !json_object_get(row, "source"))
        ADV_REFUSE(file->err, pointer, NULL, "the constant `%s` needs `kind` and `source`", constant->name);
    double number = json_number_value(value);
    memcpy((char *)constants + constant->offset, &number, sizeof number);
    if (json_is_string(kind)) tell_assumed(constant, json_string_value(kind), constants);
}

void adv_decode_catalog_constants(const struct adv_catalog_file *file)
{
    for (size_t i = 0; i < sizeof constants_files / sizeof constants_files[0]; i++) {
        const struct constants_file *known = &constants_files[i];
        if (strcmp(known->at, file->at) != 0) continue;
        for (int c = 0; c < file->catalog->tables.chips_count; c++) {
            struct adv_catalog_chip *chip = &file->catalog->chips[c];
            if (!chip->chip.is_tpu) continue;
            const char *at = ADV_AT(file->at, chip->chip.name);
            const json_t *rows =
                adv_json_object(file->root, file->at, chip->chip.name, ADV_JSON_REQUIRED, file->err);
            if (!rows) continue;
            bool flag = false;
            if (known->flag && adv_json_bool(rows, at, known->flag, ADV_JSON_OPTIONAL, &flag, file->err))
                memcpy((char *)&chip->constants + known->flag_offset, &flag, sizeof flag);
            chip->constants_json[i] = adv_catalog_keep_json(file, rows);
            for (size_t k = 0; k < known->rows_count; k++)
                decode_constant(file, json_object_get(rows, known->rows[k].name), at, &known->rows[k],
                                &chip->constants);
        }
    }
}

/* What MaxText's file of the model sets: `pins`, its architecture in `keys`, and `others`, which change
 * nothing here (NULL: none). */
static void keep_sets(const struct adv_catalog_file *file, const json_t *pins, const json_t *keys,
                      const json_t *others, struct adv_catalog_model *model)
{
    enum { OBJECTS = 3 };
    const json_t *const objects[OBJECTS] = {pins, keys, others};
    const size_t room = json_object_size(pins) + json_object_size(keys) + json_object_size(others);
    struct adv_config_entry *entries = adv_catalog_rows(file, room, sizeof *entries);
    model->sets = entries;
    model->sets_count = 0;
    for (int i = 0; entries && i < OBJECTS; i++)
        for (struct adv_json_walk entry = {.in = objects[i]}; adv_json_next_member(&entry);)
            entries[model->sets_count++] = (struct adv_config_entry){
                adv_catalog_keep(file, entry.key), adv_catalog_keep_json(file, entry.value)};
}

/* The settings of a model's own file that decide which plans are legal. */
static void decode_model_limits(const json_t *pins, struct adv_model_keys *keys)
{
    for (struct adv_json_walk name = {.in = json_object_get(pins, "mesh_axes")}; adv_json_next(&name);) {
        const char *axis = json_string_value(name.value);
        for (int i = 0; axis && i < ADV_AXIS_COUNT; i++)
            if (strcmp(axis, adv_axis_mesh((enum adv_axis)i)) == 0) keys->mesh_axes |= 1u << i;
    }
    keys->is_multimodal = json_is_true(json_object_get(pins, "use_multimodal"));
    keys->has_audio = json_is_true(json_object_get(pins, "use_audio"));
    keys->has_mrope = json_is_true(json_object_get(pins, "use_mrope"));
    keys->splits_batch = json_is_true(json_object_get(pins, "use_batch_split_schedule"));
    keys->has_deepstack = json_array_size(json_object_get(pins, "deepstack_visual_indexes_for_vit")) > 0;
}

static void decode_catalog_model(const struct adv_catalog_file *file, const json_t *row, const char *at,
                                 int index)
{
    struct adv_catalog_model *model = &file->catalog->models[index];
    struct adv_model_keys *keys = &file->catalog->model_keys[index];
    const char *name = "", *source = "", *confidence = "", *note = "", *text = NULL;
    (void)adv_json_string(row, at, "name", ADV_JSON_REQUIRED, &name, file->err);
    (void)adv_json_string(row, at, "source", ADV_JSON_REQUIRED, &source, file->err);
    (void)adv_json_string(row, at, "confidence", ADV_JSON_REQUIRED, &confidence, file->err);
    (void)adv_json_string(row, at, "note", ADV_JSON_OPTIONAL, &note, file->err);
    const char *date = source_row(file, source, &text);
    if (!date) ADV_REFUSE(file->err, at, NULL, "source `%s` is not in the table", source);
    model->name = name;
    model->provenance = (struct adv_provenance){"", text, date, confidence, note};
    ADV_CATALOG_KEEP(file, &model->name, &model->provenance.source, &model->provenance.date,
                     &model->provenance.confidence, &model->provenance.note);
    model->advertised_total_b = (double)NAN;
    (void)adv_json_number(row, at, "advertised_total_b", ADV_JSON_OPTIONAL, 0, 1e6,
                          &model->advertised_total_b, file->err);
    const json_t *pins = adv_json_object(row, at, "pins", ADV_JSON_REQUIRED, file->err);
    model->pins_json = adv_catalog_keep_json(file, pins);
    model->keys_json = adv_catalog_keep_json(file, json_object_get(row, "keys"));
    const json_t *others = adv_json_object(row, at, "others", ADV_JSON_OPTIONAL, file->err);
    keep_sets(file, pins, json_object_get(row, "keys"), others, model);
    if (adv_decode_model_keys(json_object_get(row, "keys"), ADV_AT(at, "keys"), keys, file->err, file->err))
        return;
    decode_model_limits(pins, keys);
    (void)snprintf(keys->name, sizeof keys->name, "%s", name);
    const char *maxtext_name = name; /* what MaxText's model_name takes, where it is another */
    (void)adv_json_string(row, at, "maxtext_name", ADV_JSON_OPTIONAL, &maxtext_name, file->err);
    (void)snprintf(keys->maxtext_name, sizeof keys->maxtext_name, "%s", maxtext_name);
    bool takes_pictures = false; /* MaxText asks it of its own names alone */
    (void)adv_json_bool(row, at, "takes_pictures", ADV_JSON_OPTIONAL, &takes_pictures, file->err);
    keys->text_only = maxtext_name[0] != '\0' && !takes_pictures;
}

/* [name, why] */
static void decode_unmodelled(const struct adv_catalog_file *file)
{
    struct adv_catalog *catalog = file->catalog;
    const json_t *list = adv_json_array(file->root, file->at, "unmodelled", ADV_JSON_OPTIONAL, file->err);
    if (!list) return;
    catalog->unmodelled = adv_catalog_rows(file, json_array_size(list), sizeof *catalog->unmodelled);
    for (struct adv_json_walk row = {.in = list}; catalog->unmodelled && adv_json_next(&row);) {
        const char *name = json_string_value(json_array_get(row.value, 0));
        const char *why = json_string_value(json_array_get(row.value, 1));
        if (!name || !why) {
            ADV_REFUSE(file->err,
                       ADV_AT_INDEX(ADV_AT(file->at, "unmodelled"), (size_t)catalog->unmodelled_count), NULL,
                       "a row holds a name and why there is no model of it");
            return;
        }
        catalog->unmodelled[catalog->unmodelled_count++] =
            (struct adv_catalog_unmodelled){adv_catalog_keep(file, name), adv_catalog_keep(file, why)};
    }
}

void adv_decode_catalog_models(const struct adv_catalog_file *file)
{
    decode_unmodelled(file);
    struct adv_catalog *catalog = file->catalog;
    const json_t *list = adv_json_array(file->root, file->at, "models", ADV_JSON_REQUIRED, file->err);
    size_t count = json_array_size(list);
    catalog->models = adv_catalog_rows(file, count, sizeof *catalog->models);
    catalog->model_keys = adv_catalog_rows(file, count, sizeof *catalog->model_keys);
    const char **names = adv_catalog_rows(file, count, sizeof *names);
    if (!catalog->models || !catalog->model_keys || !names) return;
    for (size_t i = 0; i < count; i++) {
        const char *at = ADV_AT_INDEX(ADV_AT(file->at, "models"), i);
        decode_catalog_model(file, json_array_get(list, i), at, (int)i);
        names[i] = catalog->models[i].name;
    }
    catalog->tables.model_names = names;
    catalog->tables.models_count = (int)count;
}

/* [name, chip, topology, devices, chips, hosts, wraps as "110"] */
static bool decode_topology(const struct adv_catalog_file *file, json_t *row, void *element)
{
    struct adv_catalog_topology *topology = element;
    const char *wraps;
    int *dims = topology->dims;
    if (json_unpack(row, "[s,s,s,i,i,i,s!]", &topology->name, &topology->chip, &topology->topology,
                    &topology->devices, &topology->chips, &topology->hosts, &wraps) != 0)
        return false;
    dims[0] = dims[1] = dims[2] = 1;
    if (sscanf(topology->topology, "%dx%dx%d", &dims[0], &dims[1], &dims[2]) < 2 || strlen(wraps) != 3)
        return false;
    ADV_CATALOG_KEEP(file, &topology->name, &topology->chip, &topology->topology);
    for (int axis = 0; axis < 3; axis++) topology->wraps[axis] = wraps[axis] == '1';
    return true;
}

/* Rows of one chip are adjacent and ordered by size. */
static void list_shapes(const struct adv_catalog_file *file)
{
    struct adv_catalog *catalog = file->catalog;
    for (int i = 0; i < catalog->tables.topologies_count; i++) {
        const struct adv_catalog_topology *row = &catalog->tables.topologies[i];
        struct adv_catalog_shape_list *last =
            catalog->shape_lists_count > 0 ? &catalog->shape_lists[catalog->shape_lists_count - 1] : NULL;
        if (!last || strcmp(last->chip, row->chip) != 0) {
            if (catalog->shape_lists_count == ADV_CATALOG_CHIPS_MAX) return;
            last = &catalog->shape_lists[catalog->shape_lists_count++];
            last->chip = row->chip;
            last->shapes =
                adv_catalog_rows(file, (size_t)catalog->tables.topologies_count, sizeof *last->shapes);
            if (!last->shapes) return;
        }
        last->shapes[last->count++] = row->topology;
    }
}

void adv_decode_catalog_topologies(const struct adv_catalog_file *file)
{
    struct adv_catalog_tables *tables = &file->catalog->tables;
    tables->topologies_provenance = adv_catalog_file_provenance(file);
    tables->topologies = adv_catalog_decode_rows(
        file, file->root, "rows", "[name, chip, topology, devices, chips, hosts, wraps]",
        sizeof *tables->topologies, decode_topology, &tables->topologies_count);
    list_shapes(file);
}
