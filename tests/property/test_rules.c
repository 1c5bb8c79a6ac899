/* Laws of the legality rules whatever the plan: random plans of real models on real slices. */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/cost/estimate.h"
#include "engine/maxtext/keys.h"
#include "tests/unit/catalog_fixture.h"
#include "tests/unit/draw.h"

enum { CASES = 20000 };

static uint64_t random_state = UINT64_C(0x243f6a8885a308d3);
static struct adv_model model;
static struct adv_cluster cluster;
static struct adv_plan plan;

static int below(int bound)
{
    return (int)(draw_next(&random_state) % (uint64_t)bound);
}

static void draw_job(void)
{
    static const char *const names[] = {"llama3.1-70b", "gemma3-27b", "deepseek3-671b", "gpt-oss-120b",
                                        "mixtral-8x7b", "gpt3-175b",  "gemma4-e2b",     "llama4-17b-16e"};
    static const char *const shapes[][2] = {
        {"tpu7x", "4x4x4"}, {"v6e", "16x16"}, {"v5p", "4x4x8"}, {"v5e", "4x4"}};
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_catalog_model(catalog, names[below(8)], &model, &err), ADV_OK);
    const char *const *shape = shapes[below(4)];
    memset(&cluster, 0, sizeof cluster);
    cluster.chip = adv_catalog_chip(catalog, shape[0])->chip;
    cluster.slices = 1 << below(2);
    cluster.dims[0] = cluster.dims[1] = cluster.dims[2] = 1;
    assert_true(sscanf(shape[1], "%dx%dx%d", &cluster.dims[0], &cluster.dims[1], &cluster.dims[2]) >= 2);
    const char *const *legal = NULL;
    int legal_count = adv_catalog_shapes(catalog, shape[0], &legal);
    assert_int_equal(adv_cluster_build(&cluster, legal, legal_count, &err), ADV_OK);
}

/* Often legal: powers of two that multiply to the slice, and now and then something odd. */
static void draw_plan(void)
{
    static const enum adv_axis axes[] = {ADV_AXIS_DATA,   ADV_AXIS_FSDP_TRANSPOSE, ADV_AXIS_CONTEXT,
                                         ADV_AXIS_TENSOR, ADV_AXIS_EXPERT,         ADV_AXIS_STAGE};
    adv_plan_defaults(&plan, &model);
    int left = cluster.devices_per_slice;
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        int degree = below(3) == 0 ? 1 << below(4) : 1;
        if (left % degree != 0) continue;
        plan.family.ici[axes[i]] = degree;
        left /= degree;
    }
    plan.family.ici[ADV_AXIS_FSDP] = below(20) == 0 ? left + 1 : left;
    plan.family.dcn[ADV_AXIS_DATA] = cluster.slices;
    plan.family.per_device_batch_size = below(4) == 0 ? 0.25 * (1 + below(8)) : 1 << below(4);
    plan.family.seq_len = 1024 << below(6);
    plan.family.cp_strategy = (enum adv_cp_strategy)below(4);
    plan.family.cp_load_balance = below(2);
    plan.family.use_tokamax_splash = below(2);
    plan.family.quantization = (enum adv_quantization)below(4);
    plan.family.use_qwix = below(2);
    plan.family.optimizer = (enum adv_optimizer)below(4);
    plan.num_vocab_tiling = 1 << below(4);
    plan.family.scan_layers = below(4) > 0;
    plan.family.gradient_accumulation_steps = 1 << below(2);
    plan.family.shard_exp_on_fsdp = below(4) == 0;
    plan.family.use_ring_of_experts = below(6) == 0;
    plan.family.rule = (enum adv_mesh_rule)(below(3) == 0 ? below(7) : 0);
    plan.family.blocks[0].block_q = 128 << below(6);
    plan.family.blocks[0].block_kv = 128 << below(6);
    plan.family.blocks[0].block_kv_compute = 128 << below(4);
    adv_plan_clamp_blocks(&plan);
}

static bool refused_today(const adv_err *warnings)
{
    for (int i = 0; i < warnings->count; i++) {
        if (warnings->findings[i].code == ADV_E_ILLEGAL) return true;
    }
    return false;
}

static void the_fast_check_agrees_with_the_one_that_explains(void **state)
{
    (void)state;
    int legal_count = 0;
    for (int i = 0; i < CASES; i++) {
        adv_err err, warnings;
        adv_err_init(&err);
        adv_err_init(&warnings);
        draw_job();
        draw_plan();
        adv_code code = adv_plan_check(&plan, &model, &cluster, &err, &warnings);
        bool legal = code == ADV_OK && !refused_today(&warnings);
        assert_int_equal(code != ADV_OK, err.count > 0);
        assert_int_equal(legal, adv_plan_broken_rule(&plan, &model, &cluster) == NULL);
        legal_count += legal;
    }
    assert_in_range(legal_count, CASES / 50, CASES - CASES / 50); /* both sides were seen */
}

static void rules_of_the_mesh_do_not_read_the_batch_and_the_two_shares_are_all(void **state)
{
    (void)state;
    int broken = 0;
    for (int i = 0; i < CASES; i++) {
        draw_job();
        draw_plan();
        const char *of_mesh = adv_plan_broken_rule_among(&plan, &model, &cluster, ADV_RULES_OF_MESH);
        const char *of_batch = adv_plan_broken_rule_among(&plan, &model, &cluster, ADV_RULES_OF_BATCH);
        assert_int_equal(of_mesh || of_batch, adv_plan_broken_rule(&plan, &model, &cluster) != NULL);
        plan.family.per_device_batch_size = 1 + below(7) / 2.0;
        plan.family.gradient_accumulation_steps = 1 + below(5);
        plan.family.quantization = (enum adv_quantization)below(4);
        plan.family.use_qwix = below(2);
        plan.family.use_ring_of_experts = below(2);
        assert_ptr_equal(adv_plan_broken_rule_among(&plan, &model, &cluster, ADV_RULES_OF_MESH), of_mesh);
        broken += of_mesh != NULL;
    }
    assert_in_range(broken, CASES / 50, CASES - CASES / 50);
}

/* The search counts all smaller batches as illegal at once. */
static void a_batch_too_small_for_its_shards_is_illegal_and_so_is_any_smaller_one(void **state)
{
    (void)state;
    int small = 0;
    for (int i = 0; i < CASES; i++) {
        draw_job();
        draw_plan();
        const char *rule = adv_plan_batch_too_small(&plan, &cluster);
        if (!rule) continue;
        small++;
        for (int smaller = 0; smaller < 4; smaller++) {
            assert_non_null(adv_plan_broken_rule_among(&plan, &model, &cluster, ADV_RULES_OF_BATCH));
            assert_non_null(adv_plan_batch_too_small(&plan, &cluster));
            plan.family.per_device_batch_size /= 1 + below(4);
            plan.family.gradient_accumulation_steps = 1 + below(5);
        }
    }
    assert_in_range(small, CASES / 50, CASES - CASES / 50);
}

static void every_finding_has_a_pointer_a_rule_and_numbers_or_names(void **state)
{
    (void)state;
    for (int i = 0; i < CASES / 10; i++) {
        adv_err err;
        adv_err_init(&err);
        draw_job();
        draw_plan();
        if (adv_plan_check(&plan, &model, &cluster, &err, &err) == ADV_OK) continue;
        for (int k = 0; k < err.count; k++) {
            assert_true(err.findings[k].pointer[0] == '/');
            assert_non_null(err.findings[k].rule);
            assert_true(strlen(err.findings[k].detail) > 10);
            assert_true(*err.findings[k].hint);
        }
    }
}

static void legal_plans_have_whole_batches_on_every_shard(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        draw_job();
        draw_plan();
        if (adv_plan_broken_rule(&plan, &model, &cluster)) continue;
        double batch = adv_plan_global_batch(&plan, &cluster) / plan.family.gradient_accumulation_steps;
        int shards = adv_plan_degree(&plan, ADV_AXIS_DATA) * adv_plan_degree(&plan, ADV_AXIS_FSDP) *
                     adv_plan_degree(&plan, ADV_AXIS_FSDP_TRANSPOSE) *
                     (plan.family.rule == ADV_RULE_EP_AS_CP ? 1 : adv_plan_degree(&plan, ADV_AXIS_EXPERT));
        assert_close(fmod(batch, shards), 0, 0);
        assert_true(batch >= shards);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fast_check_agrees_with_the_one_that_explains),
        cmocka_unit_test(rules_of_the_mesh_do_not_read_the_batch_and_the_two_shares_are_all),
        cmocka_unit_test(a_batch_too_small_for_its_shards_is_illegal_and_so_is_any_smaller_one),
        cmocka_unit_test(every_finding_has_a_pointer_a_rule_and_numbers_or_names),
        cmocka_unit_test(legal_plans_have_whole_batches_on_every_shard),
    };
    return run_group_with_catalog(tests);
}
