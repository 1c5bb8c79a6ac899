/* bench_tiles.c: kernel tiles simulated per second, without JSON around them. */
#include "engine/kernel/kernel.h"
#include "engine/kernel/tune_space.h"
#include "server/bench.h"
#include "server/monotonic.h"

/* Attention tiles; the sum of times keeps the compiler from leaving them out. */
static long evaluate_attention(const struct adv_kernel_machine *machine, bool quick, double *sum_s)
{
    const int rounds = quick ? 200 : 20000;
    struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX];
    const struct adv_attention_shape shape = {.batch = 2,
                                              .q_heads = 64,
                                              .kv_heads = 8,
                                              .q_len = 8192,
                                              .kv_len = 8192,
                                              .head_dim_qk = 128,
                                              .head_dim_v = 128,
                                              .causal = true,
                                              .context_shards = 1,
                                              .dtype = ADV_FORMAT_BF16};
    const struct adv_attention_flags flags = {0};
    const int count = adv_splash_space(ADV_KERNEL_SPLASH_FWD_RESIDUALS, &shape, false, tiles);
    for (int i = 0; i < rounds * count; i++) {
        struct adv_kernel_time time = {0};
        if (adv_splash_time(machine, ADV_KERNEL_SPLASH_FWD_RESIDUALS, &shape, &tiles[i % count], &flags,
                            &time, NULL))
            return 0;
        *sum_s += time.time_s;
    }
    return (long)rounds * count;
}

/* Grouped matmul tiles over 256 groups of given, unequal sizes. */
static long evaluate_gmm(const struct adv_kernel_machine *machine, bool quick, double *sum_s)
{
    enum { GROUPS = 256 };
    const int rounds = quick ? 4 : 400;
    static struct adv_gmm_tile tiles[ADV_GMM_SPACE_MAX];
    int64_t sizes[GROUPS];
    for (int g = 0; g < GROUPS; g++) sizes[g] = 512 + (g % 2 ? g : -(g + 1));
    const struct adv_gmm_shape shape = {.m = 131072,
                                        .k = 7168,
                                        .n = 2048,
                                        .num_groups = GROUPS,
                                        .distribution = ADV_GROUPS_GIVEN,
                                        .group_sizes = sizes,
                                        .lhs = ADV_FORMAT_BF16,
                                        .rhs = ADV_FORMAT_BF16,
                                        .out = ADV_FORMAT_BF16,
                                        .version = 1};
    const int count = adv_gmm_space(&shape, false, tiles);
    for (int i = 0; i < rounds * count; i++) {
        struct adv_kernel_time time = {0};
        struct adv_gmm_tile tile = tiles[i % count];
        tile.input_buffer_count = 2;
        if (adv_gmm_time(machine, ADV_KERNEL_GMM, &shape, &tile, &time, NULL)) return 0;
        *sum_s += time.time_s;
    }
    return (long)rounds * count;
}

void adv_bench_tiles(const struct adv_catalog *catalog, bool quick, struct adv_text *out)
{
    static const struct {
        const char *name;
        long (*evaluate)(const struct adv_kernel_machine *machine, bool quick, double *sum_s);
    } kinds[] = {{"attention_tiles", evaluate_attention}, {"gmm_tiles_256_groups", evaluate_gmm}};
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, "tpu7x");
    const struct adv_kernel_machine machine = {.chip = &chip->chip, .constants = &chip->constants};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double sum_s = 0.0;
        const double start_s = adv_monotonic_s();
        const long evaluations = kinds[i].evaluate(&machine, quick, &sum_s);
        const double took_s = adv_monotonic_s() - start_s;
        adv_text_format(out,
                        ",{\"name\":\"%s\",\"repeats\":1,\"min_ms\":%.4f,\"median_ms\":%.4f,\"max_ms\":%.4f,"
                        "\"evaluations\":%ld,\"evaluations_per_s\":%.0f,\"mean_predicted_us\":%.3f}",
                        kinds[i].name, took_s * 1e3, took_s * 1e3, took_s * 1e3, evaluations,
                        (double)evaluations / took_s, sum_s / (double)(evaluations ? evaluations : 1) * 1e6);
    }
}
