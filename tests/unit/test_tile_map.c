/* The map of predicted times around a tile: what its cells say is what a simulation of their tiles says. */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/kernel/family.h"
#include "engine/kernel/tune.h"
#include "engine/kernel/tile_map.h"
#include "tests/unit/kernel_machine.h"

static struct adv_tile_map map; /* too large for a stack */

static struct adv_kernel_request attention(int64_t length)
{
    struct adv_kernel_request request = {.kernel = ADV_KERNEL_SPLASH_FWD};
    request.attention = (struct adv_attention_shape){.batch = 1.0,
                                                     .q_heads = 8,
                                                     .kv_heads = 8,
                                                     .q_len = length,
                                                     .kv_len = length,
                                                     .causal = true,
                                                     .head_dim_qk = 128,
                                                     .head_dim_v = 128,
                                                     .context_shards = 1,
                                                     .dtype = ADV_FORMAT_BF16};
    return request;
}

static struct adv_kernel_request grouped(void)
{
    struct adv_kernel_request request = {.kernel = ADV_KERNEL_GMM};
    request.gmm = (struct adv_gmm_shape){.m = 8192,
                                         .k = 3072,
                                         .n = 1408,
                                         .num_groups = 8,
                                         .distribution = ADV_GROUPS_BALANCED,
                                         .lhs = ADV_FORMAT_BF16,
                                         .rhs = ADV_FORMAT_BF16,
                                         .out = ADV_FORMAT_BF16,
                                         .version = 1};
    return request;
}

static struct adv_kernel_request loss(void)
{
    struct adv_kernel_request request = {.kernel = ADV_KERNEL_LINEAR_XENT};
    request.xent = (struct adv_xent_shape){.tokens = 8192, .emb_dim = 2048, .vocab = 32768};
    return request;
}

/* The tuner's best tile and its time. */
static struct adv_kernel_tile best_of(const struct kernel_bench *bench,
                                      const struct adv_kernel_request *request, struct adv_kernel_time *time)
{
    const struct adv_kernel_family *family = adv_kernel_family_of(request->kernel);
    struct adv_kernel_tile tile = {0};
    struct adv_ranking best = {.top_k = 1, .tiles = (char *)&tile + family->tile_offset, .times = time};
    assert_int_equal(adv_tune(&bench->machine, request, &best, NULL), ADV_OK);
    return tile;
}

static int member_of(const struct adv_kernel_member *member, const struct adv_kernel_tile *tile)
{
    int value;
    const char *text;
    adv_kernel_member_value(member, tile, &value, &text);
    return value;
}

static int index_of(const struct adv_tile_axis *axis, const struct adv_kernel_tile *tile)
{
    for (int i = 0; i < axis->count; i++)
        if (axis->values[i] == member_of(axis->member, tile)) return i;
    return -1;
}

static void judge_cell(const struct kernel_bench *bench, const struct adv_kernel_request *request,
                       const struct adv_tile_cell *cell, int row, int column)
{
    struct adv_kernel_time time;
    if (cell->state == ADV_TILE_ILLEGAL) {
        assert_true(cell->rule[0] != '\0');
        return;
    }
    assert_int_equal(cell->rule[0], '\0');
    assert_int_equal(member_of(map.rows.member, &cell->tile), map.rows.values[row]);
    assert_int_equal(member_of(map.columns.member, &cell->tile), map.columns.values[column]);
    assert_int_equal(
        adv_kernel_family_of(request->kernel)->time(&bench->machine, request, &cell->tile, &time, NULL),
        ADV_OK);
    assert_close(cell->time.time_s, time.time_s, 1e-12);
    assert_close(cell->time.vmem_bytes, time.vmem_bytes, 1e-12);
    assert_int_equal(cell->state == ADV_TILE_FITS, time.fits_vmem);
}

static void judge_map(const struct adv_kernel_request *request)
{
    struct kernel_bench bench;
    struct adv_kernel_time best_time;
    adv_err err;
    kernel_bench_init(&bench);
    adv_err_init(&err);
    const struct adv_catalog_chip chip = {.chip = bench.chip, .constants = bench.constants};
    struct adv_kernel_request asked = *request;
    asked.chip = &chip;
    const struct adv_kernel_tile best = best_of(&bench, &asked, &best_time);
    assert_int_equal(adv_tile_map_fill(&bench.machine, &asked, &best, 1, &map, &err), ADV_OK);
    assert_true(map.rows.count > 2 && map.columns.count > 2);
    assert_true(map.rows.member != map.columns.member && map.evaluated_count > 0);
    for (int i = 1; i < map.rows.count; i++) assert_true(map.rows.values[i] > map.rows.values[i - 1]);
    for (int row = 0; row < map.rows.count; row++)
        for (int column = 0; column < map.columns.count; column++)
            judge_cell(&bench, &asked, &map.cells[row][column], row, column);
    const int row = index_of(&map.rows, &best), column = index_of(&map.columns, &best);
    assert_true(row >= 0 && column >= 0);
    assert_int_equal(map.cells[row][column].state, ADV_TILE_FITS);
    assert_true(map.cells[row][column].time.time_s <= best_time.time_s * (1.0 + 1e-12));
}

static void cells_are_what_a_simulation_says_and_the_best_is_among_them(void **state)
{
    (void)state;
    const struct adv_kernel_request requests[] = {attention(8192), attention(10240), grouped(), loss()};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) judge_map(&requests[i]);
}

/* 5120 = 5 · 1024: blocks of 2048 and 4096 do not divide it, those of 128 do. */
static void cells_that_break_a_rule_name_it(void **state)
{
    (void)state;
    const struct adv_kernel_request request = attention(5120);
    judge_map(&request);
    const struct adv_tile_axis at = map.rows;
    int wrong = 0, right = 0;
    for (int i = 0; i < at.count; i++) {
        if (at.values[i] == 2048) wrong = i;
        if (at.values[i] == 128) right = i;
    }
    assert_true(wrong != right);
    assert_int_equal(map.cells[wrong][0].state, ADV_TILE_ILLEGAL);
    assert_non_null(strstr(map.cells[wrong][0].rule, "2048 does not divide q_len 5120"));
    assert_int_equal(map.cells[right][0].state, ADV_TILE_FITS);
}

/* A lower limit never makes a cell faster, and turns cells over. */
static void less_vmem_takes_cells_away(void **state)
{
    (void)state;
    struct kernel_bench bench;
    struct adv_kernel_time time;
    struct adv_kernel_request request = attention(8192);
    kernel_bench_init(&bench);
    const struct adv_catalog_chip chip = {.chip = bench.chip, .constants = bench.constants};
    request.chip = &chip;
    const struct adv_kernel_tile best = best_of(&bench, &request, &time);
    int over[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        bench.machine.scoped_vmem_limit_bytes = i ? 4.0 * 1048576.0 : 32.0 * 1048576.0;
        assert_int_equal(adv_tile_map_fill(&bench.machine, &request, &best, 1, &map, NULL), ADV_OK);
        assert_close(map.vmem_limit_bytes, bench.machine.scoped_vmem_limit_bytes, 1e-12);
        for (int row = 0; row < map.rows.count; row++)
            for (int column = 0; column < map.columns.count; column++)
                over[i] += map.cells[row][column].state == ADV_TILE_OVER_VMEM;
    }
    assert_true(over[1] > over[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_what_a_simulation_says_and_the_best_is_among_them),
        cmocka_unit_test(cells_that_break_a_rule_name_it),
        cmocka_unit_test(less_vmem_takes_cells_away),
    };
    return run_group(tests);
}
