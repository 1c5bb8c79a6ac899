/* catalog_data.h: what a loaded catalog holds. For engine/catalog/catalog.c (look-up) and
 * engine/json/decode_catalog*.c (loading) only; everybody else goes through catalog.h. */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/catalog/releases.h"
#include "engine/spec/model_build.h"

enum {
    ADV_CATALOG_CHIPS_MAX = 32,
    ADV_CATALOG_HASH_TEXT = 17,
    ADV_CATALOG_CALIBRATION_TEXT = 64,
    ADV_CATALOG_ENGINE_TEXT = 128
};

/* Shapes of one chip, ordered by size, without the chips' compile_topology names. */
struct adv_catalog_shape_list {
    const char *chip;
    const char **shapes;
    int count;
};

/* A name that MaxText takes and the engine has no model of. */
struct adv_catalog_unmodelled {
    const char *name, *why;
};

struct adv_catalog {
    struct adv_arena arena; /* owns every string and array below */
    char hash[ADV_CATALOG_HASH_TEXT];
    char calibration[ADV_CATALOG_CALIBRATION_TEXT];
    char fitted_elsewhere[ADV_CATALOG_ENGINE_TEXT]; /* see adv_catalog_fitted_elsewhere */
    struct adv_catalog_tables tables;
    struct adv_catalog_chip *chips;   /* those of the tables, for those who fill them */
    struct adv_catalog_model *models; /* beside tables.model_names, as model_keys */
    struct adv_model_keys *model_keys;
    struct adv_catalog_unmodelled *unmodelled;
    int unmodelled_count;
    int shape_lists_count;
    struct adv_catalog_shape_list shape_lists[ADV_CATALOG_CHIPS_MAX];
    struct adv_catalog_releases releases;
};
