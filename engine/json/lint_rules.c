#include "engine/json/lint_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum operation { NONE, IS, IS_NOT, ABOVE, GIVEN, DIVIDED_BY, SAME_AS };

struct condition {
    const char *key;
    enum operation operation;
    const char *value; /* of ABOVE a number, of DIVIDED_BY and SAME_AS another key */
};

enum { WHEN = 4, NEEDS = 6 };

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
    {"sparse-core-pinning",
     1336,
     {{"moe_pin_sparse_core_all_gathers", IS, "true"}, {"moe_fsdp_use_two_stage_all_gather", IS, "true"}},
     {{0}}},
    {"sparse-core-pinning",
     1336,
     {{"moe_pin_sparse_core_fsdp_all_gathers", IS, "true"},
      {"moe_fsdp_use_two_stage_all_gather", IS, "true"}},
     {{0}}},
    {"one-expert-sharding",
     1342,
     {{"shard_embed_moe_on_fsdp", IS, "true"}, {"shard_exp_on_fsdp", IS, "true"}},
     {{0}}},
    {"one-expert-sharding",
     1342,
     {{"shard_embed_moe_on_fsdp", IS, "true"}, {"use_2d_fsdp_sharding", IS, "true"}},
     {{0}}},
    {"streaming-diloco", 2425, {{"enable_streaming_diloco", IS, "true"}}, {{"enable_diloco", IS, "true"}}},
    {"streaming-diloco",
     2427,
     {{"enable_streaming_diloco", IS, "true"}},
     {{"num_diloco_fragments", ABOVE, "1"}}},
    {"streaming-diloco", 5048, {{"enable_streaming_diloco", IS, "true"}}, {{"scan_layers", IS, "true"}}},
    {"dropless-fallback", 3812, {{"moe_dropless_fallback", GIVEN, ""}}, {{"num_experts", ABOVE, "1"}}},
    {"dropless-fallback",
     3814,
     {{"moe_dropless_fallback", GIVEN, ""}},
     {{"ragged_buffer_factor", ABOVE, "0"}}},
    {"dropless-fallback",
     3816,
     {{"moe_dropless_fallback", GIVEN, ""}},
     {{"use_ring_of_experts", IS, "true"}}},
    {"dropless-fallback", 3818, {{"moe_dropless_fallback", GIVEN, ""}}, {{"use_ragged_sort", IS, "true"}}},
    {"dropless-fallback",
     3823,
     {{"moe_dropless_fallback", IS, "layer"}, {"use_random_routing", IS, "true"}},
     {{0}}},
    {"dropless-fallback",
     3830,
     {{"moe_dropless_fallback", IS, "step"}, {"optimizer_memory_host_offload", IS, "true"}},
     {{0}}},
    {"dropless-fallback",
     3839,
     {{"retry_dropless_first_steps", ABOVE, "0"}},
     {{"moe_dropless_fallback", IS, "step"}}},
    {"first-phase-buffer",
     3846,
     {{"first_phase_ragged_buffer_factor", ABOVE, "0"}},
     {{"retry_dropless_first_steps", ABOVE, "0"}}},
    {"buffer-probe",
     3862,
     {{"log_required_ragged_buffer_factor", IS, "true"}},
     {{"use_ring_of_experts", IS, "true"}}},
    {"buffer-probe",
     3862,
     {{"log_required_ragged_buffer_factor", IS, "true"}},
     {{"use_ragged_sort", IS, "true"}}},
    {"load-ratio", 3873, {{"moe_log_max_load_ratio", IS, "true"}}, {{"use_ring_of_experts", IS, "true"}}},
    {"load-ratio", 3873, {{"moe_log_max_load_ratio", IS, "true"}}, {{"use_ragged_sort", IS, "true"}}},
    {"topk-before-gather",
     3881,
     {{"moe_topk_before_ep_all_gather", IS, "true"}},
     {{"use_ring_of_experts", IS, "true"}}},
    {"ragged-buffer-sort",
     3897,
     {{"use_ring_of_experts", IS, "true"}, {"ragged_buffer_factor", ABOVE, "0"}},
     {{"use_ragged_sort", IS, "true"}}},
    {"dynamic-safetensors",
     4691,
     {{"source_checkpoint_layout", IS, "safetensors_dynamic"}, {"enable_single_controller", IS, "true"}},
     {{0}}},
    {"elastic-iterator",
     4707,
     {{"grain_use_elastic_iterator", IS, "true"}},
     {{"grain_file_type", IS, "arrayrecord"}}},
    {"elastic-iterator",
     4718,
     {{"grain_use_elastic_iterator", IS, "true"}},
     {{"use_truncation", IS, "true"}}},
    {"elastic-iterator",
     4726,
     {{"grain_use_elastic_iterator", IS, "true"}, {"grain_train_mixture_config_path", GIVEN, ""}},
     {{0}}},
    {"multi-tier-interval",
     4745,
     {{"enable_multi_tier_checkpointing", IS, "true"}},
     {{"multi_tier_checkpointing_backup_interval_minutes", GIVEN, ""},
      {"multi_tier_checkpointing_backup_interval_steps", GIVEN, ""}}},
    {"multi-tier-interval",
     4745,
     {{"enable_multi_tier_checkpointing", IS, "true"},
      {"multi_tier_checkpointing_backup_interval_minutes", GIVEN, ""},
      {"multi_tier_checkpointing_backup_interval_steps", GIVEN, ""}},
     {{0}}},
    {"head-chunks",
     4794,
     {{"csa_qk_head_chunk_size", ABOVE, "0"}},
     {{"base_num_query_heads", DIVIDED_BY, "csa_qk_head_chunk_size"}}},
    {"indexer-attention",
     4808,
     {{"use_indexer", IS, "true"}},
     {{"attention_type", IS, "mla"}, {"attention_type", IS, "compressed"}}},
    {"indexer-lora", 4814, {{"use_indexer", IS, "true"}}, {{"q_lora_rank", ABOVE, "0"}}},
    {"indexer-threshold",
     4850,
     {{"indexer_cutoff_threshold", IS_NOT, "remat"}},
     {{"use_indexer", IS, "true"}}},
    {"absorbed-mqa", 4856, {{"use_mla_absorbed_mqa", IS, "true"}}, {{"attention_type", IS, "mla"}}},
    {"absorbed-mqa",
     4861,
     {{"use_mla_absorbed_mqa", IS, "true"}},
     {{"attention", IS, "dot_product"}, {"attention", IS, "autoselected"}}},
    {"absorbed-mqa", 4866, {{"use_mla_absorbed_mqa", IS, "true"}}, {{"mla_naive_kvcache", IS, "false"}}},
    {"chunk-window", 4880, {{"attention_type", IS, "chunk"}}, {{"chunk_attn_window_size", ABOVE, "0"}}},
    {"sliding-window",
     4884,
     {{"attention_type", IS, "local_sliding"}},
     {{"sliding_window_size", ABOVE, "0"}}},
    {"block-diffusion",
     4910,
     {{"training_objective", IS, "block_diffusion"}, {"mtp_num_layers", ABOVE, "0"}},
     {{0}}},
    {"block-diffusion",
     4912,
     {{"training_objective", IS, "block_diffusion"}, {"num_vocab_tiling", ABOVE, "1"}},
     {{0}}},
    {"block-diffusion", 4914, {{"training_objective", IS, "block_diffusion"}}, {{"dataset_type", IS, "hf"}}},
    {"mtp-embedding",
     4936,
     {{"mtp_reuse_input_embedding", IS, "true"}, {"use_multimodal", IS, "true"}},
     {{0}}},
    {"quantized-mtp", 4939, {{"quantize_mtp", IS, "true"}}, {{"mtp_num_layers", ABOVE, "0"}}},
    {"quantized-mtp", 4941, {{"quantize_mtp", IS, "true"}}, {{"quantization", IS, "fp8_full"}}},
    {"quantized-logits",
     4944,
     {{"quantize_logits_proj", IS, "true"}},
     {{"logits_via_embedding", IS, "false"}}},
    {"quantized-logits", 4949, {{"quantize_logits_proj", IS, "true"}}, {{"quantization", IS, "fp8_full"}}},
    {"quantized-logits", 4951, {{"quantize_logits_proj", IS, "true"}}, {{"num_vocab_tiling", IS, "1"}}},
    {"quantized-logits", 4959, {{"quantize_logits_proj", IS, "true"}}, {{"logits_dot_in_fp32", IS, "false"}}},
    {"quantized-router",
     4966,
     {{"float32_gate_logits", IS, "true"},
      {"quantize_router_proj", IS, "true"},
      {"use_qwix_quantization", IS, "true"},
      {"quantization", GIVEN, ""}},
     {{0}}},
    {"fp8-accumulation",
     4977,
     {{"quantization", IS, "fp8"}, {"gradient_accumulation_steps", ABOVE, "1"}},
     {{0}}},
    {"fp8-accumulation",
     4977,
     {{"quantization", IS, "nanoo_fp8"}, {"gradient_accumulation_steps", ABOVE, "1"}},
     {{0}}},
    {"fp8-accumulation",
     4977,
     {{"quantization", IS, "fp8_gpu"}, {"gradient_accumulation_steps", ABOVE, "1"}},
     {{0}}},
    {"direct-token-gather",
     4989,
     {{"moe_use_direct_token_gather", IS, "true"}, {"use_gather_mosaic_kernel", IS, "true"}},
     {{0}}},
    {"loss-free-balancing",
     5016,
     {{"routed_bias", IS, "true"}, {"routed_bias_update_rate", ABOVE, "0"}},
     {{"decoder_block", IS, "deepseek"}, {"decoder_block", IS, "deepseek4"}}},
    {"multimodal-sft",
     5089,
     {{"use_multimodal", IS, "true"}, {"use_sft", IS, "true"}},
     {{"sft_train_on_completion_only", IS, "true"}}},
    {"multimodal-sft",
     5091,
     {{"use_multimodal", IS, "true"}, {"use_sft", IS, "true"}},
     {{"packing", IS, "false"}}},
    {"explicit-sharding",
     5139,
     {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "qwen3_next"}},
     {{"sparse_matmul", IS, "true"}}},
    {"explicit-sharding",
     5139,
     {{"shard_mode", IS, "explicit"}, {"decoder_block", IS, "qwen3_5"}},
     {{"sparse_matmul", IS, "true"}}},
    {"hf-evaluation",
     5404,
     {{"dataset_type", IS, "hf"}, {"eval_interval", ABOVE, "0"}},
     {{"hf_eval_split", GIVEN, ""}}},
    {"hf-workers", 5406, {{"dataset_type", IS, "hf"}, {"grain_worker_count", ABOVE, "1"}}, {{0}}},
    {"tfds-evaluation",
     5447,
     {{"dataset_type", IS, "tfds"}, {"eval_interval", ABOVE, "0"}},
     {{"eval_split", GIVEN, ""}}},
    {"evaluation-padding",
     5453,
     {{"eval_interval", ABOVE, "0"}, {"generate_padding_batch_eval", IS, "true"}},
     {{"eval_steps", ABOVE, "0"}}},
    {"qk-clip-cap", 5482, {{"use_qk_clip", IS, "true"}, {"attn_logits_soft_cap", ABOVE, "0"}}, {{0}}},
    {"fp8-keys", 5494, {{"experimental_sa_quant_k_fp8", IS, "true"}}, {{"attention_type", IS, "mla"}}},
    {"sliced-mla", 5503, {{"use_sliced_mla_proj", IS, "true"}, {"quantization", GIVEN, ""}}, {{0}}},
    {"served-weights",
     5516,
     {{"quantization", IS, "serve_fp8_weight"}},
     {{"use_qwix_quantization", IS, "false"}}},
    {"gmm-v2-batch-split",
     5523,
     {{"use_gmm_v2", IS, "true"}, {"use_batch_split_schedule", IS, "true"}},
     {{0}}},
    {"kv-sharing", 5537, {{"num_kv_shared_layers", ABOVE, "0"}, {"fused_qkv", IS, "true"}}, {{0}}},
    {"kv-sharing", 5539, {{"num_kv_shared_layers", ABOVE, "0"}, {"share_kv_projections", IS, "true"}}, {{0}}},
    {"token-chunks",
     5543,
     {{"num_moe_token_chunks", ABOVE, "1"}},
     {{"max_target_length", DIVIDED_BY, "num_moe_token_chunks"}}},
    {"lineage", 5550, {{"use_lineage", IS, "true"}}, {{"scan_layers", IS, "true"}}},
    {"lineage", 5552, {{"use_lineage", IS, "true"}}, {{"decoder_block", IS, "deepseek"}}},
    {"lineage", 5558, {{"use_lineage", IS, "true"}}, {{"capacity_factor", ABOVE, "0"}}},
    {"diloco-tokamax", 5645, {{"enable_diloco", IS, "true"}, {"use_tokamax_gmm", IS, "true"}}, {{0}}},
    {"deferred-reduces",
     5654,
     {{"defer_small_all_reduces", IS, "true"}},
     {{"use_ring_of_experts", IS, "true"}}},
    {"deferred-reduces",
     5659,
     {{"defer_small_all_reduces", IS, "true"}},
     {{"moe_dropless_fallback", IS_NOT, "layer"}}},
    {"expert-options-without-experts-axis",
     4159,
     {{"moe_dropless_fallback", GIVEN, ""}},
     {{"ici_expert_parallelism", IS_NOT, "1"}, {"dcn_expert_parallelism", IS_NOT, "1"}}},
    {"expert-options-without-experts-axis",
     4159,
     {{"num_moe_emb_chunks", ABOVE, "0"}},
     {{"ici_expert_parallelism", IS_NOT, "1"}, {"dcn_expert_parallelism", IS_NOT, "1"}}},
    {"expert-options-without-experts-axis",
     4159,
     {{"eval_ragged_buffer_factor", ABOVE, "0"}},
     {{"ici_expert_parallelism", IS_NOT, "1"}, {"dcn_expert_parallelism", IS_NOT, "1"}}},
    {"expert-width",
     5005,
     {{"num_experts", ABOVE, "1"},
      {"interleave_moe_layer_step", IS, "1"},
      {"first_num_dense_layers", IS, "0"},
      {"inhomogeneous_layer_cycle_interval", IS, "1"}},
     {{"base_mlp_dim", SAME_AS, "base_moe_mlp_dim"},
      {"decoder_block", IS, "qwen3_moe"},
      {"decoder_block", IS, "gemma4"}}},
    {"optimizer-over-data",
     5616,
     {{"shard_optimizer_over_data", IS, "true"}, {"ici_fsdp_parallelism", ABOVE, "1"}},
     {{0}}},
    {"reorder-strategy",
     5325,
     {{"context_parallel_reorder_strategy", IS, "striped"},
      {"context_parallel_load_balance", IS, "true"},
      {"ici_context_parallelism", IS_NOT, "1"}},
     {{0}}},
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
    if (condition->operation == SAME_AS) {
        json_t *other = value_of(values, condition->value);
        result = json_equal(value, other) == 1;
        *unknown |= !other;
        json_decref(other);
    }
    json_decref(value);
    return result;
}

static void describe(const struct condition *condition, char *text, size_t text_bytes)
{
    static const char *const words[] = {[IS] = "",
                                        [IS_NOT] = "other than ",
                                        [ABOVE] = "above ",
                                        [DIVIDED_BY] = "a multiple of ",
                                        [SAME_AS] = "equal to "};
    if (condition->operation == GIVEN)
        (void)snprintf(text, text_bytes, "%s", condition->key);
    else
        (void)snprintf(text, text_bytes, "%s %s%s", condition->key, words[condition->operation],
                       condition->value);
}

static void report(const struct rule *rule, adv_err *errors)
{
    char pointer[ADV_LIMIT_POINTER], when[ADV_LIMIT_DETAIL] = "", other[128], needs[ADV_LIMIT_DETAIL] = "";
    char line[32];
    size_t used = 0;
    for (int i = 0; i < WHEN && rule->when[i].key && used < sizeof when; i++) {
        describe(&rule->when[i], other, sizeof other);
        used += (size_t)snprintf(when + used, sizeof when - used, "%s%s", i ? " with " : "", other);
    }
    used = 0;
    for (int i = 0; i < NEEDS && rule->needs[i].key && used < sizeof needs; i++) {
        describe(&rule->needs[i], other, sizeof other);
        used += (size_t)snprintf(needs + used, sizeof needs - used, "%s%s", i ? " or " : "", other);
    }
    (void)snprintf(line, sizeof line, rule->line ? "types.py:%d" : "pyconfig.py", rule->line);
    (void)snprintf(pointer, sizeof pointer, "/config/%s", rule->when[0].key);
    (void)adv_err_add(errors, ADV_E_ILLEGAL, pointer, NULL, "%s %s%s (MaxText refuses it: %s)", when,
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
