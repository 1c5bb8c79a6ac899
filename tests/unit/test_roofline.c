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
        cmocka_unit_test(expert_parallelism_of_4_needs_experts_wider_than_any_published),
        cmocka_unit_test(key_value_gathers_of_long_sequences_hide),
        cmocka_unit_test(small_heads_leave_the_matrix_unit_idle),
    };
    return run_group(tests);
}
