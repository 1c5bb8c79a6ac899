/* vmem.h: bytes of VMEM a kernel needs with given tiles: windows (double buffered), scratch, compiler temporaries.
 *
 * Windows and scratch follow from the kernels' block specifications, padded to the (8,128) tiling of 32-bit registers;
 * temporaries are what published winners and failed compiles bound. The formulas over-count by up to a tenth
 * (largest published winner 35.5 MiB under a 32 MiB limit), hence ADV_VMEM_SLACK.
 */
#ifndef ADV_KERNEL_VMEM_H
#define ADV_KERNEL_VMEM_H

#include "engine/kernel/kernel.h"

#define ADV_VMEM_SLACK 1.11 /* a formula up to this factor over the limit still compiles */

/* Splash kernels, all five. */
double adv_vmem_splash_bytes(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                             const struct adv_attention_tile *tile);

/* gmm and tgmm, version 1; input_buffer_count counts the buffers of each streamed operand. */
double adv_vmem_gmm_bytes(enum adv_kernel kernel, const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile);

/* Fused logits and loss: x block, weight block and running statistics. */
double adv_vmem_xent_bytes(enum adv_kernel kernel, const struct adv_xent_tile *tile);

/* True when `vmem_bytes` compiles under `limit_bytes`, formula error included. */
bool adv_vmem_fits(double vmem_bytes, double limit_bytes);

#endif
