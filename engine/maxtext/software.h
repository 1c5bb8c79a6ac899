/* software.h: a configuration before the releases that it is for. */
#pragma once

#include "engine/catalog/releases.h"
#include "engine/maxtext/keys.h"
#include "engine/spec/request.h"

/* Warns of flags that this libtpu does not take on the chip ("refused-flag"): an option that it does not
 * know, a value that it refuses, and one that it refuses although nobody has given it, because other flags
 * bring it in. */
void adv_software_warn_flags(const struct adv_catalog *catalog, const struct adv_software *software,
                             const struct adv_config *config, const char *chip, const char *at,
                             adv_err *warnings);

/* Warns of offloaded gathers ("ignored-flag") over so many torus axes (adv_cost_gather_axes) that this libtpu
 * offloads them only with a flag that is not set. */
void adv_software_warn_gathers(const struct adv_catalog *catalog, const struct adv_software *software,
                               const struct adv_flags *flags, const char *chip, int axes, const char *at,
                               adv_err *warnings);

/* Findings about keys that this MaxText does not have ("key-not-in-release") and a value that it refuses
 * ("value-not-in-release"); how many. */
int adv_software_find_keys(const struct adv_catalog *catalog, const struct adv_software *software,
                           const struct adv_config *config, const char *at, adv_err *findings);

/* A finding at `at` about a model_name that this MaxText does not take ("model-not-in-release"). */
void adv_software_find_model(const struct adv_catalog *catalog, const struct adv_software *software,
                             const char *model_name, const char *at, adv_err *findings);

/* Keys of `maxtext` that decide about plans of the model and that it lacks; writes at most ADV_KEYS_MAX rows
 * of adv_keys, returns how many. A plan for it has MaxText's own value of them, and does not say so. Of a
 * model with windows the tiles of local layers are not listed: adv_software_has_local_tiles. */
int adv_software_lacks(const struct adv_catalog *catalog, const struct adv_software *software,
                       const struct adv_model *model, const struct adv_cluster *cluster,
                       const struct adv_plan *plan, const struct adv_key *keys[ADV_KEYS_MAX]);
/* Whether layers with a window have tiles of their own. */
bool adv_software_has_local_tiles(const struct adv_catalog *catalog, const struct adv_software *software);

/* Leaves out what `config` says of keys that this MaxText lacks, where it is MaxText's own value. */
void adv_software_drop_keys(const struct adv_catalog *catalog, const struct adv_software *software,
                            struct adv_config *config);

/* Warns of a libtpu that this JAX did not ask for ("libtpu-not-asked-for"), of one whose flags are not known
 * ("libtpu-not-known"), and of a JAX of which nobody knows what it asks for ("jax-not-known"). */
void adv_software_warn_pair(const struct adv_catalog *catalog, const struct adv_software *software,
                            adv_err *warnings);

/* Takes out of the chip's published flags what this libtpu refuses beside others, so that plans are searched,
 * priced and written without it. */
void adv_software_settle(const struct adv_catalog *catalog, const struct adv_software *software,
                         struct adv_chip *chip);
