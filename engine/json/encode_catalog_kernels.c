/* What /v1/kernels/simulate and /tune take, as data: kernels, the members of shape and tile, the space tune
 * searches. */
#include <string.h>

#include "engine/json/encode_catalog.h"
#include "engine/spec/kernel_shape.h"

struct member {
    const char *name, *type, *what;
};

static const struct member attention_shape[] = {
    {"batch", "number", "sequences on the device; 1 when left out"},
    {"q_heads", "int", "query heads on the device"},
    {"kv_heads", "int", "key-value heads on the device"},
    {"q_len", "int", "queries of one sequence"},
    {"kv_len", "int", "keys they may see; q_len when left out"},
    {"head_dim_qk", "int", "size of a query and key head"},
    {"head_dim_v", "int", "size of a value head; head_dim_qk when left out"},
    {"causal", "bool", "true when left out"},
    {"window", "int", "sliding window in tokens"},
    {"chunk", "int", "attention inside chunks of this many tokens"},
    {"segment_ids", "bool", "packed sequences are masked from each other"},
    {"context_shards", "int", "devices that share one sequence"},
    {"context_load_balanced", "bool", "each shard holds an early and a late part"},
    {"dtype", "string", "bf16 when left out"},
};
static const struct member forward_tile[] = {
    {"block_q", "int", "queries per grid step"},
    {"block_kv", "int", "keys per grid step"},
    {"block_kv_compute", "int", "keys per inner step; block_kv when left out"},
    {"q_layout", "string", "HEAD_DIM_MINOR or SEQ_MINOR"},
    {"k_layout", "string", "HEAD_DIM_MINOR or SEQ_MINOR"},
    {"v_layout", "string", "HEAD_DIM_MINOR or SEQ_MINOR"},
};
static const struct member dkv_tile[] = {
    {"block_q_dkv", "int", "queries per grid step"},
    {"block_kv_dkv", "int", "keys per grid step"},
    {"block_kv_dkv_compute", "int", "keys per inner step; block_kv_dkv when left out"},
    {"q_layout", "string", "HEAD_DIM_MINOR or SEQ_MINOR"},
    {"k_layout", "string", "HEAD_DIM_MINOR or SEQ_MINOR"},
    {"v_layout", "string", "HEAD_DIM_MINOR or SEQ_MINOR"},
};
static const struct member dq_tile[] = {
    {"block_q_dq", "int", "queries per grid step"},
    {"block_kv_dq", "int", "keys per grid step"},
};
static const struct member gmm_shape[] = {
    {"m", "int", "rows of all groups"},
    {"k", "int", "contraction"},
    {"n", "int", "output columns"},
    {"num_groups", "int", "experts on the device"},
    {"group_sizes", "int[]", "rows of each group, adding up to m"},
    {"group_distribution", "string", "balanced, multinomial, zipf or worst, when sizes are not given"},
    {"rhs_transposed", "bool", "weights stored transposed"},
    {"return_residuals", "bool", "inputs are kept for the backward pass"},
    {"dtype", "string", "bf16 when left out"},
};
static const struct member gmm_tile[] = {
    {"tile_m", "int", "rows per grid step"},
    {"tile_k", "int", "contraction per grid step"},
    {"tile_n", "int", "columns per grid step"},
    {"input_buffer_count", "int", "buffers of the inputs; 2 when left out"},
};
static const struct member matmul_shape[] = {
    {"m", "int", "rows"},
    {"k", "int", "contraction"},
    {"n", "int", "columns"},
    {"dtype", "string", "bf16 when left out"},
};
static const struct member xent_shape[] = {
    {"tokens", "int", "tokens on the device"},
    {"emb_dim", "int", "width of the residual stream"},
    {"vocab", "int", "vocabulary on the device"},
};
static const struct member xent_tile[] = {
    {"b_block", "int", "tokens per grid step"},
    {"h_block", "int", "width per grid step"},
    {"v_block", "int", "vocabulary per grid step"},
};

#define LIST(members) members, (int)(sizeof(members) / sizeof((members)[0]))
static const struct kernel {
    const char *what;
    const struct member *shape;
    int shape_count;
    const struct member *tile;
    int tile_count;
    const char *space; /* of tune; NULL = there is nothing to tune */
} kernels[ADV_KERNEL_COUNT] = {
#define ATTENTION_SPACE                                                                                      \
    "blocks of 128 to 8192 by powers of two and half steps that divide the length, compute blocks up to "    \
    "1024"
#define GMM_SPACE                                                                                            \
    "tile_m of 128 to 1024 that divides m, tile_k and tile_n of 128 x 2^i, dim / 2^i and dim, 2 to 4 "       \
    "buffers"
    [ADV_KERNEL_SPLASH_FWD] = {"splash attention, forward", LIST(attention_shape), LIST(forward_tile),
                               ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_FWD_RESIDUALS] =
        {"splash attention, forward with log-sum-exp kept for the backward pass", LIST(attention_shape),
         LIST(forward_tile), ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_BWD_FUSED] = {"splash attention, backward in one kernel", LIST(attention_shape),
                                     LIST(dkv_tile), ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_BWD_DQ] = {"splash attention, backward of queries", LIST(attention_shape),
                                  LIST(dq_tile), ATTENTION_SPACE},
    [ADV_KERNEL_SPLASH_BWD_DKV] = {"splash attention, backward of keys and values", LIST(attention_shape),
                                   LIST(dkv_tile), ATTENTION_SPACE},
    [ADV_KERNEL_GMM] = {"grouped matmul: rows of each group times its weights", LIST(gmm_shape),
                        LIST(gmm_tile), GMM_SPACE},
    [ADV_KERNEL_TGMM] = {"transposed grouped matmul: the gradient of the weights", LIST(gmm_shape),
                         LIST(gmm_tile), GMM_SPACE},
    [ADV_KERNEL_LINEAR_XENT] = {"logits and cross-entropy in one kernel", LIST(xent_shape), LIST(xent_tile),
                                NULL},
    [ADV_KERNEL_LINEAR_XENT_BWD] = {"its backward pass", LIST(xent_shape), LIST(xent_tile), NULL},
    [ADV_KERNEL_MATMUL] = {"dense matmul as XLA compiles it", LIST(matmul_shape), NULL, 0, NULL},
};

static json_t *encode_members(const struct member *members, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        (void)json_array_append_new(list, json_pack("{s:s,s:s,s:s}", "name", members[i].name, "type",
                                                    members[i].type, "what", members[i].what));
    return list;
}

static json_t *encode_kernel(int kernel)
{
    const struct kernel *row = &kernels[kernel];
    json_t *object = json_object();
    adv_encode_set_string(object, "name", adv_kernel_name((enum adv_kernel)kernel));
    adv_encode_set_string(object, "what", row->what);
    (void)json_object_set_new(object, "shape", encode_members(row->shape, row->shape_count));
    (void)json_object_set_new(object, "tile", encode_members(row->tile, row->tile_count));
    adv_encode_set_string(object, "search_space", row->space);
    return object;
}

json_t *adv_encode_catalog_kernels(const struct adv_catalog *catalog)
{
    (void)catalog;
    json_t *list = json_array();
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) (void)json_array_append_new(list, encode_kernel(i));
    return list;
}

/* Where a kernel was measured: the flags among the chips' constants. */
static double measured_flag(const struct adv_constants *constants, int kernel)
{
    switch ((enum adv_kernel)kernel) {
    case ADV_KERNEL_SPLASH_FWD:
    case ADV_KERNEL_SPLASH_FWD_RESIDUALS:
        return constants->splash_fwd_measured;
    case ADV_KERNEL_SPLASH_BWD_FUSED:
        return constants->splash_bwd_measured;
    case ADV_KERNEL_GMM:
    case ADV_KERNEL_TGMM:
        return constants->gmm_measured;
    case ADV_KERNEL_LINEAR_XENT:
    case ADV_KERNEL_LINEAR_XENT_BWD:
        return constants->xent_measured;
    case ADV_KERNEL_SPLASH_BWD_DQ:
    case ADV_KERNEL_SPLASH_BWD_DKV:
    case ADV_KERNEL_MATMUL:
    case ADV_KERNEL_COUNT:
        break;
    }
    return 0;
}

json_t *adv_encode_catalog_kernel(const struct adv_catalog *catalog, const char *name)
{
    for (int i = 0; i < ADV_KERNEL_COUNT; i++) {
        if (strcmp(adv_kernel_name((enum adv_kernel)i), name) != 0) continue;
        json_t *object = encode_kernel(i);
        json_t *measured = json_array();
        for (int c = 0; c < adv_catalog_chips_count(catalog); c++) {
            const struct adv_catalog_chip *chip = adv_catalog_chip_at(catalog, c);
            if (chip->chip.is_tpu && measured_flag(&chip->constants, i) > 0)
                (void)json_array_append_new(measured, json_string(chip->chip.name));
        }
        (void)json_object_set_new(object, "measured_on", measured);
        return object;
    }
    return NULL;
}
