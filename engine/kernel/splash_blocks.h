/* splash_blocks.h: how many blocks of a masked attention the kernel computes, exactly.
 *
 * The mask is cut into (query block, key block) tiles. A tile none of whose pairs is allowed is not in the
 * grid; one with some forbidden pair pays for a mask; the rest run unmasked. Query rows are positions in the
 * whole sequence, so that a context shard counts its own rows.
 */
#pragma once

#include "engine/spec/kernel_shape.h"

/* Is the splash kernel one of the two forward ones? */
static inline bool adv_splash_is_forward(enum adv_kernel kernel)
{
    return kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
}

/* The blocks that a kernel reads: of queries, of keys, and the part of a key block that is computed at once,
 * 0 where the kernel cuts none. */
struct adv_splash_cut {
    int q, kv, part;
};
static inline struct adv_splash_cut adv_splash_cut_of(enum adv_kernel kernel,
                                                      const struct adv_splash_blocks *b)
{
    if (adv_splash_is_forward(kernel))
        return (struct adv_splash_cut){b->block_q, b->block_kv, b->block_kv_compute};
    if (kernel == ADV_KERNEL_SPLASH_BWD_DQ) return (struct adv_splash_cut){b->block_q_dq, b->block_kv_dq, 0};
    return (struct adv_splash_cut){b->block_q_dkv, b->block_kv_dkv, b->block_kv_dkv_compute};
}

struct adv_splash_counts {
    double active;   /* tiles in the grid, per head */
    double partial;  /* of those, tiles that need a mask */
    double q_blocks; /* query blocks with at least one active tile */
    double kept;     /* active tiles whose key block is the previous tile's: not fetched again */
    bool wraps;   /* the last tile's key block is the first one's: kept for the next head on the same keys */
    double pairs; /* allowed (query, key) pairs: useful work */
};

/* Keys of one call of the kernel: all of them, or one shard's where they go round a ring. */
static inline int64_t adv_splash_call_keys(const struct adv_attention_shape *shape)
{
    return shape->context_ring && shape->context_shards > 1 ? shape->kv_len / shape->context_shards
                                                            : shape->kv_len;
}

/* Calls that the slowest shard makes: one per shard of keys that its rows see. 1 without a ring. */
double adv_splash_calls(const struct adv_attention_shape *shape);

/* Counts for one head of `shape` cut into block_q x block_kv tiles; both divide their lengths. Cost: O(log)
 * for causal and full masks, one period of query blocks for windows and chunks. Under context_shards the
 * counts are those of the last shard (contiguous) or of shard 0 (balanced: half-chunks 0 and 2r-1; all shards
 * have nearly the same). */
void adv_splash_count_blocks(const struct adv_attention_shape *shape, int64_t block_q, int64_t block_kv,
                             struct adv_splash_counts *counts);

/* The key tiles of one row of tiles: first..last but hole_first..hole_last (a block whose rows jump from one
 * half-chunk to the other); those in full_first..full_last need no mask. Empty ranges end before they start.
 */
struct adv_splash_row {
    int64_t first, last, full_first, full_last, hole_first, hole_last;
};
void adv_splash_row_tiles(const struct adv_attention_shape *shape, int64_t block_q, int64_t block_kv,
                          int64_t q_block, struct adv_splash_row *row);

/* Sum over i in [0, n) of floor((a*i + b) / m); n >= 0, m >= 1, a and b >= 0; exact while the sum fits 63
 * bits. */
int64_t adv_splash_floor_sum(int64_t n, int64_t m, int64_t a, int64_t b);
