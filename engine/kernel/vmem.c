#include "engine/kernel/vmem.h"

#include "engine/base/units.h"

enum { LANES = 128 };

static double lanes(int64_t x)
{
    return (double)adv_round_up(x, LANES);
}

/* Forward: Q, K, V windows twice, out twice, m and l, accumulator, two f32 tiles of scores as temporaries. */
static double splash_fwd(enum adv_kernel kernel, const struct adv_attention_shape *s,
                         const struct adv_splash_blocks *t)
{
    const double b = adv_format_bytes(s->dtype), bq = t->block_q, bkv = t->block_kv, bc = t->block_kv_compute;
    const double qk = lanes(s->head_dim_qk), v = lanes(s->head_dim_v);
    double bytes = 2.0 * b * (bq * qk + bkv * qk + bkv * v + bq * v);
    bytes += 2.0 * bq * LANES * 4.0 + bq * v * 4.0 + 2.0 * bq * bc * 4.0;
    if (s->causal) bytes += 2.0 * bq * LANES * 4.0; /* query positions for the computed mask */
    if (s->segment_ids) bytes += 2.0 * (bq * LANES * 4.0 + 8.0 * bkv * 4.0);
    if (kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS) bytes += 2.0 * 2.0 * bq * LANES * 4.0;
    return bytes;
}

static double splash_bwd(enum adv_kernel kernel, const struct adv_attention_shape *s,
                         const struct adv_splash_blocks *t)
{
    const bool dq = kernel == ADV_KERNEL_SPLASH_BWD_DQ;
    const double b = adv_format_bytes(s->dtype);
    const double bq = dq ? t->block_q_dq : t->block_q_dkv, bkv = dq ? t->block_kv_dq : t->block_kv_dkv;
    const double bc = dq ? t->block_kv_dq : t->block_kv_dkv_compute;
    const double qk = lanes(s->head_dim_qk), v = lanes(s->head_dim_v);
    double bytes = 2.0 * b * (bq * (qk + v) + bkv * (qk + v)) + 2.0 * 2.0 * 8.0 * bq * 4.0;
    if (dq) return bytes + 2.0 * bq * qk * b + bq * qk * 4.0 + 2.0 * bc * bq * 4.0;
    bytes += 2.0 * bkv * (qk + v) * b + 4.0 * bkv * (qk + v) + 2.0 * bc * bq * 4.0;
    if (kernel == ADV_KERNEL_SPLASH_BWD_FUSED) {
        bytes += 2.0 * bq * qk * ((double)s->kv_len / bkv > 4.0 ? 4.0 : b);
        if (bkv != bc) bytes += 4.0 * bq * qk;
    }
    return bytes;
}

double adv_vmem_splash_bytes(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                             const struct adv_attention_tile *tile)
{
    if (kernel == ADV_KERNEL_SPLASH_FWD || kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS)
        return splash_fwd(kernel, shape, &tile->blocks);
    return splash_bwd(kernel, shape, &tile->blocks);
}

double adv_vmem_gmm_bytes(enum adv_kernel kernel, const struct adv_gmm_shape *shape,
                          const struct adv_gmm_tile *tile)
{
    const double tm = tile->tile_m, tk = tile->tile_k, tn = tile->tile_n, buffers = tile->input_buffer_count;
    const double lhs = adv_format_bytes(shape->lhs), rhs = adv_format_bytes(shape->rhs),
                 out = adv_format_bytes(shape->out);
    if (kernel == ADV_KERNEL_TGMM)
        return buffers * (tm * tk * lhs + tm * tn * rhs) + 2.0 * tk * tn * out + tk * tn * 4.0;
    return buffers * tm * tk * lhs + 2.0 * tk * tn * rhs + 2.0 * tm * tn * out + tm * tn * 4.0;
}

double adv_vmem_xent_bytes(enum adv_kernel kernel, const struct adv_xent_tile *tile)
{
    const double b = tile->b_block, h = tile->h_block, v = tile->v_block;
    const double forward = 2.0 * (b * h * 4.0 + h * v * 2.0) + b * v * 4.0 + 3.0 * b * LANES * 4.0;
    if (kernel == ADV_KERNEL_LINEAR_XENT) return forward;
    return forward +
           2.0 * (b * h * 4.0 + h * v * 4.0); /* dx and dw windows; scores become their gradient in place */
}

bool adv_vmem_fits(enum adv_kernel kernel, double vmem_bytes, double limit_bytes)
{
    const bool attention = kernel <= ADV_KERNEL_SPLASH_BWD_DKV; /* the five splash kernels come first */
    return vmem_bytes <= (attention ? ADV_VMEM_SLACK_ATTENTION : ADV_VMEM_SLACK_MATMUL) * limit_bytes;
}
