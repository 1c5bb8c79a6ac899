#include "tests/unit/check.h"

#include "tests/unit/kernel_machine.h"

static struct adv_kernel_time time_of(const struct kernel_bench *bench, int64_t m, int64_t k, int64_t n)
{
    const struct adv_matmul_shape shape = {m, k, n, ADV_FORMAT_BF16, ADV_FORMAT_BF16, ADV_FORMAT_BF16};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_matmul_time(&bench->machine, &shape, &time, &err), ADV_OK);
    return time;
}

/* 1024^3: 2.147e9 FLOP / (0.5 * 1e12) = 4.295 ms; launch 2 us; the first 1e6 bytes at 1e12 B/s fill the
 * pipeline. */
static void large_matmul_runs_at_its_fraction_of_peak(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.matmul_peak_frac = 0.5;
    bench.constants.matmul_launch_s = 2e-6;
    bench.constants.matmul_overlap_bytes = 1e6;
    const struct adv_kernel_time time = time_of(&bench, 1024, 1024, 1024);
    assert_close(time.time_s, 2.0 * pow(1024.0, 3.0) / 0.5e12 + 2e-6 + 1e-6, 1e-12);
    assert_close(time.hbm_bytes, 3.0 * 1024.0 * 1024.0 * 2.0, 0.0);
    assert_int_equal(time.bound, ADV_RES_MXU);
    assert_close(kernel_parts_sum(&time), time.time_s, 1e-12);
}

/* 512 rows at a nanosecond each, whatever the rest takes. */
static void every_row_of_the_result_shows(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const double before_s = time_of(&bench, 512, 1024, 256).time_s;
    bench.constants.matmul_row_s = 1e-9;
    const struct adv_kernel_time time = time_of(&bench, 512, 1024, 256);
    assert_close(time.time_s, before_s + 512e-9, 1e-12);
    assert_close(kernel_parts_sum(&time), time.time_s, 1e-12);
}

/* One row times a wide matrix moves 16 MiB of weights and computes a 16-row slab: HBM decides on a fast
 * array. */
static void thin_matmul_is_bound_by_its_weights(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e15;
    const struct adv_kernel_time time = time_of(&bench, 1, 2048, 4096);
    const double bytes = 2.0 * (2048.0 + 2048.0 * 4096.0 + 4096.0);
    assert_int_equal(time.bound, ADV_RES_HBM);
    assert_close(time.time_s, bytes / 1e12, 1e-12);
    assert_close(time.mxu_busy_s, 2.0 * 16.0 * 2048.0 * 4096.0 / 1e15, 1e-12);
}

static void contraction_and_columns_are_padded_to_the_array(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    assert_close(time_of(&bench, 128, 129, 128).mxu_busy_s, time_of(&bench, 128, 256, 128).mxu_busy_s, 0.0);
    assert_close(time_of(&bench, 128, 128, 1).mxu_busy_s, time_of(&bench, 128, 128, 128).mxu_busy_s, 0.0);
}

/* 8 MB through 1e12 B/s after a launch of 1.5 us; nothing to move costs nothing. */
static void streaming_pays_its_launch_once(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.matmul_launch_s = 1.5e-6;
    assert_close(adv_stream_time_s(&bench.machine, 8e6), 9.5e-6, 1e-12);
    assert_close(adv_stream_time_s(&bench.machine, 0.0), 0.0, 0.0);
}

static void nonsense_sizes_are_reported_together(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_matmul_shape shape = {
        0, -5, INT64_C(1) << 40, ADV_FORMAT_BF16, ADV_FORMAT_BF16, ADV_FORMAT_BF16};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_matmul_time(&bench.machine, &shape, &time, &err), ADV_E_RANGE);
    assert_int_equal(err.count, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_matmul_runs_at_its_fraction_of_peak),
        cmocka_unit_test(every_row_of_the_result_shows),
        cmocka_unit_test(thin_matmul_is_bound_by_its_weights),
        cmocka_unit_test(contraction_and_columns_are_padded_to_the_array),
        cmocka_unit_test(streaming_pays_its_launch_once),
        cmocka_unit_test(nonsense_sizes_are_reported_together),
    };
    return run_group(tests);
}
