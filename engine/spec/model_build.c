#include "engine/spec/model_build.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"

#define NAME(id, name) name,
ADV_NAMES(adv_decoder_name, enum adv_decoder, ADV_DECODER_TABLE(NAME))

/* Properties of a decoder block that no key changes. */
static const struct decoder_traits {
    bool has_experts;      /* num_experts > 1 makes routed experts */
    bool has_shared;       /* shared_experts stand beside them; other blocks do not read the key */
    bool always_qk_norm;   /* query and key norms without use_qk_norm */
    bool wide_qk_norm;     /* the norms span all heads, not one (olmo3) */
    bool unscaled_qk_norm; /* norms without parameters (llama4) */
    bool output_bias;      /* attention_bias also biases the output projection */
    bool always_biased;    /* gpt3: every projection has a bias, norms have offset and scale */
    bool post_ffw_norm;
    int norms;      /* over emb_dim, per layer */
    int scan_block; /* real layers per scan step when inhomogeneous_layer_cycle_interval is 1 */
    enum adv_input_names input_names;
    bool narrow; /* reads attention_output_dim and moe_expert_input_dim: less than emb_dim in between */
    bool full_layer_alone; /* the full-attention layer of a block has a loop of its own */
    bool remat_each;       /* each layer of a block has a checkpoint of its own */
    const char *caveat;    /* NULL = the engine models the block in full */
} decoder_traits[ADV_DECODER_COUNT] = {
    [ADV_DECODER_LLAMA2] = {.norms = 2, .scan_block = 1},
    [ADV_DECODER_DEFAULT] = {.norms = 2, .scan_block = 1},
    [ADV_DECODER_MISTRAL] = {.norms = 2, .scan_block = 1},
    [ADV_DECODER_MIXTRAL] = {.has_experts = true, .norms = 2, .scan_block = 1},
    [ADV_DECODER_GEMMA] = {.norms = 2, .scan_block = 1},
    [ADV_DECODER_GEMMA2] = {.norms = 4,
                            .scan_block = 2,
                            .post_ffw_norm = true,
                            .input_names = ADV_INPUTS_NAMED_ONCE},
    [ADV_DECODER_GEMMA3] = {.norms = 4, .scan_block = 6, .post_ffw_norm = true, .always_qk_norm = true},
    [ADV_DECODER_GEMMA4] = {.has_experts = true,
                            .has_shared = true,
                            .norms = 4,
                            .scan_block = 1,
                            .post_ffw_norm = true,
                            .always_qk_norm = true,
                            .full_layer_alone = true},
    [ADV_DECODER_GEMMA4_SMALL] = {.norms = 4, .scan_block = 1, .post_ffw_norm = true, .always_qk_norm = true},
    [ADV_DECODER_GPT3] = {.norms = 2, .scan_block = 1, .output_bias = true, .always_biased = true},
    [ADV_DECODER_GPT_OSS] = {.has_experts = true, .norms = 2, .scan_block = 2, .output_bias = true},
    [ADV_DECODER_QWEN2] = {.norms = 2, .scan_block = 1},
    [ADV_DECODER_QWEN3] = {.norms = 2, .scan_block = 1},
    [ADV_DECODER_QWEN3_MOE] = {.has_experts = true, .norms = 2, .scan_block = 1},
    [ADV_DECODER_QWEN3_CUSTOM_MOE] =
        {.has_experts = true,
         .norms = 2,
         .scan_block = 1,
         .narrow = true,
         .caveat = "no step with its narrow stream between attention and experts was compiled or measured"},
    [ADV_DECODER_QWEN3_NEXT] = {.has_experts = true,
                                .has_shared = true,
                                .norms = 2,
                                .scan_block = 4,
                                .always_qk_norm = true,
                                .input_names = ADV_INPUTS_UNNAMED,
                                .full_layer_alone = true,
                                .remat_each = true},
    [ADV_DECODER_QWEN3_5] = {.has_experts = true,
                             .has_shared = true,
                             .norms = 2,
                             .scan_block = 4,
                             .always_qk_norm = true,
                             .input_names = ADV_INPUTS_UNNAMED,
                             .full_layer_alone = true},
    [ADV_DECODER_DEEPSEEK] = {.has_experts = true, .has_shared = true, .norms = 2, .scan_block = 1},
    [ADV_DECODER_DEEPSEEK4] = {.has_experts = true,
                               .has_shared = true,
                               .norms = 2,
                               .scan_block = 2,
                               .caveat = "compressed attention and hyper-connections are approximated: no "
                                         "measurement stands behind them"},
    [ADV_DECODER_LLAMA4] =
        {.has_experts = true, .has_shared = true, .norms = 2, .scan_block = 4, .unscaled_qk_norm = true},
    [ADV_DECODER_OLMO3] = {.norms = 2, .scan_block = 4, .wide_qk_norm = true, .post_ffw_norm = true},
    [ADV_DECODER_ENVY] =
        {.has_experts = true,
         .norms = 2,
         .scan_block = 2,
         .post_ffw_norm = true,
         .caveat = "the envy block is priced as a plain transformer block with a post-feed-forward norm"},
};

int adv_model_shared_experts(const struct adv_model_keys *keys)
{
    const bool has_one =
        keys->decoder_block == ADV_DECODER_QWEN3_NEXT || keys->decoder_block == ADV_DECODER_QWEN3_5;
    if (!decoder_traits[keys->decoder_block].has_shared) return 0;
    return has_one && keys->shared_experts > 1 ? 1 : (int)keys->shared_experts;
}

void adv_model_keys_defaults(struct adv_model_keys *keys)
{
    memset(keys, 0, sizeof *keys);
    keys->decoder_block = ADV_DECODER_LLAMA2;
    keys->mlp_activations_count = 2;
#define KEY_DEFAULT(key, fallback, low, high) keys->key = (fallback);
    ADV_MODEL_INTEGER_KEYS(KEY_DEFAULT)
#undef KEY_DEFAULT
}

/* Dims after global_parameter_scale. */
struct scaled {
    int64_t emb_dim, mlp_dim, moe_mlp_dim, layers;
    int q_heads, kv_heads;
};

/* MaxText's split of a scale 2^n over heads and mlp, then emb, then layers (get_individual_scales). */
static struct scaled scale_dims(const struct adv_model_keys *keys)
{
    int log2_scale = 0;
    while ((keys->global_parameter_scale >> (log2_scale + 1)) > 0) log2_scale++;
    int base = log2_scale / 3;
    int wide = base + (log2_scale % 3 > 0);
    int emb = base + (log2_scale % 3 > 1);
    int64_t moe_mlp_dim = keys->base_moe_mlp_dim > 0 ? keys->base_moe_mlp_dim : keys->base_mlp_dim;
    return (struct scaled){
        .emb_dim = keys->base_emb_dim << emb,
        .mlp_dim = keys->base_mlp_dim << wide,
        .moe_mlp_dim = moe_mlp_dim << wide,
        .layers = keys->base_num_decoder_layers << base,
        .q_heads = (int)(keys->base_num_query_heads << wide),
        .kv_heads = (int)(keys->base_num_kv_heads << wide),
    };
}

/* The properties in which layers of one model differ. */
struct variant {
    bool local;  /* window or chunk instead of the whole sequence */
    bool linear; /* gated delta net */
    bool experts;
    bool reuses_kv;
    int compress_ratio;
};

static bool same_variant(const struct variant *a, const struct variant *b)
{
    return a->local == b->local && a->linear == b->linear && a->experts == b->experts &&
           a->reuses_kv == b->reuses_kv && a->compress_ratio == b->compress_ratio;
}

/* Every `period`-th layer is global (or full), counting from 1. */
static bool is_local(int64_t index, int64_t period)
{
    return period > 0 && (index + 1) % period != 0;
}

/* Gemma4 small: e2b repeats 4 local + 1 global, e4b 5 + 1; the keys do not say, the layer count does. */
static int64_t gemma4_small_period(int64_t layers)
{
    return layers % 6 == 0 ? 6 : 5;
}

static struct variant variant_of(const struct adv_model_keys *keys, int64_t layers, int64_t index)
{
    struct variant variant = {.experts =
                                  keys->num_experts > 1 && decoder_traits[keys->decoder_block].has_experts};
    switch (keys->decoder_block) {
    case ADV_DECODER_GEMMA2:
        variant.local = is_local(index, 2);
        break;
    case ADV_DECODER_GPT_OSS:
        variant.local = is_local(index, 2);
        break;
    case ADV_DECODER_GEMMA3:
    case ADV_DECODER_GEMMA4:
        variant.local = is_local(index, 6);
        break;
    case ADV_DECODER_GEMMA4_SMALL:
        variant.local = is_local(index, gemma4_small_period(layers));
        variant.reuses_kv = index >= layers - keys->num_kv_shared_layers;
        break;
    case ADV_DECODER_OLMO3:
        variant.local = is_local(index, 4);
        break;
    case ADV_DECODER_LLAMA4:
        variant.local = keys->chunk_attn_window_size > 0 && is_local(index, keys->nope_layer_interval);
        variant.experts = variant.experts && (index + 1) % keys->interleave_moe_layer_step == 0;
        break;
    case ADV_DECODER_ENVY:
        variant.experts = variant.experts && (index + 1) % keys->interleave_moe_layer_step == 0;
        break;
    case ADV_DECODER_QWEN3_NEXT:
    case ADV_DECODER_QWEN3_5:
        variant.linear = is_local(index, keys->inhomogeneous_layer_cycle_interval);
        break;
    case ADV_DECODER_DEEPSEEK:
        variant.experts = variant.experts && index >= keys->first_num_dense_layers;
        break;
    case ADV_DECODER_DEEPSEEK4:
        variant.compress_ratio = index < keys->compress_ratios_count ? keys->compress_ratios[index] : 0;
        break;
    case ADV_DECODER_LLAMA2:
    case ADV_DECODER_MISTRAL:
    case ADV_DECODER_MIXTRAL:
    case ADV_DECODER_GEMMA:
    case ADV_DECODER_GPT3:
    case ADV_DECODER_QWEN2:
    case ADV_DECODER_QWEN3:
    case ADV_DECODER_QWEN3_MOE:
    case ADV_DECODER_QWEN3_CUSTOM_MOE:
    case ADV_DECODER_DEFAULT:
    case ADV_DECODER_COUNT:
        break;
    }
    return variant;
}

static void fill_mla(const struct adv_model_keys *keys, struct adv_layer *layer)
{
    layer->q_lora_rank = (int)keys->q_lora_rank;
    layer->kv_lora_rank = (int)keys->kv_lora_rank;
    layer->qk_nope_head_dim = (int)keys->qk_nope_head_dim;
    layer->qk_rope_head_dim = (int)keys->qk_rope_head_dim;
    layer->head_dim_qk = layer->qk_nope_head_dim + layer->qk_rope_head_dim;
    layer->head_dim_v = (int)keys->v_head_dim;
}

static void fill_indexer(const struct adv_model_keys *keys, struct adv_layer *layer)
{
    layer->indexer_heads = (int)keys->indexer_n_heads;
    layer->indexer_head_dim = (int)keys->indexer_head_dim;
    layer->indexer_topk = (int)keys->indexer_topk;
}

static void fill_linear(const struct adv_model_keys *keys, struct adv_layer *layer)
{
    layer->attention = ADV_ATTENTION_LINEAR;
    layer->has_qk_norm = false;
    layer->linear_key_heads = (int)keys->gdn_num_key_heads;
    layer->linear_value_heads = (int)keys->gdn_num_value_heads;
    layer->linear_key_head_dim = (int)keys->gdn_key_head_dim;
    layer->linear_value_head_dim = (int)keys->gdn_value_head_dim;
    layer->linear_conv_kernel = (int)keys->gdn_conv_kernel_dim;
    layer->linear_chunk = (int)keys->gdn_chunk_size;
    layer->q_heads = layer->linear_value_heads;
    layer->kv_heads = layer->linear_key_heads;
    layer->head_dim_qk = layer->linear_key_head_dim;
    layer->head_dim_v = layer->linear_value_head_dim;
}

static void fill_attention(const struct adv_model_keys *keys, const struct scaled *dims,
                           const struct variant *variant, struct adv_layer *layer)
{
    const struct decoder_traits *traits = &decoder_traits[keys->decoder_block];
    bool is_gemma4 =
        keys->decoder_block == ADV_DECODER_GEMMA4 || keys->decoder_block == ADV_DECODER_GEMMA4_SMALL;
    layer->q_heads = dims->q_heads;
    layer->kv_heads = dims->kv_heads;
    layer->head_dim_qk = layer->head_dim_v = (int)keys->head_dim;
    layer->has_qk_norm = !traits->unscaled_qk_norm && (traits->always_qk_norm || keys->use_qk_norm);
    layer->has_value_norm = is_gemma4;
    layer->has_attention_bias = keys->attention_bias || traits->always_biased;
    layer->has_attention_out_bias = layer->has_attention_bias && traits->output_bias;
    layer->has_sink = keys->attention_sink;
    layer->attention_output_dim =
        traits->narrow && keys->attention_output_dim > 0 ? keys->attention_output_dim : dims->emb_dim;
    if (variant->local) {
        bool is_chunked = keys->decoder_block == ADV_DECODER_LLAMA4;
        layer->attention = is_chunked ? ADV_ATTENTION_CHUNKED : ADV_ATTENTION_WINDOW;
        layer->window_tokens = is_chunked ? keys->chunk_attn_window_size : keys->sliding_window_size;
    } else if (is_gemma4) {
        if (keys->global_head_dim > 0) layer->head_dim_qk = layer->head_dim_v = (int)keys->global_head_dim;
        if (keys->global_num_kv_heads > 0) layer->kv_heads = (int)keys->global_num_kv_heads;
        layer->shares_kv = keys->share_kv_projections;
    }
    layer->reuses_kv = variant->reuses_kv;
    if (keys->decoder_block == ADV_DECODER_QWEN3_NEXT || keys->decoder_block == ADV_DECODER_QWEN3_5)
        layer->has_output_gate = !variant->linear;
    if (variant->linear) fill_linear(keys, layer);
    if (keys->is_mla) fill_mla(keys, layer);
    if (keys->is_mla && keys->use_indexer) fill_indexer(keys, layer);
    if (keys->decoder_block == ADV_DECODER_DEEPSEEK4) {
        layer->attention = ADV_ATTENTION_COMPRESSED;
        layer->window_tokens = keys->sliding_window_size;
        layer->compress_ratio = variant->compress_ratio;
        layer->shares_kv = true;
        layer->has_sink = true;
        layer->q_lora_rank = (int)keys->q_lora_rank;
        layer->output_groups = (int)keys->o_groups;
        layer->output_lora_rank = (int)keys->o_lora_rank;
        if (variant->compress_ratio > 0 && variant->compress_ratio <= 4) fill_indexer(keys, layer);
    }
}

static void fill_ffn(const struct adv_model_keys *keys, const struct scaled *dims,
                     const struct variant *variant, struct adv_layer *layer)
{
    const struct decoder_traits *traits = &decoder_traits[keys->decoder_block];
    layer->mlp_inputs = keys->mlp_activations_count;
    layer->has_mlp_bias = keys->mlp_bias || traits->always_biased;
    if (!variant->experts) {
        bool is_double_wide = variant->reuses_kv && keys->use_double_wide_mlp;
        layer->mlp_dim = is_double_wide ? 2 * dims->mlp_dim : dims->mlp_dim;
        return;
    }
    bool is_gemma4 = keys->decoder_block == ADV_DECODER_GEMMA4;
    layer->experts = (int)keys->num_experts;
    layer->experts_per_token = (int)keys->num_experts_per_tok;
    layer->moe_mlp_dim = dims->moe_mlp_dim;
    layer->moe_input_dim =
        traits->narrow && keys->moe_expert_input_dim > 0 ? keys->moe_expert_input_dim : dims->emb_dim;
    layer->shared_experts = adv_model_shared_experts(keys);
    layer->shared_mlp_dim = layer->shared_experts * (is_gemma4 ? dims->mlp_dim : dims->moe_mlp_dim);
    if (layer->shared_experts > 0 && keys->shared_mlp_dim > 0) layer->shared_mlp_dim = keys->shared_mlp_dim;
    layer->has_shared_gate = keys->shared_experts > 0 && (keys->decoder_block == ADV_DECODER_QWEN3_NEXT ||
                                                          keys->decoder_block == ADV_DECODER_QWEN3_5);
    layer->has_expert_scale = is_gemma4;
    layer->has_routed_bias = keys->routed_bias;
}

static void fill_layer(const struct adv_model_keys *keys, const struct scaled *dims,
                       const struct variant *variant, struct adv_layer *layer)
{
    const struct decoder_traits *traits = &decoder_traits[keys->decoder_block];
    fill_attention(keys, dims, variant, layer);
    fill_ffn(keys, dims, variant, layer);
    layer->norms = traits->norms;
    layer->has_post_ffw_norm = traits->post_ffw_norm;
    if (keys->decoder_block == ADV_DECODER_GEMMA4_SMALL)
        layer->per_layer_embedding_dim = keys->hidden_size_per_layer_input;
    layer->scan_block = keys->inhomogeneous_layer_cycle_interval > 1
                            ? (int)keys->inhomogeneous_layer_cycle_interval
                            : traits->scan_block;
    layer->remat_block = traits->remat_each ? 1 : layer->scan_block;
    layer->input_names = traits->input_names;
    layer->loops_alone = traits->full_layer_alone && layer->attention == ADV_ATTENTION_FULL;
}

struct complaint {
    const char *at;
    adv_err *err;
    bool any;
};

static void complain(struct complaint *to, const char *key, const char *hint, const char *detail)
{
    (void)adv_err_add(to->err, ADV_E_INVALID, ADV_AT(to->at, key), hint, "%s", detail);
    to->any = true;
}

static void check_given(const struct adv_model_keys *keys, struct complaint *to)
{
    char text[ADV_LIMIT_DETAIL];
#define CHECK_KEY(key, fallback, low, high)                                                                  \
    if (keys->key == -1 && (low) > -1) {                                                                     \
        complain(to, #key, NULL, "`" #key "` is required");                                                  \
    } else if (keys->key < (low) || keys->key > (high)) {                                                    \
        (void)snprintf(text, sizeof text, "`" #key "` is %lld, must be from %lld to %lld",                   \
                       (long long)keys->key, (long long)(low), (long long)(high));                           \
        complain(to, #key, NULL, text);                                                                      \
    }
    ADV_MODEL_INTEGER_KEYS(CHECK_KEY)
#undef CHECK_KEY
}

static void check_experts(const struct adv_model_keys *keys, struct complaint *to)
{
    char text[ADV_LIMIT_DETAIL];
    if (keys->num_experts > 1 && !decoder_traits[keys->decoder_block].has_experts) {
        (void)snprintf(text, sizeof text, "decoder_block \"%s\" has no experts, num_experts is %lld",
                       adv_decoder_name(keys->decoder_block), (long long)keys->num_experts);
        complain(to, "num_experts",
                 "leave it out, or use mixtral, qwen3_moe, gpt_oss, llama4 or deepseek as decoder_block",
                 text);
    }
    if (!decoder_traits[keys->decoder_block].narrow && keys->num_experts > 1 &&
        keys->moe_expert_input_dim > 0 && keys->moe_expert_input_dim != scale_dims(keys).emb_dim) {
        (void)snprintf(text, sizeof text,
                       "decoder_block \"%s\" gives its experts the width of the embedding, "
                       "moe_expert_input_dim is %lld",
                       adv_decoder_name(keys->decoder_block), (long long)keys->moe_expert_input_dim);
        complain(to, "moe_expert_input_dim", "leave it out, or use qwen3_custom_moe as decoder_block", text);
    }
    if (keys->num_experts_per_tok > keys->num_experts) {
        (void)snprintf(text, sizeof text, "num_experts_per_tok %lld exceeds num_experts %lld",
                       (long long)keys->num_experts_per_tok, (long long)keys->num_experts);
        complain(to, "num_experts_per_tok", NULL, text);
    }
}

/* Heads that no kernel is priced for. Their size by itself is in the range of its key. */
static void check_heads(const struct adv_model_keys *keys, struct complaint *to)
{
    enum { HEADS_MAX = ADV_KERNEL_HEADS_MAX, HEAD_DIM_MAX = ADV_KERNEL_HEAD_DIM_MAX };
    const int64_t heads = scale_dims(keys).q_heads, size = keys->qk_nope_head_dim + keys->qk_rope_head_dim;
    char text[ADV_LIMIT_DETAIL];
    (void)snprintf(text, sizeof text, "%lld query heads, at most %d", (long long)heads, HEADS_MAX);
    if (heads > HEADS_MAX)
        complain(to, keys->global_parameter_scale > 1 ? "global_parameter_scale" : "base_num_query_heads",
                 NULL, text);
    (void)snprintf(text, sizeof text, "qk_nope_head_dim and qk_rope_head_dim are %lld together, at most %d",
                   (long long)size, HEAD_DIM_MAX);
    if (keys->is_mla && size > HEAD_DIM_MAX) complain(to, "qk_nope_head_dim", NULL, text);
}

/* The attention that a block of MaxText is made for: with another its layers do not build. */
static void check_attention(const struct adv_model_keys *keys, struct complaint *to)
{
    const bool is_deepseek = keys->decoder_block == ADV_DECODER_DEEPSEEK;
    const bool is_multi_head = keys->base_num_kv_heads == keys->base_num_query_heads;
    char text[ADV_LIMIT_DETAIL];
    (void)snprintf(text, sizeof text, "decoder_block \"%s\" has no multi-head latent attention",
                   adv_decoder_name(keys->decoder_block));
    if (keys->is_mla && !is_deepseek)
        complain(to, "attention_type", "leave it out, or use deepseek as decoder_block", text);
    if (is_deepseek && !keys->is_mla && !keys->without_maxtext)
        complain(
            to, "attention_type", "set it to mla",
            "decoder_block \"deepseek\" has multi-head latent attention only: attention_type must be mla");
    if (keys->is_mla && !is_multi_head)
        complain(to, "base_num_kv_heads", "set it to base_num_query_heads",
                 "multi-head latent attention needs as many key-value heads as query heads");
    if (keys->decoder_block == ADV_DECODER_GPT3 && !is_multi_head)
        complain(to, "base_num_kv_heads", "set it to base_num_query_heads",
                 "decoder_block \"gpt3\" needs as many key-value heads as query heads");
}

static void check_together(const struct adv_model_keys *keys, struct complaint *to)
{
    char text[ADV_LIMIT_DETAIL];
    enum adv_decoder decoder = keys->decoder_block;
    bool needs_window = decoder == ADV_DECODER_GEMMA2 || decoder == ADV_DECODER_GEMMA3 ||
                        decoder == ADV_DECODER_GEMMA4 || decoder == ADV_DECODER_GEMMA4_SMALL ||
                        decoder == ADV_DECODER_GPT_OSS || decoder == ADV_DECODER_OLMO3 ||
                        decoder == ADV_DECODER_DEEPSEEK4;
    if (keys->base_num_kv_heads > 0 && keys->base_num_query_heads % keys->base_num_kv_heads != 0) {
        (void)snprintf(text, sizeof text,
                       "base_num_query_heads %lld is not a multiple of base_num_kv_heads %lld",
                       (long long)keys->base_num_query_heads, (long long)keys->base_num_kv_heads);
        complain(to, "base_num_kv_heads", "MaxText refuses this when it builds the model", text);
    }
    check_attention(keys, to);
    check_heads(keys, to);
    if (needs_window && keys->sliding_window_size <= 0) {
        (void)snprintf(text, sizeof text,
                       "decoder_block \"%s\" has sliding-window layers: sliding_window_size is required",
                       adv_decoder_name(decoder));
        complain(to, "sliding_window_size", NULL, text);
    }
    if (decoder == ADV_DECODER_DEEPSEEK4 &&
        (keys->q_lora_rank < 1 || keys->o_groups < 1 || keys->o_lora_rank < 1))
        complain(to, "q_lora_rank", NULL, "compressed attention needs q_lora_rank, o_groups and o_lora_rank");
    if (keys->first_num_dense_layers > keys->base_num_decoder_layers)
        complain(to, "first_num_dense_layers", NULL,
                 "first_num_dense_layers exceeds base_num_decoder_layers");
    if (keys->num_kv_shared_layers >= keys->base_num_decoder_layers && keys->num_kv_shared_layers > 0)
        complain(to, "num_kv_shared_layers", NULL, "at least one layer must own its keys and values");
    if (keys->mlp_activations_count < 1 || keys->mlp_activations_count > 2)
        complain(to, "mlp_activations", "[\"silu\", \"linear\"] or [\"gelu\"]",
                 "mlp_activations must name one or two functions");
    if ((keys->global_parameter_scale & (keys->global_parameter_scale - 1)) != 0) {
        (void)snprintf(text, sizeof text, "global_parameter_scale %lld is not a power of two",
                       (long long)keys->global_parameter_scale);
        complain(to, "global_parameter_scale", NULL, text);
    }
    check_experts(keys, to);
}

/* moe.py:640 of MaxText 0.2.5 goes by these names. */
static bool keeps_bias_apart(const struct adv_model_keys *keys)
{
    static const char *const names[] = {"deepseek3", "deepseek4", "kimi-k2"};
    bool apart = keys->keeps_bias_apart;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        apart |= strncmp(keys->maxtext_name, names[i], strlen(names[i])) == 0;
    return apart;
}

static void fill_model(const struct adv_model_keys *keys, const struct scaled *dims, struct adv_model *model)
{
    memset(model, 0, sizeof *model);
    (void)snprintf(model->name, sizeof model->name, "%s", keys->name);
    (void)snprintf(model->maxtext_name, sizeof model->maxtext_name, "%s", keys->maxtext_name);
    model->decoder = keys->decoder_block;
    model->emb_dim = dims->emb_dim;
    model->vocab_size = keys->vocab_size;
    model->layers_count = (int)dims->layers;
    model->ties_embedding = keys->logits_via_embedding;
    model->mesh_axes = keys->mesh_axes;
    model->is_multimodal = keys->is_multimodal;
    model->text_only = keys->text_only;
    model->has_mrope = keys->has_mrope;
    model->splits_batch = keys->splits_batch;
    model->keeps_bias_apart = keeps_bias_apart(keys);
    model->without_maxtext = keys->without_maxtext;
    model->has_audio = keys->has_audio;
    model->has_deepstack = keys->has_deepstack;
    model->cannot_scan = keys->decoder_block == ADV_DECODER_GEMMA4_SMALL;
    model->has_learned_positions = keys->trainable_position_size > 0;
    model->position_rows = model->has_learned_positions ? keys->trainable_position_size : 0;
    if (keys->decoder_block == ADV_DECODER_GEMMA4_SMALL)
        model->per_layer_embedding_params = (double)keys->vocab_size_per_layer_input * (double)dims->layers *
                                            (double)keys->hidden_size_per_layer_input;
    model->mtp_layers = (int)keys->mtp_num_layers;
    model->logits_soft_cap = keys->final_logits_soft_cap;
    model->attention_soft_cap = keys->attn_logits_soft_cap;
    model->hyper_connections = (int)keys->mhc_expansion_rate;
    model->engram_layers = keys->engram_layers_count;
    model->engram_width = (keys->engram_max_ngram_size - 1) * keys->engram_num_heads * keys->engram_head_dim;
    model->engram_kernel = (int)keys->engram_kernel_size;
    const char *caveat = decoder_traits[keys->decoder_block].caveat;
    if (!caveat && (keys->mhc_expansion_rate > 1 || keys->engram_layers_count > 0))
        caveat = "hyper-connections and engram tables are not modelled";
    model->confident = caveat == NULL;
    (void)snprintf(model->caveat, sizeof model->caveat, "%s", caveat ? caveat : "");
}

adv_code adv_model_build(const struct adv_model_keys *given, const char *at, struct adv_model *model,
                         adv_err *err)
{
    struct complaint to = {.at = at, .err = err};
    struct adv_model_keys read = *given;
    const struct adv_model_keys *keys = &read;
    check_given(given, &to);
    adv_model_keys_read(&read);
    if (!to.any) check_together(keys, &to);
    if (to.any) return ADV_E_INVALID;

    struct scaled dims = scale_dims(keys);
    fill_model(keys, &dims, model);
    struct variant variants[ADV_LIMIT_LAYER_KINDS];
    int64_t real_layers = keys->decoder_block == ADV_DECODER_GEMMA2 ? 2 * dims.layers : dims.layers;
    for (int64_t i = 0; i < real_layers; i++) {
        struct variant variant = variant_of(keys, real_layers, i);
        int kind = 0;
        while (kind < model->layer_kinds_count && !same_variant(&variants[kind], &variant)) kind++;
        if (kind == ADV_LIMIT_LAYER_KINDS) {
            return adv_err_add(err, ADV_E_UNSUPPORTED, ADV_AT(at, "compress_ratios"), NULL,
                               "more than %d unlike decoder layers", ADV_LIMIT_LAYER_KINDS);
        }
        if (kind == model->layer_kinds_count) {
            variants[kind] = variant;
            fill_layer(keys, &dims, &variant, &model->layers[kind]);
            model->layer_kinds_count++;
        }
        model->layers[kind].count++;
    }
    return ADV_OK;
}
