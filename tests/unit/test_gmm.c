#include "tests/unit/check.h"

#include "engine/kernel/gmm_v2.h"
#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/short_list.h"
#include "tests/unit/kernel_machine.h"
#include "tests/unit/tuned.h"

static struct adv_gmm_shape shape_of(int64_t m, int64_t k, int64_t n, int groups,
                                     enum adv_group_distribution distribution)
{
    return (struct adv_gmm_shape){.m = m,
                                  .k = k,
                                  .n = n,
                                  .num_groups = groups,
                                  .distribution = distribution,
                                  .lhs = ADV_FORMAT_BF16,
                                  .rhs = ADV_FORMAT_BF16,
                                  .out = ADV_FORMAT_BF16,
                                  .version = 1};
}

/* Groups of 100, 0, 156, 256 rows, tiles of 128: rows 0..99 touch tile 0; 100..255 tiles 0 and 1; 256..511
 * tiles 2, 3. */
static void shared_tiles_are_visited_once_per_group(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 0, 156, 256};
    struct adv_gmm_shape shape = shape_of(512, 128, 128, 4, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(&shape, 128, &visits);
    assert_close(visits.visits, 5.0, 0.0);
    assert_close(visits.m_tiles, 4.0, 0.0);
    assert_close(visits.nonempty, 3.0, 0.0);
    assert_close(visits.empty, 1.0, 0.0);
}

/* 6 groups of 64 rows, tiles of 128: boundaries at 64, 192, 320 lie inside tiles, 128 and 256 on edges: 3 + 3
 * visits. */
static void balanced_groups_meet_tile_edges_exactly(void **state)
{
    (void)state;
    const struct adv_gmm_shape shape = shape_of(384, 128, 128, 6, ADV_GROUPS_BALANCED);
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(&shape, 128, &visits);
    assert_close(visits.visits, 6.0, 0.0);
    assert_close(visits.nonempty, 6.0, 0.0);
}

/* xorshift64* */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717)) >> 32;
}

/* The closed form for uniform multinomial groups is the mean over drawn samples. */
static void multinomial_visits_match_the_mean_of_samples(void **state)
{
    (void)state;
    enum { GROUPS = 64, ROWS = 8192, SAMPLES = 200 };
    const int tiles[] = {64, 128, 512};
    uint64_t random = 7;
    for (int t = 0; t < 3; t++) {
        double sum = 0.0;
        for (int s = 0; s < SAMPLES; s++) {
            int64_t sizes[GROUPS] = {0};
            for (int r = 0; r < ROWS; r++) sizes[next_random(&random) % GROUPS]++;
            struct adv_gmm_shape given = shape_of(ROWS, 128, 128, GROUPS, ADV_GROUPS_GIVEN);
            given.group_sizes = sizes;
            struct adv_gmm_visits visits;
            adv_gmm_count_visits(&given, tiles[t], &visits);
            sum += visits.visits;
        }
        const struct adv_gmm_shape shape = shape_of(ROWS, 128, 128, GROUPS, ADV_GROUPS_MULTINOMIAL);
        struct adv_gmm_visits expected;
        adv_gmm_count_visits(&shape, tiles[t], &expected);
        assert_close(expected.visits, sum / SAMPLES, 0.004);
    }
}

/* 8 rows into 8 groups leave (1 - 1/8)^8 = 34.4 % of the groups empty. */
static void few_rows_leave_groups_empty(void **state)
{
    (void)state;
    const struct adv_gmm_shape shape = shape_of(8, 128, 128, 8, ADV_GROUPS_MULTINOMIAL);
    struct adv_gmm_visits visits;
    adv_gmm_count_visits(&shape, 8, &visits);
    assert_close(visits.empty, 8.0 * pow(7.0 / 8.0, 8.0), 1e-12);
}

/* No distribution is visited more often than the worst case. */
static void worst_case_bounds_the_others(void **state)
{
    (void)state;
    const enum adv_group_distribution others[] = {ADV_GROUPS_BALANCED, ADV_GROUPS_MULTINOMIAL,
                                                  ADV_GROUPS_ZIPF};
    struct adv_gmm_visits worst, other;
    struct adv_gmm_shape shape = shape_of(65536, 128, 128, 256, ADV_GROUPS_WORST);
    adv_gmm_count_visits(&shape, 512, &worst);
    assert_close(worst.visits, 128.0 + 255.0, 0.0);
    for (int i = 0; i < 3; i++) {
        shape.distribution = others[i];
        adv_gmm_count_visits(&shape, 512, &other);
        assert_true(other.visits <= worst.visits);
    }
}

/* Two groups of 256 rows, k = n = 512, one k and one n tile, rows in tiles of 256: 2 visits, both enter a
 * group. compute  2 * 256*512*512 / 1e12                            = 134.2 us per step DMA      256*512*2
 * (lhs) + 512*512*2 (weights) + 256*512*2 (out) = 1 MiB -> 1.05 us, hidden steps 2 * 500 ns, launch 10 us. */
static void compute_bound_time_adds_up_by_hand(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.gmm_step_s = 500e-9;
    bench.constants.gmm_launch_s = 10e-6;
    const struct adv_gmm_shape shape = shape_of(512, 512, 512, 2, ADV_GROUPS_BALANCED);
    const struct adv_gmm_tile tile = {256, 512, 512, 2};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &time, &err), ADV_OK);
    assert_close(time.time_s, 2.0 * (2.0 * 256.0 * 512.0 * 512.0 / 1e12) + 1e-6 + 10e-6, 1e-12);
    assert_close(time.hbm_bytes, 2.0 * 1024.0 * 1024.0, 1e-12);
    assert_close(time.grid_steps, 2.0, 0.0);
    assert_close(kernel_parts_sum(&time), time.time_s, 1e-12);
}

/* Blocks are fetched one step ahead. 4 row tiles of 128 per group, 2 groups; weights of 512 x 4096 are 4 MiB
 * = 4.19 us on 1e12 B/s, while a row tile computes for 0.54 us on 1e15 FLOP/s: each group waits 4.19 - 0.54
 * us more than the mean of bytes would say. */
static void weights_of_a_new_group_are_waited_for(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e15;
    struct adv_gmm_shape shape = shape_of(1024, 512, 4096, 2, ADV_GROUPS_BALANCED);
    const struct adv_gmm_tile tile = {128, 512, 4096, 2};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &time, &err), ADV_OK);
    const double compute = 2.0 * 128.0 * 512.0 * 4096.0 / 1e15;
    const double lhs = 128.0 * 512.0 * 2.0 / 1e12, out = 128.0 * 4096.0 * 2.0 / 1e12,
                 weights = 512.0 * 4096.0 * 2.0 / 1e12;
    const double inside = compute > lhs + out ? compute : lhs + out;
    assert_close(time.time_s, 6.0 * inside + 2.0 * (lhs + out + weights), 1e-12);
    assert_close(time.hbm_bytes, 1e12 * (8.0 * (lhs + out) + 2.0 * weights), 1e-12);
}

/* 300 contraction columns with tiles of 128: three tiles, the array computes 384, DMA moves 300. */
static void padding_is_computed_but_not_moved(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_gmm_shape shape = shape_of(128, 300, 128, 1, ADV_GROUPS_BALANCED);
    const struct adv_gmm_tile tile = {128, 128, 128, 2};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &time, &err), ADV_OK);
    assert_close(time.mxu_busy_s, 2.0 * 128.0 * 384.0 * 128.0 / 1e12, 1e-12);
    assert_close(time.hbm_bytes, 2.0 * (128.0 * 300.0 + 300.0 * 128.0 + 128.0 * 128.0), 1e-12);
}

/* Only a format that the array has natively on both sides is faster. */
static void fp8_is_twice_as_fast_only_where_native(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_gmm_shape shape = shape_of(512, 512, 512, 1, ADV_GROUPS_BALANCED);
    const struct adv_gmm_tile tile = {512, 512, 512, 2};
    struct adv_kernel_time bf16, fp8, mixed, int8;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &bf16, &err), ADV_OK);
    shape.lhs = ADV_FORMAT_FP8;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &mixed, &err), ADV_OK);
    shape.rhs = ADV_FORMAT_FP8;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &fp8, &err), ADV_OK);
    shape.lhs = shape.rhs = ADV_FORMAT_INT8;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &int8, &err), ADV_OK);
    assert_close(fp8.mxu_busy_s, bf16.mxu_busy_s / 2.0, 1e-12);
    assert_close(mixed.mxu_busy_s, bf16.mxu_busy_s, 1e-12);
    assert_close(int8.mxu_busy_s, bf16.mxu_busy_s, 1e-12);
}

/* tgmm, 4 groups of which 3 are empty: 2 row tiles, 3 more steps that write zeros; every group's tile is
 * written. */
static void empty_groups_still_write_zeros(void **state)
{
    (void)state;
    const int64_t sizes[] = {0, 256, 0, 0};
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_gmm_shape shape = shape_of(256, 128, 256, 4, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    const struct adv_gmm_tile tile = {128, 128, 256, 2};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_TGMM, &shape, &tile, &time, &err), ADV_OK);
    assert_close(time.grid_steps, 5.0, 0.0);
    assert_close(time.hbm_bytes, 2.0 * (256.0 * (128.0 + 256.0) + 4.0 * 128.0 * 256.0), 1e-12);
}

/* Groups of 100 and 300 rows in buckets of 128: 128 + 384 rows, 1 + 1 tiles of 512; nothing is shared. */
static void version_2_pads_groups_to_buckets(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 300};
    struct adv_gmm_shape shape = shape_of(400, 512, 512, 2, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    shape.version = 2;
    struct adv_gmm_rows rows;
    adv_gmm_count_rows(&shape, 128, 512, &rows);
    assert_close(rows.padded, 512.0, 0.0);
    assert_close(rows.tiles, 2.0, 0.0);
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, NULL, &time, &err), ADV_OK);
    assert_close(time.mxu_busy_s, 2.0 * 512.0 * 512.0 * 512.0 / 1e12, 1e-12);
    assert_true(time.fits_vmem);
}

/* Nothing is known of version 2's transposed product: no time is made up for it, with a tile or without. */
static void version_2_has_no_transposed_product(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_gmm_shape shape = shape_of(4096, 512, 512, 2, ADV_GROUPS_BALANCED);
    shape.version = 2;
    struct adv_gmm_tile tile = {128, 128, 128, 2};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_TGMM, &shape, NULL, &time, &err),
                     ADV_E_UNSUPPORTED);
    assert_string_equal(err.findings[0].pointer, "/shape/version");
    int found_count = 0;
    long evaluated_count = 0;
    assert_int_equal(tune_gmm(&bench.machine, ADV_KERNEL_TGMM, &shape, 1, &tile, &time, &found_count,
                              &evaluated_count, &err),
                     ADV_E_UNSUPPORTED);
}

/* k = 4096, n = 8192: a quarter of the columns would need 48 + 8 + 4 + 4 MiB beside four buckets, 0.9 of 64
 * MiB are 57.6; a fifth, 1664 columns, needs 39 + 8 + 3.25 + 3.25. */
static void version_2_cuts_columns_until_four_buckets_fit(void **state)
{
    (void)state;
    const struct adv_gmm_shape shape = shape_of(4096, 4096, 8192, 4, ADV_GROUPS_BALANCED);
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    int tile_m = 0, tile_n = 0;
    const double bytes = adv_gmm_v2_tiles(&bench.machine, &shape, &tile_m, &tile_n);
    assert_int_equal(tile_m, 512);
    assert_int_equal(tile_n, 1664);
    assert_close(bytes, 53.5 * 1048576.0, 0.0);
}

/* Two groups of two row tiles: nothing is waited for when the weights come in while two of them compute. A
 * body past the instruction memory is loaded at each of the four. */
static void version_2_waits_for_large_weights_and_reloads_large_bodies(void **state)
{
    (void)state;
    const struct adv_gmm_shape shape = {.m = 2048,
                                        .k = 512,
                                        .n = 512,
                                        .num_groups = 2,
                                        .distribution = ADV_GROUPS_BALANCED,
                                        .lhs = ADV_FORMAT_BF16,
                                        .rhs = ADV_FORMAT_BF16,
                                        .out = ADV_FORMAT_BF16,
                                        .version = 2};
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_kernel_time time;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, NULL, &time, NULL), ADV_OK);
    assert_close(kernel_part(&time, "dma_exposed"), 0.0, 0.0);
    assert_close(kernel_part(&time, "code_reload"), 0.0, 0.0);
    bench.chip.peak_bf16_flops_per_s_per_chip =
        1e15; /* now rows take longer than compute and leave nothing */
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, NULL, &time, NULL), ADV_OK);
    const double compute_s = 2.0 * 2048.0 * 512.0 * 512.0 / 1e15, rows_s = 2048.0 * 1024.0 * 2.0 / 1e12;
    assert_close(kernel_part(&time, "dma_exposed"), rows_s - compute_s + 2.0 * 512.0 * 512.0 * 2.0 / 1e12,
                 1e-12);
    bench.constants.gmm2_imem_macs = 512.0 * 512.0 * 256.0;
    bench.constants.gmm2_imem_mac_s = 1e-15;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, NULL, &time, NULL), ADV_OK);
    assert_close(kernel_part(&time, "code_reload"), 4.0 * 512.0 * 512.0 * 256.0 * 1e-15, 1e-12);
}

/* tGMM, rows 0..99 and 100..255 of two groups, tile 128: three visits, two row tiles. With two buffers the
 * shared visit has only its output to move and the others wait; with three the rows spread and all three
 * hide. */
static void deep_buffers_spread_rows_over_shared_visits(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 156};
    struct adv_gmm_shape shape = shape_of(256, 128, 128, 2, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const double out = 2.0 / 3.0 * 128.0 * 128.0 * 2.0, in = 128.0 * 256.0 * 2.0;
    bench.chip
        .peak_bf16_flops_per_s_per_chip = /* a visit computes for as long as the mean of its bytes moves */
        2.0 * 128.0 * 128.0 * 128.0 * 1e12 / (in * 2.0 / 3.0 + out);
    struct adv_gmm_tile tile = {128, 128, 128, 2};
    struct adv_kernel_time two, three;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_TGMM, &shape, &tile, &two, NULL), ADV_OK);
    tile.input_buffer_count = 3;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_TGMM, &shape, &tile, &three, NULL), ADV_OK);
    assert_close(two.hbm_bytes, three.hbm_bytes, 1e-12);
    assert_close(kernel_part(&two, "dma_exposed"), 2.0 * in / 3.0 / 1e12, 1e-9);
    assert_true(kernel_part(&three, "dma_exposed") < 1e-15);
}

/* Groups of 100 and 156 rows in one tile of 256: two visits, two tiles' worth of products; where a further
 * group pays for at most 64 rows, one and a quarter. Vector work and steps stay. */
static void a_shared_row_tile_is_computed_again_in_part(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 156};
    struct adv_gmm_shape shape = shape_of(256, 256, 128, 2, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_gmm_tile tile = {256, 256, 128, 2};
    struct adv_kernel_time whole, part;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_TGMM, &shape, &tile, &whole, NULL), ADV_OK);
    bench.constants.tgmm_shared_rows = 64.0;
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_TGMM, &shape, &tile, &part, NULL), ADV_OK);
    assert_close(whole.mxu_busy_s, 2.0 * 2.0 * 256.0 * 256.0 * 128.0 / 1e12, 1e-12);
    assert_close(part.mxu_busy_s, 1.25 / 2.0 * whole.mxu_busy_s, 1e-12);
    assert_close(part.grid_steps, whole.grid_steps, 0.0);
}

/* 896 beside 1024 columns within a percent is the same tile to the model; 512 is another, and so is 896 when
 * it is predicted to cost more. */
static void near_duplicates_are_listed_once(void **state)
{
    (void)state;
    struct adv_gmm_tile tiles[] = {{512, 1024, 1024, 2},
                                   {512, 1024, 896, 2},
                                   {512, 1024, 512, 2},
                                   {256, 1024, 896, 2},
                                   {512, 1152, 1024, 2}};
    struct adv_kernel_time times[] = {
        {.time_s = 1.0}, {.time_s = 1.01}, {.time_s = 1.011}, {.time_s = 1.012}, {.time_s = 1.02}};
    const struct adv_ranking ranking = {.tiles = tiles, .times = times, .count = 5};
    struct adv_short_entry list[ADV_SHORT_LIST];
    assert_int_equal(adv_gmm_short_list(&ranking, list), 4);
    assert_int_equal(list[0].best, 0);
    assert_int_equal(list[1].best, 2);
    assert_int_equal(list[2].best, 3);
    assert_int_equal(list[3].best, 4);
}

static struct adv_kernel_time xla_time(struct kernel_bench *bench, enum adv_kernel kernel,
                                       const struct adv_gmm_shape *shape)
{
    struct adv_kernel_time time;
    assert_int_equal(adv_gmm_xla_time(&bench->machine, kernel, shape, &time, NULL), ADV_OK);
    assert_close(kernel_parts_sum(&time), time.time_s, 1e-12);
    return time;
}

/* XLA's ragged dot, groups of 100 and 156 rows: of two tiles of 128 rows the first is visited twice; every
 * visit stores its output; residuals are a copy. */
static void xla_visits_its_own_row_tiles(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 156};
    struct adv_gmm_shape shape = shape_of(256, 128, 1024, 2, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.gmm_xla_out_vreg_s = 1e-6;
    shape.return_residuals = true;
    const struct adv_kernel_time time = xla_time(&bench, ADV_KERNEL_GMM, &shape);
    assert_close(time.mxu_busy_s, 2.0 * 384.0 * 128.0 * 1024.0 / 1e12, 1e-12);
    assert_close(kernel_part(&time, "vector"), 384e-6, 1e-12);
    assert_close(kernel_part(&time, "residual_copy"), 2.0 * 256.0 * 1024.0 * 2.0 / 1e12, 1e-12);
}

/* 1024 columns fit VMEM at once, so the rows are read once, however often they are visited; 768 go in three
 * steps of 256; with a k of 8192 a step holds 128. The result leaves in bf16 by way of f32, 2 + 6 bytes a
 * number. Transposed weights are copied first, read and written, and so are those that leave lanes over. */
static void xla_reads_rows_again_for_every_tile_of_columns(void **state)
{
    (void)state;
    struct adv_gmm_shape shape = shape_of(256, 1024, 1024, 2, ADV_GROUPS_BALANCED);
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const double rows = 2.0 * 256.0 * 1024.0, weights = 2.0 * 2.0 * 1024.0 * 1024.0;
    const double numbers = 256.0 * 1024.0, out = 8.0 * numbers;
    assert_close(xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes, rows + weights + out, 1e-12);
    shape.n = 768;
    assert_close(xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes, 3.0 * rows + 0.75 * (weights + out),
                 1e-12);
    shape.n = 1024;
    shape.rhs_transposed = true;
    const struct adv_kernel_time copied = xla_time(&bench, ADV_KERNEL_GMM, &shape);
    assert_close(copied.hbm_bytes, rows + weights + out + 2.0 * weights, 1e-12);
    assert_close(kernel_part(&copied, "copies"), (2.0 * weights + 6.0 * numbers) / 1e12, 1e-12);
    shape.n = 1000;
    const double part = 1000.0 / 1024.0;
    assert_close(xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes,
                 4.0 * rows + part * (weights + out + 2.0 * weights), 1e-12);
    shape.n = 1024;
    shape.rhs_transposed = false;
    shape.k = 8192;
    assert_close(xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes, 8.0 * 8.0 * rows + 8.0 * weights + out,
                 1e-12);
}

/* The later lowering: tiles of 512 rows, and only behind copied weights an f32 output that is converted: 4
 * bytes a number inside, 6 behind. Misaligned columns go 128 at a time. */
static void xla_later_tiles_are_taller(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 412};
    struct adv_gmm_shape shape = shape_of(512, 1024, 1024, 2, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    shape.rhs_transposed = true;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.gmm_xla_late = 1.0;
    const struct adv_kernel_time time = xla_time(&bench, ADV_KERNEL_GMM, &shape);
    const double numbers = 512.0 * 1024.0, weights = 2.0 * 2.0 * 1024.0 * 1024.0;
    assert_close(time.mxu_busy_s, 2.0 * 1024.0 * 1024.0 * 1024.0 / 1e12, 1e-12);
    assert_close(time.hbm_bytes, (2.0 + 4.0 + 6.0) * numbers + 3.0 * weights, 1e-12);
    assert_close(kernel_part(&time, "copies"), (6.0 * numbers + 2.0 * weights) / 1e12, 1e-12);
    shape.rhs_transposed = false;
    assert_close(xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes, (2.0 + 2.0) * numbers + weights, 1e-12);
    shape.n = 1000;
    assert_close(xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes,
                 8.0 * 2.0 * numbers + 1000.0 / 1024.0 * ((4.0 + 6.0) * numbers + 3.0 * weights), 1e-12);
}

/* The gradient holds all of k: 512 columns at a time, so rows of lhs are read twice; it leaves in f32 and is
 * converted, 10 bytes a number. Later its tile holds 1024 x 1024 and it leaves in bf16. An empty group is
 * stored, too. */
static void xla_stores_every_groups_gradient(void **state)
{
    (void)state;
    const int64_t sizes[] = {128, 0, 128};
    struct adv_gmm_shape shape = shape_of(256, 1024, 1024, 3, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.tgmm_xla_accumulate_vreg_s = 1e-9;
    const double operand = 2.0 * 256.0 * 1024.0, numbers = 3.0 * 1024.0 * 1024.0;
    struct adv_kernel_time time = xla_time(&bench, ADV_KERNEL_TGMM, &shape);
    assert_close(time.hbm_bytes, 3.0 * operand + 10.0 * numbers, 1e-12);
    assert_close(kernel_part(&time, "vector"), 2.0 * 1024.0 * 1e-9, 1e-12);
    assert_close(kernel_part(&time, "copies"), 10.0 * numbers / 1e12, 1e-12);
    bench.constants.gmm_xla_late = 1.0;
    time = xla_time(&bench, ADV_KERNEL_TGMM, &shape);
    assert_close(time.hbm_bytes, 2.0 * operand + 2.0 * numbers, 1e-12);
}

/* Two cores, no lowering for groups: every row meets both groups. The cores share columns in tiles of 256:
 * of three one core has two; a gradient's second core works only past 1024 columns. */
static void xla_dense_shares_columns_between_cores(void **state)
{
    (void)state;
    struct adv_gmm_shape shape = shape_of(256, 1024, 1024, 2, ADV_GROUPS_BALANCED);
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.cores_per_chip = 2;
    bench.constants.gmm_xla_dense = 1.0;
    const double core_s = 2.0 * 512.0 * 1024.0 * 1024.0 / 0.5e12;
    const double least = 2.0 * (2.0 * 256.0 * 1024.0) + 2.0 * 2.0 * 1024.0 * 1024.0;
    struct adv_kernel_time time = xla_time(&bench, ADV_KERNEL_GMM, &shape);
    assert_close(time.mxu_busy_s, core_s / 2.0, 1e-12);
    assert_close(time.hbm_bytes, least + 512.0 * (2.0 + 4.0) * 1024.0, 1e-12);
    assert_close(time.time_s, time.mxu_busy_s + time.hbm_bytes / 1e12, 1e-12); /* nothing is hidden */
    shape.n = 768;
    time = xla_time(&bench, ADV_KERNEL_GMM, &shape);
    assert_close(time.mxu_busy_s, 0.75 * core_s * 2.0 / 3.0, 1e-12);
    assert_close(time.time_s, time.mxu_busy_s + 4.0 / 3.0 * time.hbm_bytes / 1e12, 1e-12);
    shape.n = 1024;
    assert_close(xla_time(&bench, ADV_KERNEL_TGMM, &shape).mxu_busy_s, core_s, 1e-12);
    shape.n = 2048;
    assert_close(xla_time(&bench, ADV_KERNEL_TGMM, &shape).mxu_busy_s, core_s, 1e-12);
}

/* Quantised operands are brought to bf16 in HBM first: 11 bytes a number of the rows, 7 of the weights. The
 * result is converted behind either. */
static void xla_expands_quantised_operands(void **state)
{
    (void)state;
    struct adv_gmm_shape shape = shape_of(256, 512, 1024, 2, ADV_GROUPS_BALANCED);
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const double plain = xla_time(&bench, ADV_KERNEL_GMM, &shape).hbm_bytes;
    shape.lhs = shape.rhs = ADV_FORMAT_FP8;
    const struct adv_kernel_time time = xla_time(&bench, ADV_KERNEL_GMM, &shape);
    const double expanded = 11.0 * 256.0 * 512.0 + 7.0 * 2.0 * 512.0 * 1024.0;
    assert_close(time.hbm_bytes, plain + expanded, 1e-12);
    assert_close(kernel_part(&time, "copies"), (expanded + 6.0 * 256.0 * 1024.0) / 1e12, 1e-12);
}

/* Every lowering, aligned and misaligned sizes: at least the useful FLOPs at the peak, and at least every
 * operand and the result moved once. */
static void xla_is_never_below_its_roofline(void **state)
{
    (void)state;
    struct kernel_bench bench;
    const int64_t sizes[] = {16, 128, 200, 768, 1024, 2880, 7168, 32768};
    const int count = (int)(sizeof sizes / sizeof sizes[0]);
    for (int i = 0; i < 12 * count * count; i++) {
        kernel_bench_init(&bench);
        bench.constants.gmm_xla_late = i % 3 == 1 ? 1.0 : 0.0;
        bench.constants.gmm_xla_dense = i % 3 == 2 ? 1.0 : 0.0;
        const enum adv_kernel kernel = i / 3 % 2 ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM;
        struct adv_gmm_shape shape =
            shape_of(4096, sizes[i / 12 % count], sizes[i / 12 / count], 8, ADV_GROUPS_BALANCED);
        shape.rhs_transposed = kernel == ADV_KERNEL_GMM && i / 6 % 2;
        const struct adv_kernel_time time = xla_time(&bench, kernel, &shape);
        const double k = (double)shape.k, n = (double)shape.n;
        const double least_bytes = 2.0 * (4096.0 * (k + n) + 8.0 * k * n);
        assert_true(time.time_s >= 2.0 * 4096.0 * k * n / 1e12 * (1.0 - 1e-12));
        assert_true(time.time_s >= least_bytes / 1e12 * (1.0 - 1e-12));
    }
}

static void wrong_groups_and_tiles_are_all_reported(void **state)
{
    (void)state;
    const int64_t sizes[] = {100, 300};
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_gmm_shape shape = shape_of(256, 512, 512, 2, ADV_GROUPS_GIVEN);
    shape.group_sizes = sizes;
    struct adv_gmm_tile tile = {128, 128, 128, 2};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &time, &err), ADV_E_RANGE);
    assert_string_equal(err.findings[0].pointer, "/shape/group_sizes");
    shape.m = 400;
    tile = (struct adv_gmm_tile){0, -1, 128, 9};
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(&bench.machine, ADV_KERNEL_GMM, &shape, &tile, &time, &err), ADV_E_ILLEGAL);
    assert_int_equal(err.count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shared_tiles_are_visited_once_per_group),
        cmocka_unit_test(balanced_groups_meet_tile_edges_exactly),
        cmocka_unit_test(multinomial_visits_match_the_mean_of_samples),
        cmocka_unit_test(few_rows_leave_groups_empty),
        cmocka_unit_test(worst_case_bounds_the_others),
        cmocka_unit_test(compute_bound_time_adds_up_by_hand),
        cmocka_unit_test(weights_of_a_new_group_are_waited_for),
        cmocka_unit_test(padding_is_computed_but_not_moved),
        cmocka_unit_test(fp8_is_twice_as_fast_only_where_native),
        cmocka_unit_test(empty_groups_still_write_zeros),
        cmocka_unit_test(version_2_pads_groups_to_buckets),
        cmocka_unit_test(version_2_has_no_transposed_product),
        cmocka_unit_test(version_2_cuts_columns_until_four_buckets_fit),
        cmocka_unit_test(version_2_waits_for_large_weights_and_reloads_large_bodies),
        cmocka_unit_test(deep_buffers_spread_rows_over_shared_visits),
        cmocka_unit_test(a_shared_row_tile_is_computed_again_in_part),
        cmocka_unit_test(near_duplicates_are_listed_once),
        cmocka_unit_test(xla_visits_its_own_row_tiles),
        cmocka_unit_test(xla_reads_rows_again_for_every_tile_of_columns),
        cmocka_unit_test(xla_later_tiles_are_taller),
        cmocka_unit_test(xla_stores_every_groups_gradient),
        cmocka_unit_test(xla_dense_shares_columns_between_cores),
        cmocka_unit_test(xla_expands_quantised_operands),
        cmocka_unit_test(xla_is_never_below_its_roofline),
        cmocka_unit_test(wrong_groups_and_tiles_are_all_reported),
    };
    return run_group(tests);
}
