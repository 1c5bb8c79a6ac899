/* Whichever allocation of a reading fails, and however many after it, the reading says so and touches no
 * memory but its own (the sanitizers watch). The file under test is included, so that its malloc can be told
 * to fail. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

static long allocations, fails_from, fails_up_to;

static void *counted_malloc(size_t bytes)
{
    allocations++;
    return allocations >= fails_from && allocations <= fails_up_to ? NULL : malloc(bytes);
}

#define malloc counted_malloc
#include "engine/json/json_load.c" // NOLINT(bugprone-suspicious-include)
#undef malloc

enum { DOCUMENT_BYTES = 20000 };

static json_t *load(const char *text, long from, long up_to, json_error_t *error)
{
    allocations = 0;
    fails_from = from;
    fails_up_to = up_to;
    json_t *value = adv_json_load(text, strlen(text), JSON_DECODE_ANY, error);
    fails_from = fails_up_to = 0;
    return value;
}

/* `opening`, then `member` until the document is full, then `closing`. */
static const char *document(char text[DOCUMENT_BYTES + 1], const char *opening, const char *member,
                            const char *closing)
{
    size_t bytes = 0;
    text[0] = '\0';
    const char *next = opening;
    while (bytes + strlen(next) + strlen(closing) <= DOCUMENT_BYTES) {
        memcpy(text + bytes, next, strlen(next) + 1);
        bytes += strlen(next);
        next = member;
    }
    memcpy(text + bytes, closing, strlen(closing) + 1);
    return text;
}

static void whichever_allocation_fails_the_reading_says_so(void **state)
{
    (void)state;
    static const char *const shapes[][3] = {
        {"\"", "x", "\""},           {"\"", "\\n\\u00e4", "\""}, {"[1", "234567", "]"},
        {"[1.", "5", "e2]"},         {"[0", ",{}", "]"},         {"[0", ",[0,0,0]", "]"},
        {"[\"\"", ",\"word\"", "]"}, {"{\"", "name", "\": 1}"},  {"[true", ",{\"a\":{\"b\":[null]}}", "]"}};
    static char text[DOCUMENT_BYTES + 1];
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        (void)document(text, shapes[i][0], shapes[i][1], shapes[i][2]);
        json_error_t error;
        json_t *whole = load(text, 0, 0, &error);
        if (!whole) assert_int_equal(json_error_code(&error), json_error_numeric_overflow);
        const long all = allocations;
        assert_true(all > 5);
        for (long nth = 1; nth <= all; nth += nth < 200 ? 1 : all / 200 + 1)
            for (int persists = 0; persists < 2; persists++) {
                assert_null(load(text, nth, persists ? all + 1000 : nth, &error));
                assert_int_equal(json_error_code(&error), json_error_out_of_memory);
            }
        json_t *again = load(text, 0, 0, &error);
        assert_true(json_equal(whole, again) || (!whole && !again));
        json_decref(whole);
        json_decref(again);
    }
}

static void a_reading_keeps_the_words_and_the_places_of_the_library(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"a\": }",
                                        "[1, 2",
                                        "\"\\ud800\"",
                                        "[1] x",
                                        "\xff",
                                        "99999999999999999999",
                                        "{\"a\": [1, 2.5, \"\\\"\", null, true]}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_error_t ours;
        json_error_t theirs;
        json_t *mine = adv_json_load(texts[i], strlen(texts[i]), JSON_DECODE_ANY, &ours);
        json_t *other = json_loads(texts[i], JSON_DECODE_ANY, &theirs);
        assert_true(mine ? json_equal(mine, other) : !other);
        if (!mine) {
            assert_string_equal(ours.text, theirs.text);
            assert_int_equal(ours.line, theirs.line);
            assert_int_equal(ours.column, theirs.column);
            assert_int_equal(json_error_code(&ours), json_error_code(&theirs));
        }
        json_decref(mine);
        json_decref(other);
    }
    json_error_t error;
    assert_null(adv_json_load(NULL, 0, 0, &error));
    assert_int_not_equal(error.text[0], '\0'); /* it is told like any other text without a value */
    assert_null(adv_json_load_string(NULL, 0));
}

static void plain_values_are_those_that_the_library_reads(void **state)
{
    (void)state;
    static const char *const texts[] = {"true",
                                        "false",
                                        "null",
                                        "0",
                                        "1",
                                        "-1",
                                        "-0",
                                        "007",
                                        "12345",
                                        "999999999999999999",
                                        "9999999999999999999",
                                        "99999999999999999999",
                                        "1.5",
                                        "1e3",
                                        "12 ",
                                        " 12",
                                        "12x",
                                        "truex",
                                        "\"\"",
                                        "\"",
                                        "\"a b~\"",
                                        "\"a\\nb\"",
                                        "\"a\"b\"",
                                        "\"tab\tinside\"",
                                        "\"h\xc3\xa4\"",
                                        "\"h\xc3\"",
                                        "\"open",
                                        "[1,2]",
                                        "{\"a\":1}",
                                        ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *read = adv_json_load(texts[i], strlen(texts[i]), JSON_DECODE_ANY, NULL);
        json_t *plain = adv_json_load_string(texts[i], JSON_DECODE_ANY);
        if (!read != !plain || (read && !json_equal(read, plain))) fail_msg("%s is read otherwise", texts[i]);
        json_decref(read);
        json_decref(plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whichever_allocation_fails_the_reading_says_so),
        cmocka_unit_test(a_reading_keeps_the_words_and_the_places_of_the_library),
        cmocka_unit_test(plain_values_are_those_that_the_library_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
