/* entries.h: the keys and values of a configuration. */
#pragma once

#include "engine/base/arena.h"
#include "engine/spec/request.h"

/* Appends a key with a copy of its value. ADV_E_MEMORY: arena exhausted, or ADV_LIMIT_CONFIG_KEYS keys. */
adv_code adv_config_put(struct adv_config *config, struct adv_arena *arena, const char *key,
                        const char *value_json);

/* The value of `key` in `config` as JSON text, or NULL. */
const char *adv_config_find(const struct adv_config *config, const char *key);
