/* A plan that advise ranks is a configuration of MaxText: estimated again it is the same plan, with the same
 * numbers and warnings, and lint finds no error in it; for every model of the catalog and whatever is asked
 * for. */
#include "tests/unit/answer_fixture.h"

static uint64_t seed;

static size_t below(size_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(seed >> 33) % n;
}

#define ONE_OF(list) (list)[below(sizeof(list) / sizeof *(list))]

static const char *const clusters[] = {
    "{\"chip\":\"tpu7x\",\"topology\":\"2x2x1\"}", "{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"}",
    "{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"}", "{\"chip\":\"v5p\",\"topology\":\"2x2x2\",\"slices\":2}",
    "{\"chip\":\"v5p\",\"topology\":\"4x4x8\"}",   "{\"chip\":\"v6e\",\"topology\":\"4x4\"}",
    "{\"chip\":\"v6e\",\"topology\":\"16x16\"}",   "{\"chip\":\"v5e\",\"topology\":\"8x8\"}",
    "{\"chip\":\"v4\",\"topology\":\"2x4x4\"}",
};
static const int lengths[] = {128, 512, 2048, 3072, 4096, 8192, 32768, 131072};
static const int batches[] = {16, 48, 64, 100, 256, 1024};
/* Members of the workload beside length and batch. */
static const char *const formats[] = {"",
                                      "",
                                      "",
                                      ",\"quantization\":\"any\"",
                                      ",\"quantization\":\"int8\"",
                                      ",\"quantization\":\"fp8\"",
                                      ",\"quantization\":\"fp8_full\"",
                                      ",\"optimizer\":\"adamw\"",
                                      ",\"optimizer\":\"sgd\"",
                                      ",\"weight_dtype\":\"bfloat16\",\"mu_dtype\":\"bfloat16\""};
static const char *const pins[] = {"",
                                   "",
                                   "",
                                   "\"ici_context_parallelism\":2,\"context_parallel_strategy\":\"ring\"",
                                   "\"ici_context_parallelism\":2",
                                   "\"ici_pipeline_parallelism\":2",
                                   "\"remat_policy\":\"minimal\"",
                                   "\"remat_policy\":\"full\"",
                                   "\"use_iota_embed\":false",
                                   "\"optimizer_memory_host_offload\":true",
                                   "\"scan_layers\":true",
                                   "\"weight_quantization_calibration_method\":\"fixed,-224,224\"",
                                   "\"attention\":\"flash\",\"use_tokamax_splash\":false"};
static const char *const objectives[] = {"step_time", "step_time", "tokens_per_s", "hbm"};

static void assert_same(const json_t *ranked, const json_t *again, const char *member, const char *what)
{
    double a = json_number_value(json_object_get(ranked, member));
    double b = json_number_value(json_object_get(again, member));
    if (fabs(a - b) > 1e-9 * fabs(a)) fail_msg("%s: %s is %.12g ranked, %.12g estimated", what, member, a, b);
}

static void assert_reads_as_ranked(const json_t *request, json_t *ranked)
{
    adv_err err;
    json_t *job = json_pack("{s:O, s:O, s:O, s:O}", "model", json_object_get(request, "model"), "cluster",
                            json_object_get(request, "cluster"), "config", json_object_get(ranked, "config"),
                            "xla_flags", json_object_get(ranked, "xla_flags"));
    char *text = json_dumps(job, 0), *what = json_dumps(request, 0);
    json_t *again = answer_or_refusal(ADV_REQUEST_ESTIMATE, text, &err);
    if (!again)
        fail_msg("%s: estimate refuses the plan: %s: %s", what, err.findings[0].pointer,
                 err.findings[0].detail);
    const json_t *estimate = json_object_get(ranked, "estimate");
    static const char *const members[] = {"step_time_s",     "step_time_low_s",       "step_time_high_s",
                                          "mfu_frac",        "hbm_bytes_per_device",  "host_bytes_per_host",
                                          "tokens_per_step", "global_batch_sequences"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        assert_same(estimate, again, members[i], what);
    json_t *before = json_object_get(estimate, "warnings"), *after = json_object_get(again, "warnings");
    if (json_array_size(before) != json_array_size(after))
        fail_msg("%s: %zu warnings ranked, %zu estimated", what, json_array_size(before),
                 json_array_size(after));
    json_t *lint = answer_or_refusal(ADV_REQUEST_LINT, text, &err);
    if (!lint || !json_is_true(json_object_get(lint, "valid"))) {
        char *findings = lint ? json_dumps(json_object_get(lint, "findings"), 0) : NULL;
        fail_msg("%s: lint: %s", what, findings ? findings : err.findings[0].detail);
    }
    json_decref(lint);
    json_decref(again);
    json_decref(job);
    free(text);
    free(what);
}

static void every_ranked_plan_is_a_configuration_that_reads_as_it(void **state)
{
    (void)state;
    enum { ROUNDS = 3, LEAST_PLANS = 120 };
    int plans = 0;
    seed = 20261;
    for (int i = 0; i < ROUNDS * adv_catalog_tables(catalog)->models_count; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\",\"cluster\":%s,\"workload\":{\"seq_len\":%d,"
                       "\"global_batch_sequences\":%d%s},\"pins\":{%s},"
                       "\"search\":{\"objective\":\"%s\",\"top_k\":3,\"max_evaluations\":2000}}",
                       adv_catalog_tables(catalog)->model_names[i / ROUNDS], ONE_OF(clusters),
                       ONE_OF(lengths), ONE_OF(batches), ONE_OF(formats), ONE_OF(pins), ONE_OF(objectives));
        adv_err err;
        json_t *answer = answer_or_refusal(ADV_REQUEST_ADVISE, text, &err);
        if (!answer) continue; /* pins that clash are refused */
        json_t *request = json_loads(text, 0, NULL), *ranked = json_object_get(answer, "ranked");
        for (size_t r = 0; r < json_array_size(ranked); r++, plans++)
            assert_reads_as_ranked(request, json_array_get(ranked, r));
        json_decref(request);
        json_decref(answer);
    }
    if (plans < LEAST_PLANS) fail_msg("only %d plans were ranked", plans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ranked_plan_is_a_configuration_that_reads_as_it),
    };
    return run_group_with_catalog(tests);
}
