#include "engine/kernel/core.h"
#include "engine/kernel/gmm_visits.h"

/* Three lowerings are seen in the timings, each on its own generations: the one of spring 2026 (v5e, tpu7x,
 * and v5p with transposed weights), a later one of August 2026 (v6e: LATE_), and none (v5p otherwise:
 * DENSE_). */
enum {
    ROWS_LEAST = 16,
    COLUMNS_MOST = 2048,
    COLUMNS_LEAST = 128,
    COLUMNS_MISALIGNED = 256,
    GRADIENT_COLUMNS_MOST = 1024,
    LATE_ROWS = 512,
    LATE_GRADIENT_MOST = 2048,
    DENSE_COLUMNS_OF_CORE = 256,
    DENSE_GRADIENT_COLUMNS_OF_CORE = 1024,
    VREG = 1024
};

/* The share of the scoped VMEM that a tile's windows may take. Read off the timings, where the bytes moved
 * show the tiles: the largest ones chosen fill 72 %, the smallest ones passed over 75 %. */
#define WINDOWS_OF_SCOPED_VMEM_FRAC 0.74

/* Elements of weights (or of their gradient) in one tile at most, where a count and not VMEM bounds them. */
#define LATE_ELEMENTS_OF_TILE            (1 << 21)
#define LATE_ELEMENTS_OF_TRANSPOSED_TILE (1 << 22)
#define DENSE_ELEMENTS_OF_TILE           (1 << 21)

/* A result that leaves in f32: 4 bytes an element written by the kernel, 4 read and 2 written behind it. */
#define WIDE_BYTES    4.0
#define CONVERT_BYTES 6.0

/* One-byte operands are expanded first. Weights: read, written in bf16, read, scaled and written; rows the
 * same by way of f32. */
#define EXPAND_WEIGHT_BYTES 7.0
#define EXPAND_ROW_BYTES    11.0

struct work {
    double mxu_s, vector_s;
    double bytes;        /* the kernel's own, overlapped with its compute */
    double around_bytes; /* copies before and behind it */
    double overlap_frac; /* of the shorter of compute and DMA, not hidden */
    double imbalance;    /* time over that of evenly shared work, where the cores do not share it evenly */
};

struct tiles {
    double visits, visited_rows, loaded_rows, nonempty;
};

static bool is_late(const struct adv_kernel_machine *machine)
{
    return machine->constants->gmm_xla_late > 0.5;
}

static double device_flops_per_s(const struct adv_chip *chip)
{
    return adv_core_count(chip) * adv_core_peak_flops_per_s(chip);
}

static double windows_bytes(const struct adv_kernel_machine *machine)
{
    return WINDOWS_OF_SCOPED_VMEM_FRAC * machine->chip->vmem_scoped_default_bytes;
}

/* Both operands and the result, each moved once. */
static double least_bytes(const struct adv_gmm_shape *shape)
{
    return 2.0 * (double)shape->m * (double)(shape->k + shape->n) +
           2.0 * (double)shape->num_groups * (double)shape->k * (double)shape->n;
}

/* Row tiles as tall as the array (taller later), fewer rows in one tile of their own. */
static struct tiles tiles_of(const struct adv_gmm_shape *shape, int64_t tallest)
{
    struct adv_gmm_visits v;
    const int64_t tile_m = adv_min_i(tallest, adv_round_up(shape->m, ROWS_LEAST));
    adv_gmm_count_visits(shape, tile_m, &v);
    return (struct tiles){.visits = v.visits,
                          .visited_rows = v.visits * (double)tile_m,
                          .loaded_rows = v.m_tiles * (double)tile_m,
                          .nonempty = v.nonempty};
}

/* Halves columns of `each` (bytes or elements) until they are within `most`. */
static int64_t halve_to_fit(int64_t columns, double each, double most)
{
    while (columns > COLUMNS_LEAST && (double)columns * each > most) columns /= 2;
    return columns;
}

/* The largest power of two that divides the columns, within the bounds. */
static int64_t dividing_columns(int64_t n, int64_t most)
{
    return adv_min_i(most, adv_max_i(n & -n, COLUMNS_LEAST));
}

static bool is_misaligned(const struct adv_gmm_shape *shape)
{
    return shape->n % COLUMNS_LEAST != 0;
}

/* Columns of one step. Rows and weights are held k deep and twice (4 bytes an element), the output twice in
 * bf16 and three times in f32 (16 bytes; our reading of product, sums, and what the mask keeps). Where lanes
 * are left over, few. */
static int64_t columns_of(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape)
{
    if (is_misaligned(shape))
        return is_late(machine) && !shape->rhs_transposed ? COLUMNS_LEAST : COLUMNS_MISALIGNED;
    if (is_late(machine))
        return halve_to_fit(COLUMNS_MOST, (double)shape->k,
                            shape->rhs_transposed ? LATE_ELEMENTS_OF_TRANSPOSED_TILE : LATE_ELEMENTS_OF_TILE);
    const double k = (double)shape->k, rows = (double)machine->chip->mxu_rows;
    return halve_to_fit(dividing_columns(shape->n, COLUMNS_MOST), 4.0 * k + 16.0 * rows,
                        windows_bytes(machine) - 4.0 * rows * k);
}

/* Columns of one step where every row meets every group. */
static int64_t dense_columns_of(const struct adv_gmm_shape *shape)
{
    if (is_misaligned(shape)) return COLUMNS_MISALIGNED;
    return halve_to_fit(dividing_columns(shape->n, COLUMNS_MOST), (double)shape->k, DENSE_ELEMENTS_OF_TILE);
}

/* Time over that of perfectly shared work, when the cores share the columns in whole tiles of 256. */
static double dense_imbalance(const struct adv_chip *chip, int64_t n)
{
    const double tiles = (double)adv_div_up(n, DENSE_COLUMNS_OF_CORE), cores = adv_core_count(chip);
    return ceil(tiles / cores) * cores / tiles;
}

/* No lowering of its own: every row meets every group's weights, is read for it once per tile of columns, and
 * adds to its output in HBM (read and written in bf16). Nothing of that traffic is hidden. */
static struct work dense_work(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape)
{
    const double rows = (double)shape->m * (double)shape->num_groups;
    const double k = (double)shape->k, n = (double)shape->n;
    const double row_reads = (double)adv_div_up(shape->n, dense_columns_of(shape));
    struct work w = {.overlap_frac = 1.0, .imbalance = dense_imbalance(machine->chip, shape->n)};
    w.mxu_s = w.imbalance * adv_core_padded_flops(machine->chip, rows, shape->k, shape->n) /
              (machine->constants->gmm_xla_dense_frac * device_flops_per_s(machine->chip));
    w.bytes = least_bytes(shape) + rows * (2.0 * k * row_reads + 4.0 * n);
    return w;
}

/* The dense gradient: a second core works only where there is more than one tile of 1024 columns. */
static struct work dense_gradient_work(const struct adv_kernel_machine *machine,
                                       const struct adv_gmm_shape *shape)
{
    const double rows = (double)shape->m * (double)shape->num_groups;
    const double cores = shape->n > DENSE_GRADIENT_COLUMNS_OF_CORE ? adv_core_count(machine->chip) : 1.0;
    const double rate =
        cores * machine->constants->gmm_xla_dense_frac * adv_core_peak_flops_per_s(machine->chip);
    return (struct work){.overlap_frac = machine->constants->gmm_xla_overlap_frac,
                         .imbalance = 1.0,
                         .bytes = least_bytes(shape),
                         .mxu_s = adv_core_padded_flops(machine->chip, rows, shape->k, shape->n) / rate};
}

/* Row tiles are loaded once, and again for every tile of columns; they are visited once per group they touch,
 * and every visit stores its output under a mask. Weights that are transposed, or whose columns leave lanes
 * over, are copied first. The output leaves in f32 (the reported peak memory holds it), but for the later
 * lowering where nothing is copied. On its way it costs time only there: earlier it is hidden.
 */
static struct work gmm_work(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape)
{
    const struct adv_constants *c = machine->constants;
    const double k = (double)shape->k, n = (double)shape->n;
    const bool late = is_late(machine), copied = shape->rhs_transposed || is_misaligned(shape);
    const struct tiles t = tiles_of(shape, late ? LATE_ROWS : (int64_t)machine->chip->mxu_rows);
    struct work w = {.overlap_frac = c->gmm_xla_overlap_frac, .imbalance = 1.0};
    w.mxu_s = adv_core_padded_flops(machine->chip, t.visited_rows, shape->k, shape->n) /
              (c->gmm_xla_frac * device_flops_per_s(machine->chip));
    w.vector_s = t.visited_rows * n / VREG * c->gmm_xla_out_vreg_s;
    w.bytes = t.loaded_rows * 2.0 * k * (double)adv_div_up(shape->n, columns_of(machine, shape)) +
              t.loaded_rows * (late && copied ? WIDE_BYTES : 2.0) * n + 2.0 * t.nonempty * k * n;
    if (copied) w.around_bytes = c->gmm_xla_copy_factor * 4.0 * (double)shape->num_groups * k * n;
    if (copied || !late) w.around_bytes += CONVERT_BYTES * (double)shape->m * n;
    return w;
}

/* The tile of a gradient, tall x columns: all of k, and columns for whose accumulator and output (f32, once
 * and twice: 12 bytes) there is room beside the rows. Later, any sizes within a number of elements. */
static void gradient_tile(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape,
                          int64_t *tall, int64_t *columns)
{
    const double k = (double)shape->k, rows = (double)machine->chip->mxu_rows;
    *tall = is_late(machine) ? adv_min_i(shape->k, LATE_GRADIENT_MOST) : shape->k;
    *columns =
        is_late(machine)
            ? halve_to_fit(adv_min_i(shape->n, LATE_GRADIENT_MOST), (double)*tall, LATE_ELEMENTS_OF_TILE)
            : halve_to_fit(dividing_columns(shape->n, GRADIENT_COLUMNS_MOST), 12.0 * k + 4.0 * rows,
                           windows_bytes(machine) - 4.0 * rows * k);
}

/* The gradient of the weights: both operands are read again for every tile of the other, every visit adds to
 * the accumulator, every group's result is stored, an empty one's too: in f32 and converted behind, later in
 * bf16. */
static struct work tgmm_work(const struct adv_kernel_machine *machine, const struct adv_gmm_shape *shape)
{
    const struct adv_constants *c = machine->constants;
    const double k = (double)shape->k, n = (double)shape->n;
    const struct tiles t = tiles_of(shape, (int64_t)machine->chip->mxu_rows);
    int64_t tall, columns;
    gradient_tile(machine, shape, &tall, &columns);
    struct work w = {.overlap_frac = c->gmm_xla_overlap_frac, .imbalance = 1.0};
    w.mxu_s = adv_core_padded_flops(machine->chip, t.visited_rows, shape->k, shape->n) /
              device_flops_per_s(machine->chip);
    w.vector_s = t.visits * k * n / VREG * c->tgmm_xla_accumulate_vreg_s;
    w.bytes = 2.0 * t.visited_rows *
              (k * (double)adv_div_up(shape->n, columns) + n * (double)adv_div_up(shape->k, tall));
    w.around_bytes =
        (double)shape->num_groups * k * n * (is_late(machine) ? 2.0 : WIDE_BYTES + CONVERT_BYTES);
    return w;
}

static bool is_one_byte(enum adv_format format)
{
    return format == ADV_FORMAT_FP8 || format == ADV_FORMAT_INT8;
}

/* Bytes moved to bring quantised operands to bf16. */
static double expand_bytes(const struct adv_gmm_shape *shape)
{
    const double row_elements = (double)shape->m * (double)shape->k;
    const double weights = (double)shape->num_groups * (double)shape->k * (double)shape->n;
    return (is_one_byte(shape->lhs) ? EXPAND_ROW_BYTES * row_elements : 0.0) +
           (is_one_byte(shape->rhs) ? EXPAND_WEIGHT_BYTES * weights : 0.0);
}

/* On megacore chips there is a lowering for groups only where the weights are transposed. */
static struct work work_of(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                           const struct adv_gmm_shape *shape)
{
    const bool gradient = kernel == ADV_KERNEL_TGMM;
    const bool dense = machine->constants->gmm_xla_dense > 0.5 && (gradient || !shape->rhs_transposed);
    struct work w;
    if (dense)
        w = gradient ? dense_gradient_work(machine, shape) : dense_work(machine, shape);
    else
        w = gradient ? tgmm_work(machine, shape) : gmm_work(machine, shape);
    w.around_bytes += expand_bytes(shape);
    return w;
}

adv_code adv_gmm_xla_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                          const struct adv_gmm_shape *shape, struct adv_kernel_time *time, adv_err *err)
{
    if (shape->m < 1 || shape->k < 1 || shape->n < 1 || shape->num_groups < 1)
        return adv_err_add(err, ADV_E_RANGE, "/shape", "positive sizes",
                           "a size of the grouped matmul is not positive");
    const struct adv_chip *chip = machine->chip;
    const double bw = chip->hbm_achieved_frac * adv_core_hbm_bytes_per_s(chip);
    const struct work w = work_of(machine, kernel, shape);
    const double compute_s = w.mxu_s + w.vector_s, dma_s = w.imbalance * w.bytes / bw,
                 around_s = w.around_bytes / bw;
    const double exposed_s = adv_max(0.0, dma_s - compute_s) + w.overlap_frac * adv_min(dma_s, compute_s);
    const double launch_s = machine->constants->matmul_launch_s;
    *time = (struct adv_kernel_time){
        .mxu_busy_s = w.mxu_s, .hbm_bytes = w.bytes + w.around_bytes, .fits_vmem = true};
    time->vmem_limit_bytes = adv_core_vmem_limit_bytes(machine);
    time->time_s = compute_s + exposed_s + around_s + launch_s;
    time->bound = dma_s + around_s > compute_s ? ADV_RES_HBM
                  : w.vector_s > w.mxu_s       ? ADV_RES_VPU
                                               : ADV_RES_MXU;
    time->extrapolated = machine->constants->gmm_measured < 0.5;
    adv_kernel_part_add(time, "mxu", w.mxu_s);
    adv_kernel_part_add(time, "vector", w.vector_s);
    adv_kernel_part_add(time, "dma_exposed", exposed_s);
    adv_kernel_part_add(time, "copies", around_s);
    adv_kernel_part_add(time, "launch", launch_s);
    if (shape->return_residuals && kernel == ADV_KERNEL_GMM) {
        const double copied = 4.0 * (double)shape->m * (double)shape->n;
        const double copy_s = adv_stream_time_s(machine, copied);
        adv_kernel_part_add(time, "residual_copy", copy_s);
        time->time_s += copy_s;
        time->hbm_bytes += copied;
    }
    return ADV_OK;
}
