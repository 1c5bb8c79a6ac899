/* A plan of an answer carries the warnings that an estimate of its configuration gives: whatever the model,
 * the machine and what is pinned. */
#include "tests/unit/answer_fixture.h"

#include "engine/json/decode_answer.h"

#define JOB(model, cluster, workload)                                                                        \
    "{\"model\":" model ",\"cluster\":{" cluster "},\"workload\":{" workload "}"
#define SEARCH ",\"search\":{\"top_k\":4,\"max_evaluations\":3000}}"

/* `code`: a warning that the first plan has; NULL where it need have none. */
static const struct {
    const char *request, *code;
} jobs[] = {
    {JOB("\"gemma2-9b\"", "\"chip\":\"v6e\",\"topology\":\"2x2\"",
         "\"seq_len\":8192,\"global_batch_sequences\":4,\"mu_dtype\":\"bfloat16\"") SEARCH,
     "offload-with-clipping"},
    {JOB("\"olmo3-7b\"", "\"chip\":\"v5p\",\"topology\":\"2x2x4\"",
         "\"seq_len\":32768,\"global_batch_sequences\":16") SEARCH,
     "flops-count"},
    {JOB("\"llama3.1-8b\"",
         "\"chip\":\"v6e\",\"topology\":\"4x4\",\"overrides\":{\"hbm_bytes_per_chip\":48e9}",
         "\"seq_len\":8192,\"global_batch_sequences\":64") SEARCH,
     "what-if-hardware"},
    {JOB("\"llama3.1-8b\"", "\"chip\":\"v4\",\"topology\":\"2x2x4\"",
         "\"seq_len\":4096,\"global_batch_sequences\":64,\"quantization\":\"int8\"") SEARCH,
     NULL},
    {JOB("\"llama3.1-8b\"", "\"accelerator\":\"v5e-16\"",
         "\"seq_len\":4096,\"global_batch_sequences\":64") ",\"pins\":{\"base_num_decoder_layers\":16,"
                                                           "\"override_model_config\":true}" SEARCH,
     NULL},
    {JOB("\"mixtral-8x7b\"", "\"chip\":\"tpu7x\",\"topology\":\"2x2x2\"",
         "\"seq_len\":4096,\"global_batch_sequences\":64,\"quantization\":\"any\"") SEARCH,
     NULL},
    {JOB("\"deepseek2-16b\"", "\"chip\":\"v5p\",\"topology\":\"2x2x2\"",
         "\"seq_len\":4096,\"global_batch_sequences\":64") SEARCH,
     NULL},
    {JOB("{\"base_emb_dim\":2048,\"base_num_query_heads\":16,\"base_num_kv_heads\":8,\"base_mlp_dim\":8192,"
         "\"base_num_decoder_layers\":16,\"head_dim\":128,\"vocab_size\":32000,\"decoder_block\":\"llama2\"}",
         "\"chip\":\"v6e\",\"topology\":\"2x4\"", "\"seq_len\":4096,\"global_batch_sequences\":64") SEARCH,
     NULL},
};

/* The warnings of an estimate of the row's configuration. */
static json_t *warnings_given_back(const json_t *request, const json_t *row)
{
    json_t *document =
        json_pack("{s:O, s:O, s:O, s:O}", "model", json_object_get(request, "model"), "cluster",
                  json_object_get(request, "cluster"), "config", json_object_get(row, "config"), "xla_flags",
                  json_object_get(row, "xla_flags"));
    char *text = json_dumps(document, 0);
    json_t *answer = answer_to(ADV_REQUEST_ESTIMATE, text);
    json_t *warnings = json_incref(json_object_get(answer, "warnings"));
    json_decref(answer);
    free(text);
    json_decref(document);
    return warnings;
}

static void assert_same_warnings(const json_t *request, const json_t *row, const char *what)
{
    json_t *again = warnings_given_back(request, row);
    json_t *warnings = json_object_get(json_object_get(row, "estimate"), "warnings");
    if (!json_equal(again, warnings))
        fail_msg("%s: the plan has %s, its estimate %s", what, json_dumps(warnings, 0), json_dumps(again, 0));
    json_decref(again);
}

static bool has(const json_t *warnings, const char *code)
{
    for (size_t i = 0; i < json_array_size(warnings); i++)
        if (!strcmp(json_string_value(json_object_get(json_array_get(warnings, i), "code")), code))
            return true;
    return false;
}

static void every_ranked_plan_warns_of_what_its_estimate_warns_of(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        json_t *request = json_loads(jobs[i].request, 0, NULL);
        json_t *answer = answer_to(ADV_REQUEST_ADVISE, jobs[i].request);
        json_t *ranked = json_object_get(answer, "ranked");
        if (json_array_size(ranked) == 0) fail_msg("no plan for %s", jobs[i].request);
        for (size_t k = 0; k < json_array_size(ranked); k++)
            assert_same_warnings(request, json_array_get(ranked, k), jobs[i].request);
        json_t *first = json_object_get(json_array_get(ranked, 0), "estimate");
        if (jobs[i].code && !has(json_object_get(first, "warnings"), jobs[i].code))
            fail_msg("%s lacks %s", jobs[i].request, jobs[i].code);
        json_decref(answer);
        json_decref(request);
    }
}

static void the_best_plan_of_each_machine_does_so_too(void **state)
{
    (void)state;
    static const char request_text[] =
        "{\"model\":\"gemma2-9b\",\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"2x2\"},"
        "{\"chip\":\"v5p\",\"topology\":\"2x2x1\"}],\"workload\":{\"seq_len\":8192,"
        "\"global_batch_sequences\":4,\"mu_dtype\":\"bfloat16\"}}";
    json_t *request = json_loads(request_text, 0, NULL);
    json_t *answer = answer_to(ADV_REQUEST_ADVISE, request_text);
    json_t *rows = json_object_get(answer, "platforms");
    assert_int_equal(json_array_size(rows), 2);
    int warned = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i), *best = json_object_get(row, "best");
        json_t *cluster = json_object_get(row, "cluster");
        (void)json_object_set_new(request, "cluster",
                                  json_pack("{s:O, s:O}", "chip", json_object_get(cluster, "chip"),
                                            "topology", json_object_get(cluster, "topology")));
        assert_same_warnings(request, best, "a machine");
        warned += json_array_size(json_object_get(json_object_get(best, "estimate"), "warnings")) > 0;
    }
    assert_true(warned > 0);
    json_decref(answer);
    json_decref(request);
}

static void assert_is_script(const json_t *answer, const char *maxtext, const char *module)
{
    adv_err err;
    struct adv_text script;
    char *text = json_dumps(answer, 0);
    adv_err_init(&err);
    adv_text_init(&script, 65536);
    assert_int_equal(adv_artifact_from_answer(catalog, "maxtext.sh", text, strlen(text), 1, &script, &err),
                     ADV_OK);
    if (!strstr(script.data, module) || !strstr(script.data, maxtext))
        fail_msg("no script for MaxText %s:\n%s", maxtext, script.data);
    adv_text_free(&script);
    free(text);
}

/* A plan for an older MaxText is one that it takes, and the files of the answer are for it. */
static void plans_for_a_release_have_no_key_that_it_lacks(void **state)
{
    (void)state;
    static const char *const models[] = {"llama3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "gemma3-27b"};
    static const struct {
        const char *maxtext, *module;
    } releases[] = {{"0.1.0", "python3 -m MaxText.train "},
                    {"0.2.0", "python3 -m maxtext.trainers.pre_train.train "},
                    {"0.2.3", "python3 -m maxtext.trainers.pre_train.train "}};
    for (size_t i = 0; i < 4 * 3; i++) {
        const char *maxtext = releases[i % 3].maxtext;
        json_t *request = json_pack("{s:s, s:{s:s, s:s}, s:{s:i, s:i}, s:{s:s}}", "model", models[i / 3],
                                    "cluster", "chip", "v6e", "topology", "8x8", "workload", "seq_len", 4096,
                                    "global_batch_sequences", 256, "software", "maxtext", maxtext);
        json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
        json_t *ranked = json_object_get(answer, "ranked");
        if (json_array_size(ranked) == 0) fail_msg("%s has no plan for %s", models[i / 3], maxtext);
        for (size_t k = 0; k < json_array_size(ranked); k++) {
            const json_t *estimate = json_object_get(json_array_get(ranked, k), "estimate");
            const json_t *warnings = json_object_get(estimate, "warnings");
            if (has(warnings, "key-not-in-release") || has(warnings, "value-not-in-release"))
                fail_msg("%s: a plan for %s that it refuses", models[i / 3], maxtext);
        }
        assert_string_equal(
            json_string_value(json_object_get(json_object_get(answer, "software"), "maxtext")), maxtext);
        assert_is_script(answer, maxtext, releases[i % 3].module);
        json_decref(answer);
        json_decref(request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ranked_plan_warns_of_what_its_estimate_warns_of),
        cmocka_unit_test(the_best_plan_of_each_machine_does_so_too),
        cmocka_unit_test(plans_for_a_release_have_no_key_that_it_lacks),
    };
    return run_group_with_catalog(tests);
}
