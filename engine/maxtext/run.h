/* run.h: what a run of MaxText needs beside its configuration: a release, names, a length.
 *
 * An upgrade of MaxText changes the release here, the key tables of the catalog, and what `make eco-test`
 * installs.
 */
#pragma once

#include "engine/base/text.h"
#include "engine/spec/request.h"

#define ADV_MAXTEXT_VERSION "0.2.5"    /* on PyPI */
#define ADV_MAXTEXT_COMMIT  "e591f30c" /* whose keys the catalog has */
#define ADV_MAXTEXT_MODULES "maxtext.trainers.pre_train"

/* What stands before the releases in the line of a written file that names them. */
#define ADV_RELEASE_MARK   "# For MaxText "
#define ADV_RELEASE_JAX    ", JAX "
#define ADV_RELEASE_LIBTPU ", libtpu "

/* Appends the release as a reader finds it, "MaxText 0.2.5 (PyPI; keys of commit e591f30c)". */
void adv_maxtext_release(const char *version, struct adv_text *text);
/* The package of `train` and `train_compile` in that release. */
const char *adv_maxtext_modules(const char *version);
/* Shell text: the file that a command of that release must name before its keys, with a blank in front; "":
 * it finds base.yml by itself. */
const char *adv_maxtext_base_file(const char *version);
/* Whether train_compile takes the XLA flags as a key; before it did, they came from LIBTPU_INIT_ARGS alone.
 */
bool adv_maxtext_compiles_flags(const char *version);

/* Whether a custom remat policy may say remat of decoder_layer_input, as blocks of several layers want. */
bool adv_maxtext_recomputes_inputs(const char *version);

/* Whether mlp_activations takes the name: a function of jax.nn, or one of MaxText's own. */
bool adv_maxtext_has_activation(const char *name);

/* Whether a configuration file, by its path, is MaxText's base.yml: it says its defaults and no more. */
bool adv_maxtext_is_base_file(const char *path);

/* Settings of a short benchmark run without checkpoints. */
struct adv_run_setting {
    const char *key, *variable; /* NULL: no environment variable of the reader's */
    const char *value;          /* NULL: the reader must say */
};
enum { ADV_RUN_SETTINGS = 6 };
extern const struct adv_run_setting adv_run_settings[ADV_RUN_SETTINGS];

/* Whether `config` says the setting itself, or speaks against it: who names a checkpoint to go on from wants
 * checkpoints on. */
bool adv_run_setting_is_settled(const struct adv_config *config, int setting);

/* Appends a JSON value as MaxText's command line takes it, before quotes of a shell: strings are bare, also
 * in lists, where they are read as such, else in double quotes. */
void adv_config_bare_value(const char *json, struct adv_text *text);
