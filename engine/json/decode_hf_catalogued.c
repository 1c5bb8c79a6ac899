/* decode_hf_catalogued.c: a config.json whose model is one of the catalog's, found by its family and
 * dimensions. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_hf_families.h"
#include "engine/maxtext/names.h"

/* Which models of the catalog a family has: those of the block whose name starts so. */
static const struct family {
    const char *model_type, *prefix;
} families[] = {
    {"llama4", "llama4-"},         {"llama4_text", "llama4-"},
    {"kimi_k2", "kimi-k2"},        {"deepseek_v32", "deepseek3.2"},
    {"deepseek_v4", "deepseek4"},  {"qwen3_next", "qwen3-next"},
    {"qwen3_5_moe", "qwen3.5-"},   {"qwen3_5_moe_text", "qwen3.5-"},
    {"qwen3_vl", "qwen3-vl-"},     {"qwen3_vl_text", "qwen3-vl-"},
    {"qwen3_vl_moe", "qwen3-vl-"}, {"qwen3_vl_moe_text", "qwen3-vl-"},
    {"gemma4", "gemma4-"},         {"gemma4_text", "gemma4-"},
    {"olmo3", "olmo3-"},           {"qwen3_omni_moe", "qwen3-omni-"},
};

static const struct family *family_of(const char *model_type)
{
    for (size_t i = 0; model_type && i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].model_type, model_type) == 0) return &families[i];
    return NULL;
}

/* Models with vision or speech keep the decoder's dims some levels down: at `at`. */
static const json_t *decoder_of(const json_t *config, char at[ADV_LIMIT_POINTER])
{
    static const char *const parts[] = {"thinker_config", "text_config"};
    (void)snprintf(at, ADV_LIMIT_POINTER, "/model/hf_config");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!json_is_object(json_object_get(config, parts[i]))) continue;
        config = json_object_get(config, parts[i]);
        adv_append(at, ADV_LIMIT_POINTER, "/%s", parts[i]);
    }
    return config;
}

/* What a model has under a member of the library; 0: the member says nothing of its layers. */
struct dimension {
    const char *member;
    int64_t value;
    bool is_core; /* models that differ in it are not alike at all */
};
enum { DIMENSIONS = 31 };

/* The width of the feed-forward layers that `intermediate_size` is of: where all have experts, none. */
static int64_t dense_width(const struct adv_model_keys *keys)
{
    const enum adv_decoder block = keys->decoder_block;
    if (block == ADV_DECODER_LLAMA4) return keys->base_moe_mlp_dim; /* the library's name for experts */
    const bool has_dense =
        keys->num_experts <= 1 || keys->first_num_dense_layers > 0 || block == ADV_DECODER_GEMMA4;
    return has_dense ? keys->base_mlp_dim : 0;
}

static void dimensions_of(const struct adv_model_keys *keys, struct dimension dimensions[DIMENSIONS])
{
    const enum adv_decoder block = keys->decoder_block;
    const bool experts = keys->num_experts > 1, llama4 = block == ADV_DECODER_LLAMA4,
               deltas = block == ADV_DECODER_QWEN3_NEXT || block == ADV_DECODER_QWEN3_5,
               deepseek = block == ADV_DECODER_DEEPSEEK || block == ADV_DECODER_DEEPSEEK4;
    const int64_t per_token = experts ? keys->num_experts_per_tok : 0;
    const struct dimension rows[DIMENSIONS] = {
        {"hidden_size", keys->base_emb_dim, true},
        {"num_hidden_layers", keys->base_num_decoder_layers, true},
        {"num_attention_heads", keys->base_num_query_heads, true},
        {"num_key_value_heads", keys->base_num_kv_heads, true},
        {"num_experts", keys->num_experts, true},
        {"num_local_experts", keys->num_experts, true},
        {"n_routed_experts", keys->num_experts, true},
        {"num_experts_per_tok", per_token, true},
        {"top_k_experts", per_token, true},
        {"intermediate_size", dense_width(keys), false},
        {"intermediate_size_mlp", llama4 && keys->interleave_moe_layer_step > 1 ? keys->base_mlp_dim : 0,
         false},
        {"moe_intermediate_size", experts ? keys->base_moe_mlp_dim : 0, false},
        {"shared_expert_intermediate_size", deltas ? keys->shared_experts * keys->base_moe_mlp_dim : 0,
         false},
        {"n_shared_experts", deepseek ? keys->shared_experts : 0, false},
        {"first_k_dense_replace", keys->first_num_dense_layers, false},
        {"interleave_moe_layer_step", llama4 ? keys->interleave_moe_layer_step : 0, false},
        {"decoder_sparse_step", experts ? 1 : 0, false},
        {"head_dim", keys->is_mla ? 0 : keys->head_dim, false},
        {"global_head_dim", keys->global_head_dim, false},
        {"num_global_key_value_heads", keys->global_num_kv_heads, false},
        {"num_kv_shared_layers", keys->num_kv_shared_layers, false},
        {"hidden_size_per_layer_input", keys->hidden_size_per_layer_input, false},
        {"q_lora_rank", keys->q_lora_rank, false},
        {"kv_lora_rank", keys->is_mla ? keys->kv_lora_rank : 0, false},
        {"qk_nope_head_dim", keys->is_mla ? keys->qk_nope_head_dim : 0, false},
        {"v_head_dim", keys->is_mla ? keys->v_head_dim : 0, false},
        {"sliding_window", keys->sliding_window_size, false},
        {"attention_chunk_size", keys->chunk_attn_window_size, false},
        {"full_attention_interval", deltas ? keys->inhomogeneous_layer_cycle_interval : 0, false},
        {"linear_num_key_heads", deltas ? keys->gdn_num_key_heads : 0, false},
        {"linear_num_value_heads", deltas ? keys->gdn_num_value_heads : 0, false},
    };
    memcpy(dimensions, rows, sizeof rows);
}

/* A dimension that the file says is the model's; what it leaves out says nothing against it. Without experts
 * the file may say 0, or 1. */
static bool agrees(const json_t *config, const struct dimension *dimension)
{
    const json_t *given = json_object_get(config, dimension->member);
    const double number = json_number_value(given), value = (double)dimension->value;
    if (!json_is_number(given) || dimension->value == 0) return true;
    if (strstr(dimension->member, "experts") && value <= 1 && dimension->is_core) return number <= 1;
    return number >= value && number <= value;
}

/* Every how many layers attention is over the whole sequence; 0: layers are alike, or not known. */
static int64_t period_of(const struct adv_model_keys *keys)
{
    const enum adv_decoder block = keys->decoder_block;
    if (block == ADV_DECODER_LLAMA4) return keys->nope_layer_interval;
    if (block == ADV_DECODER_OLMO3) return 4;
    if (block == ADV_DECODER_QWEN3_NEXT || block == ADV_DECODER_QWEN3_5)
        return keys->inhomogeneous_layer_cycle_interval;
    if (block == ADV_DECODER_GEMMA4_SMALL && keys->base_num_decoder_layers % 6 != 0) return 5; /* e2b */
    return block == ADV_DECODER_GEMMA4 || block == ADV_DECODER_GEMMA4_SMALL ? 6 : 0;
}

static bool layers_agree(const json_t *config, const struct adv_model_keys *keys)
{
    const json_t *types = json_object_get(config, "layer_types");
    const int64_t period = period_of(keys);
    for (size_t i = 0; period > 0 && i < json_array_size(types); i++) {
        const char *type = json_string_value(json_array_get(types, i));
        const bool is_full = type && strcmp(type, "full_attention") == 0;
        if (is_full != (((int64_t)i + 1) % period == 0)) return false;
    }
    return true;
}

/* Of a vocabulary that was padded for its tables, by one of the two. */
static bool vocabularies_agree(const json_t *config, const struct adv_model_keys *keys)
{
    enum { PADDING = 1024 };
    const json_t *given = json_object_get(config, "vocab_size");
    const double more = json_number_value(given) - (double)keys->vocab_size;
    return !json_is_number(given) || (more <= PADDING && more >= -PADDING);
}

/* The first member in which the file and the model differ, NULL: none; `only_core`: of the dimensions without
 * which two models are not alike at all. */
static const char *difference(const json_t *config, const struct adv_model_keys *keys, bool only_core)
{
    struct dimension dimensions[DIMENSIONS];
    dimensions_of(keys, dimensions);
    for (int i = 0; i < DIMENSIONS; i++)
        if ((dimensions[i].is_core || !only_core) && !agrees(config, &dimensions[i]))
            return dimensions[i].member;
    if (only_core) return NULL;
    if (json_array_size(json_object_get(config, "mlp_only_layers")) > 0) return "mlp_only_layers";
    if (!layers_agree(config, keys)) return "layer_types";
    return vocabularies_agree(config, keys) ? NULL : "vocab_size";
}

static bool says_size(const json_t *config)
{
    return json_is_number(json_object_get(config, "hidden_size")) &&
           json_is_number(json_object_get(config, "num_hidden_layers"));
}

static bool is_model(const json_t *config, const struct adv_model_keys *keys)
{
    return says_size(config) && !difference(config, keys, false);
}

/* Members that should be numbers and are none: left out they would agree with every model. */
static adv_code check_kinds(const json_t *config, const char *at, adv_err *err)
{
    static const struct adv_model_keys none;
    struct dimension dimensions[DIMENSIONS];
    const int before = err->count;
    dimensions_of(&none, dimensions);
    for (int i = 0; i <= DIMENSIONS; i++) {
        const char *member = i < DIMENSIONS ? dimensions[i].member : "vocab_size";
        const json_t *given = json_object_get(config, member);
        if (json_is_string(given) || json_is_boolean(given))
            ADV_REFUSE(err, ADV_AT(at, member), json_is_string(given) ? "write it without quotes" : NULL,
                       "`%s` must be a number, not %s", member, adv_json_type_name(given));
    }
    return err->count > before ? err->code : ADV_OK;
}

/* Writes the names of the models into `hint`, after `opening`: those with the dimensions of `decoder`, or,
 * where it is NULL, those whose names begin with the first `bytes` of `prefix`. Without a model nothing is
 * written. */
static void name_models(const struct adv_catalog *catalog, const char *opening, const json_t *decoder,
                        const char *prefix, size_t bytes, char hint[ADV_LIMIT_DETAIL])
{
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        const struct adv_model_keys *keys = adv_catalog_model_keys(catalog, name);
        if (decoder ? !keys || !is_model(decoder, keys) : strncmp(name, prefix, bytes) != 0) continue;
        adv_append(hint, ADV_LIMIT_DETAIL, "%s %s", *hint ? "" : opening, name);
    }
}

/* The family's model with the file's dimensions (of variants the one without a suffix), NULL: none;
 * `only_core`: one that may differ in others. */
static const char *find_model(const struct adv_catalog *catalog, const struct family *family,
                              const json_t *decoder, bool only_core)
{
    const char *found = NULL;
    for (int i = 0; says_size(decoder) && i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        const struct adv_model_keys *keys = adv_catalog_model_keys(catalog, name);
        if (strncmp(name, family->prefix, strlen(family->prefix)) == 0 && keys &&
            !difference(decoder, keys, only_core) && (!found || strlen(name) < strlen(found)))
            found = name;
    }
    return found;
}

/* The file is nearly one of the catalog's models. */
static adv_code refuse_variant(const struct adv_catalog *catalog, const char *name, const json_t *decoder,
                               const char *at, adv_err *err)
{
    const char *member = difference(decoder, adv_catalog_model_keys(catalog, name), false);
    char hint[ADV_LIMIT_DETAIL];
    (void)snprintf(hint, sizeof hint,
                   "give %.80s as model, and in config what differs, with override_model_config", name);
    return adv_err_add(
        err, ADV_E_UNSUPPORTED, ADV_AT(at, member), hint,
        "MaxText knows these layers by its model files alone: the configuration is like %.80s, "
        "but has another %s",
        name, member);
}

static adv_code refuse(const struct adv_catalog *catalog, const struct family *family, const json_t *config,
                       const char *at, adv_err *err)
{
    char hint[ADV_LIMIT_DETAIL] = "";
    const char *alike = find_model(catalog, family, config, true);
    if (alike) return refuse_variant(catalog, alike, config, at, err);
    name_models(catalog, "give the name of one of these as model:", NULL, family->prefix,
                strlen(family->prefix), hint);
    return adv_err_add(
        err, ADV_E_UNSUPPORTED, "/model/hf_config/model_type", hint,
        "MaxText knows the layers of %s by its model files alone, and none has hidden_size %.12g with "
        "%.12g layers and these heads and experts",
        family->model_type, json_number_value(json_object_get(config, "hidden_size")),
        json_number_value(json_object_get(config, "num_hidden_layers")));
}

/* How many letters the names of models share with the family's at most: gemma3n with gemma3-4b has five. */
static size_t shared_letters(const struct adv_catalog *catalog, const char *model_type)
{
    size_t most = 0;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        size_t count = 0;
        while (isalpha((unsigned char)name[count]) && name[count] == model_type[count]) count++;
        if (count > most) most = count;
    }
    return most;
}

/* A family that nobody here knows: models with its dimensions may be meant, or those named as it is. */
static adv_code refuse_family(const struct adv_catalog *catalog, const char *model_type,
                              const json_t *decoder, adv_err *err)
{
    enum { ALIKE = 4 }; /* letters: qwen */
    char hint[ADV_LIMIT_DETAIL] = "";
    const size_t letters = shared_letters(catalog, model_type);
    name_models(catalog, "these have its dimensions, give one as model:", decoder, "", 0, hint);
    if (!*hint && letters >= ALIKE)
        name_models(catalog, "if one of these is meant, give its name as model:", NULL, model_type, letters,
                    hint);
    return adv_err_add(err, ADV_E_UNSUPPORTED, "/model/hf_config/model_type",
                       *hint ? hint : "give the model as keys of MaxText: decoder_block, base_emb_dim, …",
                       "the layers of the family \"%.80s\" are not known here", model_type);
}

adv_code adv_decode_hf_catalogued(const struct adv_catalog *catalog, json_t *root, adv_err *err,
                                  adv_err *warnings)
{
    const json_t *config = json_object_get(json_object_get(root, "model"), "hf_config");
    const char *model_type = json_string_value(json_object_get(config, "model_type"));
    const struct family *family = family_of(model_type);
    char at[ADV_LIMIT_POINTER];
    if (!model_type || adv_hf_is_read(model_type) || adv_hf_is_plain(model_type)) return ADV_OK;
    const json_t *decoder = decoder_of(config, at);
    if (!family) return refuse_family(catalog, model_type, decoder, err);
    if (check_kinds(decoder, at, err) != ADV_OK) return err->code;
    const char *found = find_model(catalog, family, decoder, false);
    if (!found) return refuse(catalog, family, decoder, at, err);
    const int64_t vocab = adv_catalog_model_keys(catalog, found)->vocab_size;
    const json_t *given = json_object_get(decoder, "vocab_size");
    ADV_WARN(warnings, "catalog-model", "/model", NULL,
             "the configuration is that of the catalog's %s, which is what is predicted and trained", found);
    if (json_is_integer(given) && json_integer_value(given) != vocab)
        ADV_WARN(warnings, "catalog-model", ADV_AT(at, "vocab_size"), "set vocab_size in config",
                 "the file's vocabulary has %lld entries, MaxText's %s %lld, which count",
                 (long long)json_integer_value(given), found, (long long)vocab);
    adv_hf_warn_of_dropout(decoder, at, warnings);
    if (!json_object_get(json_object_get(root, "config"), ADV_NAME_MTP_NUM_LAYERS) &&
        !json_object_get(json_object_get(root, "pins"), ADV_NAME_MTP_NUM_LAYERS))
        adv_hf_warn_of_next_tokens(decoder, at, warnings);
    (void)json_object_set_new(root, "model", json_string(found));
    return ADV_OK;
}
