/* model_in_front.h: the keys that say the model to MaxText, put in front of a configuration that was given
 * beside a model: without them MaxText would train its default one. */
#pragma once

#include <jansson.h>

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/maxtext/write.h"

/* The configuration's own keys win, as they did in the estimate; only the name of the model is that of
 * `model_keys`, which counted there. Where `given`, the configuration as JSON, has keys of the architecture,
 * a named model gets override_model_config. False: no room. Doing it twice changes nothing. `catalog` may be
 * NULL: then nothing is known of the architecture. */
ADV_MUST_CHECK bool adv_put_model_in_front(const struct adv_catalog *catalog,
                                           const struct adv_config *model_keys, const json_t *given,
                                           struct adv_arena *arena, struct adv_config *config);
