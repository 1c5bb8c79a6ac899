#include "tests/unit/check.h"

#include "engine/kernel/splash_blocks.h"
#include "tests/unit/kernel_machine.h"

static struct adv_attention_shape shape_of(int64_t q_len, int64_t kv_len, bool causal)
{
    return (struct adv_attention_shape){.batch = 1,
                                        .q_heads = 1,
                                        .kv_heads = 1,
                                        .q_len = q_len,
                                        .kv_len = kv_len,
                                        .head_dim_qk = 128,
                                        .head_dim_v = 128,
                                        .causal = causal,
                                        .context_shards = 1,
                                        .dtype = ADV_FORMAT_BF16};
}

static struct adv_attention_tile tile_of(int block_q, int block_kv, int compute)
{
    return (struct adv_attention_tile){
        .blocks = {block_q, block_kv, compute, block_q, block_kv, compute, block_q, block_kv}};
}

/* 4 x 4 tiles, causal: 4 + 3 + 2 + 1 = 10 touch the triangle, the 4 on the diagonal are partial. Only the
 * first query block ends at tile 0, where the next starts: 1 kept. */
static void causal_square_blocks_are_a_triangle(void **state)
{
    (void)state;
    struct adv_splash_counts counts;
    struct adv_attention_shape shape = shape_of(1024, 1024, true);
    adv_splash_count_blocks(&shape, 256, 256, &counts);
    assert_close(counts.active, 10.0, 0.0);
    assert_close(counts.partial, 4.0, 0.0);
    assert_close(counts.q_blocks, 4.0, 0.0);
    assert_close(counts.kept, 1.0, 0.0);
    assert_close(counts.pairs, 1024.0 * 1025.0 / 2.0, 0.0);
}

/* Rows 0..255 against keys 0..511: query blocks of 128 rows, key blocks of 512. Both query blocks lie in key
 * block 0: one tile each, both cut by the diagonal. */
static void wide_key_blocks_are_partial_for_every_query_block_they_hold(void **state)
{
    (void)state;
    struct adv_splash_counts counts;
    struct adv_attention_shape shape = shape_of(1024, 1024, true);
    adv_splash_count_blocks(&shape, 128, 512, &counts);
    assert_close(counts.active, 4.0 * 1.0 + 4.0 * 2.0, 0.0); /* four query blocks under each key block */
    assert_close(counts.partial, 8.0, 0.0);                  /* each of the eight has one on the diagonal */
}

/* Window of one block: row i sees keys i-255..i. Query block b touches key blocks b-1 and b, both partial. */
static void window_of_a_block_touches_two_tiles(void **state)
{
    (void)state;
    struct adv_splash_counts counts;
    struct adv_attention_shape shape = shape_of(4096, 4096, true);
    shape.window = 256;
    adv_splash_count_blocks(&shape, 256, 256, &counts);
    assert_close(counts.active, 1.0 + 15.0 * 2.0, 0.0);
    assert_close(counts.partial, 31.0, 0.0);
    /* rows 0..255 see 1..256 keys, all later ones 256 */
    assert_close(counts.pairs, 256.0 * 257.0 / 2.0 + (4096.0 - 256.0) * 256.0, 0.0);
}

/* Chunks of 1024 in a sequence of 4096 are four causal sequences of 1024: 4 * 10 tiles of 256. */
static void chunks_are_short_sequences(void **state)
{
    (void)state;
    struct adv_splash_counts counts;
    struct adv_attention_shape shape = shape_of(4096, 4096, true);
    shape.chunk = 1024;
    adv_splash_count_blocks(&shape, 256, 256, &counts);
    assert_close(counts.active, 40.0, 0.0);
    assert_close(counts.partial, 16.0, 0.0);
    assert_close(counts.pairs, 4.0 * 1024.0 * 1025.0 / 2.0, 0.0);
}

/* Four shards of 8 x 8 tiles (36 active): the last has rows 6 and 7: 7 + 8 = 15 = 36 * (2*4-1)/4^2 *
 * 15/15.75; with half-chunks 0 and 7 a shard has 1 + 8 = 9 = the mean. */
static void unbalanced_context_shards_wait_for_the_last(void **state)
{
    (void)state;
    struct adv_splash_counts counts;
    struct adv_attention_shape shape = shape_of(512, 2048, true);
    shape.context_shards = 4;
    adv_splash_count_blocks(&shape, 256, 256, &counts);
    assert_close(counts.active, 15.0, 0.0);
    shape.context_load_balanced = true;
    adv_splash_count_blocks(&shape, 256, 256, &counts);
    assert_close(counts.active, 9.0, 0.0);
    assert_close(counts.pairs, 2048.0 * 2049.0 / 2.0 / 4.0, 1e-12);
}

/* Segments of 512 in 1024 rows, tiles of 256, full attention inside: 2 * (2 x 2) tiles, none partial. */
static void known_segments_skip_tiles(void **state)
{
    (void)state;
    struct adv_splash_counts counts;
    const int64_t sizes[] = {512, 512};
    struct adv_attention_shape shape = shape_of(1024, 1024, false);
    shape.segment_sizes = sizes;
    shape.segment_sizes_count = 2;
    adv_splash_count_blocks(&shape, 256, 256, &counts);
    assert_close(counts.active, 8.0, 0.0);
    assert_close(counts.partial, 0.0, 0.0);
}

/* One head, 1024 x 1024 causal in one tile, computed in sub-blocks of 512. 1024 vregs of scores.
 *   vector   1024 * 1 ns                                                       = 1024 ns
 *   rescale  2 sub-blocks * 1024 rows * (128 + 256) columns / 1024 * 0.5 ns     = 384 ns
 *   mask     1024 * 0.25 ns                                                     = 256 ns
 *   MXU      2 * 1024*1024*128 FLOP * 2 products / 1e12                         = 536.87 us  (the longer one)
 *   step     1 * 300 ns
 *   wrapper  q, k, v, out: 4 * 1024 * 128 * 2 B, read and written / 1e12        = 2.097 us */
static void forward_time_adds_up_by_hand(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.splash_fwd_vreg_s = 1e-9;
    bench.constants.splash_fwd_rescale_vreg_s = 0.5e-9;
    bench.constants.splash_fwd_mask_vreg_s = 0.25e-9;
    bench.constants.splash_fwd_step_s = 300e-9;
    const struct adv_attention_shape shape = shape_of(1024, 1024, true);
    const struct adv_attention_tile tile = tile_of(1024, 1024, 512);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, &err), ADV_OK);
    const double mxu = 2.0 * 2.0 * 1024.0 * 1024.0 * 128.0 / 1e12,
                 wrapper = 2.0 * 4.0 * 1024.0 * 128.0 * 2.0 / 1e12;
    assert_close(time.time_s, mxu + 256e-9 + 300e-9 + wrapper, 1e-12);
    assert_int_equal(time.bound, ADV_RES_MXU);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e18; /* now vector work decides */
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, &err), ADV_OK);
    assert_close(time.time_s, 1024e-9 + 384e-9 + 256e-9 + 300e-9 + wrapper, 1e-12);
    assert_close(kernel_parts_sum(&time), time.time_s, 1e-12);
    assert_int_equal(time.bound, ADV_RES_VPU);
}

/* logsumexp and maximum are written as 128 equal lanes: 1 KiB per query row, and read again for the slice. */
static void residuals_cost_a_kibibyte_per_row_twice(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(1024, 1024, 512);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time plain, residuals;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &plain, &err), ADV_OK);
    assert_int_equal(adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD_RESIDUALS, &shape, &tile, &flags,
                                     &residuals, &err),
                     ADV_OK);
    assert_close(residuals.hbm_bytes - plain.hbm_bytes, 2.0 * 1024.0 * 1024.0, 1e-12);
    assert_close(kernel_part(&residuals, "wrapper_residuals"), 1024.0 * 1024.0 / 1e12, 1e-12);
}

/* A constant maximum takes its share of the vector work and all of the rescaling away. */
static void a_constant_maximum_never_rescales(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e18;
    bench.constants.splash_fwd_vreg_s = 1e-9;
    bench.constants.splash_fwd_rescale_vreg_s = 0.5e-9;
    bench.constants.splash_max_logit_frac = 0.75;
    const struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(1024, 1024, 512);
    const struct adv_attention_flags flags = {.max_logit_constant = true};
    struct adv_kernel_time time;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, NULL), ADV_OK);
    assert_close(kernel_part(&time, "vector"), 768e-9, 1e-12);
    assert_close(kernel_part(&time, "rescale"), 0.0, 0.0);
}

/* Two more vector operations a score forward, five backward, at the price of the mask's three; and nobody
 * has measured it. */
static void a_soft_cap_is_counted_in_operations_of_the_mask(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e18;
    bench.constants.splash_fwd_measured = bench.constants.splash_bwd_measured = 1.0;
    bench.constants.splash_fwd_mask_vreg_s = 0.3e-9;
    bench.constants.splash_bwd_mask_vreg_s = 0.2e-9;
    const struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(1024, 1024, 512);
    const enum adv_kernel kernels[] = {ADV_KERNEL_SPLASH_FWD, ADV_KERNEL_SPLASH_BWD_FUSED};
    const double expected_s[] = {1024 * 0.2e-9, 1024 * 5 * 0.2e-9 / 3};
    for (int i = 0; i < 2; i++) {
        struct adv_attention_flags flags = {0};
        struct adv_kernel_time plain, capped;
        assert_int_equal(adv_splash_time(&bench.machine, kernels[i], &shape, &tile, &flags, &plain, NULL),
                         ADV_OK);
        flags.soft_cap = true;
        assert_int_equal(adv_splash_time(&bench.machine, kernels[i], &shape, &tile, &flags, &capped, NULL),
                         ADV_OK);
        assert_close(kernel_part(&capped, "vector") - kernel_part(&plain, "vector"), expected_s[i], 1e-9);
        assert_false(plain.extrapolated);
        assert_true(capped.extrapolated);
    }
}

/* Four tiles of 512 x 512 that compute for nothing: each takes the latency of its fetch, beside the bytes. */
static void small_tiles_wait_for_their_fetch(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e18;
    bench.constants.splash_fetch_s = 5e-6;
    bench.constants.splash_fwd_step_s = 1e-6;
    const struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(512, 512, 512);
    const struct adv_attention_flags flags = {.kernel_only = true};
    struct adv_kernel_time time;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, NULL), ADV_OK);
    assert_close(time.time_s, time.hbm_bytes / 1e12 + 20e-6, 1e-9);
    assert_close(kernel_parts_sum(&time), time.time_s, 1e-12);
    assert_int_equal(time.bound, ADV_RES_LATENCY);
}

/* The dq kernel reads q and dO once per query block, k and v per tile, and writes dQ: 1024 rows in two
 * blocks. */
static void the_dq_kernel_writes_its_output(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(512, 1024, 1024);
    const struct adv_attention_flags flags = {.kernel_only = true};
    struct adv_kernel_time time;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_DQ, &shape, &tile, &flags, &time, NULL),
        ADV_OK);
    const double rows = 1024.0 * 128.0 * 2.0;
    assert_close(time.hbm_bytes, 2.0 * rows + 2.0 * 2.0 * rows + rows, 1e-12);
}

/* 8 key tiles: partial dQ in f32, eight times written by the kernel and read by the sum, which writes bf16.
 * 2048 rows * 128 columns * (8 * 4 + 2) bytes; with 3 buffers 3 * 4 + 2. A single key tile needs no sum. */
static void dq_partials_are_summed_after_the_fused_backward(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_shape shape = shape_of(2048, 2048, true);
    struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    struct adv_attention_tile tile = tile_of(256, 256, 256);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_FUSED, &shape, &tile, &flags, &time, &err),
        ADV_OK);
    assert_close(kernel_part(&time, "dq_reduction"), 2048.0 * 128.0 * 34.0 / 1e12, 1e-12);
    flags.dq_reduction_steps = 3;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_FUSED, &shape, &tile, &flags, &time, &err),
        ADV_OK);
    assert_close(kernel_part(&time, "dq_reduction"), 2048.0 * 128.0 * 14.0 / 1e12, 1e-12);
    tile = tile_of(256, 2048, 256);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_FUSED, &shape, &tile, &flags, &time, &err),
        ADV_OK);
    assert_close(kernel_part(&time, "dq_reduction"), 0.0, 0.0);
}

/* The split backward does S, dP, dQ (3 products) and S, dP, dV, dK (4): 7 against the fused kernel's 5. */
static void split_backward_does_seven_products(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(512, 512, 512);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time fused, dq, dkv;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_FUSED, &shape, &tile, &flags, &fused, &err),
        ADV_OK);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_DQ, &shape, &tile, &flags, &dq, &err), ADV_OK);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_BWD_DKV, &shape, &tile, &flags, &dkv, &err),
        ADV_OK);
    const double product = 2.0 * 1024.0 * 1024.0 * 128.0 / 1e12;
    assert_close(fused.mxu_busy_s, 5.0 * product, 1e-12);
    assert_close(dq.mxu_busy_s, 3.0 * product, 1e-12);
    assert_close(dkv.mxu_busy_s, 4.0 * product, 1e-12);
}

/* Head sizes are padded to the array: 72 and 96 cost what 128 does on a 128 array, what 256 does on a 256
 * one. */
static void odd_head_sizes_cost_the_padded_array(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_attention_shape shape = shape_of(1024, 1024, false);
    const struct adv_attention_tile tile = tile_of(512, 512, 512);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    shape.head_dim_qk = shape.head_dim_v = 72;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, &err), ADV_OK);
    assert_close(time.mxu_busy_s, 2.0 * 2.0 * 1024.0 * 1024.0 * 128.0 / 1e12, 1e-12);
    bench.chip.mxu_rows = bench.chip.mxu_columns = 256;
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, &err), ADV_OK);
    assert_close(time.mxu_busy_s, 2.0 * 2.0 * 1024.0 * 1024.0 * 256.0 / 1e12, 1e-12);
}

/* Forward's head axis is parallel, the backward grids are sequential: the second core helps only forward. */
static void megacore_halves_forward_but_not_backward(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_attention_shape shape = shape_of(1024, 1024, false);
    shape.q_heads = shape.kv_heads = 2;
    const struct adv_attention_tile tile = tile_of(512, 512, 512);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time one, two;
    adv_err err;
    adv_err_init(&err);
    for (int backward = 0; backward < 2; backward++) {
        const enum adv_kernel kernel = backward ? ADV_KERNEL_SPLASH_BWD_FUSED : ADV_KERNEL_SPLASH_FWD;
        bench.chip.cores_per_chip = 1;
        bench.chip.peak_bf16_flops_per_s_per_chip = 1e12;
        assert_int_equal(adv_splash_time(&bench.machine, kernel, &shape, &tile, &flags, &one, &err), ADV_OK);
        bench.chip.cores_per_chip = 2;
        bench.chip.peak_bf16_flops_per_s_per_chip = 2e12;
        assert_int_equal(adv_splash_time(&bench.machine, kernel, &shape, &tile, &flags, &two, &err), ADV_OK);
        assert_close(two.mxu_busy_s, one.mxu_busy_s / (backward ? 1.0 : 2.0), 1e-12);
    }
}

static void every_broken_tile_rule_is_named_with_a_remedy(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_shape shape = shape_of(1536, 1536, true);
    const struct adv_attention_tile tile = tile_of(1000, 1024, 384);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, &err),
        ADV_E_ILLEGAL);
    assert_int_equal(err.count, 3);
    assert_string_equal(err.findings[0].pointer, "/tile/block_q");
    assert_string_equal(err.findings[1].pointer, "/tile/block_kv");
    assert_string_equal(err.findings[1].hint, "768 or 1536, a multiple of 128 that divides kv_len 1536");
    assert_string_equal(err.findings[2].pointer, "/tile/block_kv_compute");
}

static void absurd_shapes_are_reported_together(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    struct adv_attention_shape shape = shape_of(0, INT64_C(1) << 40, true);
    shape.kv_heads = 3;
    shape.head_dim_v = -1;
    const struct adv_attention_tile tile = tile_of(128, 128, 128);
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(
        adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &time, &err),
        ADV_E_RANGE);
    assert_int_equal(err.count, 4);
}

/* Heads of 64 along the lanes take 128 columns each; along the sublanes 64. Whole lanes cost the same. */
static void narrow_heads_move_less_with_the_sequence_along_the_lanes(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_attention_flags flags = {.kernel_only = true};
    struct adv_attention_shape shape = shape_of(1024, 1024, false);
    struct adv_attention_tile tile = {.blocks = {.block_q = 1024, .block_kv = 1024, .block_kv_compute = 512}};
    struct adv_kernel_time padded, whole;
    for (int head_dim = 64; head_dim <= 128; head_dim += 64) {
        shape.head_dim_qk = shape.head_dim_v = head_dim;
        tile.q_layout = tile.k_layout = tile.v_layout = ADV_LAYOUT_HEAD_DIM_MINOR;
        assert_int_equal(
            adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &padded, NULL),
            ADV_OK);
        tile.q_layout = tile.k_layout = tile.v_layout = ADV_LAYOUT_SEQ_MINOR;
        assert_int_equal(
            adv_splash_time(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &tile, &flags, &whole, NULL),
            ADV_OK);
        const double heads = shape.batch * shape.q_heads, columns = head_dim == 64 ? 64.0 : 0.0;
        assert_close(padded.hbm_bytes - whole.hbm_bytes, heads * 1024.0 * 3.0 * columns * 2.0, 1e-12);
        assert_true(head_dim == 64 ? whole.vmem_bytes < padded.vmem_bytes
                                   : whole.vmem_bytes == padded.vmem_bytes);
    }
}

static struct adv_kernel_time xla_time(const struct kernel_bench *bench, bool backward,
                                       const struct adv_attention_shape *shape)
{
    struct adv_kernel_time time;
    assert_int_equal(adv_attention_xla_time(&bench->machine, backward, shape, &time, NULL), ADV_OK);
    return time;
}

/* Two heads of 128, a sequence of 512. */
static struct adv_attention_shape xla_shape(void)
{
    return (struct adv_attention_shape){.batch = 1,
                                        .q_heads = 2,
                                        .kv_heads = 2,
                                        .q_len = 512,
                                        .kv_len = 512,
                                        .head_dim_qk = 128,
                                        .head_dim_v = 128,
                                        .context_shards = 1,
                                        .dtype = ADV_FORMAT_BF16};
}

static const double xla_scores = 2.0 * 512.0 * 512.0;

/* XLA's attention moves 12 bytes a score; a mask, a bias and the operands it reads again for every 1024 rows
 * come on top, its inputs and outputs as often as its constant says. */
static void xla_attention_moves_scores_masks_biases_and_operands(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.attention_xla_tile_rows = 1024.0;
    bench.constants.attention_xla_mask_bytes = 0.5;
    bench.constants.attention_xla_bias_passes = 1.0;
    bench.constants.attention_xla_row_moves = 2.0;
    bench.constants.attention_xla_cast_moves = 1.0;
    struct adv_attention_shape shape = xla_shape();
    const double rows = 2.0 * (2.0 * 512.0 + 2.0 * 512.0) * 256.0;
    const double plain = xla_scores * (12.0 + 4.0 * 256.0 / 1024.0) + 2.0 * rows;
    assert_close(xla_time(&bench, false, &shape).hbm_bytes, plain, 1e-12);
    shape.causal = shape.has_bias = shape.is_float16 = true;
    assert_close(xla_time(&bench, false, &shape).hbm_bytes, plain + xla_scores * 4.5 + rows, 1e-12);
}

/* The bias is 1 MiB in all: half of it held in VMEM, half a pass. An even number of blocks of 512 keys adds
 * its own passes; the backward pass writes and reads the gradient of the scores for the bias' own. */
static void xla_attention_reads_again_what_it_does_not_hold_of_a_bias(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.attention_xla_bias_passes = 1.0;
    bench.constants.attention_xla_bias_even_passes = 0.25;
    struct adv_attention_shape plain = xla_shape(), biased = plain;
    biased.has_bias = true;
    const double held_bytes[] = {0.0, 524288.0, 1048576.0, 4194304.0}, passes[] = {1.0, 0.5, 0.0, 0.0};
    for (int i = 0; i < 4; i++) {
        bench.constants.attention_xla_bias_held_bytes = held_bytes[i];
        for (int backward = 0; backward < 2; backward++)
            assert_close(xla_time(&bench, backward, &biased).hbm_bytes -
                             xla_time(&bench, backward, &plain).hbm_bytes,
                         xla_scores * (4.0 * passes[i] + (backward ? 8.0 : 0.0)), 1e-9);
    }
    plain.kv_len = biased.kv_len = 1024;
    assert_close(xla_time(&bench, false, &biased).hbm_bytes - xla_time(&bench, false, &plain).hbm_bytes,
                 2.0 * xla_scores * 4.0 * 0.25, 1e-9);
}

/* Heads of 256 are moved 1.5 times more than their constant for all heads says, in either pass. */
static void xla_attention_moves_wide_heads_more_often(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    for (int backward = 0; backward < 2; backward++) {
        struct adv_attention_shape shape = xla_shape();
        shape.head_dim_qk = shape.head_dim_v = 256;
        const double rows = 2.0 * (2.0 * 512.0 + 2.0 * 512.0) * 512.0;
        bench.constants.attention_xla_wide_moves = 0.0;
        const double before = xla_time(&bench, backward, &shape).hbm_bytes;
        bench.constants.attention_xla_wide_moves = 1.5;
        assert_close(xla_time(&bench, backward, &shape).hbm_bytes, before + 1.5 * rows, 1e-12);
        shape.head_dim_qk = shape.head_dim_v = 128;
        const double narrow = xla_time(&bench, backward, &shape).hbm_bytes;
        bench.constants.attention_xla_wide_moves = 0.0;
        assert_close(xla_time(&bench, backward, &shape).hbm_bytes, narrow, 0.0);
    }
}

/* 4096 sequences: an f32 matrix of 8 GiB, half of it beyond the first 4; with 2048 sequences nothing is. More
 * time, not more bytes. */
static void xla_attention_slows_down_beyond_four_gibibytes_of_scores(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.peak_bf16_flops_per_s_per_chip = 1e16;
    struct adv_attention_shape shape = xla_shape();
    for (int half = 0; half < 2; half++) {
        shape.batch = half ? 4096.0 : 2048.0;
        bench.constants.attention_xla_far_frac = 0.0;
        const struct adv_kernel_time near = xla_time(&bench, false, &shape);
        bench.constants.attention_xla_far_frac = 0.5;
        const struct adv_kernel_time far = xla_time(&bench, false, &shape);
        assert_close(far.hbm_bytes, near.hbm_bytes, 0.0);
        assert_close(far.time_s, near.time_s * (half ? 1.25 : 1.0), 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_square_blocks_are_a_triangle),
        cmocka_unit_test(wide_key_blocks_are_partial_for_every_query_block_they_hold),
        cmocka_unit_test(window_of_a_block_touches_two_tiles),
        cmocka_unit_test(chunks_are_short_sequences),
        cmocka_unit_test(unbalanced_context_shards_wait_for_the_last),
        cmocka_unit_test(known_segments_skip_tiles),
        cmocka_unit_test(forward_time_adds_up_by_hand),
        cmocka_unit_test(residuals_cost_a_kibibyte_per_row_twice),
        cmocka_unit_test(a_constant_maximum_never_rescales),
        cmocka_unit_test(a_soft_cap_is_counted_in_operations_of_the_mask),
        cmocka_unit_test(small_tiles_wait_for_their_fetch),
        cmocka_unit_test(the_dq_kernel_writes_its_output),
        cmocka_unit_test(dq_partials_are_summed_after_the_fused_backward),
        cmocka_unit_test(split_backward_does_seven_products),
        cmocka_unit_test(odd_head_sizes_cost_the_padded_array),
        cmocka_unit_test(megacore_halves_forward_but_not_backward),
        cmocka_unit_test(every_broken_tile_rule_is_named_with_a_remedy),
        cmocka_unit_test(absurd_shapes_are_reported_together),
        cmocka_unit_test(narrow_heads_move_less_with_the_sequence_along_the_lanes),
        cmocka_unit_test(xla_attention_moves_scores_masks_biases_and_operands),
        cmocka_unit_test(xla_attention_reads_again_what_it_does_not_hold_of_a_bias),
        cmocka_unit_test(xla_attention_moves_wide_heads_more_often),
        cmocka_unit_test(xla_attention_slows_down_beyond_four_gibibytes_of_scores),
    };
    return run_group(tests);
}
