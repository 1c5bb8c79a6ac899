/* The cost of one layer, the head and the loss on the TensorCore, with rates at their peaks and launches
 * free. */
#include "tests/unit/cost_fixture.h"

#include "engine/base/units.h"
#include "engine/cost/layer.h"

/* llama3.1-8b on 4x4x4 of `chip`, round constants. */
static struct bench *open_round(const char *chip)
{
    static struct bench b;
    bench_open(&b, "llama3.1-8b", chip, 4, 4, chip[1] == '6' ? 1 : 4);
    round_constants(&b);
    return &b;
}

static void a_matmul_is_padded_to_the_array(void **state)
{
    (void)state;
    struct bench *b = open_round("tpu7x");
    bench_place(b);
    double rate = 1153.5e12; /* half a chip */
    assert_close(adv_cost_matmul_s(&b->cost, 4096, 4096, 4096, false), 2.0 * 4096 * 4096 * 4096 / rate,
                 1e-12);
    /* 300 -> 512 columns, 500 -> 512 rows */
    assert_close(adv_cost_matmul_s(&b->cost, 1e6, 500, 300, false), 2.0 * 1e6 * 512 * 512 / rate, 1e-12);
    /* v5p pads to 128 */
    b = open_round("v5p");
    bench_place(b);
    assert_close(adv_cost_matmul_s(&b->cost, 1e6, 500, 300, false), 2.0 * 1e6 * 512 * 384 / 459e12, 1e-12);
}

static void a_thin_matmul_waits_for_its_weights(void **state)
{
    (void)state;
    struct bench *b = open_round("v5p");
    bench_place(b);
    /* 8 rows: 2 B x (8 k + k n + 8 n) at 2765 GB/s */
    double bytes = 2.0 * (8.0 * 8192 + 8192.0 * 8192 + 8.0 * 8192);
    assert_close(adv_cost_matmul_s(&b->cost, 8, 8192, 8192, false), bytes / 2765e9, 1e-12);
    assert_close(adv_cost_matmul_s(&b->cost, 0, 8192, 8192, false), 0.0, 0.0);
}

static void a_short_contraction_waits_for_its_sums(void **state)
{
    (void)state;
    struct bench *b = open_round("v5p");
    b->constants.step_matmul_results_per_s_per_device = 1e11;
    bench_place(b);
    /* 459 TFLOP/s make 1e11 sums of 2295 products each */
    const double sums_s = 8192.0 * 16384 / 1e11;
    assert_close(adv_cost_matmul_s(&b->cost, 8192, 512, 16384, false), sums_s, 1e-12);
    assert_close(adv_cost_matmul_s(&b->cost, 8192, 2048, 16384, false), sums_s, 1e-12);
    assert_close(adv_cost_matmul_s(&b->cost, 8192, 4096, 16384, false), 2.0 * 8192 * 4096 * 16384 / 459e12,
                 1e-12);
    /* backward the inputs' gradient contracts the columns, the weights' the rows */
    const struct adv_projection narrow = {.k = 4096, .n = 512, .split = ADV_SPLIT_NONE};
    const double rows = b->cost.tokens;
    assert_close(adv_cost_projection_s(&b->cost, &narrow, ADV_PASS_FWD), 2.0 * rows * 4096 * 512 / 459e12,
                 1e-12);
    assert_close(adv_cost_projection_s(&b->cost, &narrow, ADV_PASS_BWD),
                 rows * 4096 / 1e11 + 2.0 * rows * 4096 * 512 / 459e12, 1e-12);
}

static void only_native_formats_are_faster(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        enum adv_quantization quantization;
        double ratio; /* of the peaks */
    } cases[] = {{"tpu7x", ADV_QUANT_FP8_FULL, 2.0}, {"tpu7x", ADV_QUANT_INT8, 1.0},
                 {"v5p", ADV_QUANT_INT8, 2.0},       {"v5p", ADV_QUANT_FP8_FULL, 1.0},
                 {"v6e", ADV_QUANT_FP8, 1.0},        {"v6e", ADV_QUANT_INT8, 2.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_round(cases[i].chip);
        b->plan.family.quantization = cases[i].quantization;
        bench_place(b);
        double ratio = adv_cost_matmul_s(&b->cost, 65536, 8192, 8192, false) /
                       adv_cost_matmul_s(&b->cost, 65536, 8192, 8192, true);
        assert_close(ratio, cases[i].ratio, 2e-3);
    }
}

static void each_device_casts_the_whole_layer_in_every_pass(void **state)
{
    (void)state;
    double seconds[2];
    for (int large = 0; large < 2; large++) {
        static struct bench b;
        bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, large ? 16 : 4);
        round_constants(&b);
        b.plan.family.quantization = ADV_QUANT_FP8_FULL;
        (void)bench_layer(&b, 0);
        seconds[large] = b.account.slots[ADV_TERM_QUANTIZE_WEIGHTS].seconds;
        /* dynamic scales; 218.1 M parameters of the layer (its norms stay bf16) */
        double bytes =
            b.constants.step_quantize_dynamic_bytes * 4096.0 * (4096 + 1024 + 1024 + 4096 + 3 * 14336);
        assert_close(seconds[large], 3.0 * bytes / 3690e9, 1e-12);
    }
    assert_close(seconds[0], seconds[1], 1e-12);
}

static void fixed_scales_read_fewer_bytes(void **state)
{
    (void)state;
    struct bench *b = open_round("tpu7x");
    b->plan.family.quantization = ADV_QUANT_FP8_FULL;
    (void)bench_layer(b, 0);
    double dynamic_s = b->account.slots[ADV_TERM_QUANTIZE_ACTIVATIONS].seconds;
    b->plan.family.quantization_static = true;
    (void)bench_layer(b, 0);
    assert_close(b->account.slots[ADV_TERM_QUANTIZE_ACTIVATIONS].seconds / dynamic_s,
                 b->constants.step_quantize_static_bytes / b->constants.step_quantize_dynamic_bytes, 1e-12);
}

static void tensor_parallelism_changes_no_flops(void **state)
{
    (void)state;
    struct bench *b = open_round("v5p");
    struct adv_layer_time alone = bench_layer(b, 0);
    double flops = executed_flops(b), matmul_s = b->account.slots[ADV_TERM_MATMUL_FWD].seconds;
    bench_axes(b, ADV_AXIS_TENSOR, 4);
    struct adv_layer_time sharded = bench_layer(b, 0);
    assert_close(executed_flops(b), flops, 1e-12);
    assert_close(b->account.slots[ADV_TERM_MATMUL_FWD].seconds, matmul_s,
                 1e-12); /* every side divides by 128 x 4 */
    assert_close(sharded.pass_s[ADV_PASS_BWD], alone.pass_s[ADV_PASS_BWD], 0.05);
}

static void a_window_bounds_what_a_token_sees(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "gemma3-4b", "v5p", 4, 4, 4);
    b.plan.family.seq_len = 32768;
    int local = b.model.layers[0].window_tokens > 0 ? 0 : 1;
    (void)bench_layer(&b, local);
    /* 2 FLOPs x tokens x 1024 of the window x 8 heads x (256 + 256) */
    assert_close(b.account.slots[ADV_TERM_ATTENTION_FWD].flops, 2.0 * 32768 * 1024 * 8 * 512, 1e-12);
    (void)bench_layer(&b, 1 - local);
    assert_close(b.account.slots[ADV_TERM_ATTENTION_FWD].flops, 2.0 * 32768 * 16384 * 8 * 512, 1e-12);
}

static void a_delta_net_fills_the_array_as_far_as_its_chunk(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "qwen3-next-80b-a3b", "tpu7x", 4, 4, 4);
    round_constants(&b);
    int linear = b.model.layers[0].attention == ADV_ATTENTION_LINEAR ? 0 : 1;
    (void)bench_layer(&b, linear);
    double flops = 4096.0 * 8 * 32 * 128 * 128; /* per token and value head 8 x key x value */
    const struct adv_slot *forward = &b.account.slots[ADV_TERM_ATTENTION_FWD];
    assert_close(forward->flops, flops, 1e-12);
    assert_close(forward->seconds, flops / (1153.5e12 * 64.0 / 256.0), 1e-12); /* chunks of 64 rows */
    assert_close(b.account.slots[ADV_TERM_ATTENTION_BWD].seconds, 2.0 * forward->seconds, 1e-12);
    assert_true(b.account.slots[ADV_TERM_ATTENTION_RECOMPUTE].seconds > 0.0);
}

static void dropless_experts_compute_each_choice_once(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "mixtral-8x7b", "v5p", 4, 4, 4);
    (void)bench_layer(&b, 0);
    double per_row = 3.0 * 2.0 * 4096 * 14336; /* gate, up, down */
    assert_close(b.account.slots[ADV_TERM_GMM_FWD].flops, 4096.0 * 2 * per_row, 1e-12);
    assert_close(b.account.slots[ADV_TERM_GMM_BWD].flops, 4096.0 * 4 * per_row, 1e-12);
    /* a capacity factor pads every expert to it */
    b.plan.family.moe = ADV_MOE_DENSE;
    b.plan.family.capacity_factor = 1.25;
    (void)bench_layer(&b, 0);
    assert_close(b.account.slots[ADV_TERM_GMM_FWD].flops, 1.25 * 4096 * 2 * per_row, 1e-12);
    /* without grouping and without dropping every expert computes every token */
    b.plan.family.capacity_factor = -1.0;
    (void)bench_layer(&b, 0);
    assert_close(b.account.slots[ADV_TERM_GMM_FWD].flops, 4096.0 * 8 * per_row, 1e-12);
}

static void grouped_experts_recompute_what_is_not_named(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "mixtral-8x7b", "v5p", 4, 4, 4);
    bench_policy(&b, ADV_POLICY_CUSTOM);
    (void)bench_layer(&b, 0);
    double forward = b.account.slots[ADV_TERM_GMM_FWD].flops;
    assert_close(b.account.slots[ADV_TERM_GMM_RECOMPUTE].flops, forward,
                 1e-12);                                      /* the weighted sum needs wo's rows */
    b.plan.placements[ADV_TENSOR_MLPWI_0] = ADV_PLACE_DEVICE; /* the gate carries this name too */
    b.plan.placements[ADV_TENSOR_MLPWI_1] = ADV_PLACE_DEVICE; /* the other input does not */
    (void)bench_layer(&b, 0);
    assert_close(b.account.slots[ADV_TERM_GMM_RECOMPUTE].flops, forward * 2.0 / 3.0, 1e-12);
    b.plan.placements[ADV_TENSOR_MOE_MLPWI_1] = b.plan.placements[ADV_TENSOR_MOE_MLPWO] = ADV_PLACE_OFFLOAD;
    (void)bench_layer(&b, 0);
    assert_close(b.account.slots[ADV_TERM_GMM_RECOMPUTE].flops, 0.0, 0.0);
}

/* Bytes of the gathers that sort one layer's 4096 x 2 choices, and of its activation, of mixtral-8x7b. */
static const double sorted_bytes = 2.0 * 2.0 * 4096 * 4096 * 2, activated_bytes = 2.0 * 3 * 14336 * 4096 * 2;

static void routed_rows_are_sorted_again_where_they_arrive_in_whole_buffers(void **state)
{
    (void)state;
    static struct bench b;
    static const struct {
        int expert;
        bool ring;
        double factor, growth, dispatch, combine; /* the float32 sum counts one and a half */
    } cases[] = {
        {1, false, -1.0, 1.0, 1.0, 1.5}, {4, false, -1.0, 4.0, 5.0, 5.5}, /* 8 experts, 2 of them for a token:
                                                                             at most all of 4 peers' tokens */
        {8, false, -1.0, 4.0, 5.0, 5.5}, {4, false, 1.5, 1.5, 2.5, 3.0},  {4, true, -1.0, 4.0, 4.0, 6.0},
        {4, true, 1.5, 1.5, 1.5, 2.25},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench_open(&b, "mixtral-8x7b", "v5p", 4, 4, 4);
        bench_axes(&b, ADV_AXIS_EXPERT, cases[i].expert);
        b.plan.family.float32_weight_sum = true;
        b.plan.family.use_ring_of_experts = cases[i].ring;
        b.plan.family.ragged_buffer_factor = cases[i].factor;
        (void)bench_layer(&b, 0);
        assert_close(adv_memory_routed_growth(&b.cost, &b.model.layers[0]), cases[i].growth, 0.0);
        double both = cases[i].dispatch + cases[i].combine, activated = cases[i].growth * activated_bytes;
        double weigh = cases[i].ring ? cases[i].growth : 1.0;
        const struct adv_slot *slots = b.account.slots;
        assert_close(slots[ADV_TERM_ROUTE_FWD].bytes, both * sorted_bytes + activated, 1e-12);
        assert_close(slots[ADV_TERM_ROUTE_RECOMPUTE].bytes, cases[i].dispatch * sorted_bytes + activated,
                     1e-12);
        assert_close(slots[ADV_TERM_ROUTE_BWD].bytes, (both + weigh) * sorted_bytes + 2.0 * activated, 1e-12);
    }
}

static double working_set_bytes(struct bench *b)
{
    (void)bench_estimate(b);
    for (int i = 0; i < b->ledger.memory_count; i++)
        if (!strcmp(b->ledger.memory[i].name, "layer_working_set"))
            return b->ledger.memory[i].bytes_per_device;
    return 0.0;
}

static void tensor_shards_sort_the_tokens_of_all_of_them(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "mixtral-8x7b", "v5p", 4, 4, 4);
    b.plan.family.float32_weight_sum = false;
    double alone = working_set_bytes(&b);
    bench_axes(&b, ADV_AXIS_TENSOR, 4);
    (void)bench_layer(&b, 0);
    /* in: four times the rows; out: reduced to a quarter of the columns */
    assert_close(b.account.slots[ADV_TERM_ROUTE_FWD].bytes, 5.0 * sorted_bytes + activated_bytes, 1e-12);
    assert_true(working_set_bytes(&b) > 1.5 * alone);
}

static void unrolled_layers_recompute_like_scanned_ones(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "llama3.1-8b", "tpu7x", 4, 4, 4);
    double scanned_s = bench_estimate(&b)->step_time_s;
    b.plan.family.scan_layers = false;
    assert_close(bench_estimate(&b)->step_time_s, scanned_s, 1e-12);
}

static void small_gemma4_with_room_recomputes_nothing_and_keeps_everything(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "gemma4-e2b", "tpu7x", 4, 4, 4);
    (void)bench_estimate(&b);
    double scanned_bytes = bench_bytes(&b, "saved_activations");
    b.plan.family.scan_layers = false;
    bench_place(&b);
    assert_true(adv_memory_keeps_everything(&b.cost, &b.params));
    (void)bench_estimate(&b);
    assert_close(bench_term(&b, "matmul_recompute").seconds, 0.0, 0.0);
    assert_close(bench_term(&b, "attention_recompute").seconds, 0.0, 0.0);
    assert_true(bench_bytes(&b, "early_recomputation") > 7.0 * scanned_bytes);
    b.plan.family.per_device_batch_size = 64;
    (void)bench_estimate(&b);
    assert_true(bench_term(&b, "matmul_recompute").seconds > 0.0);
}

static void a_lookup_is_a_gather_or_a_one_hot_matmul(void **state)
{
    (void)state;
    struct bench *b = open_round("v5p");
    bench_place(b);
    adv_cost_head(&b->cost, &b->account);
    /* rows read and written, their gradients read, sorted and added: five times 2 B x 4096 tokens x 4096 */
    assert_close(b->account.slots[ADV_TERM_EMBEDDING].seconds, 10.0 * 4096 * 4096 / 2765e9, 1e-12);
    b->plan.family.use_iota_embed = true;
    bench_place(b);
    adv_cost_head(&b->cost, &b->account);
    double flops = 2.0 * 2.0 * 4096 * 128256.0 * 4096; /* forward and the table's gradient */
    assert_close(b->account.slots[ADV_TERM_EMBEDDING].flops, flops, 1e-12);
    assert_close(b->account.slots[ADV_TERM_EMBEDDING].seconds, flops / 459e12,
                 1e-12); /* 128256 = 1002 x 128 */
}

static void logits_cost_three_matmuls_and_a_fourth_when_tiled(void **state)
{
    (void)state;
    struct bench *b = open_round("v5p");
    double matmul = 2.0 * 4096 * 4096 * 128256.0;
    for (int tiled = 0; tiled < 2; tiled++) {
        b->plan.num_vocab_tiling = tiled ? 4 : 1;
        bench_place(b);
        adv_cost_head(&b->cost, &b->account);
        assert_close(b->account.slots[ADV_TERM_LOGITS].flops, (tiled ? 4.0 : 3.0) * matmul, 1e-12);
        double loss_bytes = b->constants.cross_entropy_bytes * 4096 * 128256.0;
        assert_close(b->account.slots[ADV_TERM_CROSS_ENTROPY].seconds, loss_bytes / 2765e9, 1e-12);
    }
}

static void a_prediction_module_is_a_layer_a_projection_and_a_head(void **state)
{
    (void)state;
    static struct bench b;
    adv_err err;
    adv_err_init(&err);
    bench_open(&b, "deepseek3-671b", "v5p", 4, 4, 4);
    struct adv_layer_time layer = bench_layer(&b, 1);
    double layer_s =
        layer.pass_s[ADV_PASS_FWD] + layer.pass_s[ADV_PASS_RECOMPUTE] + layer.pass_s[ADV_PASS_BWD];
    bench_place(&b);
    assert_int_equal(adv_cost_mtp(&b.cost, &b.account, &err), ADV_OK);
    assert_close(b.account.slots[ADV_TERM_MTP].seconds, 0.0, 0.0); /* the model file has none on */
    b.plan.family.mtp_layers = 2;
    bench_place(&b);
    assert_int_equal(adv_cost_mtp(&b.cost, &b.account, &err), ADV_OK);
    double extra_s = 3.0 * adv_cost_matmul_s(&b.cost, 4096, 2.0 * 7168, 7168, false) +
                     3.0 * adv_cost_matmul_s(&b.cost, 4096, 7168, 129280, false);
    assert_close(b.account.slots[ADV_TERM_MTP].seconds, 2.0 * (layer_s + extra_s), 1e-12);
}

static void load_balanced_shards_put_gathered_keys_in_order(void **state)
{
    (void)state;
    static const enum adv_term_id ids[ADV_PASS_COUNT] = {
        ADV_TERM_ELEMENTWISE_FWD, ADV_TERM_ELEMENTWISE_RECOMPUTE, ADV_TERM_ELEMENTWISE_BWD};
    static const double times_moved[ADV_PASS_COUNT] = {9.0, 9.0, 8.0};
    /* 8 heads x (128 + 128) x 2 B, the sequence of 4 devices */
    const double kv_bytes = 2.0 * 8 * 256 * 4096 * 4;
    struct bench *b = open_round("v5p");
    bench_axes(b, ADV_AXIS_CONTEXT, 4);
    double plain_bytes[ADV_PASS_COUNT];
    b->plan.family.cp_load_balance = false;
    (void)bench_layer(b, 0);
    for (int p = 0; p < ADV_PASS_COUNT; p++) plain_bytes[p] = b->account.slots[ids[p]].bytes;
    b->plan.family.cp_load_balance = true;
    (void)bench_layer(b, 0);
    for (int p = 0; p < ADV_PASS_COUNT; p++)
        assert_close(b->account.slots[ids[p]].bytes, plain_bytes[p] + times_moved[p] * kv_bytes, 1e-12);
    /* a ring gathers nothing */
    b->plan.family.cp_strategy = ADV_CP_RING;
    (void)bench_layer(b, 0);
    for (int p = 0; p < ADV_PASS_COUNT; p++)
        assert_close(b->account.slots[ids[p]].bytes, plain_bytes[p], 1e-12);
}

static void naive_attention_moves_its_scores_through_hbm(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "qwen3-14b", "tpu7x", 4, 4, 4);
    b.plan.family.seq_len = 8192;
    (void)bench_layer(&b, 0);
    double splash_s = b.account.slots[ADV_TERM_ATTENTION_FWD].seconds;
    b.plan.family.attention = ADV_ATTENTION_IMPL_DOT_PRODUCT;
    (void)bench_layer(&b, 0);
    double naive_s = b.account.slots[ADV_TERM_ATTENTION_FWD].seconds;
    assert_true(naive_s > splash_s);
    /* float32 scores written once and read twice: 12 B x 40 heads x 8192 x 8192, at no more than the
     * specified rate */
    assert_true(naive_s >= 12.0 * 40 * 8192 * 8192 / 3690e9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matmul_is_padded_to_the_array),
        cmocka_unit_test(a_thin_matmul_waits_for_its_weights),
        cmocka_unit_test(a_short_contraction_waits_for_its_sums),
        cmocka_unit_test(only_native_formats_are_faster),
        cmocka_unit_test(each_device_casts_the_whole_layer_in_every_pass),
        cmocka_unit_test(fixed_scales_read_fewer_bytes),
        cmocka_unit_test(tensor_parallelism_changes_no_flops),
        cmocka_unit_test(a_window_bounds_what_a_token_sees),
        cmocka_unit_test(a_delta_net_fills_the_array_as_far_as_its_chunk),
        cmocka_unit_test(dropless_experts_compute_each_choice_once),
        cmocka_unit_test(grouped_experts_recompute_what_is_not_named),
        cmocka_unit_test(routed_rows_are_sorted_again_where_they_arrive_in_whole_buffers),
        cmocka_unit_test(tensor_shards_sort_the_tokens_of_all_of_them),
        cmocka_unit_test(unrolled_layers_recompute_like_scanned_ones),
        cmocka_unit_test(small_gemma4_with_room_recomputes_nothing_and_keeps_everything),
        cmocka_unit_test(a_lookup_is_a_gather_or_a_one_hot_matmul),
        cmocka_unit_test(logits_cost_three_matmuls_and_a_fourth_when_tiled),
        cmocka_unit_test(a_prediction_module_is_a_layer_a_projection_and_a_head),
        cmocka_unit_test(load_balanced_shards_put_gathered_keys_in_order),
        cmocka_unit_test(naive_attention_moves_its_scores_through_hbm),
    };
    return run_group(tests);
}
