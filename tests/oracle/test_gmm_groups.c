/* A stated spread of rows over groups is counted as drawn or explicit group sizes are. */
#include "tests/unit/check.h"

#include "engine/kernel/gmm_visits.h"
#include "engine/kernel/kernel.h"
#include "tests/unit/catalog_fixture.h"

enum { GROUPS_MOST = 256, DRAWS = 60 };

/* xorshift64* */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * UINT64_C(2685821657736338717)) >> 32;
}

static double time_of(const char *name, const struct adv_gmm_shape *shape)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, name);
    const struct adv_kernel_machine machine = {.chip = &chip->chip, .constants = &chip->constants};
    struct adv_kernel_time time;
    assert_int_equal(adv_gmm_time(&machine, ADV_KERNEL_GMM, shape, NULL, &time, NULL), ADV_OK);
    return time.time_s;
}

static struct adv_gmm_shape version_2(int64_t m, int64_t k, int groups,
                                      enum adv_group_distribution distribution)
{
    return (struct adv_gmm_shape){.m = m,
                                  .k = k,
                                  .n = 2048,
                                  .num_groups = groups,
                                  .distribution = distribution,
                                  .lhs = ADV_FORMAT_BF16,
                                  .rhs = ADV_FORMAT_BF16,
                                  .out = ADV_FORMAT_BF16,
                                  .version = 2};
}

static const struct {
    const char *chip;
    int64_t m, k;
    int groups;
} cases[] = {{"v6e", 4096, 7168, 128},    {"v6e", 32768, 7168, 256},   {"tpu7x", 4096, 2880, 256},
             {"tpu7x", 65536, 2048, 128}, {"v6e", 131072, 4096, 8},    {"v5p", 100, 2048, 64},
             {"v5e", 20000, 2048, 160},   {"tpu7x", 12345, 7168, 100}, {"v6e", 16384, 2048, 256},
             {"v6e", 8192, 2048, 128},    {"tpu7x", 524288, 2048, 64}, {"v6e", 4097, 2048, 1}};
enum { CASES = sizeof cases / sizeof *cases };

/* Every row picks a group uniformly: the closed form is the mean of many draws. */
static void multinomial_groups_take_the_mean_of_draws(void **state)
{
    (void)state;
    uint64_t random = 11;
    for (int c = 0; c < CASES; c++) {
        struct adv_gmm_shape drawn = version_2(cases[c].m, cases[c].k, cases[c].groups, ADV_GROUPS_GIVEN);
        double time_s = 0.0, padded = 0.0, tiles = 0.0;
        for (int d = 0; d < DRAWS; d++) {
            int64_t sizes[GROUPS_MOST] = {0};
            struct adv_gmm_rows rows;
            for (int64_t r = 0; r < drawn.m; r++) sizes[next_random(&random) % (uint64_t)drawn.num_groups]++;
            drawn.group_sizes = sizes;
            time_s += time_of(cases[c].chip, &drawn) / DRAWS;
            adv_gmm_count_rows(&drawn, 128, 512, &rows);
            padded += rows.padded / DRAWS;
            tiles += rows.tiles / DRAWS;
        }
        struct adv_gmm_shape stated = drawn;
        stated.distribution = ADV_GROUPS_MULTINOMIAL;
        struct adv_gmm_rows rows;
        adv_gmm_count_rows(&stated, 128, 512, &rows);
        assert_close(rows.padded, padded, 0.01);
        assert_close(rows.tiles, tiles, 0.01);
        assert_close(time_of(cases[c].chip, &stated), time_s, 0.01);
    }
}

/* Binomial chances one by one, for groups whose size lies about any edge of a bucket. */
static void multinomial_buckets_are_the_sum_over_binomial_sizes(void **state)
{
    (void)state;
    static const int64_t rows_of[] = {1, 60, 500, 4096, 8000, 16384, 33000, 70000, 1 << 20};
    static const int groups_of[] = {2, 3, 16, 100, 256};
    for (size_t r = 0; r < sizeof rows_of / sizeof *rows_of; r++)
        for (size_t g = 0; g < sizeof groups_of / sizeof *groups_of; g++) {
            const double m = (double)rows_of[r], chance = 1.0 / groups_of[g];
            double sum = 0.0;
            for (int64_t x = 1; x <= rows_of[r]; x++)
                sum += exp(lgamma(m + 1.0) - lgamma((double)x + 1.0) - lgamma(m - (double)x + 1.0) +
                           (double)x * log(chance) + (m - (double)x) * log1p(-chance)) *
                       ceil((double)x / 128.0);
            struct adv_gmm_rows rows;
            const struct adv_gmm_shape shape =
                version_2(rows_of[r], 2048, groups_of[g], ADV_GROUPS_MULTINOMIAL);
            adv_gmm_count_rows(&shape, 128, 512, &rows);
            assert_close(rows.padded / 128.0 / groups_of[g], sum, 1e-3);
        }
}

/* Spreads that are the same in every draw: as the sizes that are written out for them. */
static void fixed_spreads_take_what_their_sizes_take(void **state)
{
    (void)state;
    const enum adv_group_distribution fixed[] = {ADV_GROUPS_BALANCED, ADV_GROUPS_ZIPF, ADV_GROUPS_WORST};
    for (int c = 0; c < CASES; c++)
        for (int d = 0; d < 3; d++) {
            const struct adv_gmm_shape stated = version_2(cases[c].m, cases[c].k, cases[c].groups, fixed[d]);
            struct adv_gmm_shape given = stated;
            int64_t sizes[GROUPS_MOST], sum = 0;
            assert_true(adv_gmm_sizes(&stated, sizes));
            for (int g = 0; g < stated.num_groups; g++) sum += sizes[g];
            assert_int_equal(sum, stated.m);
            given.distribution = ADV_GROUPS_GIVEN;
            given.group_sizes = sizes;
            assert_close(time_of(cases[c].chip, &stated), time_of(cases[c].chip, &given), 1e-12);
        }
}

/* No spread takes longer than the worst one. */
static void worst_groups_bound_the_others(void **state)
{
    (void)state;
    uint64_t random = 5;
    for (int c = 0; c < CASES; c++) {
        struct adv_gmm_shape shape = version_2(cases[c].m, cases[c].k, cases[c].groups, ADV_GROUPS_WORST);
        const double worst_s = time_of(cases[c].chip, &shape) * (1.0 + 1e-9);
        for (int d = ADV_GROUPS_BALANCED; d < ADV_GROUPS_WORST; d++) {
            shape.distribution = (enum adv_group_distribution)d;
            assert_true(time_of(cases[c].chip, &shape) <= worst_s);
        }
        int64_t sizes[GROUPS_MOST] = {0};
        shape.distribution = ADV_GROUPS_GIVEN;
        shape.group_sizes = sizes;
        for (int d = 0; d < DRAWS; d++) {
            int64_t left = shape.m;
            for (int g = 0; g < shape.num_groups; g++) {
                sizes[g] = g + 1 == shape.num_groups
                               ? left
                               : (int64_t)(next_random(&random) % (uint64_t)(left / 2 + 1)) / (1 + d);
                left -= sizes[g];
            }
            assert_true(time_of(cases[c].chip, &shape) <= worst_s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multinomial_groups_take_the_mean_of_draws),
        cmocka_unit_test(multinomial_buckets_are_the_sum_over_binomial_sizes),
        cmocka_unit_test(fixed_spreads_take_what_their_sizes_take),
        cmocka_unit_test(worst_groups_bound_the_others),
    };
    return run_group_with_catalog(tests);
}
