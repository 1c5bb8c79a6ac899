/* splash.h: what the splash kernels share; splash.c checks and dispatches, splash_fwd.c and splash_bwd.c
 * simulate. */
#ifndef ADV_KERNEL_SPLASH_H
#define ADV_KERNEL_SPLASH_H

#include "engine/kernel/kernel.h"
#include "engine/kernel/splash_blocks.h"

/* Work of one kernel over all heads and sequences of a device, before overlap. Per core where a constant is.
 */
struct adv_splash_work {
    double vector_s, rescale_s; /* vector unit, beside the MXU */
    double mask_s;              /* vector unit, between two products: hides behind nothing */
    double mxu_s, overlap_frac;
    double hbm_bytes; /* block traffic of the grid */
    double steps, steps_s;
    double cores; /* that share the grid */
};

/* Turns work into time: the longest of compute and DMA per step plus what does not hide, steps, parts, bound.
 */
void adv_splash_finish(const struct adv_kernel_machine *machine, const struct adv_splash_work *work,
                       struct adv_kernel_time *time);

/* True when the kernel library is older than the mid-2026 rewrite of its layouts. */
bool adv_splash_is_old(const struct adv_attention_flags *flags);

/* Shapes and tiles already checked. */
void adv_splash_fwd(const struct adv_kernel_machine *machine, bool residuals,
                    const struct adv_attention_shape *shape, const struct adv_attention_tile *tile,
                    const struct adv_attention_flags *flags, struct adv_kernel_time *time);
void adv_splash_bwd(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                    const struct adv_attention_shape *shape, const struct adv_attention_tile *tile,
                    const struct adv_attention_flags *flags, struct adv_kernel_time *time);

#endif
