#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/json_read.h"
#include "tests/unit/catalog_fixture.h"

static struct adv_answer answer_of(const char *config)
{
    char text[1024];
    adv_err err;
    struct adv_answer answer;
    adv_err_init(&err);
    (void)snprintf(text, sizeof text,
                   "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x1\"},"
                   "\"label\":\"a\",\"config\":{"
                   "\"per_device_batch_size\":2,\"max_target_length\":8192%s}}",
                   config);
    adv_code code = adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, text, strlen(text), &answer, &err);
    if (code != ADV_OK) print_error("%s\n", err.findings[0].detail);
    assert_int_equal(code, ADV_OK);
    return answer;
}

static double sum_of(const json_t *rows, const char *member)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        sum += json_number_value(json_object_get(json_array_get(rows, i), member));
    return sum;
}

static void moved_terms_add_up_to_the_difference(void **state)
{
    (void)state;
    struct adv_answer first = answer_of("");
    struct adv_answer second =
        answer_of(",\"remat_policy\":\"minimal_with_context\",\"ici_tensor_parallelism\":2");
    const char *ids[] = {"one", "two", "three"};
    const char *responses[] = {first.json, second.json, first.json};
    struct adv_answer compared;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_compare_json(ids, responses, 3, &compared, &err), ADV_OK);
    json_t *root = json_loads(compared.json, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(root, "runs")), 3);
    const json_t *moved = json_array_get(json_object_get(root, "differences"), 0);
    const json_t *time = json_object_get(moved, "time_terms");
    const json_t *memory = json_object_get(moved, "memory_terms");
    assert_close(sum_of(time, "from"), first.step_time_s, 1e-9);
    assert_close(sum_of(time, "to"), second.step_time_s, 1e-9);
    assert_close(sum_of(time, "delta"), second.step_time_s - first.step_time_s, 1e-6);
    assert_close(sum_of(memory, "delta"), second.hbm_bytes_per_device - first.hbm_bytes_per_device, 1e-6);
    const json_t *same = json_array_get(json_object_get(root, "differences"), 1);
    assert_close(json_number_value(json_object_get(same, "step_time_s")), 0, 0);
    json_decref(root);
    adv_answer_free(&compared);
    adv_answer_free(&first);
    adv_answer_free(&second);
}

static void parts_that_do_not_add_up_leave_a_row_of_their_own(void **state)
{
    (void)state;
    const char *ids[] = {"a", "b"};
    const char *responses[] = {"{\"step_time_s\":2,\"hbm_bytes_per_device\":10,\"time_parts\":[{\"name\":"
                               "\"x\",\"exposed_seconds\":1}],\"hbm_parts\":[]}",
                               "{\"step_time_s\":3,\"hbm_bytes_per_device\":10,\"time_parts\":[{\"name\":"
                               "\"x\",\"exposed_seconds\":3}],\"hbm_parts\":[]}"};
    struct adv_answer compared;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_compare_json(ids, responses, 2, &compared, &err), ADV_OK);
    assert_non_null(strstr(compared.json, "{\"name\":\"not_itemised\",\"from\":1,\"to\":0,\"delta\":-1}"));
    assert_non_null(strstr(compared.json, "\"memory_at_from\":null,\"memory_at_to\":null"));
    adv_answer_free(&compared);
}

static void memory_terms_name_the_peak_that_either_run_is_at(void **state)
{
    (void)state;
    const char *ids[] = {"a", "b"};
    const char *responses[] = {
        "{\"step_time_s\":2,\"hbm_bytes_per_device\":10,\"hbm_parts\":[{\"name\":\"x\","
        "\"at\":\"loss\",\"bytes\":10},{\"name\":\"y\",\"at\":\"update\",\"bytes\":9}]}",
        "{\"step_time_s\":2,\"hbm_bytes_per_device\":11,\"hbm_parts\":[{\"name\":\"x\","
        "\"at\":\"loss\",\"bytes\":10},{\"name\":\"y\",\"at\":\"update\",\"bytes\":11}]}"};
    struct adv_answer compared;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_compare_json(ids, responses, 2, &compared, &err), ADV_OK);
    assert_non_null(strstr(compared.json, "\"memory_at_from\":\"loss\",\"memory_at_to\":\"update\""));
    adv_answer_free(&compared);
}

static void unlike_runs_are_named_and_compared_by_the_token(void **state)
{
    (void)state;
    struct adv_answer one = answer_of(""), two = answer_of(",\"gradient_accumulation_steps\":2");
    const char *ids[] = {"a", "b", "c", "d"}, *same[] = {"d", "e"};
    const char other[] =
        "{\"step_time_s\":2,\"tokens_per_step\":64,\"global_batch_sequences\":2,\"warnings\":[{\"code\":"
        "\"what-if-hardware\"}],\"model\":{\"params_total\":1},\"cluster\":{\"chip\":\"v5p\"},"
        "\"engine\":{\"version\":\"0\",\"calibration\":\"other\"}}";
    const char *responses[] = {one.json, one.json, two.json, other};
    struct adv_answer compared;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_compare_json(ids, responses, 4, &compared, &err), ADV_OK);
    json_t *root = json_loads(compared.json, 0, NULL);
    const char *const expected[] = {"[]", "[\"tokens_per_step\"]",
                                    ("[\"model\",\"machine\",\"engine\",\"calibration\",\"hardware\","
                                     "\"tokens_per_step\",\"sequence_length\"]")};
    for (size_t i = 0; i < 3; i++) {
        const json_t *pair = json_array_get(json_object_get(root, "differences"), i);
        char *unlike = json_dumps(json_object_get(pair, "unlike"), JSON_COMPACT);
        assert_string_equal(unlike, expected[i]);
        free(unlike);
    }
    struct adv_answer twice; /* of which overrides each is, nobody can say */
    assert_int_equal(adv_compare_json(same, (const char *[]){other, other}, 2, &twice, &err), ADV_OK);
    assert_non_null(strstr(twice.json, "\"unlike\":[\"hardware\"]"));
    adv_answer_free(&twice);
    const json_t *larger = json_array_get(json_object_get(root, "differences"), 1);
    assert_true(json_number_value(json_object_get(larger, "step_time_frac")) > 0.9);
    assert_close(json_number_value(json_object_get(larger, "time_per_token_frac")),
                 two.step_time_s / one.step_time_s / 2.0 - 1.0, 1e-6);
    json_decref(root);
    adv_answer_free(&compared);
    adv_answer_free(&one);
    adv_answer_free(&two);
}

static void an_advise_answer_is_compared_by_its_first_plan(void **state)
{
    (void)state;
    const char *ids[] = {"a", "b"};
    const char *responses[] = {
        "{\"step_time_s\":2,\"hbm_bytes_per_device\":1}",
        "{\"ranked\":[{\"estimate\":{\"step_time_s\":4,\"hbm_bytes_per_device\":1}}]}"};
    struct adv_answer compared;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_compare_json(ids, responses, 2, &compared, &err), ADV_OK);
    assert_non_null(strstr(compared.json, "\"step_time_s\":2,\"step_time_frac\":1,"));
    adv_answer_free(&compared);
}

static void answers_without_a_step_time_are_refused_by_name(void **state)
{
    (void)state;
    const char *ids[] = {"good", "bad", "worse"};
    const char *responses[] = {"{\"step_time_s\":2}", "{\"ranked\":[]}", "not JSON"};
    struct adv_answer compared;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_compare_json(ids, responses, 3, &compared, &err), ADV_E_INVALID);
    assert_int_equal(err.count, 2);
    assert_non_null(strstr(err.findings[0].detail, "bad"));
    assert_null(compared.json);
}

static void a_problem_names_every_finding_even_with_broken_text(void **state)
{
    (void)state;
    adv_err err;
    adv_err_init(&err);
    (void)adv_err_add(&err, ADV_E_INVALID, "/a", NULL, "cut inside a character: %.1s", "\xc3\xa4");
    (void)adv_err_add_rule(&err, ADV_E_ILLEGAL, "some-rule", "/b", "do that", "second");
    char *problem = adv_problem_json(&err, "/v1/estimate");
    json_t *root = json_loads(problem, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(root, "status")), 422);
    json_t *errors = json_object_get(root, "errors");
    assert_int_equal(json_array_size(errors), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(errors, 0), "detail")),
                        "cut inside a character: ");
    assert_string_equal(json_string_value(json_object_get(json_array_get(errors, 1), "code")), "some-rule");
    assert_string_equal(json_string_value(json_object_get(root, "instance")), "/v1/estimate");
    json_decref(root);
    free(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moved_terms_add_up_to_the_difference),
        cmocka_unit_test(parts_that_do_not_add_up_leave_a_row_of_their_own),
        cmocka_unit_test(memory_terms_name_the_peak_that_either_run_is_at),
        cmocka_unit_test(unlike_runs_are_named_and_compared_by_the_token),
        cmocka_unit_test(an_advise_answer_is_compared_by_its_first_plan),
        cmocka_unit_test(answers_without_a_step_time_are_refused_by_name),
        cmocka_unit_test(a_problem_names_every_finding_even_with_broken_text),
    };
    return run_group_with_catalog(tests);
}
