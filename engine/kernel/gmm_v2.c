#include "engine/kernel/core.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/gmm_v2.h"

enum { BUCKET = 128, BUCKETS_MAX = 4, AHEAD = 2 };

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
    int buckets = BUCKETS_MAX;
    int64_t n = adv_round_up(s->n, 128);
    for (int64_t parts = 2; n > least && vmem_bytes(s, (double)buckets * BUCKET, (double)n) > limit; parts++)
        n = adv_max_i(adv_min_i(n, least), adv_round_up(adv_div_up(s->n, parts), 128));
    while (buckets > 1 && vmem_bytes(s, (double)buckets * BUCKET, (double)n) > limit) buckets--;
    *tile_m = buckets * BUCKET;
    *tile_n = (int)n;
    return vmem_bytes(s, *tile_m, (double)n);
}

/* Seconds of DMA that do not hide behind `compute_s` of steps. Rows come and go at every step; the weights of
 * a group are asked for AHEAD steps before its first one, and have what the rows leave of those. */
static double exposed(const struct adv_constants *k, double compute_s, double row_s, double weight_s,
                      double steps, double groups)
{
    const double longer_s = adv_max(compute_s, row_s);
    const double free_s = (longer_s - row_s) / steps + k->gmm2_step_s;
    const double late_s = weight_s / groups - adv_min((double)AHEAD, steps / groups) * free_s;
    return longer_s - compute_s + k->gmm2_overlap_frac * adv_min(row_s, compute_s) +
           groups * adv_max(0.0, late_s);
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
    const double steps = n_tiles * rows.tiles, steps_s = steps * k->gmm2_step_s;
    const double rate =
        k->gmm2_mxu_frac * adv_core_peak_flops_per_s(chip) * adv_core_rate_factor(chip, s->lhs, s->rhs);
    const double mxu_s = n_tiles * adv_core_padded_flops(chip, rows.padded, s->k, tile_n) / rate;
    double tail_s = 0.0; /* a contraction that 128 does not divide is masked on both sides */
    if (s->k % 128)
        tail_s = n_tiles * (rows.padded + rows.tiles * tile_n) * depth / 1024.0 * k->gmm_tail_vreg_s;
    const double beyond = adv_max(0.0, (double)tile_m * depth * tile_n - k->gmm2_imem_macs);
    const double reload_s = steps * beyond * k->gmm2_imem_mac_s, compute_s = mxu_s + tail_s + reload_s;
    const double row_bytes = n_tiles * (double)s->m * depth * adv_format_bytes(s->lhs) +
                             (double)s->m * width * adv_format_bytes(s->out);
    const double weight_bytes = rows.nonempty * depth * width * adv_format_bytes(s->rhs);
    const double bw = k->gmm2_hbm_frac * adv_core_hbm_bytes_per_s(chip);
    const double exposed_s =
        exposed(k, compute_s, row_bytes / bw, weight_bytes / bw, steps, n_tiles * rows.nonempty);
    *time = (struct adv_kernel_time){
        .mxu_busy_s = mxu_s, .hbm_bytes = row_bytes + weight_bytes, .grid_steps = steps, .vmem_bytes = vmem};
    time->time_s = compute_s + exposed_s + steps_s + k->matmul_launch_s;
    const double dma_s = time->hbm_bytes / bw;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : ADV_RES_MXU;
    if (steps_s > adv_max(dma_s, compute_s)) time->bound = ADV_RES_LATENCY;
    adv_kernel_part_add(time, "mxu", mxu_s);
    adv_kernel_part_add(time, "contraction_tail", tail_s);
    adv_kernel_part_add(time, "code_reload", reload_s);
    adv_kernel_part_add(time, "dma_exposed", exposed_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
    adv_kernel_part_add(time, "launch", k->matmul_launch_s);
}
