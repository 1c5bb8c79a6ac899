/* kernel_shape.h: what one kernel computes and with which tiles. All sizes are per JAX device. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "engine/spec/plan.h"

/* Kernels, their names, and which slack their VMEM formula has (kernel/vmem.h). */
#define ADV_KERNEL_TABLE(X)                                                                                  \
    X(SPLASH_FWD, "splash_fwd", ATTENTION)                                                                   \
    X(SPLASH_FWD_RESIDUALS, "splash_fwd_residuals", ATTENTION)                                               \
    X(SPLASH_BWD_FUSED, "splash_bwd_fused", ATTENTION)                                                       \
    X(SPLASH_BWD_DQ, "splash_bwd_dq", ATTENTION)                                                             \
    X(SPLASH_BWD_DKV, "splash_bwd_dkv", ATTENTION)                                                           \
    X(GMM, "gmm", MATMUL)                                                                                    \
    X(TGMM, "tgmm", TRANSPOSED)                                                                              \
    X(LINEAR_XENT, "linear_xent", LOSS)                                                                      \
    X(LINEAR_XENT_BWD, "linear_xent_bwd", LOSS)                                                              \
    X(MATMUL, "matmul", MATMUL)                                                                              \
    X(ATTENTION_XLA, "attention_xla", MATMUL)                                                                \
    X(ATTENTION_XLA_BWD, "attention_xla_bwd", MATMUL)                                                        \
    X(RAGGED_DOT_XLA, "ragged_dot_xla", MATMUL)                                                              \
    X(RAGGED_DOT_XLA_TGMM, "ragged_dot_xla_tgmm", MATMUL)

#define ADV_KERNEL_ENUM(id, name, formula) ADV_KERNEL_##id,
enum adv_kernel { ADV_KERNEL_TABLE(ADV_KERNEL_ENUM) ADV_KERNEL_COUNT };
#undef ADV_KERNEL_ENUM
const char *adv_kernel_name(enum adv_kernel kernel);

/* The largest sizes that are simulated: beyond them is a typing error, and sums stay exact. */
enum {
    ADV_KERNEL_SIZE_MAX = 1 << 28,  /* rows and axes of matrices: 2^28 rows are 100 times the largest known */
    ADV_KERNEL_LEN_MAX = 1 << 24,   /* queries or keys of one sequence */
    ADV_KERNEL_HEADS_MAX = 1 << 16, /* attention heads */
    ADV_KERNEL_HEAD_DIM_MAX = 4096, /* columns of one head; the largest known has 512 */
    ADV_KERNEL_SHARDS_MAX = 1 << 16, /* context shards */
    ADV_GMM_TILE_MAX = 1 << 16,      /* any side of a tile: more fits no VMEM */
    ADV_GMM_BUFFERS_MAX = 8          /* buffers of a streamed operand; tuners try 2 to 4 */
};

struct adv_attention_shape {
    double batch; /* sequences on this device (fractions arise only inside the step model) */
    int q_heads, kv_heads;
    int64_t q_len, kv_len; /* q_len: this device's queries; kv_len: the keys they see (whole sequence under CP
                              all-gather) */
    int head_dim_qk, head_dim_v;
    bool causal;
    int64_t window; /* 0 = none; causal sliding window */
    int64_t chunk;  /* 0 = none; attention inside chunks */
    bool segment_ids;
    const int64_t
        *segment_sizes; /* known packing: tiles between unlike segments are skipped; NULL = none; borrowed */
    int segment_sizes_count;
    int context_shards; /* 1 = whole sequence here; r: q_len = kv_len / r, time of the slowest of the r shards
                         */
    bool context_load_balanced; /* two half-chunks per shard, so every shard has the mean work */
    bool context_ring;          /* the keys of one shard at a time: a call per shard, its outputs merged */
    enum adv_format dtype;
    bool has_bias, is_float16; /* XLA's attention only: a bias on the scores; inputs that it converts */
};

struct adv_attention_tile {
    struct adv_splash_blocks blocks;
    enum adv_layout q_layout, k_layout, v_layout;
};

struct adv_attention_flags {
    bool max_logit_constant; /* use_max_logit_estimate > 0 */
    bool soft_cap;           /* attn_logits_soft_cap > 0: scores go through a hyperbolic tangent */
    int dq_reduction_steps;  /* 0 or 3 */
    bool kernel_only; /* leave transposes, scaling and residual slices out; the sum of dQ partials stays */
    bool use_experimental_scheduler;
    double software_date; /* year with fraction of the kernel library; 0 or NAN = current */
};

enum adv_group_distribution {
    ADV_GROUPS_GIVEN,
    ADV_GROUPS_BALANCED,
    ADV_GROUPS_MULTINOMIAL,
    ADV_GROUPS_ZIPF,
    ADV_GROUPS_WORST
};

struct adv_gmm_shape {
    int64_t m, k, n; /* gmm: [m,k] x [groups,k,n]; tgmm: [m,k]^T x [m,n] -> [groups,k,n] */
    int num_groups;
    enum adv_group_distribution distribution;
    const int64_t *group_sizes; /* num_groups entries for ADV_GROUPS_GIVEN; borrowed */
    bool rhs_transposed, return_residuals;
    int scale_blocks; /* quantised lhs: scales along k, each ends one partial product; 0 = none */
    enum adv_format lhs, rhs, out;
    int version; /* 1 megablox/tokamax v1, 2 GMM v2 */
};

struct adv_gmm_tile {
    int tile_m, tile_k, tile_n, input_buffer_count;
}; /* tile_k: contraction, tile_n: output columns */

struct adv_matmul_shape {
    int64_t m, k, n;
    enum adv_format lhs, rhs, out;
};

struct adv_xent_shape {
    int64_t tokens, emb_dim, vocab;
};
struct adv_xent_tile {
    int b_block, h_block, v_block;
};

/* The tile of one kernel: that of its family counts. */
struct adv_kernel_tile {
    struct adv_attention_tile attention;
    struct adv_gmm_tile gmm;
    struct adv_xent_tile xent;
};
