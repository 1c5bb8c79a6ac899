#include "tests/unit/check.h"

#include "tests/unit/decode_fixture.h"

/* One configuration of llama3.1-8b on 64 devices (or of `model`), and the rule it must break. */
static const struct {
    const char *rule, *model, *config, *pointer;
} illegal[] = {
    {"ici-product", NULL, "\"ici_fsdp_parallelism\":16,\"ici_tensor_parallelism\":2",
     "/config/ici_fsdp_parallelism"},
    {"ici-product", NULL, "\"ici_tensor_parallelism\":3", "/config/ici_fsdp_parallelism"},
    {"dcn-product", NULL, "\"dcn_data_parallelism\":2", "/config/dcn_data_parallelism"},
    {"inference-axis", NULL, "\"ici_context_autoregressive_parallelism\":2",
     "/config/ici_context_autoregressive_parallelism"},
    {"custom-mesh", NULL, "\"custom_mesh\":\"hybrid_ring_64x4\"", "/config/custom_mesh"},
    {"batch-by-shards", NULL, "\"per_device_batch_size\":0.5", "/config/per_device_batch_size"},
    {"batch-by-shards", NULL, "\"per_device_batch_size\":1.5", "/config/per_device_batch_size"},
    {"vocab-tiling", NULL, "\"num_vocab_tiling\":3", "/config/num_vocab_tiling"},
    {"heads-by-tensor", NULL, "\"ici_tensor_parallelism\":16", "/config/ici_tensor_parallelism"},
    {"latent-ranks-by-shards", "deepseek3-671b", "\"ici_expert_parallelism\":16,\"dcn_fsdp_parallelism\":16",
     "/config/ici_fsdp_parallelism"},
    {"learned-positions", "gpt3-175b", "\"max_target_length\":4194304", "/config/max_target_length"},
    {"experts-by-shards", "mixtral-8x7b", "\"ici_expert_parallelism\":16", "/config/ici_expert_parallelism"},
    {"expert-axis-unused", "mixtral-8x7b", "\"ici_expert_parallelism\":8,\"shard_exp_on_fsdp\":true",
     "/config/shard_exp_on_fsdp"},
    {"one-expert-sharding", "mixtral-8x7b", "\"shard_exp_on_fsdp\":true,\"use_2d_fsdp_sharding\":true",
     "/config/shard_exp_on_fsdp"},
    {"no-dropping", "gpt-oss-20b", "\"capacity_factor\":1.25,\"sparse_matmul\":false",
     "/config/capacity_factor"},
    {"scan-cycle", "qwen3-vl-4b", "\"scan_layers\":true", "/config/scan_layers"},
    {"ici-product", "deepseek3-671b-batchsplit",
     "\"ici_fsdp_parallelism\":16,\"ici_fsdp_transpose_parallelism\":4", "/config/ici_fsdp_parallelism"},
    {"scan-cycle", "gemma4-e2b", "\"scan_layers\":true", "/config/scan_layers"},
    {"vocab-tiling-with-sinks", "gpt-oss-20b", "\"num_vocab_tiling\":2", "/config/num_vocab_tiling"},
    {"pipeline-cycle", "gemma3-12b", "\"ici_pipeline_parallelism\":2", "/config/ici_pipeline_parallelism"},
    {"pipeline-cycle", "gemma4-31b", "\"ici_pipeline_parallelism\":4", "/config/ici_pipeline_parallelism"},
    {"pipeline-cycle", "gemma4-e4b", "\"ici_pipeline_parallelism\":2,\"scan_layers\":false",
     "/config/ici_pipeline_parallelism"},
    {"pipeline-experts", "mixtral-8x7b", "\"ici_pipeline_parallelism\":2,\"num_layers_per_pipeline_stage\":8",
     "/config/num_layers_per_pipeline_stage"},
    {"pipeline-routed-bias", "kimi-k2-1t",
     "\"ici_pipeline_parallelism\":4,\"num_layers_per_pipeline_stage\":15",
     "/config/ici_pipeline_parallelism"},
    {"scan-cycle", "qwen3-omni-30b-a3b", "\"scan_layers\":true", "/config/scan_layers"},
    {"pipeline-positions", "qwen3-vl-30b-a3b",
     "\"ici_pipeline_parallelism\":2,\"num_layers_per_pipeline_stage\":24,\"scan_layers\":false",
     "/config/ici_pipeline_parallelism"},
    {"pipeline-explicit-sharding", NULL,
     "\"ici_pipeline_parallelism\":2,\"num_layers_per_pipeline_stage\":16,\"shard_mode\":\"explicit\"",
     "/config/shard_mode"},
    {"qk-clip-kernel", "deepseek3-671b", "\"use_qk_clip\":true", "/config/use_qk_clip"},
    {"qk-clip-kernel", "deepseek3-671b",
     "\"use_qk_clip\":true,\"attention\":\"flash\",\"use_jax_splash\":true", "/config/use_qk_clip"},
    {"qk-clip-kernel", "deepseek3-671b",
     "\"use_qk_clip\":true,\"use_tokamax_splash\":true,\"packing\":false,"
     "\"ici_context_parallelism\":2,\"context_parallel_strategy\":\"ring\"",
     "/config/use_qk_clip"},
    {"batch-split-mesh", "deepseek3-671b-batchsplit", "\"ici_fsdp_parallelism\":64",
     "/config/ici_expert_parallelism"},
    {"batch-split-context", "deepseek3-671b-batchsplit",
     "\"ici_expert_parallelism\":4,\"ici_context_parallelism\":2,\"per_device_batch_size\":2",
     "/config/ici_context_parallelism"},
    {"batch-split-halves", "deepseek3-671b-batchsplit",
     "\"ici_expert_parallelism\":4,\"per_device_batch_size\":3", "/config/per_device_batch_size"},
    {"pipeline", NULL, "\"ici_pipeline_parallelism\":2,\"num_layers_per_pipeline_stage\":3",
     "/config/pipeline_parallel_layers"},
    {"pipeline", NULL, "\"ici_pipeline_parallelism\":2,\"num_pipeline_microbatches\":3",
     "/config/num_pipeline_microbatches"},
    {"context-load-balance", NULL, "\"ici_context_parallelism\":4,\"max_target_length\":8196",
     "/config/max_target_length"},
    {"context-ring", NULL, "\"context_parallel_strategy\":\"ring\"", "/config/context_parallel_strategy"},
    {"context-ring", NULL, "\"context_parallel_strategy\":\"ring\",\"ici_context_parallelism\":2",
     "/config/context_parallel_strategy"},
    {"context-ring", "deepseek2-16b",
     "\"context_parallel_strategy\":\"ring\",\"ici_context_parallelism\":2,\"use_tokamax_splash\":true",
     "/config/packing"},
    {"context-ulysses", NULL, "\"context_parallel_strategy\":\"ulysses\",\"ici_context_parallelism\":2",
     "/config/context_parallel_load_balance"},
    {"context-ulysses", NULL,
     "\"context_parallel_strategy\":\"ulysses\",\"ici_context_parallelism\":2,"
     "\"context_parallel_load_balance\":false",
     "/config/context_parallel_strategy"},
    {"context-ulysses", NULL,
     "\"context_parallel_strategy\":\"ulysses\",\"use_tokamax_splash\":true,"
     "\"context_parallel_load_balance\":false",
     "/config/context_parallel_strategy"},
    {"context-ulysses", "deepseek2-16b",
     "\"context_parallel_strategy\":\"ulysses\",\"ici_context_parallelism\":2,\"use_tokamax_splash\":true,"
     "\"context_parallel_load_balance\":false",
     "/config/context_parallel_strategy"},
    {"context-usp", NULL, "\"ici_context_usp_ulysses_parallelism\":2",
     "/config/ici_context_usp_ulysses_parallelism"},
    {"context-usp", NULL,
     "\"context_parallel_strategy\":\"usp\",\"ici_context_parallelism\":2,"
     "\"ici_context_usp_ulysses_parallelism\":2",
     "/config/context_parallel_strategy"},
    {"context-usp", "deepseek2-16b",
     "\"context_parallel_strategy\":\"usp\",\"ici_context_parallelism\":2,\"use_tokamax_splash\":true,"
     "\"ici_context_usp_ulysses_parallelism\":2",
     "/config/context_parallel_strategy"},
    {"block-q", NULL, "\"sa_block_q\":2048,\"ici_context_parallelism\":8", "/config/sa_block_q"},
    {"block-kv", NULL, "\"sa_block_kv\":3072,\"sa_block_kv_compute\":512", "/config/sa_block_kv"},
    {"block-compute", NULL, "\"sa_block_kv_compute\":192", "/config/sa_block_kv_compute"},
    {"block-q", NULL, "\"sa_block_q_dq\":64", "/config/sa_block_q_dq"},
    {"block-q", "qwen3-30b-a3b",
     "\"sa_block_q\":2048,\"custom_mesh_and_rule\":\"ep-as-cp\",\"ici_expert_parallelism\":8",
     "/config/sa_block_q"},
    {"embedding-by-shards", "gpt-oss-20b",
     "\"custom_mesh_and_rule\":\"cp-as-ep\",\"ici_expert_parallelism\":16,\"dcn_fsdp_parallelism\":16",
     "/config/ici_fsdp_parallelism"},
    {"expert-tile-lanes", "mixtral-8x7b", "\"wi_tile_fwd_embed_dim\":1000", "/config/wi_tile_fwd_embed_dim"},
    {"expert-tile-lanes", "mixtral-8x7b", "\"wo_tile_drhs_mlp_dim\":3000", "/config/wo_tile_drhs_mlp_dim"},
    {"expert-tile-rows", "mixtral-8x7b", "\"wi_tile_dlhs_batch_seq\":384", "/config/wi_tile_dlhs_batch_seq"},
    {"dq-reduction-steps", NULL, "\"dq_reduction_steps\":2", "/config/dq_reduction_steps"},
    {"sparse-attention-kernel", "deepseek3.2-671b", "\"attention\":\"flash\"", "/config/use_tokamax_splash"},
    {"fp8-full-needs-qwix", NULL, "\"quantization\":\"fp8_full\"", "/config/use_qwix_quantization"},
    {"fp8-with-accumulation", NULL, "\"quantization\":\"fp8\",\"gradient_accumulation_steps\":2",
     "/config/gradient_accumulation_steps"},
    {"vision-models", NULL, "\"use_multimodal\":true", "/config/use_multimodal"},
    {"muon-decoder", "mixtral-8x7b", "\"opt_type\":\"muon\"", "/config/opt_type"},
};

static adv_code decode_case(const char *model, const char *config)
{
    char text[2048];
    bool multislice = strstr(config, "dcn_fsdp") != NULL;
    (void)snprintf(text, sizeof text,
                   "{\"model\":\"%s\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x4x4\",\"slices\":%d},"
                   "\"config\":{%s%s%s}}",
                   model ? model : "llama3.1-8b", multislice ? 16 : 1, config,
                   strstr(config, "per_device_batch_size") ? "" : ",\"per_device_batch_size\":8",
                   strstr(config, "max_target_length") ? "" : ",\"max_target_length\":8192");
    return decode(text);
}

/* The first rule that the decoded plan breaks, NULL for none. */
static void expect_broken(const char *rule)
{
    const char *broken = adv_plan_broken_rule(&request.plan, &request.model, &request.cluster);
    assert_int_equal(broken != NULL, rule != NULL);
    if (broken) assert_string_equal(broken, rule);
}

static void each_rule_names_itself_its_key_and_a_remedy(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++) {
        adv_code code = decode_case(illegal[i].model, illegal[i].config);
        const struct adv_finding *finding = must_find(&err, illegal[i].rule);
        assert_int_not_equal(code, ADV_OK);
        assert_string_equal(finding->pointer, illegal[i].pointer);
        assert_true(*finding->hint);
    }
}

static void the_fast_check_names_the_first_rule_of_the_full_one(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof illegal / sizeof *illegal; i++) {
        (void)decode_case(illegal[i].model, illegal[i].config);
        const char *broken = adv_plan_broken_rule(&request.plan, &request.model, &request.cluster);
        assert_non_null(broken);
        assert_non_null(find_rule(&err, broken));
    }
}

static void the_axes_product_is_explained_with_numbers(void **state)
{
    (void)state;
    assert_int_equal(decode_config("\"ici_fsdp_parallelism\":16,\"ici_tensor_parallelism\":2"),
                     ADV_E_ILLEGAL);
    const struct adv_finding *finding = must_find(&err, "ici-product");
    assert_string_equal(finding->detail, "64 devices per slice != fsdp 16 x tensor 2 = 32");
    assert_string_equal(finding->hint, "ici_fsdp_parallelism would have to be 32");
}

/* As MaxText 0.2.5 said of gemma2-9b, whose window is 4096, of llama4 with its chunks of 8192, and of
 * gemma3-4b, whose window of 1024 is masked in 5 ways by tiles of 4096 keys. */
static void context_shards_divide_the_partial_blocks_of_tokamax_masks(void **state)
{
    (void)state;
    static const struct {
        const char *model, *config;
        bool refused;
    } cases[] = {
        {"llama4-17b-16e", "\"ici_context_parallelism\":2,\"max_target_length\":16384", true},
        {"gemma2-9b", "\"ici_context_parallelism\":2,\"max_target_length\":4096", true},
        {"gemma2-9b", "\"ici_context_parallelism\":2", false},
        {"gemma2-9b", "\"ici_context_parallelism\":4", true},
        {"gemma2-9b", "\"ici_context_parallelism\":4,\"use_tokamax_splash\":false", false},
        {"gemma3-4b",
         "\"ici_context_parallelism\":2,\"local_sa_block_q_dkv\":1024,\"local_sa_block_kv_dkv\":4096", true},
        {"gemma3-4b",
         "\"ici_context_parallelism\":2,\"sa_block_q_dkv\":1024,\"sa_block_kv_dkv\":4096,"
         "\"local_sa_block_q_dkv\":1024,\"local_sa_block_kv_dkv\":1024",
         false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[256];
        const char *kernel = strstr(cases[i].config, "tokamax") ? "" : ",\"use_tokamax_splash\":true";
        (void)snprintf(config, sizeof config, "%s%s", cases[i].config, kernel);
        (void)decode_case(cases[i].model, config);
        expect_broken(cases[i].refused ? "local-masks-by-context" : NULL);
    }
}

/* As libtpu 0.0.50.1 took and aborted on compiled steps of 6 to 40 heads on v4. */
static void padding_between_rows_keeps_the_context_of_one_sequence_off_the_host(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *config;
        bool refused;
    } cases[] = {
        {"v4", "\"ici_tensor_parallelism\":2,\"per_device_batch_size\":0.5", true},
        {"v4", "\"ici_tensor_parallelism\":2,\"per_device_batch_size\":1", false},
        {"v4", "\"per_device_batch_size\":1", false}, /* 40 heads */
        {"v4", "\"ici_tensor_parallelism\":2,\"per_device_batch_size\":0.5,\"scan_layers\":false", false},
        {"v4", "\"ici_tensor_parallelism\":2,\"ici_context_parallelism\":2,\"per_device_batch_size\":0.25",
         true},
        {"v5p", "\"ici_tensor_parallelism\":2,\"per_device_batch_size\":0.5", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"qwen3-14b\",\"cluster\":{\"chip\":\"%s\",\"topology\":\"2x2x4\"},"
                       "\"config\":{%s,\"remat_policy\":\"custom\",\"context\":\"offload\"}}",
                       cases[i].chip, cases[i].config);
        assert_int_equal(decode(text), ADV_OK);
        expect_broken(cases[i].refused ? "strided-host-copy" : NULL);
    }
}

/* As libtpu 0.0.50.1 took and refused on compiled steps of 8 layers on v5p; also on v4, v6e and tpu7x. */
static void layers_that_loop_inside_a_block_keep_their_feed_forward_off_the_host(void **state)
{
    (void)state;
    static const struct {
        const char *model, *config;
        bool refused;
    } cases[] = {{"qwen3-next-80b-a3b", "\"moe_mlpwi_0\":\"offload\"", true},
                 {"qwen3-next-80b-a3b", "\"moe_mlpwo\":\"offload\"", true},
                 {"qwen3-next-80b-a3b", "\"mlpwi_0\":\"offload\"", true},
                 {"qwen3-next-80b-a3b", "\"moe_mlpwi_0\":\"device\"", false},
                 {"qwen3-next-80b-a3b", "\"out_proj\":\"offload\"", false},
                 {"qwen3-next-80b-a3b", "\"query_proj\":\"offload\"", false},
                 {"qwen3-next-80b-a3b", "\"decoder_layer_input\":\"offload\"", false},
                 {"gemma4-26b", "\"moe_mlpwi_0\":\"offload\"", false},
                 {"qwen3.5-35b-a3b", "\"moe_mlpwi_0\":\"offload\"", false}}; /* on v6e and v4 */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x4\"},"
                       "\"config\":{\"remat_policy\":\"custom\",%s}}",
                       cases[i].model, cases[i].config);
        assert_int_equal(decode(text), ADV_OK);
        expect_broken(cases[i].refused ? "nested-host-copy" : NULL);
    }
}

static void all_violations_are_reported_at_once(void **state)
{
    (void)state;
    assert_int_not_equal(
        decode_config("\"ici_fsdp_parallelism\":2,\"ici_tensor_parallelism\":16,\"dq_reduction_steps\":1,"
                      "\"quantization\":\"fp8_full\",\"sa_block_kv_compute\":100"),
        ADV_OK);
    static const char *const rules[] = {"ici-product", "heads-by-tensor", "dq-reduction-steps",
                                        "fp8-full-needs-qwix", "block-compute"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) assert_non_null(find_rule(&err, rules[i]));
}

/* Each key that does not fit is named with the nearest values that do; */
static void every_tile_key_names_its_nearest_legal_values(void **state)
{
    (void)state;
    static const struct {
        const char *pointer, *hint;
    } expected[] = {
        {"/config/sa_block_q", "512 or 1024, a divisor of 8192"},
        {"/config/sa_block_q_dkv", "2048 or 4096, a divisor of 8192"},
        {"/config/sa_block_kv", "2048 or 4096, a divisor of 8192"},
        {"/config/sa_block_kv_compute", "128, once sa_block_kv is a multiple of it"},
        {"/config/wi_tile_fwd_embed_dim", "896 or 1024, or 4096, the whole"},
        {"/config/wo_tile_fwd_mlp_dim", "2944 or 3072, or 14336, the whole"},
        {"/config/wo_tile_drhs_batch_seq", "256 or 512"},
    };
    (void)decode_case("mixtral-8x7b", "\"attention\":\"flash\",\"sa_block_q\":1000,\"sa_block_q_dkv\":3000,"
                                      "\"sa_block_kv\":3000,\"sa_block_kv_compute\":100,"
                                      "\"wi_tile_fwd_embed_dim\":1000,\"wo_tile_fwd_mlp_dim\":3000,"
                                      "\"wo_tile_drhs_batch_seq\":384");
    assert_int_equal(err.count, sizeof expected / sizeof *expected);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct adv_finding *finding = find(&err, expected[i].pointer);
        assert_non_null(finding);
        assert_string_equal(finding->hint, expected[i].hint);
    }
}

/* Tiles that tokamax ignores, that the axis clamps or that only leave a tail do not stop a plan. */
/* No block helps a sequence that 128 does not divide, so none is named. */
static void a_sequence_without_blocks_is_told_the_lengths_that_have_them(void **state)
{
    static const char blocks[] =
        ",\"sa_block_q\":4097,\"sa_block_q_dkv\":4097,\"sa_block_q_dq\":4097,\"sa_block_kv\":4097,"
        "\"sa_block_kv_dkv\":4097,\"sa_block_kv_dq\":4097";
    static const char *const configs[] = {"", blocks, ",\"ici_context_parallelism\":2"};
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        char config[512];
        (void)snprintf(config, sizeof config, "\"max_target_length\":4097%s", configs[i]);
        (void)decode_case(NULL, config);
        int told = 0;
        for (int f = 0; f < err.count; f++) {
            if (!strstr(err.findings[f].pointer, "_block_")) continue;
            assert_non_null(strstr(err.findings[f].hint, "max_target_length=4096 or "));
            told++;
        }
        assert_true(told > 0);
    }
    assert_int_equal(decode_case(NULL, "\"max_target_length\":4096"), ADV_OK);
}

/* MaxText 0.2.5 puts what fills no whole block of qwen3-next into a shorter one behind the scan. */
static void the_rest_of_a_scan_is_dropped_where_there_is_no_block_for_it(void **state)
{
    static const char *const odd[] = {"qwen3-next-80b-a3b", "olmo3-7b"};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x2x4\"},\"config\":{"
                       "\"override_model_config\":true,\"base_num_decoder_layers\":10}}",
                       odd[i]);
        (void)decode(text);
        expect_broken(i == 0 ? NULL : "scan-cycle");
    }
}

static void tiles_that_run_are_not_refused(void **state)
{
    (void)state;
    assert_ok(decode_case("mixtral-8x7b", "\"wi_tile_fwd_embed_dim\":1000,\"use_tokamax_gmm\":true"));
    assert_ok(decode_case("mixtral-8x7b", "\"wi_tile_fwd_mlp_dim\":99999,\"wi_tile_fwd_embed_dim\":9999"));
    assert_int_equal(warnings.count, 0);
    assert_ok(decode_case("deepseek2-16b", "\"ici_expert_parallelism\":1"));
    const struct adv_finding *finding = must_find(&warnings, "expert-tile-tails");
    assert_string_equal(finding->pointer, "/config/wi_tile_fwd_mlp_dim");
    assert_non_null(strstr(finding->detail, "1024 (and 5 more tile keys) does not divide 1408"));
    assert_null(adv_plan_broken_rule(&request.plan, &request.model, &request.cluster));
}

static void fractional_batches_are_legal_when_context_shards_fill_up(void **state)
{
    (void)state;
    assert_ok(decode_case(NULL, "\"per_device_batch_size\":0.125,\"ici_context_parallelism\":8"));
}

static void what_maxtext_only_refuses_today_is_predicted_with_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *model, *config; /* no rule: MaxText takes it */
    } cases[] = {
        {"expert-options-without-experts-axis", "mixtral-8x7b", "\"use_random_routing\":true"},
        {"optimizer-over-data", NULL, "\"shard_optimizer_over_data\":true,\"ici_data_parallelism\":4"},
        {NULL, NULL,
         "\"shard_optimizer_over_data\":true,\"ici_data_parallelism\":64,\"ici_fsdp_parallelism\":1"},
        {"predicted-tokens-in-order", NULL, "\"mtp_num_layers\":1,\"ici_context_parallelism\":2"},
        {"predicted-tokens-in-order", NULL,
         "\"mtp_num_layers\":2,\"ici_context_parallelism\":2,\"context_parallel_load_balance\":false"},
        {NULL, NULL,
         "\"mtp_num_layers\":1,\"ici_context_parallelism\":2,\"context_parallel_load_balance\":false"},
        {NULL, NULL, "\"mtp_num_layers\":1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(decode_case(cases[i].model, cases[i].config));
        expect_broken(cases[i].rule);
        if (cases[i].rule) assert_int_equal(must_find(&warnings, cases[i].rule)->code, ADV_E_ILLEGAL);
    }
}

static void what_only_wastes_is_a_warning(void **state)
{
    (void)state;
    assert_ok(decode_case("mixtral-8x7b", "\"capacity_factor\":1.25"));
    assert_non_null(find_rule(&warnings, "capacity-factor-ignored"));
    assert_null(adv_plan_broken_rule(&request.plan, &request.model, &request.cluster));
}

/* MaxText 0.2.5 finds the weights to clip by their names, and queries without a low rank have another. */
static void qk_clip_says_where_it_leaves_queries_alone(void **state)
{
    (void)state;
    static const char *const clip = "\"use_qk_clip\":true,\"use_tokamax_splash\":true";
    assert_ok(decode_case("deepseek2-16b", clip));
    assert_string_equal(must_find(&warnings, "qk-clip-queries")->pointer, "/config/use_qk_clip");
    assert_ok(decode_case("deepseek2-16b", "\"use_qk_clip\":true,\"attention\":\"dot_product\""));
    assert_ok(decode_case("deepseek3-671b", clip));
    assert_null(find_rule(&warnings, "qk-clip-queries"));
}

static void a_pipeline_leaves_sharding_to_xla(void **state)
{
    (void)state;
    assert_ok(decode_config("\"shard_mode\":\"explicit\""));
    assert_ok(decode_config(
        "\"shard_mode\":\"auto\",\"ici_pipeline_parallelism\":2,\"num_layers_per_pipeline_stage\":16"));
    assert_int_equal(decode_case(NULL, "\"shard_mode\":\"explicit\",\"dcn_fsdp_parallelism\":8,"
                                       "\"dcn_pipeline_parallelism\":2"),
                     ADV_E_ILLEGAL);
    assert_string_equal(must_find(&err, "pipeline-explicit-sharding")->hint,
                        "set it to auto, or use no pipeline");
}

static void a_device_order_by_hand_needs_its_two_degrees_and_split_axes(void **state)
{
    (void)state;
    static const char *const format =
        "{\"model\":\"mixtral-8x22b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"16x16\"},\"config\":{"
        "\"per_device_batch_size\":8,\"custom_mesh\":\"hybrid_ring_64x4\",\"ici_fsdp_parallelism\":-1,"
        "\"ici_expert_parallelism\":%d%s}}";
    char text[512];
    (void)snprintf(text, sizeof text, format, 4, ",\"allow_split_physical_axes\":true");
    assert_ok(decode(text));
    assert_int_equal(warnings.count, 0);
    (void)snprintf(text, sizeof text, format, 4, "");
    assert_ok(decode(text));
    assert_string_equal(must_find(&warnings, "custom-mesh-unused")->pointer,
                        "/config/allow_split_physical_axes");
    (void)snprintf(text, sizeof text, format, 8, ",\"allow_split_physical_axes\":true");
    assert_int_equal(decode(text), ADV_E_ILLEGAL);
    assert_string_equal(must_find(&err, "custom-mesh")->hint, "one axis of 64 and one of 4, the others 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_names_itself_its_key_and_a_remedy),
        cmocka_unit_test(the_fast_check_names_the_first_rule_of_the_full_one),
        cmocka_unit_test(the_axes_product_is_explained_with_numbers),
        cmocka_unit_test(context_shards_divide_the_partial_blocks_of_tokamax_masks),
        cmocka_unit_test(padding_between_rows_keeps_the_context_of_one_sequence_off_the_host),
        cmocka_unit_test(layers_that_loop_inside_a_block_keep_their_feed_forward_off_the_host),
        cmocka_unit_test(all_violations_are_reported_at_once),
        cmocka_unit_test(every_tile_key_names_its_nearest_legal_values),
        cmocka_unit_test(a_sequence_without_blocks_is_told_the_lengths_that_have_them),
        cmocka_unit_test(the_rest_of_a_scan_is_dropped_where_there_is_no_block_for_it),
        cmocka_unit_test(tiles_that_run_are_not_refused),
        cmocka_unit_test(fractional_batches_are_legal_when_context_shards_fill_up),
        cmocka_unit_test(what_maxtext_only_refuses_today_is_predicted_with_a_warning),
        cmocka_unit_test(what_only_wastes_is_a_warning),
        cmocka_unit_test(qk_clip_says_where_it_leaves_queries_alone),
        cmocka_unit_test(a_pipeline_leaves_sharding_to_xla),
        cmocka_unit_test(a_device_order_by_hand_needs_its_two_degrees_and_split_axes),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
