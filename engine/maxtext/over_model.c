#include "engine/maxtext/over_model.h"

#include <string.h>

#include "engine/maxtext/changes.h"
#include "engine/maxtext/write.h"

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
static bool has_a_say(const struct adv_config_source *source, const struct adv_config *config)
{
    for (int i = 0; i < source->defaults_count; i++) {
        const struct adv_key *key = adv_key_find(source->defaults[i].key);
        if ((key && key->plan_bytes > 0) || adv_config_find(config, source->defaults[i].key)) return true;
    }
    return false;
}

/* The keys in which the configuration, read over the file, is another plan. */
static adv_code append_unsaid(const struct adv_reread *reread, const struct adv_plan *plan,
                              struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    enum { CHANGES = 32 };
    const struct adv_config_source *source = &reread->source;
    struct adv_config_change changes[CHANGES];
    struct adv_plan read;
    int count = 0;
    if (!adv_reread_over(reread, NULL, 0, &read)) return ADV_OK; /* the file is not to blame */
    adv_code code =
        adv_config_changes(&read, plan, source->model, source->cluster, arena, changes, CHANGES, &count, err);
    for (int i = 0; code == ADV_OK && i < count; i++)
        if (adv_given_find(source->defaults, source->defaults_count, changes[i].key))
            code = append(config, changes[i].key, changes[i].to_json, err);
    return code;
}

static bool contradicts(const struct adv_config_source *source, const struct adv_config *config)
{
    for (int i = 0; i < config->count; i++) {
        const char *text = config->entries[i].value_json;
        char room[ADV_LIMIT_DETAIL];
        struct adv_value said;
        const struct adv_value *own =
            adv_given_find(source->defaults, source->defaults_count, config->entries[i].key);
        if (own && strlen(text) < sizeof room && adv_value_of_json(text, room, &said) &&
            !adv_value_same(own, &said))
            return true;
    }
    return false;
}

adv_code adv_say_over_model(const struct adv_catalog *catalog, const char *model_name,
                            const struct adv_model *model, const struct adv_cluster *cluster,
                            const struct adv_plan *plan, struct adv_arena *arena, struct adv_config *config,
                            adv_err *err)
{
    struct adv_reread *reread = adv_arena_alloc(arena, sizeof *reread);
    if (!model_name) return ADV_OK;
    if (!reread) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    adv_code code = adv_reread_open(reread, catalog, model, model_name, cluster, config, arena, err);
    if (code != ADV_OK || !has_a_say(&reread->source, config)) return code;
    code = append_unsaid(reread, plan, arena, config, err);
    if (code == ADV_OK && contradicts(&reread->source, config) && !adv_config_find(config, override_key))
        code = append(config, override_key, "true", err);
    return code;
}
