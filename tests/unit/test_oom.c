/* An out-of-memory message with its request: every lever takes less of the memory that ran out. */
#include "tests/unit/answer_fixture.h"

#include <stdio.h>

#include "engine/maxtext/oom_message.h"

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
    /* By the share of the host that the message names, not by the memory of the catalog's host. */
    request = request_with("{\"per_device_batch_size\": 4, \"max_target_length\": 8192, \"remat_policy\": "
                           "\"minimal_offloaded\", \"optimizer_memory_host_offload\": true}");
    json_object_set_new(json_object_get(request, "cluster"), "topology", json_string("8x8"));
    told = explained(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space host. Used 800.00G of 80.00G host.", request);
    predicted = json_object_get(told, "predicted");
    check_levers(told, 1, "host_bytes_per_host", 0.1 * number_of(predicted, "host_bytes_per_host"));
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

/* All keys as MaxText sets them. */
static void a_request_without_keys_has_levers(void **state)
{
    (void)state;
    json_t *request = request_with("{}");
    json_object_del(request, "config");
    json_t *told = explained(OF_HBM, request);
    assert_true(json_array_size(json_object_get(told, "levers")) > 0);
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

static const char *first_key_of(const char *text, const char *space)
{
    static struct adv_oom_message message;
    adv_err err = adv_err_empty();
    assert_int_equal(adv_oom_message_read(text, &message, &err), ADV_OK);
    assert_string_equal(message.space, space);
    return message.keys[0];
}

static void the_space_that_a_message_names_counts(void **state)
{
    (void)state;
    (void)first_key_of("RESOURCE_EXHAUSTED: Ran out of memory :: used=17.1M limit=16.0M space=vmem", "vmem");
    (void)first_key_of(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 40.00G of 31.25G hbm.\n"
        "  1. Size: 16.00G\n     Operator: op_name=\"jit(step)/to_pinned_host/scoped vmem\"",
        "hbm");
    (void)first_key_of("RESOURCE_EXHAUSTED: Ran out of memory in memory space pinned_host.", "host");
    (void)first_key_of("RESOURCE_EXHAUSTED: cannot allocate host memory, out of memory", "host");
    assert_string_equal(
        first_key_of("RESOURCE_EXHAUSTED: Ran out of memory in memory space smem. Used 1.25M of "
                     "1.00M smem. Exceeded smem capacity by 256.0K.",
                     "smem"),
        "sa_block_q");
}

static void a_kernel_has_its_own_tiles(void **state)
{
    (void)state;
#define STACK(kernel) "Ran out of memory in memory space vmem while allocating on stack for " kernel
    assert_string_equal(first_key_of(STACK("%splash_mha.3 = bf16[8,128]"), "vmem"), "sa_block_q");
    assert_string_equal(first_key_of(STACK("%gmm.3 = bf16[8,128]"), "vmem"), "wi_tile_fwd_batch_seq");
    assert_string_equal(first_key_of(STACK("%tgmm.3 = bf16[8,128]"), "vmem"), "wi_tile_drhs_batch_seq");
    assert_string_equal(first_key_of(STACK("%gmm.4, op_name=\"jit(s)/transpose(jvp(M))/gmm\""), "vmem"),
                        "wi_tile_dlhs_batch_seq");
    assert_string_equal(first_key_of("Ran out of memory in memory space smem, on stack for %gmm.3", "smem"),
                        "wi_tile_fwd_batch_seq");
#undef STACK
    for (int i = 0; i < 6; i++) { /* all are keys of MaxText */
        static const char *const kernels[] = {"space=vmem gmm", "space=vmem tgmm", "space=vmem gmm dlhs",
                                              "space=smem gmm", "space=smem",      "space=vmem"};
        char text[128];
        struct adv_oom_message message;
        adv_err err = adv_err_empty();
        (void)snprintf(text, sizeof text, "Out of memory :: %s", kernels[i]);
        assert_int_equal(adv_oom_message_read(text, &message, &err), ADV_OK);
        for (int k = 0; k < ADV_LIMIT_OOM_KEYS && message.keys[k]; k++)
            if (!adv_catalog_key(catalog, message.keys[k])) fail_msg("no key %s", message.keys[k]);
    }
}

static void a_message_of_a_gpu_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.15 GiB total)",
        "RESOURCE_EXHAUSTED: Failed call to cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory"};
    struct adv_oom_message message;
    for (int i = 0; i < 2; i++) {
        adv_err err = adv_err_empty();
        assert_int_equal(adv_oom_message_read(texts[i], &message, &err), ADV_E_INVALID);
        assert_string_equal(err.findings[0].pointer, "/message");
        assert_non_null(strstr(err.findings[0].detail, "XLA:TPU"));
    }
    (void)first_key_of("Unable to initialize backend 'cuda': not found\n" OF_HBM, "hbm");
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
        cmocka_unit_test(a_request_without_keys_has_levers),
        cmocka_unit_test(levers_are_for_the_software_of_the_request),
        cmocka_unit_test(the_space_that_a_message_names_counts),
        cmocka_unit_test(a_kernel_has_its_own_tiles),
        cmocka_unit_test(a_message_of_a_gpu_is_refused),
    };
    return run_group_with_catalog(tests);
}
