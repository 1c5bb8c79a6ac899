/* What lies in HBM where gradients go to other slices, and in pipelines before the loss. */
#include "tests/unit/cost_fixture.h"

#include <math.h>

/* Two slices whose gradients meet over `axis`, or one slice (ADV_AXIS_COUNT). */
static struct bench *open_sliced(const char *model, const char *chip, enum adv_axis axis)
{
    static struct bench b;
    bench_open(&b, model, chip, 4, 4, 4);
    bench_policy(&b, ADV_POLICY_FULL);
    if (axis != ADV_AXIS_COUNT) b.cluster.slices = b.plan.family.dcn[axis] = 2;
    return &b;
}

/* Eight compiled steps keep the stacks of both microbatches, under data and under FSDP between slices. */
static void both_microbatches_of_two_are_kept(void **state)
{
    (void)state;
    static const struct {
        enum adv_axis axis;
        double times;
    } cases[] = {{ADV_AXIS_COUNT, 1.0}, {ADV_AXIS_DATA, 2.0}, {ADV_AXIS_FSDP, 2.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_sliced("llama3.1-8b", "v5p", cases[i].axis);
        b->plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_DEVICE;
        b->plan.placements[ADV_TENSOR_QUERY_PROJ] = ADV_PLACE_OFFLOAD;
        b->plan.family.gradient_accumulation_steps = 3;
        (void)bench_estimate(b);
        const double of_three = bench_bytes_at(b, ADV_AT_LOSS, "saved_activations");
        const double host = b->estimate.host_bytes_per_host;
        b->plan.family.gradient_accumulation_steps = 2;
        (void)bench_estimate(b);
        assert_close(bench_bytes_at(b, ADV_AT_LOSS, "saved_activations"), cases[i].times * of_three, 1e-9);
        assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "saved_activations"), cases[i].times * of_three,
                     1e-9);
        assert_close(b->estimate.host_bytes_per_host, cases[i].times * host, 1e-9);
    }
}

static void logits_stay_for_the_gradient_of_the_head(void **state)
{
    (void)state;
    struct bench *b = open_sliced("qwen3-4b", "v6e", ADV_AXIS_COUNT);
    (void)bench_estimate(b);
    const double on_one = bench_bytes_at(b, ADV_AT_BACKWARD, "logits");
    b = open_sliced("qwen3-4b", "v6e", ADV_AXIS_DATA);
    (void)bench_estimate(b);
    assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "logits"),
                 b->constants.sliced_late_logits_tensors * 2.0 * 4096 * 151936, 1e-9);
    assert_true(bench_bytes_at(b, ADV_AT_BACKWARD, "logits") > 4.0 * on_one);
}

/* Whether the stack of layer inputs is copied: by norms of queries and keys, and by which of sequence and emb
 * (4096 of all three) is longer. */
static void stacks_are_turned_where_those_of_one_slice_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        int seq_len;
        int tiles;
        bool copied;
    } cases[] = {{"qwen3-8b", 8192, 1, true},     {"qwen3-8b", 2048, 1, false},
                 {"llama3.1-8b", 8192, 1, false}, {"llama3.1-8b", 2048, 1, true},
                 {"qwen3-8b", 8192, 4, false},    {"llama3.1-8b", 2048, 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_sliced(cases[i].model, "v6e", ADV_AXIS_DATA);
        b->plan.family.seq_len = cases[i].seq_len;
        b->plan.num_vocab_tiling = cases[i].tiles;
        (void)bench_estimate(b);
        const double stack = 2.0 * cases[i].seq_len * 4096 * (double)b->model.layers[0].count;
        const double copies = cases[i].copied ? b->constants.sliced_stack_copies * stack : 0.0;
        assert_close(bench_bytes_at(b, ADV_AT_LOSS, "turned_activations"), copies, 1e-9);
        assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "turned_activations"), copies, 1e-9);
        /* gradients come when the copies have been read */
        const double all = bench_bytes_at(b, ADV_AT_UPDATE, "gradients");
        assert_true(all > 0.0);
        assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "gradients"), fmax(0.0, all - copies), 1e-9);
        b->cluster.chip.hbm_usable_bytes_per_device = 1.0; /* what is there before the loss does not wait */
        (void)bench_estimate(b);
        assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "turned_activations"), copies, 1e-9);
    }
}

/* The larger product of a gated feed-forward, on v6e; not the only one of others, and nothing of it without
 * transfers. None is there at the loss. */
static void stacks_of_the_feed_forward_are_turned_beside_transfers(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        enum adv_tensor kept;
        enum adv_placement context;
        double stacks;
    } cases[] = {{"llama3.1-8b", ADV_TENSOR_MLPWI_0, ADV_PLACE_OFFLOAD, 1.0},
                 {"llama3.1-8b", ADV_TENSOR_MLPWI_0, ADV_PLACE_REMAT, 0.0},
                 {"gpt3-6b", ADV_TENSOR_MLPWI, ADV_PLACE_OFFLOAD, 0.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_sliced(cases[i].model, "v6e", ADV_AXIS_DATA);
        b->plan.placements[ADV_TENSOR_CONTEXT] = cases[i].context;
        b->plan.placements[cases[i].kept] = ADV_PLACE_DEVICE;
        (void)bench_estimate(b);
        const struct adv_layer *layer = &b->model.layers[0];
        const double stack = 2.0 * 4096 * (double)layer->mlp_dim * (double)layer->count;
        assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "turned_activations"),
                     cases[i].stacks * b->constants.turned_mlp_copies * stack, 1e-9);
        assert_close(bench_bytes_at(b, ADV_AT_LOSS, "turned_activations"), 0.0, 0.0);
    }
}

static void tensors_for_two_iterations_come_back_from_the_host(void **state)
{
    (void)state;
    struct bench *b = open_sliced("llama3.1-8b", "v6e", ADV_AXIS_COUNT);
    b->plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    (void)bench_estimate(b);
    const double on_one = bench_bytes_at(b, ADV_AT_BACKWARD, "host_staging");
    assert_true(on_one > 0.0);
    b = open_sliced("llama3.1-8b", "v6e", ADV_AXIS_DATA);
    b->plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    (void)bench_estimate(b);
    assert_close(bench_bytes_at(b, ADV_AT_BACKWARD, "host_staging"),
                 on_one * b->constants.sliced_staging_tensors / b->constants.offload_staging_tensors, 1e-9);
    assert_true(b->constants.sliced_staging_tensors > b->constants.offload_staging_tensors);
}

/* Gradients of a stage's layers are zeroed before the loss, but not beside logits that are large. */
static void a_pipeline_has_its_gradients_at_the_loss(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        bool zeroed;
    } cases[] = {{"llama2-70b", true}, {"qwen3-1.7b", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_sliced(cases[i].model, "v5p", ADV_AXIS_COUNT);
        bench_axes(b, ADV_AXIS_STAGE, 4);
        b->plan.family.pipeline_microbatches = 4;
        (void)bench_estimate(b);
        const double zeros = bench_bytes_at(b, ADV_AT_LOSS, "gradients");
        const double all = bench_bytes_at(b, ADV_AT_BACKWARD, "gradients");
        assert_int_equal(zeros > 0.0, cases[i].zeroed);
        assert_true(!cases[i].zeroed || (zeros > 0.9 * all && zeros < all));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_microbatches_of_two_are_kept),
        cmocka_unit_test(logits_stay_for_the_gradient_of_the_head),
        cmocka_unit_test(stacks_are_turned_where_those_of_one_slice_are_not),
        cmocka_unit_test(stacks_of_the_feed_forward_are_turned_beside_transfers),
        cmocka_unit_test(tensors_for_two_iterations_come_back_from_the_host),
        cmocka_unit_test(a_pipeline_has_its_gradients_at_the_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
