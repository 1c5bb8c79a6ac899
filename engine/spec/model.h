/* model.h: a decoder-only language model as the engine sees it: dimensions and a table of layer kinds.
 *
 * A model is `layer_kinds_count` rows, each standing for `count` equal decoder layers; unlike layers (gemma's
 * local and global, DeepSeek's first dense ones, llama4's interleaved experts) are rows of their own.
 * Everything that depends on "which layer" is in the row, so cost, memory and FLOP code loop over rows and
 * branch on nothing else. Pure data; built by adv_model_build() (model_build.h) from MaxText's architecture
 * keys. Immutable afterwards.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/err.h"
#include "engine/base/limits.h"

/* decoder_block names of MaxText that have a layer table. */
#define ADV_DECODER_TABLE(X)                                                                                 \
    X(LLAMA2, "llama2")                                                                                      \
    X(MISTRAL, "mistral")                                                                                    \
    X(MIXTRAL, "mixtral")                                                                                    \
    X(GEMMA, "gemma")                                                                                        \
    X(GEMMA2, "gemma2")                                                                                      \
    X(GEMMA3, "gemma3")                                                                                      \
    X(GEMMA4, "gemma4")                                                                                      \
    X(GEMMA4_SMALL, "gemma4_small")                                                                          \
    X(GPT3, "gpt3")                                                                                          \
    X(GPT_OSS, "gpt_oss")                                                                                    \
    X(QWEN2, "qwen2")                                                                                        \
    X(QWEN3, "qwen3")                                                                                        \
    X(QWEN3_MOE, "qwen3_moe")                                                                                \
    X(QWEN3_CUSTOM_MOE, "qwen3_custom_moe")                                                                  \
    X(QWEN3_NEXT, "qwen3_next")                                                                              \
    X(QWEN3_5, "qwen3_5")                                                                                    \
    X(DEEPSEEK, "deepseek")                                                                                  \
    X(DEEPSEEK4, "deepseek4")                                                                                \
    X(LLAMA4, "llama4")                                                                                      \
    X(OLMO3, "olmo3")                                                                                        \
    X(ENVY, "envy")                                                                                          \
    X(DEFAULT, "default")

#define ADV_DECODER_ENUM(id, name) ADV_DECODER_##id,
enum adv_decoder { ADV_DECODER_TABLE(ADV_DECODER_ENUM) ADV_DECODER_COUNT };
#undef ADV_DECODER_ENUM

const char *adv_decoder_name(enum adv_decoder decoder);

enum adv_attention_kind {
    ADV_ATTENTION_FULL,       /* causal over the whole sequence */
    ADV_ATTENTION_WINDOW,     /* causal, last window_tokens */
    ADV_ATTENTION_CHUNKED,    /* causal inside chunks of window_tokens (llama4) */
    ADV_ATTENTION_LINEAR,     /* gated delta net: no scores, a recurrent state (qwen3-next, qwen3.5) */
    ADV_ATTENTION_COMPRESSED, /* DeepSeek4: window plus compressed keys, compress_ratio tokens each */
};

/* Which inputs of the layers of a scan step are called decoder_layer_input, for a remat policy to keep. */
enum adv_input_names {
    ADV_INPUTS_NAMED_EACH, /* every layer's */
    ADV_INPUTS_NAMED_ONCE, /* the step's (gemma2: one layer object is a pair) */
    ADV_INPUTS_UNNAMED,    /* none (qwen3-next): the step's stays on the device */
};

/* One kind of decoder layer. Counts and dims are whole-model, unsharded. For LINEAR layers q_heads and
 * head_dim_v repeat the value heads of the gated delta net, kv_heads and head_dim_qk its key heads. */
struct adv_layer {
    int count; /* layers of this kind */
    enum adv_attention_kind attention;
    int64_t window_tokens; /* WINDOW, COMPRESSED: window; CHUNKED: chunk; else 0 */
    int compress_ratio;    /* COMPRESSED: tokens per compressed key, 0 = window only */
    int q_heads, kv_heads;
    int head_dim_qk, head_dim_v; /* MLA: nope + rope, v */
    bool shares_kv;              /* key and value are one projection (gemma4 global) */
    bool reuses_kv;              /* no key and value projections: takes an earlier layer's (gemma4 small) */
    bool has_output_gate; /* a second query-sized projection gates the output (qwen3-next full layers) */
    bool has_sink;        /* attention sink logit per head (gpt-oss) */
    bool has_qk_norm;
    bool has_value_norm; /* values, too (gemma4) */
    bool has_attention_bias;
    bool has_attention_out_bias;
    int64_t attention_output_dim; /* width the output projection ends in; emb_dim but for qwen3_custom_moe */
    /* multi-head latent attention; q_lora_rank 0 = queries projected directly; kv_lora_rank 0 = not MLA */
    int q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim;
    int indexer_heads, indexer_head_dim, indexer_topk; /* DeepSeek sparse attention; topk 0 = none */
    int output_groups, output_lora_rank; /* COMPRESSED: grouped low-rank output projection; 0 = plain */
    /* gated delta net (LINEAR) */
    int linear_key_heads, linear_value_heads, linear_key_head_dim, linear_value_head_dim, linear_conv_kernel,
        linear_chunk;
    /* feed-forward: both dense and experts may be present in one layer */
    int64_t mlp_dim; /* dense width, 0 = no dense feed-forward */
    int mlp_inputs;  /* matrices in front of the activation: 2 gated, 1 plain */
    bool has_mlp_bias;
    int experts; /* routed experts, 0 = dense layer */
    int experts_per_token;
    int64_t moe_mlp_dim;
    int64_t moe_input_dim; /* width the experts and the router see; emb_dim but for qwen3_custom_moe */
    int shared_experts;
    int64_t shared_mlp_dim; /* of all shared experts together; gemma4 26b: its dense feed-forward */
    bool has_shared_gate;   /* a sigmoid gate per token on the shared expert (qwen3-next, qwen3.5) */
    bool has_expert_scale;  /* one scale per expert (gemma4 26b) */
    bool has_routed_bias;
    int norms;                       /* norms over emb_dim per layer: 2, or 4 with post-norms (gemma2/3/4) */
    bool has_post_ffw_norm;          /* the feed-forward output is needed again in the backward pass */
    int64_t per_layer_embedding_dim; /* gemma4 small: PLE projections; 0 = none */
    int scan_block;                  /* real layers per scan step: gemma3 6, llama4 4, gpt-oss 2, most 1 */
    int remat_block; /* of them, layers that are recomputed together: all, or in qwen3_next one */
    enum adv_input_names input_names;
    bool
        loops_alone; /* in a scan of one iteration inside its block's: what it would send to the host stays */
};

/* Whether the layer's indexer chooses among the keys of a sequence; up to indexer_topk keys it takes all of
 * them. DeepSeek4's, which chooses among compressed keys, is not meant. */
static inline bool adv_layer_picks_keys(const struct adv_layer *layer, int64_t seq_len)
{
    return layer->kv_lora_rank > 0 && layer->indexer_topk > 0 && seq_len > layer->indexer_topk;
}

/* Whether its attention takes the tiles of local_sa_*; all others, chunks too, take those of sa_* (MaxText
 * 0.2.5, attention_op.py). */
static inline bool adv_layer_has_local_tiles(const struct adv_layer *layer)
{
    return layer->attention == ADV_ATTENTION_WINDOW ||
           (layer->attention == ADV_ATTENTION_COMPRESSED && layer->compress_ratio == 0);
}

/* Parameters of one layer, by what they are (they shard differently). */
struct adv_layer_params {
    double attention; /* projections incl. MLA, indexer, gate, biases, qk norms */
    double dense_ffn; /* dense feed-forward */
    double router;
    double routed_experts;
    double shared_experts;
    double norms;
    double other; /* PLE, hyper-connections, convolution */
};

struct adv_model {
    char name[ADV_LIMIT_NAME];
    char maxtext_name[ADV_LIMIT_NAME]; /* "" when the model is given by dimensions only */
    enum adv_decoder decoder;
    int64_t emb_dim, vocab_size;
    int layers_count;           /* decoder layers as MaxText counts them (gemma2: pairs) */
    bool ties_embedding;        /* logits_via_embedding */
    bool has_learned_positions; /* gpt3: trainable_position_size rows */
    int64_t position_rows;
    double per_layer_embedding_params; /* gemma4 small: the big per-layer table, 0 otherwise */
    int mtp_layers;                    /* multi-token-prediction modules */
    double logits_soft_cap;            /* 0 = none */
    double attention_soft_cap;         /* of the attention scores, 0 = none */
    int hyper_connections;             /* mhc_expansion_rate, 1 = none */
    int engram_layers; /* layers with an n-gram memory; counted in FLOPs, its tables are not in the parameters
                        */
    int64_t engram_width; /* (max n-gram - 1) x heads x head size */
    int engram_kernel;
    unsigned mesh_axes;    /* bits (1 << enum adv_axis) of the mesh that the model brings; 0: MaxText's own */
    bool cannot_scan;      /* MaxText refuses scan_layers */
    bool is_multimodal;    /* use_multimodal of its file */
    bool text_only;        /* MaxText refuses use_multimodal for it */
    bool has_audio;        /* use_audio of its file */
    bool has_deepstack;    /* a picture goes into single layers: with use_multimodal they cannot be scanned */
    bool has_mrope;        /* use_mrope of its file: three positions a token, with use_multimodal */
    bool splits_batch;     /* use_batch_split_schedule of its file */
    bool keeps_bias_apart; /* its routing bias, if any, is a variable of a kind of its own */
    bool without_maxtext;  /* MaxText has no such model: nothing can be started */
    int layer_kinds_count;
    struct adv_layer layers[ADV_LIMIT_LAYER_KINDS];
    bool confident; /* false: a block the engine approximates; `caveat` says how */
    char caveat[ADV_LIMIT_DETAIL];
};

/* Parameter counts of a whole model. */
struct adv_model_params {
    double total, active;           /* active: per token, routed experts counted experts_per_token/experts */
    double active_matmul_per_token; /* without embedding lookup and norms */
    double embedding,
        unembedding; /* unembedding 0 when tied; embedding includes gemma4 small's per-layer table */
    double attention, dense_ffn, router, routed_experts, shared_experts, norms, other;
    double positions;         /* learned positions */
    double hyper_connections; /* mHC mixing weights; also in `other`; whole on every device */
    double grouped_outputs; /* DeepSeek4's first output projections, also in `attention`: MaxText shards them
                               over tensor alone (kernel_axes of o_a_proj) */
    double largest_layer;   /* of one layer of the largest kind */
};

/* Parameters that every device of the weights' shards holds whole, but for the tensor axis. */
static inline double adv_params_whole(const struct adv_model_params *params, double tensor_shards)
{
    return params->hyper_connections + params->grouped_outputs / tensor_shards;
}

/* Whether any layer has a sparse-attention indexer. */
static inline bool adv_model_has_indexer(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].indexer_topk > 0) return true;
    return false;
}

/* Whether any layer routes tokens to experts. */
static inline bool adv_model_has_experts(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return true;
    return false;
}

/* Of the layer rows of `model`: exact for what MaxText builds (checked to 0.3 % for all catalog models). */
struct adv_layer_params adv_model_layer_params(const struct adv_model *model, const struct adv_layer *layer);
double adv_layer_params_total(const struct adv_layer_params *params);
struct adv_model_params adv_model_params(const struct adv_model *model);

/* Model FLOPs of one training step of `tokens_per_device` = sequences * seq_len tokens on one device, forward
 * and backward (3 x forward), without recomputation: what MFU is defined on. */
enum adv_flops_convention {
    ADV_FLOPS_CAUSAL_HALF, /* MaxText today: causal attention counted half */
    ADV_FLOPS_FULL,        /* attention counted over the full square */
    ADV_FLOPS_PARAMS_ONLY, /* 6 * active matmul parameters * tokens */
};
struct adv_model_flops {
    double weights, attention, total;
};
struct adv_model_flops adv_model_flops(const struct adv_model *model, double sequences_per_device,
                                       int64_t seq_len, enum adv_flops_convention convention);
