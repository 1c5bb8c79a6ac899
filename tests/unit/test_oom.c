/* An out-of-memory message with its request: every lever takes less of the memory that ran out. */
#include "tests/unit/answer_fixture.h"

#define OF_HBM                                                                                               \
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 50.50G of 31.25G hbm. Exceeded hbm "    \
    "capacity by 19.25G."
#define AT_RUN_TIME                                                                                          \
    "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 2.00G. That was not "        \
    "possible. There are 1.51G free."
#define OF_HOST                                                                                              \
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space host. Used 400.00G of 360.00G host. Exceeded "    \
    "host capacity by 40.00G."
#define OF_VMEM                                                                                              \
    "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %splash. "     \
    "Scoped allocation with size 17.07M and limit 16.00M exceeded scoped vmem limit by 1.07M."

static char *explain(const char *message, const json_t *request, adv_err *err)
{
    char *answer = NULL;
    json_t *body = json_pack("{ss sO}", "message", message, "request", request);
    char *text = json_dumps(body, 0);
    adv_err_init(err);
    if (adv_explain_oom(catalog, text, strlen(text), NULL, &answer, err) != ADV_OK) answer = NULL;
    free(text);
    json_decref(body);
    return answer;
}

/* Nothing of the search, which the request does not have, is in the answer. */
static json_t *explained(const char *message, const json_t *request)
{
    adv_err err;
    char *answer = explain(message, request, &err);
    if (!answer) fail_msg("%s: %s", err.findings[0].pointer, err.findings[0].detail);
    assert_null(strstr(answer, "search."));
    json_t *root = json_loads(answer, 0, NULL);
    free(answer);
    return root;
}

static json_t *request_with(const char *config)
{
    json_t *request = json_pack("{ss s{ss ss} so}", "model", "llama3.1-8b", "cluster", "chip", "v6e",
                                "topology", "4x4", "config", json_loads(config, 0, NULL));
    assert_non_null(request);
    return request;
}

#define FULL  "{\"per_device_batch_size\": 1, \"max_target_length\": 8192, \"remat_policy\": \"full\"}"
#define LARGE "{\"per_device_batch_size\": 4, \"max_target_length\": 8192, \"remat_policy\": \"minimal\"}"
#define OFFLOADED                                                                                            \
    "{\"per_device_batch_size\": 1, \"max_target_length\": 8192, \"remat_policy\": \"full\", "               \
    "\"optimizer_memory_host_offload\": true}"

static double number_of(const json_t *object, const char *member)
{
    const json_t *value = json_object_get(object, member);
    if (!json_is_number(value)) fail_msg("no %s", member);
    return json_number_value(value);
}

/* At least `least` of them, each takes less than `bytes`, fastest first. */
static void check_levers(const json_t *told, size_t least, const char *member, double bytes)
{
    const json_t *levers = json_object_get(told, "levers");
    double before_s = 0;
    assert_true(json_array_size(levers) >= least);
    for (size_t i = 0; i < json_array_size(levers); i++) {
        const json_t *lever = json_array_get(levers, i);
        const double time_s = number_of(lever, "step_time_s"), its = number_of(lever, member);
        if (!(its < bytes)) fail_msg("lever %zu takes %g of %g bytes", i, its, bytes);
        assert_true(time_s >= before_s);
        before_s = time_s;
    }
}

static void levers_of_the_compilers_word_take_less(void **state)
{
    (void)state;
    json_t *request = request_with(LARGE), *told = explained(OF_HBM, request);
    const json_t *predicted = json_object_get(told, "predicted");
    check_levers(told, 1, "hbm_bytes_per_device", number_of(predicted, "hbm_bytes_per_device"));
    json_decref(told);
    json_decref(request);
}

static void levers_at_run_time_leave_what_was_short(void **state)
{
    (void)state;
    json_t *request = request_with(FULL), *told = explained(AT_RUN_TIME, request);
    const json_t *predicted = json_object_get(told, "predicted");
    const double short_bytes = 0.49 * 1073741824.0;
    check_levers(told, 1, "hbm_bytes_per_device",
                 number_of(predicted, "hbm_bytes_per_device") - short_bytes + 1.0);
    json_decref(told);
    json_decref(request);
}

static void levers_of_host_memory_take_less_of_it(void **state)
{
    (void)state;
    json_t *request = request_with(OFFLOADED), *told = explained(OF_HOST, request);
    const json_t *predicted = json_object_get(told, "predicted");
    check_levers(told, 1, "host_bytes_per_host", number_of(predicted, "host_bytes_per_host"));
    json_decref(told);
    json_decref(request);
    request = request_with(FULL);
    told = explained(OF_HOST, request);
    assert_int_equal(json_array_size(json_object_get(told, "levers")), 0);
    json_decref(told);
    json_decref(request);
}

static void of_vmem_only_keys_of_kernels_are_told(void **state)
{
    (void)state;
    json_t *request = request_with(LARGE), *told = explained(OF_VMEM, request);
    assert_true(json_is_object(json_object_get(told, "predicted")));
    assert_int_equal(json_array_size(json_object_get(told, "levers")), 0);
    assert_null(json_object_get(told, "near_misses"));
    assert_true(json_array_size(json_object_get(told, "keys")) > 0);
    json_decref(told);
    json_decref(request);
}

/* As the members of the request that it means. */
static void a_recipe_has_levers_too(void **state)
{
    (void)state;
    json_t *members = request_with(LARGE);
    json_object_set_new(json_object_get(members, "config"), "model_name", json_string("llama3.1-8b"));
    json_t *recipe = json_pack("{ss s{ss ss}}", "recipe",
                               "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama3.1-8b "
                               "per_device_batch_size=4 max_target_length=8192 remat_policy=minimal",
                               "cluster", "chip", "v6e", "topology", "4x4");
    json_t *by_members = explained(OF_HBM, members), *by_recipe = explained(OF_HBM, recipe);
    assert_true(json_array_size(json_object_get(by_recipe, "levers")) > 0);
    assert_true(json_equal(json_object_get(by_recipe, "levers"), json_object_get(by_members, "levers")));
    assert_true(
        json_equal(json_object_get(by_recipe, "near_misses"), json_object_get(by_members, "near_misses")));
    json_decref(by_recipe);
    json_decref(by_members);
    json_decref(recipe);
    json_decref(members);
}

/* Dimensions and formats among the keys are no other job. */
static void keys_of_the_model_hold_in_every_lever(void **state)
{
    (void)state;
    json_t *request =
        request_with("{\"per_device_batch_size\": 4, \"max_target_length\": 8192, \"remat_policy\": "
                     "\"minimal\", \"base_num_decoder_layers\": 30, \"quantization\": \"intmp\"}");
    json_t *told = explained(OF_HBM, request);
    const json_t *levers = json_object_get(told, "levers");
    assert_true(json_array_size(levers) > 0);
    for (size_t i = 0; i < json_array_size(levers); i++) {
        const json_t *config = json_object_get(json_array_get(levers, i), "config");
        assert_int_equal(json_integer_value(json_object_get(config, "base_num_decoder_layers")), 30);
        assert_string_equal(json_string_value(json_object_get(config, "quantization")), "intmp");
    }
    json_decref(told);
    json_decref(request);
}

/* Keys that the release of the request lacks are in no lever. */
static void levers_are_for_the_software_of_the_request(void **state)
{
    (void)state;
    json_t *request = request_with(LARGE), *now = explained(OF_HBM, request);
    json_object_set_new(request, "software", json_pack("{ss}", "maxtext", "0.1.0"));
    json_t *before = explained(OF_HBM, request);
    assert_true(json_array_size(json_object_get(before, "levers")) > 0);
    assert_false(json_equal(json_object_get(before, "levers"), json_object_get(now, "levers")));
    json_decref(before);
    json_decref(now);
    json_decref(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levers_of_the_compilers_word_take_less),
        cmocka_unit_test(levers_at_run_time_leave_what_was_short),
        cmocka_unit_test(levers_of_host_memory_take_less_of_it),
        cmocka_unit_test(of_vmem_only_keys_of_kernels_are_told),
        cmocka_unit_test(a_recipe_has_levers_too),
        cmocka_unit_test(keys_of_the_model_hold_in_every_lever),
        cmocka_unit_test(levers_are_for_the_software_of_the_request),
    };
    return run_group_with_catalog(tests);
}
