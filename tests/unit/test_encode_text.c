/* Trees are written as jansson writes them. */
#include "tests/unit/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/encode_common.h"

static void expect_same(json_t *tree)
{
    size_t bytes = 0;
    assert_non_null(tree);
    struct adv_arena arena;
    adv_arena_init(&arena, 1 << 24);
    char *exactly = json_dumps(tree, JSON_COMPACT | JSON_ENCODE_ANY);
    assert_string_equal(adv_encode_exactly(tree, &arena), exactly);
    free(exactly);
    adv_arena_free(&arena);
    char *expected = json_dumps(tree, JSON_COMPACT | JSON_REAL_PRECISION(12) | JSON_ENCODE_ANY);
    char *text = adv_encode_text(tree, &bytes);
    assert_string_equal(text, expected);
    assert_int_equal(bytes, strlen(expected));
    free(text);
    free(expected);
}

static void text_is_that_of_jansson(void **state)
{
    (void)state;
    char all[256] = "";
    for (int i = 1; i < 128; i++) all[i - 1] = (char)i; /* every control character, quotes, backslashes */
    expect_same(json_string(all));
    expect_same(json_string("häppchen \xe2\x82\xac \xf0\x9f\x9a\x80"));
    expect_same(json_stringn("a\0b", 3));
    expect_same(json_string(""));
    expect_same(json_object());
    expect_same(json_array());
    expect_same(json_null());
    expect_same(
        json_pack("{s:[i,b,b,n,{}],s:{s:s,s:[[]]}}", "first", -7, 1, 0, "a \"key\"\n", "x", "y", "z"));
}

static void numbers_are_those_of_jansson(void **state)
{
    (void)state;
    static const double reals[] = {0.0,    -0.0,    1.0,   -1.5,           1e20,    1e-7, 123456789012.0,
                                   1e15,   1.0 / 3, 1e300, -1e-300,        5e-324,  1e5,  123456.789,
                                   0.0001, 1e12,    1e11,  999999999999.5, 2.5e100, 100.0};
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++) expect_same(json_real(reals[i]));
    for (int power = -320; power < 308; power += 3) {
        expect_same(json_real(pow(10, power)));
        expect_same(json_real(-1.23456789012345 * pow(10, power)));
    }
    expect_same(json_integer(INT64_MAX));
    expect_same(json_integer(INT64_MIN));
    expect_same(json_integer(0));
}

/* Every magnitude, close to powers of ten and to halves of the last digit, too. */
static void rounded_numbers_are_those_of_jansson(void **state)
{
    enum { ROUNDS = 4000 };
    (void)state;
    uint64_t seed = 7;
    json_t *reals = json_array();
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const double scale = pow(10, (double)(seed >> 40) / (1 << 24) * 20 - 6);
        const double fraction = (double)(seed >> 11) / 9007199254740992.0, digits = floor(fraction * 1e12);
        const double power = pow(10, (double)(i % 20) - 6);
        const double each[] = {fraction * scale,
                               -fraction,
                               floor(fraction * 1e6),
                               floor(fraction * 1e4) / 16,
                               (digits + 0.5) * power,
                               nextafter((digits + 0.5) * power, 0),
                               digits / 1e9,
                               nextafter(power, 0),
                               nextafter(power, 1e300),
                               power - power * 1e-12,
                               power - power * 4e-13};
        for (size_t k = 0; k < sizeof each / sizeof *each; k++)
            assert_int_equal(json_array_append_new(reals, json_real(each[k])), 0);
    }
    expect_same(reals);
}

static void bytes_are_escaped_wherever_they_stand(void **state)
{
    (void)state;
    static const char odd[] = "\"\\\n\x01\x1f\x7f !#[]";
    for (size_t length = 1; length < 40; length++)
        for (size_t at = 0; at < length; at++)
            for (size_t i = 0; i + 1 < sizeof odd; i++) {
                char text[64] = "";
                memset(text, 'a', length);
                text[at] = odd[i];
                expect_same(json_string(text));
            }
}

static void nothing_has_no_text(void **state)
{
    (void)state;
    size_t bytes = 7;
    assert_null(adv_encode_text(NULL, &bytes));
    assert_int_equal(bytes, 0);
}

static const char *ahead(json_t *value, struct adv_arena *arena)
{
    const char *written = adv_encode_ahead(value, arena);
    json_decref(value);
    return written;
}

/* A tree with a part that was written ahead has the text of the whole tree. */
static void what_was_written_ahead_stands_where_it_belongs(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_arena_init(&arena, 1 << 20);
    const char *row = ahead(json_pack("{s:f,s:[s,n]}", "a", 1.0 / 3, "b", "\"\x01"), &arena);
    const char *word = ahead(json_string(""), &arena);
    assert_non_null(row);
    assert_non_null(word);
    size_t bytes = 0;
    char *text = adv_encode_text(json_pack("{s:[o,o,s],s:i}", "rows", adv_encode_written(row),
                                           adv_encode_written(word), "last", "after", 1),
                                 &bytes);
    assert_string_equal(text, "{\"rows\":[{\"a\":0.333333333333,\"b\":[\"\\\"\\u0001\",null]},\"\",\"last\"],"
                              "\"after\":1}");
    assert_int_equal(bytes, strlen(text));
    free(text);
    adv_arena_free(&arena);
}

/* Of a value that could not be made, or for which the arena is too small, there is no text. */
static void without_memory_nothing_is_written_ahead(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_arena_init(&arena, 16);
    assert_null(ahead(NULL, &arena));
    assert_null(ahead(json_string("longer than the memory there is"), &arena));
    assert_non_null(ahead(json_string("short"), &arena));
    adv_arena_free(&arena);
}

/* A tree of values of all kinds, some read from text, made and written in `values`. NULL: there is no room.
 */
static const char *kept_text(struct adv_arena *values, struct adv_arena *arena)
{
    adv_json_keep_in(values);
    json_t *row = json_object();
    for (int i = 0; i < 40; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key%d", i);
        (void)json_object_set_new(row, key, json_sprintf("value %d", i));
    }
    (void)json_object_set_new(row, "key7", adv_json_load_string("[1.5, {\"a\": null}]", JSON_DECODE_ANY));
    assert_null(adv_json_load_string("[1.5", JSON_DECODE_ANY));
    const char *written = adv_encode_ahead(row, arena);
    return adv_json_keep_no_more() ? written : NULL;
}

/* They go with the arena; those of before and after stand on their own. */
static void values_may_be_kept_in_an_arena(void **state)
{
    (void)state;
    struct adv_arena values, arena;
    adv_arena_init(&values, 1 << 20);
    adv_arena_init(&arena, 1 << 20);
    json_t *before = json_string("before");
    const char *written = kept_text(&values, &arena);
    assert_true(values.used_bytes > 0);
    adv_arena_free(&values);
    assert_non_null(written);
    assert_non_null(strstr(written, "\"key6\":\"value 6\",\"key7\":[1.5,{\"a\":null}],\"key8\""));
    assert_string_equal(json_string_value(before), "before");
    json_decref(before);
    json_decref(json_pack("[s]", "after"));
    adv_arena_free(&arena);
}

/* Wherever memory ends: nothing is written, or all. */
static void what_lacks_a_value_is_not_written(void **state)
{
    (void)state;
    struct adv_arena values, arena;
    adv_arena_init(&values, 1 << 20);
    adv_arena_init(&arena, 1 << 20);
    const char *whole = kept_text(&values, &arena);
    const size_t needed_bytes = values.used_bytes;
    assert_non_null(whole);
    adv_arena_free(&values);
    for (size_t limit_bytes = 0; limit_bytes < needed_bytes; limit_bytes += 16) {
        adv_arena_init(&values, limit_bytes);
        assert_null(kept_text(&values, &arena));
        adv_arena_free(&values);
    }
    adv_arena_init(&values, needed_bytes);
    assert_string_equal(kept_text(&values, &arena), whole);
    adv_arena_free(&values);
    adv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_that_of_jansson),
        cmocka_unit_test(numbers_are_those_of_jansson),
        cmocka_unit_test(rounded_numbers_are_those_of_jansson),
        cmocka_unit_test(bytes_are_escaped_wherever_they_stand),
        cmocka_unit_test(nothing_has_no_text),
        cmocka_unit_test(what_was_written_ahead_stands_where_it_belongs),
        cmocka_unit_test(without_memory_nothing_is_written_ahead),
        cmocka_unit_test(values_may_be_kept_in_an_arena),
        cmocka_unit_test(what_lacks_a_value_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
