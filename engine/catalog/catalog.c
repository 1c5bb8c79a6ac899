#include "engine/catalog/catalog_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "engine/base/text.h"
#include "engine/base/version.h"

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

const struct adv_catalog_tables *adv_catalog_tables(const struct adv_catalog *catalog)
{
    return &catalog->tables;
}

const struct adv_catalog_chip *adv_catalog_chip(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < catalog->tables.chips_count; i++) {
        const struct adv_catalog_chip *row = &catalog->chips[i];
        if (strcasecmp(row->chip.name, name) == 0) return row;
        for (int j = 0; j < row->aliases_count; j++)
            if (strcasecmp(row->aliases[j], name) == 0) return row;
    }
    return NULL;
}

/* By name; "-Instruct" after it changes nothing, as in MaxText. */
static int model_index(const struct adv_catalog *catalog, const char *name)
{
    static const char tuned[] = "-Instruct";
    size_t length = strlen(name);
    if (length > strlen(tuned) && strcmp(name + length - strlen(tuned), tuned) == 0) length -= strlen(tuned);
    for (int i = 0; i < catalog->tables.models_count; i++) {
        const char *known = catalog->tables.model_names[i];
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

/* "did you mean `a` or `b`?": the first dozen models whose names begin as the one asked for, as "llama" does.
 */
static void say_models_of_name(const struct adv_catalog *catalog, const char *name, char *hint,
                               size_t hint_bytes)
{
    enum { MOST = 12 };
    const char *found[MOST];
    int count = 0;
    for (int i = 0; i < catalog->tables.models_count && count < MOST && *name; i++)
        if (strncasecmp(catalog->tables.model_names[i], name, strlen(name)) == 0)
            found[count++] = catalog->tables.model_names[i];
    if (count) hint[0] = '\0';
    for (int i = 0; i < count; i++)
        adv_append(hint, hint_bytes, "%s`%s`%s",
                   i == 0           ? "did you mean "
                   : i == count - 1 ? " or "
                                    : ", ",
                   found[i], i == count - 1 ? "?" : "");
}

adv_code adv_catalog_model(const struct adv_catalog *catalog, const char *name, struct adv_model *model,
                           adv_err *err)
{
    int index = model_index(catalog, name);
    if (index >= 0) return adv_model_build(&catalog->model_keys[index], "/model", model, err);
    for (int i = 0; i < catalog->unmodelled_count; i++)
        if (strcmp(catalog->unmodelled[i].name, name) == 0)
            return adv_err_add(err, ADV_E_NOT_FOUND, "/model", NULL, "the catalog has no model of %s: %s",
                               name, catalog->unmodelled[i].why);
    const char *owner_end = strrchr(name, '/'); /* a model hub's names begin with who owns them */
    const char *own_name = owner_end ? owner_end + 1 : name;
    const char *nearest =
        adv_text_nearest(own_name, catalog->tables.model_names, catalog->tables.models_count);
    char hint[ADV_LIMIT_DETAIL] = "GET /v1/catalog/models lists them; own models are given as an object of "
                                  "MaxText keys or as {\"hf_config\": {…}}";
    if (nearest) (void)snprintf(hint, sizeof hint, "did you mean `%s`?", nearest);
    say_models_of_name(catalog, own_name, hint, sizeof hint);
    return adv_err_add(err, ADV_E_NOT_FOUND, "/model", hint, "the catalog has no model \"%.80s\"", name);
}

const struct adv_catalog_topology *adv_catalog_topology(const struct adv_catalog *catalog,
                                                        const char *compile_topology)
{
    for (int i = 0; i < catalog->tables.topologies_count; i++)
        if (strcmp(catalog->tables.topologies[i].name, compile_topology) == 0)
            return &catalog->tables.topologies[i];
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

const char *adv_catalog_nearest_key(const struct adv_catalog *catalog, const char *name)
{
    const struct adv_catalog_tables *tables = adv_catalog_tables(catalog);
    const char **names = calloc((size_t)tables->keys_count, sizeof *names);
    for (int i = 0; names && i < tables->keys_count; i++) names[i] = tables->keys[i].name;
    const char *nearest = names ? adv_text_nearest(name, names, tables->keys_count) : NULL;
    free(names);
    return nearest;
}

/* The name is the first member of keys and flags alike. */
static int compare_name(const void *name, const void *row)
{
    return strcmp(name, *(const char *const *)row);
}

const struct adv_catalog_key *adv_catalog_key(const struct adv_catalog *catalog, const char *name)
{
    return bsearch(name, catalog->tables.keys, (size_t)catalog->tables.keys_count,
                   sizeof *catalog->tables.keys, compare_name);
}

const struct adv_catalog_old_key *adv_catalog_old_key(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < catalog->tables.old_keys_count; i++)
        if (strcmp(catalog->tables.old_keys[i].name, name) == 0) return &catalog->tables.old_keys[i];
    return NULL;
}

const struct adv_catalog_flag *adv_catalog_flag(const struct adv_catalog *catalog, const char *name)
{
    return bsearch(name, catalog->tables.flags, (size_t)catalog->tables.flags_count,
                   sizeof *catalog->tables.flags, compare_name);
}

const char *adv_catalog_fitted_elsewhere(const struct adv_catalog *catalog)
{
    return catalog->fitted_elsewhere;
}

/* Names the engine of a calibration where it is another than this one. */
static void name_engine(struct adv_catalog *catalog, const struct adv_calibration *calibration)
{
    if (strcmp(calibration->engine_version, adv_engine_version_text) == 0 &&
        strcmp(calibration->catalog_hash, catalog->hash) == 0)
        return;
    if (*calibration->engine_version)
        (void)snprintf(catalog->fitted_elsewhere, sizeof catalog->fitted_elsewhere,
                       "engine %.60s (catalog %.20s)", calibration->engine_version,
                       calibration->catalog_hash);
    else
        (void)snprintf(catalog->fitted_elsewhere, sizeof catalog->fitted_elsewhere,
                       "an engine of an earlier release");
}

struct adv_catalog *adv_catalog_corrected(const struct adv_catalog *catalog,
                                          const struct adv_calibration *calibration)
{
    const struct adv_correction *corrections = calibration->corrections;
    struct adv_catalog *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *catalog;
    adv_arena_init(&copy->arena, (size_t)catalog->tables.chips_count * sizeof *copy->chips + 4096);
    copy->chips = adv_arena_alloc(&copy->arena, (size_t)catalog->tables.chips_count * sizeof *copy->chips);
    if (!copy->chips) {
        adv_catalog_free(copy);
        return NULL;
    }
    copy->tables.chips = copy->chips;
    memcpy(copy->chips, catalog->chips, (size_t)catalog->tables.chips_count * sizeof *copy->chips);
    (void)snprintf(copy->calibration, sizeof copy->calibration, "%s", calibration->name);
    name_engine(copy, calibration);
    for (int i = 0; i < copy->tables.chips_count; i++)
        for (int k = 0; k < calibration->corrections_count; k++) {
            if (strcmp(copy->chips[i].chip.name, corrections[k].chip) != 0) continue;
            copy->chips[i].constants.step_time_correction_frac = corrections[k].step_time_frac;
            copy->chips[i].constants.hbm_correction_frac = corrections[k].hbm_frac;
        }
    return copy;
}
