#include "engine/json/model_in_front.h"

#include <string.h>

#include "engine/json/decode_plan.h"
#include "engine/maxtext/names.h"

static bool append(struct adv_config *config, struct adv_config_entry entry)
{
    if (config->count == ADV_LIMIT_CONFIG_KEYS) return false;
    config->entries[config->count++] = entry;
    return true;
}

static bool names_the_model(const struct adv_config_entry *entry)
{
    return strcmp(entry->key, ADV_NAME_MODEL_NAME) == 0;
}

static bool has_model_key(const struct adv_catalog *catalog, const json_t *given)
{
    ADV_JSON_OWN json_t *keys = catalog ? adv_decode_config_model(catalog, given) : NULL;
    return json_object_size(keys) > 0;
}

bool adv_put_model_in_front(const struct adv_catalog *catalog, const struct adv_config *model_keys,
                            const json_t *given, struct adv_arena *arena, struct adv_config *config)
{
    struct adv_config *whole = adv_arena_alloc(arena, sizeof *whole);
    bool room = whole != NULL;
    const bool is_named = adv_config_find(model_keys, ADV_NAME_MODEL_NAME) != NULL;
    for (int i = 0; i < model_keys->count && room; i++) {
        const struct adv_config_entry *entry = &model_keys->entries[i];
        if (names_the_model(entry) || !adv_config_find(config, entry->key)) room = append(whole, *entry);
    }
    if (room && is_named && has_model_key(catalog, given) &&
        !adv_config_find(config, ADV_NAME_OVERRIDE_MODEL_CONFIG))
        room = append(whole, (struct adv_config_entry){ADV_NAME_OVERRIDE_MODEL_CONFIG, "true"});
    for (int i = 0; i < config->count && room; i++)
        if (model_keys->count == 0 || !names_the_model(&config->entries[i]))
            room = append(whole, config->entries[i]);
    if (!whole || !room) return false;
    memcpy(config->entries, whole->entries, sizeof config->entries);
    config->count = whole->count;
    return true;
}
