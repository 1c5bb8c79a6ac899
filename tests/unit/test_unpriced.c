/* Keys and values of MaxText that the engine has no price of: each is said to be left out, or refused. */
#include "tests/unit/check.h"

#include "tests/unit/decode_fixture.h"

static void keys_that_change_a_step_and_have_no_price_say_so(void **state)
{
    static const struct {
        const char *config;
        bool told;
    } cases[] = {
        {"\"activations_in_float32\":true", true},
        {"\"dropout_rate\":0.1", true},
        {"\"dropout_rate\":0", false},
        {"\"local_sa_use_fused_bwd_kernel\":false", true},
        {"\"local_sa_use_fused_bwd_kernel\":null", false},
        {"\"local_sa_k_layout\":\"SEQ_MINOR\"", true},
        {"\"logical_axis_rules\":[[\"batch\",[\"data\"]]]", true},
        {"\"trainable_parameters_mask\":[\".*query.*\"]", true},
        {"\"trainable_parameters_mask\":[]", false},
        {"\"set_remat_policy_on_pipeline_iterations\":false", true},
        {"\"use_tunix_gradient_accumulation\":\"False\"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_ok(decode_config(cases[i].config));
        if ((find_rule(&warnings, "not-modelled") != NULL) != cases[i].told) fail_msg("%s", cases[i].config);
    }
}

/* MaxText takes them, so they are not called wrong. */
static void values_that_nothing_is_known_of_are_refused_as_such(void **state)
{
    static const char *const configs[] = {
        "\"attention\":\"cudnn_flash_te\"",   "\"quantization\":\"te_mxfp8\"",
        "\"quantization\":\"te_no_quant\"",   "\"custom_mesh_and_rule\":\"fsdp-as-dp-for-attn\"",
        "\"weight_dtype\":\"float8_e4m3fn\"", "\"grad_dtype\":\"float8_e5m2\"",
        "\"dtype\":\"float8_e5m2\"",
    };
    (void)state;
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        assert_int_equal(decode_config(configs[i]), ADV_E_UNSUPPORTED);
        assert_int_equal(err.findings[0].code, ADV_E_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_change_a_step_and_have_no_price_say_so),
        cmocka_unit_test(values_that_nothing_is_known_of_are_refused_as_such),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
