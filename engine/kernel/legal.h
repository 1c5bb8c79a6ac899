/* legal.h: which shapes and tiles the kernels take, judged before anything is simulated.
 *
 * Two kinds of verdict. A finding in `err` (ADV_E_ILLEGAL): the kernel would not compile or would raise; its
 * hint holds the nearest legal values. A finding in `warnings`: the kernel runs, but computes padding, masks
 * a tail or ignores a member. Both lists may be NULL.
 * Sizes and tiles that are 0 are unknown (missing, or refused when they were read): rules that need them are
 * left out, so that what is known of a broken request is judged together with what is wrong in it.
 * Rules: splash blocks are multiples of 128 that divide their length (the kernels check their sub-blocks of
 * keys), or all of fewer than 128 queries; a length that no block can cut is refused itself; megablox checks
 * that tile_m divides m and masks the tails of k and n. Allocates nothing; thread safe.
 */
#pragma once

#include "engine/base/err.h"
#include "engine/kernel/request.h"

/* Attention: heads, windows, context shards; and, when `tile` is not NULL, the blocks of `kernel`. */
adv_code adv_legal_attention(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                             const struct adv_attention_tile *tile, adv_err *err, adv_err *warnings);

/* The blocks alone: what every simulation asks first. A block that is 0 or negative is illegal here. */
ADV_MUST_CHECK adv_code adv_legal_splash_blocks(enum adv_kernel kernel,
                                                const struct adv_attention_shape *shape,
                                                const struct adv_splash_blocks *blocks, adv_err *err);

/* The tile of a grouped matmul; `tile` may be NULL, and is not judged for version 2, which picks its own. */
adv_code adv_legal_gmm(enum adv_kernel kernel, const struct adv_gmm_shape *shape,
                       const struct adv_gmm_tile *tile, adv_err *err, adv_err *warnings);

/* Lengths that no tile of the tuner cuts. `wide`: of its wide space. */
adv_code adv_legal_attention_tunable(const struct adv_kernel_request *request, adv_err *err);
adv_code adv_legal_gmm_tunable(const struct adv_gmm_shape *shape, bool wide, adv_err *err);
