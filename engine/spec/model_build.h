/* model_build.h: MaxText's architecture keys, and the layer table they mean.
 *
 * The three X-macros list every key that shapes a decoder; JSON decoding, catalog and Hugging Face conversion
 * all go through this one struct, so a model is the same however it was given. Names and defaults are
 * MaxText's (configs/base.yml); what a block does with a key is written from its behaviour at commit e591f30c
 * (2026-08-22).
 */
#pragma once

#include "engine/spec/kernel_shape.h"
#include "engine/spec/model.h"

/* X(key, default, low, high). A default of -1 outside [low, high] means "must be given". */
#define ADV_MODEL_INTEGER_KEYS(X)                                                                            \
    X(base_emb_dim, -1, 1, 1 << 20)                                                                          \
    X(base_num_query_heads, -1, 1, 1 << 16)                                                                  \
    X(base_num_kv_heads, -1, 1, 1 << 16)                                                                     \
    X(base_mlp_dim, -1, 1, 1 << 24)                                                                          \
    X(base_num_decoder_layers, -1, 1, 10000)                                                                 \
    X(vocab_size, -1, 1, 1 << 26)                                                                            \
    X(head_dim, 128, 1, ADV_KERNEL_HEAD_DIM_MAX)                                                             \
    X(global_parameter_scale, 1, 1, 1 << 20)                                                                 \
    X(num_experts, 1, 1, 4096)                                                                               \
    X(num_experts_per_tok, 1, 1, 4096)                                                                       \
    X(base_moe_mlp_dim, -1, -1, 1 << 24) /* -1, 0: base_mlp_dim */                                           \
    X(moe_expert_input_dim, -1, -1, 1 << 20)                                                                 \
    X(attention_output_dim, -1, -1, 1 << 20)                                                                 \
    X(shared_experts, 0, 0, 1024)                                                                            \
    X(first_num_dense_layers, 0, 0, 10000)                                                                   \
    X(interleave_moe_layer_step, 1, 1, 1000)                                                                 \
    X(inhomogeneous_layer_cycle_interval, 1, 1, 1000)                                                        \
    X(nope_layer_interval, -1, -1, 1000)                                                                     \
    X(chunk_attn_window_size, 0, 0, 1 << 28)                                                                 \
    X(sliding_window_size, 0, 0, 1 << 28)                                                                    \
    X(q_lora_rank, 0, 0, 1 << 20)                                                                            \
    X(kv_lora_rank, 512, 1, 1 << 20)                                                                         \
    X(qk_nope_head_dim, 128, 1, ADV_KERNEL_HEAD_DIM_MAX)                                                     \
    X(qk_rope_head_dim, 64, 0, ADV_KERNEL_HEAD_DIM_MAX)                                                      \
    X(v_head_dim, 128, 1, ADV_KERNEL_HEAD_DIM_MAX)                                                           \
    X(o_groups, 0, 0, 1024)                                                                                  \
    X(o_lora_rank, 0, 0, 1 << 20)                                                                            \
    X(indexer_n_heads, 64, 1, 1024)                                                                          \
    X(indexer_head_dim, 128, 1, 8192)                                                                        \
    X(indexer_topk, 2048, 1, 1 << 28)                                                                        \
    X(gdn_num_key_heads, 16, 1, 1024)                                                                        \
    X(gdn_num_value_heads, 32, 1, 1024)                                                                      \
    X(gdn_key_head_dim, 128, 1, 8192)                                                                        \
    X(gdn_value_head_dim, 128, 1, 8192)                                                                      \
    X(gdn_conv_kernel_dim, 4, 1, 64)                                                                         \
    X(gdn_chunk_size, 64, 1, 65536)                                                                          \
    X(global_head_dim, 0, 0, ADV_KERNEL_HEAD_DIM_MAX)                                                        \
    X(global_num_kv_heads, 0, 0, 1 << 16)                                                                    \
    X(num_kv_shared_layers, 0, 0, 10000)                                                                     \
    X(hidden_size_per_layer_input, 0, 0, 1 << 20)                                                            \
    X(vocab_size_per_layer_input, 0, 0, 1 << 26)                                                             \
    X(trainable_position_size, -1, -1, 1 << 28)                                                              \
    X(mtp_num_layers, 0, 0, 16)                                                                              \
    X(mhc_expansion_rate, 1, 1, 64)                                                                          \
    X(engram_num_heads, 8, 1, 1024)                                                                          \
    X(engram_head_dim, 1280, 1, 65536)                                                                       \
    X(engram_max_ngram_size, 3, 2, 64)                                                                       \
    X(engram_kernel_size, 4, 1, 64)

#define ADV_MODEL_BOOL_KEYS(X)                                                                               \
    X(logits_via_embedding)                                                                                  \
    X(use_qk_norm)                                                                                           \
    X(attention_bias)                                                                                        \
    X(mlp_bias)                                                                                              \
    X(routed_bias)                                                                                           \
    X(attention_sink)                                                                                        \
    X(share_kv_projections) X(use_double_wide_mlp) X(use_indexer) X(use_post_attn_norm) X(use_post_ffw_norm)

#define ADV_MODEL_NUMBER_KEYS(X) X(final_logits_soft_cap) X(attn_logits_soft_cap)

enum { ADV_LIMIT_COMPRESS_RATIOS = 256 }; /* the longest list known has 43 entries */

struct adv_model_keys {
    char name[ADV_LIMIT_NAME];
    char maxtext_name[ADV_LIMIT_NAME]; /* "" = not one of MaxText's own */
    enum adv_decoder decoder_block;
    bool is_mla;               /* attention_type == "mla" */
    int mlp_activations_count; /* ["silu", "linear"] 2, ["gelu"] 1 */
    int engram_layers_count;   /* length of engram_layers */
    unsigned mesh_axes;        /* bits of the axes of the mesh that the model brings; 0: MaxText's own */
    bool is_multimodal;        /* its file brings images or speech: use_multimodal */
    bool text_only;            /* MaxText refuses use_multimodal for it */
    bool has_mrope;            /* its file brings use_mrope */
    bool splits_batch;         /* its file brings use_batch_split_schedule */
    bool keeps_bias_apart;     /* MaxText knows it by a name of DeepSeek V3's kind */
    bool without_maxtext;      /* MaxText has no model file for it: priced by a block that costs the same */
    bool has_audio;            /* its file brings use_audio */
    bool has_deepstack;        /* its vision tower feeds single layers */
    int64_t shared_mlp_dim; /* of all shared experts where it is no multiple of an expert's; 0: it is one */
    int compress_ratios_count;
    int compress_ratios[ADV_LIMIT_COMPRESS_RATIOS];
#define ADV_MODEL_INTEGER_MEMBER(key, fallback, low, high) int64_t key;
#define ADV_MODEL_BOOL_MEMBER(key)                         bool key;
#define ADV_MODEL_NUMBER_MEMBER(key)                       double key;
    ADV_MODEL_INTEGER_KEYS(ADV_MODEL_INTEGER_MEMBER)
    ADV_MODEL_BOOL_KEYS(ADV_MODEL_BOOL_MEMBER)
    ADV_MODEL_NUMBER_KEYS(ADV_MODEL_NUMBER_MEMBER)
#undef ADV_MODEL_INTEGER_MEMBER
#undef ADV_MODEL_BOOL_MEMBER
#undef ADV_MODEL_NUMBER_MEMBER
};

/* MaxText's defaults; the keys that must be given are -1. */
void adv_model_keys_defaults(struct adv_model_keys *keys);

/* How many shared experts MaxText builds of the key shared_experts: none in most blocks, one at most in
 * qwen3_next and qwen3_5. */
int adv_model_shared_experts(const struct adv_model_keys *keys);

/* Whether MaxText's block reads the architecture key of this name. What it does not read it ignores. */
bool adv_decoder_reads(enum adv_decoder decoder, const char *key);

/* Sets the keys that the block of `keys` does not read to their defaults: the model is the same. */
void adv_model_keys_read(struct adv_model_keys *keys);

enum { ADV_MODEL_UNREAD_MAX = 40 }; /* keys that some block does not read */

/* Writes the names of the keys away from their defaults that the block does not read; returns how many. The
 * names are constant. */
int adv_model_unread(const struct adv_model_keys *keys, const char *unread[ADV_MODEL_UNREAD_MAX]);

/* Makes `model` from the keys `given` (global_parameter_scale applied) that its block reads. All
 * inconsistencies are reported at once with pointers `at`/key: ADV_E_INVALID for dims that do not go
 * together, ADV_E_UNSUPPORTED for more layer kinds than the table holds. Pure; allocates nothing. */
ADV_MUST_CHECK adv_code adv_model_build(const struct adv_model_keys *given, const char *at,
                                        struct adv_model *model, adv_err *err);
