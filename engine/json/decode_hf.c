/* A Hugging Face config.json as MaxText architecture keys. Field names are those of the transformers library.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_hf_families.h"
#include "engine/json/decode_model.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/run.h"

/* What the library has where the file does not say; 0: what follows from the others. */
struct defaults {
    int64_t head_dim, kv_heads;
};

struct reader {
    const json_t *config;
    const char *at;
    struct adv_model_keys *keys;
    adv_err *err, *warnings;
    struct defaults defaults;
};

/* An integer member into one of the keys. */
struct field {
    const char *member;
    size_t offset;
    enum adv_json_need need;
};
#define FIELD(member, key, need)                                                                             \
    {                                                                                                        \
        member, offsetof(struct adv_model_keys, key), ADV_JSON_##need                                        \
    }

static const struct field common_fields[] = {
    FIELD("hidden_size", base_emb_dim, REQUIRED),
    FIELD("num_attention_heads", base_num_query_heads, REQUIRED),
    FIELD("num_hidden_layers", base_num_decoder_layers, REQUIRED),
    FIELD("intermediate_size", base_mlp_dim, REQUIRED),
    FIELD("vocab_size", vocab_size, REQUIRED),
    FIELD("num_key_value_heads", base_num_kv_heads, OPTIONAL),
    FIELD("head_dim", head_dim, OPTIONAL),
};

static void read_fields(const struct reader *reader, const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value;
        if (adv_json_integer(reader->config, reader->at, fields[i].member, fields[i].need, 0, 1 << 28, &value,
                             reader->err))
            memcpy((char *)reader->keys + fields[i].offset, &value, sizeof value);
    }
}
#define READ_FIELDS(reader, fields) read_fields(reader, fields, sizeof(fields) / sizeof((fields)[0]))

static void read_bool(const struct reader *reader, const char *member, bool *value)
{
    (void)adv_json_bool(reader->config, reader->at, member, ADV_JSON_OPTIONAL, value, reader->err);
}

static void assume(const struct reader *reader, const char *member, int64_t value, int64_t *key)
{
    *key = value;
    ADV_REFUSE(reader->warnings, ADV_AT(reader->at, member), NULL,
               "`%s` is not in the config: %lld, the library's default, is assumed", member,
               (long long)value);
}

/* The fields nearly all architectures share; heads default as the library has them. */
static void read_common(const struct reader *reader)
{
    struct adv_model_keys *keys = reader->keys;
    const struct defaults *defaults = &reader->defaults;
    keys->head_dim = 0;
    READ_FIELDS(reader, common_fields);
    if (defaults->head_dim > 0 && !json_object_get(reader->config, "head_dim"))
        assume(reader, "head_dim", defaults->head_dim, &keys->head_dim);
    if (defaults->kv_heads > 0 && !json_object_get(reader->config, "num_key_value_heads") &&
        keys->base_num_query_heads % defaults->kv_heads == 0)
        assume(reader, "num_key_value_heads", defaults->kv_heads, &keys->base_num_kv_heads);
    if (keys->base_num_kv_heads < 0) keys->base_num_kv_heads = keys->base_num_query_heads;
    if (keys->head_dim == 0 && keys->base_num_query_heads > 0)
        keys->head_dim = keys->base_emb_dim / keys->base_num_query_heads;
    read_bool(reader, "tie_word_embeddings", &keys->logits_via_embedding);
    read_bool(reader, "attention_bias", &keys->attention_bias);
}

/* A member that MaxText's block cannot express unless it has the one value; absent is that value. */
static void require_value(const struct reader *reader, const char *member, const json_t *value,
                          json_int_t only)
{
    const bool same = !value || json_is_null(value) ||
                      (json_is_array(value)     ? json_array_size(value) == (size_t)only
                       : json_is_boolean(value) ? json_is_true(value) == (only != 0)
                                                : json_integer_value(value) == only);
    if (same) return;
    (void)adv_err_add(reader->err, ADV_E_UNSUPPORTED, ADV_AT(reader->at, member), NULL,
                      "MaxText's %s block has no such layers: `%s` must be %s",
                      adv_decoder_name(reader->keys->decoder_block), member,
                      json_is_array(value)     ? "empty"
                      : json_is_boolean(value) ? (only ? "true" : "false")
                                               : (only ? "1" : "0"));
}

static void require_plain(const struct reader *reader, const char *member, json_int_t only)
{
    require_value(reader, member, json_object_get(reader->config, member), only);
}

/* Blocks of local layers with one global layer at their end, as MaxText builds them. */
static void require_cycle(const struct reader *reader, size_t period)
{
    const json_t *types = json_object_get(reader->config, "layer_types");
    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool is_global = (i + 1) % period == 0;
        if (type && strcmp(type, is_global ? "full_attention" : "sliding_attention") == 0) continue;
        (void)adv_err_add(reader->err, ADV_E_UNSUPPORTED, ADV_AT(reader->at, "layer_types"), NULL,
                          "MaxText's %s block has another order of layers: %zu local, then 1 global, but "
                          "layer %zu is \"%.40s\"",
                          adv_decoder_name(reader->keys->decoder_block), period - 1, i + 1, type ? type : "");
        return;
    }
}

/* MaxText's rotary scalings: linear, yarn, and llama3's with the numbers of Llama 3.1. */
static void warn_of_rope(const struct reader *reader)
{
    static const struct {
        const char *member;
        double value;
    } numbers[] = {{"factor", 8},
                   {"low_freq_factor", 1},
                   {"high_freq_factor", 4},
                   {"original_max_position_embeddings", 8192}};
    const char *member = NULL;
    const json_t *scaling = adv_hf_rope(reader->config, &member);
    const char *type = json_string_value(json_object_get(scaling, "rope_type"));
    if (!type) type = json_string_value(json_object_get(scaling, "type"));
    if (!type || !reader->warnings) return;
    const char *pointer = ADV_AT(reader->at, member);
    bool llama3 = strcmp(type, "llama3") == 0;
    if (!llama3 && strcmp(type, "default") != 0 && strcmp(type, "linear") != 0 && strcmp(type, "yarn") != 0)
        (void)adv_err_add(reader->warnings, ADV_E_UNSUPPORTED, pointer,
                          "the time is right, the training would be another model's",
                          "MaxText has no rotary scaling \"%.40s\"", type);
    for (size_t i = 0; llama3 && i < sizeof numbers / sizeof *numbers; i++) {
        const json_t *value = json_object_get(scaling, numbers[i].member);
        if (!json_is_number(value) || fabs(json_number_value(value) - numbers[i].value) < 1e-9) continue;
        (void)adv_err_add(reader->warnings, ADV_E_UNSUPPORTED, pointer,
                          "the time is right, the training would be another model's",
                          "MaxText's llama3.1 rotary scaling has %s %g, the config asks for %g",
                          numbers[i].member, numbers[i].value, json_number_value(value));
    }
}

/* The library leaves these layers of a checkpoint out; MaxText has a key for them. */
void adv_hf_warn_of_next_tokens(const json_t *config, const char *at, adv_err *warnings)
{
    static const char member[] = "num_nextn_predict_layers";
    const json_t *given = json_object_get(config, member);
    char hint[ADV_LIMIT_DETAIL];
    if (!json_is_integer(given) || json_integer_value(given) < 1) return;
    (void)snprintf(hint, sizeof hint, "set %s to %lld in config, or in pins of a search, to train them too",
                   ADV_NAME_MTP_NUM_LAYERS, (long long)json_integer_value(given));
    ADV_WARN(warnings, "approximated-value", ADV_AT(at, member), hint,
             "multi-token prediction is left out: the decoder alone is priced and trained");
}

/* MaxText drops scores in the kernels of GPUs alone; its dropout_rate is of what layers give. */
void adv_hf_warn_of_dropout(const json_t *config, const char *at, adv_err *warnings)
{
    static const char *const members[] = {"attention_dropout", "attn_pdrop"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const double share = json_number_value(json_object_get(config, members[i]));
        if (!(share > 0)) continue;
        (void)adv_err_add(warnings, ADV_E_UNSUPPORTED, ADV_AT(at, members[i]),
                          "the time is right, the training would be another model's; set it to 0 if that is "
                          "meant",
                          "MaxText drops no attention scores on TPUs: `%s` %.6g is left out", members[i],
                          share);
    }
}

/* Biases that the block does not build are left out. */
static void leave_bias(const struct reader *reader)
{
    struct adv_model_keys *keys = reader->keys;
    const bool always = keys->decoder_block == ADV_DECODER_GPT3;
    if (!keys->attention_bias || always || adv_decoder_reads(keys->decoder_block, "attention_bias")) return;
    keys->attention_bias = false;
    if (!reader->warnings) return;
    (void)adv_err_add(reader->warnings, ADV_E_UNSUPPORTED, ADV_AT(reader->at, "attention_bias"),
                      "the time is right, the training would be another model's",
                      "MaxText's %s block has no biases in its attention, the config asks for them",
                      adv_decoder_name(keys->decoder_block));
}

static void read_llama(const struct reader *reader)
{
    require_plain(reader, "mlp_bias", 0);
    read_common(reader);
}

static void read_mixtral(const struct reader *reader)
{
    static const struct field fields[] = {FIELD("num_local_experts", num_experts, REQUIRED),
                                          FIELD("num_experts_per_tok", num_experts_per_tok, REQUIRED)};
    read_common(reader);
    READ_FIELDS(reader, fields);
}

static void read_qwen2(const struct reader *reader)
{
    read_common(reader);
    reader->keys->attention_bias = true;
}

static void read_qwen3(const struct reader *reader)
{
    read_common(reader);
    reader->keys->use_qk_norm = true;
}

static void read_qwen3_moe(const struct reader *reader)
{
    static const struct field fields[] = {FIELD("num_experts", num_experts, REQUIRED),
                                          FIELD("num_experts_per_tok", num_experts_per_tok, REQUIRED),
                                          FIELD("moe_intermediate_size", base_moe_mlp_dim, REQUIRED)};
    read_qwen3(reader);
    READ_FIELDS(reader, fields);
    require_plain(reader, "decoder_sparse_step", 1);
    require_plain(reader, "mlp_only_layers", 0);
    reader->keys->base_mlp_dim =
        reader->keys->base_moe_mlp_dim; /* as MaxText's files: every layer is of experts */
}

static void read_gemma(const struct reader *reader)
{
    reader->keys->logits_via_embedding = true;
    read_common(reader);
}

/* What is not in the file is the library's; null is none. */
static void read_cap(const struct reader *reader, const char *member, double usual, double *cap)
{
    if (!json_object_get(reader->config, member)) *cap = usual;
    (void)adv_json_number(reader->config, reader->at, member, ADV_JSON_OPTIONAL, 0, 1e6, cap, reader->err);
}

static void read_caps(const struct reader *reader, double final_logits, double attention_logits)
{
    read_cap(reader, "final_logit_softcapping", final_logits, &reader->keys->final_logits_soft_cap);
    read_cap(reader, "attn_logit_softcapping", attention_logits, &reader->keys->attn_logits_soft_cap);
}

/* MaxText's gemma2 layer is a pair: one local, one global layer. */
static void read_gemma2(const struct reader *reader)
{
    static const struct field fields[] = {FIELD("sliding_window", sliding_window_size, REQUIRED)};
    struct adv_model_keys *keys = reader->keys;
    read_gemma(reader);
    READ_FIELDS(reader, fields);
    read_caps(reader, 30, 50);
    if (keys->base_num_decoder_layers > 0 && keys->base_num_decoder_layers % 2 != 0)
        (void)adv_err_add(reader->err, ADV_E_UNSUPPORTED, ADV_AT(reader->at, "num_hidden_layers"), NULL,
                          "gemma2 alternates local and global layers: %lld is odd",
                          (long long)keys->base_num_decoder_layers);
    keys->base_num_decoder_layers /= 2;
    require_cycle(reader, 2);
}

static void read_gemma3(const struct reader *reader)
{
    static const struct field fields[] = {FIELD("sliding_window", sliding_window_size, REQUIRED)};
    struct adv_model_keys *keys = reader->keys;
    keys->logits_via_embedding = true;
    /* Published configs leave out what equals the library's defaults. */
    if (!json_object_get(reader->config, "num_attention_heads"))
        assume(reader, "num_attention_heads", 8, &keys->base_num_query_heads);
    if (!json_object_get(reader->config, "num_key_value_heads"))
        assume(reader, "num_key_value_heads", 4, &keys->base_num_kv_heads);
    if (!json_object_get(reader->config, "head_dim")) assume(reader, "head_dim", 256, &keys->head_dim);
    if (!json_object_get(reader->config, "vocab_size"))
        assume(reader, "vocab_size", 262208, &keys->vocab_size);
    for (size_t i = 0; i < sizeof common_fields / sizeof common_fields[0]; i++) {
        struct field field = common_fields[i];
        bool has_default =
            strcmp(field.member, "num_attention_heads") == 0 || strcmp(field.member, "vocab_size") == 0;
        if (has_default) field.need = ADV_JSON_OPTIONAL;
        read_fields(reader, &field, 1);
    }
    read_bool(reader, "tie_word_embeddings", &keys->logits_via_embedding);
    READ_FIELDS(reader, fields);
    read_caps(reader, 0, 0);
    bool looks_both_ways = false;
    read_bool(reader, "use_bidirectional_attention", &looks_both_ways);
    int pattern = 6;
    if (adv_json_int(reader->config, reader->at, "sliding_window_pattern", ADV_JSON_OPTIONAL, 1, 1000,
                     &pattern, reader->err) &&
        pattern != 6) {
        (void)adv_err_add(
            reader->err, ADV_E_UNSUPPORTED, ADV_AT(reader->at, "sliding_window_pattern"), NULL,
            "MaxText's gemma3 repeats 5 local and 1 global layer, the config asks for a period of %d",
            pattern);
    }
    require_cycle(reader, 6);
    if (looks_both_ways && reader->warnings)
        (void)adv_err_add(reader->warnings, ADV_E_UNSUPPORTED,
                          ADV_AT(reader->at, "use_bidirectional_attention"),
                          "the training would be another model's, and its attention costs twice as much",
                          "MaxText's gemma3 block attends to earlier tokens only, the config asks for all");
}

static void read_deepseek(const struct reader *reader)
{
    static const struct field fields[] = {
        FIELD("kv_lora_rank", kv_lora_rank, REQUIRED),
        FIELD("qk_nope_head_dim", qk_nope_head_dim, REQUIRED),
        FIELD("qk_rope_head_dim", qk_rope_head_dim, REQUIRED),
        FIELD("v_head_dim", v_head_dim, REQUIRED),
        FIELD("q_lora_rank", q_lora_rank, OPTIONAL), /* null: queries are projected directly */
        FIELD("n_routed_experts", num_experts, REQUIRED),
        FIELD("num_experts_per_tok", num_experts_per_tok, REQUIRED),
        FIELD("moe_intermediate_size", base_moe_mlp_dim, REQUIRED),
        FIELD("n_shared_experts", shared_experts, OPTIONAL),
        FIELD("first_k_dense_replace", first_num_dense_layers, OPTIONAL),
    };
    struct adv_model_keys *keys = reader->keys;
    const int64_t unread = keys->head_dim;
    read_common(reader);
    READ_FIELDS(reader, fields);
    keys->head_dim = unread; /* latent attention has sizes of its own */
    require_plain(reader, "moe_layer_freq", 1);
    keys->is_mla = true;
    const char *method = json_string_value(json_object_get(reader->config, "topk_method"));
    keys->routed_bias = method && strcmp(method, "noaux_tc") == 0;
}

/* The library's own class always has the routing bias, and does not write topk_method. */
static void read_deepseek3(const struct reader *reader)
{
    read_deepseek(reader);
    if (!json_object_get(reader->config, "topk_method")) reader->keys->routed_bias = true;
    reader->keys->keeps_bias_apart = true; /* decode_hf_settings.c has it trained under that name */
}

static void read_gpt_oss(const struct reader *reader)
{
    static const struct field fields[] = {FIELD("num_local_experts", num_experts, REQUIRED),
                                          FIELD("num_experts_per_tok", num_experts_per_tok, REQUIRED),
                                          FIELD("sliding_window", sliding_window_size, REQUIRED)};
    struct adv_model_keys *keys = reader->keys;
    read_common(reader);
    READ_FIELDS(reader, fields);
    keys->attention_sink = keys->mlp_bias = keys->routed_bias = true;
    if (!json_object_get(reader->config, "attention_bias")) keys->attention_bias = true;
    require_cycle(reader, 2);
}

static void read_gpt2(const struct reader *reader)
{
    static const struct field fields[] = {
        FIELD("n_embd", base_emb_dim, REQUIRED),
        FIELD("n_head", base_num_query_heads, REQUIRED),
        FIELD("n_layer", base_num_decoder_layers, REQUIRED),
        FIELD("vocab_size", vocab_size, REQUIRED),
        FIELD("n_positions", trainable_position_size, REQUIRED),
        FIELD("n_inner", base_mlp_dim, OPTIONAL),
    };
    struct adv_model_keys *keys = reader->keys;
    READ_FIELDS(reader, fields);
    keys->base_num_kv_heads = keys->base_num_query_heads;
    if (keys->base_mlp_dim < 0) keys->base_mlp_dim = 4 * keys->base_emb_dim;
    if (keys->base_num_query_heads > 0) keys->head_dim = keys->base_emb_dim / keys->base_num_query_heads;
    keys->mlp_activations_count = 1;
    keys->logits_via_embedding = true;
    read_bool(reader, "tie_word_embeddings", &keys->logits_via_embedding);
}

/* The layers cost the same in MaxText, but its command would train another model. */
static void leave_maxtext(const struct reader *reader, const char *member, const char *why)
{
    reader->keys->without_maxtext = true;
    if (reader->warnings)
        ADV_WARN(reader->warnings, "no-maxtext-model", ADV_AT(reader->at, member),
                 "the files that start a training are refused", "%s: time and memory are from its dimensions",
                 why);
}

static void read_gpt_neox(const struct reader *reader)
{
    read_common(reader);
    reader->keys->mlp_activations_count = 1;
    leave_maxtext(reader, "model_type", "MaxText's gpt3 block has no rotary positions, which gpt_neox has");
}

/* gpt_oss has a gate of its own, whatever the file names. */
static void judge_activation(const struct reader *reader)
{
    static const char *const members[] = {"hidden_activation", "hidden_act", "activation_function"};
    const char *name = adv_hf_activation(reader->config);
    size_t member = 0;
    char why[ADV_LIMIT_DETAIL];
    if (!name || adv_maxtext_has_activation(name) || reader->keys->decoder_block == ADV_DECODER_GPT_OSS)
        return;
    while (member < 2 && !json_is_string(json_object_get(reader->config, members[member]))) member++;
    (void)snprintf(why, sizeof why, "MaxText has no activation \"%.80s\"", name);
    leave_maxtext(reader, members[member], why);
}

static const struct architecture {
    const char *model_type, *class_name; /* of transformers */
    enum adv_decoder decoder;
    void (*read)(const struct reader *reader);
    struct defaults defaults;
} architectures[] = {
    {"llama", "LlamaForCausalLM", ADV_DECODER_LLAMA2, read_llama, {0, 0}},
    {"mistral", "MistralForCausalLM", ADV_DECODER_MISTRAL, read_llama, {0, 8}},
    {"mixtral", "MixtralForCausalLM", ADV_DECODER_MIXTRAL, read_mixtral, {0, 8}},
    {"qwen2", "Qwen2ForCausalLM", ADV_DECODER_QWEN2, read_qwen2, {0, 0}},
    {"qwen3", "Qwen3ForCausalLM", ADV_DECODER_QWEN3, read_qwen3, {128, 32}},
    {"qwen3_moe", "Qwen3MoeForCausalLM", ADV_DECODER_QWEN3_MOE, read_qwen3_moe, {0, 4}},
    {"gemma", "GemmaForCausalLM", ADV_DECODER_GEMMA, read_gemma, {256, 16}},
    {"gemma2", "Gemma2ForCausalLM", ADV_DECODER_GEMMA2, read_gemma2, {256, 4}},
    {"gemma3_text", "Gemma3ForCausalLM", ADV_DECODER_GEMMA3, read_gemma3, {0, 0}},
    {"gemma3", "Gemma3ForConditionalGeneration", ADV_DECODER_GEMMA3, read_gemma3, {0, 0}},
    {"deepseek_v2", "DeepseekV2ForCausalLM", ADV_DECODER_DEEPSEEK, read_deepseek, {0, 0}},
    {"deepseek_v3", "DeepseekV3ForCausalLM", ADV_DECODER_DEEPSEEK, read_deepseek3, {0, 0}},
    {"gpt_oss", "GptOssForCausalLM", ADV_DECODER_GPT_OSS, read_gpt_oss, {64, 8}},
    {"gpt2", "GPT2LMHeadModel", ADV_DECODER_GPT3, read_gpt2, {0, 0}},
    {"gpt_neox", "GPTNeoXForCausalLM", ADV_DECODER_GPT3, read_gpt_neox, {0, 0}},
};
enum { ARCHITECTURES = sizeof architectures / sizeof architectures[0] };

static const struct architecture *find_architecture(const char *model_type, const char *class_name)
{
    for (int i = 0; i < ARCHITECTURES; i++) {
        if (model_type && strcmp(architectures[i].model_type, model_type) == 0) return &architectures[i];
        if (!model_type && class_name && strcmp(architectures[i].class_name, class_name) == 0)
            return &architectures[i];
    }
    return NULL;
}

bool adv_hf_is_read(const char *model_type)
{
    return find_architecture(model_type, NULL) != NULL;
}

static const char *class_of(const json_t *config)
{
    return json_string_value(json_array_get(json_object_get(config, "architectures"), 0));
}

const char *adv_hf_model_type(const json_t *config)
{
    const char *model_type = json_string_value(json_object_get(config, "model_type"));
    const struct architecture *architecture = find_architecture(model_type, class_of(config));
    return architecture ? architecture->model_type : model_type;
}

static adv_code refuse_architecture(const char *at, const char *model_type, const char *class_name,
                                    adv_err *err)
{
    char hint[ADV_LIMIT_DETAIL] = "known model_type:";
    for (int i = 0; i < ARCHITECTURES; i++) adv_append(hint, sizeof hint, " %s", architectures[i].model_type);
    if (!model_type && !class_name)
        return adv_err_add(err, ADV_E_INVALID, ADV_AT(at, "model_type"), hint,
                           "neither `model_type` nor `architectures` says what the model is");
    return adv_err_add(err, ADV_E_UNSUPPORTED, ADV_AT(at, model_type ? "model_type" : "architectures"), hint,
                       "the layers of the family \"%.80s\" are not known here",
                       model_type ? model_type : class_name);
}

adv_code adv_decode_hf_config(const json_t *config, const char *at, struct adv_model_keys *keys, adv_err *err,
                              adv_err *warnings)
{
    int before = err->count + err->lost_count;
    adv_model_keys_defaults(keys);
    if (!adv_json_is_object(config, at, err)) return ADV_E_INVALID;
    const char *model_type = json_string_value(json_object_get(config, "model_type"));
    const char *class_name = class_of(config);
    const struct architecture *architecture = find_architecture(model_type, class_name);
    if (!architecture) return refuse_architecture(at, model_type, class_name, err);
    keys->decoder_block = architecture->decoder;
    const char *path = json_string_value(json_object_get(config, "_name_or_path"));
    (void)snprintf(keys->name, sizeof keys->name, "%.*s", ADV_LIMIT_NAME - 1,
                   path && *path && !adv_text_has_control(path) ? path : architecture->model_type);

    /* Models with vision keep the decoder's dims one level down. */
    struct reader reader = {.config = config,
                            .at = at,
                            .keys = keys,
                            .err = err,
                            .warnings = warnings,
                            .defaults = architecture->defaults};
    const json_t *text = json_object_get(config, "text_config");
    const char *nested_at = ADV_AT(at, "text_config");
    if (json_is_object(text)) reader.config = text;
    if (json_is_object(text)) reader.at = nested_at;
    architecture->read(&reader);
    warn_of_rope(&reader);
    adv_hf_warn_of_dropout(reader.config, reader.at, warnings);
    leave_bias(&reader);
    judge_activation(&reader);
    return err->count + err->lost_count > before ? ADV_E_INVALID : ADV_OK;
}
