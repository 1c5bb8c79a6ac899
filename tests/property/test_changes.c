/* "The best plan within k changed keys", as a user takes it: the changes of a ranked plan, set in the
 * baseline, are that plan; there are no more than were allowed; and the limit does not make an answer slow.
 */
#include "tests/unit/answer_fixture.h"

#include <time.h>

#include "engine/rank/rank.h"

/* Dense and expert models; presets and tensors that sleep under them; kernels that read no tile. */
static const struct {
    const char *model, *cluster, *config, *workload;
} jobs[] = {
    {"mistral-7b", "{\"chip\":\"v5p\",\"topology\":\"2x2x4\"}",
     "{\"ici_fsdp_parallelism\":16,\"remat_policy\":\"minimal_with_context\",\"max_target_length\":4096,"
     "\"per_device_batch_size\":2,\"use_tokamax_splash\":false,\"sa_block_q\":1024,\"sa_block_kv\":256,"
     "\"sa_block_kv_compute\":256,\"attention\":\"dot_product\"}",
     "{\"seq_len\":4096,\"per_device_batch_size\":2}"},
    {"qwen3-30b-a3b", "{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"}",
     "{\"ici_fsdp_parallelism\":32,\"remat_policy\":\"full\",\"context\":\"offload\",\"max_target_length\":"
     "4096,"
     "\"per_device_batch_size\":2,\"megablox\":false,\"attention\":\"flash\"}",
     "{\"seq_len\":4096,\"per_device_batch_size\":2}"},
    {"gemma3-12b", "{\"chip\":\"v6e\",\"topology\":\"4x4\"}",
     "{\"ici_fsdp_parallelism\":8,\"ici_tensor_parallelism\":2,\"remat_policy\":\"custom\",\"mlpwi_0\":"
     "\"offload\",\"max_target_length\":8192,\"per_device_batch_size\":1,\"local_sa_block_kv\":512,"
     "\"attention\":\"flash\",\"optimizer_memory_host_offload\":true,\"allow_split_physical_axes\":true}",
     "{\"seq_len\":8192,\"per_device_batch_size\":1}"},
    {"gemma3-12b", "{\"chip\":\"v5p\",\"topology\":\"2x4x4\"}",
     "{\"ici_fsdp_parallelism\":32,\"remat_policy\":\"full\",\"max_target_length\":16384,"
     "\"per_device_batch_size\":1,\"attention\":\"flash\"}",
     "{\"seq_len\":16384,\"per_device_batch_size\":1}"},
    {"llama3.1-8b", "{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"}",
     "{\"ici_fsdp_parallelism\":32,\"remat_policy\":\"minimal\",\"max_target_length\":4096,"
     "\"per_device_batch_size\":1,\"attention\":\"flash\",\"optimizer_memory_host_offload\":true}",
     "{\"seq_len\":4096,\"per_device_batch_size\":1}"},
    {"gpt3-6b", "{\"chip\":\"v5e\",\"topology\":\"4x8\"}",
     "{\"ici_fsdp_parallelism\":32,\"remat_policy\":\"minimal\",\"max_target_length\":2048,"
     "\"per_device_batch_size\":2,\"override_model_config\":true,\"attention\":\"flash\"}",
     "{\"seq_len\":2048,\"per_device_batch_size\":2}"},
};
enum { JOBS = sizeof jobs / sizeof *jobs };
static const int limits[] = {0, 1, 3, 5};
enum { LIMITS = sizeof limits / sizeof *limits };

static json_t *request_of(int job, const char *search)
{
    json_t *request = json_pack("{s:s, s:o, s:o, s:{s:o}, s:o}", "model", jobs[job].model, "cluster",
                                json_loads(jobs[job].cluster, 0, NULL), "workload",
                                json_loads(jobs[job].workload, 0, NULL), "baseline", "config",
                                json_loads(jobs[job].config, 0, NULL), "search", json_loads(search, 0, NULL));
    assert_non_null(request);
    return request;
}

/* Keys into the configuration, flags into the list; a flag that goes back to the default is left out. */
static void set_change(const json_t *change, json_t *config, json_t *flags)
{
    const char *key = json_string_value(json_object_get(change, "key"));
    json_t *to = json_object_get(change, "to");
    if (strncmp(key, "xla", 3) != 0 && strncmp(key, "--", 2) != 0) {
        (void)json_object_set(config, key, to);
        return;
    }
    char *value = json_dumps(to, JSON_ENCODE_ANY);
    const char *bare = json_is_string(to) ? json_string_value(to) : value;
    if (!json_is_null(to))
        (void)json_array_append_new(flags, json_sprintf("--%s=%s", key + strspn(key, "-"), bare));
    free(value);
}

static void assert_changes_are_the_plan(int job, const json_t *ranked, int limit)
{
    json_t *changes = json_object_get(ranked, "changes_from_baseline");
    json_t *config = json_loads(jobs[job].config, 0, NULL), *flags = json_array();
    if (limit >= 0 && json_array_size(changes) > (size_t)limit)
        fail_msg("%s: %zu changes, at most %d were allowed", jobs[job].model, json_array_size(changes),
                 limit);
    for (size_t i = 0; i < json_array_size(changes); i++)
        set_change(json_array_get(changes, i), config, flags);
    json_t *request = json_pack("{s:s, s:o, s:o, s:o}", "model", jobs[job].model, "cluster",
                                json_loads(jobs[job].cluster, 0, NULL), "config", config, "xla_flags", flags);
    json_t *again = answer_to_document(ADV_REQUEST_ESTIMATE, request);
    double a = json_number_value(json_object_get(json_object_get(ranked, "estimate"), "step_time_s"));
    double b = json_number_value(json_object_get(again, "step_time_s"));
    if (fabs(a - b) > 1e-9 * a)
        fail_msg("%s within %d: %.12g s ranked, %.12g s with the changes %s", jobs[job].model, limit, a, b,
                 json_dumps(changes, 0));
    json_decref(again);
    json_decref(request);
}

/* Each step once: keys that are taken together have its number and its gain. Without numbers there are too
 * many keys for steps. */
static void assert_steps_add_up(int job, const json_t *ranked)
{
    enum { STEPS_MOST = 64 };
    json_t *changes = json_object_get(ranked, "changes_from_baseline");
    const double whole = json_number_value(json_object_get(ranked, "gain_from_baseline_frac"));
    double gains[STEPS_MOST] = {0}, sum = 0;
    for (size_t i = 0; i < json_array_size(changes); i++) {
        const json_t *change = json_array_get(changes, i), *order = json_object_get(change, "order");
        if (!json_is_integer(order)) return;
        gains[json_integer_value(order)] = json_number_value(json_object_get(change, "gain_frac"));
    }
    for (int step = 0; step < STEPS_MOST; step++) sum += gains[step];
    if (fabs(sum - whole) > 1e-9)
        fail_msg("%s: the steps gain %.6f, the plan gains %.6f", jobs[job].model, sum, whole);
}

static void the_changes_of_a_plan_set_in_the_baseline_are_that_plan(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        for (int l = -1; l < LIMITS; l++) {
            char search[96] = "{\"top_k\":3}";
            if (l >= 0) (void)snprintf(search, sizeof search, "{\"top_k\":3,\"max_changes\":%d}", limits[l]);
            json_t *request = request_of(job, search);
            json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
            json_t *ranked = json_object_get(answer, "ranked");
            assert_true(json_array_size(ranked) > 0);
            for (size_t i = 0; i < json_array_size(ranked); i++) {
                assert_changes_are_the_plan(job, json_array_get(ranked, i), l < 0 ? -1 : limits[l]);
                assert_steps_add_up(job, json_array_get(ranked, i));
            }
            json_decref(answer);
            json_decref(request);
        }
    }
}

static double ranked_s(const json_t *answer, size_t i, const char *member)
{
    const json_t *plan = json_array_get(json_object_get(answer, "ranked"), i);
    return json_number_value(json_object_get(json_object_get(plan, "estimate"), member));
}

/* Flags that the search does not try, and that make the step shorter on this chip: the plan with them is what
 * the user has. It is ranked, or what is as fast with these flags, and no other comes first unless it is as
 * fast or tied. */
static void no_plan_is_advised_that_the_baseline_beats(void **state)
{
    (void)state;
    const int job = 2; /* on v6e */
    json_t *request = request_of(job, "{\"top_k\":3}");
    json_object_del(request, "baseline");
    json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
    const double without_s = ranked_s(answer, 0, "step_time_s");
    json_t *flags = json_loads("[\"--xla_tpu_enable_sparse_core_collective_offload_all_gather=true\","
                               "\"--xla_tpu_enable_sparse_core_collective_offload_2d_all_gather=true\","
                               "\"--xla_tpu_enable_sparse_core_collective_offload_reduce_scatter=true\"]",
                               0, NULL);
    json_t *first = json_array_get(json_object_get(answer, "ranked"), 0);
    json_array_extend(flags, json_object_get(first, "xla_flags"));
    json_object_set_new(
        request, "baseline",
        json_pack("{s:O, s:o}", "config", json_object_get(first, "config"), "xla_flags", flags));
    json_t *better = answer_to_document(ADV_REQUEST_ADVISE, request);
    const json_t *baseline = json_object_get(json_object_get(better, "baseline"), "estimate");
    const double baseline_s = json_number_value(json_object_get(baseline, "step_time_s"));
    assert_true(baseline_s < without_s);
    assert_true(ranked_s(better, 0, "step_time_s") <= baseline_s * (1 + ADV_RANK_TIE_FRAC));
    bool ranked = false;
    for (size_t i = 0; i < json_array_size(json_object_get(better, "ranked")); i++)
        ranked = ranked || fabs(ranked_s(better, i, "step_time_s") - baseline_s) <= 1e-9 * baseline_s;
    assert_true(ranked);
    json_decref(better);
    json_decref(answer);
    json_decref(request);
}

static json_t *advise(const char *text)
{
    json_t *request = json_loads(text, 0, NULL);
    assert_non_null(request);
    json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
    json_decref(request);
    return answer;
}

#define MIXTRAL_64                                                                                           \
    "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"                     \
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":256},"

/* Einsums and grouped matmuls of experts gather over other groups: what was remembered of one plan is not the
 * other's. */
static void a_baseline_with_other_expert_kernels_is_priced_as_alone(void **state)
{
    (void)state;
    json_t *answer =
        advise(MIXTRAL_64
               "\"pins\":{\"ici_fsdp_parallelism\":16,\"ici_fsdp_transpose_parallelism\":4,"
               "\"moe_fsdp_use_two_stage_all_gather\":false,\"gradient_accumulation_steps\":1},"
               "\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":16,\"ici_fsdp_transpose_parallelism\":4,"
               "\"sparse_matmul\":false,\"capacity_factor\":1,\"per_device_batch_size\":4,"
               "\"max_target_length\":4096,\"remat_policy\":\"full\",\"attention\":\"flash\"}}}");
    const json_t *front = json_object_get(answer, "pareto");
    int dense = 0;
    for (size_t i = 0; i < json_array_size(front); i++) {
        const json_t *point = json_array_get(front, i), *config = json_object_get(point, "config");
        json_t *request = json_pack("{s:s, s:{s:s, s:s}, s:O, s:O}", "model", "mixtral-8x7b", "cluster",
                                    "chip", "v5p", "topology", "4x4x4", "config", config, "xla_flags",
                                    json_object_get(point, "xla_flags"));
        json_t *alone = answer_to_document(ADV_REQUEST_ESTIMATE, request);
        const double told_s = json_number_value(json_object_get(point, "step_time_s"));
        const double alone_s = json_number_value(json_object_get(alone, "step_time_s"));
        if (fabs(told_s - alone_s) > 1e-9 * alone_s)
            fail_msg("point %zu is told as %.9g s and takes %.9g s", i, told_s, alone_s);
        dense += json_is_false(json_object_get(config, "sparse_matmul"));
        json_decref(alone);
        json_decref(request);
    }
    assert_true(dense > 0);
    json_decref(answer);
}

/* What the workload asks for holds for the baseline's plan too, which would be faster without. */
static void a_baseline_of_another_optimizer_and_format_is_not_ranked(void **state)
{
    (void)state;
    json_t *request =
        json_loads("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                   "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32,\"weight_dtype\":"
                   "\"float32\",\"optimizer\":\"adamw\"},\"search\":{\"top_k\":50}}",
                   0, NULL);
    json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
    json_t *baseline = json_deep_copy(json_array_get(json_object_get(answer, "ranked"), 0));
    json_t *config = json_object_get(baseline, "config");
    json_object_set_new(config, "weight_dtype", json_string("bfloat16"));
    json_object_set_new(config, "opt_type", json_string("sgd"));
    json_object_set_new(
        request, "baseline",
        json_pack("{s:O, s:O}", "config", config, "xla_flags", json_object_get(baseline, "xla_flags")));
    json_t *again = answer_to_document(ADV_REQUEST_ADVISE, request);
    const json_t *ranked = json_object_get(again, "ranked");
    assert_int_equal(json_array_size(ranked), json_array_size(json_object_get(answer, "ranked")));
    for (size_t i = 0; i < json_array_size(ranked); i++) {
        const json_t *advised = json_object_get(json_array_get(ranked, i), "config");
        assert_null(json_object_get(advised, "opt_type"));
        assert_null(json_object_get(advised, "weight_dtype"));
    }
    json_decref(again);
    json_decref(baseline);
    json_decref(answer);
    json_decref(request);
}

static json_t *request_beside(const char *workload, const char *config)
{
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x4\"},"
        "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":64%s},\"baseline\":{\"config\":{"
        "\"ici_fsdp_parallelism\":16,\"remat_policy\":\"full\"%s}}}",
        workload, config);
    json_t *request = json_loads(text, 0, NULL);
    assert_non_null(request);
    return request;
}

/* A baseline that leaves length, batch and formats out has the workload's, and says the formats that the
 * workload leaves out. One that says others is told so, and what is ranked within a limit is of the workload
 * all the same: what the workload changes counts, and more of it than is allowed leaves nothing and the
 * reason. */
static void plans_within_a_limit_are_of_the_workload(void **state)
{
    static const struct {
        const char *config, *workload; /* after the mesh, and after length and batch */
        int max_changes, ranked;       /* least number */
        const char *warning;           /* the first of so many */
        size_t warnings;
        const char *dtype;
    } cases[] = {
        {"", "", 2, 1, NULL, 0, NULL},
        {",\"weight_dtype\":\"bfloat16\"", "", 2, 1, NULL, 0, "bfloat16"},
        {",\"weight_dtype\":\"bfloat16\"", "", -1, 1, NULL, 0, "bfloat16"},
        {",\"max_target_length\":2048", "", 2, 1, "baseline-other-work", 1, NULL},
        {",\"max_target_length\":2048", "", 0, 0, "baseline-other-work", 1, NULL},
        {",\"per_device_batch_size\":2", "", 1, 1, "baseline-other-work", 1, NULL},
        {",\"model_name\":\"llama3.1-405b\"", "", 2, 1, "contradiction", 1, NULL},
        {",\"compile_topology\":\"v6e-8\"", "", 2, 1, "contradiction", 1, NULL},
        {",\"weight_dtype\":\"bfloat16\"", ",\"weight_dtype\":\"float32\"", 3, 1, "baseline-other-format", 1,
         NULL},
        {",\"opt_type\":\"sgd\",\"weight_dtype\":\"bfloat16\"",
         ",\"weight_dtype\":\"float32\",\"optimizer\":\"adamw\"", 1, 0, "baseline-other-format", 2, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *request = request_beside(cases[i].workload, cases[i].config);
        if (cases[i].max_changes >= 0)
            json_object_set_new(request, "search", json_pack("{s:i}", "max_changes", cases[i].max_changes));
        json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
        const json_t *ranked = json_object_get(answer, "ranked");
        const json_t *warning = json_array_get(json_object_get(answer, "warnings"), 0);
        const char *code = json_string_value(json_object_get(warning, "code"));
        assert_int_equal(code != NULL, cases[i].warning != NULL);
        if (code) assert_string_equal(code, cases[i].warning);
        assert_int_equal(json_array_size(json_object_get(answer, "warnings")), cases[i].warnings);
        assert_int_equal(json_array_size(ranked) > 0, cases[i].ranked);
        if (!cases[i].ranked)
            assert_non_null(
                strstr(json_string_value(json_object_get(json_object_get(answer, "search"), "empty_why")),
                       "max_changes"));
        for (size_t k = 0; k < json_array_size(ranked); k++) {
            const json_t *plan = json_array_get(ranked, k), *config = json_object_get(plan, "config");
            const char *dtype = json_string_value(json_object_get(config, "weight_dtype"));
            assert_int_equal(json_integer_value(json_object_get(config, "max_target_length")), 4096);
            assert_int_equal(dtype != NULL, cases[i].dtype != NULL);
            if (dtype) assert_string_equal(dtype, cases[i].dtype);
            if (cases[i].max_changes >= 0)
                assert_true(json_array_size(json_object_get(plan, "changes_from_baseline")) <=
                            (size_t)cases[i].max_changes);
        }
        json_decref(answer);
        json_decref(request);
    }
}

/* Where fsdp is held, what is left of the slice may be fsdp_transpose's. */
static void a_pinned_fsdp_leaves_the_rest_to_fsdp_transpose(void **state)
{
    (void)state;
    json_t *answer = advise(MIXTRAL_64 "\"pins\":{\"ici_fsdp_parallelism\":16},"
                                       "\"search\":{\"axes\":[\"fsdp\",\"fsdp_transpose\"]}}");
    const json_t *first = json_array_get(json_object_get(answer, "ranked"), 0);
    const json_t *config = json_object_get(first, "config");
    assert_int_equal(json_integer_value(json_object_get(config, "ici_fsdp_transpose_parallelism")), 4);
    json_decref(answer);
}

/* Seconds of processor time for each plan priced. */
static double seconds_each(int job, const char *search)
{
    json_t *request = request_of(job, search);
    const clock_t start = clock();
    json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    double evaluated = json_number_value(json_object_get(json_object_get(answer, "search"), "evaluated"));
    json_decref(answer);
    json_decref(request);
    return seconds / evaluated;
}

/* Counting the keys of a plan in MaxText's words costs some hundred evaluations: only what may enter the
 * answer may be counted, where attention reads no tile, too. */
static void plans_that_predict_the_same_are_counted_once(void **state)
{
    (void)state;
    double free_s = seconds_each(0, "{\"top_k\":3}");
    double within_s = seconds_each(0, "{\"top_k\":3,\"max_changes\":5}");
    if (within_s > 10 * free_s)
        fail_msg("%.3g us a plan within 5 changes, %.3g us without a limit", within_s * 1e6, free_s * 1e6);
}

/* One key of a plan whose kernels nearly fill the VMEM: larger tiles are predicted faster, and do not
 * compile.
 */
static void no_change_is_advised_that_does_not_compile(void **state)
{
    static const struct {
        const char *model, *cluster, *config, *workload;
        int limit;
    } tight[] = {
        {"gemma-2b", "{\"chip\":\"tpu7x\",\"topology\":\"2x4x4\"}",
         "{\"ici_fsdp_parallelism\":64,\"remat_policy\":\"minimal\",\"max_target_length\":2048,"
         "\"per_device_batch_size\":2,\"use_tokamax_splash\":true,\"sa_block_q\":2048,\"sa_block_kv\":2048,"
         "\"sa_block_kv_compute\":512,\"sa_block_q_dkv\":2048,\"sa_block_kv_dkv\":2048,"
         "\"sa_block_kv_dkv_compute\":512}",
         "{\"seq_len\":2048,\"per_device_batch_size\":2}", 1},
        {"gpt-oss-20b", "{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"}",
         "{\"ici_fsdp_parallelism\":32,\"ici_data_parallelism\":4,\"remat_policy\":\"minimal_offloaded\","
         "\"max_target_length\":8192,\"per_device_batch_size\":4,\"optimizer_memory_host_offload\":true}",
         "{\"seq_len\":8192,\"per_device_batch_size\":4}", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof tight / sizeof *tight; i++) {
        json_t *request = json_pack("{s:s, s:o, s:o, s:{s:o}, s:{s:i, s:i}}", "model", tight[i].model,
                                    "cluster", json_loads(tight[i].cluster, 0, NULL), "workload",
                                    json_loads(tight[i].workload, 0, NULL), "baseline", "config",
                                    json_loads(tight[i].config, 0, NULL), "search", "top_k", 10,
                                    "max_changes", tight[i].limit);
        json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
        static const char *const lists[] = {"ranked", "pareto"};
        for (int list = 0; list < 2; list++) {
            const json_t *plans = json_object_get(answer, lists[list]);
            assert_true(json_array_size(plans) > 0);
            for (size_t p = 0; p < json_array_size(plans); p++) {
                const json_t *plan = json_array_get(plans, p);
                json_t *again = json_pack("{s:s, s:o, s:O, s:O}", "model", tight[i].model, "cluster",
                                          json_loads(tight[i].cluster, 0, NULL), "config",
                                          json_object_get(plan, "config"), "xla_flags",
                                          json_object_get(plan, "xla_flags"));
                json_t *alone = answer_to_document(ADV_REQUEST_ESTIMATE, again);
                char *warnings = json_dumps(json_object_get(alone, "warnings"), 0);
                if (strstr(warnings, "kernel-over-vmem"))
                    fail_msg("%s, %s %zu: %s", tight[i].model, lists[list], p, warnings);
                free(warnings);
                json_decref(alone);
                json_decref(again);
            }
        }
        json_decref(answer);
        json_decref(request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_changes_of_a_plan_set_in_the_baseline_are_that_plan),
        cmocka_unit_test(no_plan_is_advised_that_the_baseline_beats),
        cmocka_unit_test(no_change_is_advised_that_does_not_compile),
        cmocka_unit_test(a_baseline_with_other_expert_kernels_is_priced_as_alone),
        cmocka_unit_test(a_baseline_of_another_optimizer_and_format_is_not_ranked),
        cmocka_unit_test(plans_within_a_limit_are_of_the_workload),
        cmocka_unit_test(a_pinned_fsdp_leaves_the_rest_to_fsdp_transpose),
        cmocka_unit_test(plans_that_predict_the_same_are_counted_once),
    };
    return run_group_with_catalog(tests);
}
