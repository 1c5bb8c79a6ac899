/* Pins only shrink the space: what a search finds with them, it must not miss without. */
#include "tests/property/search_jobs.h"

#include "engine/cost/estimate.h"
#include "engine/cost/over_vmem.h"
#include "engine/maxtext/changes.h"
#include "engine/rank/rank.h"

/* The ranking's metric of the best plan found; the first in the answer may be a simpler one that is tied. */
static double best_metric(const struct adv_search_result *result)
{
    double best_s = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        best_s = fmin(best_s, adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &result->found[i].estimate));
    return best_s;
}

static double search_s(const char *job, const char *pins)
{
    static struct fixture fixture;
    struct adv_search_result result;
    char text[1024];
    snprintf(text, sizeof text, "%s,\"pins\":{%s}}", job, pins);
    fixture_search(&fixture, text, &result);
    assert_true(result.exhaustive && !result.compromised); /* or the pinned plans may be less sure */
    double best_s = best_metric(&result);
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
        "{\"seq_len\":2048,\"global_batch_sequences\":16},\"search\":{\"fit_probability\":0.5}")
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

/* So near the limit that a finer tiling gives no more room to a plan that keeps nothing, but to others. */
#define LLAMA_TIGHT(probability)                                                                             \
    JOB("llama3.1-8b", "{\"chip\":\"v4\",\"topology\":\"2x2x2\"}",                                           \
        "{\"seq_len\":32768,\"global_batch_sequences\":32},\"search\":{\"fit_probability\":" probability     \
        "}")

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
    {LLAMA_TIGHT("0.97"), "\"num_vocab_tiling\":8"},
    {LLAMA_TIGHT("0.96"), "\"num_vocab_tiling\":8"},
    {LLAMA_TIGHT("0.96"), "\"num_vocab_tiling\":16"},
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

/* remat_policy=custom alone says that tensors are placed one by one, not that none is kept. Beside a tensor
 * it says where all of them are. */
static void custom_alone_leaves_the_tensors_to_the_search(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    const double open_s = search_s(LLAMA, "");
    fixture_search(&fixture, LLAMA ",\"pins\":{\"remat_policy\":\"custom\"}}", &result);
    assert_close(best_metric(&result), open_s, 2 * ADV_RANK_KEY_FRAC);
    for (int i = 0; i < result.found_count; i++)
        assert_int_equal(result.found[i].plan.policy, ADV_POLICY_CUSTOM);
    fixture_close(&fixture);
    fixture_search(&fixture, LLAMA ",\"pins\":{\"remat_policy\":\"custom\",\"context\":\"device\"}}",
                   &result);
    assert_true(result.found_count > 0);
    for (int i = 0; i < result.found_count; i++)
        assert_int_equal(result.found[i].plan.placements[ADV_TENSOR_QUERY_PROJ], ADV_PLACE_REMAT);
    fixture_close(&fixture);
}

#define GEMMA_NARROW                                                                                         \
    JOB("gemma2-9b", "{\"chip\":\"v5e\",\"topology\":\"8x8\"}",                                              \
        "{\"seq_len\":1024,\"global_batch_sequences\":1024}")
#define OSS                                                                                                  \
    JOB("gpt-oss-20b", "{\"chip\":\"v4\",\"topology\":\"4x4x4\"}",                                           \
        "{\"seq_len\":2048,\"global_batch_sequences\":128}")
#define GEMMA_SHARDED                                                                                        \
    JOB("gemma-2b", "{\"chip\":\"v5e\",\"topology\":\"8x8\"}",                                               \
        "{\"seq_len\":131072,\"global_batch_sequences\":8}")
#define OLMO                                                                                                 \
    JOB("olmo3-7b-pt", "{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"}",                                        \
        "{\"seq_len\":2048,\"global_batch_sequences\":25}")
#define LLAMA_7X                                                                                             \
    JOB("llama3.1-8b", "{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\"}",                                        \
        "{\"seq_len\":16384,\"global_batch_sequences\":128}")
#define MIXTRAL                                                                                              \
    JOB("mixtral-8x7b", "{\"chip\":\"v6e\",\"topology\":\"8x16\"}",                                          \
        "{\"seq_len\":2048,\"global_batch_sequences\":128}")
#define OSS_NARROW                                                                                           \
    JOB("gpt-oss-20b", "{\"chip\":\"v5e\",\"topology\":\"8x8\"}",                                            \
        "{\"seq_len\":1024,\"global_batch_sequences\":512}")

/* Some members of the tiles, which other members have to make room for. */
static const struct {
    const char *job, *pins;
} tiled[] = {
    {GEMMA_NARROW, "\"sa_block_kv_compute\":1024"},
    {OSS, "\"sa_block_kv_dkv\":128"},
    {OLMO, "\"sa_block_kv_dkv\":2048"},
    {LLAMA_7X, "\"sa_block_kv_dkv_compute\":2048,\"sa_block_kv_dkv\":4096,\"sa_block_q\":512"},
    {LLAMA_7X, "\"sa_k_layout\":\"HEAD_DIM_MINOR\""},
    {LLAMA_7X, "\"sa_q_layout\":\"SEQ_MINOR\",\"sa_block_q\":1024"},
    {MIXTRAL, "\"wi_tile_drhs_batch_seq\":256,\"wo_tile_fwd_mlp_dim\":2048,\"wi_tile_dlhs_batch_seq\":2048"},
    {OSS_NARROW, "\"wi_tile_fwd_batch_seq\":1024,\"wi_tile_dlhs_mlp_dim\":256"},
    {GEMMA_SHARDED, "\"sa_block_q_dkv\":1024,\"sa_block_kv_dkv\":2048,\"sa_block_kv_dkv_compute\":256"},
};

static void pinned_tiles_stay_and_compile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof tiled / sizeof *tiled; i++) {
        static struct fixture fixture;
        static struct adv_ledger ledger;
        struct adv_search_result result;
        struct adv_over_vmem over;
        char text[1024];
        snprintf(text, sizeof text, "%s,\"pins\":{%s}}", tiled[i].job, tiled[i].pins);
        fixture_search(&fixture, text, &result);
        const struct adv_advise_request *request = fixture.request;
        if (result.found_count == 0) fail_msg("no plan with %s", tiled[i].pins);
        for (int r = 0; r < result.found_count; r++) {
            const struct adv_plan *plan = &result.found[r].plan;
            const struct adv_estimate_input input = {.plan = plan,
                                                     .model = &request->model,
                                                     .cluster = &request->cluster,
                                                     .constants = fixture.constants};
            struct adv_estimate estimate;
            for (int p = 0; p < request->pins_count; p++) {
                struct adv_plan pinned = *plan;
                (void)adv_key_copy(request->pins[p].key, &request->workload.base, &pinned);
                if (!adv_plan_same_family(&pinned, plan))
                    fail_msg("%s is not as pinned in plan %d", request->pins[p].key, r + 1);
            }
            assert_int_equal(adv_estimate_plan(&input, &estimate, &ledger, NULL), ADV_OK);
            if (adv_over_vmem_find(&ledger, &request->cluster.chip, &plan->flags, &over))
                fail_msg("%s: %s", tiled[i].pins, over.detail);
        }
        fixture_close(&fixture);
    }
}

/* MaxText refuses the value together with what each plan is left without. */
static const struct {
    const char *job, *pins, *key;
    enum adv_axis without;
} refused[] = {
    {JOB("qwen3.5-35b-a3b", "{\"chip\":\"v4\",\"topology\":\"4x4x4\",\"slices\":2}",
         "{\"seq_len\":8192,\"global_batch_sequences\":512}"),
     "\"context_parallel_load_balance\":true", "context_parallel_load_balance", ADV_AXIS_CONTEXT},
    {DEEPSEEK, "\"context_parallel_load_balance\":true,\"mtp_num_layers\":1", "context_parallel_load_balance",
     ADV_AXIS_CONTEXT},
    {DEEPSEEK, "\"shard_optimizer_over_data\":true", "shard_optimizer_over_data", ADV_AXIS_FSDP},
};

static void pinned_values_stay_where_another_would_do(void **state)
{
    static struct fixture fixture;
    struct adv_search_result result;
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        snprintf(text, sizeof text, "%s,\"pins\":{%s}}", refused[i].job, refused[i].pins);
        fixture_search(&fixture, text, &result);
        if (result.found_count == 0) fail_msg("no plan with %s", refused[i].pins);
        for (int r = 0; r < result.found_count; r++) {
            struct adv_plan pinned = result.found[r].plan;
            (void)adv_key_copy(refused[i].key, &fixture.request->workload.base, &pinned);
            if (!adv_plan_same_family(&pinned, &result.found[r].plan))
                fail_msg("%s is not as pinned in plan %d", refused[i].key, r + 1);
            assert_int_equal(adv_plan_degree(&pinned, refused[i].without), 1);
        }
        fixture_close(&fixture);
    }
}

/* Experts quantised before they are gathered would be sharded by their number, too. */
static void pinned_2d_sharding_is_the_only_one_of_experts(void **state)
{
    static struct fixture fixture;
    struct adv_search_result result;
    (void)state;
    fixture_search(&fixture,
                   JOB("deepseek3-671b", "{\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"}",
                       "{\"seq_len\":4096,\"per_device_batch_size\":4,\"quantization\":\"fp8_full\","
                       "\"weight_dtype\":\"bfloat16\"}") ",\"pins\":{\"use_2d_fsdp_sharding\":true}}",
                   &result);
    assert_true(result.found_count > 0);
    for (int i = 0; i < result.found_count; i++) {
        assert_true(result.found[i].plan.family.use_2d_fsdp_sharding);
        assert_false(result.found[i].plan.family.shard_exp_on_fsdp);
    }
    fixture_close(&fixture);
}

/* Predicting the token after next takes the sequence in its order. */
static void another_token_is_predicted_over_context_in_order(void **state)
{
    static struct fixture fixture;
    struct adv_search_result result;
    int sharded = 0;
    (void)state;
    fixture_search(&fixture, GEMMA_SHARDED ",\"pins\":{\"mtp_num_layers\":1}}", &result);
    for (int i = 0; i < result.found_count; i++) {
        const struct adv_plan *plan = &result.found[i].plan;
        if (adv_plan_degree(plan, ADV_AXIS_CONTEXT) == 1) continue;
        assert_false(plan->family.cp_load_balance);
        sharded++;
    }
    assert_true(sharded > 0);
    fixture_close(&fixture);
}

/* Tokamax's backward pass is fused whatever the key says: where it is not to be, the kernel is jax's. */
static void a_backward_pass_that_is_not_to_be_fused_is_not(void **state)
{
    static struct fixture fixture;
    struct adv_search_result result;
    (void)state;
    fixture_search(&fixture, LLAMA_7X ",\"pins\":{\"sa_use_fused_bwd_kernel\":false}}", &result);
    assert_true(result.found_count > 0);
    for (int i = 0; i < result.found_count; i++) {
        assert_false(result.found[i].plan.family.use_tokamax_splash);
        assert_false(result.found[i].plan.family.use_fused_bwd);
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_pin_makes_a_plan_better),
                                       cmocka_unit_test(custom_alone_leaves_the_tensors_to_the_search),
                                       cmocka_unit_test(pinned_tiles_stay_and_compile),
                                       cmocka_unit_test(pinned_values_stay_where_another_would_do),
                                       cmocka_unit_test(pinned_2d_sharding_is_the_only_one_of_experts),
                                       cmocka_unit_test(another_token_is_predicted_over_context_in_order),
                                       cmocka_unit_test(a_backward_pass_that_is_not_to_be_fused_is_not)};
    return run_group(tests);
}
