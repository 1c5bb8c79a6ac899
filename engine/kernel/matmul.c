#include "engine/kernel/core.h"

adv_code adv_matmul_time(const struct adv_kernel_machine *machine, const struct adv_matmul_shape *s,
                         struct adv_kernel_time *time, adv_err *err)
{
    adv_code code = ADV_OK, found;
    if ((found = adv_core_check_size(err, "/shape/m", s->m))) code = found;
    if ((found = adv_core_check_size(err, "/shape/k", s->k))) code = found;
    if ((found = adv_core_check_size(err, "/shape/n", s->n))) code = found;
    if (code) return code;
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    const double cores = adv_core_count(chip);
    const double flops = adv_core_padded_flops(chip, (double)s->m, s->k, s->n);
    const double compute_s = flops / (k->matmul_peak_frac * cores * adv_core_peak_flops_per_s(chip) *
                                      adv_core_rate_factor(chip, s->lhs, s->rhs));
    const double bytes = (double)s->m * (double)s->k * adv_format_bytes(s->lhs) +
                         (double)s->k * (double)s->n * adv_format_bytes(s->rhs) +
                         (double)s->m * (double)s->n * adv_format_bytes(s->out);
    const double bw = chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(chip);
    const double dma_s = bytes / bw;
    /* the first tiles come in and the last go out with nothing to hide behind; each row of the result costs
       about a cycle on top (only square products were timed: rows, columns and contraction cannot be told
       apart) */
    const double fill_s = adv_min(compute_s, adv_min(bytes, k->matmul_overlap_bytes) / bw);
    const double exposed_s = fill_s + k->matmul_row_s * (double)s->m;
    *time = (struct adv_kernel_time){.mxu_busy_s = compute_s, .hbm_bytes = bytes, .fits_vmem = true};
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->time_s = adv_max(compute_s, dma_s) + exposed_s + k->matmul_launch_s;
    /* what was timed multiplies bfloat16 by bfloat16 */
    time->extrapolated = k->matmul_measured < 0.5 || s->lhs != ADV_FORMAT_BF16 || s->rhs != ADV_FORMAT_BF16;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : ADV_RES_MXU;
    if (k->matmul_launch_s > adv_max(compute_s, dma_s)) time->bound = ADV_RES_LATENCY;
    adv_kernel_part_add(time, dma_s > compute_s ? "dma" : "mxu", adv_max(compute_s, dma_s));
    adv_kernel_part_add(time, "pipeline_fill", exposed_s);
    adv_kernel_part_add(time, "launch", k->matmul_launch_s);
    return ADV_OK;
}
