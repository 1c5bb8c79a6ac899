/* The answer to a request that does not fit: each change that is named makes it fit, and more chips are asked
 * for only where no change does. */
#include "tests/unit/advise_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "engine/rank/rank.h"
#include "engine/search/why.h"

static struct fixture fixture;

#define V5E(topology) "\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"" topology "\"}"
#define LLAMA_70B     "\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"}"

static void assert_says(const struct adv_search_result *result, int miss, const char *what)
{
    const char *reason = result->near_misses[miss].reason;
    if (!strstr(reason, what)) fail_msg("near miss %d lacks \"%s\": %s", miss + 1, what, reason);
}

static void assert_silent(const struct adv_search_result *result, const char *what)
{
    for (int i = 0; i < result->near_count; i++) {
        const char *reason = result->near_misses[i].reason;
        if (strstr(reason, what)) fail_msg("near miss %d says \"%s\": %s", i + 1, what, reason);
    }
}

/* Whether the search finds a plan for the request that was followed. */
static void assert_ranks(const char *request, enum adv_fit fit)
{
    struct adv_search_result result;
    fixture_search(&fixture, request, &result);
    assert_true(result.found_count > 0);
    assert_int_equal(result.found[0].estimate.fit, fit);
    fixture_close(&fixture);
}

static void a_change_that_ends_tight_is_offered_as_such(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture, "{" V5E("2x2") ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":4}}",
                   &result);
    assert_int_equal(result.found_count, 0);
    assert_says(&result, 0, "weight_dtype=bfloat16 would be a tight fit");
    assert_silent(&result, "more chips");
    fixture_close(&fixture);
    assert_ranks("{" V5E("2x2") ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":4,"
                                "\"weight_dtype\":\"bfloat16\"}}",
                 ADV_FIT_TIGHT);
}

static void the_cheapest_change_comes_first_and_no_near_miss_asks_for_chips(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture,
                   "{\"model\":\"qwen3-480b-a35b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"
                   "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":256}}",
                   &result);
    assert_int_equal(result.near_count, ADV_SEARCH_NEAR);
    assert_says(&result, 0, "; weight_dtype=bfloat16 would fit");
    assert_silent(&result, "more chips");
    fixture_close(&fixture);
}

/* "...; CHANGE would fit: ..., 12.345 s a step": of the plan that the change makes. */
static double remedied_s(const struct adv_near_miss *miss)
{
    const char *comma = strrchr(miss->reason, ',');
    assert_non_null(comma);
    return strtod(comma + 1, NULL);
}

static void changes_that_cost_as_much_come_by_what_they_make(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture,
                   "{\"model\":\"qwen3-480b-a35b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"
                   "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":256}}",
                   &result);
    assert_int_equal(result.near_count, ADV_SEARCH_NEAR);
    int alike = 0;
    for (; alike < result.near_count; alike++)
        if (!strstr(result.near_misses[alike].reason, "; weight_dtype=bfloat16 would fit")) break;
    assert_true(alike > 1);
    for (int i = 1; i < alike; i++)
        assert_true(remedied_s(&result.near_misses[i - 1]) <= remedied_s(&result.near_misses[i]));
    fixture_close(&fixture);
}

/* What is short of the share is said so, and each change makes the plan fit into it. */
static void a_share_of_the_memory_is_what_a_near_miss_is_measured_by(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture,
                   "{\"model\":\"llama2-7b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\"},"
                   "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":64},"
                   "\"search\":{\"memory_frac\":0.5}}",
                   &result);
    assert_true(result.found_count > 0 && result.near_count > 0);
    for (int i = 0; i < result.near_count; i++) {
        const struct adv_near_miss *miss = &result.near_misses[i];
        static struct adv_remedy remedy;
        assert_says(&result, i, "of 7.88 GiB that search.memory_frac=0.5 allows); ");
        adv_remedy_find(fixture.request, fixture.constants, &miss->candidate.plan, &remedy);
        assert_true(remedy.found);
        assert_non_null(strstr(miss->reason, remedy.text));
        assert_true(remedy.estimate.hbm_bytes_per_device <= 0.5 * remedy.estimate.hbm_limit_bytes_per_device);
    }
    fixture_close(&fixture);
}

#define LONG_8B                                                                                              \
    "\"model\":\"qwen3-8b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"                          \
    "\"workload\":{\"seq_len\":32768,\"global_batch_sequences\":64}"

/* MaxText ignores the key of a tensor under a named policy, and what is pinned is not changed by a search. */
static void a_change_of_what_is_pinned_is_said_with_all_that_it_takes(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture, "{" LONG_8B ",\"pins\":{\"remat_policy\":\"minimal\"}}", &result);
    assert_says(&result, 1,
                "; remat_policy=custom with decoder_layer_input=offload and mlpwi_0, mlpwi_1, mlpwo, "
                "query_proj, key_proj, value_proj, out_proj=device would fit without the pin of "
                "remat_policy: ");
    const double promised_s = remedied_s(&result.near_misses[1]);
    fixture_close(&fixture);
    fixture_search(&fixture,
                   "{" LONG_8B ",\"pins\":{\"remat_policy\":\"custom\",\"decoder_layer_input\":\"offload\","
                   "\"mlpwi_0\":\"device\",\"mlpwi_1\":\"device\",\"mlpwo\":\"device\","
                   "\"query_proj\":\"device\",\"key_proj\":\"device\",\"value_proj\":\"device\","
                   "\"out_proj\":\"device\"}}",
                   &result);
    assert_true(result.found_count > 0);
    assert_true(result.found[0].estimate.step_time_s <= promised_s * (1 + ADV_RANK_TIE_FRAC));
    fixture_close(&fixture);
    fixture_search(&fixture,
                   "{" LLAMA_70B ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":8192},"
                   "\"pins\":{\"gradient_accumulation_steps\":1}}",
                   &result);
    assert_int_equal(result.found_count, 0);
    assert_says(&result, 0, " would fit without the pin of gradient_accumulation_steps: ");
    fixture_close(&fixture);
}

/* "...: 88.70 GiB of 95.74, ...": what the plan takes that the change makes. */
static double remedied_gib(const struct adv_near_miss *miss)
{
    const char *colon = strrchr(miss->reason, ':');
    assert_non_null(colon);
    return strtod(colon + 1, NULL);
}

/* A change is priced with the flags that a search sets beside it: tensors on the host are scheduled
 * otherwise, which takes memory that the plan as it was did not need. Without that the change promises 1.7
 * GiB less here than the search finds. */
static void what_a_change_promises_is_found_when_it_is_pinned(void **state)
{
    (void)state;
    static const char job[] =
        "{\"model\":\"llama2-13b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"},"
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32},\"pins\":{\"remat_policy\":\"%s}}";
    char text[512];
    struct adv_search_result result;
    (void)snprintf(text, sizeof text, job, "save_dot_except_mlp\"");
    fixture_search(&fixture, text, &result);
    int miss = 0;
    while (miss < result.near_count &&
           !strstr(result.near_misses[miss].reason,
                   "offload and query_proj, key_proj, value_proj, out_proj=device"))
        miss++;
    assert_true(miss < result.near_count);
    const double promised_s = remedied_s(&result.near_misses[miss]);
    const double promised_gib = remedied_gib(&result.near_misses[miss]);
    fixture_close(&fixture);
    (void)snprintf(
        text, sizeof text, job,
        "custom\",\"num_vocab_tiling\":2,\"decoder_layer_input\":\"offload\",\"query_proj\":\"device\","
        "\"key_proj\":\"device\",\"value_proj\":\"device\",\"out_proj\":\"device\"");
    fixture_search(&fixture, text, &result);
    assert_true(result.found_count > 0);
    const struct adv_estimate *found = &result.found[0].estimate;
    assert_true(found->step_time_s <= promised_s * (1 + ADV_RANK_TIE_FRAC));
    assert_true(found->hbm_bytes_per_device <= (promised_gib + 0.01) * (double)(1 << 30));
    fixture_close(&fixture);
}

static void a_batch_far_too_large_is_cut_into_as_many_microsteps_as_it_takes(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture, "{" LLAMA_70B ",\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":64}}",
                   &result);
    assert_int_equal(result.found_count, 0);
    assert_says(&result, 0, "gradient_accumulation_steps=8 with per_device_batch_size=8 would fit");
    assert_silent(&result, "more chips");
    fixture_close(&fixture);
    assert_ranks("{" LLAMA_70B ",\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":8},"
                 "\"pins\":{\"gradient_accumulation_steps\":8}}",
                 ADV_FIT_FITS);
}

/* fp8 allows no accumulation in MaxText. */
static void where_nothing_can_accumulate_the_largest_batch_that_fits_is_named(void **state)
{
    (void)state;
    fixture_open(&fixture, "{" LLAMA_70B ",\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":64}}");
    struct adv_plan plan = fixture.request->workload.base;
    plan.family.ici[ADV_AXIS_FSDP] = 128;
    plan.family.dcn[ADV_AXIS_DATA] = 1;
    plan.family.quantization = ADV_QUANT_FP8;
    plan.policy = ADV_POLICY_FULL;
    adv_policy_placements(plan.policy, plan.placements);
    plan.num_vocab_tiling = 16;
    plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    plan.policy = ADV_POLICY_CUSTOM;
    static struct adv_remedy remedy;
    adv_remedy_find(fixture.request, fixture.constants, &plan, &remedy);
    assert_true(remedy.found);
    assert_int_equal(remedy.plan.family.gradient_accumulation_steps, 1);
    assert_non_null(strstr(remedy.text, "a batch of "));
    struct adv_plan larger = remedy.plan;
    larger.family.per_device_batch_size += 1;
    struct adv_estimate estimate;
    struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster, fixture.constants,
                                       &larger, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, NULL), ADV_OK);
    assert_true(adv_rank_fits(&remedy.estimate, adv_rank_memory_frac(&remedy.estimate)));
    assert_false(adv_rank_fits(&estimate, adv_rank_memory_frac(&estimate)));
    fixture_close(&fixture);
}

/* The same words with and without the weights on the host, for they come back for the update. */
static void a_slice_that_is_named_holds_the_request(void **state)
{
    (void)state;
    static const char *const pins[] = {"", ",\"pins\":{\"parameter_memory_host_offload\":true}"};
    for (int i = 0; i < 2; i++) {
        char request[512];
        struct adv_search_result result;
        (void)snprintf(request, sizeof request,
                       "{" V5E("1x1") ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":4}%s}",
                       pins[i]);
        fixture_search(&fixture, request, &result);
        assert_says(&result, 0,
                    "the bfloat16 weights, their gradients and the optimizer's moments alone are 59.8");
        assert_says(&result, 0, "(4x4, 16 devices, would hold it)");
        fixture_close(&fixture);
        (void)snprintf(request, sizeof request,
                       "{" V5E("4x4") ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":4}%s}",
                       pins[i]);
        assert_ranks(request, ADV_FIT_FITS);
    }
}

#define LONG_EXPERTS(topology, sequences)                                                                    \
    "{\"model\":\"deepseek2-16b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"" topology "\"},"             \
    "\"workload\":{\"seq_len\":" sequences "}}"

/* What an estimate would refuse is not shown, and where that leaves nothing, the answer says so. */
static void no_plan_is_shown_that_has_too_many_rows_to_be_priced(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture, LONG_EXPERTS("4x8x28", "1048576,\"per_device_batch_size\":4"), &result);
    assert_true(result.near_count > 0);
    for (int i = 0; i < result.near_count; i++)
        assert_null(adv_plan_uncountable(&result.near_misses[i].candidate.plan, &fixture.request->model));
    fixture_close(&fixture);
    fixture_search(&fixture, LONG_EXPERTS("2x2x1", "16777216,\"per_device_batch_size\":8"), &result);
    assert_int_equal(result.near_count, 0);
    assert_non_null(strstr(result.empty_why, "can be priced"));
    fixture_close(&fixture);
}

static void a_plan_that_is_tight_is_not_helped_by_another_tight_one(void **state)
{
    (void)state;
    struct adv_search_result result;
    fixture_search(&fixture,
                   "{" V5E("2x2") ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":4,"
                                  "\"weight_dtype\":\"bfloat16\"}}",
                   &result);
    assert_true(result.found_count > 0);
    static struct adv_remedy remedy;
    adv_remedy_find(fixture.request, fixture.constants, &result.found[0].plan, &remedy);
    assert_false(remedy.found && remedy.tight);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_that_ends_tight_is_offered_as_such),
        cmocka_unit_test(the_cheapest_change_comes_first_and_no_near_miss_asks_for_chips),
        cmocka_unit_test(changes_that_cost_as_much_come_by_what_they_make),
        cmocka_unit_test(a_share_of_the_memory_is_what_a_near_miss_is_measured_by),
        cmocka_unit_test(a_change_of_what_is_pinned_is_said_with_all_that_it_takes),
        cmocka_unit_test(what_a_change_promises_is_found_when_it_is_pinned),
        cmocka_unit_test(a_batch_far_too_large_is_cut_into_as_many_microsteps_as_it_takes),
        cmocka_unit_test(where_nothing_can_accumulate_the_largest_batch_that_fits_is_named),
        cmocka_unit_test(a_slice_that_is_named_holds_the_request),
        cmocka_unit_test(no_plan_is_shown_that_has_too_many_rows_to_be_priced),
        cmocka_unit_test(a_plan_that_is_tight_is_not_helped_by_another_tight_one),
    };
    return run_group(tests);
}
