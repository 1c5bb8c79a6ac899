/* model_reads.c: which architecture keys each decoder block reads; MaxText ignores the others without a word.
 * Source: what models/ and layers/ of MaxText 0.2.5 hand on to their layers. */
#include <string.h>

#include "engine/spec/model_build.h"

#define BLOCK(id) (UINT32_C(1) << ADV_DECODER_##id)
#define GEMMA4S   (BLOCK(GEMMA4) | BLOCK(GEMMA4_SMALL))
#define LATENT    (BLOCK(DEEPSEEK) | BLOCK(DEEPSEEK4))
#define DELTA_NET (BLOCK(QWEN3_NEXT) | BLOCK(QWEN3_5))
#define WITH_EXPERTS                                                                                         \
    (LATENT | DELTA_NET | BLOCK(MIXTRAL) | BLOCK(GEMMA4) | BLOCK(GPT_OSS) | BLOCK(QWEN3_MOE) |               \
     BLOCK(QWEN3_CUSTOM_MOE) | BLOCK(LLAMA4) | BLOCK(ENVY))

/* X(key, blocks that read it, blocks that are as it says when it is on, whatever it says). Keys that are not
 * here are read by every block, or refused by those that do not. */
#define READERS(X)                                                                                           \
    X(use_qk_norm,                                                                                           \
      DELTA_NET | BLOCK(QWEN2) | BLOCK(QWEN3) | BLOCK(QWEN3_MOE) | BLOCK(QWEN3_CUSTOM_MOE) | BLOCK(LLAMA4) | \
          BLOCK(OLMO3) | BLOCK(ENVY),                                                                        \
      GEMMA4S | BLOCK(GEMMA3))                                                                               \
    X(attention_bias, BLOCK(QWEN2) | BLOCK(GPT_OSS) | BLOCK(OLMO3), BLOCK(GPT3))                             \
    X(mlp_bias, WITH_EXPERTS, BLOCK(GPT3))                                                                   \
    X(routed_bias, WITH_EXPERTS, 0)                                                                          \
    X(sliding_window_size,                                                                                   \
      GEMMA4S | BLOCK(GEMMA2) | BLOCK(GEMMA3) | BLOCK(GPT_OSS) | BLOCK(OLMO3) | BLOCK(DEEPSEEK4), 0)         \
    X(attn_logits_soft_cap, GEMMA4S | BLOCK(LLAMA2) | BLOCK(GEMMA2) | BLOCK(GEMMA3) | BLOCK(DEEPSEEK), 0)    \
    X(use_post_attn_norm, BLOCK(GEMMA2) | BLOCK(GEMMA3) | BLOCK(GEMMA4), BLOCK(GEMMA4_SMALL) | BLOCK(OLMO3)) \
    X(use_post_ffw_norm, BLOCK(GEMMA2) | BLOCK(GEMMA3) | BLOCK(GEMMA4) | BLOCK(ENVY),                        \
      BLOCK(GEMMA4_SMALL) | BLOCK(OLMO3))                                                                    \
    X(share_kv_projections, BLOCK(GEMMA4) | BLOCK(DEFAULT), BLOCK(DEEPSEEK4))                                \
    X(global_head_dim, GEMMA4S, 0)                                                                           \
    X(global_num_kv_heads, GEMMA4S, 0)                                                                       \
    X(num_kv_shared_layers, BLOCK(GEMMA4_SMALL), 0)                                                          \
    X(use_double_wide_mlp, BLOCK(GEMMA4_SMALL), 0)                                                           \
    X(hidden_size_per_layer_input, BLOCK(GEMMA4_SMALL), 0)                                                   \
    X(first_num_dense_layers, BLOCK(DEEPSEEK), 0)                                                            \
    X(interleave_moe_layer_step, BLOCK(LLAMA4) | BLOCK(ENVY), 0)                                             \
    X(nope_layer_interval, BLOCK(LLAMA4), 0)                                                                 \
    X(chunk_attn_window_size, BLOCK(LLAMA4), 0)                                                              \
    X(attention_output_dim, BLOCK(QWEN3_CUSTOM_MOE), 0)                                                      \
    X(q_lora_rank, LATENT, 0)                                                                                \
    X(kv_lora_rank, LATENT, 0)                                                                               \
    X(qk_nope_head_dim, LATENT, 0)                                                                           \
    X(qk_rope_head_dim, LATENT, 0)                                                                           \
    X(v_head_dim, LATENT, 0)                                                                                 \
    X(o_groups, BLOCK(DEEPSEEK4), 0)                                                                         \
    X(o_lora_rank, BLOCK(DEEPSEEK4), 0)                                                                      \
    X(gdn_num_key_heads, DELTA_NET, 0)                                                                       \
    X(gdn_num_value_heads, DELTA_NET, 0)                                                                     \
    X(gdn_key_head_dim, DELTA_NET, 0)                                                                        \
    X(gdn_value_head_dim, DELTA_NET, 0)                                                                      \
    X(gdn_conv_kernel_dim, DELTA_NET, 0)                                                                     \
    X(gdn_chunk_size, DELTA_NET, 0)

bool adv_decoder_reads(enum adv_decoder decoder, const char *key)
{
#define ROW(key, blocks, always) {#key, blocks},
    static const struct {
        const char *key;
        uint32_t blocks;
    } rows[] = {READERS(ROW)};
#undef ROW
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].key, key) == 0) return rows[i].blocks >> decoder & 1u;
    return true;
}

int adv_model_unread(const struct adv_model_keys *keys, const char *unread[ADV_MODEL_UNREAD_MAX])
{
    struct adv_model_keys read = *keys;
    int count = 0;
    adv_model_keys_read(&read);
#define ROW(key, blocks, always)                                                                             \
    if ((keys->key < read.key || keys->key > read.key) && !((always) >> keys->decoder_block & 1u))           \
        unread[count++] = #key;
    READERS(ROW)
#undef ROW
    return count;
}

void adv_model_keys_read(struct adv_model_keys *keys)
{
    struct adv_model_keys defaults;
    const uint32_t block = UINT32_C(1) << keys->decoder_block;
    if (keys->without_maxtext) return; /* the block only stands for one that reads them */
    adv_model_keys_defaults(&defaults);
#define ROW(key, blocks, always)                                                                             \
    if (!((blocks)&block)) keys->key = defaults.key;
    READERS(ROW)
#undef ROW
}

#define ROW(key, blocks, always) +1
_Static_assert(READERS(ROW) <= ADV_MODEL_UNREAD_MAX, "a key more than adv_model_unread has room for");
