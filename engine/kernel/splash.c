#include "engine/kernel/splash.h"

#include "engine/kernel/core.h"
#include "engine/kernel/legal.h"
#include "engine/kernel/vmem.h"

bool adv_splash_is_old(const struct adv_attention_flags *flags)
{
    return flags->software_date > 0.0 && flags->software_date < 2026.5;
}

struct adv_splash_work adv_splash_sum(const struct adv_splash_unit *u,
                                      const struct adv_attention_shape *shape)
{
    struct adv_splash_counts counts;
    adv_splash_count_blocks(shape, u->block_q, u->block_kv, &counts);
    const double heads = shape->batch * shape->q_heads;
    const double each = u->each_in_bytes + u->each_out_bytes, outer = u->outer_in_bytes + u->outer_out_bytes;
    double q_blocks = counts.q_blocks;
    if (shape->context_ring &&
        shape->context_shards > 1) { /* opened and closed in every call that needs them */
        struct adv_splash_counts calls;
        adv_splash_count_blocks(shape, u->block_q, adv_splash_call_keys(shape), &calls);
        q_blocks = calls.active;
    }
    const double outer_count = u->keys_outside ? (double)(shape->kv_len / u->block_kv) : q_blocks;
    const double kept = u->keeps_blocks ? counts.kept : 0.0;
    /* the next query head on the same keys starts with the tile the last one ended with */
    const double head_kept =
        u->keeps_blocks && counts.wraps ? shape->batch * (shape->q_heads - shape->kv_heads) : 0.0;
    return (struct adv_splash_work){
        .vector_s = heads * counts.active * u->vector_s,
        .mask_s = heads * (u->mask_all ? counts.active : counts.partial) * u->mask_s,
        .rescale_s = heads * counts.active * u->rescale_s,
        .mxu_s = heads * counts.active * u->mxu_s,
        .hbm_bytes = heads * ((counts.active - kept) * each + outer_count * outer) - head_kept * each,
        .steps = heads * counts.active,
        .steps_s = heads * (counts.active * u->step_s + (counts.active - q_blocks) * u->carry_s +
                            q_blocks * u->outer_s),
        .fetches_s = heads * counts.active * u->fetch_s,
        .cores = u->cores,
    };
}

double adv_splash_compute_s(double vector_s, double mxu_s, double mask_s)
{
    return adv_max(vector_s, mxu_s) + mask_s;
}

double adv_splash_dma_s(const struct adv_kernel_machine *machine, double hbm_bytes)
{
    return hbm_bytes / (machine->chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(machine->chip));
}

double adv_splash_stall_s(const struct adv_kernel_machine *machine, const struct adv_splash_work *work)
{
    const double cores = work->cores;
    const double compute_s = adv_splash_compute_s((work->vector_s + work->rescale_s) / cores,
                                                  work->mxu_s / cores, work->mask_s / cores);
    const double dma_s = adv_splash_dma_s(machine, work->hbm_bytes) + work->fetches_s / cores;
    return adv_max(0.0, dma_s - compute_s - work->steps_s / cores);
}

/* Turns work into time: the longest of compute and DMA per step plus what does not hide, steps, parts, bound.
 */
static void finish(const struct adv_kernel_machine *machine, const struct adv_splash_work *work,
                   struct adv_kernel_time *time)
{
    const double vector_s = (work->vector_s + work->rescale_s) / work->cores;
    const double mxu_s = work->mxu_s / work->cores, mask_s = work->mask_s / work->cores;
    const double compute_s = adv_splash_compute_s(vector_s, mxu_s, mask_s);
    const double dma_s = adv_splash_dma_s(machine, work->hbm_bytes);
    const double steps_s = work->steps_s / work->cores, stall_s = adv_splash_stall_s(machine, work);
    time->time_s = compute_s + steps_s + stall_s;
    time->mxu_busy_s = mxu_s;
    time->hbm_bytes = work->hbm_bytes;
    time->grid_steps = work->steps;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : mxu_s > vector_s + mask_s ? ADV_RES_MXU : ADV_RES_VPU;
    if (adv_max(steps_s, work->fetches_s / work->cores) > adv_max(compute_s, dma_s))
        time->bound = ADV_RES_LATENCY;
    if (mxu_s > vector_s) {
        adv_kernel_part_add(time, "mxu", mxu_s);
    } else {
        adv_kernel_part_add(time, "vector", work->vector_s / work->cores);
        adv_kernel_part_add(time, "rescale", work->rescale_s / work->cores);
    }
    adv_kernel_part_add(time, "mask", mask_s);
    adv_kernel_part_add(time, "dma_exposed", stall_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
}

enum {
    LEN_MAX = ADV_KERNEL_LEN_MAX,
    HEADS_MAX = ADV_KERNEL_HEADS_MAX,
    HEAD_DIM_MAX = ADV_KERNEL_HEAD_DIM_MAX
};

#define MERGE_BYTES 12.0 /* a number of the sum read and written in f32, a partial one read */

static adv_code bad(adv_err *err, const char *pointer, const char *hint, const char *what, double got)
{
    return adv_err_add(err, ADV_E_RANGE, pointer, hint, "%s is %.0f", what, got);
}

static adv_code check_shape(const struct adv_attention_shape *s, adv_err *err)
{
    adv_code code = ADV_OK;
    if (!(s->batch > 0.0 && s->batch <= 1e9)) code = bad(err, "/shape/batch", "1 or more", "batch", s->batch);
    if (s->q_heads < 1 || s->q_heads > HEADS_MAX)
        code = bad(err, "/shape/q_heads", "1..65536", "q_heads", s->q_heads);
    if (s->kv_heads < 1 || s->kv_heads > s->q_heads || s->q_heads % s->kv_heads)
        code = bad(err, "/shape/kv_heads", "a divisor of q_heads", "kv_heads", s->kv_heads);
    if (s->q_len < 1 || s->q_len > LEN_MAX)
        code = bad(err, "/shape/q_len", "1..16777216", "q_len", (double)s->q_len);
    if (s->kv_len < 1 || s->kv_len > LEN_MAX)
        code = bad(err, "/shape/kv_len", "1..16777216", "kv_len", (double)s->kv_len);
    if (s->head_dim_qk < 1 || s->head_dim_qk > HEAD_DIM_MAX)
        code = bad(err, "/shape/head_dim_qk", "1..4096", "head_dim_qk", s->head_dim_qk);
    if (s->head_dim_v < 1 || s->head_dim_v > HEAD_DIM_MAX)
        code = bad(err, "/shape/head_dim_v", "1..4096", "head_dim_v", s->head_dim_v);
    if (s->window < 0 || s->chunk < 0)
        code = bad(err, "/shape/window", "0 or more", "window", (double)s->window);
    return code;
}

void adv_splash_unit_of(const struct adv_splash_call *call, struct adv_splash_unit *unit)
{
    if (adv_splash_is_forward(call->kernel))
        adv_splash_fwd_unit(call, unit);
    else
        adv_splash_bwd_unit(call, unit);
}

/* Around the calls of a ring: a launch each, and what a call adds to is read, added to and written: the f32
 * output forward, the gradients of the queries and of the keys that go round backward. */
static void ring(const struct adv_splash_call *call, struct adv_kernel_time *time)
{
    const struct adv_attention_shape *shape = call->shape;
    const enum adv_kernel kernel = call->kernel;
    const double more = adv_splash_calls(shape) - 1.0;
    if (more <= 0.0) return;
    const double q_rows = shape->batch * shape->q_heads * (double)shape->q_len;
    const double kv_rows = shape->batch * shape->kv_heads * (double)adv_splash_call_keys(shape);
    const double both = shape->head_dim_qk + shape->head_dim_v;
    double numbers = 0.0;
    if (adv_splash_is_forward(kernel)) numbers = q_rows * shape->head_dim_v;
    if (kernel == ADV_KERNEL_SPLASH_BWD_DQ || kernel == ADV_KERNEL_SPLASH_BWD_FUSED)
        numbers += q_rows * shape->head_dim_qk;
    if (kernel == ADV_KERNEL_SPLASH_BWD_DKV || kernel == ADV_KERNEL_SPLASH_BWD_FUSED)
        numbers += kv_rows * both;
    const double bytes = more * MERGE_BYTES * numbers, merge_s = adv_splash_dma_s(call->machine, bytes);
    const double launch_s = more * 2.0 * call->machine->constants->matmul_launch_s; /* kernel and merge */
    adv_kernel_part_add(time, "ring_merge", merge_s);
    adv_kernel_part_add(time, "ring_launch", launch_s);
    time->time_s += merge_s + launch_s;
    time->hbm_bytes += bytes;
}

adv_code adv_splash_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_attention_shape *shape, const struct adv_attention_tile *tile,
                         const struct adv_attention_flags *flags, struct adv_kernel_time *time, adv_err *err)
{
    const struct adv_splash_call call = {machine, kernel, shape, tile, flags};
    const bool forward = adv_splash_is_forward(kernel);
    struct adv_splash_unit unit;
    const adv_code bad_shape = check_shape(shape, err);
    const bool has_lengths = shape->q_len > 0 && shape->kv_len > 0; /* tiles of a bad shape are judged too */
    const adv_code bad_tile =
        has_lengths ? adv_legal_splash_blocks(kernel, shape, &tile->blocks, err) : ADV_OK;
    if (bad_shape || bad_tile) return bad_shape ? bad_shape : bad_tile;
    time->parts_count = 0;
    adv_splash_unit_of(&call, &unit);
    const struct adv_splash_work work = adv_splash_sum(&unit, shape);
    finish(machine, &work, time);
    if (forward)
        adv_splash_fwd_wrap(&call, time);
    else
        adv_splash_bwd_wrap(&call, time);
    ring(&call, time);
    time->vmem_bytes = adv_vmem_splash_bytes(kernel, shape, tile);
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->fits_vmem = adv_vmem_compiles(machine->chip, kernel, time->vmem_bytes, time->vmem_limit_bytes);
    const struct adv_constants *k = machine->constants;
    const bool measured = forward ? k->splash_fwd_measured >= 0.5
                                  : kernel == ADV_KERNEL_SPLASH_BWD_FUSED && k->splash_bwd_measured >= 0.5;
    time->extrapolated = !measured || flags->soft_cap;
    return ADV_OK;
}
