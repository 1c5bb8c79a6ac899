/* core.h: what one TensorCore can do per second, derived from a chip record; shared by all kernels.
 *
 * A JAX device drives one core, except on megacore chips (v4, v5p) where it drives two that only work
 * together when a kernel's grid has a parallel axis. Constants of the catalog are per core, HBM is shared by
 * the device's cores.
 */
#pragma once

#include <math.h>

#include "engine/base/units.h"
#include "engine/kernel/kernel.h"

/* Cores behind one JAX device. */
static inline double adv_core_count(const struct adv_chip *chip)
{
    return chip->cores_per_chip / chip->devices_per_chip;
}

/* bf16 peak of one core. */
static inline double adv_core_peak_flops_per_s(const struct adv_chip *chip)
{
    return chip->peak_bf16_flops_per_s_per_chip / chip->cores_per_chip;
}

/* Specified HBM bandwidth of one JAX device. */
static inline double adv_core_hbm_bytes_per_s(const struct adv_chip *chip)
{
    return chip->hbm_bytes_per_s_per_chip / chip->devices_per_chip;
}

/* MXU rate of a product of two formats over the bf16 rate: above 1 only where the chip has the format
 * natively (the record's peak is above its bf16 peak) and both operands have it; f32 operands run as one bf16
 * pass. */
static inline double adv_core_rate_factor(const struct adv_chip *chip, enum adv_format lhs,
                                          enum adv_format rhs)
{
    double native = (double)NAN;
    if (lhs == rhs && lhs == ADV_FORMAT_FP8) native = chip->peak_fp8_flops_per_s_per_chip;
    if (lhs == rhs && lhs == ADV_FORMAT_INT8) native = chip->peak_int8_ops_per_s_per_chip;
    return isnan(native) ? 1.0 : adv_max(1.0, native / chip->peak_bf16_flops_per_s_per_chip);
}

/* FLOPs the array spends on [m,k] x [k,n]: contraction and columns padded to its geometry, rows to 16-row
 * slabs. */
static inline double adv_core_padded_flops(const struct adv_chip *chip, double m, int64_t k, int64_t n)
{
    const double rows = 16.0 * ceil(m / 16.0);
    return 2.0 * rows * (double)adv_round_up(k, (int64_t)chip->mxu_rows) *
           (double)adv_round_up(n, (int64_t)chip->mxu_columns);
}

/* Columns that a head takes in memory: with the head size along the lanes, whole registers of 128; with the
 * sequence along the lanes the head lies along sublanes, 16 to a packed register. */
static inline double adv_core_head_columns(enum adv_layout layout, int head_dim)
{
    return (double)adv_round_up(head_dim, layout == ADV_LAYOUT_SEQ_MINOR ? 16 : 128);
}

/* The scoped VMEM limit in force: a limit beyond the core's VMEM counts as all of it. */
static inline double adv_core_vmem_limit_bytes(const struct adv_kernel_machine *machine)
{
    const double limit = machine->scoped_vmem_limit_bytes > 0.0 ? machine->scoped_vmem_limit_bytes
                                                                : machine->chip->vmem_scoped_default_bytes;
    const double capacity = machine->chip->vmem_bytes_per_core;
    return limit > capacity ? capacity : limit;
}

/* The scoped VMEM limit that is set, or a share of the core's VMEM. */
static inline double adv_core_vmem_limit_or(const struct adv_kernel_machine *machine, double share)
{
    return machine->scoped_vmem_limit_bytes > 0.0 ? adv_core_vmem_limit_bytes(machine)
                                                  : share * machine->chip->vmem_bytes_per_core;
}

/* ADV_E_RANGE at `pointer` for a size of a matrix that is none, or beyond any that is known. */
static inline adv_code adv_core_check_size(adv_err *err, const char *pointer, int64_t size)
{
    if (size >= 1 && size <= ADV_KERNEL_SIZE_MAX) return ADV_OK;
    return adv_err_add(err, ADV_E_RANGE, pointer, "1..268435456", "the size is %ld", (long)size);
}

/* Appends a named part; silently nothing for zero, so that answers list what matters. */
static inline void adv_kernel_part_add(struct adv_kernel_time *time, const char *name, double time_s)
{
    if (time_s == 0.0 || time->parts_count == ADV_KERNEL_PARTS) return;
    time->parts[time->parts_count].name = name;
    time->parts[time->parts_count].time_s = time_s;
    time->parts_count++;
}
