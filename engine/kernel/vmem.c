#include "engine/kernel/vmem.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/kernel/core.h"
#include "engine/kernel/splash_blocks.h"

enum { LANES = 128, WIDE_ARRAY = 256 };

static double lanes(int64_t x)
{
    return (double)adv_round_up(x, LANES);
}

struct parts {
    struct adv_vmem_part *list;
    int count;
};

static void add(struct parts *parts, const char *name, double bytes)
{
    parts->list[parts->count++] = (struct adv_vmem_part){name, bytes};
}

/* Forward: Q, K, V windows twice, out twice, m and l, accumulator, two f32 tiles of scores as temporaries. */
static void splash_fwd(enum adv_kernel kernel, const struct adv_attention_shape *s,
                       const struct adv_attention_tile *tile, struct parts *parts)
{
    const struct adv_splash_blocks *t = &tile->blocks;
    const double b = adv_format_bytes(s->dtype), bq = t->block_q, bkv = t->block_kv, bc = t->block_kv_compute;
    const double v = lanes(s->head_dim_v), q_columns = adv_core_head_columns(tile->q_layout, s->head_dim_qk);
    const double k_columns = adv_core_head_columns(tile->k_layout, s->head_dim_qk);
    const double v_columns = adv_core_head_columns(tile->v_layout, s->head_dim_v);
    const bool saves = kernel == ADV_KERNEL_SPLASH_FWD_RESIDUALS;
    add(parts, "q and output blocks (block_q)", 2.0 * b * (bq * q_columns + bq * v));
    add(parts, "k and v blocks (block_kv)", 2.0 * b * (bkv * k_columns + bkv * v_columns));
    add(parts, "statistics and accumulator (block_q)",
        2.0 * bq * LANES * 4.0 + bq * v * 4.0 + (saves ? 2.0 * 2.0 * bq * LANES * 4.0 : 0.0));
    add(parts, "scores (block_q x block_kv_compute)", 2.0 * bq * bc * 4.0);
    if (s->causal) /* query positions for the computed mask */
        add(parts, "query positions (block_q)", 2.0 * bq * LANES * 4.0);
    if (s->segment_ids)
        add(parts, "segment ids (block_q, block_kv)", 2.0 * (bq * LANES * 4.0 + 8.0 * bkv * 4.0));
}

static void splash_bwd(enum adv_kernel kernel, const struct adv_attention_shape *s,
                       const struct adv_splash_blocks *t, struct parts *parts)
{
    const bool dq = kernel == ADV_KERNEL_SPLASH_BWD_DQ;
    const double b = adv_format_bytes(s->dtype);
    const struct adv_splash_cut cut = adv_splash_cut_of(kernel, t);
    const double bq = cut.q, bkv = cut.kv, bc = dq ? cut.kv : cut.part;
    const double qk = lanes(s->head_dim_qk), v = lanes(s->head_dim_v);
    add(parts, dq ? "q and dO blocks (block_q_dq)" : "q and dO blocks (block_q_dkv)",
        2.0 * b * bq * (qk + v) + 2.0 * 2.0 * 8.0 * bq * 4.0);
    add(parts, dq ? "k and v blocks (block_kv_dq)" : "k and v blocks (block_kv_dkv)",
        2.0 * b * bkv * (qk + v));
    add(parts, dq ? "scores (block_q_dq x block_kv_dq)" : "scores (block_q_dkv x block_kv_dkv_compute)",
        2.0 * bc * bq * 4.0);
    if (dq) {
        add(parts, "dQ block and accumulator (block_q_dq)", 2.0 * bq * qk * b + bq * qk * 4.0);
        return;
    }
    add(parts, "dK and dV blocks and accumulators (block_kv_dkv)",
        2.0 * bkv * (qk + v) * b + 4.0 * bkv * (qk + v));
    if (kernel != ADV_KERNEL_SPLASH_BWD_FUSED) return;
    const double accumulator = bkv != bc ? 4.0 * bq * qk : 0.0;
    add(parts, "dQ partials (block_q_dkv)",
        2.0 * bq * qk * ((double)adv_splash_call_keys(s) / bkv > 4.0 ? 4.0 : b) + accumulator);
}

int adv_vmem_splash_parts(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                          const struct adv_attention_tile *tile, struct adv_vmem_part list[ADV_VMEM_PARTS])
{
    struct parts parts = {list, 0};
    if (adv_splash_is_forward(kernel))
        splash_fwd(kernel, shape, tile, &parts);
    else
        splash_bwd(kernel, shape, &tile->blocks, &parts);
    return parts.count;
}

double adv_vmem_splash_bytes(enum adv_kernel kernel, const struct adv_attention_shape *shape,
                             const struct adv_attention_tile *tile)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    return adv_vmem_sum(parts, adv_vmem_splash_parts(kernel, shape, tile, parts));
}

int adv_vmem_gmm_parts(const struct adv_chip *chip, enum adv_kernel kernel, const struct adv_gmm_shape *shape,
                       const struct adv_gmm_tile *tile, struct adv_vmem_part list[ADV_VMEM_PARTS])
{
    const double tm = tile->tile_m, tk = tile->tile_k, tn = tile->tile_n, buffers = tile->input_buffer_count;
    const double lhs = adv_format_bytes(shape->lhs), rhs = adv_format_bytes(shape->rhs),
                 out = adv_format_bytes(shape->out);
    struct parts parts = {list, 0};
    add(&parts, "lhs blocks (tile_m x tile_k)", buffers * tm * tk * lhs);
    if (kernel == ADV_KERNEL_TGMM) {
        add(&parts, "rhs blocks (tile_m x tile_n)", buffers * tm * tn * rhs);
        if (chip->mxu_rows >= WIDE_ARRAY)
            add(&parts, "transposed lhs block (tile_m x tile_k)", tm * tk * lhs);
        add(&parts, "output blocks and accumulator (tile_k x tile_n)", 2.0 * tk * tn * out + tk * tn * 4.0);
    } else {
        add(&parts, "weight blocks (tile_k x tile_n)", 2.0 * tk * tn * rhs);
        add(&parts, "output blocks and accumulator (tile_m x tile_n)", 2.0 * tm * tn * out + tm * tn * 4.0);
    }
    return parts.count;
}

double adv_vmem_gmm_bytes(const struct adv_chip *chip, enum adv_kernel kernel,
                          const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile)
{
    struct adv_vmem_part parts[ADV_VMEM_PARTS];
    return adv_vmem_sum(parts, adv_vmem_gmm_parts(chip, kernel, shape, tile, parts));
}

static double slack(enum adv_kernel kernel)
{
    static const double slacks[ADV_KERNEL_COUNT] = {
#define SLACK(id, name, formula) ADV_VMEM_SLACK_##formula,
        ADV_KERNEL_TABLE(SLACK)
#undef SLACK
    };
    return slacks[kernel];
}

bool adv_vmem_fits(enum adv_kernel kernel, double vmem_bytes, double limit_bytes)
{
    return vmem_bytes <= slack(kernel) * limit_bytes;
}

/* A kernel gets no more than the core has, whatever the limit. NAN: unknown. */
static double usable_bytes(const struct adv_chip *chip)
{
    return chip->vmem_bytes_per_core - ADV_VMEM_RESERVED_BYTES;
}

bool adv_vmem_compiles(const struct adv_chip *chip, enum adv_kernel kernel, double vmem_bytes,
                       double limit_bytes)
{
    return adv_vmem_fits(kernel, vmem_bytes, limit_bytes) && !(vmem_bytes > usable_bytes(chip));
}

double adv_vmem_needed_limit_kib(const struct adv_chip *chip, enum adv_kernel kernel, double vmem_bytes)
{
    if (vmem_bytes > usable_bytes(chip))
        return 1024.0 * ceil((vmem_bytes + ADV_VMEM_RESERVED_BYTES) / ADV_MIB);
    return 1024.0 * ceil(vmem_bytes / (slack(kernel) * ADV_MIB));
}

double adv_vmem_capacity_bytes(const struct adv_chip *chip)
{
    return chip->vmem_bytes_per_core;
}
