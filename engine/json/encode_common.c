#include "engine/json/encode_common.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "engine/base/version.h"
#include "engine/json/json_load.h"

json_t *adv_encode_number(double value)
{
    if (!isfinite(value)) return json_null();
    if (value == floor(value) && fabs(value) < 9007199254740992.0) return json_integer((json_int_t)value);
    return json_real(value);
}

json_t *adv_encode_integer(int64_t value)
{
    return json_integer((json_int_t)value);
}

json_t *adv_encode_string(const char *value)
{
    return value && *value ? json_string(value) : json_null();
}

json_t *adv_encode_bool(bool value)
{
    return json_boolean(value);
}

json_t *adv_encode_itself(json_t *value)
{
    return value;
}

json_t *adv_encode_members(json_t *object, ...)
{
    va_list members;
    va_start(members, object);
    struct adv_member member = va_arg(members, struct adv_member);
    for (; member.name; member = va_arg(members, struct adv_member))
        (void)json_object_set_new(object, member.name, member.value);
    va_end(members);
    return object;
}

json_t *adv_encode_engine(const struct adv_catalog *catalog)
{
    return ADV_OBJECT(ADV_M("version", adv_engine_version_text),
                      ADV_M("catalog_hash", adv_catalog_hash(catalog)),
                      ADV_M("calibration", adv_catalog_calibration(catalog)));
}

json_t *adv_encode_software(const struct adv_software *software)
{
    return ADV_OBJECT(ADV_M("maxtext", software->maxtext), ADV_M("jax", software->jax),
                      ADV_M("libtpu", software->libtpu));
}

/* The stable name of a finding: its rule's, else the slug of its code. */
static const char *finding_code(const struct adv_finding *finding)
{
    if (finding->rule) return finding->rule;
    return finding->code == ADV_OK ? "note" : adv_code_slug(finding->code);
}

json_t *adv_encode_strings(const char *const *strings, int count)
{
    ADV_LIST(list, i, count, json_string(strings[i]));
    return list;
}

json_t *adv_encode_finding(const char *severity, const struct adv_finding *finding)
{
    return ADV_OBJECT(
        ADV_M_IF(severity, "severity", severity), ADV_M("pointer", json_string(finding->pointer)),
        ADV_M("code", json_string(finding_code(finding))), ADV_M("detail", json_string(finding->detail)),
        ADV_M_IF(*finding->hint, "hint", json_string(finding->hint)));
}

json_t *adv_encode_finding_list(const struct adv_finding *findings, int count)
{
    ADV_LIST(list, i, count, adv_encode_finding(NULL, &findings[i]));
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
    return adv_encode_strings(config->flags, config->flags_count);
}

const char *adv_encode_attention(const struct adv_layer *layer)
{
    static const char *const names[] = {[ADV_ATTENTION_FULL] = "full",
                                        [ADV_ATTENTION_WINDOW] = "window",
                                        [ADV_ATTENTION_CHUNKED] = "chunked",
                                        [ADV_ATTENTION_LINEAR] = "linear",
                                        [ADV_ATTENTION_COMPRESSED] = "compressed"};
    return (size_t)layer->attention < sizeof names / sizeof *names ? names[layer->attention] : "other";
}

json_t *adv_encode_model(const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    return ADV_OBJECT(ADV_M("name", model->name), ADV_M("decoder_block", adv_decoder_name(model->decoder)),
                      ADV_M("layers", model->layers_count), ADV_M("params_total", round(params.total)),
                      ADV_M("params_active", round(params.active)),
                      ADV_M_IF(!model->confident, "caveat", model->caveat),
                      ADV_M_IF(model->without_maxtext, "without_maxtext", json_true()));
}

json_t *adv_encode_cluster(const struct adv_cluster *cluster)
{
    return ADV_OBJECT(
        ADV_M("chip", cluster->chip.name), ADV_F(cluster, topology), ADV_F(cluster, slices),
        ADV_F(cluster, accelerator), ADV_M("chips", (int64_t)cluster->chips_per_slice * cluster->slices),
        ADV_F(cluster, devices), ADV_F(cluster, hosts), ADV_F(cluster, price_usd_per_chip_hour));
}
