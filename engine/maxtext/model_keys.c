#include "engine/maxtext/model_keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/maxtext/changes.h"
#include "engine/maxtext/entries.h"
#include "engine/spec/model_build.h"

/* Dimensions of the model as MaxText names them; 0 means the key does not apply. */
struct dimension {
    const char *key;
    int64_t value;
};

static const struct adv_layer *first_with_experts(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return &model->layers[i];
    return NULL;
}

static int64_t window_of(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].window_tokens > 0) return model->layers[i].window_tokens;
    return 0;
}

/* Dense layers in front of the expert layers (DeepSeek). */
static int leading_dense(const struct adv_model *model, const struct adv_layer *experts)
{
    int count = 0;
    for (int i = 0; i < model->layer_kinds_count && &model->layers[i] != experts; i++)
        count += model->layers[i].count;
    return count;
}

static adv_code put_dimensions(const struct adv_model *model, struct adv_arena *arena,
                               struct adv_config *config)
{
    const struct adv_layer *first = &model->layers[0];
    const struct adv_layer *experts = first_with_experts(model);
    bool mla = first->kv_lora_rank > 0;
    const struct dimension dimensions[] = {
        {"base_emb_dim", model->emb_dim},
        {"base_num_query_heads", first->q_heads},
        {"base_num_kv_heads", first->kv_heads},
        {"head_dim", mla ? 0 : first->head_dim_qk},
        {"base_mlp_dim", first->mlp_dim ? first->mlp_dim : first->moe_mlp_dim},
        {"base_num_decoder_layers", model->layers_count},
        {"vocab_size", model->vocab_size},
        {"sliding_window_size", window_of(model)},
        {"num_experts", experts ? experts->experts : 0},
        {"num_experts_per_tok", experts ? experts->experts_per_token : 0},
        {"base_moe_mlp_dim", experts ? experts->moe_mlp_dim : 0},
        {"shared_experts", experts ? experts->shared_experts : 0},
        {"first_num_dense_layers",
         experts && model->decoder == ADV_DECODER_DEEPSEEK ? leading_dense(model, experts) : 0},
        {"q_lora_rank", mla ? first->q_lora_rank : 0},
        {"kv_lora_rank", mla ? first->kv_lora_rank : 0},
        {"qk_nope_head_dim", mla ? first->qk_nope_head_dim : 0},
        {"qk_rope_head_dim", mla ? first->qk_rope_head_dim : 0},
        {"v_head_dim", mla ? first->head_dim_v : 0},
    };
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++) {
        if (dimensions[i].value == 0) continue;
        char value[32];
        snprintf(value, sizeof value, "%" PRId64, dimensions[i].value);
        adv_code code = adv_config_put(config, arena, dimensions[i].key, value);
        if (code != ADV_OK) return code;
    }
    return ADV_OK;
}

adv_code adv_config_write_model(const struct adv_model *model, struct adv_arena *arena,
                                struct adv_config *config)
{
    char value[ADV_LIMIT_NAME + 2];
    if (model->without_maxtext) return ADV_OK; /* no keys of MaxText say it */
    if (model->maxtext_name[0] != '\0') {
        snprintf(value, sizeof value, "\"%s\"", model->maxtext_name);
        return adv_config_put(config, arena, "model_name", value);
    }
    const struct adv_layer *first = &model->layers[0];
    snprintf(value, sizeof value, "\"%s\"", adv_decoder_name(model->decoder));
    adv_code code = adv_config_put(config, arena, "decoder_block", value);
    if (code == ADV_OK) code = put_dimensions(model, arena, config);
    if (code == ADV_OK)
        code = adv_config_put(config, arena, "mlp_activations",
                              first->mlp_inputs > 1 ? "[\"silu\", \"linear\"]" : "[\"gelu\"]");
    if (code == ADV_OK && first->kv_lora_rank > 0)
        code = adv_config_put(config, arena, "attention_type", "\"mla\"");
    if (code == ADV_OK && first->has_qk_norm && adv_decoder_reads(model->decoder, "use_qk_norm"))
        code = adv_config_put(config, arena, "use_qk_norm", "true");
    if (code == ADV_OK && first->has_attention_bias && adv_decoder_reads(model->decoder, "attention_bias"))
        code = adv_config_put(config, arena, "attention_bias", "true");
    if (code == ADV_OK && model->ties_embedding)
        code = adv_config_put(config, arena, "logits_via_embedding", "true");
    return code;
}

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
static bool has_a_say(const struct adv_given *defaults, int count, const struct adv_config *config)
{
    for (int i = 0; i < count; i++) {
        const struct adv_key *key = adv_key_find(defaults[i].key);
        if ((key && key->plan_bytes > 0) || adv_config_find(config, defaults[i].key)) return true;
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
    struct adv_config_changes found = {.items = changes, .capacity = CHANGES};
    struct adv_plan read;
    if (!adv_reread_over(reread, NULL, 0, &read)) return ADV_OK; /* the file is not to blame */
    adv_code code = adv_config_changes(NULL, &read, plan, source->model, source->cluster, arena, &found, err);
    for (int i = 0; code == ADV_OK && i < found.count; i++)
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
    const struct adv_given *defaults;
    int defaults_count;
    if (!model_name) return ADV_OK;
    adv_code code = adv_config_of_model(catalog, model_name, arena, &defaults, &defaults_count, err);
    if (code != ADV_OK || !has_a_say(defaults, defaults_count, config)) return code;
    struct adv_reread *reread = adv_arena_alloc(arena, sizeof *reread);
    if (!reread) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    code = adv_reread_open(reread, catalog, model, model_name, cluster, config, arena, err);
    if (code != ADV_OK) return code;
    code = append_unsaid(reread, plan, arena, config, err);
    if (code == ADV_OK && contradicts(&reread->source, config) && !adv_config_find(config, override_key))
        code = append(config, override_key, "true", err);
    return code;
}
