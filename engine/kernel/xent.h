/* xent.h: fused logits and cross-entropy: forward (LINEAR_XENT) and backward (LINEAR_XENT_BWD) in everything
 * that is asked about a kernel. Tiles and errors as for the kernels of kernel.h, tune_space.h, vmem.h,
 * legal.h and timeline.h.
 */
#ifndef ADV_KERNEL_XENT_H
#define ADV_KERNEL_XENT_H

#include "engine/kernel/timeline.h"
#include "engine/kernel/vmem.h"

enum { ADV_XENT_SPACE_MAX = 8 * 9 * 6 }; /* tiles of the tuner's space: blocks of tokens, width and words */

/* Tokamax's default tile, legal for a shape or not. */
extern const struct adv_xent_tile adv_xent_default;

/* Can Pallas lay the token block out? The whole axis, a multiple of 1024, or a power of two from 128. */
bool adv_xent_is_token_block(int64_t tokens, int64_t block);

/* `tile` may be NULL: the shape alone. */
adv_code adv_xent_legal(const struct adv_xent_shape *shape, const struct adv_xent_tile *tile, adv_err *err,
                        adv_err *warnings);

ADV_MUST_CHECK adv_code adv_xent_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                      const struct adv_xent_shape *shape, const struct adv_xent_tile *tile,
                                      struct adv_kernel_time *time, adv_err *err);

/* Blocks of x and weights, logits, labels and their one-hot form, gradient tiles: how many, and their sum. */
int adv_xent_vmem_parts(enum adv_kernel kernel, const struct adv_xent_tile *tile,
                        struct adv_vmem_part list[ADV_VMEM_PARTS]);
double adv_xent_vmem_bytes(enum adv_kernel kernel, const struct adv_xent_tile *tile);

/* The tuner's tiles: 1024 to 4096 tokens, 128 to 2560 embedding columns, 128 to 4096 words; `wide` adds
 * blocks of fewer and of 3072 tokens. None: the shape is not tunable. */
int adv_xent_space(const struct adv_xent_shape *shape, bool wide,
                   struct adv_xent_tile tiles[ADV_XENT_SPACE_MAX]);

ADV_MUST_CHECK adv_code adv_xent_tune(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                      const struct adv_xent_shape *shape, int top_k,
                                      struct adv_xent_tile *tiles, struct adv_kernel_time *times,
                                      int *found_count, long *evaluated_count, adv_err *err);
bool adv_xent_next_better(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                          const struct adv_xent_shape *shape, double than_s, struct adv_xent_tile *tile,
                          struct adv_kernel_time *time, double *limit_kib);

ADV_MUST_CHECK adv_code adv_xent_timeline(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                          const struct adv_xent_shape *shape,
                                          const struct adv_xent_tile *tile, struct adv_timeline *timeline,
                                          adv_err *err);

#endif
