/* Keys and values of MaxText that the engine has no price of: each is said to be left out, or refused. */
#include "tests/unit/check.h"

#include "tests/unit/answer_fixture.h"
#include "tests/unit/decode_fixture.h"

static void keys_that_change_a_step_and_have_no_price_say_so(void **state)
{
    static const struct {
        const char *config;
        bool told;
    } cases[] = {
        {"\"activations_in_float32\":true", true},
        {"\"dropout_rate\":0.1", true},
        {"\"dropout_rate\":0", false},
        {"\"local_sa_use_fused_bwd_kernel\":false", true},
        {"\"local_sa_use_fused_bwd_kernel\":null", false},
        {"\"local_sa_k_layout\":\"SEQ_MINOR\"", true},
        {"\"logical_axis_rules\":[[\"batch\",[\"data\"]]]", true},
        {"\"trainable_parameters_mask\":[\".*query.*\"]", true},
        {"\"trainable_parameters_mask\":[]", false},
        {"\"set_remat_policy_on_pipeline_iterations\":false", true},
        {"\"use_tunix_gradient_accumulation\":\"False\"", false},
        {"\"sa_bwd_dkv_megacore\":true", true},
        {"\"indexer_use_approx_top_k\":true", true},
        {"\"use_sliced_mla_proj\":true", true},
        {"\"use_gather_mosaic_kernel\":true", true},
        {"\"use_gather_mosaic_kernel\":false", false},
        {"\"mesh_axes\":[\"data\",\"fsdp\"]", true},
        {"\"mesh_axes\":[\"diloco\",\"data\",\"stage\",\"fsdp\",\"fsdp_transpose\",\"context\",\"context_usp_ulysses\","
         "\"context_autoregressive\",\"tensor\",\"tensor_sequence\",\"expert\",\"autoregressive\"]",
         false},
        {"\"use_qk_clip\":true", true},
        {"\"shard_mode\":\"explicit\"", true},
        {"\"shard_mode\":\"auto\"", false},
        {"\"mla_qk_head_chunk_size\":8", true},
        {"\"mla_qk_head_chunk_size\":0", false},
        {"\"record_internal_nn_metrics\":1", true},
        {"\"record_internal_nn_metrics\":0", false},
        {"\"skip_step_on_spikes\":true", true},
        {"\"scan_layers_per_stage\":true", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(decode_config(cases[i].config));
        if ((find_rule(&warnings, "not-modelled") != NULL) != cases[i].told) fail_msg("%s", cases[i].config);
    }
}

/* MaxText takes them, so they are not called wrong. */
static void values_that_nothing_is_known_of_are_refused_as_such(void **state)
{
    static const char *const configs[] = {
        "\"attention\":\"cudnn_flash_te\"",   "\"quantization\":\"te_mxfp8\"",
        "\"quantization\":\"te_no_quant\"",   "\"custom_mesh_and_rule\":\"fsdp-as-dp-for-attn\"",
        "\"weight_dtype\":\"float8_e4m3fn\"", "\"grad_dtype\":\"float8_e5m2\"",
        "\"dtype\":\"float8_e5m2\"",
    };
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        assert_int_equal(decode_config(configs[i]), ADV_E_UNSUPPORTED);
        assert_int_equal(err.findings[0].code, ADV_E_UNSUPPORTED);
    }
}

#define MLA                                                                                                  \
    "{\"base_emb_dim\":2048,\"base_num_query_heads\":16,\"base_num_kv_heads\":16,\"base_mlp_dim\":8192,"     \
    "\"base_num_decoder_layers\":8,\"vocab_size\":32000,\"decoder_block\":\"deepseek\",\"attention_type\":\"mla\"}"

/* How many of `list` have the code. */
static int count_codes(const json_t *list, const char *code)
{
    int count = 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        count += strcmp(json_string_value(json_object_get(json_array_get(list, i), "code")), code) == 0;
    return count;
}

static void keys_that_maxtext_refuses_together_are_warned_of_once(void **state)
{
    static const struct {
        const char *model, *config, *code;
        int count;
    } cases[] = {
        {"\"mixtral-8x7b\"", "\"use_gmm_v2\":true", "gmm-v2-needs-tokamax", 1},
        {"\"mixtral-8x7b\"", "\"use_gmm_v2\":\"True\"", "gmm-v2-needs-tokamax", 1},
        {"\"mixtral-8x7b\"", "\"use_gmm_v2\":true,\"use_tokamax_gmm\":true", "gmm-v2-needs-tokamax", 0},
        {"\"mixtral-8x7b\"", "\"use_tokamax_gmm\":true", "gmm-v2-needs-tokamax", 0},
        {"\"llama3.1-8b\"", "\"use_qk_clip\":true", "qk-clip-attention", 1},
        {"\"deepseek2-16b\"", "\"use_qk_clip\":true,\"use_tokamax_splash\":true", "qk-clip-attention", 0},
        {MLA, "\"use_qk_clip\":true,\"use_tokamax_splash\":true", "qk-clip-attention", 0},
        {"\"qwen3-vl-2b\"", "\"use_multimodal\":false,\"deepstack_visual_indexes_for_vit\":[1]",
         "deepstack-scan", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        (void)snprintf(
            text, sizeof text,
            "{\"model\":%s,\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"config\":{"
            "\"per_device_batch_size\":1,\"max_target_length\":4096,\"ici_fsdp_parallelism\":-1,%s}}",
            cases[i].model, cases[i].config);
        json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, text);
        if (count_codes(json_object_get(answer, "warnings"), cases[i].code) != cases[i].count)
            fail_msg("%s %s", cases[i].model, cases[i].config);
        json_decref(answer);
    }
}

static void pins_that_maxtext_refuses_together_are_warned_of_in_each_plan(void **state)
{
    (void)state;
    json_t *answer = answer_to(
        ADV_REQUEST_ADVISE, "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},"
                            "\"search\":{\"top_k\":2},\"pins\":{\"use_qk_clip\":true},"
                            "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32}}");
    json_t *ranked = json_object_get(answer, "ranked");
    assert_int_equal(json_array_size(ranked), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *estimate = json_object_get(json_array_get(ranked, i), "estimate");
        assert_int_equal(count_codes(json_object_get(estimate, "warnings"), "qk-clip-attention"), 1);
    }
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_change_a_step_and_have_no_price_say_so),
        cmocka_unit_test(values_that_nothing_is_known_of_are_refused_as_such),
        cmocka_unit_test(keys_that_maxtext_refuses_together_are_warned_of_once),
        cmocka_unit_test(pins_that_maxtext_refuses_together_are_warned_of_in_each_plan),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
