#include "tests/unit/check.h"
#include "tests/unit/machine.h"

#include "engine/hardware/roofline.h"

static void one_ici_axis_needs_11535_flops_per_byte(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x"), v6e = machine_chip("v6e"), v5p = machine_chip("v5p");
    assert_close(adv_roofline_ici_intensity(&tpu7x, 1, false), 11535.0, 1e-9); /* 2307e12 / 200e9 */
    assert_close(adv_roofline_ici_intensity(&tpu7x, 1, true), 12817.0, 1e-4);  /* 2307e12 / 180e9 */
    assert_close(adv_roofline_ici_intensity(&tpu7x, 3, false), 3845.0, 1e-9);
    assert_close(adv_roofline_ici_intensity(&v6e, 1, true), 5100.0, 1e-9);
    assert_close(adv_roofline_ici_intensity(&v6e, 2, true), 2550.0, 1e-9);
    assert_close(adv_roofline_ici_intensity(&v5p, 1, true), 2550.0, 1e-9);
}

static void the_die_to_die_link_is_six_axes_wide(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x"), v5p = machine_chip("v5p");
    assert_close(adv_roofline_d2d_intensity(&tpu7x), 1922.5, 1e-9);
    assert_close(adv_roofline_ici_intensity(&tpu7x, 1, false) / adv_roofline_d2d_intensity(&tpu7x), 6.0,
                 1e-12);
    assert_true(isnan(adv_roofline_d2d_intensity(&v5p)));
    /* A tensor parallelism of 2 on the cores hides for every catalog model from 3,845 up. */
    assert_close(adv_roofline_min_mlp_dim_on_cores(&tpu7x), 3845.0, 1e-9);
}

static void hbm_and_dcn_intensities_are_the_published_ones(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x"), v6e = machine_chip("v6e"), v5e = machine_chip("v5e");
    assert_close(adv_roofline_hbm_intensity(&tpu7x, false), 312.6, 1e-3);
    assert_close(adv_roofline_hbm_intensity(&tpu7x, true), 359.3, 1e-3);
    assert_close(adv_roofline_dcn_intensity(&tpu7x), 184560.0, 1e-9);
    assert_close(adv_roofline_dcn_intensity(&v6e), 73440.0, 1e-9);
    assert_close(adv_roofline_dcn_intensity(&v5e), 63040.0, 1e-9);
}

static void weight_gathers_hide_above_the_axis_intensity(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x");
    assert_close(adv_roofline_min_tokens_per_chip(&tpu7x, 1, 1.0, false), 11535.0, 1e-9);
    assert_close(adv_roofline_min_tokens_per_chip(&tpu7x, 3, 1.0, false), 3845.0, 1e-9);
    /* 128 experts, 4 active: 32 times the tokens. */
    assert_close(adv_roofline_min_tokens_per_chip(&tpu7x, 3, 32.0, false), 123040.0, 1e-9);
}

static void tensor_parallelism_of_4_needs_an_mlp_above_46140(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x");
    double spec = adv_roofline_min_mlp_dim(&tpu7x, 4, false),
           achieved = adv_roofline_min_mlp_dim(&tpu7x, 4, true);
    assert_close(spec, 46140.0, 1e-9);
    assert_true(46000.0 < spec && spec < 46300.0);
    assert_true(51100.0 < achieved && achieved < 51400.0);
    assert_close(adv_roofline_max_tensor_parallelism(&tpu7x, 28672, false), 2.49, 0.005); /* llama3-70b */
    assert_close(adv_roofline_max_tensor_parallelism(&tpu7x, 18944, false), 1.64, 0.005); /* qwen2.5-7b */
}

static void expert_parallelism_of_4_needs_experts_wider_than_any_published(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x");
    double least = adv_roofline_min_expert_mlp_dim(&tpu7x, 4, false);
    assert_close(least, 11535.0, 1e-9);
    assert_true(2880.0 < least && 2048.0 < least); /* gpt-oss, deepseek3 */
}

static void key_value_gathers_of_long_sequences_hide(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x");
    assert_close(adv_roofline_context_intensity(131072, 64, 8, 8), 131072.0, 1e-12);
    assert_close(adv_roofline_context_intensity(8192, 64, 8, 2), 32768.0, 1e-12);
    assert_true(adv_roofline_context_intensity(8192, 64, 8, 2) > adv_roofline_ici_intensity(&tpu7x, 1, true));
}

static void small_heads_leave_the_matrix_unit_idle(void **state)
{
    (void)state;
    struct adv_chip tpu7x = machine_chip("tpu7x"), v5p = machine_chip("v5p");
    assert_close(adv_roofline_mxu_utilisation(&tpu7x, 128), 0.5, 1e-12);
    assert_close(adv_roofline_mxu_utilisation(&tpu7x, 64), 0.25, 1e-12);
    assert_close(adv_roofline_mxu_utilisation(&tpu7x, 256), 1.0, 1e-12);
    assert_close(adv_roofline_mxu_utilisation(&tpu7x, 257), 0.502, 1e-3);
    assert_close(adv_roofline_mxu_utilisation(&tpu7x, 384), 0.75, 1e-12);
    assert_close(adv_roofline_mxu_utilisation(&v5p, 128), 1.0, 1e-12);
    for (int size = 1; size < 256; size++)
        assert_true(adv_roofline_mxu_utilisation(&tpu7x, size) <
                    adv_roofline_mxu_utilisation(&tpu7x, size + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_ici_axis_needs_11535_flops_per_byte),
        cmocka_unit_test(the_die_to_die_link_is_six_axes_wide),
        cmocka_unit_test(hbm_and_dcn_intensities_are_the_published_ones),
        cmocka_unit_test(weight_gathers_hide_above_the_axis_intensity),
        cmocka_unit_test(tensor_parallelism_of_4_needs_an_mlp_above_46140),
        cmocka_unit_test(expert_parallelism_of_4_needs_experts_wider_than_any_published),
        cmocka_unit_test(key_value_gathers_of_long_sequences_hide),
        cmocka_unit_test(small_heads_leave_the_matrix_unit_idle),
    };
    return run_group(tests);
}
