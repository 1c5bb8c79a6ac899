#include "tests/unit/check.h"

#include <string.h>

#include "engine/kernel/legal.h"
#include "engine/kernel/tune_space.h"
#include "engine/kernel/family.h"
#include "engine/kernel/xent.h"

static adv_err err, warnings;

static void forget(void)
{
    adv_err_init(&err);
    adv_err_init(&warnings);
}

static const struct adv_finding *at(const adv_err *list, const char *pointer)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->findings[i].pointer, pointer) == 0) return &list->findings[i];
    fail_msg("nothing is said about %s", pointer);
    return &list->findings[0];
}

static struct adv_gmm_shape gmm_of(int64_t m, int64_t k, int64_t n, enum adv_format format)
{
    return (struct adv_gmm_shape){.m = m,
                                  .k = k,
                                  .n = n,
                                  .num_groups = 8,
                                  .distribution = ADV_GROUPS_MULTINOMIAL,
                                  .lhs = format,
                                  .rhs = format,
                                  .out = ADV_FORMAT_BF16,
                                  .version = 1};
}

/* Megablox raises when rows are left over; 8-bit rows come 32 to a register tile, bfloat16 16, float32 8. */
static void row_tiles_divide_the_rows_and_fill_registers(void **state)
{
    (void)state;
    const struct {
        int64_t m;
        int tile_m;
        enum adv_format format;
        bool legal;
        const char *hint;
    } cases[] = {
        {4096, 128, ADV_FORMAT_BF16, true, NULL},
        {4096, 16, ADV_FORMAT_BF16, true, NULL},
        {4096, 8, ADV_FORMAT_BF16, false, "16"},
        {4096, 8, ADV_FORMAT_F32, true, NULL},
        {4096, 16, ADV_FORMAT_FP8, false, "32"},
        {4096, 100, ADV_FORMAT_BF16, false, "64 or 128; or 112, with m padded to 4144"},
        {200003, 128, ADV_FORMAT_BF16, false, "pad m to 200064"}, /* no tile is as wide as the axis */
        {4096, 384, ADV_FORMAT_BF16, false, "256 or 512; or pad m to 4224"},
        {4100, 128, ADV_FORMAT_BF16, false, "4100; or pad m to 4224"},
        {4100, 4100, ADV_FORMAT_BF16, true, NULL}, /* the whole axis */
        {96, 128, ADV_FORMAT_BF16, false, "96; or pad m to 128"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct adv_gmm_shape shape = gmm_of(cases[i].m, 1024, 1024, cases[i].format);
        const struct adv_gmm_tile tile = {cases[i].tile_m, 1024, 1024, 2};
        forget();
        assert_int_equal(adv_legal_gmm(ADV_KERNEL_GMM, &shape, &tile, &err, &warnings),
                         cases[i].legal ? ADV_OK : ADV_E_ILLEGAL);
        assert_int_equal(err.count, cases[i].legal ? 0 : 1);
        if (!cases[i].legal) assert_string_equal(at(&err, "/tile/tile_m")->hint, cases[i].hint);
    }
}

/* Tails of k and n are masked: legal, at a price. What no block specification can say is not. */
static void column_tiles_are_lanes_or_whole_and_tails_are_priced(void **state)
{
    (void)state;
    const struct adv_gmm_shape shape = gmm_of(4096, 2880, 768, ADV_FORMAT_BF16);
    struct adv_gmm_tile tile = {128, 1000, 512, 2};
    forget();
    assert_int_equal(adv_legal_gmm(ADV_KERNEL_GMM, &shape, &tile, &err, &warnings), ADV_E_ILLEGAL);
    assert_string_equal(at(&err, "/tile/tile_k")->hint, "896 or 1024, or 2880, the whole of k");
    assert_string_equal(at(&warnings, "/tile/tile_n")->hint, "384 or 768 leaves no remainder");
    assert_non_null(strstr(at(&warnings, "/tile/tile_n")->detail, "the last of 2 tiles holds 256, 25.0 %"));
    tile = (struct adv_gmm_tile){128, 2880, 768, 2};
    forget();
    assert_int_equal(adv_legal_gmm(ADV_KERNEL_GMM, &shape, &tile, &err, &warnings), ADV_OK);
    assert_int_equal(warnings.count, 0);
    tile = (struct adv_gmm_tile){128, 1024, 896, 2};
    forget();
    assert_int_equal(adv_legal_gmm(ADV_KERNEL_GMM, &shape, &tile, &err, &warnings), ADV_OK);
    assert_non_null(strstr(at(&warnings, "/tile/tile_k")->detail, "832 and is masked on both sides"));
    assert_non_null(strstr(at(&warnings, "/tile/tile_n")->detail, "wider than n 768: 14.3 %"));
    forget();
    assert_int_equal(adv_legal_gmm(ADV_KERNEL_TGMM, &shape, &tile, &err, &warnings), ADV_OK);
    assert_null(strstr(at(&warnings, "/tile/tile_k")->detail, "masked")); /* no contraction there */
}

/* The label block of the fused loss has one axis: whole, a multiple of 1024, or a power of two from 128. */
static void token_blocks_follow_the_label_layout(void **state)
{
    (void)state;
    assert_true(adv_xent_is_token_block(8192, 1024));
    assert_true(adv_xent_is_token_block(8192, 128));
    assert_true(adv_xent_is_token_block(6144, 3072));
    assert_true(adv_xent_is_token_block(100, 100));
    assert_false(adv_xent_is_token_block(8192, 64));
    assert_false(adv_xent_is_token_block(8192, 3072));
    assert_false(adv_xent_is_token_block(8192, 0));
    assert_false(adv_xent_is_token_block(7680, 1280)); /* ten times 128 */
    const struct adv_xent_shape shape = {.tokens = 7680, .emb_dim = 4100, .vocab = 151936};
    const struct adv_xent_tile tile = {.b_block = 1280, .h_block = 500, .v_block = 2048};
    forget();
    assert_int_equal(adv_xent_legal(&shape, &tile, &err, &warnings), ADV_E_ILLEGAL);
    assert_int_equal(err.count, 3);
    assert_string_equal(at(&err, "/shape/emb_dim")->hint, "4096 or 4104");
    assert_string_equal(at(&err, "/tile/b_block")->hint, "512 or 7680; or pad the tokens to 8192");
    assert_string_equal(at(&err, "/tile/h_block")->hint, "384 or 512, or 4100, the whole of emb_dim");
    assert_non_null(strstr(at(&warnings, "/tile/v_block")->detail, "the last of 75 tiles holds 384"));
}

static struct adv_attention_shape attention_of(int64_t q_len, int64_t kv_len)
{
    return (struct adv_attention_shape){.batch = 1,
                                        .q_heads = 8,
                                        .kv_heads = 8,
                                        .q_len = q_len,
                                        .kv_len = kv_len,
                                        .head_dim_qk = 128,
                                        .head_dim_v = 128,
                                        .causal = true,
                                        .context_shards = 1,
                                        .dtype = ADV_FORMAT_BF16};
}

static void attention_shapes_are_judged_with_their_numbers(void **state)
{
    (void)state;
    struct adv_attention_shape shape = attention_of(1001, 8192);
    shape.context_shards = 8;
    shape.context_load_balanced = true;
    shape.kv_heads = 3;
    shape.causal = false;
    shape.chunk = 512;
    forget();
    assert_int_equal(adv_legal_attention(ADV_KERNEL_SPLASH_FWD, &shape, NULL, &err, &warnings),
                     ADV_E_ILLEGAL);
    assert_int_equal(err.count, 4);
    assert_string_equal(at(&err, "/shape/q_len")->hint, "q_len 1024, or kv_len 8008");
    assert_string_equal(err.findings[1].hint, "1000 or 1002");
    assert_string_equal(at(&err, "/shape/kv_heads")->hint, "2 or 4, a divisor of q_heads 8");
    assert_string_equal(at(&err, "/shape/chunk")->hint, "causal true, or no chunk");
}

/* The kernels take sub-blocks of keys in whole lanes of 128, and queries of under 128 as a whole: what tune
 * says no tile divides, no tile of a simulation does, and the length is what is wrong. */
static void attention_blocks_are_multiples_of_128(void **state)
{
    (void)state;
    const struct {
        int64_t q_len, kv_len;
        int q, kv;
        const char *pointer, *hint; /* NULL: legal */
    } cases[] = {
        {1000, 1024, 1000, 1024, "/shape/q_len", "896 or 1024"},
        {8190, 1024, 1000, 1024, "/shape/q_len", "8064 or 8192"},
        {1024, 1000, 1024, 1000, "/shape/kv_len", "896 or 1024"},
        {1024, 64, 1024, 64, "/shape/kv_len", "128"},
        {64, 1024, 64, 1024, NULL, NULL},
        {64, 1024, 32, 1024, "/tile/block_q", "64, the whole of q_len 64"},
        {1024, 1024, 64, 1024, "/tile/block_q", "128, a multiple of 128 that divides q_len 1024"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct adv_attention_shape shape = attention_of(cases[i].q_len, cases[i].kv_len);
        const struct adv_attention_tile tile = {
            .blocks = {.block_q = cases[i].q, .block_kv = cases[i].kv, .block_kv_compute = cases[i].kv}};
        forget();
        const adv_code code = adv_legal_attention(ADV_KERNEL_SPLASH_FWD, &shape, &tile, &err, &warnings);
        assert_int_equal(code, cases[i].hint ? ADV_E_ILLEGAL : ADV_OK);
        assert_int_equal(adv_legal_splash_blocks(ADV_KERNEL_SPLASH_FWD, &shape, &tile.blocks, NULL), code);
        if (cases[i].hint) assert_string_equal(at(&err, cases[i].pointer)->hint, cases[i].hint);
        if (cases[i].pointer && strncmp(cases[i].pointer, "/shape", 6) == 0)
            assert_int_equal(
                adv_legal_attention_tunable(&(struct adv_kernel_request){.attention = shape}, NULL),
                ADV_E_ILLEGAL);
    }
}

/* An unknown is not judged, and hides nothing else. */
static void unknown_sizes_leave_the_other_rules_standing(void **state)
{
    (void)state;
    struct adv_attention_shape shape = attention_of(0, 4096);
    const struct adv_attention_tile tile = {
        .blocks = {.block_q = 100, .block_kv = 3000, .block_kv_compute = 0}};
    forget();
    assert_int_equal(adv_legal_attention(ADV_KERNEL_SPLASH_FWD, &shape, &tile, &err, &warnings),
                     ADV_E_ILLEGAL);
    assert_int_equal(err.count, 1);
    assert_string_equal(at(&err, "/tile/block_kv")->hint,
                        "2048 or 4096, a multiple of 128 that divides kv_len 4096");
    const struct adv_gmm_shape gmm = gmm_of(0, 0, 512, ADV_FORMAT_BF16);
    const struct adv_gmm_tile gmm_tile = {100, 100, 100, 2};
    forget();
    assert_int_equal(adv_legal_gmm(ADV_KERNEL_GMM, &gmm, &gmm_tile, &err, &warnings), ADV_E_ILLEGAL);
    assert_int_equal(err.count, 1);
    assert_string_equal(err.findings[0].pointer, "/tile/tile_n");
    const struct adv_splash_blocks none = {0};
    assert_int_equal(adv_legal_splash_blocks(ADV_KERNEL_SPLASH_BWD_DKV, &shape, &none, NULL), ADV_E_ILLEGAL);
}

/* Tuners offer legal tiles only, and some for every shape that is said to be tunable. */
static void tuners_offer_legal_tiles_for_every_tunable_shape(void **state)
{
    (void)state;
    static struct adv_gmm_tile gmm_tiles[ADV_GMM_SPACE_MAX];
    static struct adv_xent_tile xent_tiles[ADV_XENT_SPACE_MAX];
    static struct adv_attention_tile splash_tiles[ADV_SPLASH_SPACE_MAX];
    static const int64_t lengths[] = {1,    8,    100,  128,  200,  384,  1000,  1024,
                                      1536, 2880, 4096, 4100, 4160, 5000, 12288, 110880 * 128};
    static const enum adv_format formats[] = {ADV_FORMAT_F32, ADV_FORMAT_BF16, ADV_FORMAT_FP8};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int wide = 0; wide < 2; wide++) {
            for (int f = 0; f < 3; f++) {
                const struct adv_gmm_shape gmm = gmm_of(lengths[i], 2880, lengths[i], formats[f]);
                const int count = adv_gmm_space(&gmm, wide, gmm_tiles);
                assert_true(count <= ADV_GMM_SPACE_MAX);
                assert_int_equal(adv_legal_gmm_tunable(&gmm, wide, NULL) == ADV_OK, count > 0);
                for (int t = 0; t < count; t++)
                    assert_int_equal(adv_legal_gmm(ADV_KERNEL_TGMM, &gmm, &gmm_tiles[t], NULL, NULL), ADV_OK);
            }
            const struct adv_xent_shape xent = {lengths[i], 4096, 128256};
            const int count = adv_xent_space(&xent, wide, xent_tiles);
            assert_true(count <= ADV_XENT_SPACE_MAX);
            const struct adv_kernel_request request = {.xent = xent};
            adv_err_init(&err);
            adv_family_xent.tunable(&request, &err);
            assert_int_equal(err.count == 0, count > 0);
            for (int t = 0; t < count; t++)
                assert_int_equal(adv_xent_legal(&xent, &xent_tiles[t], NULL, NULL), ADV_OK);
            const struct adv_attention_shape shape =
                attention_of(lengths[i], lengths[i] > 12288 ? lengths[i] : 4096);
            for (int kernel = 0; kernel <= ADV_KERNEL_SPLASH_BWD_DKV; kernel++) {
                const enum adv_kernel splash = (enum adv_kernel)kernel;
                const int found = adv_splash_space(splash, &shape, wide, splash_tiles);
                assert_true(found <= ADV_SPLASH_SPACE_MAX);
                assert_int_equal(adv_legal_attention_tunable(&(struct adv_kernel_request){.attention = shape},
                                                             NULL) == ADV_OK,
                                 found > 0);
                for (int t = 0; t < found; t++)
                    assert_int_equal(adv_legal_splash_blocks(splash, &shape, &splash_tiles[t].blocks, NULL),
                                     ADV_OK);
            }
        }
    }
}

static bool offers(bool wide, int64_t length, int q, int kv, int part)
{
    static struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX];
    const struct adv_attention_shape shape = attention_of(length, length);
    const int count = adv_splash_space(ADV_KERNEL_SPLASH_FWD, &shape, wide, tiles);
    for (int i = 0; i < count; i++) {
        const struct adv_splash_blocks *b = &tiles[i].blocks;
        if (b->block_q == q && b->block_kv == kv && b->block_kv_compute == part) return true;
    }
    return false;
}

/* 3072 = 3 * 1024: powers of two up to 1024 divide it, and so do larger multiples of 128. A power of two is
 * cut in powers of two alone, and in MaxText's default blocks. */
static void other_lengths_than_powers_of_two_are_cut_in_multiples_of_128(void **state)
{
    (void)state;
    static struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX];
    assert_true(offers(false, 3072, 3072, 1536, 512));
    assert_true(offers(false, 5120, 2560, 2560, 512));
    assert_true(offers(true, 5120, 640, 5120, 1280));
    assert_true(offers(true, 2560, 2560, 2560, 512));
    assert_false(offers(false, 3072, 384, 3072, 512));
    assert_true(offers(false, 3072, 512, 512, 512));
    const struct adv_attention_shape shape = attention_of(8192, 8192);
    const int count = adv_splash_space(ADV_KERNEL_SPLASH_FWD, &shape, false, tiles);
    assert_int_equal(count, 3 * 3 * 3 + 1); /* 1024, 2048, 4096 twice; 256, 512, 1024; the default */
    for (int i = 0; i < count; i++) {
        const int block = tiles[i].blocks.block_q;
        assert_int_equal(block & (block - 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_tiles_divide_the_rows_and_fill_registers),
        cmocka_unit_test(column_tiles_are_lanes_or_whole_and_tails_are_priced),
        cmocka_unit_test(token_blocks_follow_the_label_layout),
        cmocka_unit_test(attention_shapes_are_judged_with_their_numbers),
        cmocka_unit_test(attention_blocks_are_multiples_of_128),
        cmocka_unit_test(unknown_sizes_leave_the_other_rules_standing),
        cmocka_unit_test(tuners_offer_legal_tiles_for_every_tunable_shape),
        cmocka_unit_test(other_lengths_than_powers_of_two_are_cut_in_multiples_of_128),
    };
    return run_group(tests);
}
