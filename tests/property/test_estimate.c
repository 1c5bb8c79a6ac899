/* Rules of every estimate, whatever the constants are fitted to. Random legal plans of real models.
 */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/cost/estimate.h"
#include "engine/cost/scratch.h"
#include "engine/maxtext/keys.h"
#include "tests/unit/catalog_fixture.h"
#include "tests/unit/draw.h"

enum { CASES = 3000 };

static struct adv_ledger ledger;
static uint64_t random_state = UINT64_C(0x9e3779b97f4a7c15);

static int below(int bound)
{
    return (int)(draw_next(&random_state) % (uint64_t)bound);
}

static int power(int bound)
{
    return 1 << below(bound);
}

struct example {
    struct adv_model model;
    struct adv_cluster cluster;
    struct adv_constants constants;
    struct adv_plan plan;
};

static const char *const names[] = {"llama3.1-70b", "llama3.1-8b",   "gemma3-27b",   "deepseek3-671b",
                                    "gpt-oss-120b", "qwen3-30b-a3b", "mixtral-8x7b", "qwen3-next-80b-a3b"};
static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};

static bool draw_cluster(struct example *e)
{
    static const int flat_dims[][3] = {{4, 4, 1}, {8, 8, 1}, {16, 16, 1}};
    static const int cube_dims[][3] = {{2, 2, 1}, {4, 4, 4}, {4, 4, 8}};
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, chips[below(5)]);
    memset(&e->cluster, 0, sizeof e->cluster);
    e->cluster.chip = chip->chip;
    e->constants = chip->constants;
    bool flat = chip->chip.ici_axes < 2.5;
    memcpy(e->cluster.dims, flat ? flat_dims[below(3)] : cube_dims[below(3)], sizeof e->cluster.dims);
    e->cluster.slices = power(2);
    e->cluster.price_usd_per_chip_hour = (double)NAN;
    const char *const *shapes = NULL;
    int shapes_count = adv_catalog_shapes(catalog, chip->chip.name, &shapes);
    adv_err err;
    adv_err_init(&err);
    return adv_cluster_build(&e->cluster, shapes, shapes_count, &err) == ADV_OK;
}

/* A random plan; false when the draw is not legal. */
static bool draw(struct example *e)
{
    adv_err err;
    adv_err_init(&err);
    if (adv_catalog_model(catalog, names[below(8)], &e->model, &err) != ADV_OK) fail();
    if (!draw_cluster(e)) return false;
    adv_plan_defaults(&e->plan, &e->model);
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) e->plan.family.ici[axis] = e->plan.family.dcn[axis] = 1;
    e->plan.family.dcn[ADV_AXIS_DATA] = e->cluster.slices;
    e->plan.family.ici[ADV_AXIS_TENSOR] = power(3);
    e->plan.family.ici[ADV_AXIS_CONTEXT] = power(3);
    int rest = e->cluster.devices_per_slice /
               (e->plan.family.ici[ADV_AXIS_TENSOR] * e->plan.family.ici[ADV_AXIS_CONTEXT]);
    if (rest < 1) return false;
    e->plan.family.ici[ADV_AXIS_FSDP] = rest;
    e->plan.family.per_device_batch_size = power(3);
    e->plan.family.seq_len = 2048 << below(4);
    e->plan.num_vocab_tiling = power(3);
    for (int t = 0; t < ADV_TENSOR_COUNT; t++) e->plan.placements[t] = (enum adv_placement)below(3);
    if (e->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] == ADV_PLACE_REMAT)
        e->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_DEVICE;
    return adv_plan_broken_rule(&e->plan, &e->model, &e->cluster) == NULL;
}

static struct adv_estimate estimate(const struct example *e, struct adv_ledger *book)
{
    struct adv_estimate_input input = {&e->model, &e->cluster, &e->constants, &e->plan,
                                       ADV_FLOPS_CAUSAL_HALF};
    struct adv_estimate result;
    adv_err err;
    adv_err_init(&err);
    if (adv_estimate_plan(&input, &result, book, &err) != ADV_OK)
        fail_msg("%s refused: %s", e->model.name, err.findings[0].detail);
    return result;
}

static void parts_add_up_and_nothing_is_negative_or_nan(void **state)
{
    (void)state;
    int tried = 0;
    for (int i = 0; i < CASES; i++) {
        struct example e;
        if (!draw(&e)) continue;
        tried++;
        struct adv_estimate with = estimate(&e, &ledger);
        struct adv_estimate without = estimate(&e, NULL);
        double exposed = 0.0;
        for (int t = 0; t < ledger.terms_count; t++) {
            const struct adv_term *term = &ledger.terms[t];
            assert_true(term->seconds >= 0.0 && term->exposed_seconds >= 0.0);
            assert_true(term->exposed_seconds <= term->seconds * (1.0 + 1e-12));
            exposed += term->exposed_seconds;
        }
        assert_close(exposed, with.step_time_s, 1e-12);
        assert_true(with.step_time_s == without.step_time_s);
        assert_true(with.hbm_bytes_per_device == without.hbm_bytes_per_device);
        assert_true(with.step_time_low_s < with.step_time_s && with.step_time_s < with.step_time_high_s);
        assert_true(isfinite(with.hbm_bytes_per_device) && with.hbm_bytes_per_device > 0.0);
    }
    assert_true(tried > CASES / 10);
}

/* The plan that was priced last, with its tensors moved away and back. */
static void assert_moved_tensors_are_fresh(const struct adv_plan *plan, const struct adv_estimate *fresh,
                                           struct adv_cost_scratch *scratch)
{
    const struct adv_places places = adv_places_of(plan);
    const signed char scheduling = plan->flags.host_offload_scheduling;
    struct adv_places away = places;
    struct adv_estimate placed, memory;
    for (int i = 0; i < 3; i++)
        away.tensors = adv_remat_put(away.tensors, (enum adv_tensor)below(ADV_TENSOR_COUNT),
                                     (enum adv_placement)(1 + below(2)));
    away.num_vocab_tiling = 1 + below(2);
    assert_int_equal(adv_estimate_placed(scratch, &away, (signed char)(below(3) - 1), &placed, NULL), ADV_OK);
    adv_estimate_memory_placed(scratch, &places, scheduling, &memory);
    assert_true(memory.loss_peak_bytes == fresh->loss_peak_bytes);
    assert_true(memory.backward_peak_bytes == fresh->backward_peak_bytes);
    assert_true(memory.host_bytes_per_host == fresh->host_bytes_per_host);
    assert_int_equal(adv_estimate_placed(scratch, &places, scheduling, &placed, NULL), ADV_OK);
    assert_true(placed.step_time_s == fresh->step_time_s);
    assert_true(placed.hbm_bytes_per_device == fresh->hbm_bytes_per_device);
    assert_true(placed.host_bytes_per_host == fresh->host_bytes_per_host);
}

static void assert_again_is_fresh(const struct example *e, const struct adv_plan *plan,
                                  struct adv_cost_scratch *scratch)
{
    struct adv_plan passing = *plan; /* gone when the interval is asked for, as in the search */
    struct adv_estimate_input input = {&e->model, &e->cluster, &e->constants, &passing,
                                       ADV_FLOPS_CAUSAL_HALF};
    struct adv_estimate fresh, again;
    const adv_code code = adv_estimate_plan(&input, &fresh, NULL, NULL);
    assert_int_equal(code, adv_estimate_again(&input, scratch, &again, NULL));
    memset(&passing, 0x55, sizeof passing);
    if (code == ADV_OK) assert_moved_tensors_are_fresh(plan, &fresh, scratch);
    adv_estimate_again_interval(scratch, &again);
    adv_estimate_verdict(&again);
    assert_true(again.step_time_s == fresh.step_time_s);
    assert_true(again.step_time_low_s == fresh.step_time_low_s);
    assert_true(again.step_time_high_s == fresh.step_time_high_s);
    assert_true(again.tokens_per_step == fresh.tokens_per_step);
    assert_true(again.loss_peak_bytes == fresh.loss_peak_bytes);
    assert_true(again.backward_peak_bytes == fresh.backward_peak_bytes);
    assert_true(again.update_peak_bytes == fresh.update_peak_bytes);
    assert_true(again.confidence == fresh.confidence);
    assert_true(again.hbm_bytes_per_device == fresh.hbm_bytes_per_device);
    assert_true(again.host_bytes_per_host == fresh.host_bytes_per_host);
    assert_true(again.fit == fresh.fit && again.fit_probability == fresh.fit_probability);
    assert_true(again.hbm_low_bytes_per_device == fresh.hbm_low_bytes_per_device);
    assert_true(again.hbm_high_bytes_per_device == fresh.hbm_high_bytes_per_device);
}

#define MEMBER(member, lowest, count)                                                                        \
    {                                                                                                        \
        offsetof(struct adv_plan, member), sizeof((struct adv_plan *)0)->member, lowest, count               \
    }
static const struct {
    size_t offset, bytes;
    int lowest, count; /* values, one apart */
} members[] = {
    MEMBER(family.gradient_accumulation_steps, 1, 3),
    MEMBER(family.rule, 0, 7),
    MEMBER(family.custom_mesh, 0, 3),
    MEMBER(family.cp_strategy, 0, 4),
    MEMBER(family.cp_load_balance, 0, 2),
    MEMBER(family.allow_split_physical_axes, 0, 2),
    MEMBER(family.shard_exp_on_fsdp, 0, 2),
    MEMBER(family.two_stage_gather, 0, 2),
    MEMBER(family.scan_layers, 0, 2),
    MEMBER(family.weight_dtype, 0, 2),
    MEMBER(family.grad_dtype, 0, 2),
    MEMBER(family.mu_dtype, 0, 2),
    MEMBER(family.quantization, 0, 4),
    MEMBER(family.quantization_static, 0, 2),
    MEMBER(family.attention, 0, 2),
    MEMBER(family.use_tokamax_splash, 0, 2),
    MEMBER(family.use_fused_bwd, 0, 2),
    MEMBER(family.use_splash_scheduler, 0, 2),
    MEMBER(family.max_logit_estimate, 0, 2),
    MEMBER(family.moe, 0, 5),
    MEMBER(family.use_ring_of_experts, 0, 2),
    MEMBER(family.float32_weight_sum, 0, 2),
    MEMBER(family.use_iota_embed, 0, 2),
    MEMBER(family.mtp_layers, 0, 2),
    MEMBER(flags.sc_all_gather, -1, 3),
    MEMBER(flags.sc_reduce_scatter, -1, 3),
    MEMBER(flags.cf_all_gather, -1, 3),
    MEMBER(flags.data_parallel_overlap, -1, 3),
    MEMBER(flags.host_offload_scheduling, -1, 3),
    MEMBER(num_vocab_tiling, 1, 4),
    MEMBER(optimizer_host_offload, 0, 2),
    MEMBER(parameter_host_offload, 0, 2),
    MEMBER(shard_optimizer_over_data, 0, 2),
};
#undef MEMBER

/* Little-endian: the low bytes of the number are the member. */
static void change_member(struct adv_plan *plan)
{
    int at = below((int)(sizeof members / sizeof *members));
    int value = members[at].lowest + below(members[at].count);
    memcpy((char *)plan + members[at].offset, &value, members[at].bytes);
}

static void change_mesh(const struct example *e, struct adv_plan *plan)
{
    static const enum adv_axis axes[] = {ADV_AXIS_TENSOR,         ADV_AXIS_CONTEXT, ADV_AXIS_EXPERT,
                                         ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_DATA,    ADV_AXIS_STAGE};
    int rest = e->cluster.devices_per_slice;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        int degree = below(3) ? 1 : power(4);
        plan->family.ici[axes[i]] = rest % degree == 0 ? degree : 1;
        rest /= plan->family.ici[axes[i]];
    }
    plan->family.ici[ADV_AXIS_FSDP] = rest;
}

/* Whatever plans follow each other, what the scratch remembers of one is right for the next or not used. */
static void plans_of_one_job_share_a_scratch_in_any_order(void **state)
{
    (void)state;
    static struct adv_cost_scratch scratch;
    static struct example e;
    int compared = 0;
    for (int job = 0; job < CASES / 20; job++) {
        if (!draw(&e)) continue;
        memset(&scratch, 0, sizeof scratch);
        struct adv_plan plan = e.plan, kept = e.plan;
        for (int i = 0; i < 60; i++) {
            if (below(4) == 0) change_mesh(&e, &plan);
            for (int change = below(4); change >= 0; change--) change_member(&plan);
            plan.placements[below(ADV_TENSOR_COUNT)] = (enum adv_placement)(1 + below(2));
            if (below(6) == 0) plan = kept; /* back to an old mesh */
            if (adv_plan_broken_rule(&plan, &e.model, &e.cluster)) {
                plan = kept;
                continue;
            }
            if (below(3) == 0) kept = plan;
            assert_again_is_fresh(&e, &plan, &scratch);
            compared++;
        }
    }
    assert_true(compared > CASES);
}

/* A mesh made by hand is laid out by whether its axes may be split. */
static void split_axes_are_part_of_a_mesh_made_by_hand(void **state)
{
    (void)state;
    static struct adv_cost_scratch scratch;
    static struct example e;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_catalog_model(catalog, "llama3.1-70b", &e.model, &err), ADV_OK);
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, "v6e");
    const char *const *shapes = NULL;
    int shapes_count = adv_catalog_shapes(catalog, "v6e", &shapes);
    e.cluster = (struct adv_cluster){.chip = chip->chip, .dims = {16, 16, 1}, .slices = 1};
    e.constants = chip->constants;
    assert_int_equal(adv_cluster_build(&e.cluster, shapes, shapes_count, &err), ADV_OK);
    adv_plan_defaults(&e.plan, &e.model);
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) e.plan.family.ici[axis] = e.plan.family.dcn[axis] = 1;
    e.plan.family.ici[ADV_AXIS_FSDP] = 64;
    e.plan.family.ici[ADV_AXIS_TENSOR] = 4;
    e.plan.family.custom_mesh = ADV_CUSTOM_MESH_64X4;
    e.plan.family.per_device_batch_size = 1;
    e.plan.family.seq_len = 4096;
    adv_plan_clamp_blocks(&e.plan);
    double step_s[2];
    for (int split = 0; split < 2; split++) {
        e.plan.family.allow_split_physical_axes = split;
        assert_again_is_fresh(&e, &e.plan, &scratch);
        step_s[split] = estimate(&e, NULL).step_time_s;
    }
    assert_true(step_s[0] != step_s[1]);
}

/* Four plans of each draw's family share a scratch. */
static void the_shortcut_for_families_changes_no_bit(void **state)
{
    (void)state;
    static struct adv_cost_scratch scratch;
    static struct example e;
    int compared = 0;
    for (int i = 0; i < CASES; i++) {
        if (!draw(&e)) continue;
        scratch.valid = false; /* the example was drawn anew behind its pointers */
        for (int member = 0; member < 4; member++) {
            e.plan.num_vocab_tiling = 1 << member;
            e.plan.placements[below(ADV_TENSOR_COUNT)] = (enum adv_placement)(1 + below(2));
            assert_again_is_fresh(&e, &e.plan, &scratch);
            compared++;
        }
    }
    assert_true(compared > CASES / 10);
}

/* Changes of a key that nothing reads without what it is for; the search for changed keys leaves them out. */
static void change_unread(struct adv_plan *plan)
{
    if (adv_plan_degree(plan, ADV_AXIS_CONTEXT) == 1 && adv_plan_degree(plan, ADV_AXIS_ULYSSES) == 1) {
        plan->family.cp_strategy = (enum adv_cp_strategy)below(4);
        plan->family.cp_load_balance = below(2);
    }
    if (adv_plan_degree(plan, ADV_AXIS_STAGE) == 1) {
        plan->family.layers_per_stage = 1 + below(8);
        plan->family.pipeline_microbatches = below(8);
    }
    if (adv_plan_degree(plan, ADV_AXIS_EXPERT) == 1) plan->family.use_ring_of_experts = below(2);
    if (plan->family.use_fused_bwd || plan->family.use_tokamax_splash) {
        plan->family.blocks[0].block_q_dq = plan->family.blocks[1].block_q_dq = 128 << below(4);
        plan->family.blocks[0].block_kv_dq = plan->family.blocks[1].block_kv_dq = 128 << below(4);
    }
    plan->flags.cf_reduce_scatter = (signed char)below(2);
    plan->flags.cf_all_reduce = (signed char)below(2);
}

static void keys_that_nothing_reads_change_no_prediction(void **state)
{
    (void)state;
    int changed = 0;
    for (int i = 0; i < CASES; i++) {
        struct example e;
        if (!draw(&e)) continue;
        e.plan.family.use_fused_bwd = below(2);
        struct adv_estimate before = estimate(&e, NULL);
        change_unread(&e.plan);
        struct adv_estimate after = estimate(&e, NULL);
        assert_true(before.step_time_s == after.step_time_s);
        assert_true(before.step_time_high_s == after.step_time_high_s);
        assert_true(before.hbm_bytes_per_device == after.hbm_bytes_per_device);
        assert_true(before.host_bytes_per_host == after.host_bytes_per_host);
        changed++;
    }
    assert_true(changed > CASES / 10);
}

static void never_faster_than_the_peak(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct example e;
        if (!draw(&e)) continue;
        struct adv_estimate result = estimate(&e, NULL);
        assert_true(result.mfu_frac > 0.0 && result.mfu_frac < 1.0);
        assert_true(result.hfu_frac < 1.0);
    }
}

static void faster_hardware_is_never_slower(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct example e;
        if (!draw(&e)) continue;
        double before_s = estimate(&e, NULL).step_time_s;
        double *fields[] = {
            &e.cluster.chip.peak_bf16_flops_per_s_per_chip, &e.cluster.chip.hbm_bytes_per_s_per_chip,
            &e.cluster.chip.ici_link_achieved_bytes_per_s, &e.cluster.chip.dcn_bytes_per_s_per_chip};
        int which = below(4);
        *fields[which] *= 1.5;
        double after_s = estimate(&e, NULL).step_time_s;
        if (after_s > before_s * (1.0 + 1e-12))
            fail_msg("%s on %s: field %d faster, step %g -> %g", e.model.name, e.cluster.chip.name, which,
                     before_s, after_s);
    }
}

static void saving_a_tensor_never_adds_flops(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        struct example e;
        if (!draw(&e)) continue;
        int tensor = below(ADV_TENSOR_COUNT);
        double flops[2] = {0.0, 0.0};
        for (int saved = 0; saved < 2; saved++) {
            bool input = tensor == ADV_TENSOR_DECODER_LAYER_INPUT;
            e.plan.placements[tensor] = saved || input ? ADV_PLACE_DEVICE : ADV_PLACE_REMAT;
            (void)estimate(&e, &ledger);
            for (int t = 0; t < ledger.terms_count; t++) flops[saved] += ledger.terms[t].flops_per_device;
        }
        assert_true(flops[1] <= flops[0] * (1.0 + 1e-12));
    }
}

static void one_device_communicates_nothing(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        struct example e;
        if (!draw(&e)) continue;
        e.cluster.chip = adv_catalog_chip(catalog, "v6e")->chip;
        e.constants = adv_catalog_chip(catalog, "v6e")->constants;
        e.cluster.dims[0] = e.cluster.dims[1] = e.cluster.dims[2] = 1;
        memset(e.cluster.wraps, 0, sizeof e.cluster.wraps);
        e.cluster.slices = e.cluster.devices = e.cluster.devices_per_slice = 1;
        e.cluster.chips_per_slice = e.cluster.hosts = e.cluster.devices_per_host = 1;
        for (int axis = 0; axis < ADV_AXIS_COUNT; axis++)
            e.plan.family.ici[axis] = e.plan.family.dcn[axis] = 1;
        (void)estimate(&e, &ledger);
        for (int t = 0; t < ledger.terms_count; t++) {
            assert_true(ledger.terms[t].resource != ADV_RES_ICI);
            assert_true(ledger.terms[t].resource != ADV_RES_DCN);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_add_up_and_nothing_is_negative_or_nan),
        cmocka_unit_test(the_shortcut_for_families_changes_no_bit),
        cmocka_unit_test(plans_of_one_job_share_a_scratch_in_any_order),
        cmocka_unit_test(split_axes_are_part_of_a_mesh_made_by_hand),
        cmocka_unit_test(keys_that_nothing_reads_change_no_prediction),
        cmocka_unit_test(never_faster_than_the_peak),
        cmocka_unit_test(faster_hardware_is_never_slower),
        cmocka_unit_test(saving_a_tensor_never_adds_flops),
        cmocka_unit_test(one_device_communicates_nothing),
    };
    return run_group_with_catalog(tests);
}
