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
    const double limit = adv_gmm_v2_limit_bytes(machine);
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

/* The whole grid (column tiles, groups, row tiles of a group). */
struct work {
    struct adv_gmm_rows rows;
    int tile_m, tile_n;
    double vmem_bytes, n_tiles, steps;
    double mxu_s, tail_s, reload_s, exposed_s;
    double row_bytes, weight_bytes, bytes_per_s;
};

static struct work work_of(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s)
{
    const struct adv_constants *k = machine->constants;
    const struct adv_chip *chip = machine->chip;
    struct work w = {.bytes_per_s = k->gmm2_hbm_frac * adv_core_hbm_bytes_per_s(chip)};
    w.vmem_bytes = adv_gmm_v2_tiles(machine, s, &w.tile_m, &w.tile_n);
    adv_gmm_count_rows(s, BUCKET, w.tile_m, &w.rows);
    const double depth = (double)s->k, width = (double)s->n;
    w.n_tiles = (double)adv_div_up(s->n, w.tile_n);
    w.steps = w.n_tiles * w.rows.tiles;
    const double rate =
        k->gmm2_mxu_frac * adv_core_peak_flops_per_s(chip) * adv_core_rate_factor(chip, s->lhs, s->rhs);
    w.mxu_s = w.n_tiles * adv_core_padded_flops(chip, w.rows.padded, s->k, w.tile_n) / rate;
    if (s->k % 128) /* a contraction that 128 does not divide is masked on both sides */
        w.tail_s =
            w.n_tiles * (w.rows.padded + w.rows.tiles * w.tile_n) * depth / 1024.0 * k->gmm_tail_vreg_s;
    const double beyond = adv_max(0.0, (double)w.tile_m * depth * w.tile_n - k->gmm2_imem_macs);
    w.reload_s = w.steps * beyond * k->gmm2_imem_mac_s;
    w.row_bytes = w.n_tiles * (double)s->m * depth * adv_format_bytes(s->lhs) +
                  (double)s->m * width * adv_format_bytes(s->out);
    w.weight_bytes = w.rows.nonempty * depth * width * adv_format_bytes(s->rhs);
    w.exposed_s = exposed(k, w.mxu_s + w.tail_s + w.reload_s, w.row_bytes / w.bytes_per_s,
                          w.weight_bytes / w.bytes_per_s, w.steps, w.n_tiles * w.rows.nonempty);
    return w;
}

void adv_gmm_v2(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s,
                struct adv_kernel_time *time)
{
    const struct adv_constants *k = machine->constants;
    const struct work w = work_of(machine, s);
    const double steps_s = w.steps * k->gmm2_step_s, compute_s = w.mxu_s + w.tail_s + w.reload_s;
    *time = (struct adv_kernel_time){.mxu_busy_s = w.mxu_s,
                                     .hbm_bytes = w.row_bytes + w.weight_bytes,
                                     .grid_steps = w.steps,
                                     .vmem_bytes = w.vmem_bytes};
    time->time_s = compute_s + w.exposed_s + steps_s + k->matmul_launch_s;
    const double dma_s = time->hbm_bytes / w.bytes_per_s;
    time->bound = dma_s > compute_s ? ADV_RES_HBM : ADV_RES_MXU;
    if (steps_s > adv_max(dma_s, compute_s)) time->bound = ADV_RES_LATENCY;
    adv_kernel_part_add(time, "mxu", w.mxu_s);
    adv_kernel_part_add(time, "contraction_tail", w.tail_s);
    adv_kernel_part_add(time, "code_reload", w.reload_s);
    adv_kernel_part_add(time, "dma_exposed", w.exposed_s);
    adv_kernel_part_add(time, "grid_steps", steps_s);
    adv_kernel_part_add(time, "launch", k->matmul_launch_s);
}

void adv_gmm_v2_unit_of(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *s,
                        struct adv_gmm_v2_unit *unit)
{
    const struct work w = work_of(machine, s);
    const double depth = (double)s->k, out = (double)s->n * adv_format_bytes(s->out) / w.n_tiles;
    *unit = (struct adv_gmm_v2_unit){
        .n_tiles = (int64_t)w.n_tiles,
        .tile_m = w.tile_m,
        .bucket = BUCKET,
        .row_mxu_s = w.mxu_s / w.n_tiles / w.rows.padded,
        .tail_rows = w.tile_n,
        .row_tail_s = w.tail_s / w.n_tiles / (w.rows.padded + w.rows.tiles * w.tile_n),
        .step_s = machine->constants->gmm2_step_s + w.reload_s / w.steps,
        .row_in_s = depth * adv_format_bytes(s->lhs) / w.bytes_per_s,
        .row_out_s = out / w.bytes_per_s,
        .weight_s = w.weight_bytes / (w.n_tiles * w.rows.nonempty) / w.bytes_per_s,
        .dma_s = (w.row_bytes + w.weight_bytes) / w.bytes_per_s,
        .exposed_s = w.exposed_s,
    };
}
