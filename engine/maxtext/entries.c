#include "engine/maxtext/entries.h"

#include <string.h>

adv_code adv_config_put(struct adv_config *config, struct adv_arena *arena, const char *key,
                        const char *value_json)
{
    char *copy = adv_arena_copy(arena, value_json);
    if (!copy || config->count >= ADV_LIMIT_CONFIG_KEYS) return ADV_E_MEMORY;
    config->entries[config->count++] = (struct adv_config_entry){key, copy};
    return ADV_OK;
}

const char *adv_config_find(const struct adv_config *config, const char *key)
{
    for (int i = 0; i < config->count; i++)
        if (!strcmp(config->entries[i].key, key)) return config->entries[i].value_json;
    return NULL;
}
