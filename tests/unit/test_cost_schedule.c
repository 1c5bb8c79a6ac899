/* Communication against compute: bytes, seconds and what of them shows, round constants, real links. */
#include "tests/unit/cost_fixture.h"

#include "engine/base/units.h"

/* v5p 4x4x4: 64 chips of one device; three rings of 4 that wrap, two links each. */
static double cube_bytes_per_s(const struct bench *b)
{
    return 3.0 * 2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s;
}

static struct bench *open_cube(const char *model)
{
    static struct bench b;
    bench_open(&b, model, "v5p", 4, 4, 4);
    round_constants(&b);
    return &b;
}

static const struct adv_slot *slot(const struct bench *b, enum adv_term_id id)
{
    return &b->account.slots[id];
}

static void exposed_is_a_share_and_what_compute_cannot_cover(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->plan.flags.cf_all_gather = 1;
    b->constants.overlap_fusion_exposed_frac = 0.2;
    bench_place(b);
    assert_close(adv_schedule_exposed_s(&b->cost, 1.0, 0.0, 10.0), 0.2, 1e-12); /* 0.8 s hide behind 10 s */
    assert_close(adv_schedule_exposed_s(&b->cost, 1.0, 0.0, 0.8), 0.2, 1e-12);
    assert_close(adv_schedule_exposed_s(&b->cost, 1.0, 0.0, 0.5), 0.5, 1e-12); /* 0.2 + (0.8 - 0.5) */
    assert_close(adv_schedule_exposed_s(&b->cost, 1.0, 0.0, 0.0), 1.0,
                 1e-12); /* never more than the collective */
    assert_close(adv_schedule_exposed_s(&b->cost, 0.0, 0.0, 0.5), 0.0, 0.0);
    b->cost.scatter_exposed_frac =
        0.6; /* 0.2 of the gather and 0.6 of the scatter, and what 0.5 s do not cover */
    assert_close(adv_schedule_exposed_s(&b->cost, 1.0, 2.0, 10.0), 1.4, 1e-12);
    assert_close(adv_schedule_exposed_s(&b->cost, 1.0, 2.0, 0.5), 1.4 + (1.6 - 0.5), 1e-12);
}

/* Exposed shares by which the way collectives hide is recognised. */
static void tell_apart(struct adv_constants *constants)
{
    constants->overlap_offload_exposed_frac = 0.1;
    constants->overlap_fusion_exposed_frac = 0.4;
    constants->overlap_async_exposed_frac = 0.7;
    constants->overlap_none_exposed_frac = 1.0;
}

static void flags_choose_how_collectives_hide(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v5p"};
    for (int i = 0; i < 2; i++) {
        static struct bench b;
        bench_open(&b, "llama3.1-8b", chips[i], 4, 4, 4);
        tell_apart(&b.constants);
        bench_place(&b);
        assert_close(b.cost.gather_exposed_frac, i == 0 ? 0.1 : 1.0,
                     0.0); /* tpu7x offloads unless told otherwise */
        b.plan.flags.sc_all_gather = 0;
        bench_place(&b);
        assert_close(b.cost.gather_exposed_frac, 1.0, 0.0);
        b.plan.flags.async_all_gather = 1;
        bench_place(&b);
        assert_close(b.cost.gather_exposed_frac, 0.7, 0.0);
        b.plan.flags.cf_all_gather = 1;
        bench_place(&b);
        assert_close(b.cost.gather_exposed_frac, 0.4, 0.0);
        b.plan.flags.sc_all_gather = 1;
        bench_place(&b);
        assert_close(b.cost.gather_exposed_frac, i == 0 ? 0.1 : 0.4, 0.0); /* unseen elsewhere */
    }
}

static void gradients_hide_by_flags_of_their_own(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "llama3.1-8b", "v6e", 16, 16, 1);
    tell_apart(&b.constants);
    b.plan.flags.cf_all_gather = 1;
    b.plan.flags.sc_all_reduce = 1; /* reduced by SparseCores, each device keeps its part */
    bench_place(&b);
    assert_close(b.cost.gather_exposed_frac, 0.4, 0.0);
    assert_close(b.cost.scatter_exposed_frac, 0.1, 0.0);
    b.plan.flags.sc_all_reduce = 0;
    bench_place(&b);
    assert_close(b.cost.scatter_exposed_frac, 0.4, 0.0);
}

static void flags_hide_nothing_on_sparsecores_that_are_not_there(void **state)
{
    (void)state;
    static struct bench b;
    bench_open(&b, "llama3.1-8b", "v5e", 16, 16, 1);
    tell_apart(&b.constants);
    b.plan.flags.sc_all_gather = 1;
    bench_place(&b);
    assert_close(b.cost.gather_exposed_frac, 1.0, 0.0);
    b.plan.flags.cf_all_gather = 1;
    bench_place(&b);
    assert_close(b.cost.gather_exposed_frac, 0.4, 0.0);
}

static void weights_are_gathered_twice_and_gradients_scattered_once(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    /* 4096 x (4096 + 1024 + 1024 + 4096 + 3 x 14336) weights and two norms of 4096, bf16 */
    double bytes = 2.0 * (4096.0 * 53248 + 2 * 4096);
    double gather_s = bytes * 63.0 / 64.0 / cube_bytes_per_s(b);
    assert_close(slot(b, ADV_TERM_FSDP_GATHER)->bytes, 2.0 * bytes, 1e-12);
    assert_close(slot(b, ADV_TERM_FSDP_SCATTER)->bytes, 2.0 * bytes, 1e-12); /* gradients in float32 */
    assert_close(slot(b, ADV_TERM_FSDP_GATHER)->seconds, 2.0 * gather_s, 1e-12);
    assert_close(slot(b, ADV_TERM_FSDP_SCATTER)->seconds, 2.0 * gather_s, 1e-12);
    /* wholly exposed: the passes take that much longer */
    assert_close(time.pass_s[ADV_PASS_FWD], 1.0 + gather_s, 1e-12);
    assert_close(time.pass_s[ADV_PASS_BWD], 1.0 + 3.0 * gather_s, 1e-12);
}

static void gradients_are_scattered_in_the_narrower_of_two_formats(void **state)
{
    (void)state;
    static const struct {
        enum adv_format weight, gradient;
        double bytes;
    } cases[] = {{ADV_FORMAT_F32, ADV_FORMAT_F32, 4.0},
                 {ADV_FORMAT_F32, ADV_FORMAT_BF16, 2.0},
                 {ADV_FORMAT_BF16, ADV_FORMAT_F32, 2.0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench *b = open_cube("llama3.1-8b");
        struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
        b->plan.family.weight_dtype = cases[i].weight;
        b->plan.family.grad_dtype = cases[i].gradient;
        bench_place(b);
        adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
        assert_close(slot(b, ADV_TERM_FSDP_SCATTER)->bytes, cases[i].bytes * (4096.0 * 53248 + 2 * 4096),
                     1e-12);
    }
}

static void tensor_and_expert_shards_gather_less(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    bench_axes(b, ADV_AXIS_TENSOR, 4);
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    assert_close(slot(b, ADV_TERM_FSDP_SCATTER)->bytes, 4.0 * (4096.0 * 53248 + 2 * 4096) / 4.0, 1e-12);

    b = open_cube("mixtral-8x7b");
    double experts = 8.0 * 3 * 4096 * 14336, dense = 4096.0 * (4096 + 1024 + 1024 + 4096 + 8) + 2 * 4096;
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    assert_close(slot(b, ADV_TERM_FSDP_SCATTER)->bytes, 4.0 * (dense + experts), 1e-6);
    bench_axes(b, ADV_AXIS_EXPERT, 4);
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    assert_close(slot(b, ADV_TERM_FSDP_SCATTER)->bytes, 4.0 * (dense + experts / 4.0), 1e-6);
}

static void tokens_meet_where_the_width_stays_sharded(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    bench_axes(b, ADV_AXIS_FSDP_TRANSPOSE, 4);
    b->constants.transpose_exposed_frac = 0.5;
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    adv_schedule_transpose(&b->cost, &b->model.layers[0], 1.0, &b->account);
    double attention = 4096.0 * (4096 + 1024 + 1024 + 4096) + 2 * 4096, feed_forward = 3.0 * 4096 * 14336;
    assert_close(slot(b, ADV_TERM_FSDP_GATHER)->bytes, 2.0 * 2.0 * (attention + feed_forward / 4.0), 1e-12);
    /* 4096 tokens of 4 devices on one ring: in and out forward, the same backward, inputs for the weight
     * gradients */
    double one_s = 2.0 * 4096 * 4096 * 4 * 0.75 / (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    assert_close(slot(b, ADV_TERM_TRANSPOSE)->seconds, 5.0 * one_s, 1e-12);
    assert_close(slot(b, ADV_TERM_TRANSPOSE)->exposed_seconds, 2.5 * one_s, 1e-12);

    /* gathered in two stages, weights come together and tokens stay */
    b = open_cube("llama3.1-8b");
    bench_axes(b, ADV_AXIS_FSDP_TRANSPOSE, 4);
    b->plan.family.two_stage_gather = true;
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    adv_schedule_transpose(&b->cost, &b->model.layers[0], 1.0, &b->account);
    assert_close(slot(b, ADV_TERM_FSDP_GATHER)->bytes, 2.0 * 2.0 * (attention + feed_forward), 1e-12);
    assert_close(slot(b, ADV_TERM_TRANSPOSE)->seconds, 0.0, 0.0);
}

/* XLA shards the width of an einsum; a grouped matmul takes the experts of a layer whole. */
static void only_einsums_of_experts_keep_their_width(void **state)
{
    (void)state;
    static const enum adv_moe_impl impls[] = {ADV_MOE_DENSE, ADV_MOE_MEGABLOX};
    double bytes[2];
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    for (int i = 0; i < 2; i++) {
        struct bench *b = open_cube("mixtral-8x7b");
        b->plan.family.moe = impls[i];
        bench_axes(b, ADV_AXIS_FSDP_TRANSPOSE, 4);
        bench_place(b);
        adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
        adv_schedule_transpose(&b->cost, &b->model.layers[0], 1.0, &b->account);
        bytes[i] = slot(b, ADV_TERM_FSDP_GATHER)->bytes;
        assert_true((slot(b, ADV_TERM_TRANSPOSE)->seconds > 0.0) == (i == 0));
    }
    /* 8 experts of 3 matrices in bf16, in both passes */
    assert_close(bytes[1] - bytes[0], 2.0 * 2.0 * 8.0 * 3.0 * 4096 * 14336 * 0.75, 1e-12);
}

static void one_copy_of_the_weights_gathers_nothing(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    bench_axes(b, ADV_AXIS_DATA, 64);
    bench_place(b);
    adv_schedule_weights(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    assert_close(adv_account_total_s(&b->account), 0.0, 0.0);
    adv_schedule_step(&b->cost, &b->params, &b->account);
    /* gradients over data instead: float32, once per step, twice through the links */
    double reduce_s = 2.0 * 4.0 * b->params.total * 63.0 / 64.0 /
                      (cube_bytes_per_s(b) * b->constants.all_reduce_multi_axis_frac);
    assert_close(slot(b, ADV_TERM_DATA_REDUCE)->exposed_seconds, reduce_s, 1e-12);
}

static void tensor_parallelism_gathers_activations_around_each_block(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    bench_axes(b, ADV_AXIS_TENSOR, 4);
    /* one ring of 4: 2 B x 4096 wide x 4096 tokens x 4 devices, 3/4 of it from others */
    double one_s = 2.0 * 4096 * 4096 * 4 * 0.75 / (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    /* forward 2 gathers and 2 scatters, backward the same and 2 gathers for the weight gradients; a full
     * recompute scatters once more */
    bench_place(b);
    adv_schedule_tensor(&b->cost, &b->model.layers[0], 1.0, &b->account);
    assert_close(slot(b, ADV_TERM_TENSOR)->seconds, (8.0 + 3.0) * one_s, 1e-12);
    bench_policy(b, ADV_POLICY_SAVE_OUT_PROJ);
    bench_place(b);
    adv_schedule_tensor(&b->cost, &b->model.layers[0], 1.0, &b->account);
    assert_close(slot(b, ADV_TERM_TENSOR)->seconds, (8.0 + 2.0) * one_s, 1e-12);
    bench_policy(b, ADV_POLICY_MINIMAL);
    b->constants.tensor_exposed_frac = 0.25;
    bench_place(b);
    adv_schedule_tensor(&b->cost, &b->model.layers[0], 1.0, &b->account);
    assert_close(slot(b, ADV_TERM_TENSOR)->seconds, (8.0 + 2.0) * one_s, 1e-12);
    assert_close(slot(b, ADV_TERM_TENSOR)->exposed_seconds, 0.25 * 10.0 * one_s, 1e-12);
}

static void tensor_parallel_experts_reduce_every_choice(void **state)
{
    (void)state;
    struct bench *b = open_cube("mixtral-8x7b");
    bench_axes(b, ADV_AXIS_TENSOR, 4);
    bench_policy(b, ADV_POLICY_MINIMAL);
    bench_place(b);
    adv_schedule_tensor(&b->cost, &b->model.layers[0], 1.0, &b->account);
    double one_s = 2.0 * 4096 * 4096 * 4 * 0.75 / (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    assert_close(slot(b, ADV_TERM_TENSOR)->seconds, (10.0 + 2.0 * 2.0) * one_s,
                 1e-12); /* two experts a token */
}

static void context_shards_gather_keys_and_values(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    bench_axes(b, ADV_AXIS_CONTEXT, 4);
    /* 8 heads x (128 + 128) x 2 B, the sequence of 4 devices */
    double kv_bytes = 2.0 * 8 * 256 * 4096 * 4;
    double one_s = kv_bytes * 0.75 / (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    assert_close(slot(b, ADV_TERM_CONTEXT)->bytes, 3.0 * kv_bytes, 1e-12);
    assert_close(slot(b, ADV_TERM_CONTEXT)->exposed_seconds, 3.0 * one_s,
                 1e-12); /* twice, and gradients back */
    bench_policy(b, ADV_POLICY_MINIMAL_WITH_CONTEXT);
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    /* no policy keeps what came from other shards */
    assert_close(slot(b, ADV_TERM_CONTEXT)->exposed_seconds, 3.0 * one_s, 1e-12);
}

static void a_ring_passes_a_chunk_behind_each_step(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->constants.ring_step_s = 1e-4;
    bench_axes(b, ADV_AXIS_CONTEXT, 4);
    b->plan.family.cp_strategy = ADV_CP_RING;
    double chunk_bytes = 2.0 * 8 * 256 * 4096;
    double permute_s =
        3.0 * chunk_bytes / (b->constants.permute_link_frac * b->cluster.chip.ici_link_achieved_bytes_per_s);
    struct adv_layer_time long_time = {.pass_s = {1.0, 1.0, 1.0}}, no_time = {.pass_s = {0.0, 0.0, 0.0}};
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &long_time, &b->account);
    assert_close(slot(b, ADV_TERM_CONTEXT)->exposed_seconds, 0.0, 0.0);
    assert_close(slot(b, ADV_TERM_CONTEXT)->seconds, 5.0 * permute_s,
                 0.01); /* three passes, gradients travel too, in f32 */
    assert_close(slot(b, ADV_TERM_RING_MERGE)->exposed_seconds, 3.0 * 3.0 * 1e-4, 1e-12);
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &no_time, &b->account);
    assert_close(slot(b, ADV_TERM_CONTEXT)->exposed_seconds, 5.0 * permute_s, 0.01);
    /* each pass hides what it sends itself: one forward, one again, three backward */
    struct adv_layer_time uneven = {.pass_s = {0.5 * permute_s, 2.0 * permute_s, 2.5 * permute_s}};
    bench_place(b);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &uneven, &b->account);
    assert_close(slot(b, ADV_TERM_CONTEXT)->exposed_seconds, permute_s, 0.01);
}

static void ulysses_trades_sequence_for_heads(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    struct adv_layer_time time = {.pass_s = {1.0, 1.0, 1.0}};
    bench_axes(b, ADV_AXIS_CONTEXT, 4);
    b->plan.family.cp_strategy = ADV_CP_ULYSSES;
    b->plan.family.cp_load_balance = false;
    bench_place(b);
    assert_int_equal(b->cost.cp_ring, 1);
    assert_int_equal(b->cost.ulysses, 4);
    adv_schedule_context(&b->cost, &b->model.layers[0], 1.0, &time, &b->account);
    /* queries, keys, values and outputs of a device's own tokens, three times: (2 x 32 + 2 x 8) x 128 x 2 B
     */
    assert_close(slot(b, ADV_TERM_CONTEXT)->bytes, 3.0 * 2.0 * 80 * 128 * 4096, 1e-12);
}

static void experts_receive_each_choice_of_a_token(void **state)
{
    (void)state;
    struct bench *b = open_cube("mixtral-8x7b");
    bench_axes(b, ADV_AXIS_EXPERT, 4);
    bench_place(b);
    adv_schedule_experts(&b->cost, &b->model.layers[0], 1.0, &b->account);
    /* ring of 4: the middle is crossed by 2 x 2 / 4 of what a device holds, two choices of 2 B x 4096 a token
     */
    double once_s = 2.0 * 2.0 * 4096 * 4096 * (2.0 * 2.0 / 4.0) / b->constants.all_to_all_frac /
                    (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    /* dispatch and combine, in each of three passes; MaxText's default rules keep no expert tensor */
    assert_close(slot(b, ADV_TERM_EXPERT)->exposed_seconds, 6.0 * once_s, 1e-9);
    b->plan.placements[ADV_TENSOR_MOE_MLPWI_0] = b->plan.placements[ADV_TENSOR_MOE_MLPWO] = ADV_PLACE_DEVICE;
    bench_place(b);
    adv_schedule_experts(&b->cost, &b->model.layers[0], 1.0, &b->account);
    assert_close(slot(b, ADV_TERM_EXPERT)->exposed_seconds, 4.0 * once_s, 1e-9);
}

static void expert_slots_travel_with_their_padding_and_are_partly_hidden(void **state)
{
    (void)state;
    struct bench *b = open_cube("mixtral-8x7b");
    bench_axes(b, ADV_AXIS_EXPERT, 4);
    b->plan.family.moe = ADV_MOE_DENSE;
    b->plan.family.capacity_factor = 1.5;
    b->constants.slots_exposed_frac = 0.25;
    bench_place(b);
    adv_schedule_experts(&b->cost, &b->model.layers[0], 1.0, &b->account);
    double once_s = adv_cost_collective_s(&b->cost, &b->cost.ep_group, ADV_COLLECTIVE_ALL_TO_ALL,
                                          2.0 * 4096 * 4096 * 2.0 * 1.5);
    /* dispatch and combine both ways; only the dispatch again in the recompute */
    assert_close(slot(b, ADV_TERM_EXPERT)->seconds, 5.0 * once_s, 1e-9);
    assert_close(slot(b, ADV_TERM_EXPERT)->exposed_seconds, 0.25 * 5.0 * once_s, 1e-9);
}

static void an_expert_ring_gathers_tokens_once_whatever_the_choices(void **state)
{
    (void)state;
    struct bench *b = open_cube("mixtral-8x7b");
    bench_axes(b, ADV_AXIS_EXPERT, 4);
    b->plan.family.use_ring_of_experts = true;
    bench_place(b);
    adv_schedule_experts(&b->cost, &b->model.layers[0], 1.0, &b->account);
    double one_s = 2.0 * 4096 * 4096 * 4 * 0.75 / (2.0 * b->cluster.chip.ici_link_achieved_bytes_per_s);
    assert_close(slot(b, ADV_TERM_EXPERT)->exposed_seconds, 6.0 * one_s, 1e-9);
}

static void offloaded_tensors_hide_behind_their_passes(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    bench_place(b);
    double one_s = 2.0 * 4096 * 4096 / b->constants.pcie_step_bytes_per_s_per_device;
    struct adv_layer_time enough = {.pass_s = {1.0, 0.5, 0.5}}, half = {.pass_s = {one_s / 2.0, 0.0, one_s}};
    adv_schedule_offload(&b->cost, &b->model.layers[0], 1.0, &enough, &b->account);
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->seconds, 2.0 * one_s, 1e-12); /* there and back */
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->exposed_seconds, 0.0, 0.0);
    bench_place(b);
    adv_schedule_offload(&b->cost, &b->model.layers[0], 1.0, &half, &b->account);
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->exposed_seconds, one_s / 2.0, 1e-12);
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_DEVICE;
    bench_place(b);
    adv_schedule_offload(&b->cost, &b->model.layers[0], 1.0, &half, &b->account);
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->seconds, 0.0, 0.0);
}

/* Bubble over the work of a pipeline of 4 stages and `microbatches`. */
static double bubble(struct bench *b, int microbatches, int layers_per_stage, bool delay)
{
    b->plan.family.pipeline_microbatches = microbatches;
    b->plan.family.layers_per_stage = layers_per_stage;
    b->plan.family.pipeline_delay_activation_forwarding = delay;
    b->plan.family.per_device_batch_size = microbatches;
    bench_place(b);
    adv_account_busy(&b->account, ADV_TERM_MATMUL_FWD, 10.0, 1.0, 0.0, 0.0);
    adv_schedule_pipeline(&b->cost, &b->account);
    return slot(b, ADV_TERM_PIPELINE_BUBBLE)->exposed_seconds / 10.0;
}

static void the_bubble_shrinks_with_microbatches_and_repeats(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b"); /* 32 layers */
    bench_axes(b, ADV_AXIS_STAGE, 4);
    assert_close(bubble(b, 4, 8, false), 3.0 / 4.0, 1e-12); /* (stages - 1) / microbatches */
    assert_close(bubble(b, 8, 8, false), 3.0 / 8.0, 1e-12);
    assert_close(bubble(b, 8, 1, false), 3.0 / 64.0, 1e-12); /* eight repeats of the circle */
    assert_close(bubble(b, 8, 8, true), 6.0 / 8.0, 1e-12);   /* delayed forwarding: two iterations a hop */
}

static void a_microbatch_has_a_stages_tokens(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    bench_axes(b, ADV_AXIS_STAGE, 4);
    b->plan.family.per_device_batch_size = 2;
    b->plan.family.pipeline_microbatches = 8;
    bench_place(b);
    /* 2 x 4096 tokens a device; its stage sees those of all 4 stages, an eighth at a time */
    assert_close(b->cost.tokens, 2.0 * 4096 * 4 / 8, 1e-12);
    assert_close(b->cost.passes, 8.0, 0.0);
}

static double optimizer_bytes(struct bench *b)
{
    bench_place(b);
    adv_schedule_step(&b->cost, &b->params, &b->account);
    return slot(b, ADV_TERM_OPTIMIZER)->bytes / (b->params.total / 64.0);
}

static void the_update_streams_weights_moments_and_gradients(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    /* weights, two moments in and out, the gradient twice; float32 */
    assert_close(optimizer_bytes(b), 32.0, 1e-12);
    b->plan.family.mu_dtype = ADV_FORMAT_BF16;
    assert_close(optimizer_bytes(b), 28.0, 1e-12);
    b->plan.family.grad_dtype = ADV_FORMAT_BF16;
    assert_close(optimizer_bytes(b), 24.0, 1e-12);
    b->plan.family.optimizer = ADV_OPT_MUON;
    assert_close(optimizer_bytes(b), 16.0, 1e-12);
    b->plan.family.optimizer = ADV_OPT_SGD;
    assert_close(optimizer_bytes(b), 12.0, 1e-12);
}

static void moments_on_the_host_cross_pcie_both_ways(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->plan.family.mu_dtype = ADV_FORMAT_BF16;
    b->plan.optimizer_host_offload = true;
    bench_place(b);
    adv_schedule_step(&b->cost, &b->params, &b->account);
    double bytes = 2.0 * (2.0 + 4.0) * b->params.total / 64.0;
    assert_close(slot(b, ADV_TERM_OPTIMIZER_OFFLOAD)->exposed_seconds,
                 bytes / b->constants.pcie_step_bytes_per_s_per_device, 1e-12);
}

/* Weights that live on the host come in both passes, hidden as far as the step goes, and once more for the
 * update. */
static void weights_on_the_host_cross_pcie_in_every_pass(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->plan.parameter_host_offload = true;
    double one_s = 4.0 * b->params.total / 64.0 / b->constants.pcie_step_bytes_per_s_per_device;
    bench_place(b);
    adv_account_busy(&b->account, ADV_TERM_MATMUL_FWD, 100.0, 1.0, 0.0, 0.0);
    adv_schedule_step(&b->cost, &b->params, &b->account);
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->seconds, 2.0 * one_s, 1e-12);
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->exposed_seconds, 0.0, 0.0);
    assert_close(slot(b, ADV_TERM_OPTIMIZER_OFFLOAD)->exposed_seconds, 2.0 * one_s, 1e-12);
    bench_place(b); /* nothing to hide behind but the update's own traffic */
    adv_schedule_step(&b->cost, &b->params, &b->account);
    double update_s = slot(b, ADV_TERM_OPTIMIZER)->exposed_seconds;
    assert_close(slot(b, ADV_TERM_HOST_OFFLOAD)->exposed_seconds, 2.0 * one_s - update_s, 1e-12);
}

static void accumulation_repeats_gathers_and_adds_gradients_up(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    double gather[2], update[2];
    for (int i = 0; i < 2; i++) {
        b->plan.family.gradient_accumulation_steps = i ? 4 : 1;
        (void)bench_estimate(b);
        gather[i] = bench_term(b, "fsdp_all_gather").seconds;
        update[i] = bench_term(b, "optimizer_update").seconds;
    }
    assert_close(gather[1], 4.0 * gather[0], 1e-12);
    /* float32 AdamW moves 8 x 4 bytes a parameter once; each of 4 microsteps reads two and writes one more:
     * 12 x 4 */
    assert_close(update[1], update[0] * (8.0 + 12.0) / 8.0, 1e-12);
}

static void slices_reduce_their_shards_over_dcn(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->cluster.slices = 4;
    b->cluster.devices = 256;
    b->plan.family.dcn[ADV_AXIS_DATA] = 4;
    b->constants.dcn_exposed_frac = 0.5;
    b->constants.dcn_straggler_frac = 0.01;
    b->constants.dcn_lockstep_frac = 0.02;
    bench_place(b);
    adv_account_busy(&b->account, ADV_TERM_MATMUL_BWD, 1e3, 1.0, 0.0, 0.0); /* enough to hide behind */
    adv_schedule_step(&b->cost, &b->params, &b->account);
    /* float32 gradients of a 64th of the model, out and back: 2 x 3/4 of them through a chip's share */
    double reduce_s = 2.0 * 0.75 * 4.0 * b->params.total / 64.0 / b->cluster.chip.dcn_bytes_per_s_per_chip;
    assert_close(slot(b, ADV_TERM_DCN_REDUCE)->seconds, reduce_s, 1e-12);
    assert_close(slot(b, ADV_TERM_DCN_REDUCE)->exposed_seconds, 0.5 * reduce_s, 1e-12);
    double rest_s = adv_account_total_s(&b->account) - slot(b, ADV_TERM_DCN_STRAGGLER)->exposed_seconds;
    const double straggler_frac = 0.02 + 0.01 * pow(3.0, 0.6);
    assert_close(slot(b, ADV_TERM_DCN_STRAGGLER)->exposed_seconds, straggler_frac * rest_s, 1e-12);
}

static void fsdp_over_slices_gathers_weights_over_dcn(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->cluster.slices = 2;
    b->cluster.devices = 128;
    b->plan.family.dcn[ADV_AXIS_FSDP] = 2;
    bench_place(b);
    adv_schedule_step(&b->cost, &b->params, &b->account);
    assert_close(slot(b, ADV_TERM_DCN_REDUCE)->seconds, 0.0, 0.0);
    /* what one slice's 64 devices hold together is gathered from both slices, bf16, half of it from the
     * other; twice, and the gradients back */
    double one_s = 2.0 * b->params.total / 64.0 / 2.0 / b->cluster.chip.dcn_bytes_per_s_per_chip;
    assert_close(slot(b, ADV_TERM_DCN_WEIGHTS)->exposed_seconds, 3.0 * one_s, 1e-12);
}

static void early_software_is_slower_until_its_date(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->constants.software_early_frac = 0.05;
    b->constants.software_settled_year = 2026.0;
    double current_s = bench_estimate(b)->step_time_s;
    b->plan.family.software_date = 2025.5;
    assert_close(bench_estimate(b)->step_time_s, 1.05 * current_s, 1e-12);
    b->plan.family.software_date = 2026.5;
    assert_close(bench_estimate(b)->step_time_s, current_s, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed_is_a_share_and_what_compute_cannot_cover),
        cmocka_unit_test(flags_choose_how_collectives_hide),
        cmocka_unit_test(gradients_hide_by_flags_of_their_own),
        cmocka_unit_test(weights_are_gathered_twice_and_gradients_scattered_once),
        cmocka_unit_test(gradients_are_scattered_in_the_narrower_of_two_formats),
        cmocka_unit_test(tensor_and_expert_shards_gather_less),
        cmocka_unit_test(only_einsums_of_experts_keep_their_width),
        cmocka_unit_test(tokens_meet_where_the_width_stays_sharded),
        cmocka_unit_test(one_copy_of_the_weights_gathers_nothing),
        cmocka_unit_test(tensor_parallelism_gathers_activations_around_each_block),
        cmocka_unit_test(tensor_parallel_experts_reduce_every_choice),
        cmocka_unit_test(context_shards_gather_keys_and_values),
        cmocka_unit_test(a_ring_passes_a_chunk_behind_each_step),
        cmocka_unit_test(ulysses_trades_sequence_for_heads),
        cmocka_unit_test(experts_receive_each_choice_of_a_token),
        cmocka_unit_test(expert_slots_travel_with_their_padding_and_are_partly_hidden),
        cmocka_unit_test(an_expert_ring_gathers_tokens_once_whatever_the_choices),
        cmocka_unit_test(offloaded_tensors_hide_behind_their_passes),
        cmocka_unit_test(the_bubble_shrinks_with_microbatches_and_repeats),
        cmocka_unit_test(a_microbatch_has_a_stages_tokens),
        cmocka_unit_test(the_update_streams_weights_moments_and_gradients),
        cmocka_unit_test(moments_on_the_host_cross_pcie_both_ways),
        cmocka_unit_test(weights_on_the_host_cross_pcie_in_every_pass),
        cmocka_unit_test(accumulation_repeats_gathers_and_adds_gradients_up),
        cmocka_unit_test(slices_reduce_their_shards_over_dcn),
        cmocka_unit_test(fsdp_over_slices_gathers_weights_over_dcn),
        cmocka_unit_test(flags_hide_nothing_on_sparsecores_that_are_not_there),
        cmocka_unit_test(early_software_is_slower_until_its_date),
    };
    return run_group(tests);
}
