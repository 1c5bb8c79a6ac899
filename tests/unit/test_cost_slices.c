/* Axes that span slices: what crosses the network between them is never free. v5p 4x4x4, round constants. */
#include "tests/unit/cost_fixture.h"

static struct bench *open_slices(const char *model, int slices)
{
    static struct bench b;
    bench_open(&b, model, "v5p", 4, 4, 4);
    round_constants(&b);
    b.cluster.slices = slices;
    b.cluster.devices = 64 * slices;
    return &b;
}

static double dcn(const struct bench *b)
{
    return b->cluster.chip.dcn_bytes_per_s_per_chip;
}

static double seconds(const struct bench *b, enum adv_term_id id)
{
    return b->account.slots[id].exposed_seconds;
}

/* A stage in the next slice gets its microbatch over the network; the circle waits for it. */
static void a_pipeline_over_slices_hands_over_through_the_network(void **state)
{
    (void)state;
    struct bench *b = open_slices("llama3.1-8b", 4);
    b->plan.family.dcn[ADV_AXIS_STAGE] = 4;
    b->plan.family.pipeline_microbatches = 8;
    b->plan.family.layers_per_stage = 8;
    bench_place(b);
    adv_schedule_pipeline(&b->cost, &b->account);
    double microbatch_bytes =
        2.0 * 4096 * (4096.0 * 4 / 8); /* bf16, a device's tokens of 4 stages in 8 parts */
    /* 8 + 3 iterations, there and back, two permutations each */
    assert_close(seconds(b, ADV_TERM_DCN_ACTIVATIONS), 11.0 * 2 * 2 * microbatch_bytes / dcn(b), 1e-12);
}

static void keys_and_values_cross_to_the_shards_of_other_slices(void **state)
{
    (void)state;
    struct bench *b = open_slices("llama3.1-8b", 2);
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    b->plan.family.dcn[ADV_AXIS_CONTEXT] = 2;
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    /* 8 heads x (128 + 128) x 2 B of 2 x 4096 tokens, half of them from the other slice; three times */
    assert_close(seconds(b, ADV_TERM_DCN_ACTIVATIONS), 3.0 * 0.5 * 2.0 * 8 * 256 * 8192 / dcn(b), 1e-12);
    /* inside a slice as well: each device fetches its quarter of the other slice's, then all meet on the
     * torus */
    bench_axes(b, ADV_AXIS_CONTEXT, 4);
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    double bytes = 2.0 * 8 * 256 * 8 * 4096.0;
    double torus_s = bytes * 0.75 / (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    assert_close(seconds(b, ADV_TERM_DCN_ACTIVATIONS), 3.0 * 0.5 * bytes / 4.0 / dcn(b), 1e-12);
    assert_close(seconds(b, ADV_TERM_CONTEXT), 3.0 * torus_s, 1e-12);
}

static void tokens_cross_to_the_experts_of_other_slices(void **state)
{
    (void)state;
    struct bench *b = open_slices("mixtral-8x7b", 2);
    b->plan.family.dcn[ADV_AXIS_EXPERT] = 2;
    bench_place(b);
    adv_schedule_experts(&b->cost, &b->model.layers[0], 1.0, &b->account);
    /* two choices of 2 B x 4096 a token, half of them there; dispatch and combine in three passes */
    assert_close(seconds(b, ADV_TERM_DCN_ACTIVATIONS), 6.0 * 0.5 * 2.0 * 2 * 4096 * 4096 / dcn(b), 1e-12);
}

static void activations_cross_between_tensor_shards_of_slices(void **state)
{
    (void)state;
    struct bench *b = open_slices("llama3.1-8b", 2);
    b->plan.family.dcn[ADV_AXIS_TENSOR] = 2;
    bench_policy(b, ADV_POLICY_MINIMAL);
    bench_place(b);
    assert_int_equal(b->cost.tp, 2);
    adv_schedule_tensor(&b->cost, &b->model.layers[0], 1.0, &b->account);
    assert_close(seconds(b, ADV_TERM_DCN_ACTIVATIONS), 10.0 * 0.5 * 2.0 * 4096 * 8192 / dcn(b), 1e-12);
}

/* Weights are sharded over the context axis too, and all but the routed ones over the expert axis. */
static void weights_sharded_over_slices_are_gathered_whatever_the_axis(void **state)
{
    (void)state;
    static const enum adv_axis axes[] = {ADV_AXIS_FSDP, ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT,
                                         ADV_AXIS_EXPERT};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        struct bench *b = open_slices("mixtral-8x7b", 2);
        b->plan.family.dcn[axes[i]] = 2;
        bench_place(b);
        adv_schedule_step(&b->cost, &b->params, &b->account);
        double gathered =
            axes[i] == ADV_AXIS_EXPERT ? b->params.total - b->params.routed_experts : b->params.total;
        assert_close(seconds(b, ADV_TERM_DCN_WEIGHTS), 3.0 * 0.5 * 2.0 * gathered / 64.0 / dcn(b), 1e-12);
    }
}

static void nothing_but_gradients_over_slices_is_calibrated(void **state)
{
    (void)state;
    static const enum adv_axis axes[] = {ADV_AXIS_FSDP, ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT,
                                         ADV_AXIS_TENSOR, ADV_AXIS_STAGE};
    struct bench *b = open_slices("llama3.1-8b", 2);
    b->plan.family.dcn[ADV_AXIS_DATA] = 2;
    assert_int_equal(bench_estimate(b)->confidence, ADV_CONFIDENCE_CALIBRATED);
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        b = open_slices("llama3.1-8b", 2);
        b->plan.family.dcn[axes[i]] = 2;
        assert_int_equal(bench_estimate(b)->confidence, ADV_CONFIDENCE_EXTRAPOLATED);
    }
}

/* ---- inside a slice, what a pipeline leaves outside ---- */

static void embedding_and_head_have_no_bubble(void **state)
{
    (void)state;
    double bubble_s[2], logits_s[2];
    for (int wide = 0; wide < 2; wide++) {
        struct bench *b = open_slices("llama3.1-8b", 1);
        bench_axes(b, ADV_AXIS_STAGE, 4);
        b->plan.family.pipeline_microbatches = 4;
        b->plan.family.layers_per_stage = 8;
        b->plan.family.use_iota_embed = true;
        if (wide) b->model.vocab_size *= 2;
        (void)bench_estimate(b);
        bubble_s[wide] = bench_term(b, "pipeline_bubble").seconds;
        logits_s[wide] = bench_term(b, "logits").seconds;
    }
    assert_true(bubble_s[0] > 0.0 && logits_s[1] > 1.9 * logits_s[0]);
    assert_close(bubble_s[1], bubble_s[0], 1e-12);
}

static void logits_are_those_of_all_microbatches(void **state)
{
    (void)state;
    for (int microbatches = 4; microbatches <= 8; microbatches *= 2) {
        struct bench *b = open_slices("llama3.1-8b", 1);
        bench_axes(b, ADV_AXIS_STAGE, 4);
        b->plan.family.per_device_batch_size = 2;
        b->plan.family.pipeline_microbatches = microbatches;
        b->plan.family.layers_per_stage = 8;
        (void)bench_estimate(b);
        assert_close(bench_bytes(b, "logits"), b->constants.loss_logits_tensors * 2.0 * 2 * 4096 * 128256.0,
                     1e-12);
    }
}

/* A step is never shorter than one of its own transfers. */
static void gradients_hide_behind_the_backward_pass_and_no_further(void **state)
{
    (void)state;
    struct bench *b = open_slices("llama3.1-8b", 4);
    b->plan.family.dcn[ADV_AXIS_DATA] = 4;
    const double given = b->cluster.chip.dcn_bytes_per_s_per_chip;
    for (int slower = 1; slower <= 1000; slower *= 10) {
        b->cluster.chip.dcn_bytes_per_s_per_chip = given / slower;
        const double step_s = bench_estimate(b)->step_time_s;
        const struct adv_term reduce = bench_term(b, "dcn_gradient_reduce");
        const double share = reduce.exposed_seconds / reduce.seconds;
        if (share < b->constants.dcn_exposed_frac * (1.0 - 1e-9) || share > 1.0)
            fail_msg("%g of %g s at 1/%d of the rate", share, reduce.seconds, slower);
        if (slower > 100) assert_true(share > 0.9);
        assert_true(step_s > reduce.seconds);
    }
}

/* The extra layer and head run behind the pipeline, once for each token, however it was cut. */
static void another_token_is_predicted_once_whatever_the_pipeline(void **state)
{
    (void)state;
    struct bench *b = open_slices("llama3.1-8b", 1);
    b->plan.family.mtp_layers = 1;
    b->plan.family.per_device_batch_size = 4;
    (void)bench_estimate(b);
    const struct adv_term whole = bench_term(b, "multi_token_prediction");
    bench_axes(b, ADV_AXIS_STAGE, 4);
    for (int microbatches = 4; microbatches <= 16; microbatches *= 2) {
        b->plan.family.pipeline_microbatches = microbatches;
        b->plan.family.layers_per_stage = 8;
        (void)bench_estimate(b);
        const struct adv_term cut = bench_term(b, "multi_token_prediction");
        assert_close(cut.seconds, whole.seconds, 0.15);
        assert_close(cut.flops_per_device, whole.flops_per_device, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pipeline_over_slices_hands_over_through_the_network),
        cmocka_unit_test(keys_and_values_cross_to_the_shards_of_other_slices),
        cmocka_unit_test(tokens_cross_to_the_experts_of_other_slices),
        cmocka_unit_test(activations_cross_between_tensor_shards_of_slices),
        cmocka_unit_test(weights_sharded_over_slices_are_gathered_whatever_the_axis),
        cmocka_unit_test(nothing_but_gradients_over_slices_is_calibrated),
        cmocka_unit_test(embedding_and_head_have_no_bubble),
        cmocka_unit_test(logits_are_those_of_all_microbatches),
        cmocka_unit_test(gradients_hide_behind_the_backward_pass_and_no_further),
        cmocka_unit_test(another_token_is_predicted_once_whatever_the_pipeline),
    };
    return run_group(tests);
}
