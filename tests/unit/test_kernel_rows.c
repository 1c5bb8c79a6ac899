#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "tests/accuracy/derive_kernels.h"
#include "tests/accuracy/fit_kernels.h"
#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/catalog.h"

static struct adv_kernel_row *decode(struct adv_arena *arena, const char *text, int *count, adv_err *err)
{
    struct adv_kernel_row *rows = NULL;
    adv_arena_init(arena, 1 << 20);
    adv_err_init(err);
    if (adv_decode_kernel_rows(text, strlen(text), arena, &rows, count, err)) return NULL;
    return rows;
}

/* Transposed weights: tile_k tiled the contraction until the kernel of 2026-07-14, tile_n does since. */
static void transposed_tiles_are_read_by_date(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err;
    int count = 0;
    const struct adv_kernel_row *rows =
        decode(&arena,
               "[{\"id\":\"a\",\"chip\":\"v7x\",\"kernel\":\"gmm\",\"m\":512,\"k\":768,\"n\":2048,\"num_"
               "groups\":2,\"rhs_transposed\":true,"
               "\"tile\":{\"tile_m\":128,\"tile_k\":1024,\"tile_n\":768},\"commit_date\":\"2026-04-18\"},"
               "{\"id\":\"b\",\"chip\":\"v6e\",\"kernel\":\"gmm\",\"m\":512,\"k\":768,\"n\":2048,\"num_"
               "groups\":2,\"rhs_transposed\":true,"
               "\"tile\":{\"tile_m\":128,\"tile_k\":1024,\"tile_n\":768},\"commit_date\":\"2026-08-19\"}]",
               &count, &err);
    assert_int_equal(count, 2);
    if (!rows) return;
    assert_int_equal(rows[0].request.tile.gmm.tile_k, 1024);
    assert_int_equal(rows[0].request.tile.gmm.tile_n, 768);
    assert_int_equal(rows[1].request.tile.gmm.tile_k, 768);
    assert_int_equal(rows[1].request.tile.gmm.tile_n, 1024);
    adv_arena_free(&arena);
}

static void what_cannot_be_trusted_is_not_fitted(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err;
    int count = 0;
    const struct adv_kernel_row *rows =
        decode(&arena,
               "[{\"id\":\"suspect\",\"chip\":\"v7x\",\"kernel\":\"tgmm\",\"m\":512,\"k\":768,\"n\":2048,"
               "\"num_groups\":2,\"time_ms_median\":1,"
               "\"suspect\":\"re-keyed\",\"tile\":{\"tile_m\":128,\"tile_k\":768,\"tile_n\":768}},"
               "{\"id\":\"no "
               "tile\",\"chip\":\"v7x\",\"kernel\":\"splash_fwd\",\"q_len\":1024,\"kv_len\":1024,\"time_ms_"
               "median\":1,\"tile\":null},"
               "{\"id\":\"fork\",\"chip\":\"v7x\",\"kernel\":\"splash_fwd\",\"q_len\":1024,\"kv_len\":1024,"
               "\"time_ms_median\":1,"
               "\"modified_kernel\":\"fork\",\"tile\":{\"block_q\":512,\"block_kv\":512}},"
               "{\"id\":\"good\",\"chip\":\"v7x\",\"kernel\":\"splash_fwd\",\"q_len\":1024,\"kv_len\":1024,"
               "\"time_ms_median\":1,"
               "\"tile\":{\"block_q\":512,\"block_kv\":512}},"
               "{\"id\":\"new kernel\",\"chip\":\"v7x\",\"kernel\":\"ring_of_fire\"}]",
               &count, &err);
    assert_int_equal(count, 5);
    if (!rows) return;
    for (int g = 0; g < adv_fit_groups_count(); g++)
        for (int i = 0; i < count; i++)
            if (adv_fit_uses(adv_fit_group_at(g), &rows[i])) assert_string_equal(rows[i].id, "good");
    assert_false(rows[4].known);
    assert_close(rows[3].measured_s, 1e-3, 1e-12);
    adv_arena_free(&arena);
}

/* XLA's ragged dot before its lowering of March 2026 is another program. */
static void baselines_are_read_with_what_xla_pays_for(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err;
    int count = 0;
    const struct adv_kernel_row *rows = decode(
        &arena,
        "[{\"id\":\"old\",\"chip\":\"v7x\",\"kernel\":\"gmm_xla_default\",\"m\":512,\"k\":768,\"n\":2048,"
        "\"num_groups\":2,\"commit_date\":\"2026-02-26\",\"time_ms_median\":1},"
        "{\"id\":\"new\",\"chip\":\"v7x\",\"kernel\":\"gmm_xla_default\",\"m\":512,\"k\":768,\"n\":2048,"
        "\"num_groups\":2,\"commit_date\":\"2026-03-10\",\"time_ms_median\":1},"
        "{\"id\":\"bias\",\"chip\":\"v7x\",\"kernel\":\"attention_xla_default_fwd\",\"q_len\":512,\"kv_len\":"
        "512,"
        "\"dtypes\":{\"q\":\"f16\"},\"mask_extra\":{\"bool_mask\":\"bool[32,1,1,512]\",\"bias\":\"bf16[1,4,"
        "512,512]\"},"
        "\"time_ms_median\":1}]",
        &count, &err);
    assert_int_equal(count, 3);
    if (!rows) return;
    assert_false(rows[0].trusted);
    assert_true(rows[1].trusted);
    assert_true(rows[2].request.attention.has_bias && rows[2].request.attention.is_float16);
    assert_false(rows[2].request.attention.segment_ids);
    adv_arena_free(&arena);
}

/* bf16[524288,28] of scales: 28 partial products per row. */
static void block_scales_are_counted(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err;
    int count = 0;
    const struct adv_kernel_row *rows =
        decode(&arena,
               "[{\"id\":\"q\",\"chip\":\"v7x\",\"kernel\":\"gmm\",\"m\":524288,\"k\":7168,\"n\":2048,"
               "\"num_groups\":256,\"dtypes\":{\"lhs\":\"f8_e4m3fn\",\"rhs\":\"f8_e4m3fn\"},"
               "\"lhs_spec\":\"{'qvalue': 'f8[524288,7168]', 'scale': 'bf16[524288,28]'}\"}]",
               &count, &err);
    assert_int_equal(count, 1);
    if (!rows) return;
    assert_int_equal(rows[0].request.gmm.scale_blocks, 28);
    assert_int_equal(rows[0].request.gmm.lhs, ADV_FORMAT_FP8);
    assert_int_equal(rows[0].request.gmm.out, ADV_FORMAT_BF16);
    adv_arena_free(&arena);
}

static void a_file_that_is_no_list_of_rows_is_refused(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err;
    int count = 0;
    assert_null(decode(&arena, "{\"rows\":[]}", &count, &err));
    assert_int_equal(err.code, ADV_E_INVALID);
    assert_null(decode(&arena, "[", &count, &err));
    assert_int_equal(err.code, ADV_E_SYNTAX);
    assert_null(decode(&arena, "[{\"kernel\":\"gmm\",\"m\":-1,\"k\":\"many\"}, 5]", &count, &err));
    assert_int_equal(err.count, 3);
    assert_string_equal(err.findings[0].pointer, "/0/m");
    assert_string_equal(err.findings[2].pointer, "/1");
    adv_arena_free(&arena);
}

/* A row nobody can predict says why and does not spoil the others. */
static void validation_answers_row_by_row(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_err err;
    int count = 0;
    struct adv_catalog *catalog = adv_catalog_load(NULL, &(adv_err){0});
    assert_non_null(catalog);
    const struct adv_kernel_row *rows =
        decode(&arena,
               "[{\"id\":\"x\",\"chip\":\"v9\",\"kernel\":\"gmm\"},"
               "{\"id\":\"m\",\"chip\":\"v7x\",\"kernel\":\"matmul\",\"m\":1024,\"k\":1024,\"n\":1024,"
               "\"time_us\":6.14}]",
               &count, &err);
    if (!rows) fail();
    char *answer = adv_encode_kernel_validation(catalog, rows, count);
    assert_non_null(answer);
    assert_non_null(strstr(answer, "\"id\":\"x\",\"chip\":\"v9\",\"kernel\":\"gmm\",\"time_us\":null"));
    assert_non_null(strstr(answer, "there is no TPU 'v9'"));
    assert_non_null(strstr(answer, "\"measured_us\":6.14"));
    assert_non_null(strstr(answer, "\"count\":1"));
    free(answer);
    adv_arena_free(&arena);
    adv_catalog_free(catalog);
}

/* Nothing is guessed where a grouped matmul contradicts itself; the same rows put right are predicted. */
static void rows_that_contradict_themselves_are_not_predicted(void **state)
{
    (void)state;
    static const struct {
        const char *sizes;
        int tile_m;
        const char *reason;
    } cases[] = {{"[256,256]", 128, NULL},
                 {"null", 128, NULL},
                 {"[\"256\",\"256\"]", 128, "no number of rows"},
                 {"[-256,768]", 128, "no number of rows"},
                 {"[1.5,510.5]", 128, "no number of rows"},
                 {"[256,128]", 128, "do not add up to m"},
                 {"[256,128,128]", 128, "num_groups entries"},
                 {"{\"0\":512}", 128, "group_sizes"},
                 {"[256,256]", 100, "tile_m does not divide m"}};
    struct adv_catalog *catalog = adv_catalog_load(NULL, &(adv_err){0});
    assert_non_null(catalog);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adv_arena arena;
        adv_err err;
        char text[512];
        int count = 0;
        (void)snprintf(text, sizeof text,
                       "[{\"id\":\"a\",\"chip\":\"v6e\",\"kernel\":\"gmm\",\"m\":512,\"k\":256,\"n\":256,"
                       "\"num_groups\":2,\"time_us\":9,\"group_sizes\":%s,\"tile\":{\"tile_m\":%d,"
                       "\"tile_k\":256,\"tile_n\":256}}]",
                       cases[i].sizes, cases[i].tile_m);
        const struct adv_kernel_row *rows = decode(&arena, text, &count, &err);
        assert_non_null(rows);
        char *answer = adv_encode_kernel_validation(catalog, rows, count);
        assert_non_null(answer);
        const bool good = !cases[i].reason;
        if ((strstr(answer, "\"trusted\":true") != NULL) != good ||
            (strstr(answer, "\"time_us\":null") == NULL) != good ||
            (!good && !strstr(answer, cases[i].reason)))
            fail_msg("%s\n%s", text, answer);
        free(answer);
        adv_arena_free(&arena);
    }
    adv_catalog_free(catalog);
}

/* 10 errors of 1..10 %: median 5.5, the ninth of ten is the 90th percentile. */
static void summaries_are_order_statistics(void **state)
{
    (void)state;
    double errors[] = {0.10, 0.01, 0.09, 0.02, 0.08, 0.03, 0.07, 0.04, 0.06, 0.05};
    const struct adv_error_summary s = adv_summarize_errors(errors, 10);
    assert_close(s.median_frac, 0.055, 1e-12);
    assert_close(s.p90_frac, 0.09, 1e-12);
    assert_close(s.max_frac, 0.10, 1e-12);
}

/* Half the clock: vector work takes twice as long; fractions are copied. */
static void derived_constants_follow_their_rules(void **state)
{
    (void)state;
    struct adv_chip v5p = {.name = "v5p", .clock_hz = 2e9, .devices_per_chip = 1},
                    v4 = {.name = "v4", .clock_hz = 1e9, .devices_per_chip = 1};
    struct adv_constants from = {.splash_fwd_vreg_s = 1e-9, .splash_mxu_frac = 0.9}, to = {0};
    const struct adv_derive_chip chips[] = {{&v5p, &from}, {&v4, &to}};
    const char *donor, *how;
    for (int k = 0; k < adv_kernel_constants_count(); k++)
        (void)adv_derive_kernel_constant(chips, 2, 1, k, &donor, &how);
    assert_close(to.splash_fwd_vreg_s, 2e-9, 1e-12);
    assert_close(to.splash_mxu_frac, 0.9, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposed_tiles_are_read_by_date),
        cmocka_unit_test(what_cannot_be_trusted_is_not_fitted),
        cmocka_unit_test(baselines_are_read_with_what_xla_pays_for),
        cmocka_unit_test(block_scales_are_counted),
        cmocka_unit_test(a_file_that_is_no_list_of_rows_is_refused),
        cmocka_unit_test(validation_answers_row_by_row),
        cmocka_unit_test(rows_that_contradict_themselves_are_not_predicted),
        cmocka_unit_test(summaries_are_order_statistics),
        cmocka_unit_test(derived_constants_follow_their_rules),
    };
    return run_group(tests);
}
