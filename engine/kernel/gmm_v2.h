/* gmm_v2.h: the second grouped matmul kernel: weights triple buffered, every group read at its exact rows.
 *
 * It picks its own tiles: four buckets of 128 rows, and the output columns cut into as few parts as let them
 * fit VMEM, at least two array widths; fewer buckets only then. No
 * tile is shared between groups, so nothing is computed twice. Weights are asked for two row tiles ahead; a
 * tile's body is unrolled, and what does not fit the instruction memory is loaded at every row tile (measured
 * on v6e from 29 MB of weights per tile on: half the speed).
 */
#pragma once

#include "engine/kernel/kernel.h"

/* The VMEM it takes: nine tenths of the core's, unless a limit is set. */
static inline double adv_gmm_v2_limit_bytes(const struct adv_kernel_machine *machine)
{
    return machine->scoped_vmem_limit_bytes > 0.0 ? machine->scoped_vmem_limit_bytes
                                                  : 0.9 * machine->chip->vmem_bytes_per_core;
}

/* The tiles it picks; returns their VMEM bytes. */
double adv_gmm_v2_tiles(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                        int *tile_m, int *tile_n);

/* Fills everything of `time` but limits; the shape is checked. The forward product alone: no timing and no
 * description of a transposed one is published, adv_gmm_time refuses it. */
void adv_gmm_v2(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                struct adv_kernel_time *time);

/* One grid step, from which the timeline is made: a row tile of one group against one tile of columns. */
struct adv_gmm_v2_unit {
    int64_t n_tiles;
    int64_t tile_m, bucket; /* rows of a group come tile_m at a time, the last of them in buckets */
    double row_mxu_s;       /* per computed row */
    double row_tail_s;      /* masking of a contraction, per computed row and per `tail_rows` of every step */
    double tail_rows;
    double step_s;              /* of every step, code reload included */
    double row_in_s, row_out_s; /* DMA per row of a group */
    double weight_s;            /* DMA of a group's first step */
    double dma_s, exposed_s;    /* of the whole grid; the second does not hide behind compute */
};

/* The shape is checked. */
void adv_gmm_v2_unit_of(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                        struct adv_gmm_v2_unit *unit);
