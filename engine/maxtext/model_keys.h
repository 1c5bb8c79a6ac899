/* model_keys.h: a model as MaxText's architecture keys: its name where MaxText knows it, else base_*
 * dimensions. */
#ifndef ADV_MAXTEXT_MODEL_KEYS_H
#define ADV_MAXTEXT_MODEL_KEYS_H

#include "engine/base/arena.h"
#include "engine/spec/request.h"

/* Appends to `config`. Values live in the arena. ADV_E_MEMORY when it is exhausted. */
ADV_MUST_CHECK adv_code adv_config_write_model(const struct adv_model *model, struct adv_arena *arena,
                                               struct adv_config *config);

#endif
