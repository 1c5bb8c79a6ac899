#include "tests/accuracy/fit_kernels.h"

#include <math.h>
#include <string.h>

#include "engine/calibrate/validate_kernels.h"
#include "engine/kernel/family.h"

#define C(name, low, high)                                                                                   \
    {                                                                                                        \
#name, offsetof(struct adv_constants, name), low, high                                               \
    }
#define BIT(id) (1u << ADV_KERNEL_##id)

/* Where the vector unit binds the rate of the array cannot be seen, and the other way round. */
#define SPLASH_VECTOR_CONSTANTS                                                                              \
    {                                                                                                        \
        C(splash_fwd_vreg_s, 0.9e-9, 2e-9), C(splash_fwd_operand_vreg_s, 0.0, 2e-9),                         \
            C(splash_fwd_mask_vreg_s, 0.0, 3e-9), C(splash_fwd_step_s, 0.0, 2e-6),                           \
            C(splash_fwd_carry_s, 0.0, 2e-6), C(splash_wrapper_frac, 0.2, 1.0),                              \
            C(splash_fetch_s, 0.0, 2e-6), C(splash_fwd_rescale_vreg_s, 0.0, 4e-11),                          \
            C(splash_old_wrapper_factor, 1.0, 3.0)                                                           \
    }
#define SPLASH_ARRAY_CONSTANTS                                                                               \
    {                                                                                                        \
        C(splash_mxu_frac, 0.9, 1.0), C(splash_fwd_mask_vreg_s, 0.0, 3e-9), C(splash_fwd_step_s, 0.0, 2e-6), \
            C(splash_fwd_carry_s, 0.0, 2e-6), C(splash_wrapper_frac, 0.2, 1.0), C(splash_fetch_s, 0.0, 2e-6) \
    }
#define SPLASH_BWD_CONSTANTS                                                                                 \
    {                                                                                                        \
        C(splash_bwd_mxu_frac, 0.8, 1.0), C(splash_bwd_vreg_s, 0.5e-9, 8e-9),                                \
            C(splash_bwd_operand_vreg_s, 0.0, 2e-9), C(splash_bwd_mask_vreg_s, 0.0, 4e-9),                   \
            C(splash_bwd_step_s, 0.0, 2e-6), C(splash_bwd_wrapper_frac, 0.2, 1.0),                           \
            C(splash_bwd_reduction_frac, 0.1, 1.0), C(splash_bwd_narrow_row_s, 0.0, 4e-9),                   \
            C(splash_bwd_old_narrow_row_s, 0.0, 4e-9)                                                        \
    }
#define GMM_CONSTANTS                                                                                        \
    {                                                                                                        \
        C(gmm_mxu_frac, 0.7, 1.02), C(gmm_hbm_frac, 0.4, 1.0), C(gmm_overlap_frac, 0.0, 1.0),                \
            C(gmm_step_s, 1e-7, 2e-6), C(gmm_launch_s, 0.0, 1e-4), C(gmm_weight_rows, 0.0, 512.0),           \
            C(gmm_mask_vreg_s, 0.0, 3e-9), C(gmm_tail_vreg_s, 0.1e-9, 1.5e-9),                               \
            C(gmm_scale_vreg_s, 0.0, 5e-9)                                                                   \
    }
#define TGMM_CONSTANTS                                                                                       \
    {                                                                                                        \
        C(tgmm_mxu_frac, 0.7, 1.02), C(tgmm_hbm_frac, 0.4, 1.0), C(tgmm_overlap_frac, 0.0, 1.0),             \
            C(tgmm_step_s, 1e-7, 2e-6), C(tgmm_launch_s, 0.0, 1e-4), C(tgmm_transpose_vreg_s, 0.0, 5e-9),    \
            C(tgmm_accumulate_vreg_s, 0.0, 5e-9), C(tgmm_store_vreg_s, 0.0, 10e-9),                          \
            C(tgmm_tail_vreg_s, 0.5e-9, 15e-9)                                                               \
    }
/* The newest kernel: of a shared tile only part is computed again. */
#define TGMM_SHARED_CONSTANTS                                                                                \
    {                                                                                                        \
        C(tgmm_shared_rows, 16.0, 1024.0), C(tgmm_mxu_frac, 0.7, 1.02), C(tgmm_hbm_frac, 0.4, 1.0),          \
            C(tgmm_overlap_frac, 0.0, 1.0), C(tgmm_step_s, 1e-7, 2e-6), C(tgmm_launch_s, 0.0, 1e-4),         \
            C(tgmm_transpose_vreg_s, 0.0, 5e-9), C(tgmm_accumulate_vreg_s, 0.0, 5e-9),                       \
            C(tgmm_store_vreg_s, 0.0, 10e-9), C(tgmm_tail_vreg_s, 0.5e-9, 15e-9)                             \
    }
/* Five rows: the rest is borrowed. */
#define TGMM_FEW_CONSTANTS                                                                                   \
    {                                                                                                        \
        C(tgmm_mxu_frac, 0.7, 1.02), C(tgmm_hbm_frac, 0.4, 1.0), C(tgmm_store_vreg_s, 0.0, 10e-9)            \
    }
#define GMM2_CONSTANTS                                                                                       \
    {                                                                                                        \
        C(gmm2_mxu_frac, 0.5, 1.02), C(gmm2_hbm_frac, 0.2, 1.0), C(gmm2_overlap_frac, 0.0, 1.0),             \
            C(gmm2_step_s, 0.0, 4e-6), C(gmm2_imem_macs, 2e9, 7e9), C(gmm2_imem_mac_s, 0.0, 3e-14)           \
    }
#define XENT_CONSTANTS                                                                                       \
    {                                                                                                        \
        C(xent_mxu_frac, 0.5, 1.02), C(xent_bwd_mxu_frac, 0.5, 1.02), C(xent_hbm_frac, 0.2, 1.0),            \
            C(xent_overlap_frac, 0.0, 1.0), C(xent_step_s, 0.0, 2e-6), C(xent_fwd_vreg_s, 0.0, 10e-9),       \
            C(xent_bwd_vreg_s, 0.0, 20e-9)                                                                   \
    }
#define ATTENTION_XLA_COMMON                                                                                 \
    C(attention_xla_frac, 0.3, 1.2), C(attention_xla_row_moves, 0.0, 8.0),                                   \
        C(attention_xla_tile_rows, 64.0, 4096.0), C(attention_xla_cast_moves, 0.0, 4.0),                     \
        C(attention_xla_bias_passes, 0.0, 4.0), C(attention_xla_mask_bytes, 0.0, 4.0)
#define ATTENTION_XLA_CONSTANTS                                                                              \
    {                                                                                                        \
        ATTENTION_XLA_COMMON                                                                                 \
    }
/* Each generation's own habits, seen on no other. */
#define ATTENTION_XLA_TPU7X_CONSTANTS                                                                        \
    {                                                                                                        \
        ATTENTION_XLA_COMMON, C(attention_xla_wide_moves, 0.0, 8.0),                                         \
            C(attention_xla_bias_even_passes, 0.0, 2.0)                                                      \
    }
#define ATTENTION_XLA_V6E_CONSTANTS                                                                          \
    {                                                                                                        \
        ATTENTION_XLA_COMMON, C(attention_xla_bias_held_bytes, 0.0, 1e8),                                    \
            C(attention_xla_far_frac, 0.0, 1.0)                                                              \
    }
#define GMM_XLA_COMMON_CONSTANTS                                                                             \
    C(gmm_xla_out_vreg_s, 0.0, 2e-8), C(gmm_xla_overlap_frac, 0.0, 1.0),                                     \
        C(tgmm_xla_accumulate_vreg_s, 0.0, 5e-9)
#define GMM_XLA_CONSTANTS                                                                                    \
    {                                                                                                        \
        GMM_XLA_COMMON_CONSTANTS                                                                             \
    }
/* Only there are so many rows with transposed weights that the copy tells itself from the HBM's rate. */
#define GMM_XLA_COPY_CONSTANTS                                                                               \
    {                                                                                                        \
        GMM_XLA_COMMON_CONSTANTS, C(gmm_xla_copy_factor, 0.5, 3.0)                                           \
    }
/* The earlier lowering runs the array at its peak: fitted there, its rate stays at the bound. */
#define GMM_XLA_LATE_CONSTANTS                                                                               \
    {                                                                                                        \
        GMM_XLA_COMMON_CONSTANTS, C(gmm_xla_frac, 0.3, 1.0)                                                  \
    }
/* No gradient is cut into groups there. */
#define GMM_XLA_DENSE_CONSTANTS                                                                              \
    {                                                                                                        \
        C(gmm_xla_out_vreg_s, 0.0, 2e-8), C(gmm_xla_overlap_frac, 0.0, 1.0), C(gmm_xla_dense_frac, 0.3, 1.0) \
    }
#define MATMUL_CONSTANTS                                                                                     \
    {                                                                                                        \
        C(matmul_peak_frac, 0.5, 1.0), C(matmul_launch_s, 0.0, 5e-6), C(matmul_overlap_bytes, 0.0, 2e8),     \
            C(matmul_row_s, 0.0, 2e-9)                                                                       \
    }
#define ALL_XLA (BIT(ATTENTION_XLA) | BIT(ATTENTION_XLA_BWD))
#define FWD     (BIT(SPLASH_FWD) | BIT(SPLASH_FWD_RESIDUALS))

static const struct adv_fit_group groups[] = {
    /* copies and matmuls pay the same launch */
    {"tpu7x", "matmul, HBM copy", BIT(MATMUL), 0, 4, MATMUL_CONSTANTS},
    {"v6e", "matmul, HBM copy", BIT(MATMUL), 0, 1, MATMUL_CONSTANTS},
    {"v5p", "splash forward", FWD, 0, 6, SPLASH_ARRAY_CONSTANTS},
    {"tpu7x", "splash forward", FWD, 0, 9, SPLASH_VECTOR_CONSTANTS},
    {"v6e", "splash forward", FWD, 0, 7, SPLASH_VECTOR_CONSTANTS},
    {"tpu7x", "splash backward", BIT(SPLASH_BWD_FUSED), 0, 9, SPLASH_BWD_CONSTANTS},
    {"tpu7x", "gmm", BIT(GMM), 1, 9, GMM_CONSTANTS},
    {"v6e", "gmm", BIT(GMM), 1, 7, GMM_CONSTANTS},
    {"v5p", "gmm", BIT(GMM), 1, 8, GMM_CONSTANTS},
    {"v5e", "gmm", BIT(GMM), 1, 7, GMM_CONSTANTS},
    {"tpu7x", "tgmm", BIT(TGMM), 1, 9, TGMM_CONSTANTS},
    {"v6e", "tgmm", BIT(TGMM), 1, 9, TGMM_SHARED_CONSTANTS},
    {"v5p", "tgmm", BIT(TGMM), 1, 8, TGMM_CONSTANTS},
    {"v5e", "tgmm", BIT(TGMM), 1, 3, TGMM_FEW_CONSTANTS},
    {"v6e", "gmm v2", BIT(GMM), 2, 6, GMM2_CONSTANTS},
    {"tpu7x", "fused loss", BIT(LINEAR_XENT) | BIT(LINEAR_XENT_BWD), 0, 7, XENT_CONSTANTS},
    {"tpu7x", "XLA attention", ALL_XLA, 0, 8, ATTENTION_XLA_TPU7X_CONSTANTS},
    {"v6e", "XLA attention", ALL_XLA, 0, 8, ATTENTION_XLA_V6E_CONSTANTS},
    {"v5p", "XLA attention", ALL_XLA, 0, 6, ATTENTION_XLA_CONSTANTS},
    {"tpu7x", "XLA ragged dot", BIT(RAGGED_DOT_XLA) | BIT(RAGGED_DOT_XLA_TGMM), 0, 4, GMM_XLA_COPY_CONSTANTS},
    {"v6e", "XLA ragged dot", BIT(RAGGED_DOT_XLA) | BIT(RAGGED_DOT_XLA_TGMM), 0, 4, GMM_XLA_LATE_CONSTANTS},
    {"v5p", "XLA ragged dot", BIT(RAGGED_DOT_XLA) | BIT(RAGGED_DOT_XLA_TGMM), 0, 3, GMM_XLA_DENSE_CONSTANTS},
    {"v5e", "XLA ragged dot", BIT(RAGGED_DOT_XLA) | BIT(RAGGED_DOT_XLA_TGMM), 0, 3, GMM_XLA_CONSTANTS},
};

int adv_fit_groups_count(void)
{
    return (int)(sizeof groups / sizeof groups[0]);
}

const struct adv_fit_group *adv_fit_group_at(int index)
{
    return &groups[index];
}

bool adv_fit_same_chip(const char *a, const char *b)
{
    if (strcmp(a, "v7x") == 0) a = "tpu7x";
    if (strcmp(b, "v7x") == 0) b = "tpu7x";
    return strcmp(a, b) == 0;
}

bool adv_fit_uses(const struct adv_fit_group *group, const struct adv_kernel_row *row)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(row->request.kernel);
    if (!row->trusted || !row->known || !(group->kernels & (1u << row->request.kernel))) return false;
    if (family == &adv_family_gmm && row->request.gmm.version != group->version) return false;
    if (!(row->measured_s > 0.0)) return false;
    return adv_fit_same_chip(group->chip, row->chip);
}

double adv_fit_log_error(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row)
{
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    if (adv_predict_kernel_row(machine, row, &time, &err)) return (double)NAN;
    return log(time.time_s / row->measured_s);
}

double adv_fit_loss(const struct adv_fit_group *group, const struct adv_kernel_machine *machine,
                    const struct adv_kernel_row *const *rows, int rows_count, const int *mask, int skip)
{
    const double knee = 0.03;
    double loss = 0.0;
    (void)group;
    for (int i = 0; i < rows_count; i++) {
        if (mask && mask[i] == skip) continue;
        const double e = adv_fit_log_error(machine, rows[i]);
        if (isnan(e)) continue;
        loss += sqrt(e * e + knee * knee) - knee;
    }
    return loss;
}
