/* xent.h: fused logits and cross-entropy: forward (LINEAR_XENT) and backward (LINEAR_XENT_BWD). What is not
 * declared here is asked of the family's row, adv_family_xent.
 */
#pragma once

#include "engine/kernel/family.h"

enum { ADV_XENT_SPACE_MAX = 8 * 9 * 6 }; /* tiles of the tuner's space: blocks of tokens, width and words */

/* Can Pallas lay the token block out? The whole axis, a multiple of 1024, or a power of two from 128. */
bool adv_xent_is_token_block(int64_t tokens, int64_t block);

/* As legal.h; `tile` may be NULL: the shape alone. The label block follows the block shapes that Pallas
 * accepts on TPU (last axis a multiple of 128 or the whole, second last a multiple of the 8 sublanes times
 * the packing of the format); the kernel checks that its token block divides the tokens and masks the tails
 * of the others.
 */
adv_code adv_xent_legal(const struct adv_xent_shape *shape, const struct adv_xent_tile *tile, adv_err *err,
                        adv_err *warnings);

/* Blocks of x and weights, logits, labels and their one-hot form, gradient tiles. */
double adv_xent_vmem_bytes(enum adv_kernel kernel, const struct adv_xent_tile *tile);

/* The tuner's tiles, as tune_space.h: 1024 to 4096 tokens, 128 to 2560 embedding columns, 128 to 4096 words;
 * `wide` adds blocks of fewer and of 3072 tokens. */
int adv_xent_space(const struct adv_xent_shape *shape, bool wide,
                   struct adv_xent_tile tiles[ADV_XENT_SPACE_MAX]);
