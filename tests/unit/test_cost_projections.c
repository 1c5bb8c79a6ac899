/* The dense matmuls of unlike layers, and which of them a remat policy makes run twice. */
#include "tests/unit/cost_fixture.h"

#include "engine/cost/projections.h"

struct expected {
    double k, n;
    bool needed; /* its output, in the backward pass */
};

static void check_table(const char *model, int kind, const struct expected *expected, int expected_count)
{
    struct adv_model m = catalog_model(model);
    struct adv_projection table[ADV_PROJECTIONS_MAX];
    int count = adv_projections(&m, &m.layers[kind], table);
    for (int i = 0; i < count && i < expected_count; i++) {
        if (table[i].k == expected[i].k && table[i].n == expected[i].n &&
            table[i].needed_in_backward == expected[i].needed)
            continue;
        fail_msg("%s, matmul %d: %g x %g (needed %d), expected %g x %g (%d)", model, i, table[i].k,
                 table[i].n, table[i].needed_in_backward, expected[i].k, expected[i].n, expected[i].needed);
    }
    assert_int_equal(count, expected_count);
}
#define CHECK_TABLE(model, kind, expected)                                                                   \
    check_table(model, kind, expected, (int)(sizeof(expected) / sizeof *(expected)))

static void a_llama_layer_is_seven_matmuls(void **state)
{
    (void)state;
    /* emb 4096, 32 query and 8 key-value heads of 128, feed-forward 14336. Nothing behind wo needs its
     * output. */
    static const struct expected rows[] = {
        {4096, 4096, true},  {4096, 1024, true},  {4096, 1024, true},   {4096, 4096, true},
        {4096, 14336, true}, {4096, 14336, true}, {14336, 4096, false},
    };
    CHECK_TABLE("llama3.1-8b", 0, rows);
}

static void latent_attention_goes_through_its_ranks(void **state)
{
    (void)state;
    /* deepseek3, first (dense) layers: 7168 -> 1536 -> 128 heads x (128 + 64); 7168 -> 512 + 64 rope; 512 ->
     * 128 x (128 + 128); 128 x 128 -> 7168; feed-forward 18432. */
    static const struct expected dense[] = {
        {7168, 1536, true},  {1536, 24576, true}, {7168, 576, true},   {512, 32768, true},
        {16384, 7168, true}, {7168, 18432, true}, {7168, 18432, true}, {18432, 7168, false},
    };
    CHECK_TABLE("deepseek3-671b", 0, dense);
    /* The others: the same attention, a router over 256 experts and one shared expert of 2048. */
    static const struct expected sparse[] = {
        {7168, 1536, true}, {1536, 24576, true}, {7168, 576, true},  {512, 32768, true},  {16384, 7168, true},
        {7168, 256, true},  {7168, 2048, true},  {7168, 2048, true}, {2048, 7168, false},
    };
    CHECK_TABLE("deepseek3-671b", 1, sparse);
}

static void a_norm_behind_the_feed_forward_needs_its_output(void **state)
{
    (void)state;
    /* gemma3-4b: emb 2560, 8 query and 4 key-value heads of 256, feed-forward 10240, norms on both sides of
     * each block. */
    static const struct expected rows[] = {
        {2560, 2048, true},  {2560, 1024, true},  {2560, 1024, true},  {2048, 2560, true},
        {2560, 10240, true}, {2560, 10240, true}, {10240, 2560, true},
    };
    CHECK_TABLE("gemma3-4b", 0, rows);
    CHECK_TABLE("gemma3-4b", 1, rows); /* local and global layers differ in their mask only */
}

static void routed_experts_leave_only_the_router_here(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {4096, 4096, true}, {4096, 1024, true}, {4096, 1024, true}, {4096, 4096, true}, {4096, 8, true},
    };
    CHECK_TABLE("mixtral-8x7b", 0, rows);
}

static void a_delta_net_projects_keys_values_and_gates_at_once(void **state)
{
    (void)state;
    struct adv_model model = catalog_model("qwen3-next-80b-a3b");
    int linear = model.layers[0].attention == ADV_ATTENTION_LINEAR ? 0 : 1;
    /* emb 2048; 16 key heads and 32 value heads of 128: queries and keys 2 x 2048, values and gate 2 x 4096;
     * decay and beta per value head; 4096 -> 2048; router over 512 experts; shared expert of 512. */
    static const struct expected delta[] = {
        {2048, 12288, true}, {2048, 64, true},  {4096, 2048, true}, {2048, 512, true},
        {2048, 512, true},   {2048, 512, true}, {512, 2048, true},
    };
    CHECK_TABLE("qwen3-next-80b-a3b", linear, delta);
    /* Every fourth layer attends: 16 heads of 256 with a gate as wide as the queries, 2 key-value heads. */
    static const struct expected full[] = {
        {2048, 4096, true}, {2048, 4096, true}, {2048, 512, true}, {2048, 512, true}, {4096, 2048, true},
        {2048, 512, true},  {2048, 512, true},  {2048, 512, true}, {512, 2048, true},
    };
    CHECK_TABLE("qwen3-next-80b-a3b", 1 - linear, full);
}

static void the_table_holds_the_parameters_of_the_layer(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3.1-70b",  "deepseek3-671b", "deepseek2-16b",
                                        "gemma3-27b",    "gemma2-9b",      "mixtral-8x7b",
                                        "qwen3-30b-a3b", "gpt3-175b",      "qwen3-custom-30b-a3b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct adv_model model = catalog_model(names[i]);
        for (int kind = 0; kind < model.layer_kinds_count; kind++) {
            const struct adv_layer *layer = &model.layers[kind];
            struct adv_projection table[ADV_PROJECTIONS_MAX];
            int count = adv_projections(&model, layer, table);
            double matrices = 0.0;
            for (int p = 0; p < count; p++) matrices += table[p].k * table[p].n;
            struct adv_layer_params params = adv_model_layer_params(&model, layer);
            /* the rest is biases, norms of queries and keys, and of the latent ranks: vectors */
            assert_close(matrices,
                         params.attention + params.dense_ffn + params.router + params.shared_experts, 1e-3);
        }
    }
}

static void grouped_matmuls_take_what_the_experts_of_a_token_hold(void **state)
{
    (void)state;
    /* the last one's experts are narrower than its embedding */
    static const char *const names[] = {"mixtral-8x7b", "qwen3-30b-a3b", "qwen3-custom-30b-a3b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static struct bench b;
        bench_open(&b, names[i], "v5p", 2, 2, 1);
        (void)bench_layer(&b, 0);
        const struct adv_layer *layer = &b.model.layers[0];
        const double params = adv_model_layer_params(&b.model, layer).routed_experts;
        assert_close(b.account.slots[ADV_TERM_GMM_FWD].flops,
                     2.0 * b.cost.tokens * params * layer->experts_per_token / layer->experts, 1e-9);
    }
}

/* Matmul FLOPs of one pass of kind `kind`, in units of one forward pass. */
static double recomputed(const char *model, int kind, enum adv_policy policy)
{
    static struct bench b;
    bench_open(&b, model, "v5p", 2, 2, 1);
    bench_policy(&b, policy);
    (void)bench_layer(&b, kind);
    double forward = b.account.slots[ADV_TERM_MATMUL_FWD].flops;
    assert_close(b.account.slots[ADV_TERM_MATMUL_BWD].flops, 2.0 * forward, 1e-12);
    return b.account.slots[ADV_TERM_MATMUL_RECOMPUTE].flops / forward;
}

static void each_policy_recomputes_what_it_does_not_name(void **state)
{
    (void)state;
    /* llama3.1-8b, matrices in units of 4096 x 1024: q 4, k 1, v 1, out 4, wi 14 and 14, wo 14: 52. */
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_FULL), 38.0 / 52.0, 1e-12); /* all but the dead wo */
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_SAVE_OUT_PROJ), 34.0 / 52.0, 1e-12);
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_SAVE_QKV_PROJ), 32.0 / 52.0, 1e-12);
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_SAVE_DOT_EXCEPT_MLP), 28.0 / 52.0, 1e-12);
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP), 28.0 / 52.0,
                 1e-12);
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_QKV_PROJ_OFFLOADED), 32.0 / 52.0, 1e-12);
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_MINIMAL), 0.0, 1e-12);
    assert_close(recomputed("llama3.1-8b", 0, ADV_POLICY_MINIMAL_OFFLOADED), 0.0, 1e-12);
    /* gemma3-4b, in units of 2560 x 1024: q 2, k 1, v 1, out 2, wi 10 and 10, wo 10: 36, and wo is needed.
     * Behind norms q and k are always computed again. Global layers are all in the scan. */
    assert_close(recomputed("gemma3-4b", 1, ADV_POLICY_FULL), 1.0, 1e-12);
    assert_close(recomputed("gemma3-4b", 1, ADV_POLICY_SAVE_DOT_EXCEPT_MLPWI), 23.0 / 36.0, 1e-12);
    /* gemma4 norms values, too. In units of 5376 x 4096: q 2, k 1, v 1, out 2, wi and wo 5.25 each. */
    assert_close(recomputed("gemma4-31b", 0, ADV_POLICY_MINIMAL), 4.0 / 21.75, 1e-12);
    /* the gradient of the shared expert's gate needs its output */
    assert_close(recomputed("qwen3-next-80b-a3b", 0, ADV_POLICY_FULL), 1.0, 1e-12);
    /* a delta net's tensors carry no names, so only the shared expert's inputs can be kept. In units of 2048
     * columns of 2048: 12288 + 64 + 4096, router 512, inputs 512 and 512, output 512. */
    assert_close(recomputed("qwen3-next-80b-a3b", 0, ADV_POLICY_MINIMAL), 16960.0 / 18496.0, 1e-12);
}

static void layers_behind_the_scan_recompute_only_beside_the_host(void **state)
{
    (void)state;
    /* 34 layers are five blocks of six and four local ones: of 29 local layers 25 are in the loop */
    const double scanned = 25.0 / 29.0, queries_keys = 3.0 / 36.0;
    assert_close(recomputed("gemma3-4b", 0, ADV_POLICY_FULL), scanned, 1e-12);
    assert_close(recomputed("gemma3-4b", 0, ADV_POLICY_MINIMAL), scanned * queries_keys, 1e-12);
    assert_close(recomputed("gemma3-4b", 0, ADV_POLICY_MINIMAL_OFFLOADED), queries_keys, 1e-12);
    /* 48 layers fill their blocks */
    assert_close(recomputed("gemma3-12b", 0, ADV_POLICY_FULL), 1.0, 1e-12);
}

static void executed_over_model_flops_is_four_thirds_less_the_dead_output(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "llama3.1-8b", "v5p", 2, 2, 1);
    (void)bench_layer(&b, 0);
    double forward =
        b.account.slots[ADV_TERM_MATMUL_FWD].flops + b.account.slots[ADV_TERM_ATTENTION_FWD].flops;
    double dead = 2.0 * 4096.0 * 14336.0 * 4096.0; /* tokens x wo */
    assert_close(executed_flops(&b), 4.0 * forward - dead, 1e-12);
    bench_policy(&b, ADV_POLICY_MINIMAL_WITH_CONTEXT);
    (void)bench_layer(&b, 0);
    assert_close(executed_flops(&b), 3.0 * forward, 1e-12);
    /* the context without its policy: attention alone runs again */
    bench_policy(&b, ADV_POLICY_MINIMAL);
    (void)bench_layer(&b, 0);
    assert_close(executed_flops(&b), 3.0 * forward + b.account.slots[ADV_TERM_ATTENTION_FWD].flops, 1e-12);
}

static void a_latent_pair_is_kept_only_together(void **state)
{
    (void)state;
    struct bench b;
    struct adv_projection table[ADV_PROJECTIONS_MAX];
    bench_open(&b, "deepseek3-671b", "v5p", 4, 4, 4);
    (void)adv_projections(&b.model, &b.model.layers[0], table);
    bench_policy(&b, ADV_POLICY_CUSTOM);
    b.plan.placements[ADV_TENSOR_KEY_PROJ] = ADV_PLACE_DEVICE;
    assert_false(adv_projection_kept(adv_remat_kept(adv_remat_places(&b.plan)),
                                     &table[3])); /* one matmul makes keys and values */
    b.plan.placements[ADV_TENSOR_VALUE_PROJ] = ADV_PLACE_OFFLOAD;
    assert_true(adv_projection_kept(adv_remat_kept(adv_remat_places(&b.plan)), &table[3]));
}

/* The names are those of the norms' outputs, and their derivatives read what was multiplied. */
static void queries_and_keys_with_norms_are_multiplied_for_again(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        bool kept;
    } cases[] = {{"qwen3-4b", false}, {"olmo3-7b", false}, {"qwen2.5-7b", true}, {"gemma-7b", true}};
    static struct bench b;
    struct adv_projection table[ADV_PROJECTIONS_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_open(&b, cases[i].model, "v5p", 4, 4, 4);
        bench_policy(&b, ADV_POLICY_MINIMAL_WITH_CONTEXT);
        (void)adv_projections(&b.model, &b.model.layers[0], table);
        const uint32_t kept = adv_remat_kept(adv_remat_places(&b.plan));
        for (int p = 0; p < 3; p++) { /* queries, keys, values */
            const bool expected = cases[i].kept || table[p].names == UINT32_C(1) << ADV_TENSOR_VALUE_PROJ;
            if (adv_projection_kept(kept, &table[p]) != expected)
                fail_msg("%s: product %d is %s", cases[i].model, p, expected ? "lost" : "kept");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_llama_layer_is_seven_matmuls),
        cmocka_unit_test(latent_attention_goes_through_its_ranks),
        cmocka_unit_test(a_norm_behind_the_feed_forward_needs_its_output),
        cmocka_unit_test(routed_experts_leave_only_the_router_here),
        cmocka_unit_test(a_delta_net_projects_keys_values_and_gates_at_once),
        cmocka_unit_test(the_table_holds_the_parameters_of_the_layer),
        cmocka_unit_test(grouped_matmuls_take_what_the_experts_of_a_token_hold),
        cmocka_unit_test(each_policy_recomputes_what_it_does_not_name),
        cmocka_unit_test(layers_behind_the_scan_recompute_only_beside_the_host),
        cmocka_unit_test(executed_over_model_flops_is_four_thirds_less_the_dead_output),
        cmocka_unit_test(a_latent_pair_is_kept_only_together),
        cmocka_unit_test(queries_and_keys_with_norms_are_multiplied_for_again),
    };
    return run_group(tests);
}
