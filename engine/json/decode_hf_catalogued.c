/* decode_hf_catalogued.c: a config.json whose model is one of the catalog's, found by its family and
 * dimensions. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_hf_families.h"

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

/* Models with vision or speech keep the decoder's dims some levels down. */
static const json_t *decoder_of(const json_t *config)
{
    static const char *const parts[] = {"thinker_config", "text_config"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (json_is_object(json_object_get(config, parts[i]))) config = json_object_get(config, parts[i]);
    return config;
}

/* A dimension that the file says is the model's; what it leaves out says nothing against it. */
static bool agrees(const json_t *config, const char *const *members, int64_t value)
{
    for (; *members; members++) {
        const json_t *given = json_object_get(config, *members);
        if (json_is_integer(given)) return json_integer_value(given) == value;
    }
    return true;
}

static bool is_model(const json_t *config, const struct adv_model_keys *keys)
{
    static const char *const emb[] = {"hidden_size", NULL}, *const layers[] = {"num_hidden_layers", NULL},
                             *const heads[] = {"num_attention_heads", NULL},
                             *const kv[] = {"num_key_value_heads", NULL},
                             *const per_token[] = {"num_experts_per_tok", "top_k_experts", NULL},
                             *const experts[] = {"num_experts", "num_local_experts", "n_routed_experts",
                                                 NULL};
    const bool says = json_is_integer(json_object_get(config, "hidden_size")) &&
                      json_is_integer(json_object_get(config, "num_hidden_layers"));
    return says && agrees(config, emb, keys->base_emb_dim) &&
           agrees(config, layers, keys->base_num_decoder_layers) &&
           agrees(config, heads, keys->base_num_query_heads) && agrees(config, kv, keys->base_num_kv_heads) &&
           (keys->num_experts <= 1 || (agrees(config, experts, keys->num_experts) &&
                                       agrees(config, per_token, keys->num_experts_per_tok)));
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

static adv_code refuse(const struct adv_catalog *catalog, const struct family *family, const json_t *config,
                       adv_err *err)
{
    char hint[ADV_LIMIT_DETAIL] = "";
    name_models(catalog, "give the name of one of these as model:", NULL, family->prefix,
                strlen(family->prefix), hint);
    return adv_err_add(
        err, ADV_E_UNSUPPORTED, "/model/hf_config/model_type", hint,
        "MaxText knows the layers of %s by its model files alone, and none has hidden_size %lld with "
        "%lld layers and these heads and experts",
        family->model_type, (long long)json_integer_value(json_object_get(config, "hidden_size")),
        (long long)json_integer_value(json_object_get(config, "num_hidden_layers")));
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
    const char *found = NULL;
    if (!model_type || adv_hf_is_read(model_type) || adv_hf_is_plain(model_type)) return ADV_OK;
    const json_t *decoder = decoder_of(config);
    if (!family) return refuse_family(catalog, model_type, decoder, err);
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count;
         i++) { /* of variants the one without a suffix */
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        const struct adv_model_keys *keys = adv_catalog_model_keys(catalog, name);
        if (strncmp(name, family->prefix, strlen(family->prefix)) == 0 && keys && is_model(decoder, keys) &&
            (!found || strlen(name) < strlen(found)))
            found = name;
    }
    if (!found) return refuse(catalog, family, decoder, err);
    const int64_t vocab = adv_catalog_model_keys(catalog, found)->vocab_size;
    const json_t *given = json_object_get(decoder, "vocab_size");
    ADV_WARN(warnings, "catalog-model", "/model", NULL,
             "the configuration is that of the catalog's %s, which is what is predicted and trained", found);
    if (json_is_integer(given) && json_integer_value(given) != vocab)
        ADV_WARN(warnings, "catalog-model", "/model/hf_config/vocab_size", "set vocab_size in config",
                 "the file's vocabulary has %lld entries, MaxText's %s %lld, which count",
                 (long long)json_integer_value(given), found, (long long)vocab);
    (void)json_object_set_new(root, "model", json_string(found));
    return ADV_OK;
}
