/* Stacks of saved tensors that XLA copies whole, in another layout, for the iteration that it takes out of
 * the backward loop. */
#include "tests/unit/cost_fixture.h"

#include <math.h>

static double turned_at(const struct bench *b, enum adv_memory_at at)
{
    return bench_bytes_at(b, at, "turned_activations");
}

/* At the moment that has most of them. */
static double turned_most(const struct bench *b)
{
    return fmax(turned_at(b, ADV_AT_LOSS), turned_at(b, ADV_AT_BACKWARD));
}

/* The copies of one stack that llama3.1-8b makes with its context and `sent` on the host and `kept` on the
 * device, on the slice x * y * z with `batch` sequences of `seq_len` tokens a device, as compiled steps had
 * them. */
static double copies_of(const char *chip, int x, int y, int z, double batch, int64_t seq_len,
                        enum adv_tensor kept, enum adv_tensor sent)
{
    static struct bench b;
    bench_open(&b, "llama3.1-8b", chip, x, y, z);
    b.plan.family.per_device_batch_size = batch;
    b.plan.family.seq_len = seq_len;
    bench_policy(&b, ADV_POLICY_CUSTOM);
    b.plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    b.plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    b.plan.placements[sent] = ADV_PLACE_OFFLOAD;
    b.plan.placements[kept] = ADV_PLACE_DEVICE;
    (void)bench_estimate(&b);
    double width = kept == ADV_TENSOR_DECODER_LAYER_INPUT ? 4096.0 : 14336.0;
    return turned_most(&b) / (32.0 * 2.0 * batch * (double)seq_len * width);
}

static void stacks_are_copied_where_the_loops_want_them_in_unlike_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        int x, y, z;
        double batch;
        int64_t seq_len;
        enum adv_tensor kept, sent;
        double least, most;
    } cases[] = {{"v6e", 8, 8, 1, 1, 8192, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_CONTEXT, 0.9, 1.1},
                 {"v6e", 8, 8, 1, 4, 2048, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_CONTEXT, 0.0,
                  0.1}, /* shorter than emb */
                 /* windowed einsums: mostly gone at the fullest moment */
                 {"v6e", 4, 4, 1, 1, 8192, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_CONTEXT, 0.1, 0.4},
                 {"v6e", 4, 4, 1, 4, 2048, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_CONTEXT, 0.0, 0.1},
                 {"tpu7x", 4, 4, 4, 1, 8192, ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_CONTEXT, 0.0, 0.1},
                 {"v6e", 8, 8, 1, 1, 8192, ADV_TENSOR_MLPWI_0, ADV_TENSOR_CONTEXT, 0.9, 1.1},
                 {"v6e", 8, 8, 1, 4, 2048, ADV_TENSOR_MLPWI_0, ADV_TENSOR_CONTEXT, 0.9, 1.1},
                 {"v4", 4, 4, 4, 1, 8192, ADV_TENSOR_MLPWI_0, ADV_TENSOR_CONTEXT, 0.0, 0.1},
                 {"v4", 2, 2, 4, 1, 8192, ADV_TENSOR_MLPWI_0, ADV_TENSOR_CONTEXT, 0.0,
                  0.1}, /* the second is computed again */
                 {"v4", 2, 2, 4, 1, 8192, ADV_TENSOR_MLPWI_0, ADV_TENSOR_MLPWI_1, 0.7, 1.1},
                 {"v4", 2, 2, 4, 1, 8192, ADV_TENSOR_MLPWI_1, ADV_TENSOR_MLPWI_0, 0.7, 1.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double copies = copies_of(cases[i].chip, cases[i].x, cases[i].y, cases[i].z, cases[i].batch,
                                  cases[i].seq_len, cases[i].kept, cases[i].sent);
        if (!(copies >= cases[i].least && copies <= cases[i].most))
            fail_msg("case %zu: %.3f copies", i, copies);
    }
}

/* Bytes of turned stacks where all of a layer's products are kept, of weights that are gathered whole. */
static double turned_bytes(const char *model, int64_t seq_len)
{
    static struct bench b;
    bench_open(&b, model, "v6e", 8, 8, 1);
    b.plan.family.seq_len = seq_len;
    bench_policy(&b, ADV_POLICY_CUSTOM);
    b.plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    b.plan.placements[ADV_TENSOR_OUT_PROJ] = ADV_PLACE_DEVICE;
    b.plan.placements[ADV_TENSOR_MLPWI_0] = b.plan.placements[ADV_TENSOR_MLPWI_1] = ADV_PLACE_DEVICE;
    (void)bench_estimate(&b);
    return turned_most(&b);
}

static void blocks_of_layers_read_their_stacks_as_they_lie(void **state)
{
    (void)state;
    assert_true(turned_bytes("llama3.1-8b", 8192) > 0.0);
    assert_close(turned_bytes("gemma2-9b", 8192), 0.0, 0.0);
    assert_close(turned_bytes("olmo3-7b", 2048), 0.0, 0.0);
    assert_true(turned_bytes("gemma3-12b", 2048) > 0.0); /* 6 stacks of 8 blocks were copied */
}

/* `b` with one tensor on the device, by windowed einsums (v4 2x2x4) or of weights that are gathered whole
 * (v6e 8x8); the others that may be turned go to the host. */
static double turned_of(struct bench *b, const char *model, bool gathers, enum adv_tensor kept)
{
    static const enum adv_tensor named[] = {ADV_TENSOR_DECODER_LAYER_INPUT, ADV_TENSOR_CONTEXT,
                                            ADV_TENSOR_OUT_PROJ, ADV_TENSOR_MLPWI_0, ADV_TENSOR_MLPWI_1};
    if (gathers)
        bench_open(b, model, "v6e", 8, 8, 1);
    else
        bench_open(b, model, "v4", 2, 2, 4);
    b->plan.family.seq_len = 8192;
    bench_policy(b, ADV_POLICY_CUSTOM);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        b->plan.placements[named[i]] = named[i] == kept ? ADV_PLACE_DEVICE : ADV_PLACE_OFFLOAD;
    (void)bench_estimate(b);
    return turned_most(b);
}

/* Seen in compiled steps: of 16 shards those of 4,096 columns fill lanes, those of 5,120 do not; an output
 * projection is turned with the layer's input only. Some copies are there at the loss, none of [tokens, emb]
 * where weights are gathered whole. */
static void copies_take_whole_lanes_and_the_layers_input(void **state)
{
    (void)state;
    static struct bench b;
    assert_true(turned_of(&b, "llama3.1-8b", false, ADV_TENSOR_MLPWI_0) > 0.0);
    assert_true(turned_at(&b, ADV_AT_LOSS) > 0.0);
    assert_true(turned_at(&b, ADV_AT_LOSS) < turned_at(&b, ADV_AT_BACKWARD));
    assert_close(turned_of(&b, "llama2-13b", false, ADV_TENSOR_MLPWI_0), 0.0, 0.0);
    assert_true(turned_of(&b, "llama2-13b", true, ADV_TENSOR_MLPWI_0) > 0.0); /* gathered whole */
    assert_close(turned_of(&b, "llama3.1-8b", true, ADV_TENSOR_OUT_PROJ), 0.0, 0.0);
    assert_true(turned_of(&b, "llama3.1-8b", true, ADV_TENSOR_DECODER_LAYER_INPUT) > 0.0);
    assert_close(turned_at(&b, ADV_AT_LOSS), 0.0, 0.0);
}

/* Layouts as the loops of compiled steps had them; weights by windowed einsums but where said. */
static void layer_inputs_are_turned_by_shards_lengths_norms_and_heads(void **state)
{
    (void)state;
    static const struct {
        const char *model, *chip;
        int x, y, z;
        int64_t seq_len;
        bool turns;
    } cases[] = {
        {"llama3.1-8b", "v4", 2, 2, 4, 2048, false}, /* 256 columns fill lanes; shorter than emb */
        {"llama3.1-8b", "v4", 2, 2, 4, 8192, true},
        {"qwen3-8b", "v4", 2, 2, 4, 2048, true},     /* norms of queries and keys */
        {"llama2-13b", "v4", 2, 2, 4, 4096, true},   /* 320 columns do not fill lanes */
        {"qwen3-14b", "v4", 2, 2, 4, 4096, false},   /* nor do these, beside norms */
        {"gemma-7b", "v6e", 2, 4, 1, 2048, true},    /* heads of 256; 384 columns */
        {"gemma-7b", "v4", 2, 2, 4, 2048, false},    /* 192 columns */
        {"llama3.1-8b", "v6e", 8, 8, 1, 8192, true}, /* gathered whole, from here on */
        {"llama3.1-8b", "v6e", 8, 8, 1, 2048, false},
        {"qwen3-8b", "v6e", 8, 8, 1, 8192, false},
        {"qwen3-8b", "v6e", 8, 8, 1, 2048, true},
        {"gemma-7b", "v6e", 8, 8, 1, 8192, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct bench b;
        bench_open(&b, cases[i].model, cases[i].chip, cases[i].x, cases[i].y, cases[i].z);
        b.plan.family.per_device_batch_size = 4;
        b.plan.family.seq_len = cases[i].seq_len;
        bench_policy(&b, ADV_POLICY_CUSTOM);
        b.plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
        (void)bench_estimate(&b);
        const double stack =
            2.0 * 4 * (double)cases[i].seq_len * (double)b.model.emb_dim * (double)b.model.layers_count;
        const double copies = turned_most(&b) / stack;
        if ((copies > 0.1) != cases[i].turns) fail_msg("case %zu: %.3f copies", i, copies);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_are_copied_where_the_loops_want_them_in_unlike_layouts),
        cmocka_unit_test(blocks_of_layers_read_their_stacks_as_they_lie),
        cmocka_unit_test(copies_take_whole_lanes_and_the_layers_input),
        cmocka_unit_test(layer_inputs_are_turned_by_shards_lengths_norms_and_heads),
    };
    return run_group(tests);
}
