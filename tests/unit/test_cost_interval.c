/* How sure a prediction is: the interval of the calibration, wider wherever no published step has been. */
#include "tests/unit/cost_fixture.h"

#include "engine/cost/interval.h"

/* Half the interval, in ln, of a step of one second under what `b` describes. */
static double half_ln(struct bench *b)
{
    bench_place(b);
    b->estimate.step_time_s = 1.0;
    adv_interval_apply(&b->cost, &b->estimate);
    assert_close(log(b->estimate.step_time_high_s), -log(b->estimate.step_time_low_s), 1e-12);
    return log(b->estimate.step_time_high_s);
}

static void a_familiar_plan_has_the_spread_of_the_fit(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        struct bench b;
        bool flat = machine_chip(chips[i]).ici_axes < 2.5;
        bench_open(&b, "llama3.1-8b", chips[i], 4, 4, flat ? 1 : 4);
        assert_close(half_ln(&b), 1.645 * b.constants.interval_log_sd,
                     1e-12); /* 5 % of a normal beyond each end */
        assert_int_equal(b.estimate.confidence, ADV_CONFIDENCE_CALIBRATED);
        assert_non_null(strstr(b.estimate.confidence_why, chips[i]));
    }
}

static void regimes_scale_the_spread_and_are_named(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "deepseek3-671b", "tpu7x", 4, 4, 8);
    b.plan.family.quantization = ADV_QUANT_FP8_FULL;
    b.plan.family.seq_len = 32768;
    b.constants.interval_experts_ratio = 1.5;
    b.constants.interval_long_context_ratio = 0.8;
    b.constants.interval_8bit_ratio = 1.1;
    assert_close(half_ln(&b), 1.645 * b.constants.interval_log_sd * 1.5 * 0.8 * 1.1, 1e-12);
    assert_non_null(strstr(b.estimate.confidence_why, "with experts, 32k context or more, 8-bit matmuls"));
    b.plan.family.quantization = ADV_QUANT_NONE;
    b.plan.family.seq_len = 32767;
    assert_int_equal(adv_regimes_of(&b.model, &b.plan), 1u << ADV_REGIME_EXPERTS);
    bench_open(&b, "llama3.1-70b", "tpu7x", 4, 4, 8);
    assert_int_equal(adv_regimes_of(&b.model, &b.plan), 0);
}

static void unfitted_chip(struct bench *b)
{
    b->constants.steps_extrapolated = true;
}
static void approximated_model(struct bench *b)
{
    b->model.confident = false;
    (void)snprintf(b->model.caveat, sizeof b->model.caveat, "the blocks are approximated");
}
static void delta_net(struct bench *b)
{
    b->model.layers[0].attention = ADV_ATTENTION_LINEAR;
}
static void compressed(struct bench *b)
{
    b->model.layers[0].attention = ADV_ATTENTION_COMPRESSED;
}
static void stages(struct bench *b)
{
    bench_axes(b, ADV_AXIS_STAGE, 4);
}
static void expert_axis(struct bench *b)
{
    bench_axes(b, ADV_AXIS_EXPERT, 4);
}
static void tensor_axis(struct bench *b)
{
    bench_axes(b, ADV_AXIS_TENSOR, 2);
}
static void short_context(struct bench *b)
{
    b->plan.family.seq_len = 16384;
    bench_axes(b, ADV_AXIS_CONTEXT, 2);
}
static void accumulation(struct bench *b)
{
    b->plan.family.gradient_accumulation_steps = 2;
}
static void dcn_fsdp(struct bench *b)
{
    b->cluster.slices = 2;
    b->plan.family.dcn[ADV_AXIS_FSDP] = 2;
}
static void foreign_format(struct bench *b)
{
    b->plan.family.quantization = ADV_QUANT_INT8; /* tpu7x has fp8, no int8 */
}

static void unseen_context(struct bench *b)
{
    b->plan.family.seq_len = 32768;
    b->constants.interval_long_context_models = 0.0;
    b->constants.interval_long_context_ratio = 1.0;
}
static void other_hardware(struct bench *b)
{
    b->cluster.has_overrides = true;
}
static void capped_scores(struct bench *b)
{
    b->model.attention_soft_cap = 50.0;
}
static void ragged_dot(struct bench *b)
{
    b->model.layers[0].experts = 8;
    b->constants.interval_experts_ratio = 1.0;
    b->plan.family.moe = ADV_MOE_RAGGED_DOT;
}
static void assumed_offload(struct bench *b)
{
    b->constants.overlap_offload_assumed = true;
    b->plan.flags.sc_all_reduce = 1;
}
static void wide_activations(struct bench *b)
{
    b->plan.family.dtype = ADV_FORMAT_F32;
}

static const struct {
    void (*open)(struct bench *b);
    const char *reason;
} gaps[] = {
    {unfitted_chip, "no whole-step measurement of this chip"},
    {approximated_model, "the blocks are approximated"},
    {delta_net, "linear or compressed attention"},
    {compressed, "linear or compressed attention"},
    {stages, "pipeline parallelism"},
    {expert_axis, "expert parallelism"},
    {tensor_axis, "tensor parallelism"},
    {short_context, "context parallelism at a short sequence"},
    {accumulation, "gradient accumulation"},
    {dcn_fsdp, "FSDP over DCN"},
    {foreign_format, "not native"},
    {unseen_context, "no published step of this chip with 32k context"},
    {other_hardware, "not the published one"},
    {capped_scores, "attention with a soft cap"},
    {ragged_dot, "XLA's ragged dot"},
    {wide_activations, "float32 activations"},
    {assumed_offload, "SparseCore offload hide is assumed"},
};

static void each_gap_widens_and_says_why(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
    double calibrated = half_ln(&b);
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
        gaps[i].open(&b);
        double half = half_ln(&b);
        if (!(half >= 1.25 * calibrated))
            fail_msg("%s widens %g to %g only", gaps[i].reason, calibrated, half);
        assert_int_equal(b.estimate.confidence, ADV_CONFIDENCE_EXTRAPOLATED);
        if (!strstr(b.estimate.confidence_why, gaps[i].reason))
            fail_msg("\"%s\" does not say %s", b.estimate.confidence_why, gaps[i].reason);
    }
}

static void gaps_add_up_in_width_and_words(void **state)
{
    (void)state;
    struct bench b;
    double widening = 1.0, base = 0.0;
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++) {
        bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
        base = half_ln(&b);
        /* the same gap as a delta net; another context than the short one */
        if (gaps[i].open == compressed || gaps[i].open == unseen_context) continue;
        gaps[i].open(&b);
        widening *= half_ln(&b) / base;
    }
    bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
    for (size_t i = 0; i < sizeof gaps / sizeof *gaps; i++)
        if (gaps[i].open != compressed && gaps[i].open != unseen_context) gaps[i].open(&b);
    assert_close(half_ln(&b), base * widening, 1e-9);
    bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
    delta_net(&b);
    stages(&b);
    tensor_axis(&b);
    (void)half_ln(&b);
    assert_string_equal(
        b.estimate.confidence_why,
        "linear or compressed attention has no measurement; pipeline parallelism has no measured step; "
        "tensor parallelism has no measured step on this chip");
}

static void tensor_parallelism_is_familiar_where_it_was_published(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "llama3.1-8b", "v5p", 4, 4, 4);
    tensor_axis(&b);
    (void)half_ln(&b);
    assert_int_equal(b.estimate.confidence, ADV_CONFIDENCE_CALIBRATED);
    bench_open(&b, "llama3.1-8b", "v6e", 4, 4, 1);
    tensor_axis(&b);
    (void)half_ln(&b);
    assert_int_equal(b.estimate.confidence, ADV_CONFIDENCE_EXTRAPOLATED);
}

static void native_formats_are_no_gap(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
    b.plan.family.quantization = ADV_QUANT_FP8_FULL;
    (void)half_ln(&b);
    assert_int_equal(b.estimate.confidence, ADV_CONFIDENCE_CALIBRATED);
    bench_open(&b, "llama3.1-8b", "v5p", 4, 4, 4);
    b.plan.family.quantization = ADV_QUANT_FP8;
    (void)half_ln(&b);
    assert_int_equal(b.estimate.confidence, ADV_CONFIDENCE_EXTRAPOLATED);
}

static void a_caveat_of_any_length_keeps_the_reason_terminated(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
    b.model.confident = false;
    memset(b.model.caveat, 'x', sizeof b.model.caveat - 1);
    stages(&b);
    (void)half_ln(&b);
    assert_int_equal(strlen(b.estimate.confidence_why), sizeof b.estimate.confidence_why - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_familiar_plan_has_the_spread_of_the_fit),
        cmocka_unit_test(regimes_scale_the_spread_and_are_named),
        cmocka_unit_test(each_gap_widens_and_says_why),
        cmocka_unit_test(gaps_add_up_in_width_and_words),
        cmocka_unit_test(tensor_parallelism_is_familiar_where_it_was_published),
        cmocka_unit_test(native_formats_are_no_gap),
        cmocka_unit_test(a_caveat_of_any_length_keeps_the_reason_terminated),
    };
    return run_group(tests);
}
