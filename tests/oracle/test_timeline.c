/* The timeline's walk over the grid ends when the closed form says the kernel does, whatever the shape. */
#include "tests/unit/check.h"

#include "engine/base/limits.h"
#include "engine/kernel/timeline.h"
#include "tests/unit/catalog_fixture.h"

static struct adv_timeline_step steps[2048];

static struct adv_kernel_machine machine_of(const char *name)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, name);
    return (struct adv_kernel_machine){.chip = &chip->chip, .constants = &chip->constants};
}

static double inside_s(const struct adv_kernel_time *time)
{
    double seconds = time->time_s;
    for (int i = 0; i < time->parts_count; i++)
        if (adv_part_is_outside(&time->parts[i])) seconds -= time->parts[i].time_s;
    return seconds;
}

/* Steps follow each other, bars lie inside the kernel, DMA bars never overlap. */
static void is_drawable(const struct adv_timeline *timeline)
{
    double moved = 0.0;
    const double end = timeline->end_s * (1.0 + 1e-9);
    for (int i = 0; i < timeline->count; i++) {
        const struct adv_timeline_step *s = &timeline->steps[i];
        assert_true(s->whole.end_s >= s->whole.start_s && s->whole.end_s <= end);
        if (i > 0) assert_close(s->whole.start_s, timeline->steps[i - 1].whole.end_s, 0.0);
        for (int lane = 0; lane < ADV_LANES; lane++) {
            assert_true(s->lanes[lane].end_s >= s->lanes[lane].start_s);
            assert_true(s->lanes[lane].start_s >= -end * 1e-9 && s->lanes[lane].end_s <= end);
        }
        for (int lane = ADV_LANE_MXU; lane <= ADV_LANE_VECTOR; lane++) {
            assert_true(s->lanes[lane].start_s >= s->whole.start_s - end * 1e-9);
            assert_true(s->lanes[lane].end_s <= s->whole.end_s + end * 1e-9);
        }
        assert_true(s->lanes[ADV_LANE_DMA_IN].start_s >= moved - end * 1e-9);
        moved = s->lanes[ADV_LANE_DMA_OUT].end_s;
    }
}

static int splash_case(const char *chip, enum adv_kernel kernel, const struct adv_attention_shape *shape,
                       int q, int kv, const struct adv_attention_flags *flags)
{
    const struct adv_kernel_machine machine = machine_of(chip);
    const struct adv_attention_tile tile = {.blocks = {q, kv, 128, q, kv, 128, q, kv}};
    struct adv_kernel_time time;
    struct adv_timeline timeline = {.steps = steps, .capacity = 2048};
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_splash_time(&machine, kernel, shape, &tile, flags, &time, &err), ADV_OK);
    assert_int_equal(adv_splash_timeline(&machine, kernel, shape, &tile, flags, &timeline, &err), ADV_OK);
    assert_true(timeline.walked);
    if (fabs(timeline.end_s / inside_s(&time) - 1.0) > 1e-9 ||
        (double)timeline.count + timeline.omitted_count != time.grid_steps)
        fail_msg(
            "%s %s q %ld kv %ld tile %d x %d window %ld chunk %ld shards %d: ends at %.12g, closed %.12g",
            chip, adv_kernel_name(kernel), (long)shape->q_len, (long)shape->kv_len, q, kv,
            (long)shape->window, (long)shape->chunk, shape->context_shards, timeline.end_s, inside_s(&time));
    is_drawable(&timeline);
    return time.bound == ADV_RES_HBM;
}

static void attention_ends_when_the_closed_form_says(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    static const int blocks[] = {128, 256, 1024};
    static const int64_t windows[] = {0, 300}, chunks[] = {0, 512}, segments[] = {700, 1, 1347};
    int waits_for_hbm = 0, cases = 0;
    for (int chip = 0; chip < 5; chip++)
        for (int kernel = ADV_KERNEL_SPLASH_FWD; kernel <= ADV_KERNEL_SPLASH_BWD_DKV; kernel++)
            for (int b = 0; b < 9; b++)
                for (int mask = 0; mask < 12; mask++) {
                    struct adv_attention_shape s = {.batch = 1 + b % 2,
                                                    .q_heads = 4,
                                                    .kv_heads = mask % 2 ? 1 : 4,
                                                    .q_len = 2048,
                                                    .kv_len = 2048,
                                                    .head_dim_qk = mask % 3 ? 128 : 192,
                                                    .head_dim_v = 128,
                                                    .causal = mask > 0,
                                                    .window = windows[mask % 2],
                                                    .chunk = chunks[mask / 2 % 2],
                                                    .segment_ids = mask == 5,
                                                    .context_shards = 1};
                    const struct adv_attention_flags flags = {.dq_reduction_steps = mask % 2 ? 3 : 0};
                    if (mask >= 8) {
                        s.q_len = 1024;
                        s.kv_len = mask == 11 ? 2048 : 4096;
                        s.context_shards = mask == 11 ? 1 : 4;
                        s.context_load_balanced = mask == 9;
                    }
                    if (mask == 6) {
                        s.segment_ids = true;
                        s.segment_sizes = segments;
                        s.segment_sizes_count = 3;
                    }
                    waits_for_hbm += splash_case(chips[chip], (enum adv_kernel)kernel, &s, blocks[b / 3],
                                                 blocks[b % 3], &flags);
                    cases++;
                }
    assert_true(waits_for_hbm > 20 && waits_for_hbm < cases / 2); /* both kinds were walked */
}

static void grouped_matmuls_end_when_the_closed_form_says(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e"};
    static const int64_t groups[][5] = {{512, 512, 512, 512, 2048},
                                        {100, 0, 1300, 1, 2695},
                                        {0, 0, 4096, 0, 0},
                                        {1, 1, 1, 1, 4092},
                                        {130, 126, 1000, 24, 2816}};
    static const struct adv_gmm_tile tiles[] = {{128, 512, 256, 2},
                                                {256, 1024, 512, 2},
                                                {512, 256, 1024, 3},
                                                {1024, 1024, 384, 4},
                                                {64, 128, 128, 2}};
    static const int64_t depths[] = {1024, 700};
    for (int chip = 0; chip < 4; chip++)
        for (int g = 0; g < 5; g++)
            for (int t = 0; t < 5; t++)
                for (int variant = 0; variant < 8; variant++) {
                    const enum adv_kernel kernel = variant & 1 ? ADV_KERNEL_TGMM : ADV_KERNEL_GMM;
                    const struct adv_kernel_machine machine = machine_of(chips[chip]);
                    const struct adv_gmm_shape s = {.m = 4096,
                                                    .k = depths[variant / 2 % 2],
                                                    .n = 1408,
                                                    .num_groups = 5,
                                                    .distribution = ADV_GROUPS_GIVEN,
                                                    .group_sizes = groups[g],
                                                    .return_residuals = variant >= 4,
                                                    .scale_blocks = variant >= 4 ? 2 : 0,
                                                    .version = 1};
                    struct adv_kernel_time time;
                    struct adv_timeline timeline = {.steps = steps, .capacity = 2048};
                    adv_err err;
                    adv_err_init(&err);
                    assert_int_equal(adv_gmm_time(&machine, kernel, &s, &tiles[t], &time, &err), ADV_OK);
                    assert_int_equal(adv_gmm_timeline(&machine, kernel, &s, &tiles[t], &timeline, &err),
                                     ADV_OK);
                    assert_true(timeline.walked && !timeline.representative);
                    assert_close(timeline.end_s, inside_s(&time), 1e-9);
                    assert_close((double)timeline.count + timeline.omitted_count, time.grid_steps, 0.0);
                    is_drawable(&timeline);
                }
}

/* The groups that stand for a distribution cost about what the distribution is expected to. */
static void made_up_groups_cost_what_their_distribution_does(void **state)
{
    (void)state;
    const struct adv_kernel_machine machine = machine_of("tpu7x");
    for (int d = ADV_GROUPS_BALANCED; d <= ADV_GROUPS_WORST; d++)
        for (int groups = 8; groups <= 256; groups *= 4) {
            const struct adv_gmm_shape s = {.m = 65536,
                                            .k = 2048,
                                            .n = 1024,
                                            .num_groups = groups,
                                            .distribution = (enum adv_group_distribution)d,
                                            .version = 1};
            const struct adv_gmm_tile tile = {256, 2048, 1024, 2};
            struct adv_kernel_time time;
            struct adv_timeline timeline = {.steps = steps, .capacity = 100};
            adv_err err;
            adv_err_init(&err);
            assert_int_equal(adv_gmm_time(&machine, ADV_KERNEL_GMM, &s, &tile, &time, &err), ADV_OK);
            assert_int_equal(adv_gmm_timeline(&machine, ADV_KERNEL_GMM, &s, &tile, &timeline, &err), ADV_OK);
            assert_true(timeline.representative && timeline.count == 100);
            assert_close(timeline.end_s, inside_s(&time), 0.03);
        }
}

/* A long grid is listed up to the capacity and ends at the closed form; nothing walks for hours. */
static void a_long_grid_is_cut_and_counted(void **state)
{
    (void)state;
    const struct adv_kernel_machine machine = machine_of("v6e");
    const struct adv_attention_shape s = {.batch = 1e6,
                                          .q_heads = 65536,
                                          .kv_heads = 1,
                                          .q_len = 1 << 20,
                                          .kv_len = 1 << 20,
                                          .head_dim_qk = 128,
                                          .head_dim_v = 128,
                                          .causal = true,
                                          .window = 1024,
                                          .context_shards = 1};
    for (int kernel = ADV_KERNEL_SPLASH_FWD; kernel <= ADV_KERNEL_SPLASH_BWD_DKV; kernel++) {
        const struct adv_attention_tile tile = {.blocks = {128, 128, 128, 128, 128, 128, 128, 128}};
        const struct adv_attention_flags flags = {0};
        struct adv_kernel_time time;
        struct adv_timeline timeline = {.steps = steps, .capacity = ADV_LIMIT_TIMELINE_STEPS};
        adv_err err;
        adv_err_init(&err);
        assert_int_equal(adv_splash_time(&machine, (enum adv_kernel)kernel, &s, &tile, &flags, &time, &err),
                         ADV_OK);
        assert_int_equal(
            adv_splash_timeline(&machine, (enum adv_kernel)kernel, &s, &tile, &flags, &timeline, &err),
            ADV_OK);
        assert_false(timeline.walked);
        assert_int_equal(timeline.count, ADV_LIMIT_TIMELINE_STEPS);
        assert_close(timeline.end_s, inside_s(&time), 1e-9);
        assert_close((double)timeline.count + timeline.omitted_count, time.grid_steps, 1e-12);
        assert_true(isnan(timeline.omitted_s[ADV_LANE_MXU]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_ends_when_the_closed_form_says),
        cmocka_unit_test(grouped_matmuls_end_when_the_closed_form_says),
        cmocka_unit_test(made_up_groups_cost_what_their_distribution_does),
        cmocka_unit_test(a_long_grid_is_cut_and_counted),
    };
    return run_group_with_catalog(tests);
}
