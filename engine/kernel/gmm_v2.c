#include "engine/kernel/core.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/gmm_v2.h"

enum { BUCKET = 128, BUCKETS_MAX = 4 };

/* Bytes of VMEM: weights thrice, row tile and output tile twice, f32 accumulator. */
static double vmem_bytes(const struct adv_gmm_shape *s, double tile_m, double tile_n)
{
    const double k = (double)s->k;
    return 3.0 * k * tile_n * adv_format_bytes(s->rhs) + 2.0 * tile_m * k * adv_format_bytes(s->lhs) +
           2.0 * tile_m * tile_n * adv_format_bytes(s->out) + tile_m * tile_n * 4.0;
}

double adv_gmm_v2_tiles(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s, int *tile_m,
                        int *tile_n)
{
    const double limit = machine->scoped_vmem_limit_bytes > 0.0 ? machine->scoped_vmem_limit_bytes
                                                                : 0.9 * machine->chip->vmem_bytes_per_core;
    const int64_t least = 2 * (int64_t)machine->chip->mxu_columns;
    int64_t n = adv_round_up(s->n, 128);
    while (n > least && vmem_bytes(s, BUCKET, (double)n) > limit) n = adv_round_up(adv_div_up(n, 2), 128);
    int buckets = BUCKETS_MAX;
    while (buckets > 1 && vmem_bytes(s, (double)buckets * BUCKET, (double)n) > limit) buckets--;
    *tile_m = buckets * BUCKET;
    *tile_n = (int)n;
    return vmem_bytes(s, *tile_m, (double)n);
}

void adv_gmm_v2(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s,
                struct adv_kernel_time *time)
{
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    int tile_m, tile_n;
    const double vmem = adv_gmm_v2_tiles(machine, s, &tile_m, &tile_n);
    struct adv_gmm_rows rows;
    adv_gmm_count_rows(s, BUCKET, tile_m, &rows);
    const double n_tiles = (double)adv_div_up(s->n, tile_n), depth = (double)s->k, width = (double)s->n;
    const double rate =
        k->gmm2_mxu_frac * adv_core_peak_flops_per_s(chip) * adv_core_rate_factor(chip, s->lhs, s->rhs);
    const double mxu_s = n_tiles * adv_core_padded_flops(chip, rows.padded, s->k, tile_n) / rate;
    const double bytes = n_tiles * (double)s->m * depth * adv_format_bytes(s->lhs) +
                         rows.nonempty * depth * width * adv_format_bytes(s->rhs) +
                         (double)s->m * width * adv_format_bytes(s->out);
    double tail_s = 0.0; /* a contraction that 128 does not divide is masked on both sides */
    if (s->k % 128)
        tail_s = n_tiles * (rows.padded + rows.tiles * tile_n) * depth / 1024.0 * k->gmm_tail_vreg_s;
    const double compute_s = mxu_s + tail_s;
    const double dma_s = bytes / (k->gmm2_hbm_frac * adv_core_hbm_bytes_per_s(chip));
    const double steps = n_tiles * rows.tiles, steps_s = steps * k->gmm2_step_s;
    const double exposed_s =
        adv_max(0.0, dma_s - compute_s) + k->gmm2_overlap_frac * adv_min(dma_s, compute_s);
    *time = (struct adv_kernel_time){
        .mxu_busy_s = mxu_s, .hbm_bytes = bytes, .grid_steps = steps, .vmem_bytes = vmem};
    time->time_s = compute_s + exposed_s + steps_s + k->gmm_launch_s;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : ADV_RES_MXU;
    if (steps_s > adv_max(dma_s, compute_s)) time->bound = ADV_RES_LATENCY;
    adv_kernel_part_add(time, "mxu", mxu_s);
    adv_kernel_part_add(time, "contraction_tail", tail_s);
    adv_kernel_part_add(time, "dma_exposed", exposed_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
    adv_kernel_part_add(time, "launch", k->gmm_launch_s);
}
