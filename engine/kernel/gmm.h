/* gmm.h: one grid step of a grouped matmul (version 1), from which closed form and timeline are made. */
#pragma once

#include "engine/kernel/kernel.h"

struct adv_gmm_unit {
    int64_t n_tiles, k_tiles;
    double row_bytes;    /* of the rows, when the row tile changes; of each step when they are spread */
    double weight_bytes; /* of the weights, when the group changes; 0 in tgmm */
    double out_bytes;    /* a visit's share of the output */
    bool streams_all;    /* everything moves at every step: several k tiles in gmm, deep buffers in tgmm */
    double bytes_per_s;
    double mxu_s, vector_s, step_s, overlap_frac;
};

/* ADV_E_UNSUPPORTED for tgmm of version 2: only its forward product was ever described or timed. `err` may be
 * NULL. */
adv_code adv_gmm_check_version(enum adv_kernel kernel, const struct adv_gmm_shape *shape, adv_err *err);

/* Shape and tile already checked. */
void adv_gmm_unit_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                     const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                     struct adv_gmm_unit *unit);

/* Bytes of the copy that return_residuals adds behind the kernel. */
static inline double adv_gmm_residual_bytes(const struct adv_gmm_shape *shape)
{
    return 2.0 * (double)shape->m * (double)shape->n * adv_format_bytes(shape->out);
}

/* Time of a step beyond its compute: the rest of a longer DMA and the share that does not hide. */
static inline double adv_gmm_exposed_s(double dma_s, double compute_s, double overlap_frac)
{
    return (dma_s > compute_s ? dma_s - compute_s : 0.0) +
           overlap_frac * (dma_s < compute_s ? dma_s : compute_s);
}
