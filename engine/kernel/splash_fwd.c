#include "engine/kernel/core.h"
#include "engine/kernel/splash.h"

enum { LANES = 128, VREG = 1024 };

/* Time of the array for one head and block: S = Q.K^T and O += P.V. P stays f32: twice the 8-row slabs at
 * half the cost each, so both products take padded FLOPs over the bf16 rate. */
static double block_mxu_s(const struct adv_kernel_machine *machine, const struct adv_attention_shape *shape,
                          const struct adv_splash_blocks *blocks)
{
    const struct adv_chip *chip = machine->chip;
    const int64_t bc = blocks->block_kv_compute;
    const double per_part = adv_core_padded_flops(chip, blocks->block_q, shape->head_dim_qk, bc) +
                            adv_core_padded_flops(chip, blocks->block_q, bc, shape->head_dim_v);
    const double parts = (double)blocks->block_kv / (double)bc;
    return parts * per_part / (machine->constants->splash_mxu_frac * adv_core_peak_flops_per_s(chip));
}

void adv_splash_fwd_wrap(const struct adv_splash_call *call, struct adv_kernel_time *time)
{
    const struct adv_attention_shape *shape = call->shape;
    if (call->flags->kernel_only) return;
    const struct adv_constants *k = call->machine->constants;
    const double bw = k->splash_wrapper_frac * adv_core_hbm_bytes_per_s(call->machine->chip);
    const double b = adv_format_bytes(shape->dtype);
    const double q_rows = shape->batch * shape->q_heads * (double)shape->q_len;
    const double kv_rows = shape->batch * shape->kv_heads * (double)shape->kv_len;
    const double bytes = 2.0 * b * (q_rows + kv_rows) * (shape->head_dim_qk + shape->head_dim_v);
    const double moved_s = bytes / bw * (adv_splash_is_old(call->flags) ? k->splash_old_wrapper_factor : 1.0);
    adv_kernel_part_add(time, "wrapper_transposes", moved_s);
    time->time_s += moved_s;
    time->hbm_bytes += bytes;
    if (call->kernel != ADV_KERNEL_SPLASH_FWD_RESIDUALS) return;
    /* logsumexp and maximum leave the kernel replicated over 128 lanes, one of which is kept: both are read
     * whole */
    const double sliced = adv_splash_calls(shape) * q_rows * 2.0 * LANES * 4.0;
    const double slice_s = adv_splash_dma_s(call->machine, sliced);
    adv_kernel_part_add(time, "wrapper_residuals", slice_s);
    time->time_s += slice_s;
    time->hbm_bytes += sliced;
}

void adv_splash_fwd_unit(const struct adv_splash_call *call, struct adv_splash_unit *unit)
{
    const struct adv_constants *k = call->machine->constants;
    const struct adv_attention_shape *shape = call->shape;
    const struct adv_attention_tile *tile = call->tile;
    const struct adv_splash_blocks *blocks = &tile->blocks;
    const bool residuals = call->kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
    const double bq = blocks->block_q, bkv = blocks->block_kv, bc = blocks->block_kv_compute;
    const double block_vregs = bq * bkv / VREG;
    const double max_frac = call->flags->max_logit_constant ? k->splash_max_logit_frac : 1.0;
    /* per compute sub-block: the accumulator and the lane-replicated m and l are read, scaled, written */
    const double sub_vregs = bq * (double)(adv_round_up(shape->head_dim_v, LANES) + 2 * LANES) / VREG;
    const double columns =
        (double)(adv_round_up(shape->head_dim_qk, LANES) + adv_round_up(shape->head_dim_v, LANES));
    const double operand_s = columns / 512.0 * k->splash_fwd_operand_vreg_s;
    const double b = adv_format_bytes(shape->dtype);
    /* the body is unrolled twice over the whole block; past the instruction memory its rest is loaded at
     * every step */
    const double reload_s = adv_max(0.0, bq * bkv - k->splash_imem_pairs) * k->splash_imem_pair_s;
    const double heads = shape->batch * shape->q_heads;
    /* a soft cap, cap * tanh(s / cap), is a product, a tangent and a product; the tangent has a unit of its
     * own, idle but for the exponential, and what the vector unit takes for three operations is known from
     * the mask (index, comparison, selection). Counted: no published timing has a soft cap. */
    const double cap_s = call->flags->soft_cap ? 2.0 / 3.0 * k->splash_fwd_mask_vreg_s : 0.0;
    *unit = (struct adv_splash_unit){
        .vector_s = block_vregs * (k->splash_fwd_vreg_s * max_frac + operand_s + cap_s),
        /* with a constant maximum nothing that was summed is ever scaled again */
        .rescale_s =
            call->flags->max_logit_constant ? 0.0 : bkv / bc * sub_vregs * k->splash_fwd_rescale_vreg_s,
        .mxu_s = block_mxu_s(call->machine, shape, blocks),
        .mask_s = block_vregs * k->splash_fwd_mask_vreg_s,
        .mask_all = shape->segment_ids && !shape->segment_sizes,
        .step_s = k->splash_fwd_step_s + reload_s,
        .carry_s = bq / 1024.0 * k->splash_fwd_carry_s,
        /* logsumexp and maximum are made for every row and stored over all lanes */
        .outer_s = residuals ? bq * 2.0 * LANES / VREG * k->splash_fwd_vreg_s : 0.0,
        .fetch_s = k->splash_fetch_s,
        .each_in_bytes = b * bkv *
                         (adv_core_head_columns(tile->k_layout, shape->head_dim_qk) +
                          adv_core_head_columns(tile->v_layout, shape->head_dim_v)),
        .outer_in_bytes = b * bq * adv_core_head_columns(tile->q_layout, shape->head_dim_qk),
        .outer_out_bytes = b * bq * adv_core_head_columns(ADV_LAYOUT_HEAD_DIM_MINOR, shape->head_dim_v) +
                           (residuals ? 2.0 * bq * LANES * 4.0 : 0.0),
        .keeps_blocks = true,
        .block_q = blocks->block_q,
        .block_kv = blocks->block_kv,
        .cores = heads >= 2.0 ? adv_core_count(call->machine->chip) : 1.0, /* the heads axis is parallel */
    };
}
