#include "engine/kernel/splash_work.h"

#include "engine/kernel/core.h"

double adv_splash_fwd_cap_vreg_s(const struct adv_constants *constants)
{
    return 2.0 / 3.0 * constants->splash_fwd_mask_vreg_s;
}

double adv_splash_bwd_cap_vreg_s(const struct adv_constants *constants)
{
    return 5.0 / 3.0 * constants->splash_bwd_mask_vreg_s;
}

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

void adv_splash_finish(const struct adv_kernel_machine *machine, const struct adv_splash_work *work,
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
