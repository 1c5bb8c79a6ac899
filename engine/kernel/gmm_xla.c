#include "engine/kernel/core.h"
#include "engine/kernel/gmm_visits.h"

enum { XLA_TILE_M = 512 };

/* XLA lowers ragged dot to row tiles that are visited once per group they touch. On megacore chips it has no
 * such lowering unless the weights are transposed: every row meets every group's weights. */
adv_code adv_gmm_xla_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                          const struct adv_gmm_shape *shape, struct adv_kernel_time *time, adv_err *err)
{
    if (shape->m < 1 || shape->k < 1 || shape->n < 1 || shape->num_groups < 1)
        return adv_err_add(err, ADV_E_RANGE, "/shape", "positive sizes",
                           "a size of the grouped matmul is not positive");
    const struct adv_chip *chip = machine->chip;
    const struct adv_constants *k = machine->constants;
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(shape, XLA_TILE_M, &visits);
    double rows = visits.visits * XLA_TILE_M, frac = k->gmm_xla_frac;
    if (k->gmm_xla_dense > 0.5 && (kernel == ADV_KERNEL_TGMM || !shape->rhs_transposed)) {
        rows = (double)shape->m * (double)shape->num_groups;
        frac = 1.0 / adv_core_count(chip); /* on one core */
    }
    const double flops = adv_core_padded_flops(chip, rows, shape->k, shape->n);
    const double weights = (double)shape->num_groups * (double)shape->k * (double)shape->n;
    const double bytes = 2.0 * ((double)shape->m * (double)(shape->k + shape->n) + weights);
    const double mxu_s = flops / (frac * adv_core_count(chip) * adv_core_peak_flops_per_s(chip));
    const double dma_s = bytes / (chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(chip));
    *time = (struct adv_kernel_time){.mxu_busy_s = mxu_s, .hbm_bytes = bytes, .fits_vmem = true};
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->time_s = adv_max(mxu_s, dma_s) + k->matmul_launch_s;
    time->bound = dma_s > mxu_s ? ADV_RES_HBM : ADV_RES_MXU;
    time->extrapolated = k->gmm_measured < 0.5;
    adv_kernel_part_add(time, dma_s > mxu_s ? "dma" : "mxu", adv_max(mxu_s, dma_s));
    adv_kernel_part_add(time, "launch", k->matmul_launch_s);
    return ADV_OK;
}
