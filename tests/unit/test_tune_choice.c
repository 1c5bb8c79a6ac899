/* Which tiles of a ranking are given to a user who will run five. */
#include "tests/unit/check.h"

#include "engine/kernel/tune_choice.h"
#include "tests/unit/kernel_machine.h"
#include "tests/unit/tuned.h"

static struct adv_tile_candidate candidate(int tile, int family, double share, double time_s)
{
    return (struct adv_tile_candidate){
        .tile = tile, .family = family, .usual = true, .share = share, .time_s = time_s};
}

static bool holds(const struct adv_tile_candidate *candidates, int count, int tile)
{
    for (int i = 0; i < count; i++)
        if (candidates[i].tile == tile) return true;
    return false;
}

static void the_predicted_fastest_is_first_and_times_never_fall(void **state)
{
    (void)state;
    struct adv_tile_candidate list[] = {candidate(0, 0, 0.01, 1.0), candidate(1, 1, 1.0, 1.002),
                                        candidate(2, 2, 1.0, 1.001), candidate(3, 0, 1.0, 1.004),
                                        candidate(4, 4, 1.0, 1.5)};
    assert_int_equal(adv_tune_choose(list, 5, 3), 3);
    assert_int_equal(list[0].tile, 0); /* unlikely inside its family, but nothing is predicted faster */
    for (int i = 1; i < 3; i++) assert_true(list[i].time_s >= list[i - 1].time_s);
}

/* Three sub-blocks of one pair with equal times are one guess: other pairs hardly slower come before the
 * second spelling. */
static void one_family_does_not_crowd_out_others(void **state)
{
    (void)state;
    struct adv_tile_candidate list[] = {candidate(0, 0, 1.0, 1.0), candidate(1, 0, 0.3, 1.0),
                                        candidate(2, 0, 0.3, 1.0), candidate(3, 3, 1.0, 1.01),
                                        candidate(4, 4, 1.0, 1.012)};
    assert_int_equal(adv_tune_choose(list, 5, 3), 3);
    assert_true(holds(list, 3, 0) && holds(list, 3, 3) && holds(list, 3, 4));
}

static void a_near_duplicate_only_fills_up(void **state)
{
    (void)state;
    struct adv_tile_candidate list[] = {candidate(0, 0, 1.0, 1.0), candidate(1, 1, 0.0, 1.001),
                                        candidate(2, 2, 1.0, 1.05)};
    assert_int_equal(adv_tune_choose(list, 3, 2), 2);
    assert_false(holds(list, 2, 1));
    assert_int_equal(adv_tune_choose(list, 3, 5), 3);
}

/* Chances are shares of one: what is left out has the rest. */
static void chances_add_up_to_one(void **state)
{
    (void)state;
    struct adv_tile_candidate list[] = {candidate(0, 0, 1.0, 1.0), candidate(1, 0, 0.3, 1.01),
                                        candidate(2, 2, 1.0, 1.02), candidate(3, 3, 0.3, 1.2)};
    list[0].usual = list[1].usual = false;
    double sum = 0.0;
    assert_int_equal(adv_tune_choose(list, 4, 4), 4);
    for (int i = 0; i < 4; i++) sum += list[i].chance_frac;
    assert_close(sum, 1.0, 1e-12);
}

/* Blocks of 4096 may be 8 % faster by prediction; a sweep that stops at 2048 finds its winner in the list all
 * the same. */
static void the_best_blocks_of_todays_sweeps_are_in_the_list(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.mxu_rows = bench.chip.mxu_columns = 256;
    struct adv_attention_tile tiles[12] = {{.blocks = {0}}};
    struct adv_kernel_time times[12] = {{0}};
    const int pairs[][2] = {{4096, 4096}, {2048, 4096}, {4096, 2048}, {2048, 2048}};
    const int parts[] = {512, 1024, 256};
    for (int i = 0; i < 12; i++) {
        tiles[i].blocks.block_q = pairs[i / 3][0];
        tiles[i].blocks.block_kv = pairs[i / 3][1];
        tiles[i].blocks.block_kv_compute = parts[i % 3];
        times[i].time_s = 1.0 + 0.027 * (i / 3);
    }
    struct adv_tile_candidate list[ADV_CHOICE_CANDIDATES];
    const struct adv_kernel_request request = {.kernel = ADV_KERNEL_SPLASH_FWD};
    const struct adv_ranking ranking = {.tiles = tiles, .times = times, .count = 12};
    const int count = adv_splash_candidates(&bench.machine, &request, &ranking, list);
    const int five = adv_tune_choose(list, count, 5);
    assert_int_equal(five, 5);
    assert_true(holds(list, five, 9)); /* 2048 / 2048 with the favourite part */
    assert_true(holds(list, five, 2)); /* 4096 / 4096 with 256: its favourite, scores kept at 2^20 */
}

/* Each number of buffers that fits is a candidate; the ranking's own is the favourite. */
static void buffers_are_variants_of_a_tile(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    const struct adv_gmm_shape shape = {.m = 4096,
                                        .k = 1024,
                                        .n = 1024,
                                        .num_groups = 4,
                                        .distribution = ADV_GROUPS_BALANCED,
                                        .lhs = ADV_FORMAT_BF16,
                                        .rhs = ADV_FORMAT_BF16,
                                        .out = ADV_FORMAT_BF16,
                                        .version = 1};
    struct adv_gmm_tile tiles[2];
    struct adv_kernel_time times[2];
    struct adv_tile_candidate list[ADV_CHOICE_CANDIDATES];
    int found = 0;
    long evaluated = 0;
    assert_int_equal(
        tune_gmm(&bench.machine, ADV_KERNEL_TGMM, &shape, 2, tiles, times, &found, &evaluated, NULL), ADV_OK);
    assert_int_equal(tiles[0].input_buffer_count, 2); /* arrays of 128 */
    const struct adv_kernel_request request = {.kernel = ADV_KERNEL_TGMM, .gmm = shape};
    const struct adv_ranking ranking = {.tiles = tiles, .times = times, .count = found};
    const int count = adv_gmm_candidates(&bench.machine, &request, &ranking, list);
    assert_true(count > found);
    for (int i = 0; i < count; i++)
        assert_true(list[i].share == 0.0 || (list[i].share == 1.0) == (list[i].buffers == 2));
    bench.chip.mxu_rows = bench.chip.mxu_columns = 256;
    assert_int_equal(
        tune_gmm(&bench.machine, ADV_KERNEL_TGMM, &shape, 2, tiles, times, &found, &evaluated, NULL), ADV_OK);
    assert_true(tiles[0].input_buffer_count > 2 || tiles[1].input_buffer_count > 2);
}

/* Rows of 8 bits come 32 at a time: the wide space has no tile of 16 of them, with which the whole of k would
 * fit. */
static void a_refusal_offers_the_wide_space_only_where_it_helps(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.chip.vmem_bytes_per_core = 128.0 * 1048576.0;
    bench.machine.scoped_vmem_limit_bytes = 16.0 * 1048576.0;
    struct adv_gmm_shape shape = {.m = 64,
                                  .k = 60001,
                                  .n = 128,
                                  .num_groups = 1,
                                  .distribution = ADV_GROUPS_BALANCED,
                                  .lhs = ADV_FORMAT_INT8,
                                  .rhs = ADV_FORMAT_INT8,
                                  .out = ADV_FORMAT_BF16,
                                  .version = 1};
    struct adv_gmm_tile tile;
    struct adv_kernel_time time;
    int found = 0;
    long evaluated = 0;
    adv_err err = adv_err_empty();
    assert_int_equal(
        tune_gmm(&bench.machine, ADV_KERNEL_GMM, &shape, 1, &tile, &time, &found, &evaluated, &err),
        ADV_E_ILLEGAL);
    assert_null(strstr(err.findings[0].hint, "wide"));
    shape.k = 54001; /* 32 rows fit, 64 do not */
    adv_err_init(&err);
    assert_int_equal(
        tune_gmm(&bench.machine, ADV_KERNEL_GMM, &shape, 1, &tile, &time, &found, &evaluated, &err),
        ADV_E_ILLEGAL);
    assert_non_null(strstr(err.findings[0].hint, "\"wide\": true"));
    bench.machine.wide_tiles = true;
    assert_int_equal(
        tune_gmm(&bench.machine, ADV_KERNEL_GMM, &shape, 1, &tile, &time, &found, &evaluated, &err), ADV_OK);
    assert_int_equal(tile.tile_m, 32);
}

/* Where parts of a key block cost the same, tune answers with the one that winners have: 256 on arrays of
 * 128, 512 on arrays of 256 until the tile of scores grows beyond 2^20. */
static void among_equals_the_winners_part_is_first(void **state)
{
    (void)state;
    struct kernel_bench bench;
    kernel_bench_init(&bench);
    bench.constants.splash_fwd_vreg_s = 1e-9;
    bench.chip.vmem_scoped_default_bytes = 1e9;
    const struct adv_attention_shape shape = {.batch = 1,
                                              .q_heads = 2,
                                              .kv_heads = 2,
                                              .q_len = 1024,
                                              .kv_len = 1024,
                                              .head_dim_qk = 128,
                                              .head_dim_v = 128,
                                              .context_shards = 1,
                                              .dtype = ADV_FORMAT_BF16};
    const struct adv_attention_flags flags = {0};
    for (int width = 128; width <= 256; width += 128) {
        struct adv_attention_tile tile;
        struct adv_kernel_time time;
        int found = 0;
        long evaluated = 0;
        bench.chip.mxu_rows = bench.chip.mxu_columns = width;
        assert_int_equal(tune_splash(&bench.machine, ADV_KERNEL_SPLASH_FWD, &shape, &flags, 1, &tile, &time,
                                     &found, &evaluated, NULL),
                         ADV_OK);
        assert_int_equal(tile.blocks.block_kv_compute, width == 128 ? 256 : 512);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_offers_the_wide_space_only_where_it_helps),
        cmocka_unit_test(the_predicted_fastest_is_first_and_times_never_fall),
        cmocka_unit_test(one_family_does_not_crowd_out_others),
        cmocka_unit_test(a_near_duplicate_only_fills_up),
        cmocka_unit_test(chances_add_up_to_one),
        cmocka_unit_test(the_best_blocks_of_todays_sweeps_are_in_the_list),
        cmocka_unit_test(buffers_are_variants_of_a_tile),
        cmocka_unit_test(among_equals_the_winners_part_is_first),
    };
    return run_group(tests);
}
