#include "tests/unit/check.h"

#include <string.h>

#include "engine/maxtext/keys.h"
#include "engine/spec/plan.h"

static struct adv_model model;
static struct adv_plan plan;

static int set_up(void **state)
{
    (void)state;
    memset(&model, 0, sizeof model);
    adv_plan_defaults(&plan, &model);
    return 0;
}

static void defaults_are_those_of_base_yml(void **state)
{
    (void)state;
    assert_close(plan.family.per_device_batch_size, 12, 0);
    assert_int_equal(plan.family.seq_len, 2048);
    assert_int_equal(plan.family.weight_dtype, ADV_FORMAT_F32);
    assert_int_equal(plan.family.mu_dtype, ADV_FORMAT_F32);
    assert_int_equal(plan.family.dtype, ADV_FORMAT_BF16);
    assert_int_equal(plan.family.optimizer, ADV_OPT_ADAMW);
    assert_int_equal(plan.family.blocks[0].block_q, 512);
    assert_int_equal(plan.family.gmm_blocks[1][ADV_GMM_DRHS].embed_dim, 1024);
    assert_int_equal(plan.num_vocab_tiling, 1);
    assert_true(plan.family.scan_layers && plan.family.cp_load_balance && plan.family.cast_logits_to_fp32);
    assert_int_equal(plan.flags.sc_all_gather, -1);
}

static void only_the_custom_policy_names_the_layer_input(void **state)
{
    (void)state;
    for (int policy = 0; policy < ADV_POLICY_COUNT; policy++) {
        adv_policy_placements((enum adv_policy)policy, plan.placements);
        assert_int_equal(plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT],
                         policy == ADV_POLICY_CUSTOM ? ADV_PLACE_DEVICE : ADV_PLACE_REMAT);
    }
}

static void minimal_keeps_projections_but_not_the_attention_context(void **state)
{
    (void)state;
    adv_policy_placements(ADV_POLICY_MINIMAL, plan.placements);
    assert_int_equal(plan.placements[ADV_TENSOR_QUERY_PROJ], ADV_PLACE_DEVICE);
    assert_int_equal(plan.placements[ADV_TENSOR_MLPWO], ADV_PLACE_DEVICE);
    assert_int_equal(plan.placements[ADV_TENSOR_CONTEXT], ADV_PLACE_REMAT);
    adv_policy_placements(ADV_POLICY_MINIMAL_WITH_CONTEXT, plan.placements);
    assert_int_equal(plan.placements[ADV_TENSOR_CONTEXT], ADV_PLACE_DEVICE);
}

static void offloading_the_projections_leaves_the_fused_one_out(void **state)
{
    (void)state;
    adv_policy_placements(ADV_POLICY_QKV_PROJ_OFFLOADED, plan.placements);
    assert_int_equal(plan.placements[ADV_TENSOR_KEY_PROJ], ADV_PLACE_OFFLOAD);
    assert_int_equal(plan.placements[ADV_TENSOR_QKV_PROJ], ADV_PLACE_REMAT);
}

static void data_parallelism_never_shards_weights(void **state)
{
    (void)state;
    plan.family.ici[ADV_AXIS_FSDP] = 8;
    plan.family.ici[ADV_AXIS_TENSOR] = 4;
    int shards = adv_plan_weight_shards(&plan);
    plan.family.ici[ADV_AXIS_DATA] = 16;
    plan.family.dcn[ADV_AXIS_DATA] = 2;
    assert_int_equal(shards, 32);
    assert_int_equal(adv_plan_weight_shards(&plan), shards);
}

static void expert_axis_acting_as_data_shards_experts_only(void **state)
{
    (void)state;
    plan.family.ici[ADV_AXIS_FSDP] = 8;
    plan.family.ici[ADV_AXIS_EXPERT] = 4;
    assert_int_equal(adv_plan_weight_shards(&plan), 32);
    plan.family.rule = ADV_RULE_EP_AS_DP;
    assert_int_equal(adv_plan_weight_shards(&plan), 8);
    assert_int_equal(adv_plan_expert_shards(&plan), 32);
}

static void global_batch_survives_decimal_fractions(void **state)
{
    (void)state;
    struct adv_cluster cluster = {.devices = 30};
    plan.family.per_device_batch_size = 0.1;
    plan.family.gradient_accumulation_steps = 4;
    assert_close(adv_plan_global_batch(&plan, &cluster), 12, 0);
}

static void blocks_are_clamped_to_the_sequence(void **state)
{
    (void)state;
    plan.family.seq_len = 256;
    plan.family.blocks[1].block_kv = 128;
    adv_plan_clamp_blocks(&plan);
    assert_int_equal(plan.family.blocks[0].block_q, 256);
    assert_int_equal(plan.family.blocks[0].block_kv_dq, 256);
    assert_int_equal(plan.family.blocks[1].block_kv, 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults_are_those_of_base_yml, set_up),
        cmocka_unit_test_setup(only_the_custom_policy_names_the_layer_input, set_up),
        cmocka_unit_test_setup(minimal_keeps_projections_but_not_the_attention_context, set_up),
        cmocka_unit_test_setup(offloading_the_projections_leaves_the_fused_one_out, set_up),
        cmocka_unit_test_setup(data_parallelism_never_shards_weights, set_up),
        cmocka_unit_test_setup(expert_axis_acting_as_data_shards_experts_only, set_up),
        cmocka_unit_test_setup(global_batch_survives_decimal_fractions, set_up),
        cmocka_unit_test_setup(blocks_are_clamped_to_the_sequence, set_up),
    };
    return run_group(tests);
}
