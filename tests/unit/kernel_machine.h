/* kernel_machine.h: a chip of round numbers for kernel tests, so that expected times can be worked out by
 * hand.
 *
 * One core, 128 x 128 array, 1e12 FLOP/s, HBM 1e12 B/s fully achieved, 16 MiB of VMEM. All constants are zero
 * or, where they are fractions, one; a test sets what it looks at.
 */
#pragma once

#include <string.h>

#include "engine/kernel/kernel.h"

struct kernel_bench {
    struct adv_chip chip;
    struct adv_constants constants;
    struct adv_kernel_machine machine;
};

static inline void kernel_bench_init(struct kernel_bench *bench)
{
    memset(bench, 0, sizeof *bench);
    bench->chip = (struct adv_chip){.name = "round",
                                    .devices_per_chip = 1,
                                    .cores_per_chip = 1,
                                    .mxu_rows = 128,
                                    .mxu_columns = 128,
                                    .clock_hz = 1e9,
                                    .peak_bf16_flops_per_s_per_chip = 1e12,
                                    .peak_fp8_flops_per_s_per_chip = 2e12,
                                    .peak_int8_ops_per_s_per_chip = 1e12,
                                    .hbm_bytes_per_s_per_chip = 1e12,
                                    .hbm_achieved_frac = 1.0,
                                    .vmem_bytes_per_core = 64.0 * 1048576.0,
                                    .vmem_scoped_default_bytes = 16.0 * 1048576.0};
    struct adv_constants *k = &bench->constants;
    k->matmul_peak_frac = k->splash_mxu_frac = k->splash_bwd_mxu_frac = k->splash_wrapper_frac = 1.0;
    k->splash_bwd_wrapper_frac = k->splash_bwd_reduction_frac = k->splash_max_logit_frac = 1.0;
    k->splash_old_wrapper_factor = k->attention_xla_frac = k->gmm_mxu_frac = k->gmm_hbm_frac = 1.0;
    k->tgmm_mxu_frac = k->tgmm_hbm_frac = k->gmm2_mxu_frac = k->gmm2_hbm_frac = k->gmm_xla_frac = 1.0;
    k->xent_mxu_frac = k->xent_bwd_mxu_frac = k->xent_hbm_frac = 1.0;
    k->gmm_xla_dense_frac = k->gmm_xla_copy_factor = k->attention_xla_tile_rows = 1.0;
    k->splash_imem_pairs = k->gmm2_imem_macs = k->tgmm_shared_rows = 1e18;
    bench->machine = (struct adv_kernel_machine){.chip = &bench->chip, .constants = &bench->constants};
}

static inline double kernel_part(const struct adv_kernel_time *time, const char *name)
{
    for (int i = 0; i < time->parts_count; i++)
        if (strcmp(time->parts[i].name, name) == 0) return time->parts[i].time_s;
    return 0.0;
}

static inline double kernel_parts_sum(const struct adv_kernel_time *time)
{
    double sum = 0.0;
    for (int i = 0; i < time->parts_count; i++) sum += time->parts[i].time_s;
    return sum;
}
