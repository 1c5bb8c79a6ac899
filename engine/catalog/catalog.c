#include "engine/catalog/catalog_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/text.h"

void adv_catalog_free(struct adv_catalog *catalog)
{
    if (!catalog) return;
    adv_arena_free(&catalog->arena);
    free(catalog);
}

const char *adv_catalog_hash(const struct adv_catalog *catalog)
{
    return catalog->hash;
}

const char *adv_catalog_calibration(const struct adv_catalog *catalog)
{
    return catalog->calibration;
}

int adv_catalog_chips_count(const struct adv_catalog *catalog)
{
    return catalog->chips_count;
}

const struct adv_catalog_chip *adv_catalog_chip_at(const struct adv_catalog *catalog, int index)
{
    return &catalog->chips[index];
}

const struct adv_catalog_chip *adv_catalog_chip(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < catalog->chips_count; i++) {
        const struct adv_catalog_chip *row = &catalog->chips[i];
        if (strcasecmp(row->chip.name, name) == 0) return row;
        for (int j = 0; j < row->aliases_count; j++)
            if (strcasecmp(row->aliases[j], name) == 0) return row;
    }
    return NULL;
}

int adv_catalog_models_count(const struct adv_catalog *catalog)
{
    return catalog->models_count;
}

const char *adv_catalog_model_name(const struct adv_catalog *catalog, int index)
{
    return catalog->model_names[index];
}

/* By name; "-Instruct" after it changes nothing, as in MaxText. */
static int model_index(const struct adv_catalog *catalog, const char *name)
{
    static const char tuned[] = "-Instruct";
    size_t length = strlen(name);
    if (length > strlen(tuned) && strcmp(name + length - strlen(tuned), tuned) == 0) length -= strlen(tuned);
    for (int i = 0; i < catalog->models_count; i++) {
        const char *known = catalog->model_names[i];
        if (strcmp(known, name) == 0 || (strncmp(known, name, length) == 0 && known[length] == '\0'))
            return i;
    }
    return -1;
}

const struct adv_catalog_model *adv_catalog_model_info(const struct adv_catalog *catalog, const char *name)
{
    int index = model_index(catalog, name);
    return index < 0 ? NULL : &catalog->models[index];
}

const struct adv_model_keys *adv_catalog_model_keys(const struct adv_catalog *catalog, const char *name)
{
    int index = model_index(catalog, name);
    return index < 0 ? NULL : &catalog->model_keys[index];
}

adv_code adv_catalog_model(const struct adv_catalog *catalog, const char *name, struct adv_model *model,
                           adv_err *err)
{
    int index = model_index(catalog, name);
    if (index >= 0) return adv_model_build(&catalog->model_keys[index], "/model", model, err);
    const char *nearest = adv_text_nearest(name, catalog->model_names, catalog->models_count);
    char hint[ADV_LIMIT_DETAIL] =
        "GET /v1/catalog/models lists them; own models are given as an object of MaxText keys";
    if (nearest) (void)snprintf(hint, sizeof hint, "did you mean `%s`?", nearest);
    return adv_err_add(err, ADV_E_NOT_FOUND, "/model", hint, "the catalog has no model \"%.80s\"", name);
}

int adv_catalog_topologies_count(const struct adv_catalog *catalog)
{
    return catalog->topologies_count;
}

const struct adv_catalog_topology *adv_catalog_topology_at(const struct adv_catalog *catalog, int index)
{
    return &catalog->topologies[index];
}

const struct adv_catalog_topology *adv_catalog_topology(const struct adv_catalog *catalog,
                                                        const char *compile_topology)
{
    for (int i = 0; i < catalog->topologies_count; i++)
        if (strcmp(catalog->topologies[i].name, compile_topology) == 0) return &catalog->topologies[i];
    return NULL;
}

int adv_catalog_shapes(const struct adv_catalog *catalog, const char *chip, const char *const **shapes)
{
    *shapes = NULL;
    for (int i = 0; i < catalog->shape_lists_count; i++) {
        if (strcmp(catalog->shape_lists[i].chip, chip) != 0) continue;
        *shapes = (const char *const *)catalog->shape_lists[i].shapes;
        return catalog->shape_lists[i].count;
    }
    return 0;
}

const struct adv_provenance *adv_catalog_topologies_provenance(const struct adv_catalog *catalog)
{
    return &catalog->topologies_provenance;
}

const struct adv_provenance *adv_catalog_keys_provenance(const struct adv_catalog *catalog)
{
    return &catalog->keys_provenance;
}

const struct adv_provenance *adv_catalog_flags_provenance(const struct adv_catalog *catalog)
{
    return &catalog->flags_provenance;
}

int adv_catalog_old_keys_count(const struct adv_catalog *catalog)
{
    return catalog->old_keys_count;
}

const struct adv_catalog_old_key *adv_catalog_old_key_at(const struct adv_catalog *catalog, int index)
{
    return &catalog->old_keys[index];
}

int adv_catalog_keys_count(const struct adv_catalog *catalog)
{
    return catalog->keys_count;
}

const struct adv_catalog_key *adv_catalog_key_at(const struct adv_catalog *catalog, int index)
{
    return &catalog->keys[index];
}

const char *adv_catalog_nearest_key(const struct adv_catalog *catalog, const char *name)
{
    const char **names = calloc((size_t)catalog->keys_count, sizeof *names);
    for (int i = 0; names && i < catalog->keys_count; i++) names[i] = catalog->keys[i].name;
    const char *nearest = names ? adv_text_nearest(name, names, catalog->keys_count) : NULL;
    free(names);
    return nearest;
}

static int compare_key(const void *name, const void *row)
{
    return strcmp(name, ((const struct adv_catalog_key *)row)->name);
}

const struct adv_catalog_key *adv_catalog_key(const struct adv_catalog *catalog, const char *name)
{
    return bsearch(name, catalog->keys, (size_t)catalog->keys_count, sizeof *catalog->keys, compare_key);
}

const struct adv_catalog_old_key *adv_catalog_old_key(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < catalog->old_keys_count; i++)
        if (strcmp(catalog->old_keys[i].name, name) == 0) return &catalog->old_keys[i];
    return NULL;
}

static int compare_flag(const void *name, const void *row)
{
    return strcmp(name, ((const struct adv_catalog_flag *)row)->name);
}

const struct adv_catalog_flag *adv_catalog_flag(const struct adv_catalog *catalog, const char *name)
{
    return bsearch(name, catalog->flags, (size_t)catalog->flags_count, sizeof *catalog->flags, compare_flag);
}

int adv_catalog_flags_count(const struct adv_catalog *catalog)
{
    return catalog->flags_count;
}

const struct adv_catalog_flag *adv_catalog_flag_at(const struct adv_catalog *catalog, int index)
{
    return &catalog->flags[index];
}

int adv_catalog_bundles_count(const struct adv_catalog *catalog)
{
    return catalog->bundles_count;
}

const struct adv_catalog_bundle *adv_catalog_bundle_at(const struct adv_catalog *catalog, int index)
{
    return &catalog->bundles[index];
}

struct adv_catalog *adv_catalog_corrected(const struct adv_catalog *catalog, const char *calibration,
                                          const struct adv_correction *corrections, int count)
{
    struct adv_catalog *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *catalog;
    adv_arena_init(&copy->arena, (size_t)catalog->chips_count * sizeof *copy->chips + 4096);
    copy->chips = adv_arena_alloc(&copy->arena, (size_t)catalog->chips_count * sizeof *copy->chips);
    if (!copy->chips) {
        adv_catalog_free(copy);
        return NULL;
    }
    memcpy(copy->chips, catalog->chips, (size_t)catalog->chips_count * sizeof *copy->chips);
    (void)snprintf(copy->calibration, sizeof copy->calibration, "%s", calibration);
    for (int i = 0; i < copy->chips_count; i++)
        for (int k = 0; k < count; k++) {
            if (strcmp(copy->chips[i].chip.name, corrections[k].chip) != 0) continue;
            copy->chips[i].constants.step_time_correction_frac = corrections[k].step_time_frac;
            copy->chips[i].constants.hbm_correction_frac = corrections[k].hbm_frac;
        }
    return copy;
}
