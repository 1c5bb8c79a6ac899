/* gmm_v2.h: the second grouped matmul kernel: weights triple buffered, every group read at its exact rows.
 *
 * It picks its own tiles: rows in buckets of 128, up to four while VMEM (0.9 of the core's, unless a limit is
 * set) holds them, and as many output columns as fit, at least two array widths. No tile is shared between
 * groups, so nothing is computed twice; deep prefetch spreads the weights over a whole group's steps.
 */
#ifndef ADV_KERNEL_GMM_V2_H
#define ADV_KERNEL_GMM_V2_H

#include "engine/kernel/kernel.h"

/* The tiles it picks; returns their VMEM bytes. */
double adv_gmm_v2_tiles(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                        int *tile_m, int *tile_n);

/* Fills everything of `time` but limits; the shape is checked. gmm and tgmm move and compute the same
 * amounts. */
void adv_gmm_v2(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                struct adv_kernel_time *time);

#endif
