/* catalog.h: everything known about chips, models, slices, MaxText keys and XLA flags; built once, then
 * const.
 *
 * Data is JSON (catalog/data), embedded in the binary at build; --catalog DIR overrides single files. The
 * loader is engine/json/decode_catalog.c; it reads everything at once (a few milliseconds). All pointers stay
 * valid until adv_catalog_free. Thread safe after load.
 */
#pragma once

#include "engine/base/err.h"
#include "engine/catalog/constants.h"
#include "engine/spec/chip.h"
#include "engine/spec/model.h"

/* A number's pedigree. */
struct adv_provenance {
    const char *unit, *source, *date, *confidence, *note; /* note may be "" */
};

enum { ADV_CATALOG_CONSTANT_FILES = 4 }; /* kernel, link, step, memory */

struct adv_catalog_chip {
    struct adv_chip chip;
    struct adv_constants constants;                         /* all 0 for headline rows (is_tpu false) */
    const char *constants_json[ADV_CATALOG_CONSTANT_FILES]; /* the same with pedigree: objects, NULL for
                                                               headline rows */
    const char *const *aliases;
    int aliases_count;
#define ADV_CHIP_PROVENANCE(name, unit, what) struct adv_provenance name##_provenance;
    ADV_CHIP_FIELDS(ADV_CHIP_PROVENANCE)
#undef ADV_CHIP_PROVENANCE
};

struct adv_config_entry; /* of spec/request.h */

/* A model's pedigree, and what else MaxText's own model file sets. */
struct adv_catalog_model {
    const char *name;
    double advertised_total_b; /* billions of parameters as its makers say, NAN = not said */
    const char *keys_json;     /* object: its architecture as MaxText keys */
    const char
        *pins_json; /* object: MaxText keys the model file pins that are not architecture (opt_type, …) */
    const struct adv_config_entry *sets; /* all that the file sets, architecture too, one by one */
    int sets_count;
    struct adv_provenance provenance; /* of all its dims; unit "" */
};

struct adv_catalog_topology {
    const char *name;     /* compile_topology: "tpu7x-128" */
    const char *chip;     /* "tpu7x" */
    const char *topology; /* "4x4x4" */
    int dims[3];
    bool wraps[3];
    int devices, chips, hosts;
};

enum adv_key_type { ADV_KEY_BOOL, ADV_KEY_INT, ADV_KEY_FLOAT, ADV_KEY_STRING, ADV_KEY_LIST, ADV_KEY_OBJECT };
struct adv_catalog_key {
    const char *name;
    unsigned types; /* bit set of 1u << enum adv_key_type */
    bool nullable, derived;
    const char *default_json;   /* effective default, as JSON text */
    const char *const *allowed; /* enumerated values, NULL = free */
    int allowed_count;
    const char *group, *what, *constraints, *note; /* "" when absent */
};

/* A key MaxText once had: what it is called now, or that it is gone. */
struct adv_catalog_old_key {
    const char *name, *current /* NULL = dropped */, *why;
};

struct adv_catalog_flag {
    const char *name; /* without dashes */
    const char *type; /* "bool" | "int" | "float" | "enum" */
    const char *what;
};

/* A bundle of XLA flags that serve one purpose on some chips. */
struct adv_catalog_bundle {
    const char *name, *purpose, *source;
    const char *const *chips;
    int chips_count;
    const char *const *flags;
    int flags_count; /* "--xla_...=v" */
};

struct adv_catalog; /* opaque */

/* NULL with findings when a file of `override_dir` cannot be read, when it has none of the catalog's (it may
 * be misspelled), or any data is wrong: a constant or field missing, a number without source or confidence.
 * Pointers are "/<file>/…". */
struct adv_catalog *adv_catalog_load(const char *override_dir /* NULL = embedded */, adv_err *err);
void adv_catalog_free(struct adv_catalog *catalog); /* NULL is fine */

struct adv_correction {
    char chip[ADV_LIMIT_NAME];
    double step_time_frac, hbm_frac;
};
/* What measurements correct on some chips, and the engine on whose predictions that was fitted. */
struct adv_calibration {
    const char *name;
    const char *engine_version, *catalog_hash; /* "" = not known */
    const struct adv_correction *corrections;
    int corrections_count;
};

/* The catalog with the corrections in its constants (see adv_constants), under the name of the calibration.
 * Strings and tables are those of `catalog`, which outlives it. NULL: memory is exhausted. */
struct adv_catalog *adv_catalog_corrected(const struct adv_catalog *catalog,
                                          const struct adv_calibration *calibration);

/* The engine that the calibration was fitted by, for people, where that is not this one with this catalog;
 * "" where it is, and without a calibration. */
const char *adv_catalog_fitted_elsewhere(const struct adv_catalog *catalog);

const char *adv_catalog_hash(const struct adv_catalog *catalog); /* 16 hex digits over all data files */
const char *adv_catalog_calibration(
    const struct adv_catalog *catalog); /* name of the constants, e.g. "2026-11-21/1f0c…" */

/* The tables, to go through; they live as long as the catalog. */
struct adv_catalog_tables {
    int chips_count, models_count, topologies_count, keys_count, old_keys_count, flags_count, bundles_count;
    const struct adv_catalog_chip *chips;
    const char *const *model_names;
    const struct adv_catalog_topology *topologies;
    const struct adv_catalog_key *keys; /* ordered by name, as flags */
    const struct adv_catalog_old_key *old_keys;
    const struct adv_catalog_flag *flags;
    const struct adv_catalog_bundle *bundles;
    struct adv_provenance topologies_provenance, keys_provenance, flags_provenance;
};
const struct adv_catalog_tables *adv_catalog_tables(const struct adv_catalog *catalog);

/* By name or alias ("tpu7x", "ironwood", "v7x"); NULL when unknown. */
const struct adv_catalog_chip *adv_catalog_chip(const struct adv_catalog *catalog, const char *name);

/* By name; builds `model`. ADV_E_NOT_FOUND with the nearest names in the hint (pointer /model). */
ADV_MUST_CHECK adv_code adv_catalog_model(const struct adv_catalog *catalog, const char *name,
                                          struct adv_model *model, adv_err *err);

/* The architecture keys of a model by name, NULL when unknown. */
struct adv_model_keys;
const struct adv_model_keys *adv_catalog_model_keys(const struct adv_catalog *catalog, const char *name);

/* The pedigree of a model by name, NULL when unknown. */
const struct adv_catalog_model *adv_catalog_model_info(const struct adv_catalog *catalog, const char *name);

const struct adv_catalog_topology *adv_catalog_topology(const struct adv_catalog *catalog,
                                                        const char *compile_topology);
/* Shapes ("4x4x4") of one chip, ordered by size; returns the count. */
int adv_catalog_shapes(const struct adv_catalog *catalog, const char *chip, const char *const **shapes);

const struct adv_catalog_key *adv_catalog_key(const struct adv_catalog *catalog, const char *name);
/* The MaxText key whose name is nearest, for "did you mean"; NULL: none is near. */
const char *adv_catalog_nearest_key(const struct adv_catalog *catalog, const char *name);
const struct adv_catalog_old_key *adv_catalog_old_key(const struct adv_catalog *catalog, const char *name);
const struct adv_catalog_flag *adv_catalog_flag(const struct adv_catalog *catalog, const char *name);
