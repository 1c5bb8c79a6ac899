#include "tests/unit/check.h"

#include "engine/kernel/vmem.h"
#include "engine/kernel/xent.h"
#include "tests/unit/kernel_machine.h"

static const struct adv_attention_shape attention = {.batch = 1,
                                                     .q_heads = 8,
                                                     .kv_heads = 8,
                                                     .q_len = 8192,
                                                     .kv_len = 8192,
                                                     .head_dim_qk = 128,
                                                     .head_dim_v = 128,
                                                     .context_shards = 1,
                                                     .dtype = ADV_FORMAT_BF16};

/* 1024 rows, 128 columns, sub-blocks of 512, full mask:
 *   windows 2 * 2 B * (q 1024 + k 1024 + v 1024 + out 1024) * 128   = 2 MiB
 *   m and l 2 * 1024 * 128 * 4 B                                    = 1 MiB
 *   accumulator 1024 * 128 * 4 B                                    = 0.5 MiB
 *   two f32 tiles of scores 2 * 1024 * 512 * 4 B                    = 4 MiB */
static void forward_attention_counts_windows_scratch_and_scores(void **state)
{
    (void)state;
    const struct adv_attention_tile tile = {
        .blocks = {.block_q = 1024, .block_kv = 1024, .block_kv_compute = 512}};
    assert_close(adv_vmem_splash_bytes(ADV_KERNEL_SPLASH_FWD, &attention, &tile), 7.5 * 1048576.0, 0.0);
    /* residuals: two outputs of 1024 x 128 f32, double buffered: 2 MiB */
    assert_close(adv_vmem_splash_bytes(ADV_KERNEL_SPLASH_FWD_RESIDUALS, &attention, &tile), 9.5 * 1048576.0,
                 0.0);
}

/* A head of 64 columns takes the room of 128 lanes. */
static void narrow_heads_take_whole_lanes(void **state)
{
    (void)state;
    const struct adv_attention_tile tile = {
        .blocks = {.block_q = 1024, .block_kv = 1024, .block_kv_compute = 512}};
    struct adv_attention_shape narrow = attention;
    narrow.head_dim_qk = narrow.head_dim_v = 64;
    assert_close(adv_vmem_splash_bytes(ADV_KERNEL_SPLASH_FWD, &narrow, &tile),
                 adv_vmem_splash_bytes(ADV_KERNEL_SPLASH_FWD, &attention, &tile), 0.0);
}

/* gmm 512 x 1024 x 512, two buffers: 2*512*1024*2 + 2*1024*512*2 + 2*512*512*2 + 512*512*4 = 2 + 2 + 1 + 1
 * MiB; tgmm: 2*(512*1024 + 512*512)*2 + 2*1024*512*2 + 1024*512*4 = 3 + 2 + 2 MiB. A third lhs buffer adds 1
 * MiB. */
static void grouped_matmul_counts_buffers(void **state)
{
    (void)state;
    const struct adv_gmm_shape shape = {.m = 4096,
                                        .k = 1024,
                                        .n = 512,
                                        .num_groups = 4,
                                        .lhs = ADV_FORMAT_BF16,
                                        .rhs = ADV_FORMAT_BF16,
                                        .out = ADV_FORMAT_BF16};
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_gmm_tile tile = {512, 1024, 512, 2};
    assert_close(adv_vmem_gmm_bytes(&bench.chip, ADV_KERNEL_GMM, &shape, &tile), 6.0 * 1048576.0, 0.0);
    assert_close(adv_vmem_gmm_bytes(&bench.chip, ADV_KERNEL_TGMM, &shape, &tile), 7.0 * 1048576.0, 0.0);
    tile.input_buffer_count = 3;
    assert_close(adv_vmem_gmm_bytes(&bench.chip, ADV_KERNEL_GMM, &shape, &tile), 7.0 * 1048576.0, 0.0);
    /* arrays of 256 hold a transposed copy of the row tile beside: 512 * 1024 * 2 B */
    tile.input_buffer_count = 2;
    bench.chip.mxu_rows = 256;
    assert_close(adv_vmem_gmm_bytes(&bench.chip, ADV_KERNEL_GMM, &shape, &tile), 6.0 * 1048576.0, 0.0);
    assert_close(adv_vmem_gmm_bytes(&bench.chip, ADV_KERNEL_TGMM, &shape, &tile), 8.0 * 1048576.0, 0.0);
}

/* 16.5 MiB of attention were seen to compile under 16 MiB, and 17.6 MiB by the grouped matmul's formula; of
 * the transposed one 16.0 and no more. */
static void the_limit_has_the_formulas_slack(void **state)
{
    (void)state;
    assert_true(adv_vmem_fits(ADV_KERNEL_SPLASH_FWD, 16.5 * 1048576.0, 16.0 * 1048576.0));
    assert_false(adv_vmem_fits(ADV_KERNEL_SPLASH_BWD_DKV, 17.0 * 1048576.0, 16.0 * 1048576.0));
    assert_true(adv_vmem_fits(ADV_KERNEL_GMM, 17.6 * 1048576.0, 16.0 * 1048576.0));
    assert_false(adv_vmem_fits(ADV_KERNEL_GMM, 18.0 * 1048576.0, 16.0 * 1048576.0));
    assert_true(adv_vmem_fits(ADV_KERNEL_TGMM, 16.0 * 1048576.0, 16.0 * 1048576.0));
    assert_false(adv_vmem_fits(ADV_KERNEL_TGMM, 16.1 * 1048576.0, 16.0 * 1048576.0));
}

/* The allowance is against the limit: what the core has not got never compiles. 64 MiB less the compiler's
 * 64 KiB; on a megacore device too, whose cores have their own. */
static void no_kernel_takes_more_than_a_core_has(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.cores_per_chip = 2;
    const double mib = 1048576.0, usable = 64.0 * mib - 65536.0;
    assert_close(adv_vmem_capacity_bytes(&bench.chip), 64.0 * mib, 0.0);
    assert_true(adv_vmem_compiles(&bench.chip, ADV_KERNEL_GMM, usable, 60.0 * mib));
    assert_false(adv_vmem_compiles(&bench.chip, ADV_KERNEL_GMM, usable + 1.0, 64.0 * mib));
    assert_false(adv_vmem_compiles(&bench.chip, ADV_KERNEL_GMM, 70.0 * mib, 128.0 * mib));
    assert_false(adv_vmem_compiles(&bench.chip, ADV_KERNEL_GMM, 18.0 * mib, 16.0 * mib));
    /* the limit that is named helps, or is more than there is */
    for (int kernel = 0; kernel < ADV_KERNEL_MATMUL; kernel++)
        for (int kib = 1024; kib < 80 * 1024; kib += 333) {
            const double bytes = 1024.0 * kib;
            const double limit =
                1024.0 * adv_vmem_needed_limit_kib(&bench.chip, (enum adv_kernel)kernel, bytes);
            assert_int_equal(adv_vmem_compiles(&bench.chip, (enum adv_kernel)kernel, bytes, limit),
                             limit <= 64.0 * mib);
        }
    /* a limit beyond the core counts as all of it */
    bench.machine.scoped_vmem_limit_bytes = 128.0 * mib;
    const struct adv_attention_tile tile = {
        .blocks = {.block_q = 8192, .block_kv = 2048, .block_kv_compute = 1024}};
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &attention, &tile, &flags, &time, NULL),
        ADV_OK);
    assert_true(time.vmem_bytes > 64.0 * mib);
    assert_false(time.fits_vmem);
    assert_close(time.vmem_limit_bytes, 64.0 * mib, 0.0);
}

/* 1024/768/2048 backward: x 2 * 1024 * 768 * 2 B = 3 MiB, weights 2 * 768 * 2048 * 2 B = 6, logits and labels
 * 1024 * 2048 * 6 B = 12, dx 3, dW 6, labels and statistics 16 KiB: the winner of a published sweep under 32
 * MiB. Twice the columns, 34.5 MiB forward, divide its 3840 too and are passed over. */
static void the_fused_loss_holds_what_its_kernel_declares(void **state)
{
    (void)state;
    const struct adv_xent_tile winner = {1024, 768, 2048}, passed_over = {1024, 1920, 2048};
    const double mib = 1048576.0;
    assert_close(adv_xent_vmem_bytes(ADV_KERNEL_LINEAR_XENT_BWD, &winner), 30.0 * mib + 16384.0, 0.0);
    assert_true(adv_vmem_fits(ADV_KERNEL_LINEAR_XENT_BWD,
                              adv_xent_vmem_bytes(ADV_KERNEL_LINEAR_XENT_BWD, &winner), 32.0 * mib));
    assert_close(adv_xent_vmem_bytes(ADV_KERNEL_LINEAR_XENT, &passed_over), 34.5 * mib + 16384.0, 0.0);
    assert_false(adv_vmem_fits(ADV_KERNEL_LINEAR_XENT,
                               adv_xent_vmem_bytes(ADV_KERNEL_LINEAR_XENT, &passed_over), 32.0 * mib));
}

/* Over the limit is an answer, not an error; raising the limit makes the same tile fit. */
static void over_the_limit_is_a_result(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_tile tile = {
        .blocks = {.block_q = 8192, .block_kv = 2048, .block_kv_compute = 512}};
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &attention, &tile, &flags, &time, &err),
        ADV_OK);
    assert_false(time.fits_vmem);
    assert_close(time.vmem_limit_bytes, 16.0 * 1048576.0, 0.0);
    bench.machine.scoped_vmem_limit_bytes = 64.0 * 1048576.0;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &attention, &tile, &flags, &time, &err),
        ADV_OK);
    assert_true(time.fits_vmem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_attention_counts_windows_scratch_and_scores),
        cmocka_unit_test(narrow_heads_take_whole_lanes),
        cmocka_unit_test(grouped_matmul_counts_buffers),
        cmocka_unit_test(the_limit_has_the_formulas_slack),
        cmocka_unit_test(no_kernel_takes_more_than_a_core_has),
        cmocka_unit_test(the_fused_loss_holds_what_its_kernel_declares),
        cmocka_unit_test(over_the_limit_is_a_result),
    };
    return run_group(tests);
}
