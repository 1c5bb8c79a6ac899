#include "engine/json/lint_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { NONE, IS, IS_NOT, ABOVE, GIVEN, DIVIDED_BY };

struct condition {
    const char *key;
    enum operation operation;
    const char *value; /* of ABOVE a number, of DIVIDED_BY another key */
};

enum { WHEN = 2, NEEDS = 5 };

/* Lines are those of configs/types.py of MaxText 0.2.5. Adding a rule = adding a row. A row without a need
 * says that what stands under `when` is never accepted. */
static const struct rule {
    const char *name;
    int line;
    struct condition when[WHEN];
    struct condition needs[NEEDS]; /* one of them */
} rules[] = {
    {"token-chunks", 1326, {{"num_moe_token_chunks", ABOVE, "1"}}, {{"use_ring_of_experts", IS, "true"}}},
    {"mhc-kernel", 2409, {{"use_mhc_pallas_kernel", IS, "true"}}, {{"enable_mhc_lite", IS, "true"}}},
    {"rope-pairwise", 2659, {{"rope_pairwise", IS, "true"}}, {{"rope_interleave", IS, "true"}}},
    {"check-vma", 3789, {{"check_vma", IS, "true"}}, {{"shard_mode", IS, "auto"}}},
    {"check-vma", 3791, {{"check_vma", IS, "true"}}, {{"use_tokamax_gmm", IS, "false"}}},
    {"check-vma", 3793, {{"check_vma", IS, "true"}}, {{"use_ragged_sort", IS, "false"}}},
    {"check-vma", 3795, {{"check_vma", IS, "true"}}, {{"use_ring_of_experts", IS, "false"}}},
    {"check-vma", 3798, {{"check_vma", IS, "true"}, {"ici_tensor_parallelism", IS_NOT, "1"}}, {{0}}},
    {"check-vma", 3798, {{"check_vma", IS, "true"}, {"ici_context_parallelism", IS_NOT, "1"}}, {{0}}},
    {"check-vma", 3798, {{"check_vma", IS, "true"}, {"ici_data_parallelism", IS_NOT, "1"}}, {{0}}},
    {"embedding-chunks", 4039, {{"num_moe_emb_chunks", ABOVE, "0"}}, {{"use_gmm_v2", IS, "true"}}},
    {"one-checkpoint",
     4688,
     {{"load_parameters_path", GIVEN, ""}, {"load_full_state_path", GIVEN, ""}},
     {{0}}},
    {"elastic-needs-controller",
     4695,
     {{"elastic_enabled", IS, "true"}},
     {{"enable_single_controller", IS, "true"}}},
    {"colocated-needs-controller",
     4701,
     {{"colocated_python_data_input", IS, "true"}},
     {{"enable_single_controller", IS, "true"}}},
    {"colocated-needs-controller",
     4759,
     {{"colocated_python_checkpointing", IS, "true"}},
     {{"enable_single_controller", IS, "true"}}},
    {"dpo-packing", 4715, {{"use_dpo", IS, "true"}}, {{"packing", IS, "false"}}},
    {"elastic-iterator", 4713, {{"grain_use_elastic_iterator", IS, "true"}}, {{"packing", IS, "false"}}},
    {"state-needs-checkpointing",
     4735,
     {{"load_full_state_path", GIVEN, ""}},
     {{"enable_checkpointing", IS, "true"}}},
    {"multi-tier-directory",
     4738,
     {{"enable_multi_tier_checkpointing", IS, "true"}},
     {{"local_checkpoint_directory", GIVEN, ""}}},
    {"multi-tier-period",
     4740,
     {{"enable_multi_tier_checkpointing", IS, "true"}},
     {{"local_checkpoint_period", ABOVE, "0"}}},
    {"emergency-directory",
     4762,
     {{"enable_emergency_checkpoint", IS, "true"}},
     {{"local_checkpoint_directory", GIVEN, ""}}},
    {"emergency-period",
     4764,
     {{"enable_emergency_checkpoint", IS, "true"}},
     {{"local_checkpoint_period", ABOVE, "0"}}},
    {"moba-attention", 4766, {{"moba", IS, "true"}}, {{"attention", IS, "dot_product"}}},
    {"head-chunks",
     4779,
     {{"mla_qk_head_chunk_size", ABOVE, "0"}},
     {{"base_num_query_heads", DIVIDED_BY, "mla_qk_head_chunk_size"}}},
    {"quantized-cache-axis", 4933, {{"quantize_kvcache", IS, "true"}}, {{"kv_quant_axis", GIVEN, ""}}},
    {"expert-width", 4991, {{"num_experts", ABOVE, "1"}}, {{"base_moe_mlp_dim", ABOVE, "0"}}},
    {"sft-or-dpo", 5102, {{"use_sft", IS, "true"}}, {{"use_dpo", IS, "false"}}},
    {"explicit-sharding", 5104, {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "gpt_oss"}}, {{0}}},
    {"explicit-sharding", 5104, {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "llama4"}}, {{0}}},
    {"explicit-sharding", 5104, {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "gpt3"}}, {{0}}},
    {"explicit-sharding", 5104, {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "gemma4"}}, {{0}}},
    {"explicit-sharding", 5104, {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "olmo3"}}, {{0}}},
    {"explicit-sharding", 5104, {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "deepseek4"}}, {{0}}},
    {"explicit-sharding", 5121, {{"shard_mode", IS, "explicit"}}, {{"use_multimodal", IS, "false"}}},
    {"ring-needs-no-jax-splash",
     5219,
     {{"context_parallel_strategy", IS, "ring"}, {"use_jax_splash", IS, "true"}},
     {{0}}},
    {"llama4-capacity", 5349, {{"decoder_block", IS, "llama4"}, {"capacity_factor", ABOVE, "-1"}}, {{0}}},
    {"partial-rotary",
     5386,
     {{"partial_rotary_factor", IS_NOT, "1.0"}},
     {{"decoder_block", IS, "qwen3_next"}, {"decoder_block", IS, "qwen3_5"}}},
    {"hf-path", 5399, {{"dataset_type", IS, "hf"}}, {{"hf_path", GIVEN, ""}}},
    {"grain-files",
     5408,
     {{"dataset_type", IS, "grain"}},
     {{"grain_train_files", GIVEN, ""},
      {"grain_train_mixture_config_path", GIVEN, ""},
      {"hf_path", GIVEN, ""},
      {"grain_file_type", IS, "tfrecord"}}},
    {"q-layout-kernel", 5473, {{"force_q_layout", IS, "true"}}, {{"use_jax_splash", IS, "true"}}},
    {"qk-clip-attention", 5476, {{"use_qk_clip", IS, "true"}}, {{"attention_type", IS, "mla"}}},
    {"shared-kv", 5498, {{"share_kv_projections", IS, "true"}}, {{"fused_qkv", IS, "false"}}},
    {"shared-kv", 5500, {{"share_kv_projections", IS, "true"}}, {{"attention_type", IS_NOT, "mla"}}},
    {"manual-quantization",
     5505,
     {{"use_manual_quantization", IS, "true"}},
     {{"use_batch_split_schedule", IS, "true"}}},
    {"gmm-v2-needs-tokamax", 5520, {{"use_gmm_v2", IS, "true"}}, {{"use_tokamax_gmm", IS, "true"}}},
    {"gmm-v2-tiling", 5525, {{"use_gmm_v2_heuristic_tiling", IS, "true"}}, {{"use_gmm_v2", IS, "true"}}},
    {"deepseek4-mtp", 5532, {{"decoder_block", IS, "deepseek4"}, {"mtp_num_layers", ABOVE, "0"}}, {{0}}},
    {"block-diffusion",
     4900,
     {{"training_objective", IS, "block_diffusion"}},
     {{"attention_type", IS, "block_diffusion"}}},
    {"block-diffusion", 4890, {{"attention_type", IS, "block_diffusion"}}, {{"packing", IS, "false"}}},
    {"gpt-oss-capacity",
     5010,
     {{"decoder_block", IS, "gpt_oss"}, {"sparse_matmul", IS, "false"}},
     {{"capacity_factor", IS, "-1"}}},
    {"ring-unroll",
     5248,
     {{"ring_scan_unroll", IS_NOT, "1"}},
     {{"context_parallel_strategy", IS, "ring"}, {"context_parallel_strategy", IS, "usp"}}},
    {"llama4-one-expert",
     5354,
     {{"decoder_block", IS, "llama4"}, {"num_experts_per_tok", ABOVE, "1"}},
     {{0}}},
    {"tfds-dpo", 5439, {{"dataset_type", IS, "tfds"}, {"use_dpo", IS, "true"}}, {{0}}},
    {"tfds-name", 5445, {{"dataset_type", IS, "tfds"}}, {{"dataset_name", GIVEN, ""}}},
    {"batch-split-format",
     5456,
     {{"use_batch_split_schedule", IS, "true"}, {"quantization", GIVEN, ""}},
     {{"quantization", IS, "fp8_full"}}},
    {"fp8-queries", 5489, {{"experimental_sa_quant_q_fp8", IS, "true"}}, {{"attention_type", IS, "mla"}}},
    {"one-splash-kernel", 0, {{"use_tokamax_splash", IS, "true"}}, {{"use_jax_splash", IS, "false"}}},
};

struct values {
    const struct adv_catalog *catalog;
    const json_t *config, *pins, *keys;
};

/* A new reference; NULL: not known. */
static json_t *value_of(const struct values *values, const char *name)
{
    json_t *value = json_object_get(values->config, name);
    if (!value) value = json_object_get(values->pins, name);
    if (!value) value = json_object_get(values->keys, name);
    if (value) return json_incref(value);
    const struct adv_catalog_key *key = adv_catalog_key(values->catalog, name);
    return key ? json_loads(key->default_json, JSON_DECODE_ANY, NULL) : NULL;
}

static bool is_value(const json_t *value, const char *text)
{
    if (json_is_boolean(value)) return strcmp(text, json_is_true(value) ? "true" : "false") == 0;
    if (json_is_number(value)) {
        const double wanted = strtod(text, NULL), number = json_number_value(value);
        return number >= wanted && number <= wanted;
    }
    return json_is_string(value) && strcmp(json_string_value(value), text) == 0;
}

static bool is_given(const json_t *value)
{
    if (json_is_string(value)) return *json_string_value(value) != '\0';
    return !json_is_null(value) && !json_is_false(value);
}

/* `unknown` is set where a value is not known: then the answer means nothing. */
static bool holds(const struct values *values, const struct condition *condition, bool *unknown)
{
    json_t *value = value_of(values, condition->key);
    bool result = false;
    if (!value) {
        *unknown = true;
        return false;
    }
    if (condition->operation == IS) result = is_value(value, condition->value);
    if (condition->operation == IS_NOT) result = !is_value(value, condition->value);
    if (condition->operation == GIVEN) result = is_given(value);
    if (condition->operation == ABOVE)
        result = json_is_number(value) && json_number_value(value) > strtod(condition->value, NULL);
    if (condition->operation == DIVIDED_BY) {
        json_t *divisor = value_of(values, condition->value);
        const json_int_t by = json_integer_value(divisor);
        result = by > 0 && json_integer_value(value) % by == 0;
        *unknown |= !json_is_integer(value);
        json_decref(divisor);
    }
    json_decref(value);
    return result;
}

static void describe(const struct condition *condition, char *text, size_t text_bytes)
{
    static const char *const words[] = {
        [IS] = "", [IS_NOT] = "other than ", [ABOVE] = "above ", [DIVIDED_BY] = "a multiple of "};
    if (condition->operation == GIVEN)
        (void)snprintf(text, text_bytes, "%s", condition->key);
    else
        (void)snprintf(text, text_bytes, "%s %s%s", condition->key, words[condition->operation],
                       condition->value);
}

static void report(const struct rule *rule, adv_err *errors)
{
    char pointer[ADV_LIMIT_POINTER], first[128], other[128], needs[ADV_LIMIT_DETAIL] = "", line[32];
    size_t used = 0;
    describe(&rule->when[0], first, sizeof first);
    for (int i = 0; i < NEEDS && rule->needs[i].key && used < sizeof needs; i++) {
        describe(&rule->needs[i], other, sizeof other);
        used += (size_t)snprintf(needs + used, sizeof needs - used, "%s%s", i ? " or " : "", other);
    }
    if (rule->when[1].key) describe(&rule->when[1], other, sizeof other);
    (void)snprintf(line, sizeof line, rule->line ? "types.py:%d" : "pyconfig.py", rule->line);
    (void)snprintf(pointer, sizeof pointer, "/config/%s", rule->when[0].key);
    (void)adv_err_add(errors, ADV_E_ILLEGAL, pointer, NULL, "%s%s%s %s%s (MaxText refuses it: %s)", first,
                      rule->when[1].key ? " with " : "", rule->when[1].key ? other : "",
                      *needs ? "needs " : "is not accepted", needs, line);
    adv_err_rule(errors, rule->name);
}

void adv_lint_rules(const struct adv_catalog *catalog, const char *model_name, const json_t *config,
                    adv_err *errors)
{
    const struct adv_catalog_model *model = model_name ? adv_catalog_model_info(catalog, model_name) : NULL;
    json_t *pins = model ? json_loads(model->pins_json, 0, NULL) : NULL;
    json_t *keys = model ? json_loads(model->keys_json, 0, NULL) : NULL;
    const struct values values = {catalog, config, pins, keys};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        bool unknown = false, applies = true, satisfied = false;
        for (int k = 0; k < WHEN && rules[i].when[k].key; k++)
            applies = applies && holds(&values, &rules[i].when[k], &unknown);
        for (int k = 0; k < NEEDS && rules[i].needs[k].key && applies; k++)
            satisfied = satisfied || holds(&values, &rules[i].needs[k], &unknown);
        if (applies && !satisfied && !unknown) report(&rules[i], errors);
    }
    json_decref(pins);
    json_decref(keys);
}
