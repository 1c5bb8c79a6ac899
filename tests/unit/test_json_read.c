#include "tests/unit/check.h"

#include <string.h>

#include "engine/json/json_read.h"

static json_t *parse(const char *text, adv_err *err)
{
    json_t *root;
    adv_err_init(err);
    (void)!adv_json_parse(text, strlen(text), &root, err);
    return root;
}

static void syntax_errors_duplicates_and_deep_nesting_are_refused(void **state)
{
    (void)state;
    adv_err err;
    assert_null(parse("{\"a\": }", &err));
    assert_int_equal(err.code, ADV_E_SYNTAX);
    assert_null(parse("{\"a\": 1, \"a\": 2}", &err));
    assert_int_equal(err.code, ADV_E_SYNTAX);
    char deep[2 * (ADV_LIMIT_JSON_DEPTH + 1) + 1];
    for (int depth = ADV_LIMIT_JSON_DEPTH; depth <= ADV_LIMIT_JSON_DEPTH + 1; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        deep[2 * depth] = '\0';
        json_t *root = parse(deep, &err);
        assert_int_equal(err.code, depth > ADV_LIMIT_JSON_DEPTH ? ADV_E_SYNTAX : ADV_OK);
        json_decref(root);
    }
    json_t *root = parse("{\"brackets\": \"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[\"}", &err);
    assert_int_equal(err.code, ADV_OK);
    json_decref(root);
}

static void all_wrong_members_are_reported_with_their_pointers(void **state)
{
    (void)state;
    adv_err err;
    json_t *root =
        parse("{\"a/b\": 1, \"count\": 99, \"ratio\": \"x\", \"modd\": true, \"whole\": 4.0}", &err);
    int count = 0;
    double ratio = 0;
    const char *name = NULL;
    int64_t whole = 0;
    assert_false(adv_json_int(root, "/top", "count", ADV_JSON_OPTIONAL, 0, 10, &count, &err));
    assert_false(adv_json_number(root, "/top", "ratio", ADV_JSON_OPTIONAL, 0, 1, &ratio, &err));
    assert_false(adv_json_string(root, "/top", "a/b", ADV_JSON_OPTIONAL, &name, &err));
    assert_false(adv_json_string(root, "/top", "missing", ADV_JSON_REQUIRED, &name, &err));
    assert_false(adv_json_string(root, "/top", "absent", ADV_JSON_OPTIONAL, &name, &err));
    assert_true(adv_json_integer(root, "/top", "whole", ADV_JSON_OPTIONAL, 0, 10, &whole, &err));
    assert_int_equal(whole, 4);
    assert_int_equal(err.count, 4);
    assert_string_equal(err.findings[0].pointer, "/top/count");
    assert_int_equal(err.findings[0].code, ADV_E_RANGE);
    assert_string_equal(err.findings[1].pointer, "/top/ratio");
    assert_string_equal(err.findings[2].pointer, "/top/a~1b");
    assert_string_equal(err.findings[3].pointer, "/top/missing");
    json_decref(root);
}

/* The hint of a refused number is what was probably meant. */
static void refused_numbers_name_the_nearest_legal_value(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hint;
        adv_code code;
    } cases[] = {
        {"{\"n\": 0}", "1, the nearest legal value", ADV_E_RANGE},
        {"{\"n\": -7}", "1, the nearest legal value", ADV_E_RANGE},
        {"{\"n\": 65}", "64, the nearest legal value", ADV_E_RANGE},
        {"{\"n\": 1e30}", "64, the nearest legal value", ADV_E_RANGE},
        {"{\"n\": 99999999999999999999}", "64, the nearest legal value", ADV_E_RANGE},
        {"{\"n\": 9223372036854775807}", "64, the nearest legal value", ADV_E_RANGE},
        {"{\"n\": 1.5}", "1 or 2", ADV_E_INVALID},
        {"{\"n\": \"16\"}", "16, without quotes", ADV_E_INVALID},
        {"{\"n\": \"0x10\"}", "a number from 1 to 64", ADV_E_INVALID}, /* JSON has no such number */
        {"{\"n\": \"many\"}", "a number from 1 to 64", ADV_E_INVALID},
        {"{\"n\": [3]}", "a number from 1 to 64", ADV_E_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adv_err err;
        int value = 5;
        json_t *root = parse(cases[i].text, &err);
        assert_false(adv_json_int(root, "", "n", ADV_JSON_OPTIONAL, 1, 64, &value, &err));
        assert_int_equal(value, 5);
        assert_int_equal(err.count, 1);
        assert_int_equal(err.findings[0].code, cases[i].code);
        assert_string_equal(err.findings[0].hint, cases[i].hint);
        json_decref(root);
    }
}

static void unknown_members_name_the_nearest_known_one(void **state)
{
    (void)state;
    adv_err err;
    json_t *root = parse("{\"modle\": 1, \"cluster\": 2}", &err);
    const char *names[] = {"model", "cluster", "config"};
    assert_false(adv_json_known_members(root, "", names, 3, &err));
    assert_int_equal(err.count, 1);
    assert_string_equal(err.findings[0].pointer, "/modle");
    assert_non_null(strstr(err.findings[0].hint, "model"));
    json_decref(root);
}

static void names_are_suggested_whatever_their_case_and_ending(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {"{\"kernel\": \"GMM\"}", "did you mean `gmm`?"},
        {"{\"kernel\": \"gmm_pallas_v2\"}", "did you mean `gmm`?"},
        {"{\"kernel\": \"splash_fw\"}", "did you mean `splash_fwd`?"},
        {"{\"kernel\": \"softmax\"}", "known: `gmm` `splash_fwd`"},
        {"{}", "known: `gmm` `splash_fwd`"},
    };
    static const char *const names[] = {"gmm", "splash_fwd"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adv_err err;
        int index = 0;
        json_t *root = parse(cases[i].text, &err);
        assert_false(adv_json_choice(root, "", "kernel", ADV_JSON_REQUIRED, names, 2, &index, &err));
        assert_int_equal(err.count, 1);
        assert_string_equal(err.findings[0].hint, cases[i].hint);
        json_decref(root);
    }
}

static void members_are_suggested_by_their_beginning_and_by_other_tools_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hint;
    } cases[] = {
        {"{\"global_batch_siz\": 1}", "did you mean `global_batch_sequences`?"},
        {"{\"max_target_length\": 1}", "did you mean `seq_len`?"},
        {"{\"Sequence_Length\": 1}", "did you mean `seq_len`?"},
        {"{\"seq_length\": 1}", "did you mean `seq_len`?"},
        {"{\"num_slices\": 1}",
         "known: `global_tokens` `global_batch_sequences` `seq_len`"}, /* no word here */
        {"{\"global_rank\": 1}", "known: `global_tokens` `global_batch_sequences` `seq_len`"},
        {"{\"batch_size\": 1}", "did you mean `global_batch_sequences`?"},
        /* what is there already is not what was meant */
        {"{\"seq_length\": 1, \"seq_len\": 1}", "known: `global_tokens` `global_batch_sequences` `seq_len`"},
    };
    static const char *const names[] = {"global_tokens", "global_batch_sequences", "seq_len"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        adv_err err;
        json_t *root = parse(cases[i].text, &err);
        assert_false(adv_json_known_members(root, "", names, 3, &err));
        assert_int_equal(err.count, 1);
        assert_string_equal(err.findings[0].hint, cases[i].hint);
        json_decref(root);
    }
}

static void pointers_are_escaped_and_cut(void **state)
{
    (void)state;
    char pointer[ADV_LIMIT_POINTER];
    assert_string_equal(adv_json_pointer(pointer, "/a", "x~/y"), "/a/x~0~1y");
    char name[400];
    memset(name, '/', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_true(strlen(adv_json_pointer(pointer, "", name)) < ADV_LIMIT_POINTER);
    assert_true(strlen(adv_json_pointer(pointer, name, name)) < ADV_LIMIT_POINTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(syntax_errors_duplicates_and_deep_nesting_are_refused),
        cmocka_unit_test(all_wrong_members_are_reported_with_their_pointers),
        cmocka_unit_test(refused_numbers_name_the_nearest_legal_value),
        cmocka_unit_test(unknown_members_name_the_nearest_known_one),
        cmocka_unit_test(names_are_suggested_whatever_their_case_and_ending),
        cmocka_unit_test(members_are_suggested_by_their_beginning_and_by_other_tools_words),
        cmocka_unit_test(pointers_are_escaped_and_cut),
    };
    return run_group(tests);
}
