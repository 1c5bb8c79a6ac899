/* The settings of a Hugging Face config.json beyond its dimensions, as MaxText's keys: rotary embedding,
 * norms, activation, routing. None of it changes a time here; all of it makes the run train that model and no
 * other. Defaults are those of the transformers library. */
#include <math.h>
#include <string.h>

#include "engine/json/decode_hf_families.h"
#include "engine/json/decode_model.h"
#include "engine/json/encode_common.h"

struct writer {
    const json_t *config; /* of the decoder */
    const struct adv_model_keys *keys;
    const char *model_type;
    json_t *object;
};

/* By model_type; what is not listed is llama's. */
static const struct family {
    const char *model_type;
    double rope_theta, norm_epsilon;
    const char *activation;
} families[] = {
    {"llama", 1e4, 1e-6, "silu"},        {"mistral", 1e4, 1e-6, "silu"},
    {"mixtral", 1e6, 1e-5, "silu"},      {"qwen2", 1e4, 1e-6, "silu"},
    {"qwen3", 1e4, 1e-6, "silu"},        {"qwen3_moe", 1e4, 1e-6, "silu"},
    {"gemma", 1e4, 1e-6, "gelu"},        {"gemma2", 1e4, 1e-6, "gelu"},
    {"gemma3", 1e6, 1e-6, "gelu"},       {"gemma3_text", 1e6, 1e-6, "gelu"},
    {"deepseek_v2", 1e4, 1e-6, "silu"},  {"deepseek_v3", 1e4, 1e-6, "silu"},
    {"gpt_oss", 1.5e5, 1e-5, "sigmoid"}, /* its swish is a gate of its own */
    {"gpt2", 1e4, 1e-5, "gelu"},         {"gpt_neox", 1e4, 1e-5, "gelu"},
};

static const struct family *family_of(const char *model_type)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].model_type, model_type) == 0) return &families[i];
    return &families[0];
}

/* The first of the members, ended by NULL, that is a number. */
static double number_of(const json_t *object, const char *const *members, double fallback)
{
    for (; *members; members++) {
        const json_t *value = json_object_get(object, *members);
        if (json_is_number(value)) return json_number_value(value);
    }
    return fallback;
}

static double number(const json_t *object, const char *member, double fallback)
{
    const char *const members[] = {member, NULL};
    return number_of(object, members, fallback);
}

/* Copies a number under another name, where it is given. */
static void copy_number(const struct writer *writer, const json_t *from, const char *member, const char *key)
{
    const json_t *value = json_object_get(from, member);
    if (json_is_number(value)) ADV_PUT(writer->object, ADV_M(key, json_number_value(value)));
}

const json_t *adv_hf_rope(const json_t *config, const char **member)
{
    static const char *const members[] = {"rope_scaling", "rope_parameters"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *found = json_object_get(config, members[i]);
        const json_t *global = json_object_get(found, "full_attention");
        if (!json_is_object(found)) continue;
        if (member) *member = members[i];
        return json_is_object(global) ? global : found;
    }
    return NULL;
}

static void put_yarn(const struct writer *writer, const json_t *scaling)
{
    const bool gpt_oss = writer->keys->decoder_block == ADV_DECODER_GPT_OSS;
    const json_t *truncate = json_object_get(scaling, "truncate");
    ADV_PUT(writer->object, ADV_M("rope_type", "yarn"));
    copy_number(writer, scaling, "factor", "rope_factor");
    copy_number(writer, scaling, "original_max_position_embeddings", "original_max_position_embeddings");
    copy_number(writer, writer->config, "max_position_embeddings", "max_position_embeddings");
    copy_number(writer, scaling, "beta_fast", "beta_fast");
    copy_number(writer, scaling, "beta_slow", "beta_slow");
    copy_number(writer, scaling, "mscale", "mscale");
    ADV_PUT(writer->object, ADV_M("rope_truncate", json_boolean(!truncate || json_is_true(truncate))));
    /* DeepSeek stores its rotary halves interleaved and scales its softmax instead of the embedding. */
    ADV_PUT(writer->object, ADV_M("rope_interleave", writer->keys->is_mla),
            ADV_M("rope_attention_scaling", json_boolean(gpt_oss || !writer->keys->is_mla)));
}

/* Latent attention is scaled wherever the two lengths differ, as MaxText's defaults do. */
static void put_length(const struct writer *writer)
{
    const double length = number(writer->config, "max_position_embeddings", 4096);
    ADV_PUT(writer->object, ADV_M("max_position_embeddings", length),
            ADV_M("original_max_position_embeddings", length));
}

static void put_rope(const struct writer *writer)
{
    static const char *const bases[] = {"rope_theta", "rotary_emb_base", NULL};
    const json_t *scaling = adv_hf_rope(writer->config, NULL);
    const double base = number(scaling, "rope_theta", family_of(writer->model_type)->rope_theta);
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (!type) type = json_string_value(json_object_get(scaling, "type"));
    ADV_PUT(writer->object, ADV_M("rope_max_timescale", number_of(writer->config, bases, base)),
            ADV_M("rope_type", "default"));
    if (writer->keys->is_mla && !(type && strcmp(type, "yarn") == 0)) put_length(writer);
    if (type && strcmp(type, "llama3") == 0) ADV_PUT(writer->object, ADV_M("rope_type", "llama3.1"));
    if (type && strcmp(type, "yarn") == 0) put_yarn(writer, scaling);
    if (type && strcmp(type, "linear") == 0)
        copy_number(writer, scaling, "factor", "rope_linear_scaling_factor");
}

const char *adv_hf_activation(const json_t *config)
{
    static const char *const members[] = {"hidden_activation", "hidden_act", "activation_function"};
    const char *name = NULL;
    for (size_t i = 0; i < sizeof members / sizeof *members && !name; i++)
        name = json_string_value(json_object_get(config, members[i]));
    if (!name) return NULL;
    if (strncmp(name, "gelu", 4) == 0) return "gelu"; /* gelu_new, gelu_pytorch_tanh: how it is computed */
    return strcmp(name, "swish") == 0 ? "silu" : name;
}

static void put_activations(const struct writer *writer)
{
    const char *name = adv_hf_activation(writer->config);
    const bool fixed = writer->keys->decoder_block == ADV_DECODER_GPT_OSS;
    if (!name || fixed) name = family_of(writer->model_type)->activation;
    json_t *list = json_array();
    (void)json_array_append_new(list, json_string(name));
    if (writer->keys->mlp_activations_count > 1) (void)json_array_append_new(list, json_string("linear"));
    (void)json_object_set_new(writer->object, "mlp_activations", list);
}

/* A model that MaxText knows by its name only starts from the file of that name: what the file sets is said,
 * MaxText's defaults too. */
static void put_name(const struct writer *writer, const char *name)
{
    const struct adv_model_keys *keys = writer->keys;
    const struct {
        const char *key;
        int64_t value;
        bool mla; /* of multi-head latent attention; else of the others */
    } rows[] = {
        {"head_dim", keys->head_dim, false},
        {"sliding_window_size", keys->sliding_window_size, false},
        {"first_num_dense_layers", keys->first_num_dense_layers, true},
        {"shared_experts", keys->shared_experts, true},
        {"q_lora_rank", keys->q_lora_rank, true},
        {"kv_lora_rank", keys->kv_lora_rank, true},
        {"qk_nope_head_dim", keys->qk_nope_head_dim, true},
        {"qk_rope_head_dim", keys->qk_rope_head_dim, true},
        {"v_head_dim", keys->v_head_dim, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].mla == keys->is_mla) ADV_PUT(writer->object, ADV_M(rows[i].key, (double)rows[i].value));
    if (keys->is_mla) ADV_PUT(writer->object, ADV_M("routed_bias", keys->routed_bias));
    ADV_PUT(writer->object, ADV_M("model_name", name), ADV_M("override_model_config", json_true()));
}

static void put_gemma(const struct writer *writer)
{
    const enum adv_decoder decoder = writer->keys->decoder_block;
    if (decoder != ADV_DECODER_GEMMA2 && decoder != ADV_DECODER_GEMMA3) return;
    ADV_PUT(writer->object, ADV_M("use_post_attn_norm", json_true()),
            ADV_M("use_post_ffw_norm", json_true()));
    if (decoder == ADV_DECODER_GEMMA2) return;
    const json_t *local =
        json_object_get(json_object_get(writer->config, "rope_parameters"), "sliding_attention");
    ADV_PUT(writer->object, ADV_M("local_rope_max_timescale", number(writer->config, "rope_local_base_freq",
                                                                     number(local, "rope_theta", 1e4))));
    /* MaxText takes the scale of the query from the name: 27b's is by width, the others' by head. */
    const double scalar = number(writer->config, "query_pre_attn_scalar", (double)writer->keys->head_dim);
    const bool by_head = scalar >= (double)writer->keys->head_dim && scalar <= (double)writer->keys->head_dim;
    if (!json_object_get(writer->object, "rope_linear_scaling_factor"))
        ADV_PUT(writer->object, ADV_M("rope_linear_scaling_factor", 1));
    put_name(writer, by_head ? "gemma3-4b" : "gemma3-27b");
}

static void put_deepseek(const struct writer *writer)
{
    const bool third = strcmp(writer->model_type, "deepseek_v3") == 0;
    const char *score = json_string_value(json_object_get(writer->config, "scoring_func"));
    const char *method = json_string_value(json_object_get(writer->config, "topk_method"));
    const char *fallback = third ? "sigmoid" : "softmax";
    const bool grouped = method ? strcmp(method, "greedy") != 0 : third;
    ADV_PUT(
        writer->object, ADV_M("routed_score_func", json_string(score ? score : fallback)),
        ADV_M("routed_scaling_factor", number(writer->config, "routed_scaling_factor", third ? 2.5 : 1.0)));
    if (grouped && number(writer->config, "n_group", 1) > 1) {
        copy_number(writer, writer->config, "n_group", "n_routing_groups");
        copy_number(writer, writer->config, "topk_group", "topk_routing_group");
    }
    if (third) put_name(writer, "deepseek3-671b"); /* MaxText knows its router by the name */
}

static void put_experts(const struct writer *writer)
{
    const enum adv_decoder decoder = writer->keys->decoder_block;
    if (decoder == ADV_DECODER_QWEN3_MOE)
        ADV_PUT(writer->object,
                ADV_M("norm_topk_prob",
                      json_boolean(json_is_true(json_object_get(writer->config, "norm_topk_prob")))));
    if (decoder == ADV_DECODER_MIXTRAL || decoder == ADV_DECODER_GPT_OSS)
        ADV_PUT(writer->object, ADV_M("base_moe_mlp_dim", (double)writer->keys->base_mlp_dim));
    if (decoder == ADV_DECODER_GPT_OSS) {
        ADV_PUT(writer->object, ADV_M("mlp_activations_limit", number(writer->config, "swiglu_limit", 7)),
                ADV_M("inhomogeneous_layer_cycle_interval", 2)); /* one local, one global layer */
    }
    if (decoder == ADV_DECODER_DEEPSEEK) put_deepseek(writer);
}

void adv_decode_hf_settings(const json_t *config, const struct adv_model_keys *keys, json_t *object)
{
    static const char *const epsilons[] = {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", NULL};
    const char *model_type = adv_hf_model_type(config);
    const json_t *text = json_object_get(config, "text_config");
    const struct writer writer = {json_is_object(text) ? text : config, keys, model_type ? model_type : "",
                                  object};
    const bool scales_logits = keys->decoder_block == ADV_DECODER_GEMMA ||
                               keys->decoder_block == ADV_DECODER_GEMMA2 ||
                               keys->decoder_block == ADV_DECODER_GEMMA3;
    ADV_PUT(writer.object,
            ADV_M("normalization_layer_epsilon",
                  number_of(writer.config, epsilons, family_of(writer.model_type)->norm_epsilon)),
            ADV_M("enable_dropout", json_boolean(number(writer.config, "attention_dropout", 0) > 0)),
            ADV_M("logits_via_embedding", keys->logits_via_embedding));
    if (!scales_logits) ADV_PUT(writer.object, ADV_M("normalize_embedding_logits", json_false()));
    put_activations(&writer);
    if (keys->decoder_block != ADV_DECODER_GPT3) put_rope(&writer);
    if (keys->decoder_block == ADV_DECODER_GPT3) ADV_PUT(writer.object, ADV_M("fused_qkv", json_true()));
    put_gemma(&writer);
    put_experts(&writer);
}
