/* What layers leave in HBM while others are differentiated: in blocks, out of scans, in loops of their own.
 */
#include "tests/unit/cost_fixture.h"

static double part_at(const struct bench *b, enum adv_memory_at at, const char *name)
{
    for (int i = 0; i < b->ledger.memory_count; i++)
        if (b->ledger.memory[i].at == at && strcmp(b->ledger.memory[i].name, name) == 0)
            return b->ledger.memory[i].bytes_per_device;
    return 0.0;
}

static struct bench *open_full(const char *model, const char *chip, int x, int y, int z)
{
    static struct bench b;
    bench_open(&b, model, chip, x, y, z);
    bench_policy(&b, ADV_POLICY_FULL);
    return &b;
}

static const struct adv_layer *linear_layer(const struct bench *b)
{
    for (int i = 0; i < b->model.layer_kinds_count; i++)
        if (b->model.layers[i].attention == ADV_ATTENTION_LINEAR) return &b->model.layers[i];
    fail_msg("%s has no linear layer", b->model.name);
    return NULL;
}

/* qwen3.5 scans over blocks of three gated delta nets and one layer with attention. */
static void all_delta_nets_of_a_scan_step_keep_their_chunks(void **state)
{
    (void)state;
    struct bench *b = open_full("qwen3.5-35b-a3b", "tpu7x", 4, 4, 4);
    b->plan.family.seq_len = 8192;
    (void)bench_estimate(b);
    const double scanned = part_at(b, ADV_AT_BACKWARD, "layer_working_set");
    bench_place(b);
    const struct adv_layer *layer = linear_layer(b);
    const double chunks =
        adv_memory_layer_working(&b->cost, layer, adv_model_layer_params(&b->model, layer)).chunks_bytes;
    assert_true(chunks > 0.0);
    assert_true(scanned > 3.0 * chunks);
    b->plan.family.scan_layers = false; /* then a layer is a step of its own */
    (void)bench_estimate(b);
    assert_true(part_at(b, ADV_AT_BACKWARD, "layer_working_set") < scanned - 1.5 * chunks);
}

/* Those of qwen3-next loop inside the block, each with a checkpoint of its own: one is there at a time. */
static void a_delta_net_with_a_checkpoint_of_its_own_is_alone(void **state)
{
    (void)state;
    struct bench *b = open_full("qwen3-next-80b-a3b", "tpu7x", 4, 4, 4);
    b->plan.family.seq_len = 8192;
    bench_place(b);
    const struct adv_layer *layer = linear_layer(b);
    const double chunks =
        adv_memory_layer_working(&b->cost, layer, adv_model_layer_params(&b->model, layer)).chunks_bytes;
    (void)bench_estimate(b);
    assert_true(part_at(b, ADV_AT_BACKWARD, "layer_working_set") >= chunks);
    assert_true(part_at(b, ADV_AT_BACKWARD, "layer_working_set") < 2.0 * chunks);
}

static double gathered_with(struct bench *b, int linear_layers)
{
    for (int i = 0; i < b->model.layer_kinds_count; i++)
        if (b->model.layers[i].attention == ADV_ATTENTION_LINEAR) b->model.layers[i].count = linear_layers;
    (void)bench_estimate(b);
    return part_at(b, ADV_AT_BACKWARD, "gathered_weights");
}

/* Compiled with ten and eleven layers, linear-next-v4-10 and -11: behind two blocks the weights of the other
 * two or three are gathered into one stack, beside those of the layer in work. */
static void layers_behind_the_blocks_of_qwen3_next_have_all_their_weights_at_once(void **state)
{
    (void)state;
    struct bench *b = open_full("qwen3-next-80b-a3b", "v4", 2, 2, 4);
    const double whole = gathered_with(b, 36), two = gathered_with(b, 38), three = gathered_with(b, 39);
    const double experts = 2.0 * 3.0 * 512 * 2048 * 512; /* of one layer, in bf16 */
    assert_true(two - whole > 1.8 * experts && two - whole < 2.1 * experts);
    assert_close(three - whole, 1.5 * (two - whole), 1e-9);
    assert_close(gathered_with(b, 40), whole, 1e-9); /* another block */
}

static void routed_rows_beside_delta_nets_wait_where_they_have_no_room(void **state)
{
    (void)state;
    struct bench *b = open_full("qwen3.5-35b-a3b", "tpu7x", 4, 4, 4);
    b->plan.family.seq_len = 8192;
    b->plan.num_vocab_tiling = 8; /* the loss is no peak */
    const double peak = bench_estimate(b)->backward_peak_bytes;
    const double routed = part_at(b, ADV_AT_BACKWARD, "routed_working_set");
    const double roomy = peak - part_at(b, ADV_AT_BACKWARD, "fragmentation"); /* packed anew first */
    b->cluster.chip.hbm_usable_bytes_per_device = (roomy - 0.1 * routed) / b->constants.pressed_limit_frac;
    assert_close(bench_estimate(b)->backward_peak_bytes, roomy - 0.1 * routed, 1e-9);
    assert_close(part_at(b, ADV_AT_BACKWARD, "routed_working_set"), 0.9 * routed, 1e-9);
    b->cluster.chip.hbm_usable_bytes_per_device = 0.1 * roomy; /* the layer's own rows cannot wait */
    (void)bench_estimate(b);
    assert_true(part_at(b, ADV_AT_BACKWARD, "routed_working_set") > 0.2 * routed);
}

/* What packing loses, and logits that outlive the loss, differ beside transfers. */
static double backward_peak_bytes(const struct bench *b)
{
    return b->estimate.backward_peak_bytes - part_at(b, ADV_AT_BACKWARD, "fragmentation") -
           part_at(b, ADV_AT_BACKWARD, "logits");
}

static void an_offloaded_input_lies_on_the_host(void **state)
{
    (void)state;
    struct bench *b = open_full("llama3.1-8b", "v5p", 4, 4, 4);
    (void)bench_estimate(b);
    const double kept = bench_bytes(b, "saved_activations"), peak = backward_peak_bytes(b);
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    (void)bench_estimate(b);
    assert_close(bench_bytes(b, "saved_activations"), 0.0, 0.0);
    assert_true(fabs(peak - kept - backward_peak_bytes(b)) < 0.1 * kept); /* some wait to be sent */
    assert_close(b->estimate.host_bytes_per_host, 4.0 * kept, 1e-12);
}

static void layers_out_of_a_scan_are_recomputed_early_as_far_as_memory_goes(void **state)
{
    (void)state;
    static const struct {
        const char *chip;
        int x, y, z;
    } cases[] = {{"tpu7x", 2, 2, 1}, {"v5e", 2, 4, 1}, {"v5p", 2, 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_full("llama3.1-8b", cases[i].chip, cases[i].x, cases[i].y, cases[i].z);
        b->cluster.chip.hbm_usable_bytes_per_device = 100e9;
        b->plan.family.seq_len = 2048; /* enough for windowed einsums */
        (void)bench_estimate(b);
        assert_close(part_at(b, ADV_AT_BACKWARD, "early_recomputation"), 0.0, 0.0);
        b->plan.family.scan_layers = false;
        (void)bench_estimate(b);
        /* of 31 layers: two norms' outputs, queries, keys, values, context, three products of the
         * feed-forward, and what stands between attention and it */
        const double all = 31.0 * 2.0 * 2048.0 * (3.0 * 4096 + 2.0 * (4096 + 1024) + 3.0 * 14336);
        const double early = part_at(b, ADV_AT_BACKWARD, "early_recomputation");
        if (fabs(early / all / b->constants.unscanned_early_frac - 1.0) > 0.05)
            fail_msg("%s: %.3f of all", cases[i].chip, early / all);
        b->plan.family.per_device_batch_size = 16;
        const struct adv_estimate *full = bench_estimate(b);
        assert_true(part_at(b, ADV_AT_BACKWARD, "early_recomputation") > 0.0);
        assert_true(full->backward_peak_bytes <= b->constants.early_filled_frac * 100e9);
        const double open_sd = full->fit_curve.log_sd;
        b->cluster.chip.hbm_usable_bytes_per_device = 10e9; /* too little for the rest of it */
        const struct adv_estimate *none = bench_estimate(b);
        assert_close(part_at(b, ADV_AT_BACKWARD, "early_recomputation"), 0.0, 0.0);
        assert_true(none->fit_curve.log_sd < 0.5 * open_sd);
        assert_int_equal(none->fit, ADV_FIT_NO);
    }
}

/* Beyond 32 devices weights are gathered whole, and the gradients of all layers scattered together. */
static void gradients_of_layers_out_of_a_scan_stay_whole_where_weights_are_gathered_whole(void **state)
{
    (void)state;
    struct bench *b = open_full("llama3.1-8b", "v5p", 4, 4, 4);
    b->plan.family.seq_len = 1024;
    b->plan.family.scan_layers = false;
    (void)bench_estimate(b);
    const double layers = b->params.total - b->params.embedding - b->params.unembedding;
    const double sharded = 4.0 * b->params.total / 64.0;
    assert_close(part_at(b, ADV_AT_BACKWARD, "gradients"), sharded + 2.0 * layers * 63.0 / 64.0, 1e-12);
    assert_close(part_at(b, ADV_AT_UPDATE, "gradients"), sharded + 2.0 * layers * 63.0 / 64.0, 1e-12);
    assert_true(part_at(b, ADV_AT_BACKWARD, "early_recomputation") < 0.1 * 2.0 * layers);
    bench_open(b, "llama3.1-8b", "v5p", 2, 2, 2);
    b->plan.family.scan_layers = false;
    (void)bench_estimate(b);
    assert_close(part_at(b, ADV_AT_UPDATE, "gradients"), 4.0 * b->params.total / 8.0, 1e-12);
}

/* The large gemma4 models have a loop of five local layers in each of their blocks, and no loop over blocks.
 */
static void gradients_of_blocks_with_loops_of_their_own_come_in_turn(void **state)
{
    (void)state;
    struct bench *b = open_full("gemma4-31b", "v5p", 4, 4, 4);
    (void)bench_estimate(b);
    assert_true(part_at(b, ADV_AT_BACKWARD, "gradients") < part_at(b, ADV_AT_UPDATE, "gradients"));
    b = open_full("gemma3-27b", "v5p", 4, 4, 4);
    (void)bench_estimate(b);
    assert_close(part_at(b, ADV_AT_BACKWARD, "gradients"), part_at(b, ADV_AT_UPDATE, "gradients"), 1e-12);
}

static void a_loop_in_a_block_is_peeled_and_recomputed_early_beside_transfers(void **state)
{
    (void)state;
    struct bench *b = open_full("gemma4-31b", "v5p", 4, 4, 4);
    (void)bench_estimate(b);
    assert_close(part_at(b, ADV_AT_BACKWARD, "early_recomputation"), 0.0, 0.0);
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    (void)bench_estimate(b);
    assert_true(part_at(b, ADV_AT_BACKWARD, "early_recomputation") > 0.0);
    b->plan.flags.host_transfer_pipelining = 0; /* no iteration is taken out */
    (void)bench_estimate(b);
    assert_close(part_at(b, ADV_AT_BACKWARD, "early_recomputation"), 0.0, 0.0);
}

static void bytes_of_steps_that_are_seldom_compiled_are_less_certain(void **state)
{
    (void)state;
    struct bench *b = open_full("llama3.1-8b", "v5p", 4, 4, 4);
    const double usual = bench_estimate(b)->fit_curve.log_sd;
    b->plan.family.scan_layers = false;
    assert_true(bench_estimate(b)->fit_curve.log_sd > 1.3 * usual);
    b->plan.family.scan_layers = true;
    b->cluster.slices = b->plan.family.dcn[ADV_AXIS_DATA] = 2;
    assert_true(bench_estimate(b)->fit_curve.log_sd > 1.3 * usual);
    b = open_full("gemma4-31b", "v5p", 4, 4, 4);
    assert_true(bench_estimate(b)->fit_curve.log_sd > 1.3 * usual);
    b = open_full("qwen3-next-80b-a3b", "v5p", 4, 4, 4);
    assert_true(bench_estimate(b)->fit_curve.log_sd > 1.3 * usual);
}

/* Compiled steps of dense layers, one at a time and with nothing on the host, spread least. */
static void bytes_of_plain_steps_are_the_most_certain(void **state)
{
    (void)state;
    struct bench *b = open_full("llama3.1-8b", "v5p", 4, 4, 4);
    const double plain = bench_estimate(b)->fit_curve.log_sd;
    static const char *const mixed[] = {"mixtral-8x7b", "gemma3-12b"}; /* experts; layers in blocks */
    for (size_t i = 0; i < sizeof mixed / sizeof *mixed; i++) {
        b = open_full(mixed[i], "v5p", 4, 4, 4);
        assert_true(bench_estimate(b)->fit_curve.log_sd > plain);
    }
    b = open_full("llama3.1-8b", "v5p", 4, 4, 4);
    b->plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    const double beside_host = bench_estimate(b)->fit_curve.log_sd;
    assert_true(beside_host > 1.1 * plain);
    b->plan.optimizer_host_offload = true;
    assert_true(bench_estimate(b)->fit_curve.log_sd > beside_host);
}

/* Four sums of microbatches and four gradients of qwen3-235b's experts, of which wo is [1536, 16] on a device
 * and takes [1536, 128]: f32[128,94,1536,16] has 9,462 MB in a compiled step. */
static void sums_of_microbatches_fill_whole_tiles_where_shards_are_narrow(void **state)
{
    (void)state;
    struct bench *b = open_full("qwen3-235b-a22b", "tpu7x", 4, 4, 8);
    b->plan.family.seq_len = 2048;
    (void)bench_estimate(b);
    const double once = bench_bytes(b, "gradients");
    b->plan.family.gradient_accumulation_steps = 2;
    (void)bench_estimate(b);
    const double wo = 4.0 * 128 * 94 * 1536 * 16;
    assert_close(bench_bytes(b, "gradients"), 2.0 * (once + 7.0 * wo), 1e-3);
    b->plan.family.ici[ADV_AXIS_FSDP] = 32; /* then a shard has all 128 columns */
    b->plan.family.ici[ADV_AXIS_DATA] = 8;
    b->plan.family.gradient_accumulation_steps = 1;
    (void)bench_estimate(b);
    const double wide = bench_bytes(b, "gradients");
    b->plan.family.gradient_accumulation_steps = 2;
    (void)bench_estimate(b);
    assert_close(bench_bytes(b, "gradients"), 2.0 * wide, 1e-9);
}

/* Under rules of a model's own, and 2D sharding, experts are gathered over the expert axis too: a compiled
 * step of deepseek3-671b-2dfsdp holds bf16[256,...], not a quarter of it. */
static void all_experts_arrive_where_the_rules_know_no_expert_dimension(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        bool is_2d, all_arrive;
    } cases[] = {{"deepseek3-671b", false, false},
                 {"deepseek3-671b", true, true},
                 {"deepseek3-671b-2dfsdp", false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_full(cases[i].model, "v5p", 4, 4, 8);
        b->plan.family.use_2d_fsdp_sharding = cases[i].is_2d;
        b->plan.family.seq_len = 2048;
        (void)bench_estimate(b);
        const double alone = part_at(b, ADV_AT_BACKWARD, "gathered_weights");
        const double sent = bench_term(b, "fsdp_all_gather").bytes_per_device;
        bench_axes(b, ADV_AXIS_EXPERT, 4);
        (void)bench_estimate(b);
        const double kept = part_at(b, ADV_AT_BACKWARD, "gathered_weights") / alone;
        const double kept_sent = bench_term(b, "fsdp_all_gather").bytes_per_device / sent;
        assert_true(cases[i].all_arrive ? kept > 0.99 && kept_sent > 0.99 : kept < 0.3 && kept_sent < 0.4);
    }
}

/* mixtral-8x22b on v6e, 2 stages and 64 fsdp shards: pred[512,16384,32768] has 275 GB in a compiled step. */
static void a_pipeline_of_many_microbatches_builds_the_one_hot_of_all_shards(void **state)
{
    (void)state;
    struct bench *b = open_full("mixtral-8x22b", "v6e", 8, 16, 1);
    b->plan.family.seq_len = 16384;
    b->plan.family.per_device_batch_size = 8;
    b->plan.family.use_iota_embed = true;
    b->plan.family.allow_split_physical_axes = true;
    bench_axes(b, ADV_AXIS_STAGE, 2);
    b->plan.family.layers_per_stage = 28;
    b->plan.family.pipeline_microbatches = 16;
    (void)bench_estimate(b);
    assert_close(part_at(b, ADV_AT_UPDATE, "one_hot"), 512.0 * 16384 * 32768, 1e-12);
    assert_string_equal(adv_plan_broken_rule(&b->plan, &b->model, &b->cluster), "pipeline-one-hot");
    for (int i = 0; i < 2; i++) {
        b->plan.family.use_iota_embed = i == 0;
        b->plan.family.pipeline_microbatches = i == 0 ? 2 : 16;
        (void)bench_estimate(b);
        assert_close(part_at(b, ADV_AT_UPDATE, "one_hot"), 0.0, 0.0);
        const char *broken = adv_plan_broken_rule(&b->plan, &b->model, &b->cluster);
        if (i == 0)
            assert_null(broken);
        else
            assert_string_equal(broken, "pipeline-experts-over-fsdp"); /* 206 GB in that step */
    }
}

/* Compiled, gemma3-27b on 128 v6e has six [tokens, mlp] at the loss on their way to the host: one of each
 * layer of the block. */
static void at_the_loss_tensors_of_a_whole_scan_step_are_on_their_way_to_the_host(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double layers_a_step;
    } models[] = {{"llama3.1-8b", 1.0}, {"gemma2-9b", 2.0}, {"olmo3-7b", 4.0}, {"gemma3-27b", 6.0}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct bench *b = open_full(models[i].model, "v6e", 8, 8, 1);
        b->plan.policy = ADV_POLICY_CUSTOM;
        b->plan.placements[ADV_TENSOR_MLPWI_0] = ADV_PLACE_OFFLOAD;
        (void)bench_estimate(b);
        const double tokens = b->plan.family.per_device_batch_size * (double)b->plan.family.seq_len;
        const double tensor_bytes = 2.0 * tokens * (double)b->model.layers[0].mlp_dim;
        assert_close(part_at(b, ADV_AT_LOSS, "host_staging"),
                     b->constants.loss_staging_tensors * models[i].layers_a_step * tensor_bytes, 1e-9);
    }
}

/* Bytes at the loss that a model keeps when it has so many layers of its first kind. */
static double saved_with(struct bench *b, int count, enum adv_memory_at at)
{
    b->model.layers[0].count = count;
    (void)bench_estimate(b);
    return part_at(b, at, "saved_activations");
}

/* Per token and layer, in bf16: what layers of gemma3-4b have forward, its norms' outputs among it. */
static double gemma3_forward_bytes(const struct bench *b)
{
    const double tokens = b->plan.family.per_device_batch_size * (double)b->plan.family.seq_len;
    const double emb = 2560, mlp = 10240, queries = 8 * 256, keys = 4 * 256;
    return 2.0 * tokens * (5 * emb + 3 * mlp + 2 * queries + 2 * keys);
}

/* Compiled, family-gemma3-4b-v6e-2x4-full has all three [tokens, mlp] of its four layers behind five blocks
 * of six at the loss, though the policy saves nothing. */
static void layers_behind_the_blocks_of_a_scan_keep_their_forward_values_at_the_loss(void **state)
{
    (void)state;
    struct bench *b = open_full("gemma3-4b", "v6e", 2, 4, 1);
    const int local = (int)b->model.layers[0].count, whole_blocks = 25;
    assert_int_equal(local, whole_blocks + 4);
    const double blocks = saved_with(b, whole_blocks, ADV_AT_LOSS);
    const double behind = saved_with(b, local, ADV_AT_LOSS) - blocks;
    assert_close(behind, 4 * gemma3_forward_bytes(b), 1e-9);
    assert_close(saved_with(b, local, ADV_AT_BACKWARD), blocks, 1e-9); /* by then they are through */
    assert_close(part_at(b, ADV_AT_BACKWARD, "early_recomputation"), b->constants.behind_frac * behind, 1e-9);
    b->plan.policy = ADV_POLICY_CUSTOM; /* what is kept of them is among it, wherever the others keep it */
    b->plan.placements[ADV_TENSOR_MLPWI_0] = ADV_PLACE_DEVICE;
    assert_close(saved_with(b, local, ADV_AT_LOSS) - saved_with(b, whole_blocks, ADV_AT_LOSS), behind, 1e-9);
    b->plan.family.scan_layers = false;
    const double kept = 4.0 * 2.0 * b->plan.family.per_device_batch_size * (double)b->plan.family.seq_len;
    assert_true(saved_with(b, local, ADV_AT_LOSS) - saved_with(b, whole_blocks, ADV_AT_LOSS) <
                1.01 * kept * (10240 + 2560));
}

/* Compiled, first plans of gemma3-4b that send tensors to the host were refused: eight [tokens, mlp] of the
 * four layers lay beside the iteration that is taken out of the backward loop. */
static void beside_transfers_layers_behind_the_scan_are_there_with_the_iteration_taken_out(void **state)
{
    (void)state;
    struct bench *b = open_full("gemma3-4b", "v6e", 4, 4, 1);
    b->plan.policy = ADV_POLICY_CUSTOM;
    b->plan.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    b->plan.placements[ADV_TENSOR_MLPWO] = ADV_PLACE_OFFLOAD;
    (void)bench_estimate(b);
    const double early = part_at(b, ADV_AT_BACKWARD, "early_recomputation");
    const double host = bench_estimate(b)->host_bytes_per_host, layers = 34;
    assert_true(early > 0.0);
    assert_close(early,
                 b->constants.peeled_behind_frac * 4 * gemma3_forward_bytes(b) -
                     (1.0 - b->constants.peeled_begun_frac) *
                         part_at(b, ADV_AT_BACKWARD, "layer_working_set"),
                 1e-9);
    b->model.layers[0].count -= 4;
    (void)bench_estimate(b);
    assert_close(part_at(b, ADV_AT_BACKWARD, "early_recomputation"), 0.0, 0.0);
    /* what all layers send to the host is there, as in compiled steps of gemma3-27b */
    assert_close(bench_estimate(b)->host_bytes_per_host, host * (layers - 4) / layers, 1e-9);
}

/* Compiled, deepseek2-16b has two [tokens, 10944] of its first layer at the loss and in the backward pass. */
static void a_layer_alone_in_its_loop_keeps_its_forward_values(void **state)
{
    (void)state;
    struct bench *b = open_full("deepseek2-16b", "v5p", 2, 2, 4);
    assert_int_equal(b->model.layers[0].count, 1);
    const double one = saved_with(b, 1, ADV_AT_LOSS), backward = saved_with(b, 1, ADV_AT_BACKWARD);
    const double two = saved_with(b, 2, ADV_AT_LOSS); /* a loop: their inputs alone are saved */
    const double tokens = b->plan.family.per_device_batch_size * (double)b->plan.family.seq_len;
    assert_true(one - two > b->constants.alone_frac * 2.0 * tokens * 3 * 10944);
    assert_close(backward, one, 1e-12);
}

/* Compiled, the sums and gradients of deepseek3-test's experts on 16 v5p (data, fsdp, fsdp_transpose and
 * expert 2 each) have 11,677 MB in one gather, and 23,353 MB in two. */
static void experts_in_two_gathers_leave_larger_gradients(void **state)
{
    (void)state;
    struct bench *b = open_full("deepseek3-test", "v5p", 2, 2, 4);
    static const enum adv_axis axes[] = {ADV_AXIS_DATA, ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_EXPERT};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) bench_axes(b, axes[i], 2);
    b->plan.family.gradient_accumulation_steps = 2;
    b->plan.family.two_stage_gather = false;
    const double usual = bench_estimate(b)->fit_curve.log_sd;
    const double once = bench_bytes(b, "gradients"), update = part_at(b, ADV_AT_UPDATE, "gradients");
    b->plan.family.two_stage_gather = true;
    assert_true(bench_estimate(b)->fit_curve.log_sd > usual);
    assert_close(bench_bytes(b, "gradients") - once, 23353e6 - 11677e6, 1e-3);
    const double whole = 4.0 * 58 * 256 * 2 * 512 * 512 / 2; /* two matrices, over fsdp_transpose alone */
    assert_close(part_at(b, ADV_AT_UPDATE, "gradients") - update, whole + 0.5 * (23353e6 - 11677e6), 1e-3);
    b->plan.family.two_stage_gather = false;
    b->plan.family.moe = ADV_MOE_DENSE;
    (void)bench_estimate(b);
    const double dense = bench_bytes(b, "gradients");
    b->plan.family.two_stage_gather = true;
    (void)bench_estimate(b);
    assert_close(bench_bytes(b, "gradients"), dense, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_delta_nets_of_a_scan_step_keep_their_chunks),
        cmocka_unit_test(a_delta_net_with_a_checkpoint_of_its_own_is_alone),
        cmocka_unit_test(layers_behind_the_blocks_of_qwen3_next_have_all_their_weights_at_once),
        cmocka_unit_test(routed_rows_beside_delta_nets_wait_where_they_have_no_room),
        cmocka_unit_test(an_offloaded_input_lies_on_the_host),
        cmocka_unit_test(layers_out_of_a_scan_are_recomputed_early_as_far_as_memory_goes),
        cmocka_unit_test(gradients_of_layers_out_of_a_scan_stay_whole_where_weights_are_gathered_whole),
        cmocka_unit_test(gradients_of_blocks_with_loops_of_their_own_come_in_turn),
        cmocka_unit_test(a_loop_in_a_block_is_peeled_and_recomputed_early_beside_transfers),
        cmocka_unit_test(bytes_of_steps_that_are_seldom_compiled_are_less_certain),
        cmocka_unit_test(bytes_of_plain_steps_are_the_most_certain),
        cmocka_unit_test(sums_of_microbatches_fill_whole_tiles_where_shards_are_narrow),
        cmocka_unit_test(all_experts_arrive_where_the_rules_know_no_expert_dimension),
        cmocka_unit_test(a_pipeline_of_many_microbatches_builds_the_one_hot_of_all_shards),
        cmocka_unit_test(at_the_loss_tensors_of_a_whole_scan_step_are_on_their_way_to_the_host),
        cmocka_unit_test(layers_behind_the_blocks_of_a_scan_keep_their_forward_values_at_the_loss),
        cmocka_unit_test(beside_transfers_layers_behind_the_scan_are_there_with_the_iteration_taken_out),
        cmocka_unit_test(a_layer_alone_in_its_loop_keeps_its_forward_values),
        cmocka_unit_test(experts_in_two_gathers_leave_larger_gradients),
    };
    return run_group(tests);
}
