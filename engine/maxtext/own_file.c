#include "engine/maxtext/own_file.h"

#include <stdio.h>
#include <string.h>

#include "engine/maxtext/entries.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/read.h"
#include "engine/maxtext/value.h"

/* The name of MaxText's file of the model, "" without one. */
static void name_of(const struct adv_config *config, char name[ADV_LIMIT_NAME])
{
    const char *json = adv_config_find(config, ADV_NAME_MODEL_NAME);
    const size_t length = json ? strlen(json) : 0;
    const bool is_name = length > 2 && length - 2 < ADV_LIMIT_NAME && json[0] == '"';
    (void)snprintf(name, ADV_LIMIT_NAME, "%.*s", is_name ? (int)length - 2 : 0, is_name ? json + 1 : "");
}

/* Whether the model's file says something else of the key. */
static bool is_contradicted(const struct adv_given *file, int count, const struct adv_config_entry *entry)
{
    const struct adv_value *own = adv_given_find(file, count, entry->key);
    char room[ADV_LIMIT_DETAIL];
    struct adv_value said;
    if (!own) return false;
    return strlen(entry->value_json) >= sizeof room || !adv_value_of_json(entry->value_json, room, &said) ||
           !adv_value_same(own, &said);
}

adv_code adv_own_file_says(const struct adv_catalog *catalog, const struct adv_config *config,
                           struct adv_arena *arena, enum adv_own_file says[ADV_LIMIT_CONFIG_KEYS],
                           adv_err *err)
{
    const struct adv_given *file = NULL;
    int count = 0;
    char name[ADV_LIMIT_NAME];
    name_of(config, name);
    const bool known = catalog && adv_catalog_model_info(catalog, name);
    if (known) {
        adv_code code = adv_config_of_model(catalog, name, arena, &file, &count, err);
        if (code != ADV_OK) return code;
    }
    const bool guess = *name && !known && adv_config_find(config, ADV_NAME_OVERRIDE_MODEL_CONFIG);
    for (int i = 0; i < config->count; i++) {
        const struct adv_config_entry *entry = &config->entries[i];
        says[i] = guess || is_contradicted(file, count, entry) ? ADV_OWN_FILE_LOSES : ADV_OWN_FILE_SAYS;
        if (strcmp(entry->key, ADV_NAME_LOGICAL_AXIS_RULES) == 0) says[i] = ADV_OWN_FILE_MISLEADS;
    }
    return ADV_OK;
}
