/* kernel.h: simulated time of one kernel on one JAX device, and what it is made of.
 *
 * Each kernel has its file (splash.c, gmm.c, matmul.c, xent.c); this header is their common ground,
 * and family.h says what else is asked of one.
 * Mechanics and sources: engine/README.md, "Kernels". Functions are pure, allocate nothing, are thread safe.
 */
#pragma once

#include "engine/base/budget.h"
#include "engine/base/err.h"
#include "engine/catalog/constants.h"
#include "engine/spec/chip.h"
#include "engine/spec/kernel_shape.h"

enum { ADV_KERNEL_PARTS = 10 };
enum adv_resource {
    ADV_RES_MXU,
    ADV_RES_VPU,
    ADV_RES_HBM,
    ADV_RES_ICI,
    ADV_RES_DCN,
    ADV_RES_PCIE,
    ADV_RES_LATENCY,
    ADV_RES_COUNT
};
const char *adv_resource_name(enum adv_resource resource);

struct adv_kernel_part {
    const char *name;
    double time_s;
}; /* static strings */

struct adv_kernel_time {
    double time_s;     /* whole jitted operation, wrapper included */
    double mxu_busy_s; /* what the MXU alone would need: for rooflines and HFU */
    double hbm_bytes;  /* read and written */
    double vmem_bytes; /* what the tiles need, by formula */
    double vmem_limit_bytes;
    bool fits_vmem;
    double grid_steps;
    enum adv_resource bound;
    bool extrapolated; /* no measurement of this kernel on this chip stands behind it */
    int parts_count;
    struct adv_kernel_part parts[ADV_KERNEL_PARTS]; /* add up to time_s */
};

/* The hardware side of a simulation: borrowed pointers. */
struct adv_kernel_machine {
    const struct adv_chip *chip;
    const struct adv_constants *constants;
    double scoped_vmem_limit_bytes; /* 0 = the chip's default */
    bool wide_tiles; /* tuners look beyond the field's search spaces: smaller and larger tiles */
    const struct adv_budget *budget; /* what goes through many tiles asks it; NULL: none */
};

/* kernel: one of the five SPLASH_*. Illegal tiles (ADV_E_ILLEGAL) name the rule; over VMEM is a result, not
 * an error. */
ADV_MUST_CHECK adv_code adv_splash_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                        const struct adv_attention_shape *shape,
                                        const struct adv_attention_tile *tile,
                                        const struct adv_attention_flags *flags, struct adv_kernel_time *time,
                                        adv_err *err);

/* XLA's own attention (dot_product): scores go through HBM. backward: false forward, true backward. */
ADV_MUST_CHECK adv_code adv_attention_xla_time(const struct adv_kernel_machine *machine, bool backward,
                                               const struct adv_attention_shape *shape,
                                               struct adv_kernel_time *time, adv_err *err);

/* kernel: ADV_KERNEL_GMM or ADV_KERNEL_TGMM, the latter only of version 1 (ADV_E_UNSUPPORTED). */
ADV_MUST_CHECK adv_code adv_gmm_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                     const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                                     struct adv_kernel_time *time, adv_err *err);

/* XLA's own ragged dot, which MaxText uses without a Pallas kernel: the baseline the tiles are compared with.
 */
ADV_MUST_CHECK adv_code adv_gmm_xla_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                         const struct adv_gmm_shape *shape, struct adv_kernel_time *time,
                                         adv_err *err);

/* Dense matmul as XLA tiles it: [m,k] x [k,n]. */
ADV_MUST_CHECK adv_code adv_matmul_time(const struct adv_kernel_machine *machine,
                                        const struct adv_matmul_shape *shape, struct adv_kernel_time *time,
                                        adv_err *err);

/* Seconds to stream bytes through HBM once on one device (reads plus writes), launch cost included. */
double adv_stream_time_s(const struct adv_kernel_machine *machine, double hbm_bytes);
