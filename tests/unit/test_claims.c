/* Statements about tpu7x, SparseCore offload, sharding, remat and prices that circulate, put to the engine.
 */
#include "tests/unit/claims_fixture.h"

#include "engine/hardware/roofline.h"

#define CUBE "\"chip\":\"tpu7x\",\"topology\":\"4x4x4\""

/* ---- the chip ---- */

static void a_pod_has_9216_chips_of_six_times_trilliums_memory(void **state)
{
    (void)state;
    const struct adv_chip *tpu7x = &adv_catalog_chip(catalog, "tpu7x")->chip,
                          *v6e = &adv_catalog_chip(catalog, "v6e")->chip;
    assert_close(tpu7x->pod_max_chips, 9216, 0.0);
    assert_close(tpu7x->hbm_bytes_per_chip / v6e->hbm_bytes_per_chip, 6.0, 1e-12);
    assert_close(tpu7x->sparsecores_per_chip, 4, 0.0);
    assert_int_equal(decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":"
                            "\"4x4x577\"},\"config\":{}}"),
                     ADV_E_INVALID);
    const struct adv_finding *finding = find(&err, "/cluster/topology");
    assert_true(finding && *finding->hint); /* names the nearest slices */
}

static void a_device_is_half_a_chip_and_offers_less_than_96_gib(void **state)
{
    (void)state;
    struct adv_estimate estimate = claim("llama3.1-8b", CUBE, "\"per_device_batch_size\":1," AT_8K TUNED, "");
    assert_int_equal(request.cluster.devices, 128);
    assert_within(estimate.hbm_limit_bytes_per_device / ADV_GIB, 94, 96);
}

static void formats_that_are_not_native_gain_nothing_and_are_flagged(void **state)
{
    (void)state;
    static const struct {
        const char *slice, *format;
    } cases[] = {{"\"chip\":\"v5p\",\"topology\":\"4x4x4\"", "fp8"},
                 {"\"chip\":\"v6e\",\"topology\":\"8x8\"", "fp8"},
                 {CUBE, "int8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char config[1024];
        double bf16_s =
            claim("llama3.1-8b", cases[i].slice, "\"per_device_batch_size\":1," AT_8K TUNED, "").step_time_s;
        (void)snprintf(config, sizeof config,
                       "\"quantization\":\"%s\",\"per_device_batch_size\":1," AT_8K TUNED, cases[i].format);
        struct adv_estimate quantised = claim("llama3.1-8b", cases[i].slice, config, "");
        assert_true(quantised.step_time_s > bf16_s);
        assert_int_equal(quantised.confidence, ADV_CONFIDENCE_EXTRAPOLATED);
        assert_true(warnings.count > 0);
    }
}

/* Claimed: up to twice. Measured end to end: 1.54 for llama3.1-70b at 8k, 1.20 for deepseek3 at 4k. */
static void fp8_gains_what_was_measured_and_never_doubles(void **state)
{
    (void)state;
    double bf16_s = published("v7x-llama3.1-70b-8k-bf16-64c-2025-12-18", NULL).step_time_s;
    assert_within(bf16_s / published("v7x-llama3.1-70b-8k-fp8-64c-2026-04-21", NULL).step_time_s, 1.44, 1.64);
    double experts_s = published("v7x-dsv3-671b-4k-bf16-128c-2025-12-18", NULL).step_time_s;
    assert_within(experts_s / published("v7x-dsv3-671b-4k-fp8-128c-2026-01-06", NULL).step_time_s, 1.10,
                  1.30);
    static const char *const models[] = {"qwen3-14b", "llama3.1-405b", "llama3.1-8b", "mixtral-8x7b",
                                         "gemma3-27b"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double wide_s = claim(models[i], CUBE, "\"per_device_batch_size\":1," AT_8K TUNED, "").step_time_s;
        double narrow_s = claim(models[i], CUBE,
                                "\"quantization\":\"fp8_full\",\"use_qwix_quantization\":true,\"per_device_"
                                "batch_size\":1," AT_8K TUNED,
                                "")
                              .step_time_s;
        assert_within(wide_s / narrow_s, 0.9, 1.99);
    }
}

/* fp8 helps matmuls only: the longer the sequence, the more of the step is attention. */
static void fp8_gains_less_at_longer_sequences(void **state)
{
    (void)state;
    double gain[2];
    for (int is_long = 0; is_long < 2; is_long++) {
        const char *wide = is_long
                               ? "\"per_device_batch_size\":0.25,\"ici_context_parallelism\":4," AT_128K TUNED
                               : "\"per_device_batch_size\":1," AT_8K TUNED;
        char narrow[1024];
        (void)snprintf(narrow, sizeof narrow,
                       "\"quantization\":\"fp8_full\",\"use_qwix_quantization\":true,%s", wide);
        double wide_s = claim("qwen3-14b", CUBE, wide, "").step_time_s;
        gain[is_long] = wide_s / claim("qwen3-14b", CUBE, narrow, "").step_time_s;
    }
    assert_true(gain[1] < gain[0] - 0.1);
}

/* ---- SparseCore offload ---- */

/* Step time with the offload over without it, less one. */
static double offload_change(const char *model, const char *config)
{
    double on_s = claim(model, CUBE, config, OFFLOAD("true")).step_time_s;
    return on_s / claim(model, CUBE, config, OFFLOAD("false")).step_time_s - 1.0;
}

/* Claimed: -22 % for a dense model under 20B at 8k; no model, batch or utilisation given. The model has 224
 * ms of gathers and scatters in a step of a 14B model at batch 1 on 64 chips (390 GB/s a chip over three
 * axes), so at most -13 % when hardly anything is recomputed. -22 % needs 260 GB/s, which is slower than any
 * published all-gather here. */
static void offload_saves_about_a_tenth_of_a_dense_8k_step_at_batch_1(void **state)
{
    (void)state;
    assert_within(offload_change("qwen3-14b", "\"per_device_batch_size\":1," AT_8K TUNED), -0.15, -0.08);
    assert_within(offload_change("qwen3-14b", "\"per_device_batch_size\":2," AT_8K TUNED), -0.09, -0.03);
    assert_within(
        offload_change("qwen3-14b",
                       "\"remat_policy\":\"minimal_with_context\",\"per_device_batch_size\":1," AT_8K TUNED),
        -0.18, -0.10);
}

static void offload_saves_nothing_at_large_batches(void **state)
{
    (void)state;
    assert_within(offload_change("qwen3-14b", "\"per_device_batch_size\":8," AT_8K TUNED), -0.025, 0.0);
}

/* Claimed: near-perfect overlap afterwards, taken as at most 3 % of the step. Of the same case 3.0 % still
 * shows; the constant behind it has a standard error of a third. */
static void little_shows_once_offloaded(void **state)
{
    (void)state;
    struct adv_estimate estimate =
        claim("qwen3-14b", CUBE, "\"per_device_batch_size\":1," AT_8K TUNED, OFFLOAD("true"));
    assert_within(exposed_s(ADV_RES_ICI) / estimate.step_time_s, 0.0, 0.035);
}

/* Claimed: -5 % at 128k. The same weights move once for 4 times the tokens and 16 times the attention: -0.7 %
 * here; the order (8k, then experts, then 128k) is what both agree on. */
static void offload_saves_least_at_128k(void **state)
{
    (void)state;
    double long_change = offload_change(
        "qwen3-14b", "\"per_device_batch_size\":0.25,\"ici_context_parallelism\":4," AT_128K TUNED);
    assert_within(long_change, -0.02, -0.003);
    double short_change = offload_change("qwen3-14b", "\"per_device_batch_size\":1," AT_8K TUNED);
    assert_true(short_change < 4.0 * long_change);
}

/* Claimed: -15 % for experts of 110B at 8k. -11 % for gpt-oss-120b's recipe of 10 sequences a device; at
 * equal tokens sparse weights move more per FLOP, so experts gain more than a dense model. */
static void offload_saves_more_of_experts_than_of_dense_layers(void **state)
{
    (void)state;
#define OSS "\"ici_data_parallelism\":2,\"ici_fsdp_parallelism\":64," AT_8K TUNED
    double at_recipe = offload_change("gpt-oss-120b", "\"per_device_batch_size\":10," OSS);
    assert_within(at_recipe, -0.22, -0.08);
    double experts = offload_change("gpt-oss-120b", "\"per_device_batch_size\":2," OSS);
    double dense = offload_change("qwen3-14b", "\"per_device_batch_size\":2," AT_8K TUNED);
    double dense_long = offload_change(
        "qwen3-14b", "\"per_device_batch_size\":0.25,\"ici_context_parallelism\":4," AT_128K TUNED);
    assert_true(experts < dense && at_recipe < dense_long);
}

/* The saving depends on tokens a chip, not on how many chips there are. */
static void offload_saves_the_same_on_more_chips(void **state)
{
    (void)state;
    const char *config = "\"per_device_batch_size\":1," AT_8K TUNED;
    double changes[2];
    for (int large = 0; large < 2; large++) {
        const char *slice = large ? "\"chip\":\"tpu7x\",\"topology\":\"8x8x8\"" : CUBE;
        double on_s = claim("qwen3-14b", slice, config, OFFLOAD("true")).step_time_s;
        changes[large] = on_s / claim("qwen3-14b", slice, config, OFFLOAD("false")).step_time_s - 1.0;
    }
    assert_within(changes[1] / changes[0], 0.85, 1.3);
}

static void offload_is_the_default_here_and_turning_it_off_is_reported(void **state)
{
    (void)state;
    char text[8192];
    const char *config = "\"per_device_batch_size\":1," AT_8K TUNED;
    double default_s = claim("qwen3-14b", CUBE, config, "").step_time_s;
    assert_close(claim("qwen3-14b", CUBE, config, OFFLOAD("true")).step_time_s, default_s, 1e-12);
    claim_text(text, "qwen3-14b", CUBE, config, OFFLOAD("false"));
    json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, text);
    assert_true(advises(answer, "sparsecore_offload"));
    json_decref(answer);
}

/* ---- sharding ---- */

/* MaxText keys of the best plan, and its axes other than 1 written "fsdp 128 tensor 2". */
static void best_axes(const char *text, char axes[256])
{
    static const char *const names[] = {
        "data", "pipeline", "fsdp", "fsdp_transpose", "context", "context_usp_ulysses", "tensor", "expert"};
    json_t *answer = answer_of(ADV_REQUEST_ADVISE, text);
    const json_t *config = json_object_get(json_array_get(json_object_get(answer, "ranked"), 0), "config");
    assert_non_null(config);
    int used = 0;
    axes[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "ici_%s_parallelism", names[i]);
        json_int_t degree = json_integer_value(json_object_get(config, key));
        if (degree > 1)
            used +=
                snprintf(axes + used, 256 - (size_t)used, "%s%s %d", used ? " " : "", names[i], (int)degree);
    }
    json_decref(answer);
}

/* Claimed: the simplest strategy that fits is best; FSDP for dense models at 8k. So it is at the batches of
 * the public recipes. At one or two sequences a device of 405B the model ties FSDP 512 with FSDP 256 x 2 on
 * the core pair and ranks the smaller memory first. */
static void fsdp_alone_is_best_for_dense_models_at_8k(void **state)
{
    (void)state;
    static const struct {
        const char *text, *axes;
    } rows[] = {
        {"{\"model\":\"qwen3-14b\",\"cluster\":{" CUBE
         "},\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":2}}",
         "fsdp 128"},
        {"{\"model\":\"llama3.1-70b\",\"cluster\":{" CUBE
         "},\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":2}}",
         "fsdp 128"},
        {"{\"model\":\"llama3.1-405b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"},\"workload\":{"
         "\"seq_len\":8192,\"per_device_batch_size\":3}}",
         "fsdp 512"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char axes[256];
        best_axes(rows[i].text, axes);
        assert_string_equal(axes, rows[i].axes);
    }
}

/* Claimed: expert parallelism's all-to-all could not be optimised, FSDP is best for experts of 110B. True
 * over torus axes and at two sequences a device or more; at one, weights cost more than tokens. 2880 divides
 * by 64, not by 128 shards, so the claimed EP4 x FSDP32 does not run: EP4 x FSDP16 over 2 replicas stands for
 * it. */
static void fsdp_beats_expert_parallelism_of_4_from_two_sequences_on(void **state)
{
    (void)state;
#define OSS_CONFIG(batch, fsdp, expert)                                                                      \
    "\"per_device_batch_size\":" batch ",\"ici_data_parallelism\":2,\"ici_fsdp_parallelism\":" fsdp          \
    ",\"ici_expert_parallelism\":" expert "," AT_8K TUNED
    double fsdp_s = claim("gpt-oss-120b", CUBE, OSS_CONFIG("2", "64", "1"), "").step_time_s;
    double expert_s = claim("gpt-oss-120b", CUBE, OSS_CONFIG("2", "16", "4"), "").step_time_s;
    assert_within(expert_s / fsdp_s, 1.1, 1.6);
    assert_true(claim("gpt-oss-120b", CUBE, OSS_CONFIG("10", "16", "4"), "").step_time_s >
                1.3 * claim("gpt-oss-120b", CUBE, OSS_CONFIG("10", "64", "1"), "").step_time_s);
    char text[8192];
    claim_text(
        text, "gpt-oss-120b", CUBE,
        "\"per_device_batch_size\":2,\"ici_fsdp_parallelism\":32,\"ici_expert_parallelism\":4," AT_8K TUNED,
        "");
    assert_int_equal(decode(text), ADV_E_ILLEGAL);
}

static void tensor_parallelism_of_4_is_flagged_on_70b(void **state)
{
    (void)state;
    char text[8192];
    const struct adv_chip *chip = &adv_catalog_chip(catalog, "tpu7x")->chip;
    assert_within(28672 / adv_roofline_ici_intensity(chip, 1, false), 2.4, 2.6);
    claim_text(
        text, "llama3.1-70b", CUBE,
        "\"per_device_batch_size\":1,\"ici_fsdp_parallelism\":32,\"ici_tensor_parallelism\":4," AT_8K TUNED,
        "");
    json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, text);
    assert_true(advises(answer, "tensor_parallelism"));
    json_decref(answer);
    claim_text(text, "llama3.1-70b", CUBE, "\"per_device_batch_size\":1," AT_8K TUNED, "");
    answer = answer_of(ADV_REQUEST_ESTIMATE, text);
    assert_false(advises(answer, "tensor_parallelism"));
    json_decref(answer);
}

/* Only where XLA does what the advice says: of dense feed-forwards, on tpu7x beside an fsdp axis. */
static void a_width_that_two_axes_share_is_flagged(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cluster, *axes;
        bool flagged;
    } cases[] = {
        {"llama3.1-8b", "\"chip\":\"v5p\",\"topology\":\"2x4x4\"", "\"ici_fsdp_transpose_parallelism\":8,",
         true},
        {"llama3.1-8b", "\"chip\":\"v5p\",\"topology\":\"2x4x4\"", "\"ici_fsdp_parallelism\":8,", false},
        {"llama3.1-8b", "\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"", "\"ici_fsdp_transpose_parallelism\":8,",
         false},
        {"qwen3-30b-a3b", "\"chip\":\"v5p\",\"topology\":\"2x4x4\"", "\"ici_fsdp_transpose_parallelism\":8,",
         false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\",\"cluster\":{%s},\"config\":{%s\"ici_tensor_parallelism\":4,"
                       "\"max_target_length\":4096,\"per_device_batch_size\":1,\"remat_policy\":\"full\","
                       "\"attention\":\"flash\"}}",
                       cases[i].model, cases[i].cluster, cases[i].axes);
        json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, text);
        if (advises(answer, "transposed_width") != cases[i].flagged)
            fail_msg("%s {%s} %s", cases[i].model, cases[i].cluster, cases[i].axes);
        json_decref(answer);
    }
}

/* Compiled, the first of these takes 61.9 GB of a device and 57.8 with all layouts SEQ_MINOR. */
static void kept_heads_that_leave_lanes_over_are_flagged(void **state)
{
    (void)state;
    static const struct {
        const char *model, *config;
        bool flagged;
    } cases[] = {
        {"gpt-oss-20b", "\"remat_policy\":\"minimal_with_context\"", true},
        {"gpt-oss-20b", "\"remat_policy\":\"full\"", false}, /* no head is kept */
        {"gpt-oss-20b",
         "\"remat_policy\":\"minimal_with_context\",\"sa_q_layout\":\"SEQ_MINOR\",\"sa_k_layout\":\"SEQ_MINOR\","
         "\"sa_v_layout\":\"SEQ_MINOR\"",
         false},
        {"llama3.1-8b", "\"remat_policy\":\"minimal_with_context\"", false}, /* heads of 128 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[2048];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x4x4\"},\"config\":{"
                       "\"ici_fsdp_parallelism\":32,\"max_target_length\":8192,\"per_device_batch_size\":2,"
                       "\"attention\":\"flash\",%s}}",
                       cases[i].model, cases[i].config);
        json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, text);
        if (advises(answer, "padded_heads") != cases[i].flagged)
            fail_msg("%s {%s}", cases[i].model, cases[i].config);
        json_decref(answer);
    }
}

/* Where memory is short, such heads are the cheapest that there is: the step takes no longer without them. */
static void layouts_are_the_remedy_where_they_are_enough(void **state)
{
    (void)state;
    json_t *answer = answer_of(
        ADV_REQUEST_ESTIMATE,
        "{\"model\":\"gpt-oss-20b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x4x4\",\"overrides\":{"
        "\"hbm_usable_bytes_per_device\":65e9}},\"config\":{\"ici_fsdp_parallelism\":32,\"max_target_length\":8192,"
        "\"per_device_batch_size\":2,\"attention\":\"flash\",\"remat_policy\":\"minimal_with_context\"}}");
    const json_t *advice = json_object_get(answer, "advice"), *item;
    bool named = false;
    size_t i;
    json_array_foreach(advice, i, item) named |=
        strncmp(json_string_value(json_object_get(item, "code")), "memory_", 7) == 0 &&
        json_object_get(json_object_get(item, "change"), "sa_q_layout");
    assert_true(named);
    json_decref(answer);
}

/* Larger batches hide the gathers: what shows never grows with the tokens, and stops shrinking at the share
 * that always shows. */
static void exposed_gathers_never_grow_with_the_batch(void **state)
{
    (void)state;
    static const char *const lengths[] = {"512", "1024", "2048", "4096", "8192", "16384"};
    double last_s = 1e9;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char config[1024];
        (void)snprintf(config, sizeof config,
                       "\"per_device_batch_size\":1,\"max_target_length\":%s,\"use_iota_embed\":true",
                       lengths[i]);
        (void)claim("llama3.1-8b", CUBE, config, "");
        struct adv_term gather = claim_term("fsdp_all_gather"), scatter = claim_term("fsdp_reduce_scatter");
        double shown_s = gather.exposed_seconds + scatter.exposed_seconds;
        assert_true(shown_s <= last_s * (1.0 + 1e-12));
        last_s = shown_s;
        if (i == 0)
            assert_true(shown_s >
                        0.3 * (gather.seconds + scatter.seconds)); /* 1024 tokens a chip: ICI-bound */
    }
}

static void state_shrinks_exactly_with_the_shards(void **state)
{
    (void)state;
    static const char *const slices[] = {"4x4x4", "4x4x8", "4x8x8"};
    double weights[3];
    for (int i = 0; i < 3; i++) {
        char slice[64];
        (void)snprintf(slice, sizeof slice, "\"chip\":\"tpu7x\",\"topology\":\"%s\"", slices[i]);
        (void)claim("llama3.1-70b", slice, "\"per_device_batch_size\":1," AT_8K TUNED, "");
        weights[i] = claim_ledger.memory[0].bytes_per_device;
        assert_string_equal(claim_ledger.memory[0].name, "weights");
    }
    assert_close(weights[0] / weights[1], 2.0, 1e-12);
    assert_close(weights[0] / weights[2], 4.0, 1e-12);
}

/* A 14B model in float32 with Adam is 177 GB: more than a device's 95 GiB, under one chip's 192 but for
 * activations. */
static void fourteen_billion_do_not_fit_a_device_and_one_does(void **state)
{
    (void)state;
#define REPLICAS                                                                                             \
    "\"ici_data_parallelism\":128,\"ici_fsdp_parallelism\":1,\"per_device_batch_size\":1," AT_8K TUNED
    assert_int_equal(claim("qwen3-14b", CUBE, REPLICAS, "").fit, ADV_FIT_NO);
    assert_int_equal(claim("llama2-13b", CUBE, REPLICAS, "").fit, ADV_FIT_NO);
    assert_int_equal(claim("qwen2.5-1.5b", CUBE, REPLICAS, "").fit, ADV_FIT_FITS);
    assert_int_equal(claim("qwen3-0.6b", CUBE, REPLICAS, "").fit, ADV_FIT_FITS);
}

/* ---- remat ---- */

/* Claimed: 25 to 30 % more FLOPs. Of the model's matmuls and attention, 4/3 less the dead output of the
 * feed-forward; the one-hot lookup is left out of both. */
static void full_remat_executes_a_quarter_to_a_third_more(void **state)
{
    (void)state;
    static const char *const models[] = {"llama3.1-70b", "qwen3-14b", "gemma3-27b", "llama3.1-405b",
                                         "deepseek3-671b"};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct adv_estimate full =
            claim(models[i], CUBE,
                  "\"attention\":\"flash\",\"per_device_batch_size\":1,\"max_target_length\":8192", "");
        assert_within(full.hfu_frac / full.mfu_frac, 1.22, 1.34);
    }
    struct adv_estimate kept = claim(
        "llama3.1-70b", CUBE,
        "\"remat_policy\":\"minimal_with_context\",\"per_device_batch_size\":1,\"max_target_length\":8192",
        "");
    assert_close(kept.hfu_frac / kept.mfu_frac, 1.0, 1e-3);
}

static void small_heads_are_remarked_where_the_array_is_256_wide(void **state)
{
    (void)state;
    static const struct {
        const char *model, *slice;
        bool remarked;
    } rows[] = {{"llama3.1-70b", CUBE, true},
                {"llama3.1-70b", "\"chip\":\"v6e\",\"topology\":\"16x16\"", true},
                {"llama3.1-70b", "\"chip\":\"v5p\",\"topology\":\"4x4x4\"", false},
                {"gemma3-12b", CUBE, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[8192];
        claim_text(text, rows[i].model, rows[i].slice,
                   "\"per_device_batch_size\":1," AT_8K "\"attention\":\"flash\"", "");
        json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, text);
        assert_int_equal(advises(answer, "head_dim"), rows[i].remarked);
        json_decref(answer);
    }
}

/* The 405B recipe keeps its layer inputs on the host: 756 GiB of a host's 894; a second tensor the width of
 * the feed-forward does not fit. */
static void the_host_limits_what_405b_can_offload(void **state)
{
    (void)state;
    struct adv_estimate one = published("v7x-llama3.1-405b-8k-bf16-256c-2026-04-20", NULL);
    assert_close(one.host_bytes_per_host / ADV_GIB, 756, 0.005);
    assert_int_equal(one.fit, ADV_FIT_FITS);
    assert_int_equal(published("v7x-llama3.1-405b-8k-bf16-256c-2026-04-20", "{\"mlpwi_0\":\"offload\"}").fit,
                     ADV_FIT_NO);
}

/* ---- prices ---- */

static const struct adv_chip *chip_named(const char *name)
{
    return &adv_catalog_chip(catalog, name)->chip;
}

/* Claimed: v5e has 4.6 times an A100's throughput. Per chip its peak is 0.63 of it; 0.76 with the claim's own
 * utilisations. */
static void one_v5e_is_slower_than_one_a100(void **state)
{
    (void)state;
    double v5e = chip_named("v5e")->peak_bf16_flops_per_s_per_chip,
           a100 = chip_named("a100")->peak_bf16_flops_per_s_per_chip;
    assert_close(v5e / a100, 0.631, 0.002);
    assert_close(v5e * 0.575 / (a100 * 0.475), 0.764, 0.002);
}

/* Claimed: 18 hours on 8 A100 become 6 to 8 on an "equivalent" slice, and 20 to 35 % less per effective TFLOP
 * at 2.20 USD an hour. The times need 24 to 32 chips; that price gives 6 %, the list price of 1.20 gives 49
 * %. */
static void the_claimed_hours_and_prices_need_other_numbers(void **state)
{
    (void)state;
    double v5e = chip_named("v5e")->peak_bf16_flops_per_s_per_chip * 1e-12 * 0.575;
    double a100 = chip_named("a100")->peak_bf16_flops_per_s_per_chip * 1e-12 * 0.475;
    double work = 18.0 * 8.0 * a100;
    assert_close(work / (32.0 * v5e), 5.9, 0.01);
    assert_close(work / (24.0 * v5e), 7.9, 0.01);
    assert_close(work / (18.0 * v5e), 10.5, 0.01); /* chips that take the same 18 hours */
    assert_close(chip_named("v5e")->price_usd_per_chip_hour, 1.20, 1e-12);
    assert_close(2.20 / v5e, 0.01942, 1e-3);
    assert_close(3.06 / a100, 0.02065, 1e-3);
    assert_close(1.20 / v5e, 0.01059, 1e-3);
}

static void a_price_given_by_the_user_replaces_the_list(void **state)
{
    (void)state;
    const char *config = "\"per_device_batch_size\":1," AT_8K TUNED;
    struct adv_estimate listed = claim("llama3.1-8b", "\"chip\":\"v5e\",\"topology\":\"8x8\"", config, "");
    assert_close(listed.usd_per_step, 1.20 * 64.0 * listed.step_time_s / 3600.0, 1e-12);
    struct adv_estimate given = claim(
        "llama3.1-8b", "\"chip\":\"v5e\",\"topology\":\"8x8\",\"price_usd_per_chip_hour\":2.2", config, "");
    assert_close(given.usd_per_step / listed.usd_per_step, 2.2 / 1.2, 1e-12);
    assert_true(isnan(claim("llama3.1-8b", CUBE, config, "").usd_per_step)); /* unpublished: unknown, not 0 */
}

static void an_instance_that_does_not_exist_is_refused_by_name(void **state)
{
    (void)state;
    assert_int_not_equal(decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"p4d.xlarge\","
                                "\"topology\":\"8\"},\"config\":{}}"),
                         ADV_OK);
    assert_non_null(find(&err, "/cluster/chip"));
}

/* Claimed: 70B needs 256 v5p chips and stays under 60 % below. 64 chips hold it, and exceed 60 %. */
static void sixty_four_v5p_train_70b_above_60_percent(void **state)
{
    (void)state;
    struct adv_estimate estimate = claim("llama2-70b", "\"chip\":\"v5p\",\"topology\":\"4x4x4\"",
                                         "\"per_device_batch_size\":4,\"max_target_length\":4096," TUNED, "");
    assert_int_equal(estimate.fit, ADV_FIT_FITS);
    assert_within(estimate.mfu_frac, 0.60, 0.70);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pod_has_9216_chips_of_six_times_trilliums_memory),
        cmocka_unit_test(a_device_is_half_a_chip_and_offers_less_than_96_gib),
        cmocka_unit_test(formats_that_are_not_native_gain_nothing_and_are_flagged),
        cmocka_unit_test(fp8_gains_what_was_measured_and_never_doubles),
        cmocka_unit_test(fp8_gains_less_at_longer_sequences),
        cmocka_unit_test(offload_saves_about_a_tenth_of_a_dense_8k_step_at_batch_1),
        cmocka_unit_test(offload_saves_nothing_at_large_batches),
        cmocka_unit_test(little_shows_once_offloaded),
        cmocka_unit_test(offload_saves_least_at_128k),
        cmocka_unit_test(offload_saves_more_of_experts_than_of_dense_layers),
        cmocka_unit_test(offload_saves_the_same_on_more_chips),
        cmocka_unit_test(offload_is_the_default_here_and_turning_it_off_is_reported),
        cmocka_unit_test(fsdp_alone_is_best_for_dense_models_at_8k),
        cmocka_unit_test(fsdp_beats_expert_parallelism_of_4_from_two_sequences_on),
        cmocka_unit_test(tensor_parallelism_of_4_is_flagged_on_70b),
        cmocka_unit_test(a_width_that_two_axes_share_is_flagged),
        cmocka_unit_test(kept_heads_that_leave_lanes_over_are_flagged),
        cmocka_unit_test(layouts_are_the_remedy_where_they_are_enough),
        cmocka_unit_test(exposed_gathers_never_grow_with_the_batch),
        cmocka_unit_test(state_shrinks_exactly_with_the_shards),
        cmocka_unit_test(fourteen_billion_do_not_fit_a_device_and_one_does),
        cmocka_unit_test(full_remat_executes_a_quarter_to_a_third_more),
        cmocka_unit_test(small_heads_are_remarked_where_the_array_is_256_wide),
        cmocka_unit_test(the_host_limits_what_405b_can_offload),
        cmocka_unit_test(one_v5e_is_slower_than_one_a100),
        cmocka_unit_test(the_claimed_hours_and_prices_need_other_numbers),
        cmocka_unit_test(a_price_given_by_the_user_replaces_the_list),
        cmocka_unit_test(an_instance_that_does_not_exist_is_refused_by_name),
        cmocka_unit_test(sixty_four_v5p_train_70b_above_60_percent),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
