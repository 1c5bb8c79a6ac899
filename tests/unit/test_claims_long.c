/* Statements about sequences of 131,072 tokens, attention kernels and whole recipes, put to the engine. */
#include "tests/unit/claims_fixture.h"

#define CUBE "\"chip\":\"tpu7x\",\"topology\":\"4x4x4\""
#define CONTEXT(degree, fsdp, batch)                                                                         \
    "\"ici_context_parallelism\":" degree ",\"ici_fsdp_parallelism\":" fsdp                                  \
    ",\"per_device_batch_size\":" batch ","

/* ---- recipes, as published ---- */

static void recipes_take_their_published_time(void **state)
{
    (void)state;
    static const struct {
        const char *id;
        double step_time_s;
    } rows[] = {
        {"v7x-llama3.1-70b-8k-bf16-64c-2025-12-18", 12.20},
        {"v7x-llama3.1-70b-128k-bf16-256c-2026-04-21", 34.02},
        {"v7x-llama3.1-405b-8k-bf16-256c-2026-04-20", 98.34},
        {"v7x-dsv3-671b-4k-bf16-128c-2025-12-18", 27.02},
        {"v7x-gpt-oss-120b-8k-bf16-64c-2025-12-18", 17.1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct adv_estimate estimate = published(rows[i].id, NULL);
        assert_close(estimate.step_time_s, rows[i].step_time_s, 0.10);
        assert_int_not_equal(estimate.fit, ADV_FIT_NO);
    }
    assert_within(published("v7x-llama3.1-70b-8k-bf16-64c-2025-12-18", NULL).mfu_frac, 0.483, 0.563);
    assert_within(published("v7x-llama3.1-70b-128k-bf16-256c-2026-04-21", NULL).mfu_frac, 0.359, 0.419);
}

/* 64B on 256 v5e: published as 59.9 % with attention counted over the full square. */
static void v5e_utilisation_is_the_published_one_in_its_own_convention(void **state)
{
    (void)state;
    struct adv_estimate estimate = published("v5e-maxtext-64b-2k-256c", NULL);
    assert_within(estimate.mfu_frac, 0.559, 0.639);
    request.flops_convention = ADV_FLOPS_CAUSAL_HALF;
    assert_true(estimate_request().mfu_frac < estimate.mfu_frac);
}

static void times_of_all_parts_add_up(void **state)
{
    (void)state;
    struct adv_estimate estimate = published("v7x-llama3.1-70b-128k-bf16-256c-2026-04-21", NULL);
    double sum_s = 0.0;
    for (int r = 0; r < ADV_RES_COUNT; r++) sum_s += exposed_s((enum adv_resource)r);
    assert_close(sum_s, estimate.step_time_s, 1e-9);
}

/* ---- 128k ---- */

/* Claimed: the largest batch per device that fits is 0.25, and most configurations of 128k need context
 * shards. A 14B model on 64 chips keeps one whole sequence a device under full remat (50 GiB of layer inputs,
 * 22 of one layer); 0.5 once a projection is kept, 0.25 with attention and its projections, 0.125 with
 * everything. The claimed number is that of a plan which keeps attention. */
static void the_largest_batch_at_128k_depends_on_what_is_kept(void **state)
{
    (void)state;
    static const struct {
        const char *policy;
        double largest;
    } rows[] = {{"full", 1.0},
                {"save_qkv_proj", 0.5},
                {"save_dot_with_context_except_mlp", 0.25},
                {"minimal_with_context", 0.125}};
    static const struct {
        const char *config;
        double batch;
    } batches[] = {{CONTEXT("1", "128", "1"), 1.0},
                   {CONTEXT("2", "64", "0.5"), 0.5},
                   {CONTEXT("4", "32", "0.25"), 0.25},
                   {CONTEXT("8", "16", "0.125"), 0.125}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double largest = 0.0;
        for (size_t b = 0; b < sizeof batches / sizeof *batches; b++) {
            char config[1024];
            (void)snprintf(config, sizeof config, "%s\"remat_policy\":\"%s\"," AT_128K TUNED,
                           batches[b].config, rows[i].policy);
            if (claim("qwen3-14b", CUBE, config, "").fit != ADV_FIT_NO && batches[b].batch > largest)
                largest = batches[b].batch;
        }
        if (largest != rows[i].largest)
            fail_msg("%s: %g sequences a device, expected %g", rows[i].policy, largest, rows[i].largest);
    }
}

/* 70B is the model for which the claim holds outright; saved layer inputs alone are 160 GiB. */
static void a_70b_model_needs_context_shards_at_128k(void **state)
{
    (void)state;
    const char *slice = "\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"";
    struct adv_estimate alone =
        claim("llama3.1-70b", slice, "\"per_device_batch_size\":1," AT_128K TUNED, "");
    assert_int_equal(alone.fit, ADV_FIT_NO);
    const struct adv_memory_part *largest = &claim_ledger.memory[0];
    for (int i = 1; i < claim_ledger.memory_count; i++)
        if (claim_ledger.memory[i].bytes_per_device > largest->bytes_per_device)
            largest = &claim_ledger.memory[i];
    assert_string_equal(largest->name, "saved_activations");
    assert_close(largest->bytes_per_device, 80.0 * 2 * 8192 * 131072, 1e-12);
    assert_int_equal(claim("llama3.1-70b", slice, CONTEXT("8", "64", "0.125") AT_128K TUNED, "").fit,
                     ADV_FIT_FITS);
}

/* A batch of 0.25 needs context x tensor shards of at least 4. */
static void a_quarter_of_a_sequence_needs_four_shards_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *axes;
        bool legal;
    } rows[] = {
        {"\"ici_context_parallelism\":2,\"ici_fsdp_parallelism\":64", false},
        {"\"ici_tensor_parallelism\":2,\"ici_fsdp_parallelism\":64", false},
        {"\"ici_context_parallelism\":4,\"ici_fsdp_parallelism\":32", true},
        {"\"ici_context_parallelism\":2,\"ici_tensor_parallelism\":2,\"ici_fsdp_parallelism\":32", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char config[1024], text[8192];
        (void)snprintf(config, sizeof config, "%s,\"per_device_batch_size\":0.25," AT_128K TUNED,
                       rows[i].axes);
        claim_text(text, "qwen3-14b", CUBE, config, "");
        adv_code code = decode(text);
        assert_int_equal(code, rows[i].legal ? ADV_OK : ADV_E_ILLEGAL);
        if (!rows[i].legal) assert_non_null(find(&err, "/config/per_device_batch_size"));
    }
}

/* The published mesh FSDP 16 x TP 2 x CP 2 is 64 devices: half of a 4x4x4. */
static void the_claimed_mesh_fills_half_the_slice_it_names(void **state)
{
    (void)state;
    char text[8192];
#define MESH                                                                                                 \
    "\"ici_fsdp_parallelism\":16,\"ici_tensor_parallelism\":2,\"ici_context_parallelism\":2,\"per_device_"   \
    "batch_size\":0.25," AT_128K TUNED
    claim_text(text, "qwen3-14b", CUBE, MESH, "");
    assert_int_equal(decode(text), ADV_E_ILLEGAL);
    const struct adv_finding *finding = must_find(&err, "ici-product");
    assert_non_null(strstr(finding->detail, "128 devices per slice"));
    assert_non_null(strstr(finding->hint, "ici_fsdp_parallelism would have to be 32"));
    assert_int_equal(claim("qwen3-14b", "\"chip\":\"tpu7x\",\"topology\":\"2x4x4\"", MESH, "").fit,
                     ADV_FIT_FITS);
}

/* Claimed: TP2 + CP2 beats CP4 by 4 %. With 8 key-value heads of 40 the two are the same; with 40 of 40
 * (llama2-13b) gathering keys and values costs CP4 the claimed 4 %. Either is less than the interval of a
 * plan with tensor parallelism. */
static void tensor_and_context_2_are_within_error_of_context_4(void **state)
{
    (void)state;
    static const char *const models[] = {"qwen3-14b", "llama2-13b", "qwen2.5-14b"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double context_s = claim(models[i], CUBE, CONTEXT("4", "32", "0.25") AT_128K TUNED, "").step_time_s;
        struct adv_estimate both = claim(
            models[i], CUBE, CONTEXT("2", "32", "0.25") "\"ici_tensor_parallelism\":2," AT_128K TUNED, "");
        assert_within(context_s / both.step_time_s - 1.0, -0.06, 0.06);
        assert_true(both.step_time_low_s < context_s && context_s < both.step_time_high_s);
        assert_int_equal(both.confidence, ADV_CONFIDENCE_EXTRAPOLATED);
    }
}

/* Only one of them can have the core pair. */
static void tensor_takes_the_core_pair_and_context_the_torus(void **state)
{
    (void)state;
    (void)claim("qwen3-14b", CUBE, CONTEXT("2", "32", "0.25") "\"ici_tensor_parallelism\":2," AT_128K TUNED,
                "");
    const struct adv_axis_placement *axes = claim_ledger.mesh.axes;
    assert_int_equal(axes[ADV_AXIS_TENSOR].rings[0].physical, ADV_PHYSICAL_CORE);
    assert_int_not_equal(axes[ADV_AXIS_CONTEXT].rings[0].physical, ADV_PHYSICAL_CORE);
}

static void the_best_plan_of_70b_at_128k_has_no_tensor_parallelism(void **state)
{
    (void)state;
    json_t *answer = answer_of(
        ADV_REQUEST_ADVISE,
        "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"},"
        "\"workload\":{\"seq_len\":131072,\"per_device_batch_size\":0.125},\"search\":{\"top_k\":3}}");
    const json_t *config = json_object_get(json_array_get(json_object_get(answer, "ranked"), 0), "config");
    assert_true(json_integer_value(json_object_get(config, "ici_tensor_parallelism")) <=
                1); /* left out when 1 */
    assert_int_equal(json_integer_value(json_object_get(config, "ici_fsdp_parallelism")), 64);
    assert_int_equal(json_integer_value(json_object_get(config, "ici_context_parallelism")), 8);
    json_decref(answer);
}

/* ---- attention ---- */

static void attention_is_most_of_a_128k_step(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double low, high; /* of the model's FLOPs, causal */
    } rows[] = {{"llama3.1-70b", 0.50, 0.60}, {"qwen3-14b", 0.60, 0.70}, {"llama2-13b", 0.60, 0.70}};
    adv_err findings;
    adv_err_init(&findings);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct adv_model model;
        assert_int_equal(adv_catalog_model(catalog, rows[i].model, &model, &findings), ADV_OK);
        struct adv_model_flops flops = adv_model_flops(&model, 1.0, 131072, ADV_FLOPS_CAUSAL_HALF);
        assert_within(flops.attention / flops.total, rows[i].low, rows[i].high);
    }
    struct adv_estimate estimate = published("v7x-llama3.1-70b-128k-bf16-256c-2026-04-21", NULL);
    double attention_s = claim_term("attention_forward").seconds + claim_term("attention_recompute").seconds +
                         claim_term("attention_backward").seconds;
    assert_within(attention_s / estimate.step_time_s, 0.60, 0.75); /* claimed: about 66 % */
}

/* Claimed: a constant maximum of the logits saves 4 % at 128k. No published pair of timings isolates it. The
 * model lets it save a tenth of the forward kernel's vector work and nothing backward, where there is no
 * maximum; most of that hides behind the array, which leaves less than 1 % of the step. Under 1 % at 8k is
 * common ground. */
static void a_constant_maximum_saves_little(void **state)
{
    (void)state;
    double with_s = published("v7x-llama3.1-70b-128k-bf16-256c-2026-04-21", NULL).step_time_s;
    assert_int_equal(request.plan.family.max_logit_estimate, 30);
    double without_s =
        published("v7x-llama3.1-70b-128k-bf16-256c-2026-04-21", "{\"use_max_logit_estimate\":-1}")
            .step_time_s;
    assert_within(without_s / with_s - 1.0, 0.0005, 0.03);
    double short_with_s =
        published("v7x-llama3.1-70b-8k-bf16-64c-2025-12-18", "{\"use_max_logit_estimate\":30}").step_time_s;
    double short_without_s = published("v7x-llama3.1-70b-8k-bf16-64c-2025-12-18", NULL).step_time_s;
    assert_within(short_without_s / short_with_s - 1.0, 0.0, 0.01);
}

static void the_claimed_spelling_of_the_key_is_corrected(void **state)
{
    (void)state;
    char text[8192];
    claim_text(text, "llama3.1-70b", CUBE,
               "\"use_max_logits_estimate\":30,\"per_device_batch_size\":1," AT_8K TUNED, "");
    assert_ok(decode(text));
    const struct adv_finding *finding = find(&warnings, "/config/use_max_logits_estimate");
    assert_true(finding && strstr(finding->hint, "use_max_logit_estimate"));
    static const char *const values[] = {"null", "1.5"}; /* it is an integer */
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char config[1024];
        (void)snprintf(config, sizeof config,
                       "\"use_max_logit_estimate\":%s,\"per_device_batch_size\":1," AT_8K TUNED, values[i]);
        claim_text(text, "llama3.1-70b", CUBE, config, "");
        assert_int_not_equal(decode(text), ADV_OK);
        assert_non_null(find(&err, "/config/use_max_logit_estimate"));
    }
}

/* Claimed: splash instead of naive attention and tuning together save 12 % of an 8k step. Blocks of 2048 over
 * the default 512 alone save 17 % of a 14B model's; against XLA's attention more than half is saved, because
 * its scores go through HBM. */
static void tuned_blocks_save_more_than_a_tenth_at_8k(void **state)
{
    (void)state;
    double tuned_s = claim("qwen3-14b", CUBE, "\"per_device_batch_size\":1," AT_8K TUNED, "").step_time_s;
    double default_s =
        claim("qwen3-14b", CUBE,
              "\"use_tokamax_splash\":true,\"use_iota_embed\":true,\"per_device_batch_size\":1," AT_8K
              "\"attention\":\"flash\"",
              "")
            .step_time_s;
    double naive_s =
        claim("qwen3-14b", CUBE,
              "\"use_iota_embed\":true,\"per_device_batch_size\":1," AT_8K "\"attention\":\"dot_product\"",
              "")
            .step_time_s;
    assert_within(tuned_s / default_s - 1.0, -0.22, -0.05);
    assert_true(naive_s > 1.5 * default_s);
}

/* All of a core's VMEM is what public recipes ask for: no finding. More than there is: one. */
static void asking_for_the_whole_vmem_is_no_mistake(void **state)
{
    (void)state;
    const char *config = "\"per_device_batch_size\":1," AT_8K TUNED;
    (void)claim("llama3.1-70b", CUBE, config, "\"--xla_tpu_scoped_vmem_limit_kib=65536\"");
    assert_null(find_rule(&warnings, "vmem-limit"));
    (void)claim("llama3.1-70b", CUBE, config, "\"--xla_tpu_scoped_vmem_limit_kib=81920\"");
    assert_non_null(find_rule(&warnings, "vmem-limit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recipes_take_their_published_time),
        cmocka_unit_test(v5e_utilisation_is_the_published_one_in_its_own_convention),
        cmocka_unit_test(times_of_all_parts_add_up),
        cmocka_unit_test(the_largest_batch_at_128k_depends_on_what_is_kept),
        cmocka_unit_test(a_70b_model_needs_context_shards_at_128k),
        cmocka_unit_test(a_quarter_of_a_sequence_needs_four_shards_of_it),
        cmocka_unit_test(the_claimed_mesh_fills_half_the_slice_it_names),
        cmocka_unit_test(tensor_and_context_2_are_within_error_of_context_4),
        cmocka_unit_test(tensor_takes_the_core_pair_and_context_the_torus),
        cmocka_unit_test(the_best_plan_of_70b_at_128k_has_no_tensor_parallelism),
        cmocka_unit_test(attention_is_most_of_a_128k_step),
        cmocka_unit_test(a_constant_maximum_saves_little),
        cmocka_unit_test(the_claimed_spelling_of_the_key_is_corrected),
        cmocka_unit_test(tuned_blocks_save_more_than_a_tenth_at_8k),
        cmocka_unit_test(asking_for_the_whole_vmem_is_no_mistake),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
