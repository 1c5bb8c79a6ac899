/* Pins only shrink the space: what a search finds with them, it must not miss without. */
#include "tests/property/search_jobs.h"

#include "engine/rank/rank.h"

/* The ranking's metric of the best plan found; the first in the answer may be a simpler one that is tied. */
static double best_cautious_s(const struct adv_search_result *result)
{
    double best_s = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        best_s = fmin(best_s, adv_rank_cautious(ADV_OBJECTIVE_STEP_TIME, &result->found[i].estimate));
    return best_s;
}

static double search_s(const char *job, const char *pins)
{
    static struct fixture fixture;
    struct adv_search_result result;
    char text[1024];
    snprintf(text, sizeof text, "%s,\"pins\":{%s}}", job, pins);
    fixture_search(&fixture, text, &result);
    assert_true(result.exhaustive);
    double best_s = best_cautious_s(&result);
    fixture_close(&fixture);
    return best_s;
}

#define JOB(model, cluster, workload)                                                                        \
    "{\"model\":\"" model "\",\"cluster\":" cluster ",\"workload\":" workload

#define GEMMA                                                                                                \
    JOB("gemma3-12b", "{\"chip\":\"v4\",\"topology\":\"2x2x1\",\"slices\":2}",                               \
        "{\"seq_len\":8192,\"global_batch_sequences\":64}")
#define DEEPSEEK                                                                                             \
    JOB("deepseek2-16b", "{\"chip\":\"v4\",\"topology\":\"2x2x2\"}",                                         \
        "{\"seq_len\":2048,\"global_batch_sequences\":16}")
#define DEEPSEEK_4_SLICES                                                                                    \
    JOB("deepseek3-671b", "{\"chip\":\"v5p\",\"topology\":\"4x4x4\",\"slices\":4}",                          \
        "{\"seq_len\":2048,\"global_batch_sequences\":512}")

#define QWEN                                                                                                 \
    JOB("qwen3-235b-a22b", "{\"chip\":\"v5p\",\"topology\":\"4x8x8\"}",                                      \
        "{\"seq_len\":4096,\"global_batch_sequences\":512,\"weight_dtype\":\"bfloat16\"}")

#define LLAMA                                                                                                \
    JOB("llama3.1-8b", "{\"chip\":\"v4\",\"topology\":\"4x4x4\",\"slices\":4}",                              \
        "{\"seq_len\":4096,\"global_batch_sequences\":1024}")
#define GEMMA_LONG                                                                                           \
    JOB("gemma3-27b", "{\"chip\":\"v4\",\"topology\":\"2x4x4\",\"slices\":4}",                               \
        "{\"seq_len\":131072,\"global_batch_sequences\":128}")
#define QWEN_LONG                                                                                            \
    JOB("qwen3-235b-a22b", "{\"chip\":\"v5e\",\"topology\":\"16x16\",\"slices\":2}",                         \
        "{\"seq_len\":131072,\"global_batch_sequences\":256}")

static const struct {
    const char *job, *pins;
} shrunk[] = {
    {DEEPSEEK, "\"ici_pipeline_parallelism\":2"},
    {DEEPSEEK, "\"ici_pipeline_parallelism\":2,\"num_pipeline_microbatches\":16"},
    {GEMMA, "\"num_layers_per_pipeline_stage\":8,\"num_pipeline_microbatches\":8"},
    {DEEPSEEK_4_SLICES, "\"dcn_pipeline_parallelism\":2"},
    {DEEPSEEK_4_SLICES, "\"dcn_fsdp_parallelism\":2"},
    {QWEN, "\"ici_fsdp_transpose_parallelism\":4"},
    {QWEN, "\"ici_fsdp_transpose_parallelism\":8"},
    {LLAMA, "\"use_iota_embed\":false"},
    {LLAMA, "\"use_iota_embed\":true"},
    {GEMMA_LONG, "\"sa_use_fused_bwd_kernel\":false"},
    {QWEN_LONG, "\"dq_reduction_steps\":3"},
};

static void no_pin_makes_a_plan_better(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof shrunk / sizeof *shrunk; i++) {
        double open_s = search_s(shrunk[i].job, ""), pinned_s = search_s(shrunk[i].job, shrunk[i].pins);
        /* a key that gains less than ADV_RANK_KEY_FRAC is not set, and placements are solved up to as much */
        if (open_s > pinned_s * (1 + 2 * ADV_RANK_KEY_FRAC))
            fail_msg("%s: %.4g, with %s %.4g", shrunk[i].job, open_s, shrunk[i].pins, pinned_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_pin_makes_a_plan_better)};
    return run_group(tests);
}
