/* model_keys.h: a model in an emitted configuration: as MaxText's architecture keys, and what has to be said
 * because MaxText's own file of the model says otherwise. */
#pragma once

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/spec/plan.h"
#include "engine/spec/request.h"

/* Appends to `config`. Values live in the arena. ADV_E_MEMORY when it is exhausted. */
ADV_MUST_CHECK adv_code adv_config_write_model(const struct adv_model *model, struct adv_arena *arena,
                                               struct adv_config *config);

/* Appends to `config`, which `plan` was written to (write.h), the keys that the file of the catalog's
 * model `model_name` (NULL: none) sets to something else than the plan although the plan's value is
 * base.yml's, and override_model_config where any key contradicts the file. Keys and values live in the
 * arena. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_say_over_model(const struct adv_catalog *catalog, const char *model_name,
                                           const struct adv_model *model, const struct adv_cluster *cluster,
                                           const struct adv_plan *plan, struct adv_arena *arena,
                                           struct adv_config *config, adv_err *err);
