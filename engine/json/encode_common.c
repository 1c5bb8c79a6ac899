#include "engine/json/encode_common.h"

#include <math.h>
#include <string.h>

#include "engine/base/version.h"
#include "engine/json/json_load.h"

json_t *adv_encode_number(double value)
{
    if (!isfinite(value)) return json_null();
    if (value == floor(value) && fabs(value) < 9007199254740992.0) return json_integer((json_int_t)value);
    return json_real(value);
}

void adv_encode_set_number(json_t *object, const char *member, double value)
{
    (void)json_object_set_new(object, member, adv_encode_number(value));
}

void adv_encode_set_integer(json_t *object, const char *member, int64_t value)
{
    (void)json_object_set_new(object, member, json_integer((json_int_t)value));
}

void adv_encode_set_string(json_t *object, const char *member, const char *value)
{
    (void)json_object_set_new(object, member, value && *value ? json_string(value) : json_null());
}

void adv_encode_set_bool(json_t *object, const char *member, bool value)
{
    (void)json_object_set_new(object, member, json_boolean(value));
}

json_t *adv_encode_engine(const struct adv_catalog *catalog)
{
    json_t *engine = json_object();
    adv_encode_set_string(engine, "version", ADV_ENGINE_VERSION);
    adv_encode_set_string(engine, "catalog_hash", adv_catalog_hash(catalog));
    adv_encode_set_string(engine, "calibration", adv_catalog_calibration(catalog));
    return engine;
}

/* The stable name of a finding: its rule's, else the slug of its code. */
static const char *finding_code(const struct adv_finding *finding)
{
    if (finding->rule) return finding->rule;
    return finding->code == ADV_OK ? "note" : adv_code_slug(finding->code);
}

void adv_encode_set_finding(json_t *row, const struct adv_finding *finding)
{
    (void)json_object_set_new(row, "pointer", json_string(finding->pointer));
    (void)json_object_set_new(row, "code", json_string(finding_code(finding)));
    (void)json_object_set_new(row, "detail", json_string(finding->detail));
    if (*finding->hint) (void)json_object_set_new(row, "hint", json_string(finding->hint));
}

json_t *adv_encode_finding_list(const struct adv_finding *findings, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        json_t *row = json_object();
        adv_encode_set_finding(row, &findings[i]);
        (void)json_array_append_new(list, row);
    }
    return list;
}

json_t *adv_encode_findings(const adv_err *err)
{
    return adv_encode_finding_list(err->findings, err->count);
}

json_t *adv_encode_config(const struct adv_config *config)
{
    json_t *object = json_object();
    for (int i = 0; i < config->count; i++) {
        (void)json_object_set_new(object, config->entries[i].key,
                                  adv_json_load_string(config->entries[i].value_json, JSON_DECODE_ANY));
    }
    return object;
}

json_t *adv_encode_flags(const struct adv_config *config)
{
    json_t *list = json_array();
    for (int i = 0; i < config->flags_count; i++)
        (void)json_array_append_new(list, json_string(config->flags[i]));
    return list;
}

json_t *adv_encode_model(const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    json_t *object = json_object();
    adv_encode_set_string(object, "name", model->name);
    adv_encode_set_string(object, "decoder_block", adv_decoder_name(model->decoder));
    adv_encode_set_integer(object, "layers", model->layers_count);
    adv_encode_set_number(object, "params_total", round(params.total));
    adv_encode_set_number(object, "params_active", round(params.active));
    if (!model->confident) adv_encode_set_string(object, "caveat", model->caveat);
    if (model->without_maxtext) (void)json_object_set_new(object, "without_maxtext", json_true());
    return object;
}

json_t *adv_encode_cluster(const struct adv_cluster *cluster)
{
    json_t *object = json_object();
    adv_encode_set_string(object, "chip", cluster->chip.name);
    ADV_SET(object, cluster, topology, slices, accelerator);
    adv_encode_set_integer(object, "chips", (int64_t)cluster->chips_per_slice * cluster->slices);
    ADV_SET(object, cluster, devices, hosts, price_usd_per_chip_hour);
    return object;
}
