/* Inputs of layers that are kept for the backward pass, by what a remat policy says of them. */
#include "tests/unit/cost_fixture.h"

static struct bench *open_cube(const char *model)
{
    static struct bench b;
    bench_open(&b, model, "v5p", 4, 4, 4);
    return &b;
}

/* Inputs of all layers, in units of one layer's, by where they are kept. */
static struct adv_saved inputs_of(const char *model, enum adv_placement place)
{
    struct bench *b = open_cube(model);
    struct adv_saved sum = {{0.0}, 0.0};
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) b->plan.placements[i] = ADV_PLACE_REMAT;
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = place;
    bench_place(b);
    for (int i = 0; i < b->model.layer_kinds_count; i++) {
        struct adv_saved saved = adv_memory_layer_saved(&b->cost, &b->model.layers[i]);
        for (int p = 0; p < ADV_PLACE_COUNT; p++)
            sum.bytes[p] +=
                saved.bytes[p] * b->model.layers[i].count / (2.0 * b->cost.tokens * (double)b->model.emb_dim);
    }
    return sum;
}

static void a_scan_step_keeps_its_input_and_a_policy_that_names_them_its_layers(void **state)
{
    (void)state;
    /* stacks of compiled steps: 8 x 4 layers, 8 x 6, 12 x 2; a pair of gemma2 is one layer; qwen3.5 and
     * qwen3-next name none, and the second keeps those of the loops inside its blocks, 12 x 3 and 12 x 1 */
    const struct {
        const char *model;
        double steps, device, host;
    } rows[] = {{"llama3.1-8b", 32, 32, 32},      {"olmo3-7b", 8, 32, 32},   {"gemma3-12b", 8, 48, 48},
                {"gpt-oss-20b", 12, 24, 24},      {"gemma2-9b", 21, 21, 21}, {"qwen3.5-35b-a3b", 10, 10, 0},
                {"qwen3-next-80b-a3b", 48, 48, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *model = rows[i].model;
        assert_close(inputs_of(model, ADV_PLACE_REMAT).bytes[ADV_PLACE_DEVICE], rows[i].steps, 1e-9);
        assert_close(inputs_of(model, ADV_PLACE_DEVICE).bytes[ADV_PLACE_DEVICE], rows[i].device, 1e-9);
        assert_close(inputs_of(model, ADV_PLACE_OFFLOAD).bytes[ADV_PLACE_OFFLOAD], rows[i].host, 1e-9);
    }
}

static void a_loop_of_one_layer_sends_nothing_to_the_host(void **state)
{
    (void)state;
    const struct adv_saved saved = inputs_of("deepseek2-16b", ADV_PLACE_OFFLOAD);
    assert_close(saved.bytes[ADV_PLACE_DEVICE], 1.0, 1e-9); /* the dense layer's */
    assert_close(saved.bytes[ADV_PLACE_OFFLOAD], 26.0, 1e-9);
}

/* Compiled with 12 layers and mlpwi_0 on the host: ten layers' are there, the two full-attention layers' are
 * not. */
static void a_full_attention_layer_alone_in_its_loop_sends_nothing_to_the_host(void **state)
{
    (void)state;
    struct bench *b = open_cube("gemma4-31b");
    b->plan.policy = ADV_POLICY_CUSTOM;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) b->plan.placements[i] = ADV_PLACE_REMAT;
    b->plan.placements[ADV_TENSOR_MLPWI_0] = ADV_PLACE_OFFLOAD;
    for (int scans = 0; scans < 2; scans++) {
        b->plan.family.scan_layers = scans;
        bench_place(b);
        for (int i = 0; i < b->model.layer_kinds_count; i++) {
            const struct adv_layer *layer = &b->model.layers[i];
            const double host = adv_memory_layer_saved(&b->cost, layer).bytes[ADV_PLACE_OFFLOAD];
            assert_int_equal(host > 0.0, !scans || layer->attention != ADV_ATTENTION_FULL);
        }
    }
}

/* Bytes that a kept up-projection takes: at the loss, in the backward pass. */
static void taken_by_mlpwi_0(const char *model, double taken[2])
{
    struct bench *b = open_cube(model);
    b->plan.policy = ADV_POLICY_CUSTOM;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) b->plan.placements[i] = ADV_PLACE_REMAT;
    const struct adv_estimate none = *bench_estimate(b);
    b->plan.placements[ADV_TENSOR_MLPWI_0] = ADV_PLACE_DEVICE;
    const struct adv_estimate *one = bench_estimate(b);
    taken[0] = one->loss_peak_bytes - none.loss_peak_bytes;
    taken[1] = one->backward_peak_bytes - none.backward_peak_bytes;
}

static void what_a_block_keeps_its_other_layers_do_not_leave(void **state)
{
    (void)state;
    double taken[2];
    taken_by_mlpwi_0("llama3.1-8b", taken);
    assert_close(taken[1], taken[0], 1e-9);
    taken_by_mlpwi_0("olmo3-7b", taken); /* 32 stacked, of up to 3 in the block not made again */
    assert_true(taken[1] < taken[0] * (1.0 - 1.0 / 32.0) && taken[1] > taken[0] * (1.0 - 3.0 / 32.0));
    taken_by_mlpwi_0("gemma2-9b", taken); /* 42, and 1 */
    assert_true(taken[1] < taken[0] && taken[1] > taken[0] * (1.0 - 1.0 / 42.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scan_step_keeps_its_input_and_a_policy_that_names_them_its_layers),
        cmocka_unit_test(a_loop_of_one_layer_sends_nothing_to_the_host),
        cmocka_unit_test(a_full_attention_layer_alone_in_its_loop_sends_nothing_to_the_host),
        cmocka_unit_test(what_a_block_keeps_its_other_layers_do_not_leave),
    };
    return run_group(tests);
}
