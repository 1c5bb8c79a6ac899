#include "tests/unit/check.h"

#include <string.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/base/list.h"
#include "engine/base/near.h"
#include "engine/base/text.h"

static void arena_holds_little_more_than_is_used(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_arena_init(&arena, 64u << 20);
    for (size_t bytes = 64; bytes <= 8u << 20; bytes *= 2) {
        assert_non_null(adv_arena_alloc(&arena, bytes));
        assert_true(arena.held_bytes >= arena.used_bytes);
        assert_true(arena.held_bytes <= 2 * arena.used_bytes + (1u << 20));
    }
    adv_arena_free(&arena);
    assert_int_equal(arena.held_bytes, 0);
}

static void arena_gives_zeroed_memory_and_refuses_past_its_cap(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_arena_init(&arena, 1000);
    char *memory = adv_arena_alloc(&arena, 512);
    assert_non_null(memory);
    for (int i = 0; i < 512; i++) assert_int_equal(memory[i], 0);
    assert_null(adv_arena_alloc(&arena, 512));
    assert_null(adv_arena_array(&arena, SIZE_MAX / 2, 4));
    adv_arena_free(&arena);
    assert_non_null(adv_arena_alloc(&arena, 512));
    adv_arena_free(&arena);
}

static void findings_beyond_the_limit_are_counted_not_written(void **state)
{
    (void)state;
    adv_err err;
    adv_err_init(&err);
    for (int i = 0; i < ADV_LIMIT_FINDINGS + 3; i++)
        (void)adv_err_add(&err, ADV_E_INVALID, "/config/x", NULL, "finding %d", i);
    assert_int_equal(err.count, ADV_LIMIT_FINDINGS);
    assert_int_equal(err.lost_count, 3);
    assert_int_equal(err.code, ADV_E_INVALID);
}

static void text_past_its_limit_is_dropped_and_flagged(void **state)
{
    (void)state;
    struct adv_text text;
    adv_text_init(&text, 8);
    adv_text_append(&text, "1234567");
    assert_false(text.overflow);
    adv_text_format(&text, "%d", 8);
    assert_true(text.overflow);
    assert_string_equal(text.data, "1234567");
    adv_text_free(&text);
}

static void nearest_name_is_found_within_a_third_of_the_length(void **state)
{
    (void)state;
    const char *names[] = {"llama3.1-70b", "llama2-70b", NULL, "gemma3-27b"};
    assert_string_equal(adv_text_nearest("llama3.1-70", names, 4), "llama3.1-70b");
    assert_string_equal(adv_text_nearest("gema3-27b", names, 4), "gemma3-27b");
    assert_null(adv_text_nearest("gpt", names, 4));
    assert_string_equal(adv_text_nearest("GEMMA-3-27B", names, 4), "gemma3-27b");
    char far[400]; /* longer than any name */
    memset(far, 'G', sizeof far - 1);
    far[sizeof far - 1] = '\0';
    assert_null(adv_text_nearest(far, names, 4));
}

/* By hand: the divisors of 2880 that 64 divides are 64, 192, 320, 576, 960, 2880. */
static void neighbours_are_the_nearest_divisors(void **state)
{
    (void)state;
    struct adv_near near = adv_near_divisors(2880, 64, 700);
    assert_int_equal(near.below, 576);
    assert_int_equal(near.above, 960);
    near = adv_near_divisors(2880, 64, 10);
    assert_int_equal(near.below, 0);
    assert_int_equal(near.above, 64);
    near = adv_near_divisors(2880, 64, 5000);
    assert_int_equal(near.below, 2880);
    assert_int_equal(near.above, 0);
    near = adv_near_divisors(1000, 16, 128); /* nothing but the whole */
    assert_int_equal(near.below, 0);
    assert_int_equal(near.above, 1000);
    char text[32];
    assert_string_equal(adv_near_text((struct adv_near){576, 960}, text, sizeof text), "576 or 960");
    assert_string_equal(adv_near_text((struct adv_near){576, 576}, text, sizeof text), "576");
    assert_string_equal(adv_near_text((struct adv_near){0, 64}, text, sizeof text), "64");
    near = adv_near_multiples(128, 1000);
    assert_int_equal(near.below, 896);
    assert_int_equal(near.above, 1024);
    near = adv_near_multiples(128, -5);
    assert_int_equal(near.below, 0);
    assert_int_equal(near.above, 128);
}

/* The same by trying every value. */
static void neighbours_agree_with_trying_every_value(void **state)
{
    (void)state;
    for (int64_t length = 1; length <= 600; length++) {
        for (int64_t wanted = 1; wanted <= 700; wanted += 13) {
            int64_t below = 0, above = 0;
            for (int64_t v = 1; v <= length; v++) {
                if (length % v || (v % 8 && v != length)) continue;
                if (v <= wanted) below = v;
                if (v >= wanted && above == 0) above = v;
            }
            const struct adv_near near = adv_near_divisors(length, 8, wanted);
            assert_int_equal(near.below, below);
            assert_int_equal(near.above, above);
        }
    }
}

/* An array that grows to megabytes holds them once, not every size it ever had. */
/* Against sorting all that was offered. */
static void an_ordered_list_holds_the_least_of_what_it_was_offered(void **state)
{
    (void)state;
    enum { CAPACITY = 5, OFFERED = 40 };
    int list[CAPACITY], all[OFFERED], count = 0, all_count = 0;
    for (int i = 0; i < OFFERED; i++) {
        const int value = i * 17 % 41;
        int at = count, everywhere = all_count;
        while (at > 0 && list[at - 1] > value) at--;
        while (everywhere > 0 && all[everywhere - 1] > value) everywhere--;
        int *place = adv_list_open(list, sizeof *list, &count, CAPACITY, at);
        assert_int_equal(place == NULL, at == CAPACITY);
        if (place) *place = value;
        int *there = adv_list_open(all, sizeof *all, &all_count, OFFERED, everywhere);
        assert_non_null(there);
        if (there) *there = value;
        assert_int_equal(count, all_count < CAPACITY ? all_count : CAPACITY);
        assert_memory_equal(list, all, (size_t)count * sizeof *list);
    }
    adv_list_close(list, sizeof *list, &count, 1);
    assert_int_equal(count, CAPACITY - 1);
    assert_true(list[0] == all[0] && list[1] == all[2] && list[3] == all[4]);
    adv_list_close(list, sizeof *list, &count, 3);
    assert_true(count == 3 && list[2] == all[3]);
}

static void a_growing_array_gives_its_old_block_back(void **state)
{
    (void)state;
    struct adv_arena arena;
    adv_arena_init(&arena, 16u << 20);
    char *first = adv_arena_copy(&arena, "first");
    size_t count = 16;
    int *numbers = adv_arena_grow(&arena, NULL, 0, count, sizeof *numbers);
    for (; count < 2u << 20; count *= 2) {
        numbers[count - 1] = (int)count;
        numbers = adv_arena_grow(&arena, numbers, count, 2 * count, sizeof *numbers);
        assert_non_null(numbers);
        assert_int_equal(numbers[count - 1], (int)count);
        assert_int_equal(numbers[count], 0);
    }
    assert_true(arena.held_bytes < 10u << 20);
    assert_null(adv_arena_grow(&arena, numbers, count, 4 * count, sizeof *numbers));
    assert_int_equal(numbers[count / 2 - 1], (int)(count / 2));
    assert_string_equal(first, "first");
    adv_arena_free(&arena);
}

static void texts_are_mended_between_characters(void **state)
{
    (void)state;
    static const struct {
        const char *given, *mended;
    } texts[] = {
        {"", ""},
        {"h\xc3\xa4", "h\xc3\xa4"}, /* whole */
        {"h\xc3", "h"},             /* cut */
        {"h\xe2\x82", "h"},         /* the same, of three bytes */
        {"\xf0\x9f\x98 \xf0\x9f\x98\x80", " \xf0\x9f\x98\x80"},
        {"a\xff\x80z", "a??z"}, /* never was UTF-8 */
        {"\xc0\xaf", "??"},     /* overlong */
        {"\xed\xa0\x80", ""},   /* a surrogate */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%s", texts[i].given);
        adv_text_mend(text);
        assert_string_equal(text, texts[i].mended);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_mended_between_characters),
        cmocka_unit_test(an_ordered_list_holds_the_least_of_what_it_was_offered),
        cmocka_unit_test(a_growing_array_gives_its_old_block_back),
        cmocka_unit_test(arena_holds_little_more_than_is_used),
        cmocka_unit_test(neighbours_are_the_nearest_divisors),
        cmocka_unit_test(neighbours_agree_with_trying_every_value),
        cmocka_unit_test(arena_gives_zeroed_memory_and_refuses_past_its_cap),
        cmocka_unit_test(findings_beyond_the_limit_are_counted_not_written),
        cmocka_unit_test(text_past_its_limit_is_dropped_and_flagged),
        cmocka_unit_test(nearest_name_is_found_within_a_third_of_the_length),
    };
    return run_group(tests);
}
