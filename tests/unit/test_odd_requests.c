/* Requests that somebody gets wrong, or means differently: each has an answer that helps. */
#include "tests/unit/advise_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"

#define TPU7X "\"cluster\":{\"accelerator\":\"tpu7x-128\"}"
#define BATCH "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256}"
#define SPLIT                                                                                                \
    "\"baseline\":{\"config\":{\"per_device_batch_size\":2,\"max_target_length\":8192,"                      \
    "\"ici_fsdp_parallelism\":32,\"ici_context_parallelism\":2,\"ici_tensor_parallelism\":2"
#define JOB "\"model\":\"llama3.1-70b\"," TPU7X "," BATCH

/* Texts that must be in the answer (or in the problem document, for a refused request); `also` may be NULL.
 */
static const struct {
    const char *request;
    bool refused;
    const char *holds, *also;
} odd[] = {
    {"{" JOB ",\"pins\":{\"ici_fsdp_parallelism\":64,\"ici_tensor_parallelism\":4}}", true, "multiply to 256",
     "\"/pins\""},
    {"{" JOB ",\"pins\":{\"ici_fsdp_parallelism\":32},\"search\":{\"axes\":[\"fsdp\"]}}", true,
     "no axis of search.axes is left to take the other 4", "search.axes"},
    {"{" JOB ",\"pins\":{\"ici_tensor_parallelism\":3}}", true, "multiply to 3", NULL},
    {"{" JOB ",\"pins\":{\"per_device_batch_size\":3}}", true, "384 a microstep",
     "/pins/per_device_batch_size"},
    {"{" JOB ",\"pins\":{\"remat_policy\":\"keep_all\"}}", true, "keep_all", "minimal_with_context"},
    {"{" JOB ",\"search\":{\"axes\":[\"fsdp\",\"warp\"]}}", true, "warp", "/search/axes/1"},
    {"{" JOB ",\"baseline\":{\"config\":{\"per_device_batch_size\":2,\"max_target_length\":8192,"
     "\"base_num_decoder_layers\":40}}}",
     true, "makes the baseline another model", "/baseline/config/base_num_decoder_layers"},
    {"{" JOB ",\"baseline\":{\"config\":{\"per_device_batch_size\":2,\"max_target_length\":8192,"
     "\"base_num_decoder_layers\":40}},\"pins\":{\"base_num_decoder_layers\":40}}",
     false, "\"layers\":40", "gain_from_baseline_frac"},
    {"{" JOB ",\"baseline\":{\"config\":{\"per_device_batch_size\":2,\"max_target_length\":8192,"
     "\"base_num_decoder_layers\":80}}}",
     false, "gain_from_baseline_frac", NULL},
    {"{" JOB "," SPLIT "}}}", true, "JAX refuses the mesh (fsdp 32 x context 2 x tensor 2) on a slice 4x4x4",
     "/baseline/config/allow_split_physical_axes"},
    {"{" JOB "," SPLIT ",\"allow_split_physical_axes\":true}}}", false, "gain_from_baseline_frac", NULL},
    {"{" JOB ",\"search\":{\"max_changes\":2}}", true, "baseline", "/search/max_changes"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":0.3}}",
     false, "x 128 devices are 38.4, not a whole number", "it works with per_device_batch_size=0.296875,"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X
     ",\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":0.296875}}",
     false, "\"rank\":1", NULL},
    {"{" JOB ",\"pins\":{\"use_ring_of_experts\":true}}", false,
     "MaxText refuses use_ring_of_experts while expert parallelism is 1, and the model has no experts",
     "it works without the pin use_ring_of_experts"},
    {"{" JOB ",\"pins\":{\"quantization\":\"intmp\"}}", false, "\"quantization\":\"intmp\"",
     "quantization intmp is costed as int8 everywhere"},
    {"{" JOB ",\"pins\":{\"quantization\":\"fp8_e4m3\"}}", false, "\"quantization\":\"fp8_e4m3\"",
     "\"use_qwix_quantization\":true"},
    {"{" JOB ",\"pins\":{\"weight_dtype\":\"float16\"}}", false, "\"weight_dtype\":\"float16\"",
     "\"rank\":1"},
    {"{" JOB ",\"pins\":{\"quantization\":\"int8\",\"use_qwix_quantization\":false}}", false,
     "\"use_qwix_quantization\":false", "\"rank\":1"},
    {"{" JOB ",\"pins\":{\"ring_scan_unroll\":2}}", false, "(MaxText refuses it: types.py:5248)",
     "/pins/ring_scan_unroll"},
    {"{" JOB ",\"pins\":{\"use_gmm_v2\":true}}", false, "use_gmm_v2 true needs use_tokamax_gmm true",
     "/pins/use_gmm_v2"},
    {"{" JOB ",\"search\":{\"axes\":[\"context\"]}}", false,
     "8192 tokens over 128 context shards are 64 a shard, and attention takes blocks of 128",
     "with fsdp in search.axes"},
    {"{\"model\":\"deepseek3-671b-batchsplit\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\"},"
     "\"workload\":{\"seq_len\":4096,\"per_device_batch_size\":2}}",
     false, "\"batch_split_factor\":2", "batch-split-unmodelled"},
    {"{\"model\":\"qwen3-vl-2b\"," TPU7X "," BATCH "}", false, "\"deepstack_visual_indexes_for_vit\":[]",
     "\"use_multimodal\":false"},
    {"{\"model\":\"weaver-mini\"," TPU7X "," BATCH "}", false, "\"deepstack_visual_indexes_for_vit\":[]",
     "\"use_multimodal\":false"},
    {"{\"model\":\"weaver-max\"," TPU7X "," BATCH ",\"pins\":{\"use_multimodal\":true}}", false,
     "multimodal-unmodelled", "\"scan_layers\":false"},
    {"{\"model\":\"qwen3-omni-30b-a3b\"," TPU7X "," BATCH "}", false, "\"use_audio\":false",
     "\"scan_layers\":true"},
    {"{\"model\":\"qwen3-omni-30b-a3b\"," TPU7X "," BATCH "}", false, "text-alone",
     "pin use_multimodal true to keep the encoders"},
    {"{\"model\":\"qwen3-vl-2b\"," TPU7X "," BATCH ",\"pins\":{\"use_multimodal\":true}}", false,
     "multimodal-unmodelled", "\"scan_layers\":false"},
    {"{" JOB ",\"search\":{\"max_changes\":0}}", true, "baseline", "/search/max_changes"},
    {"{" JOB ",\"pins\":{\"remat_policy\":\"full\",\"context\":\"device\"}}", true,
     "context device is ignored under remat_policy full", "remat_policy=custom"},
    {"{" JOB ",\"pins\":{\"remat_policy\":\"custom\",\"context\":\"device\"}}", false,
     "\"context\":\"device\"", "\"rank\":1"},
    {"{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
     "len\":8192,"
     "\"global_batch_sequences\":64,\"quantization\":\"int8\"}}",
     false, "v4 has no faster matmul rate for int8", "\"/workload/quantization\""},
    {"{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
     "len\":8192,"
     "\"global_batch_sequences\":64},\"pins\":{\"quantization\":\"fp8\"}}",
     false, "v4 has no faster matmul rate for fp8", "\"/pins/quantization\""},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"tokens_per_step\":1000000}}",
     true, "the nearest that works is 122", "/workload/tokens_per_step"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"tokens_per_step\":0}}", true,
     "8192, the nearest legal value", "/workload/tokens_per_step"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"tokens_per_step\":1e16}}", true,
     "8192000000000, the nearest legal value", "/workload/tokens_per_step"},
    {"{" JOB ",\"pins\":{\"ici_tensor_parallelism\":16}}", false, "cannot be split over 16 shards",
     "it works without the pin ici_tensor_parallelism"},
    {"{" JOB ",\"pins\":{\"num_vocab_tiling\":3}}", false, "do not split into 3 equal tiles",
     "it works without the pin num_vocab_tiling"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X
     ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":7},\"search\":{\"axes\":[\"fsdp\"]}}",
     false, "it works without search.axes", "with global_batch_sequences=128"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":1}}",
     false, "\"rank\":1", "\"exhaustive\":true"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":257}}",
     false, "\"rank\":1", NULL},
    {"{\"model\":\"llama3.1-70b\",\"cluster\":[{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"}]," BATCH "}", true,
     "must be an object, not an array", "in the member `clusters`"},
    {"{" JOB ",\"search\":{\"top_k\":1}}", false, "\"rank\":1", NULL},
    {"{" JOB ",\"search\":{\"top_k\":100}}", false, "\"rank\":60", NULL},
    {"{" JOB ",\"search\":{\"max_evaluations\":1}}", false, "\"rank\":1", "\"exhaustive\":false"},
    {"{\"model\":\"llama3.1-405b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x1\"}," BATCH
     ",\"search\":{\"max_evaluations\":1}}",
     false, "1 evaluation was not enough to find a plan", "(4x4x4, 128 devices, would hold it)"},
    {"{" JOB ",\"pins\":{\"ici_fsdp_parallelism\":16,\"ici_tensor_parallelism\":3}}", true,
     "(fsdp 16 x tensor 3) multiply to 48", "ici_tensor_parallelism 2 or 4 would do"},
    {"{" JOB ",\"search\":{\"axes\":[\"tensr\"]}}", true, "did you mean tensor?", "/search/axes/0"},
    {"{" JOB ",\"search\":{\"axes\":[\"tensor\"]}}", false, "no mesh of the allowed axes has the 128 devices",
     "it works without search.axes"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8191,\"global_batch_sequences\":256}}",
     false, "it works with seq_len=8192\"", NULL},
    {"{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":3}," BATCH
     ",\"pins\":{\"dcn_data_parallelism\":2}}",
     false, "3 slice(s) != data 2",
     "or without the pin dcn_data_parallelism and with global_batch_sequences=384"},
    {"{\"model\":\"qwen3-480b-a35b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\",\"slices\":3},"
     "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":16}}",
     false, "it works with global_batch_sequences=18, or with global_batch_sequences=768\"", NULL},
    {"{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"chips\":64}," BATCH "}", true,
     "\"topology\\\": \\\"any\\\" stands beside chips", "did you mean `topology`?"},
    /* each device halves its sequences: one is not enough */
    {"{\"model\":\"deepseek3-671b-batchsplit\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\"},"
     "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":256}}",
     false, "it works with global_batch_sequences=512\"", NULL},
    {"{\"model\":\"mistral-7b\"," TPU7X
     ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256,\"optimizer\":\"muon\"}}",
     false, "muon is not available for decoder_block mistral; it works with optimizer=adamw\"", NULL},
    {"{\"model\":\"gpt3-175b\"," TPU7X ",\"workload\":{\"seq_len\":32768,\"global_batch_sequences\":256}}",
     false, "the model learned 16384 positions; it works with seq_len=16384\"", NULL},
    {"{\"model\":\"gemma3-27b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
     "len\":1000,"
     "\"tokens_per_step\":16000}}",
     false, "it works with seq_len=1024 and tokens_per_step=16384\"", NULL},
    {"{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":4}," BATCH
     ",\"pins\":{\"dcn_data_parallelism\":2}}",
     false, "\"dcn_data_parallelism\":2,\"dcn_fsdp_parallelism\":2", "\"rank\":1"},
    {"{" JOB ",\"search\":{\"objective\":\"hbm\"}}", false, "\"near_misses\":[]", "\"rank\":1"},
    {"{" JOB ",\"search\":{\"max_evaluations\":10}}", false, "\"rank\":1", "\"exhaustive\":false"},
    {"{" JOB ",\"search\":{\"max_evaluations\":1000}}", false, "\"rank\":1", "\"exhaustive\":false"},
    {"{" JOB ",\"pins\":{\"ici_pipeline_parallelism\":4}}", false, "\"ici_pipeline_parallelism\":4", NULL},
    {"{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":4}," BATCH
     "}",
     false, "\"dcn_data_parallelism\":4", NULL},
    {"{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x2\"}," BATCH "}", false,
     "(8x8, 64 devices, would hold it)", "\"ranked\":[]"},
    {"{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"1x1\"}," BATCH "}", false,
     "(2x4, 8 devices, would hold it)", NULL},
    {"{\"model\":\"llama3.1-405b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"16x16x32\"},"
     "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":16384}}",
     false, "\"ici_fsdp_parallelism\":16384", "\"exhaustive\":true"},
    {"{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":1048576,\"global_batch_sequences\":8}}",
     false, "\"ici_context_parallelism\":32", NULL},
    {"{" JOB ",\"pins\":{\"ici_warp\":3}}", false, "ici_warp is not a MaxText key", "\"rank\":1"},
    {"{" JOB
     ",\"pins\":{\"ici_fsdp_parallelism\":128,\"ici_tensor_parallelism\":1,\"ici_data_parallelism\":1,"
     "\"per_device_batch_size\":2,\"gradient_accumulation_steps\":1,\"remat_policy\":\"full\","
     "\"num_vocab_tiling\":1,\"optimizer_memory_host_offload\":false,\"sa_block_q\":1024}}",
     false, "\"considered\":1,", "\"sa_block_q\":1024"},
};

static void every_odd_request_has_an_answer_that_helps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct adv_answer answer;
        adv_err err;
        adv_err_init(&err);
        adv_code code = adv_answer_request(fixture_catalog(), ADV_REQUEST_ADVISE, odd[i].request,
                                           strlen(odd[i].request), &answer, &err);
        if ((code != ADV_OK) != odd[i].refused) fail_msg("%s: code %d", odd[i].request, code);
        char *text = code == ADV_OK ? answer.json : adv_problem_json(&err, NULL);
        assert_non_null(text);
        if (!strstr(text, odd[i].holds) || (odd[i].also && !strstr(text, odd[i].also)))
            fail_msg("%s\nlacks \"%s\" or \"%s\":\n%.3000s", odd[i].request, odd[i].holds,
                     odd[i].also ? odd[i].also : "", text);
        free(text);
    }
}

static void within_no_changes_the_answer_is_the_baseline(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    fixture_search(&fixture,
                   "{" JOB
                   ",\"baseline\":{\"config\":{\"per_device_batch_size\":2,\"max_target_length\":8192,"
                   "\"remat_policy\":\"full\"}},\"search\":{\"max_changes\":0}}",
                   &result);
    assert_int_equal(result.found_count, 1);
    assert_true(result.exhaustive);
    assert_memory_equal(&result.found[0].plan, &fixture.request->baseline, sizeof result.found[0].plan);
    fixture_close(&fixture);
}

static void any_format_is_one_that_the_chip_runs_faster(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    fixture_search(
        &fixture,
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x2x4\"},\"workload\":{"
        "\"seq_len\":4096,\"global_batch_sequences\":64,\"quantization\":\"any\"},"
        "\"search\":{\"top_k\":60}}",
        &result);
    assert_true(result.found_count > 0);
    for (int i = 0; i < result.found_count; i++)
        assert_int_equal(result.found[i].plan.family.quantization, ADV_QUANT_NONE);
    fixture_close(&fixture);
}

static void a_batch_of_nothing_is_one_finding_not_two(void **state)
{
    (void)state;
    static const char request[] =
        "{\"model\":\"llama3.1-70b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":0}}";
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    assert_int_not_equal(
        adv_answer_request(fixture_catalog(), ADV_REQUEST_ADVISE, request, strlen(request), &answer, &err),
        ADV_OK);
    assert_int_equal(err.count, 1);
}

/* The per-device batch is MaxText's key, of one microbatch. What is said to be faster is what a search for
 * the batch of the step ranks first, or better; where the number of microbatches is pinned nothing is said.
 */
static void a_batch_per_device_is_told_what_it_would_gain_in_microbatches(void **state)
{
    (void)state;
#define BATCH_OF(member) "{\"model\":\"llama3.1-8b\"," TPU7X ",\"workload\":{\"seq_len\":8192,\"" member "}"
    static const struct {
        const char *request;
        bool told;
    } cases[] = {
        {BATCH_OF("per_device_batch_size\":16") "}", true},
        {BATCH_OF("per_device_batch_size\":16") ",\"pins\":{\"gradient_accumulation_steps\":1}}", false},
        {BATCH_OF("per_device_batch_size\":2") "}", false}, /* as fast as any */
        {BATCH_OF("global_batch_sequences\":2048") "}", false},
    };
    double told_s = 0.0, global_s = (double)INFINITY;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adv_answer answer;
        adv_err err = adv_err_empty();
        assert_int_equal(adv_answer_request(fixture_catalog(), ADV_REQUEST_ADVISE, cases[i].request,
                                            strlen(cases[i].request), &answer, &err),
                         ADV_OK);
        const char *at = strstr(answer.json, "\"one-microbatch\"");
        if ((at != NULL) != cases[i].told) fail_msg("%s", cases[i].request);
        if (at) {
            assert_non_null(strstr(at, "the same 2048 sequences a step as 8 microbatches"));
            told_s = strtod(strstr(at, ") take ") + strlen(") take "), NULL);
        }
        global_s = answer.step_time_s; /* of the last case in the end */
        adv_answer_free(&answer);
    }
    assert_true(told_s > 0.0 && global_s < told_s + 1e-3);
#undef BATCH_OF
}

/* Of tied plans the simplest comes first, so the first ones of two searches need not be alike. */
static double fastest_s(const struct adv_search_result *result)
{
    double fastest = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        fastest = fmin(fastest, result->found[i].estimate.step_time_s);
    return fastest;
}

static void one_pinned_tile_leaves_the_others_tuned(void **state)
{
    (void)state;
    static struct fixture free_tiles, pinned;
    struct adv_search_result tuned, around;
    fixture_search(&free_tiles, "{" JOB ",\"search\":{\"axes\":[\"fsdp\"]}}", &tuned);
    fixture_search(&pinned, "{" JOB ",\"pins\":{\"sa_block_kv_dkv\":1024},\"search\":{\"axes\":[\"fsdp\"]}}",
                   &around);
    assert_true(tuned.found_count > 0 && around.found_count > 0);
    const struct adv_splash_blocks *blocks = &around.found[0].plan.family.blocks[0];
    assert_int_equal(blocks->block_kv_dkv, 1024);
    assert_int_equal(blocks->block_q, tuned.found[0].plan.family.blocks[0].block_q);
    assert_int_equal(blocks->block_kv, tuned.found[0].plan.family.blocks[0].block_kv);
    assert_true(fastest_s(&around) < 1.05 * fastest_s(&tuned));
    fixture_close(&free_tiles);
    fixture_close(&pinned);
}

static void an_expert_axis_on_a_dense_model_repeats_no_plan(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    fixture_search(&fixture, "{" JOB ",\"pins\":{\"ici_expert_parallelism\":2}}", &result);
    for (int i = 0; i < result.found_count; i++)
        for (int k = 0; k < i; k++)
            assert_false(result.found[i].estimate.step_time_s == result.found[k].estimate.step_time_s &&
                         !memcmp(result.found[i].plan.family.ici, result.found[k].plan.family.ici,
                                 sizeof result.found[i].plan.family.ici));
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_odd_request_has_an_answer_that_helps),
        cmocka_unit_test(within_no_changes_the_answer_is_the_baseline),
        cmocka_unit_test(any_format_is_one_that_the_chip_runs_faster),
        cmocka_unit_test(a_batch_of_nothing_is_one_finding_not_two),
        cmocka_unit_test(a_batch_per_device_is_told_what_it_would_gain_in_microbatches),
        cmocka_unit_test(one_pinned_tile_leaves_the_others_tuned),
        cmocka_unit_test(an_expert_axis_on_a_dense_model_repeats_no_plan),
    };
    return run_group(tests);
}
