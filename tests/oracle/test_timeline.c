/* The timeline's walk over the grid ends when the closed form says the kernel does, whatever the shape. */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/base/limits.h"
#include "engine/kernel/timeline.h"
#include "engine/kernel/xent.h"
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

/* The first load comes before anything is computed, and the last store after everything, unless the closed
 * form waits for less in all. */
static void ends_are_exposed(const struct adv_timeline *timeline, const struct adv_kernel_time *time)
{
    double waited_s = 0.0;
    for (int i = 0; i < time->parts_count; i++)
        if (strcmp(time->parts[i].name, "dma_exposed") == 0) waited_s = time->parts[i].time_s;
    const struct adv_timeline_step *first = &timeline->steps[0],
                                   *last = &timeline->steps[timeline->count - 1];
    const double slack = timeline->end_s * 1e-9;
    const struct adv_span load = first->lanes[ADV_LANE_DMA_IN], store = last->lanes[ADV_LANE_DMA_OUT];
    double starts_s = first->whole.end_s, stops_s = last->whole.start_s;
    for (int lane = ADV_LANE_MXU; lane <= ADV_LANE_VECTOR; lane++) {
        if (first->lanes[lane].end_s > first->lanes[lane].start_s)
            starts_s = fmin(starts_s, first->lanes[lane].start_s);
        stops_s = fmax(stops_s, last->lanes[lane].end_s);
    }
    const double load_s = load.end_s - load.start_s, store_s = store.end_s - store.start_s;
    assert_true(starts_s >= fmin(load.end_s, waited_s) - slack);
    if (timeline->omitted_count > 0.0 || waited_s < load_s + store_s || !timeline->walked) return;
    assert_true(stops_s <= timeline->end_s - store_s + slack);
}

static adv_code splash_timeline(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                const struct adv_attention_shape *shape,
                                const struct adv_attention_tile *tile,
                                const struct adv_attention_flags *flags, struct adv_timeline *timeline,
                                adv_err *err)
{
    const struct adv_kernel_request request = {
        .kernel = kernel, .attention = *shape, .attention_flags = *flags, .tile.attention = *tile};
    return adv_splash_timeline(machine, &request, timeline, err);
}

/* `tile` is NULL for version 2, which has its own. */
static adv_code gmm_timeline(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                             const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile,
                             struct adv_timeline *timeline, adv_err *err)
{
    struct adv_kernel_request request = {.kernel = kernel, .gmm = *shape};
    if (tile) request.tile.gmm = *tile;
    return adv_gmm_timeline(machine, &request, timeline, err);
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
    assert_int_equal(splash_timeline(&machine, kernel, shape, &tile, flags, &timeline, &err), ADV_OK);
    assert_true(timeline.walked);
    if (fabs(timeline.end_s / inside_s(&time) - 1.0) > 1e-9 ||
        (double)timeline.count + timeline.omitted_count != time.grid_steps)
        fail_msg(
            "%s %s q %ld kv %ld tile %d x %d window %ld chunk %ld shards %d: ends at %.12g, closed %.12g",
            chip, adv_kernel_name(kernel), (long)shape->q_len, (long)shape->kv_len, q, kv,
            (long)shape->window, (long)shape->chunk, shape->context_shards, timeline.end_s, inside_s(&time));
    is_drawable(&timeline);
    ends_are_exposed(&timeline, &time);
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
                    assert_int_equal(gmm_timeline(&machine, kernel, &s, &tiles[t], &timeline, &err), ADV_OK);
                    assert_true(timeline.walked && !timeline.representative);
                    assert_close(timeline.end_s, inside_s(&time), 1e-9);
                    assert_close((double)timeline.count + timeline.omitted_count, time.grid_steps, 0.0);
                    is_drawable(&timeline);
                    ends_are_exposed(&timeline, &time);
                }
}

/* A ring's steps are those of its calls: every shard of keys that the rows see, for all heads. */
static void a_ring_ends_when_the_closed_form_says(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p"};
    static const int blocks[] = {128, 512, 1024};
    static const int64_t windows[] = {0, 0, 300, 2000}, chunks[] = {0, 512, 0, 0};
    int waits_for_hbm = 0;
    for (int chip = 0; chip < 3; chip++)
        for (int kernel = ADV_KERNEL_SPLASH_FWD; kernel <= ADV_KERNEL_SPLASH_BWD_DKV; kernel++)
            for (int b = 0; b < 9; b++)
                for (int mask = 0; mask < 10; mask++) {
                    const struct adv_attention_shape s = {.batch = 1,
                                                          .q_heads = 4,
                                                          .kv_heads = mask % 2 ? 1 : 4,
                                                          .q_len = 1024,
                                                          .kv_len = 4096,
                                                          .head_dim_qk = 128,
                                                          .head_dim_v = mask == 3 ? 64 : 128,
                                                          .causal = mask > 1,
                                                          .window = mask > 1 ? windows[mask / 2 % 4] : 0,
                                                          .chunk = mask > 1 ? chunks[mask / 2 % 4] : 0,
                                                          .context_shards = 4,
                                                          .context_load_balanced = mask % 2,
                                                          .context_ring = true};
                    const struct adv_attention_flags flags = {.kernel_only = mask == 2};
                    waits_for_hbm += splash_case(chips[chip], (enum adv_kernel)kernel, &s, blocks[b / 3],
                                                 blocks[b % 3], &flags);
                }
    assert_true(waits_for_hbm > 20);
}

static void version_2_ends_when_the_closed_form_says(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    static const int64_t groups[][5] = {
        {512, 512, 512, 512, 2048}, {100, 0, 1300, 1, 2695}, {0, 0, 4096, 0, 0}, {1, 1, 1, 1, 4092}};
    static const int64_t depths[] = {1024, 700, 7168}, widths[] = {128, 1408, 14336};
    for (int chip = 0; chip < 5; chip++)
        for (int g = 0; g < 4; g++)
            for (int variant = 0; variant < 18; variant++) {
                const struct adv_kernel_machine machine = machine_of(chips[chip]);
                const struct adv_gmm_shape s = {.m = 4096,
                                                .k = depths[variant % 3],
                                                .n = widths[variant / 3 % 3],
                                                .num_groups = 5,
                                                .distribution = ADV_GROUPS_GIVEN,
                                                .group_sizes = groups[g],
                                                .return_residuals = variant >= 9,
                                                .version = 2};
                struct adv_kernel_time time;
                struct adv_timeline timeline = {.steps = steps, .capacity = 2048};
                adv_err err;
                adv_err_init(&err);
                assert_int_equal(adv_gmm_time(&machine, ADV_KERNEL_GMM, &s, NULL, &time, &err), ADV_OK);
                assert_int_equal(gmm_timeline(&machine, ADV_KERNEL_GMM, &s, NULL, &timeline, &err), ADV_OK);
                assert_true(timeline.walked && !timeline.representative && !timeline.why_not);
                assert_close(timeline.end_s, inside_s(&time), 1e-9);
                assert_close((double)timeline.count + timeline.omitted_count, time.grid_steps, 0.0);
                is_drawable(&timeline);
                ends_are_exposed(&timeline, &time);
            }
}

static void the_loss_ends_when_the_closed_form_says(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    static const struct adv_xent_tile tiles[] = {
        {1024, 512, 2048}, {1024, 4096, 256}, {2048, 128, 1024}, {512, 2048, 4096}, {128, 2048, 128}};
    static const struct adv_xent_shape shapes[] = {
        {4096, 4096, 32000}, {2048, 2880, 10000}, {2048, 512, 1000}};
    for (int chip = 0; chip < 5; chip++)
        for (int t = 0; t < 5; t++)
            for (int variant = 0; variant < 6; variant++) {
                const enum adv_kernel kernel =
                    variant % 2 ? ADV_KERNEL_LINEAR_XENT_BWD : ADV_KERNEL_LINEAR_XENT;
                const struct adv_kernel_machine machine = machine_of(chips[chip]);
                const struct adv_kernel_request request = {
                    .kernel = kernel, .xent = shapes[variant / 2], .tile.xent = tiles[t]};
                struct adv_kernel_time time;
                struct adv_timeline timeline = {.steps = steps, .capacity = 2048};
                adv_err err;
                adv_err_init(&err);
                assert_int_equal(adv_family_xent.time(&machine, &request, &request.tile, &time, &err),
                                 ADV_OK);
                assert_int_equal(adv_family_xent.timeline(&machine, &request, &timeline, &err), ADV_OK);
                assert_true(timeline.walked);
                assert_close(timeline.end_s, inside_s(&time), 1e-9);
                assert_close((double)timeline.count + timeline.omitted_count, time.grid_steps, 0.0);
                is_drawable(&timeline);
                ends_are_exposed(&timeline, &time);
            }
}

/* Statistics are taken of logits that are made, gradients are made of a softmax that is taken. */
static void the_loss_works_in_the_order_of_its_operations(void **state)
{
    (void)state;
    const struct adv_kernel_machine machine = machine_of("v6e");
    const struct adv_xent_shape s = {2048, 2048, 8192};
    const struct adv_xent_tile tile = {1024, 512, 2048};
    for (int kernel = ADV_KERNEL_LINEAR_XENT; kernel <= ADV_KERNEL_LINEAR_XENT_BWD; kernel++) {
        struct adv_timeline timeline = {.steps = steps, .capacity = 2048};
        adv_err err;
        adv_err_init(&err);
        const struct adv_kernel_request request = {
            .kernel = (enum adv_kernel)kernel, .xent = s, .tile.xent = tile};
        assert_int_equal(adv_family_xent.timeline(&machine, &request, &timeline, &err), ADV_OK);
        int seen = 0;
        for (int i = 0; i < timeline.count; i++) {
            const struct adv_span mxu = steps[i].lanes[ADV_LANE_MXU],
                                  vector = steps[i].lanes[ADV_LANE_VECTOR];
            if (!(vector.end_s > vector.start_s)) continue;
            const bool forward = kernel == ADV_KERNEL_LINEAR_XENT;
            const double later_s = forward ? vector.start_s - mxu.end_s : mxu.start_s - vector.end_s;
            assert_true(later_s >= -timeline.end_s * 1e-12);
            assert_int_equal(steps[i].at[2], forward ? 3 : 0); /* the last block of the width; the first */
            assert_int_equal(steps[i].at[3], forward ? 0 : 1);
            seen++;
        }
        assert_int_equal(seen, 2 * 4);
    }
}

/* XLA's tiles are not known: one step, and why. */
static void what_xla_tiles_is_one_step(void **state)
{
    (void)state;
    const struct adv_kernel_machine machine = machine_of("v6e");
    const struct adv_matmul_shape s = {.m = 4096, .k = 1024, .n = 4096};
    struct adv_kernel_time time;
    struct adv_timeline timeline = {.steps = steps, .capacity = 2048};
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_matmul_time(&machine, &s, &time, &err), ADV_OK);
    adv_one_step_timeline(&machine, &time, &timeline);
    assert_int_equal(timeline.count, 1);
    assert_false(timeline.walked);
    assert_non_null(timeline.why_not);
    assert_close(timeline.end_s, inside_s(&time), 0.0);
    assert_close(steps[0].whole.end_s, timeline.end_s, 1e-12);
    is_drawable(&timeline);
}

/* The groups that stand for a distribution cost about what the distribution is expected to. */
static void made_up_groups_cost_what_their_distribution_does(void **state)
{
    (void)state;
    const struct adv_kernel_machine machine = machine_of("tpu7x");
    for (int d = 2 * ADV_GROUPS_BALANCED; d <= 2 * ADV_GROUPS_WORST + 1; d++)
        for (int groups = 8; groups <= 256; groups *= 4) {
            const struct adv_gmm_shape s = {.m = 65536,
                                            .k = 2048,
                                            .n = 1024,
                                            .num_groups = groups,
                                            .distribution = (enum adv_group_distribution)(d / 2),
                                            .version = 1 + d % 2};
            const struct adv_gmm_tile tile = {256, 2048, 1024, 2};
            struct adv_kernel_time time;
            struct adv_timeline timeline = {.steps = steps, .capacity = 100};
            adv_err err;
            adv_err_init(&err);
            assert_int_equal(adv_gmm_time(&machine, ADV_KERNEL_GMM, &s, &tile, &time, &err), ADV_OK);
            assert_int_equal(gmm_timeline(&machine, ADV_KERNEL_GMM, &s, &tile, &timeline, &err), ADV_OK);
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
            splash_timeline(&machine, (enum adv_kernel)kernel, &s, &tile, &flags, &timeline, &err), ADV_OK);
        assert_false(timeline.walked);
        assert_non_null(timeline.why_not);
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
        cmocka_unit_test(a_ring_ends_when_the_closed_form_says),
        cmocka_unit_test(version_2_ends_when_the_closed_form_says),
        cmocka_unit_test(the_loss_ends_when_the_closed_form_says),
        cmocka_unit_test(the_loss_works_in_the_order_of_its_operations),
        cmocka_unit_test(what_xla_tiles_is_one_step),
        cmocka_unit_test(made_up_groups_cost_what_their_distribution_does),
        cmocka_unit_test(a_long_grid_is_cut_and_counted),
    };
    return run_group_with_catalog(tests);
}
