#include <math.h>
#include <string.h>

#include "engine/json/encode_catalog.h"
#include "engine/json/json_load.h"

static const char *attention_name(enum adv_attention_kind attention)
{
    static const char *const names[] = {
        [ADV_ATTENTION_FULL] = "full",
        [ADV_ATTENTION_WINDOW] = "window",
        [ADV_ATTENTION_CHUNKED] = "chunked",
        [ADV_ATTENTION_LINEAR] = "linear",
        [ADV_ATTENTION_COMPRESSED] = "compressed",
    };
    return names[attention];
}

static json_t *encode_layer(const struct adv_model *model, const struct adv_layer *layer)
{
    struct adv_layer_params params = adv_model_layer_params(model, layer);
    json_t *object = json_object();
    adv_encode_set_integer(object, "count", layer->count);
    adv_encode_set_string(object, "attention", attention_name(layer->attention));
    if (layer->window_tokens > 0) adv_encode_set_integer(object, "window_tokens", layer->window_tokens);
    ADV_SET(object, layer, q_heads, kv_heads, head_dim_qk, head_dim_v, mlp_dim, experts);
    if (layer->experts > 0) {
        ADV_SET(object, layer, experts_per_token, moe_mlp_dim, shared_mlp_dim);
    }
    adv_encode_set_integer(object, "layers_per_scan_step", layer->scan_block);
    adv_encode_set_number(object, "params", round(adv_layer_params_total(&params)));
    return object;
}

static json_t *encode_params(const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    const struct {
        const char *name;
        double value;
    } parts[] = {
        {"total", params.total},
        {"active", params.active},
        {"active_matmul_per_token", params.active_matmul_per_token},
        {"embedding", params.embedding},
        {"unembedding", params.unembedding},
        {"positions", params.positions},
        {"attention", params.attention},
        {"dense_ffn", params.dense_ffn},
        {"router", params.router},
        {"routed_experts", params.routed_experts},
        {"shared_experts", params.shared_experts},
        {"norms", params.norms},
        {"other", params.other},
        {"largest_layer", params.largest_layer},
    };
    json_t *object = json_object();
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        adv_encode_set_number(object, parts[i].name, round(parts[i].value));
    return object;
}

static json_t *encode_model(const struct adv_catalog_model *info, const struct adv_model *model)
{
    struct adv_model_params params = adv_model_params(model);
    json_t *object = json_object();
    adv_encode_set_string(object, "name", model->name);
    adv_encode_set_string(object, "decoder_block", adv_decoder_name(model->decoder));
    adv_encode_set_number(object, "total_params", round(params.total));
    adv_encode_set_number(object, "active_params", round(params.active));
    adv_encode_set_number(object, "advertised_total_params", info->advertised_total_b * 1e9);
    adv_encode_set_integer(object, "emb_dim", model->emb_dim);
    adv_encode_set_integer(object, "layers", model->layers_count);
    ADV_SET(object, model, vocab_size, confident);
    if (!model->confident) adv_encode_set_string(object, "caveat", model->caveat);
    adv_encode_set_provenance(object, &info->provenance);
    return object;
}

json_t *adv_encode_catalog_models(const struct adv_catalog *catalog)
{
    json_t *list = json_array();
    for (int i = 0; i < adv_catalog_models_count(catalog); i++) {
        const char *name = adv_catalog_model_name(catalog, i);
        struct adv_model model;
        if (adv_catalog_model(catalog, name, &model, NULL) == ADV_OK)
            (void)json_array_append_new(list, encode_model(adv_catalog_model_info(catalog, name), &model));
    }
    return list;
}

/* Model FLOPs of one token at common sequence lengths, in each convention. */
static json_t *encode_flops(const struct adv_model *model)
{
    static const int64_t lengths[] = {2048, 8192, 32768, 131072};
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        double tokens = (double)lengths[i];
        json_t *row = json_object();
        adv_encode_set_integer(row, "seq_len", lengths[i]);
        adv_encode_set_number(row, "causal_half",
                              adv_model_flops(model, 1, lengths[i], ADV_FLOPS_CAUSAL_HALF).total / tokens);
        adv_encode_set_number(row, "full",
                              adv_model_flops(model, 1, lengths[i], ADV_FLOPS_FULL).total / tokens);
        adv_encode_set_number(row, "params_only",
                              adv_model_flops(model, 1, lengths[i], ADV_FLOPS_PARAMS_ONLY).total / tokens);
        (void)json_array_append_new(list, row);
    }
    return list;
}

json_t *adv_encode_catalog_model(const struct adv_catalog *catalog, const char *name)
{
    struct adv_model model;
    const struct adv_catalog_model *info = adv_catalog_model_info(catalog, name);
    if (!info || adv_catalog_model(catalog, name, &model, NULL) != ADV_OK) return NULL;
    json_t *object = encode_model(info, &model);
    json_t *layers = json_array();
    for (int i = 0; i < model.layer_kinds_count; i++)
        (void)json_array_append_new(layers, encode_layer(&model, &model.layers[i]));
    (void)json_object_set_new(object, "params", encode_params(&model));
    (void)json_object_set_new(object, "layer_kinds", layers);
    (void)json_object_set_new(object, "model_flops_per_token", encode_flops(&model));
    (void)json_object_set_new(object, "keys", adv_json_load_string(info->keys_json, 0));
    (void)json_object_set_new(object, "pinned_keys", adv_json_load_string(info->pins_json, 0));
    return object;
}
