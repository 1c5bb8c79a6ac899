/* decode_hf_plain.c: decoders of equal layers that MaxText has no model file for: their dimensions say their
 * cost. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_hf_families.h"

/* Adding a family = adding a row. */
static const struct plain {
    const char *model_type;
    int mlp_inputs; /* 2: a gate and an input, 1: an input alone */
    bool is_tied;   /* of the library, where the file does not say */
    bool has_qk_norm;
    bool has_experts; /* always: a file without their number is not whole */
} families[] = {
    {"phi3", 2, false, false, false},         {"granite", 2, false, false, false},
    {"granitemoe", 2, false, false, true},    {"cohere", 2, true, false, false},
    {"cohere2", 2, true, false, false},       {"falcon", 1, true, false, false},
    {"starcoder2", 1, true, false, false},    {"smollm3", 2, true, false, false},
    {"olmo", 2, false, false, false},         {"olmo2", 2, false, true, false},
    {"olmoe", 2, false, true, true},          {"glm", 2, false, false, false},
    {"chatglm", 2, false, false, false},      {"glm4", 2, false, false, false},
    {"glm4_moe", 2, false, false, true},      {"hunyuan_v1_dense", 2, false, true, false},
    {"hunyuan_v1_moe", 2, false, true, true}, {"minimax_m2", 2, false, true, true},
    {"nemotron", 1, false, false, false},     {"internlm2", 2, false, false, false},
    {"internlm3", 2, false, false, false},    {"qwen2_moe", 2, false, false, true},
    {"phimoe", 2, false, false, true},        {"stablelm", 2, false, false, false},
    {"exaone", 2, false, false, false},       {"seed_oss", 2, false, false, false},
    {"minimax", 2, false, false, true},       {"minimax_text_01", 2, false, false, true},
    {"minimax_m1", 2, false, false, true},
};

static const struct plain *family_of(const char *model_type)
{
    for (size_t i = 0; model_type && i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].model_type, model_type) == 0) return &families[i];
    return NULL;
}

bool adv_hf_is_plain(const char *model_type)
{
    return family_of(model_type) != NULL;
}

struct reader {
    const json_t *config;
    const char *at;
    adv_err *err;
};

static void refuse(const struct reader *reader, const char *member, const char *detail)
{
    (void)adv_err_add(reader->err, ADV_E_UNSUPPORTED, ADV_AT(reader->at, member), NULL,
                      "these layers are not modelled here: %s", detail);
}

/* What is no number or no switch is refused, never taken for absent: it may say another model. */
static void refuse_kind(const struct reader *reader, const char *member, const json_t *given,
                        const char *wanted)
{
    ADV_REFUSE(reader->err, ADV_AT(reader->at, member),
               json_is_string(given) ? "write it without quotes" : NULL, "`%s` must be %s, not %s", member,
               wanted, adv_json_type_name(given));
}

/* A number, or a list of one number for every layer; 128.0 is 128. False: the file does not say. */
static bool whole(const struct reader *reader, const char *member, int64_t *value)
{
    enum { MOST = 1 << 28 };
    const json_t *given = json_object_get(reader->config, member);
    const json_t *first = json_is_array(given) ? json_array_get(given, 0) : given;
    const double number = json_number_value(first);
    for (size_t i = 1; i < json_array_size(given); i++)
        if (!json_equal(json_array_get(given, i), first)) refuse(reader, member, "its layers differ");
    if (!first || json_is_null(first)) return false;
    if (json_is_number(first) && number >= 0 && number <= MOST && number == floor(number))
        *value = (int64_t)number;
    else if (json_is_number(first))
        ADV_REFUSE(reader->err, ADV_AT(reader->at, member), NULL,
                   "`%s` is %.12g; it must be a whole number from 0 to %d", member, number, MOST);
    else
        refuse_kind(reader, member, first, "a whole number");
    return true;
}

/* The first of the members that the file has. */
static bool any_of(const struct reader *reader, const char *const *members, int64_t *value)
{
    for (; *members; members++)
        if (whole(reader, *members, value)) return true;
    return false;
}

static void need(const struct reader *reader, const char *const *members, int64_t *value)
{
    if (any_of(reader, members, value)) return;
    ADV_REFUSE(reader->err, ADV_AT(reader->at, members[0]), NULL, "`%s` is required, a whole number",
               members[0]);
}

static bool says(const struct reader *reader, const char *member, bool fallback)
{
    const json_t *value = json_object_get(reader->config, member);
    if (value && !json_is_null(value) && !json_is_boolean(value))
        refuse_kind(reader, member, value, "true or false");
    return json_is_boolean(value) ? json_is_true(value) : fallback;
}

static void read_dims(const struct reader *reader, struct adv_model_keys *keys)
{
    static const char *const emb[] = {"hidden_size", "n_embd", NULL},
                             *const heads[] = {"num_attention_heads", "n_head", NULL},
                             *const layers[] = {"num_hidden_layers", "n_layer", "num_layers", NULL},
                             *const vocab[] = {"vocab_size", "padded_vocab_size", NULL},
                             *const mlp[] = {"intermediate_size", "ffn_hidden_size", NULL},
                             *const kv[] = {"num_key_value_heads", "num_kv_heads", "multi_query_group_num",
                                            NULL},
                             *const head[] = {"head_dim", "attention_head_dim", "kv_channels", NULL};
    const bool falcon = strcmp(keys->name, "falcon") == 0;
    need(reader, emb, &keys->base_emb_dim);
    need(reader, heads, &keys->base_num_query_heads);
    need(reader, layers, &keys->base_num_decoder_layers);
    need(reader, vocab, &keys->vocab_size);
    if (!any_of(reader, mlp, &keys->base_mlp_dim) && falcon)
        keys->base_mlp_dim = 4 * keys->base_emb_dim;
    else
        need(reader, mlp, &keys->base_mlp_dim);
    keys->base_num_kv_heads = keys->base_num_query_heads;
    (void)any_of(reader, kv, &keys->base_num_kv_heads);
    if (falcon && !says(reader, "new_decoder_architecture", false))
        keys->base_num_kv_heads = says(reader, "multi_query", true) ? 1 : keys->base_num_query_heads;
    keys->head_dim = keys->base_num_query_heads > 0 ? keys->base_emb_dim / keys->base_num_query_heads : 0;
    (void)any_of(reader, head, &keys->head_dim);
}

static void read_experts(const struct reader *reader, const struct plain *family, struct adv_model_keys *keys)
{
    static const char *const experts[] = {"num_local_experts", "num_experts", "n_routed_experts", NULL},
                             *const per_token[] = {"num_experts_per_tok", "moe_topk", NULL},
                             *const width[] = {"moe_intermediate_size", NULL},
                             *const shared[] = {"n_shared_experts", "num_shared_experts", "num_shared_expert",
                                                NULL},
                             *const dense[] = {"first_k_dense_replace", "moe_layer_num_skipped", NULL};
    int64_t count = -1, shared_width = 0; /* -1: refused */
    const bool is_said = any_of(reader, experts, &count);
    if (family->has_experts && (!is_said || count == 0))
        ADV_REFUSE(reader->err, ADV_AT(reader->at, "num_experts"), NULL,
                   "%s has experts, and the file does not say how many", family->model_type);
    if (!is_said || count <= 1) return;
    keys->num_experts = count;
    need(reader, per_token, &keys->num_experts_per_tok);
    keys->base_moe_mlp_dim = keys->base_mlp_dim;
    (void)any_of(reader, width, &keys->base_moe_mlp_dim);
    (void)any_of(reader, shared, &keys->shared_experts);
    (void)any_of(reader, dense, &keys->first_num_dense_layers);
    if (whole(reader, "shared_expert_intermediate_size", &shared_width) && keys->base_moe_mlp_dim > 0) {
        const bool is_multiple = shared_width % keys->base_moe_mlp_dim == 0;
        keys->shared_experts = is_multiple ? shared_width / keys->base_moe_mlp_dim : 1;
        keys->shared_mlp_dim = is_multiple ? 0 : shared_width;
    }
    keys->decoder_block = ADV_DECODER_DEEPSEEK; /* dense layers first, experts beside shared ones */
}

/* Members that make some layers unlike the others. */
static void check_layers(const struct reader *reader)
{
    static const char *const ones[] = {"decoder_sparse_step", "moe_layer_freq"};
    int64_t value = 1;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (whole(reader, ones[i], &value) && value != 1)
            refuse(reader, ones[i], "not every layer has experts");
    (void)whole(reader, "sliding_window", &value); /* decode_hf_window.c tells of it */
    if (json_array_size(json_object_get(reader->config, "mlp_only_layers")) > 0)
        refuse(reader, "mlp_only_layers", "some layers have no experts");
    for (struct adv_json_walk layer = {.in = json_object_get(reader->config, "attn_type_list")};
         adv_json_next(&layer);) {
        if (json_integer_value(layer.value) == 1) continue;
        refuse(reader, "attn_type_list", "lightning attention");
        break;
    }
    for (struct adv_json_walk layer = {.in = json_object_get(reader->config, "layer_types")};
         adv_json_next(&layer);) {
        const char *type = json_string_value(layer.value);
        if (!type || strstr(type, "full") || strstr(type, "sliding")) continue;
        refuse(reader, "layer_types", "layers that are no softmax attention");
        break;
    }
}

adv_code adv_decode_hf_plain(const json_t *config, const char *model_type, const char *at,
                             struct adv_model_keys *keys, adv_err *err, adv_err *warnings)
{
    const struct reader reader = {config, at, err};
    const struct plain *family = family_of(model_type);
    const int before = err->count + err->lost_count;
    adv_model_keys_defaults(keys);
    if (!family) return adv_err_add(err, ADV_E_UNSUPPORTED, at, NULL, "no plain decoder");
    (void)snprintf(keys->name, sizeof keys->name, "%s", model_type);
    if (strncmp(model_type, "minimax", 7) == 0 && strcmp(model_type, "minimax_m2") != 0 &&
        !json_object_get(config, "attn_type_list"))
        refuse(&reader, "model_type", "lightning attention");
    read_dims(&reader, keys);
    read_experts(&reader, family, keys);
    check_layers(&reader);
    keys->mlp_activations_count = family->mlp_inputs;
    keys->use_qk_norm = says(&reader, "use_qk_norm", family->has_qk_norm);
    keys->logits_via_embedding = says(&reader, "tie_word_embeddings", family->is_tied);
    keys->attention_bias = says(&reader, "attention_bias", says(&reader, "use_bias", false));
    keys->mlp_bias = says(&reader, "mlp_bias", says(&reader, "use_bias", false));
    keys->without_maxtext = true;
    adv_hf_warn_of_dropout(config, at, warnings);
    if (err->count + err->lost_count > before) return err->code;
    ADV_WARN(warnings, "no-maxtext-model", at, "the files that start a training are refused",
             "MaxText has no model file for %s: time and memory are from its dimensions", model_type);
    return ADV_OK;
}
