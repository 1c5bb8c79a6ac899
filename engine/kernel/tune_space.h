/* tune_space.h: the tiles that the tuners evaluate.
 *
 * The field's spaces: attention blocks are powers of two from 1024 (256 for short sequences) to 4096, key
 * blocks cut in 256 to 1024; lengths that are no power of two are also cut in multiples of 128 of that range.
 * Grouped matmuls take 64 to 1024 rows and powers of two or halves of the other axes. MaxText's default tile
 * is added where the space leaves it out. `wide` only adds: every multiple of 128 up to 8192 that divides a
 * length of attention, with sub-blocks up to 2048; row tiles of 16, 32 and every multiple of 128 up to 2048.
 * Every tile is legal (legal.h), whether it fits VMEM or not. The fused loss has its own in xent.h.
 */
#pragma once

#include "engine/spec/kernel_shape.h"

/* Attention: of the lengths up to ADV_KERNEL_LEN_MAX, 110880 * 128 has most blocks, 35 queries by 152 keys
 * and parts; and the default pair. Rows: 16 multiples of 128, three shorter tiles, all of m. */
enum {
    ADV_SPLASH_SPACE_MAX = 35 * 152 + 8,
    ADV_GMM_SPACE_MAX = 20 * 24 * 24 + 1,
    ADV_TUNE_BUFFERS_MOST = 4, /* of those that are tried, from 2 on */
};

/* MaxText's default tiles, legal for the shape or not: 512 for attention (clamped to the sequence),
 * 512/1024/1024 for grouped matmuls (clamped to the axes). */
struct adv_splash_blocks adv_tune_default_blocks(const struct adv_attention_shape *shape);
struct adv_gmm_tile adv_tune_default_gmm(const struct adv_gmm_shape *shape);

/* Return how many; none: the shape is not tunable (adv_legal_tunable). Of equals the field's
 * favourite comes first. input_buffer_count of grouped tiles is left 0. */
int adv_splash_space(enum adv_kernel kernel, const struct adv_attention_shape *shape, bool wide,
                     struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX]);
int adv_gmm_space(const struct adv_gmm_shape *shape, bool wide, struct adv_gmm_tile tiles[ADV_GMM_SPACE_MAX]);
