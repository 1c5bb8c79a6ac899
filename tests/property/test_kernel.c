/* Rules of every kernel, chip and tile whatever the fit says. */
#include "tests/unit/check.h"

#include "engine/catalog/catalog.h"
#include "engine/kernel/tune_space.h"
#include "engine/kernel/xent.h"
#include "tests/unit/kernel_machine.h"
#include "tests/unit/tuned.h"
#include "tests/unit/draw.h"

static struct adv_catalog *catalog;
static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
enum { CHIPS = 5, CASES = 300 };

static uint64_t random_state = 88172645463325252u;
static int64_t pick(int64_t count)
{
    return (int64_t)(draw_next(&random_state) % (uint64_t)count);
}

static struct adv_attention_shape any_attention(void)
{
    static const int dims[] = {64, 72, 96, 128, 192, 256, 512};
    struct adv_attention_shape s = {.batch = 1.0 + (double)pick(8),
                                    .q_heads = 8 << pick(3),
                                    .kv_heads = 1 << pick(4),
                                    .causal = pick(3) > 0,
                                    .context_shards = 1,
                                    .dtype = ADV_FORMAT_BF16};
    s.q_len = s.kv_len = INT64_C(1024) << pick(5);
    s.head_dim_qk = dims[pick(7)];
    s.head_dim_v = pick(4) ? s.head_dim_qk : 128;
    if (pick(4) == 0) s.window = 512 << pick(4);
    if (pick(6) == 0) s.context_shards = 4, s.context_load_balanced = pick(2), s.q_len /= 4;
    return s;
}

static struct adv_attention_tile any_tile(void)
{
    const int q = 128 << pick(2), kv = 128 << pick(3), c = pick(2) ? 128 : kv;
    return (struct adv_attention_tile){.blocks = {q, kv, c, q, kv, c, q, kv}};
}

static struct adv_gmm_shape any_gmm(void)
{
    return (struct adv_gmm_shape){.m = INT64_C(8192) << pick(5),
                                  .k = 256 * (1 + pick(20)),
                                  .n = 256 * (1 + pick(20)),
                                  .num_groups = 1 << pick(9),
                                  .distribution = (enum adv_group_distribution)(1 + pick(4)),
                                  .lhs = ADV_FORMAT_BF16,
                                  .rhs = ADV_FORMAT_BF16,
                                  .out = ADV_FORMAT_BF16,
                                  .version = 1};
}

static struct adv_kernel_machine machine_of(int chip)
{
    const struct adv_catalog_chip *record = adv_catalog_chip(catalog, chips[chip]);
    return (struct adv_kernel_machine){.chip = &record->chip, .constants = &record->constants};
}

static struct adv_kernel_time attention_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                             const struct adv_attention_shape *shape,
                                             const struct adv_attention_tile *tile)
{
    const struct adv_attention_flags flags = {0};
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_splash_time(machine, kernel, shape, tile, &flags, &time, &err), ADV_OK);
    return time;
}

static struct adv_kernel_time gmm_time(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                                       const struct adv_gmm_shape *shape, const struct adv_gmm_tile *tile)
{
    struct adv_kernel_time time;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_gmm_time(machine, kernel, shape, tile, &time, &err), ADV_OK);
    return time;
}

static void parts_add_up_to_the_time(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct adv_kernel_machine machine = machine_of((int)pick(CHIPS));
        const struct adv_attention_shape attention = any_attention();
        const struct adv_attention_tile tile = any_tile();
        const struct adv_kernel_time a =
            attention_time(&machine, (enum adv_kernel)pick(5), &attention, &tile);
        assert_close(kernel_parts_sum(&a), a.time_s, 1e-9);
        const struct adv_gmm_shape gmm = any_gmm();
        const struct adv_gmm_tile blocks = {128 << pick(3), 256, 256 << pick(2), 2};
        const struct adv_kernel_time g =
            gmm_time(&machine, pick(2) ? ADV_KERNEL_GMM : ADV_KERNEL_TGMM, &gmm, &blocks);
        assert_close(kernel_parts_sum(&g), g.time_s, 1e-9);
        assert_true(a.parts_count <= ADV_KERNEL_PARTS && g.parts_count <= ADV_KERNEL_PARTS);
    }
}

/* Useful FLOPs at the peak and the operands at the specified bandwidth are a floor (fitted array rates may
 * exceed the published peak by 2 %). */
static void nothing_beats_the_roofline(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        const struct adv_kernel_machine machine = machine_of((int)pick(CHIPS));
        const struct adv_chip *chip = machine.chip;
        const double peak = 1.02 * chip->peak_bf16_flops_per_s_per_chip / chip->devices_per_chip;
        const double bandwidth = chip->hbm_bytes_per_s_per_chip / chip->devices_per_chip;
        const struct adv_gmm_shape s = any_gmm();
        const struct adv_gmm_tile tile = {256, 256, 256, 2};
        const struct adv_kernel_time time = gmm_time(&machine, ADV_KERNEL_GMM, &s, &tile);
        assert_true(time.time_s >= 2.0 * (double)s.m * (double)s.k * (double)s.n / peak);
        assert_true(time.time_s >= 2.0 * (double)s.m * (double)(s.k + s.n) / bandwidth);
        struct adv_attention_shape a = any_attention();
        a.causal = false;
        a.window = 0;
        const struct adv_attention_tile blocks = any_tile();
        const double pairs = a.batch * a.q_heads * (double)a.q_len * (double)a.kv_len;
        const struct adv_kernel_time t = attention_time(&machine, ADV_KERNEL_SPLASH_FWD, &a, &blocks);
        assert_true(t.time_s >= 2.0 * pairs * (a.head_dim_qk + a.head_dim_v) / peak);
        const struct adv_kernel_time b = attention_time(&machine, ADV_KERNEL_SPLASH_BWD_FUSED, &a, &blocks);
        assert_true(b.time_s >= 2.0 * pairs * (3.0 * a.head_dim_qk + 2.0 * a.head_dim_v) / peak);
    }
}

static void more_bandwidth_is_never_slower(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct adv_kernel_machine machine = machine_of((int)pick(CHIPS));
        struct adv_chip faster = *machine.chip;
        faster.hbm_bytes_per_s_per_chip *= 1.5;
        struct adv_kernel_machine better = machine;
        better.chip = &faster;
        const struct adv_attention_shape attention = any_attention();
        const struct adv_attention_tile tile = any_tile();
        const enum adv_kernel kernel = (enum adv_kernel)pick(5);
        assert_true(attention_time(&better, kernel, &attention, &tile).time_s <=
                    attention_time(&machine, kernel, &attention, &tile).time_s);
        const struct adv_gmm_shape gmm = any_gmm();
        const struct adv_gmm_tile blocks = {128 << pick(3), 256 << pick(3), 256 << pick(3), 2};
        assert_true(gmm_time(&better, ADV_KERNEL_GMM, &gmm, &blocks).time_s <=
                    gmm_time(&machine, ADV_KERNEL_GMM, &gmm, &blocks).time_s);
        assert_true(adv_stream_time_s(&better, 1e9) < adv_stream_time_s(&machine, 1e9));
    }
}

/* A causal mask, a window and balanced shards only take work away. */
static void masks_never_add_work_to_large_sequences(void **state)
{
    (void)state;
    for (int chip = 0; chip < CHIPS; chip++) {
        const struct adv_kernel_machine machine = machine_of(chip);
        const struct adv_attention_tile tile = {.blocks = {512, 512, 512, 512, 512, 512, 512, 512}};
        for (int64_t length = 8192; length <= 65536; length *= 2) {
            struct adv_attention_shape s = {.batch = 1,
                                            .q_heads = 8,
                                            .kv_heads = 8,
                                            .q_len = length,
                                            .kv_len = length,
                                            .head_dim_qk = 128,
                                            .head_dim_v = 128,
                                            .context_shards = 1,
                                            .dtype = ADV_FORMAT_BF16};
            for (int kernel = 0; kernel < 5; kernel++) {
                s.causal = false;
                s.window = 0;
                const double full = attention_time(&machine, (enum adv_kernel)kernel, &s, &tile).time_s;
                s.causal = true;
                const double causal = attention_time(&machine, (enum adv_kernel)kernel, &s, &tile).time_s;
                s.window = 1024;
                const double window = attention_time(&machine, (enum adv_kernel)kernel, &s, &tile).time_s;
                assert_true(window < causal && causal < full);
            }
        }
    }
}

/* The tuner's first is the fastest of its list, fits, and a higher limit never makes it slower. */
static void tuner_ranks_legal_tiles_by_time(void **state)
{
    (void)state;
    enum { TOP = 8 };
    for (int i = 0; i < 40; i++) {
        struct adv_kernel_machine machine = machine_of((int)pick(CHIPS));
        struct adv_attention_shape s = any_attention();
        s.head_dim_qk = s.head_dim_v = 128;
        const struct adv_attention_flags flags = {0};
        struct adv_attention_tile tiles[TOP];
        struct adv_kernel_time times[TOP], again;
        int found = 0;
        long evaluated = 0;
        adv_err err;
        adv_err_init(&err);
        const enum adv_kernel kernel = (enum adv_kernel)pick(4) == ADV_KERNEL_SPLASH_BWD_DQ
                                           ? ADV_KERNEL_SPLASH_FWD
                                           : ADV_KERNEL_SPLASH_BWD_FUSED;
        assert_int_equal(
            tune_splash(&machine, kernel, &s, &flags, TOP, tiles, times, &found, &evaluated, &err), ADV_OK);
        assert_true(found >= 1 && evaluated >= found);
        for (int t = 0; t < found; t++) {
            assert_true(times[t].fits_vmem);
            if (t > 0) assert_true(times[t - 1].time_s <= times[t].time_s);
            assert_int_equal(adv_splash_time(&machine, kernel, &s, &tiles[t], &flags, &again, &err), ADV_OK);
            assert_close(again.time_s, times[t].time_s, 0.0);
        }
        const double best = times[0].time_s;
        machine.scoped_vmem_limit_bytes = 2.0 * machine.chip->vmem_scoped_default_bytes;
        assert_int_equal(tune_splash(&machine, kernel, &s, &flags, 1, tiles, times, &found, &evaluated, &err),
                         ADV_OK);
        assert_true(times[0].time_s <= best);
    }
}

static void grouped_tuner_ranks_legal_tiles_by_time(void **state)
{
    (void)state;
    enum { TOP = 8 };
    for (int i = 0; i < 40; i++) {
        const struct adv_kernel_machine machine = machine_of((int)pick(CHIPS));
        const struct adv_gmm_shape s = any_gmm();
        const enum adv_kernel kernel = pick(2) ? ADV_KERNEL_GMM : ADV_KERNEL_TGMM;
        struct adv_gmm_tile tiles[TOP];
        struct adv_kernel_time times[TOP];
        int found = 0;
        long evaluated = 0;
        adv_err err;
        adv_err_init(&err);
        assert_int_equal(tune_gmm(&machine, kernel, &s, TOP, tiles, times, &found, &evaluated, &err), ADV_OK);
        for (int t = 0; t < found; t++) {
            assert_true(times[t].fits_vmem);
            assert_int_equal(s.m % tiles[t].tile_m, 0);
            if (t > 0) assert_true(times[t - 1].time_s <= times[t].time_s);
        }
    }
}

/* Lengths that tuners meet: powers of two, and what models and shards make of them. */
static int64_t any_length(void)
{
    static const int64_t factors[] = {1, 1, 2, 3, 5, 6, 7, 10, 12, 15, 20, 24, 45};
    return pick(12) == 0 ? 1 + pick(127) : (128 * factors[pick(13)]) << pick(5);
}

/* Time of the fastest attention tile. */
static double best_attention_s(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                               const struct adv_attention_shape *shape)
{
    const struct adv_attention_flags flags = {0};
    struct adv_attention_tile tile;
    struct adv_kernel_time time;
    int found = 0;
    long evaluated = 0;
    if (tune_splash(machine, kernel, shape, &flags, 1, &tile, &time, &found, &evaluated, NULL) != ADV_OK)
        return (double)INFINITY;
    return time.time_s;
}

static double best_gmm_s(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                         const struct adv_gmm_shape *shape)
{
    struct adv_gmm_tile tile;
    struct adv_kernel_time time;
    int found = 0;
    long evaluated = 0;
    if (tune_gmm(machine, kernel, shape, 1, &tile, &time, &found, &evaluated, NULL) != ADV_OK)
        return (double)INFINITY;
    return time.time_s;
}

static double best_xent_s(const struct adv_kernel_machine *machine, enum adv_kernel kernel,
                          const struct adv_xent_shape *shape)
{
    const struct adv_kernel_request request = {.kernel = kernel, .xent = *shape};
    struct adv_xent_tile tile;
    struct adv_kernel_time time;
    struct adv_ranking best = {.top_k = 1, .tiles = &tile, .times = &time};
    return adv_tune(machine, &request, &best, NULL) == ADV_OK ? time.time_s : (double)INFINITY;
}

/* The wide space has every tile of the usual one. */
static void wide_tuning_is_never_slower(void **state)
{
    (void)state;
    for (int i = 0; i < CASES / 2; i++) {
        const struct adv_kernel_machine usual = machine_of((int)pick(CHIPS));
        struct adv_kernel_machine wide = usual;
        wide.wide_tiles = true;
        struct adv_attention_shape attention = any_attention();
        attention.context_shards = 1;
        attention.q_len = any_length();
        attention.kv_len = pick(2) ? attention.q_len : any_length();
        const enum adv_kernel kernel = (enum adv_kernel)pick(5);
        assert_true(best_attention_s(&wide, kernel, &attention) <=
                    best_attention_s(&usual, kernel, &attention));
        struct adv_gmm_shape gmm = any_gmm();
        gmm.m = pick(4) ? any_length() : 16 * (1 + pick(64));
        const enum adv_kernel grouped = pick(2) ? ADV_KERNEL_GMM : ADV_KERNEL_TGMM;
        assert_true(best_gmm_s(&wide, grouped, &gmm) <= best_gmm_s(&usual, grouped, &gmm));
        const struct adv_xent_shape xent = {any_length(), 8 * (1 + pick(1024)), 1000 * (1 + pick(200))};
        const enum adv_kernel loss = pick(2) ? ADV_KERNEL_LINEAR_XENT : ADV_KERNEL_LINEAR_XENT_BWD;
        assert_true(best_xent_s(&wide, loss, &xent) <= best_xent_s(&usual, loss, &xent));
    }
}

/* MaxText's default tile takes part in the ranking: it never beats it. Only a masked contraction, which costs
 * more than the model says, is left out. */
static void no_default_tile_beats_the_ranking(void **state)
{
    (void)state;
    const struct adv_attention_flags flags = {0};
    for (int i = 0; i < CASES; i++) {
        const struct adv_kernel_machine machine = machine_of((int)pick(CHIPS));
        struct adv_attention_shape a = any_attention();
        a.q_len = any_length();
        a.kv_len = a.q_len * a.context_shards;
        a.context_load_balanced = a.context_load_balanced && a.q_len % 2 == 0;
        const enum adv_kernel kernel = (enum adv_kernel)pick(5);
        const struct adv_attention_tile tile = {.blocks = adv_tune_default_blocks(&a),
                                                .q_layout = ADV_LAYOUT_HEAD_DIM_MINOR,
                                                .k_layout = ADV_LAYOUT_HEAD_DIM_MINOR,
                                                .v_layout = ADV_LAYOUT_HEAD_DIM_MINOR};
        struct adv_kernel_time time;
        if (adv_splash_time(&machine, kernel, &a, &tile, &flags, &time, NULL) == ADV_OK && time.fits_vmem)
            assert_true(best_attention_s(&machine, kernel, &a) <= time.time_s * (1.0 + 1e-9));
        struct adv_gmm_shape g = any_gmm();
        g.n = 8 * (1 + pick(1024));
        const struct adv_gmm_tile blocks = adv_tune_default_gmm(&g);
        const enum adv_kernel grouped = pick(2) ? ADV_KERNEL_GMM : ADV_KERNEL_TGMM;
        if (g.k % blocks.tile_k || adv_gmm_time(&machine, grouped, &g, &blocks, &time, NULL) ||
            !time.fits_vmem)
            continue;
        assert_true(best_gmm_s(&machine, grouped, &g) <= time.time_s * (1.0 + 1e-9));
    }
}

/* A time that no timing stands behind says so. */
static void unmeasured_generations_say_extrapolated(void **state)
{
    (void)state;
    static const bool forward[CHIPS] = {false, false, false, true, true};
    static const bool backward[CHIPS] = {false, true, true, true, true};
    static const bool grouped[CHIPS] = {false, false, false, false, true};
    static const bool dense[CHIPS] = {false, false, true, true, true};
    const struct adv_attention_shape s = {.batch = 1,
                                          .q_heads = 8,
                                          .kv_heads = 8,
                                          .q_len = 4096,
                                          .kv_len = 4096,
                                          .head_dim_qk = 128,
                                          .head_dim_v = 128,
                                          .causal = true,
                                          .context_shards = 1,
                                          .dtype = ADV_FORMAT_BF16};
    const struct adv_attention_tile tile = {.blocks = {512, 512, 512, 512, 512, 512, 512, 512}};
    const struct adv_gmm_shape gmm = {.m = 8192,
                                      .k = 1024,
                                      .n = 1024,
                                      .num_groups = 8,
                                      .distribution = ADV_GROUPS_BALANCED,
                                      .lhs = ADV_FORMAT_BF16,
                                      .rhs = ADV_FORMAT_BF16,
                                      .out = ADV_FORMAT_BF16,
                                      .version = 1};
    const struct adv_gmm_tile blocks = {256, 1024, 512, 2};
    for (int chip = 0; chip < CHIPS; chip++) {
        const struct adv_kernel_machine machine = machine_of(chip);
        assert_int_equal(attention_time(&machine, ADV_KERNEL_SPLASH_FWD, &s, &tile).extrapolated,
                         forward[chip]);
        assert_int_equal(attention_time(&machine, ADV_KERNEL_SPLASH_BWD_FUSED, &s, &tile).extrapolated,
                         backward[chip]);
        assert_true(attention_time(&machine, ADV_KERNEL_SPLASH_BWD_DKV, &s, &tile).extrapolated);
        assert_int_equal(gmm_time(&machine, ADV_KERNEL_GMM, &gmm, &blocks).extrapolated, grouped[chip]);
        for (int format = 0; format < 2; format++) {
            struct adv_matmul_shape matmul = {4096,           4096, 4096, ADV_FORMAT_BF16, ADV_FORMAT_BF16,
                                              ADV_FORMAT_BF16};
            struct adv_kernel_time time;
            if (format) matmul.rhs = ADV_FORMAT_INT8;
            assert_int_equal(adv_matmul_time(&machine, &matmul, &time, NULL), ADV_OK);
            assert_int_equal(time.extrapolated, format || dense[chip]);
        }
    }
}

int main(void)
{
    adv_err err;
    adv_err_init(&err);
    catalog = adv_catalog_load(NULL, &err);
    if (!catalog) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up_to_the_time),
        cmocka_unit_test(nothing_beats_the_roofline),
        cmocka_unit_test(more_bandwidth_is_never_slower),
        cmocka_unit_test(masks_never_add_work_to_large_sequences),
        cmocka_unit_test(tuner_ranks_legal_tiles_by_time),
        cmocka_unit_test(grouped_tuner_ranks_legal_tiles_by_time),
        cmocka_unit_test(wide_tuning_is_never_slower),
        cmocka_unit_test(no_default_tile_beats_the_ranking),
        cmocka_unit_test(unmeasured_generations_say_extrapolated),
    };
    const int failed = run_group(tests);
    adv_catalog_free(catalog);
    return failed;
}
