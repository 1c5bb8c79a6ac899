#include "engine/kernel/core.h"

/* XLA's dot_product attention materialises scores: f32 logits are written once and read twice (statistics,
 * then probabilities on the way into P.V): 12 bytes a score. The backward pass does that again and twice more
 * for the gradients. Inputs and outputs are transposed around it. A causal mask saves nothing. */
adv_code adv_attention_xla_time(const struct adv_kernel_machine *machine, bool backward,
                                const struct adv_attention_shape *shape, struct adv_kernel_time *time,
                                adv_err *err)
{
    if (!(shape->batch > 0.0) || shape->q_heads < 1 || shape->q_len < 1 || shape->kv_len < 1 ||
        shape->head_dim_qk < 1 || shape->head_dim_v < 1)
        return adv_err_add(err, ADV_E_RANGE, "/shape", "positive sizes", "an attention size is not positive");
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    const double b = adv_format_bytes(shape->dtype), heads = shape->batch * shape->q_heads;
    const double scores = heads * (double)shape->q_len * (double)shape->kv_len;
    const double q_rows = heads * (double)shape->q_len;
    const double kv_rows = shape->batch * shape->kv_heads * (double)shape->kv_len;
    const double both = shape->head_dim_qk + shape->head_dim_v;
    const double bytes =
        scores * (backward ? 36.0 : 12.0) + 4.0 * b * (q_rows + kv_rows) * both * (backward ? 2.25 : 1.0);
    const double qk = adv_core_padded_flops(chip, (double)shape->q_len, shape->head_dim_qk, shape->kv_len);
    const double pv = adv_core_padded_flops(chip, (double)shape->q_len, shape->kv_len, shape->head_dim_v);
    const double products = backward ? 3.0 * qk + 2.0 * pv : qk + pv;
    const double mxu_s =
        heads * products / (k->matmul_peak_frac * adv_core_count(chip) * adv_core_peak_flops_per_s(chip));
    const double dma_s = bytes / (k->attention_xla_frac * adv_core_hbm_bytes_per_s(chip));
    *time = (struct adv_kernel_time){.mxu_busy_s = mxu_s, .hbm_bytes = bytes, .fits_vmem = true};
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->time_s = adv_max(mxu_s, dma_s) + k->matmul_launch_s * (backward ? 5.0 : 2.0);
    time->bound = dma_s > mxu_s ? ADV_RES_HBM : ADV_RES_MXU;
    adv_kernel_part_add(time, dma_s > mxu_s ? "score_traffic" : "mxu", adv_max(mxu_s, dma_s));
    adv_kernel_part_add(time, "launch", k->matmul_launch_s * (backward ? 5.0 : 2.0));
    time->extrapolated = k->attention_xla_measured < 0.5;
    return ADV_OK;
}
