/* Hugging Face configurations of families that MaxText knows by its files alone, or not at all. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_answer.h"
#include "tests/unit/answer_fixture.h"

#define DIMS(type, emb, layers, heads, kv, mlp, vocab)                                                       \
    "\"model_type\":\"" type "\",\"hidden_size\":" emb ",\"num_hidden_layers\":" layers                      \
    ",\"num_attention_heads\":" heads ",\"num_key_value_heads\":" kv ",\"intermediate_size\":" mlp           \
    ",\"vocab_size\":" vocab

static adv_err refused;

static json_t *estimate(const char *hf)
{
    struct adv_text text;
    adv_text_init(&text, 1 << 16);
    adv_text_format(&text,
                    "{\"model\":{\"hf_config\":{%s}},\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"
                    "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":2048,"
                    "\"remat_policy\":\"full\",\"use_tokamax_splash\":true}}",
                    hf);
    json_t *answer = answer_or_refusal(ADV_REQUEST_ESTIMATE, text.data, &refused);
    adv_text_free(&text);
    return answer;
}

static json_t *must_estimate(const char *hf)
{
    json_t *answer = estimate(hf);
    if (!answer) fail_msg("%s: %s", hf, refused.findings[0].detail);
    return answer;
}

/* Parameters as the makers publish them, in billions. */
static void plain_decoders_have_the_published_number_of_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *hf;
        double total_b, active_b;
    } rows[] = {
        {DIMS("phi3", "5120", "40", "40", "10", "17920", "100352"), 14.66, 14.66},
        {DIMS("granite", "4096", "40", "32", "8", "12800", "49155") ",\"tie_word_embeddings\":true", 8.17,
         8.17},
        {DIMS("cohere", "8192", "40", "64", "64", "22528", "256000"), 35, 35},
        {"\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_hidden_layers\":32,\"num_attention_heads\":71,"
         "\"vocab_size\":65024,\"multi_query\":true",
         6.92, 6.92},
        {DIMS("starcoder2", "6144", "40", "48", "4", "24576", "49152") ",\"use_bias\":true", 15.66, 15.66},
        {DIMS("smollm3", "2048", "36", "16", "4", "11008", "128256"), 3.08, 3.08},
        {DIMS("olmo2", "5120", "40", "40", "40", "13824", "100352"), 13.7, 13.7},
        {DIMS("glm4_moe", "5120", "92", "96", "8", "12288",
              "151552") ",\"head_dim\":128,\"n_routed_experts\":160,\"num_experts_per_tok\":8,\"moe_"
                        "intermediate_size\":1536,"
                        "\"n_shared_experts\":1,\"first_k_dense_replace\":3",
         352.8, 33.6},
        {DIMS("qwen2_moe", "3584", "28", "28", "4", "18944",
              "151936") ",\"num_experts\":64,\"num_experts_per_tok\":8,\"moe_intermediate_size\":2560,"
                        "\"shared_expert_intermediate_size\":20480,\"decoder_sparse_step\":1,\"mlp_only_"
                        "layers\":[]",
         57.4, 14.2},
        {DIMS("olmoe", "2048", "16", "16", "16", "1024",
              "50304") ",\"num_experts\":64,\"num_experts_per_tok\":8",
         6.92, 1.28},
        {DIMS("nemotron", "6144", "32", "48", "8", "24576", "256000"), 15.6, 15.6},
        {DIMS("internlm2", "6144", "48", "48", "8", "16384", "92544"), 19.86, 19.86},
        {"\"model_type\":\"chatglm\",\"hidden_size\":4096,\"num_layers\":40,\"num_attention_heads\":32,\"multi_"
         "query_group_num\":2,\"kv_channels\":128,\"ffn_hidden_size\":13696,\"padded_vocab_size\":151552",
         9.4, 9.4},
        {DIMS("glm4", "6144", "61", "48", "2", "23040", "151552") ",\"head_dim\":128", 32.57, 32.57},
        {DIMS("minimax", "3072", "62", "48", "8", "1536",
              "200064") ",\"head_dim\":128,\"num_local_experts\":256,\"num_experts_per_tok\":8,\"attn_type_"
                        "list\":[1,1]",
         228.7, 11.0},
        {DIMS("hunyuan_v1_moe", "4096", "2", "32", "8", "3072",
              "128167") ",\"head_dim\":128,\"num_experts\":64,\"moe_topk\":[8,8],\"moe_intermediate_size\":["
                        "3072,3072],"
                        "\"num_shared_expert\":[1,1]",
         6.04, 1.81},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *answer = must_estimate(rows[i].hf);
        const json_t *model = json_object_get(answer, "model");
        assert_close(json_number_value(json_object_get(model, "params_total")) / 1e9, rows[i].total_b, 0.01);
        assert_close(json_number_value(json_object_get(model, "params_active")) / 1e9, rows[i].active_b,
                     0.02);
        assert_true(json_is_true(json_object_get(model, "without_maxtext")));
        assert_int_equal(json_object_size(json_object_get(model, "config")), 0);
        json_decref(answer);
    }
}

static void a_shared_expert_has_its_own_width(void **state)
{
    (void)state;
    static const struct {
        const char *width;
        double mlp_dim;
    } rows[] = {{"20480", 20480}, {"19000", 19000}, {"1000", 1000}, {"0", 0}};
    double before = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        (void)snprintf(
            text, sizeof text,
            DIMS("qwen2_moe", "3584", "28", "28", "4", "18944",
                 "151936") ",\"num_experts\":64,\"num_experts_per_tok\":8,\"moe_intermediate_size\":2560,"
                           "\"shared_expert_intermediate_size\":%s",
            rows[i].width);
        json_t *answer = must_estimate(text);
        const double total =
            json_number_value(json_object_get(json_object_get(answer, "model"), "params_total"));
        if (i > 0)
            assert_close(before - total, 28.0 * 3 * 3584 * (rows[i - 1].mlp_dim - rows[i].mlp_dim), 1e-9);
        before = total;
        json_decref(answer);
    }
}

static void no_command_is_made_for_a_model_that_maxtext_lacks(void **state)
{
    (void)state;
    static const char *const starting[] = {"maxtext.sh",  "maxtext.yml", "xpk.sh",
                                           "gcluster.sh", "jobset.yaml", "verify.sh"};
    json_t *answer = must_estimate(DIMS("phi3", "5120", "40", "40", "10", "17920", "100352"));
    char *json = json_dumps(answer, 0);
    assert_non_null(strstr(json, "no-maxtext-model"));
    for (size_t i = 0; i < sizeof starting / sizeof *starting; i++) {
        struct adv_text text;
        adv_err_init(&refused);
        adv_text_init(&text, 1 << 20);
        assert_int_equal(
            adv_artifact_from_answer(catalog, starting[i], json, strlen(json), 1, &text, &refused),
            ADV_E_UNSUPPORTED);
        adv_text_free(&text);
        adv_text_init(&text, 1 << 20);
        adv_err_init(&refused);
        assert_int_equal(
            adv_artifact_from_answer(catalog, "report.md", json, strlen(json), 1, &text, &refused), ADV_OK);
        adv_text_free(&text);
    }
    free(json);
    json_decref(answer);
}

static void families_of_model_files_are_the_catalog_model_with_their_dimensions(void **state)
{
    (void)state;
    static const struct {
        const char *hf, *name;
    } rows[] = {
        {"\"model_type\":\"llama4\",\"text_config\":{" DIMS(
             "llama4_text", "5120", "48", "40", "8", "8192",
             "202048") ",\"num_local_experts\":16,\"num_experts_per_tok\":1}",
         "llama4-17b-16e"},
        {DIMS("kimi_k2", "7168", "61", "64", "64", "18432", "163840") ",\"n_routed_experts\":384",
         "kimi-k2-1t"},
        {DIMS("deepseek_v32", "7168", "61", "128", "128", "18432", "129280"), "deepseek3.2-671b"},
        {DIMS("deepseek_v4", "4096", "43", "64", "1", "2048", "129280"), "deepseek4-284b"},
        {DIMS("qwen3_next", "2048", "48", "16", "2", "5120", "151936") ",\"num_experts\":512",
         "qwen3-next-80b-a3b"},
        {"\"model_type\":\"qwen3_5_moe\",\"text_config\":{" DIMS("qwen3_5_moe_text", "2048", "40", "16", "2",
                                                                 "512", "248320") "}",
         "qwen3.5-35b-a3b"},
        {"\"model_type\":\"qwen3_vl_moe\",\"text_config\":{" DIMS("qwen3_vl_moe_text", "2048", "48", "32",
                                                                  "4", "6144", "151936") "}",
         "qwen3-vl-30b-a3b"},
        {"\"model_type\":\"gemma4\",\"text_config\":{" DIMS("gemma4_text", "5376", "60", "32", "16", "21504",
                                                            "262144") "}",
         "gemma4-31b"},
        {DIMS("olmo3", "4096", "32", "32", "32", "11008", "100278"), "olmo3-7b"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *answer = must_estimate(rows[i].hf);
        const json_t *model = json_object_get(answer, "model");
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(model, "config"), "model_name")), rows[i].name);
        json_decref(answer);
    }
    assert_null(estimate("\"model_type\":\"llama4\",\"text_config\":{" DIMS("llama4_text", "5120", "47", "40",
                                                                            "8", "8192", "202048") "}"));
    assert_non_null(strstr(refused.findings[0].hint, "llama4-17b-16e"));
}

/* A file that is nearly one of the catalog's models is not that model. */
static void one_dimension_that_differs_is_another_model(void **state)
{
    (void)state;
#define KIMI  DIMS("kimi_k2", "7168", "61", "64", "64", "18432", "163840") ",\"n_routed_experts\":384"
#define OLMO3 DIMS("olmo3", "4096", "32", "32", "32", "11008", "100278")
    static const struct {
        const char *hf, *member;
    } rows[] = {
        {DIMS("kimi_k2", "7168", "61", "64", "64", "20000", "163840"), "intermediate_size"},
        {DIMS("kimi_k2", "7168", "61", "64", "64", "18432", "32000"), "vocab_size"},
        {KIMI ",\"moe_intermediate_size\":1024", "moe_intermediate_size"},
        {KIMI ",\"n_shared_experts\":2", "n_shared_experts"},
        {KIMI ",\"first_k_dense_replace\":3", "first_k_dense_replace"},
        {KIMI ",\"kv_lora_rank\":256", "kv_lora_rank"},
        {KIMI ",\"num_experts_per_tok\":\"8\"", "num_experts_per_tok"},
        {KIMI ",\"moe_intermediate_size\":\"2048\"", "moe_intermediate_size"},
        {OLMO3 ",\"head_dim\":64", "head_dim"},
        {OLMO3 ",\"sliding_window\":1024", "sliding_window"},
        {OLMO3 ",\"layer_types\":[\"sliding_attention\",\"full_attention\"]", "layer_types"},
        {"\"model_type\":\"llama4\",\"text_config\":{" DIMS(
             "llama4_text", "5120", "48", "40", "8", "8192",
             "202048") ",\"num_local_experts\":16,\"interleave_moe_layer_step\":2}",
         "text_config/interleave_moe_layer_step"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *answer = estimate(rows[i].hf);
        if (answer) fail_msg("taken: %s", rows[i].hf);
        assert_int_equal(refused.count, 1);
        assert_string_equal(refused.findings[0].pointer + strlen("/model/hf_config/"), rows[i].member);
    }
    static const char *const whole[] = {
        KIMI ".0,\"moe_intermediate_size\":2048,\"n_shared_experts\":1,\"first_k_dense_replace\":1,"
             "\"num_experts_per_tok\":8,\"q_lora_rank\":1536,\"kv_lora_rank\":512,\"qk_nope_head_dim\":128,"
             "\"v_head_dim\":128,\"head_dim\":64",
        OLMO3 ",\"sliding_window\":4096,\"layer_types\":[\"sliding_attention\",\"sliding_attention\","
              "\"sliding_attention\",\"full_attention\"]",
        DIMS("olmo3", "4096", "32", "32", "32", "11008", "100352"),
        DIMS("qwen3_next", "2048", "48", "16", "2", "5120",
             "151936") ",\"num_experts\":512,\"moe_intermediate_size\":512,\"head_dim\":256,"
                       "\"shared_expert_intermediate_size\":512,\"mlp_only_layers\":[],"
                       "\"decoder_sparse_step\":1,\"full_attention_interval\":4",
    };
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) json_decref(must_estimate(whole[i]));
#undef KIMI
#undef OLMO3
}

/* A family that is not known: the models of the catalog that may be meant stand in the hint. */
static void an_unknown_family_names_the_models_that_may_be_meant(void **state)
{
    (void)state;
    static const struct {
        const char *hf, *hint;
    } rows[] = {
        {DIMS("gemma3n", "2048", "35", "8", "2", "8192", "262400"), "gemma3-4b"},
        {DIMS("my_llama", "4096", "32", "32", "8", "14336", "128256"), "llama3.1-8b"},
        {DIMS("nemotron_h", "4480", "56", "40", "8", "15680", "131072"), "decoder_block"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_null(estimate(rows[i].hf));
        assert_string_equal(refused.findings[0].pointer, "/model/hf_config/model_type");
        assert_non_null(strstr(refused.findings[0].detail, "are not known here"));
        assert_non_null(strstr(refused.findings[0].hint, rows[i].hint));
    }
}

/* The file itself is a request without a machine, which can be given beside it. */
static void a_configuration_file_is_a_request_for_its_model(void **state)
{
    (void)state;
    static const char file[] =
        "{" DIMS("phi3", "5120", "40", "40", "10", "17920", "100352") ",\"architectures\":["
                                                                      "\"Phi3ForCausalLM\"]}";
    static const struct adv_given_member given[] = {
        {"chip", "v5p"}, {"topology", "4x4x4"}, {"per_device_batch_size", "1"}, {"remat_policy", "full"}};
    adv_err_init(&refused);
    assert_null(answer_or_refusal(ADV_REQUEST_ESTIMATE, file, &refused));
    assert_string_equal(refused.findings[0].pointer, "/cluster");
    char *json = NULL;
    size_t json_bytes = 0;
    adv_err_init(&refused);
    assert_int_equal(adv_request_expand(catalog, ADV_REQUEST_ESTIMATE, file, strlen(file), given, 4, &json,
                                        &json_bytes, &refused),
                     ADV_OK);
    json_t *answer = answer_or_refusal(ADV_REQUEST_ESTIMATE, json, &refused);
    assert_non_null(answer);
    const json_t *model = json_object_get(answer, "model");
    assert_close(json_number_value(json_object_get(model, "params_total")) / 1e9, 14.66, 0.01);
    json_decref(answer);
    free(json);
    adv_err_init(&refused);
    answer = answer_or_refusal(ADV_REQUEST_LINT, file, &refused);
    assert_true(answer && json_is_true(json_object_get(answer, "valid")));
    json_decref(answer);
}

#define LLAMA_LIKE(type) DIMS(type, "4096", "32", "32", "8", "14336", "32000")

/* Of sequences of 2,048. */
static void windows_that_are_not_priced_are_told_where_they_are_shorter(void **state)
{
    (void)state;
    static const struct {
        const char *hf;
        bool told;
    } rows[] = {
        {LLAMA_LIKE("mistral") ",\"sliding_window\":1024", true},
        {LLAMA_LIKE("mistral") ",\"sliding_window\":2048", false},
        {LLAMA_LIKE("mistral") ",\"sliding_window\":null", false},
        {LLAMA_LIKE("llama") ",\"sliding_window\":1024", false},
        {LLAMA_LIKE("phi3") ",\"sliding_window\":2047", true},
        {LLAMA_LIKE("starcoder2") ",\"sliding_window\":1024", true},
        {LLAMA_LIKE("qwen2") ",\"sliding_window\":1024", false},
        {LLAMA_LIKE("qwen2") ",\"sliding_window\":1024,\"use_sliding_window\":true", true},
        {LLAMA_LIKE("qwen2") ",\"sliding_window\":1024,\"use_sliding_window\":true,\"max_window_layers\":32",
         false},
        {LLAMA_LIKE("qwen3") ",\"sliding_window\":1024,\"layer_types\":[\"full_attention\"]", false},
        {LLAMA_LIKE("qwen3") ",\"sliding_window\":1024,\"layer_types\":[\"sliding_attention\"]", true},
        {LLAMA_LIKE("cohere2") ",\"sliding_window\":1024,\"sliding_window_pattern\":4", true},
        {LLAMA_LIKE("cohere2") ",\"sliding_window\":4096,\"sliding_window_pattern\":4", false},
        {LLAMA_LIKE("exaone") ",\"layer_types\":[\"full_attention\",\"sliding_attention\"]", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *answer = must_estimate(rows[i].hf);
        char *text = json_dumps(json_object_get(answer, "warnings"), 0);
        if ((strstr(text, "attention over all 2048 keys") != NULL) != rows[i].told)
            fail_msg("%s: %s", rows[i].hf, text);
        free(text);
        json_decref(answer);
    }
}

static void layers_that_differ_are_refused_not_dropped(void **state)
{
    (void)state;
    static const char *const texts[] = {
        DIMS("qwen2_moe", "3584", "28", "28", "4", "18944",
             "151936") ",\"num_experts\":64,\"num_experts_per_tok\":8,\"decoder_sparse_step\":2",
        DIMS("qwen2_moe", "3584", "28", "28", "4", "18944",
             "151936") ",\"num_experts\":64,\"num_experts_per_tok\":8,\"mlp_only_layers\":[3]",
        DIMS("minimax_m1", "6144", "80", "64", "8", "9216", "200064") ",\"attn_type_list\":[0,1]",
        DIMS("hunyuan_v1_moe", "4096", "2", "32", "8", "3072",
             "128167") ",\"num_experts\":64,\"moe_topk\":[8,4],\"moe_intermediate_size\":3072",
        DIMS("granite", "4096", "40", "32", "8", "Infinity", "49155"),
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *answer = estimate(texts[i]);
        if (answer) fail_msg("taken: %s", texts[i]);
        assert_non_null(strstr(refused.findings[0].pointer, "/model/hf_config/"));
    }
}

/* A number that is not read as one would make another model, and nobody would see it. */
static void a_member_of_the_wrong_kind_is_refused_not_left_out(void **state)
{
    (void)state;
#define GLM   DIMS("glm4_moe", "4096", "46", "96", "8", "10944", "151552") ",\"num_experts_per_tok\":8,"
#define OLMOE DIMS("olmoe", "2048", "16", "16", "16", "1024", "50304") ",\"num_experts_per_tok\":8,"
#define PHI                                                                                                  \
    "\"model_type\":\"phi3\",\"hidden_size\":5120,\"num_hidden_layers\":40,\"num_attention_heads\":40,"      \
    "\"intermediate_size\":17920,\"vocab_size\":100352,"
    static const struct {
        const char *hf, *member;
    } rows[] = {
        {GLM "\"n_routed_experts\":\"128\"", "n_routed_experts"},
        {GLM "\"n_routed_experts\":128.5", "n_routed_experts"},
        {GLM "\"n_routed_experts\":null", "num_experts"},
        {GLM "\"n_routed_experts\":128,\"moe_intermediate_size\":\"1408\"", "moe_intermediate_size"},
        {OLMOE "\"norm_topk_prob\":false", "num_experts"},
        {DIMS("qwen2_moe", "3584", "28", "28", "4", "18944", "151936"), "num_experts"},
        {PHI "\"num_key_value_heads\":\"10\"", "num_key_value_heads"},
        {PHI "\"head_dim\":\"256\"", "head_dim"},
        {PHI "\"tie_word_embeddings\":\"true\"", "tie_word_embeddings"},
        {PHI "\"sliding_window\":\"1024\"", "sliding_window"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *answer = estimate(rows[i].hf);
        if (answer) fail_msg("taken: %s", rows[i].hf);
        assert_int_equal(refused.count, 1);
        assert_string_equal(refused.findings[0].pointer + strlen("/model/hf_config/"), rows[i].member);
    }
    static const char *const same[][2] = {
        {GLM "\"n_routed_experts\":128,\"moe_intermediate_size\":1408",
         GLM "\"n_routed_experts\":128.0,\"moe_intermediate_size\":1408.0"},
        {PHI "\"num_key_value_heads\":10", PHI "\"num_key_value_heads\":10.0"}};
    for (int i = 0; i < 2; i++) {
        json_t *first = must_estimate(same[i][0]), *second = must_estimate(same[i][1]);
        assert_true(json_equal(json_object_get(first, "model"), json_object_get(second, "model")));
        json_decref(first);
        json_decref(second);
    }
#undef GLM
#undef OLMOE
#undef PHI
}

static void infinity_in_a_member_that_nobody_needs_is_no_mistake(void **state)
{
    (void)state;
    json_decref(must_estimate(
        DIMS("granite", "4096", "40", "32", "8", "12800",
             "49155") ",\"time_step_limit\":[0.0, Infinity],\"a\":-Infinity,\"b\":NaN,\"c\":\"NaN\\\"\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_decoders_have_the_published_number_of_parameters),
        cmocka_unit_test(a_shared_expert_has_its_own_width),
        cmocka_unit_test(no_command_is_made_for_a_model_that_maxtext_lacks),
        cmocka_unit_test(families_of_model_files_are_the_catalog_model_with_their_dimensions),
        cmocka_unit_test(one_dimension_that_differs_is_another_model),
        cmocka_unit_test(an_unknown_family_names_the_models_that_may_be_meant),
        cmocka_unit_test(a_configuration_file_is_a_request_for_its_model),
        cmocka_unit_test(windows_that_are_not_priced_are_told_where_they_are_shorter),
        cmocka_unit_test(layers_that_differ_are_refused_not_dropped),
        cmocka_unit_test(a_member_of_the_wrong_kind_is_refused_not_left_out),
        cmocka_unit_test(infinity_in_a_member_that_nobody_needs_is_no_mistake),
    };
    return run_group_with_catalog(tests);
}
