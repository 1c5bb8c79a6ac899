/* vmem.h: bytes of VMEM a kernel needs with given tiles: windows (double buffered), scratch, compiler
 * temporaries.
 *
 * Windows and scratch follow from the kernels' block specifications, padded to the (8,128) tiling of 32-bit
 * registers; temporaries are what published winners bound: with two f32 tiles of scores the largest attention
 * winners need 32.0 MiB (tpu7x, v6e) and 16.5 MiB (v5p) under limits of 32 and 16 MiB. The grouped matmul's
 * formula over-counts by up to a tenth (largest winner 35.5 under 32 MiB), the transposed one's does not. It
 * holds a transposed copy of its row tile where the arrays are 256 wide: with it the winners of tpu7x and v6e
 * reach 32.0 MiB under 32 and take a buffer less where one more would pass, and tiles of 32.5 MiB and more
 * that should win by 5 to 11 % never do. Those of v5p and v5e reach 16.0 under 16 without it, one of them
 * 16.9 with it. The fused loss holds what its kernel declares (x and the weights in bf16, twice; logits and
 * one tile of each gradient in f32, once) and the one-hot labels: its winners reach 30.0 MiB under 32, and a
 * tile of 34.5 that divides its shape is passed over.
 *
 * The formulas' error is an allowance against the scoped limit, never against the memory: a kernel cannot
 * hold more than its core has, less what the compiler keeps of it (it calls 63.94 of tpu7x's 64 MiB usable).
 * Each core of a megacore device has its own VMEM and holds the whole tile.
 */
#pragma once

#include "engine/kernel/kernel.h"

/* How far over the limit a formula may be when the kernel still compiles. */
#define ADV_VMEM_SLACK_ATTENTION  1.04
#define ADV_VMEM_SLACK_MATMUL     1.11
#define ADV_VMEM_SLACK_TRANSPOSED 1.00
#define ADV_VMEM_SLACK_LOSS       1.00

#define ADV_VMEM_RESERVED_BYTES 65536.0 /* of a core's VMEM, for the compiler */

enum { ADV_VMEM_PARTS = 8 };
struct adv_vmem_part {
    const char *name; /* static; says which tiles it grows with */
    double bytes;
};

/* The buffers of a kernel; return how many. They add up to the bytes below. */
int adv_vmem_splash_parts(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                          const struct adv_attention_tile *tile, struct adv_vmem_part list[ADV_VMEM_PARTS]);
int adv_vmem_gmm_parts(const struct adv_chip *chip, enum adv_kernel kernel, const struct adv_gmm_shape *shape,
                       const struct adv_gmm_tile *tile, struct adv_vmem_part list[ADV_VMEM_PARTS]);
static inline double adv_vmem_sum(const struct adv_vmem_part *parts, int count)
{
    double bytes = 0.0;
    for (int i = 0; i < count; i++) bytes += parts[i].bytes;
    return bytes;
}

/* Splash kernels, all five. */
double adv_vmem_splash_bytes(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                             const struct adv_attention_tile *tile);

/* gmm and tgmm, version 1; input_buffer_count counts the buffers of each streamed operand. */
double adv_vmem_gmm_bytes(const struct adv_chip *chip, enum adv_kernel kernel,
                          const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile);

/* True when `vmem_bytes` is within `limit_bytes`, formula error included. The limit alone: not the core. */
bool adv_vmem_fits(enum adv_kernel kernel, double vmem_bytes, double limit_bytes);

/* True when `vmem_bytes` compiles under `limit_bytes` on a core of the chip. */
bool adv_vmem_compiles(const struct adv_chip *chip, enum adv_kernel kernel, double vmem_bytes,
                       double limit_bytes);

/* The lowest limit, in whole MiB, under which vmem_bytes compile; more than the capacity when a core cannot
 * hold them. */
double adv_vmem_needed_limit_kib(const struct adv_chip *chip, enum adv_kernel kernel, double vmem_bytes);

/* The VMEM of one core: the highest possible limit. */
double adv_vmem_capacity_bytes(const struct adv_chip *chip);
