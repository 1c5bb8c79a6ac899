#include "engine/kernel/core.h"

enum { NARROW = 64, WIDE = 128, BIAS_BLOCK_KEYS = 512 };

/* Scores up to here pass at the full rate: 4 GiB. Fitted on v6e it comes out at 4.2e9 +- 0.15e9 bytes. */
static const double reach_bytes = 4294967296.0;

static double scores_of(const struct adv_attention_shape *shape)
{
    return shape->batch * shape->q_heads * (double)shape->q_len * (double)shape->kv_len;
}

/* How much longer the traffic of the scores takes because part of an f32 matrix of them lies beyond the
 * reach. v6e shows it from there on and saturates, v5p and tpu7x do not; what it is that reaches no further
 * is not published. */
static double far_factor(const struct adv_constants *k, const struct adv_attention_shape *shape)
{
    return 1.0 + k->attention_xla_far_frac * adv_max(0.0, 1.0 - reach_bytes / (4.0 * scores_of(shape)));
}

/* Bytes a score costs because of a bias (in the number format of the inputs, shared by the batch). It is read
 * where it is added; only what stays in VMEM from one sequence to the next is not read again. With an even
 * number of blocks of 512 keys tpu7x reads more, at every batch size: seen in the timings, its reason is not
 * known. Backward the gradient of the scores is written and read once more, in f32, to be summed over the
 * batch. */
static double bias_bytes_per_score(const struct adv_constants *k, bool backward,
                                   const struct adv_attention_shape *shape)
{
    const double bias_bytes = (double)shape->q_heads * (double)shape->q_len * (double)shape->kv_len *
                              adv_format_bytes(shape->dtype);
    const double read_again = adv_max(0.0, 1.0 - k->attention_xla_bias_held_bytes / bias_bytes);
    const int64_t blocks = (shape->kv_len + BIAS_BLOCK_KEYS - 1) / BIAS_BLOCK_KEYS;
    double passes = k->attention_xla_bias_passes * read_again;
    if (blocks % 2 == 0) passes += k->attention_xla_bias_even_passes;
    return 4.0 * passes + (backward ? 8.0 : 0.0);
}

/* XLA's dot_product attention materialises scores: f32 logits are written once and read twice (statistics,
 * then probabilities on the way into P.V): 12 bytes a score. The backward pass does that again and twice more
 * for the gradients. The products read one operand again for every tile of rows of the other. A causal mask
 * saves nothing and costs its own reads. */
static double score_bytes(const struct adv_constants *k, bool backward,
                          const struct adv_attention_shape *shape)
{
    const double qk = shape->head_dim_qk, v = shape->head_dim_v;
    const double operands = backward ? 3.0 * qk + 2.0 * v : qk + v;
    double each = backward ? 36.0 : 12.0;
    each += 2.0 * adv_format_bytes(shape->dtype) * operands / k->attention_xla_tile_rows;
    if (shape->causal) each += k->attention_xla_mask_bytes * (backward ? 3.0 : 1.0);
    if (shape->has_bias) each += bias_bytes_per_score(k, backward, shape);
    return scores_of(shape) * each;
}

/* Inputs and outputs are transposed around the products, with their gradients in the backward pass; float16
 * ones are converted too, unless they are narrow: the conversion then rides on the transposition. Heads of
 * more than one register's lanes are moved more often, once in either pass. */
static double row_bytes(const struct adv_constants *k, bool backward, const struct adv_attention_shape *shape)
{
    const double rows =
        shape->batch * (shape->q_heads * (double)shape->q_len + shape->kv_heads * (double)shape->kv_len);
    double moves = k->attention_xla_row_moves;
    if (shape->is_float16 && shape->head_dim_qk > NARROW) moves += k->attention_xla_cast_moves;
    if (backward) moves *= 2.25;
    if (shape->head_dim_qk > WIDE) moves += k->attention_xla_wide_moves;
    return moves * adv_format_bytes(shape->dtype) * rows * (shape->head_dim_qk + shape->head_dim_v);
}

adv_code adv_attention_xla_time(const struct adv_kernel_machine *machine, bool backward,
                                const struct adv_attention_shape *shape, struct adv_kernel_time *time,
                                adv_err *err)
{
    if (!(shape->batch > 0.0) || shape->q_heads < 1 || shape->q_len < 1 || shape->kv_len < 1 ||
        shape->head_dim_qk < 1 || shape->head_dim_v < 1)
        return adv_err_add(err, ADV_E_RANGE, "/shape", "positive sizes", "an attention size is not positive");
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    const double heads = shape->batch * shape->q_heads;
    const double of_scores = score_bytes(k, backward, shape), of_rows = row_bytes(k, backward, shape);
    const double qk = adv_core_padded_flops(chip, (double)shape->q_len, shape->head_dim_qk, shape->kv_len);
    const double pv = adv_core_padded_flops(chip, (double)shape->q_len, shape->kv_len, shape->head_dim_v);
    const double products = backward ? 3.0 * qk + 2.0 * pv : qk + pv;
    const double mxu_s =
        heads * products / (k->matmul_peak_frac * adv_core_count(chip) * adv_core_peak_flops_per_s(chip));
    const double dma_s = (of_scores * far_factor(k, shape) + of_rows) /
                         (k->attention_xla_frac * adv_core_hbm_bytes_per_s(chip));
    *time =
        (struct adv_kernel_time){.mxu_busy_s = mxu_s, .hbm_bytes = of_scores + of_rows, .fits_vmem = true};
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->time_s = adv_max(mxu_s, dma_s) + k->matmul_launch_s * (backward ? 5.0 : 2.0);
    time->bound = dma_s > mxu_s ? ADV_RES_HBM : ADV_RES_MXU;
    adv_kernel_part_add(time, dma_s > mxu_s ? "score_traffic" : "mxu", adv_max(mxu_s, dma_s));
    adv_kernel_part_add(time, "launch", k->matmul_launch_s * (backward ? 5.0 : 2.0));
    time->extrapolated = (backward ? k->attention_xla_bwd_measured : k->attention_xla_measured) < 0.5;
    return ADV_OK;
}
