#include "engine/json/over_model.h"

#include <string.h>

#include "engine/emit/config.h"
#include "engine/json/decode_plan.h"
#include "engine/json/reread.h"

static const char override_key[] = "override_model_config";

static adv_code append(struct adv_config *config, const char *key, const char *value_json, adv_err *err)
{
    if (config->count == ADV_LIMIT_CONFIG_KEYS)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "a configuration of more than %d keys",
                           ADV_LIMIT_CONFIG_KEYS);
    config->entries[config->count++] = (struct adv_config_entry){key, value_json};
    return ADV_OK;
}

/* Whether the file speaks of anything that a plan or its configuration does: most set other things. */
static bool has_a_say(json_t *defaults, const struct adv_config *config)
{
    struct adv_plan scratch = {0};
    const struct adv_plan other = {0};
    for (void *at = json_object_iter(defaults); at; at = json_object_iter_next(defaults, at)) {
        const char *key = json_object_iter_key(at);
        if (adv_emit_config_find(config, key) || adv_emit_copy_key(key, &other, &scratch)) return true;
    }
    return false;
}

/* The keys in which the configuration, read over the file, is another plan. */
static adv_code append_unsaid(const struct adv_reread_source *source, const struct adv_plan *plan,
                              struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    enum { CHANGES = 32 };
    struct adv_config_change changes[CHANGES];
    struct adv_plan read;
    int count = 0;
    const struct adv_reread reread = adv_reread_of(source);
    if (!reread.read(reread.configuration, NULL, 0, &read)) return ADV_OK; /* the file is not to blame */
    adv_code code =
        adv_emit_changes(&read, plan, source->model, source->cluster, arena, changes, CHANGES, &count, err);
    for (int i = 0; code == ADV_OK && i < count; i++)
        if (json_object_get(source->defaults, changes[i].key))
            code = append(config, changes[i].key, changes[i].to_json, err);
    return code;
}

static bool contradicts(json_t *defaults, const struct adv_config *config)
{
    bool found = false;
    for (int i = 0; i < config->count && !found; i++) {
        const json_t *own = json_object_get(defaults, config->entries[i].key);
        json_t *said = own ? json_loads(config->entries[i].value_json, JSON_DECODE_ANY, NULL) : NULL;
        found = said && !adv_json_same_value(own, said);
        json_decref(said);
    }
    return found;
}

adv_code adv_say_over_model(const struct adv_catalog *catalog, const char *model_name,
                            const struct adv_model *model, const struct adv_cluster *cluster,
                            const struct adv_plan *plan, struct adv_arena *arena, struct adv_config *config,
                            adv_err *err)
{
    if (!model_name) return ADV_OK;
    struct adv_reread_source source;
    adv_reread_open(&source, catalog, model, model_name, cluster, config);
    adv_code code = ADV_OK;
    if (has_a_say(source.defaults, config)) {
        code = append_unsaid(&source, plan, arena, config, err);
        if (code == ADV_OK && contradicts(source.defaults, config) &&
            !adv_emit_config_find(config, override_key))
            code = append(config, override_key, "true", err);
    }
    adv_reread_close(&source);
    return code;
}
