#include "engine/kernel/core.h"
#include "engine/kernel/splash.h"

enum { LANES = 128, VREG = 1024 };

/* Which of the five products S, dP, dV, dK, dQ a kernel does, and its share of the fused kernel's vector work
 * (no measurement of the split kernels; both redo S, dP and the exponential). */
struct flavour {
    bool makes_dq, makes_dkv;
    double vector_share;
};

static struct flavour flavour_of(enum adv_kernel kernel)
{
    if (kernel == ADV_KERNEL_SPLASH_BWD_DQ) return (struct flavour){true, false, 0.6};
    if (kernel == ADV_KERNEL_SPLASH_BWD_DKV) return (struct flavour){false, true, 0.8};
    return (struct flavour){true, true, 1.0};
}

static double block_mxu_s(const struct adv_kernel_machine *machine, struct flavour flavour,
                          const struct adv_attention_shape *shape, int64_t bq, int64_t bkv, int64_t bc)
{
    const struct adv_chip *chip = machine->chip;
    const int dqk = shape->head_dim_qk, dv = shape->head_dim_v;
    double flops =
        adv_core_padded_flops(chip, (double)bc, dqk, bq) + adv_core_padded_flops(chip, (double)bc, dv, bq);
    if (flavour.makes_dkv)
        flops += adv_core_padded_flops(chip, (double)bc, bq, dv) +
                 adv_core_padded_flops(chip, (double)bc, bq, dqk);
    if (flavour.makes_dq) flops += adv_core_padded_flops(chip, (double)bq, bc, dqk);
    return (double)bkv / (double)bc * flops /
           (machine->constants->splash_bwd_mxu_frac * adv_core_peak_flops_per_s(chip));
}

/* The bytes of dQ that the kernel writes: a partial per key tile in the input's format up to four of them,
 * f32 beyond; with fewer buffers than key tiles each is read, added to and written back. */
struct partials {
    double kv_steps, bytes; /* bytes: of one number */
    bool made, in_place;
};

static struct partials partials_of(const struct adv_splash_call *call)
{
    const int64_t bkv = adv_splash_cut_of(call->kernel, &call->tile->blocks).kv;
    const int steps = call->flags->dq_reduction_steps;
    struct partials p = {.kv_steps = (double)(adv_splash_call_keys(call->shape) / bkv),
                         .made = call->kernel == ADV_KERNEL_SPLASH_BWD_FUSED};
    p.bytes = p.kv_steps <= 4.0 ? adv_format_bytes(call->shape->dtype) : 4.0;
    p.in_place = p.made && steps > 0 && p.kv_steps > steps;
    return p;
}

/* The bytes that are read and written to add up the partials of dQ; a single key tile writes dQ itself. */
static double reduction_bytes(const struct adv_splash_call *call)
{
    const struct partials p = partials_of(call);
    const double q_rows = call->shape->batch * call->shape->q_heads * (double)call->shape->q_len;
    double buffers = p.kv_steps;
    if (!p.made || p.kv_steps <= 1.0) return 0.0;
    if (call->flags->dq_reduction_steps > 0) buffers = adv_min(buffers, call->flags->dq_reduction_steps);
    return adv_splash_calls(call->shape) * (q_rows * call->shape->head_dim_qk) *
           (buffers * p.bytes + adv_format_bytes(call->shape->dtype));
}

void adv_splash_bwd_wrap(const struct adv_splash_call *call, struct adv_kernel_time *time)
{
    const struct adv_constants *k = call->machine->constants;
    const struct adv_attention_shape *shape = call->shape;
    const struct adv_attention_flags *flags = call->flags;
    const struct flavour flavour = flavour_of(call->kernel);
    const double bw = adv_core_hbm_bytes_per_s(call->machine->chip), b = adv_format_bytes(shape->dtype);
    const double q_rows = shape->batch * shape->q_heads * (double)shape->q_len;
    const double kv_rows = shape->batch * shape->kv_heads * (double)shape->kv_len;
    const double qk = shape->head_dim_qk, v = shape->head_dim_v;
    double bytes = 2.0 * b * (q_rows * (qk + 2.0 * v) + kv_rows * (qk + v)); /* q, o, dO, k, v in */
    if (flavour.makes_dkv && !flavour.makes_dq)
        bytes = 0.0; /* the dq kernel of the pair already paid for the inputs */
    if (flavour.makes_dq) bytes += 2.0 * b * q_rows * qk;
    if (flavour.makes_dkv) bytes += 2.0 * b * kv_rows * (qk + v);
    if (flags->kernel_only) bytes = 0.0; /* the sum of dQ's partials belongs to the kernel's result */
    const double moved_s = bytes / (k->splash_bwd_wrapper_frac * bw);
    const double sum_bytes = reduction_bytes(call);
    const double sum_s = sum_bytes / (k->splash_bwd_reduction_frac * bw);
    double narrow_s = 0.0;
    if (shape->head_dim_qk % LANES && flavour.makes_dq && !flags->kernel_only)
        narrow_s = q_rows * (k->splash_bwd_narrow_row_s +
                             (adv_splash_is_old(flags) ? k->splash_bwd_old_narrow_row_s : 0.0));
    adv_kernel_part_add(time, "wrapper_transposes", moved_s);
    adv_kernel_part_add(time, "wrapper_narrow_heads", narrow_s);
    adv_kernel_part_add(time, "dq_reduction", sum_s);
    time->time_s += moved_s + narrow_s + sum_s;
    time->hbm_bytes += bytes + sum_bytes;
}

void adv_splash_bwd_unit(const struct adv_splash_call *call, struct adv_splash_unit *unit)
{
    const struct adv_constants *k = call->machine->constants;
    const struct adv_attention_shape *shape = call->shape;
    const struct flavour flavour = flavour_of(call->kernel);
    const bool dq_only = call->kernel == ADV_KERNEL_SPLASH_BWD_DQ;
    const struct adv_splash_cut cut = adv_splash_cut_of(call->kernel, &call->tile->blocks);
    const int64_t bq = cut.q, bkv = cut.kv, bc = dq_only ? bkv : cut.part;
    const double b = adv_format_bytes(shape->dtype), both = shape->head_dim_qk + shape->head_dim_v;
    const struct partials p = partials_of(call);
    const double partial_bytes = p.made ? p.bytes * (double)bq * shape->head_dim_qk : 0.0;
    const double q_bytes = b * (double)bq * both, kv_bytes = b * (double)bkv * both;
    const double block_vregs = (double)bq * (double)bkv / VREG;
    const double columns =
        (double)(adv_round_up(shape->head_dim_qk, LANES) + adv_round_up(shape->head_dim_v, LANES));
    /* a soft cap is made again, and the gradient multiplied by 1 - tanh^2: three operations more than forward
     * (splash_fwd.c) */
    const double cap_s = call->flags->soft_cap ? 5.0 / 3.0 * k->splash_bwd_mask_vreg_s : 0.0;
    const double vreg_s = k->splash_bwd_vreg_s + columns / 512.0 * k->splash_bwd_operand_vreg_s;
    *unit = (struct adv_splash_unit){
        .vector_s = block_vregs * (vreg_s * flavour.vector_share + cap_s), /* each makes the scores */
        .mxu_s = block_mxu_s(call->machine, flavour, shape, bq, bkv, bc),
        .mask_s = block_vregs * k->splash_bwd_mask_vreg_s,
        .mask_all = shape->segment_ids && !shape->segment_sizes,
        .step_s = k->splash_bwd_step_s,
        .fetch_s = k->splash_fetch_s,
        .each_in_bytes = dq_only ? kv_bytes : q_bytes + (p.in_place ? partial_bytes : 0.0),
        .each_out_bytes = dq_only ? 0.0 : partial_bytes,
        .outer_in_bytes = dq_only ? q_bytes : kv_bytes,
        .outer_out_bytes = dq_only ? b * (double)bq * shape->head_dim_qk : kv_bytes,
        .keys_outside = !dq_only,
        .block_q = bq,
        .block_kv = bkv,
        .cores = 1.0, /* every axis of these grids is sequential */
    };
}
