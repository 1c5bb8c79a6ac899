#include "engine/json/reread.h"

#include "engine/json/decode_plan.h"
#include "engine/json/decode_request.h"

static void set(json_t *config, const char *key, const char *value_json)
{
    json_t *value = json_loads(value_json, JSON_DECODE_ANY, NULL);
    if (value) (void)json_object_set_new(config, key, value);
}

static struct adv_decode_config_input input_of(const struct adv_reread_source *source)
{
    return (struct adv_decode_config_input){.catalog = source->catalog,
                                            .model = source->model,
                                            .cluster = source->cluster,
                                            .config = source->config,
                                            .model_defaults = source->defaults,
                                            .at = ""};
}

void adv_reread_open(struct adv_reread_source *source, const struct adv_catalog *catalog,
                     const struct adv_model *model, const char *model_name, const struct adv_cluster *cluster,
                     const struct adv_config *config)
{
    *source = (struct adv_reread_source){.catalog = catalog,
                                         .model = model,
                                         .cluster = cluster,
                                         .config = json_object(),
                                         .defaults = adv_decode_model_pins(catalog, model_name)};
    for (int i = 0; i < config->count; i++)
        set(source->config, config->entries[i].key, config->entries[i].value_json);
    const struct adv_decode_config_input input = input_of(source);
    adv_decode_config_keys(&input, &source->read);
}

void adv_reread_open_baseline(struct adv_reread_source *source, const struct adv_catalog *catalog,
                              struct adv_advise_request *request, struct adv_reread *reread)
{
    const char *model = request->model_keys_count > 0 ? NULL : request->model.name;
    adv_reread_open(source, catalog, &request->model, model, &request->cluster, &request->baseline_config);
    *reread = adv_reread_of(source);
    if (request->has_baseline) request->baseline_reread = reread;
}

void adv_reread_close(struct adv_reread_source *source)
{
    json_decref(source->config);
    json_decref(source->defaults);
    source->config = source->defaults = NULL;
}

static bool reread(const void *configuration, const struct adv_config_change *changes, int changes_count,
                   struct adv_plan *plan)
{
    const struct adv_reread_source *source = configuration;
    const struct adv_decode_config_input input = input_of(source);
    return adv_decode_config_over(&input, &source->read, changes, changes_count, plan) == ADV_OK;
}

struct adv_reread adv_reread_of(const struct adv_reread_source *source)
{
    return (struct adv_reread){reread, source};
}
