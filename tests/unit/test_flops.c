#include "tests/unit/check.h"

#include "tests/unit/catalog_fixture.h"
#include "tests/unit/rows_fixture.h"

static struct adv_model model_named(const char *name)
{
    struct adv_model model;
    adv_err err;
    adv_err_init(&err);
    if (adv_catalog_model(catalog, name, &model, &err) != ADV_OK)
        fail_msg("%s: %s", name, err.findings[0].detail);
    return model;
}

static void flops_of_all_models_are_maxtexts_own_count(void **state)
{
    (void)state;
    json_t *root = read_rows("tests/data/maxtext_flops.json");
    const json_t *rows = json_object_get(root, "rows");
    assert_true(json_array_size(rows) >= 5 * 75);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct adv_model model = model_named(row_text(row, 0));
        int64_t seq_len = (int64_t)row_number(row, 1);
        struct adv_model_flops flops = adv_model_flops(&model, 1, seq_len, ADV_FLOPS_CAUSAL_HALF);
        double total = row_number(row, 2) * 1e12, weights = row_number(row, 3) * 1e12,
               attention = row_number(row, 4) * 1e12;
        if (fabs(flops.total - total) > 0.001 * total || fabs(flops.weights - weights) > 0.001 * weights ||
            fabs(flops.attention - attention) > 0.001 * attention)
            fail_msg("%s, %lld tokens: %.6g = %.6g + %.6g, expected %.6g = %.6g + %.6g", model.name,
                     (long long)seq_len, flops.total, flops.weights, flops.attention, total, weights,
                     attention);
    }
    json_decref(root);
}

/* llama3.1-8b, 8192 tokens: weights 6 x 8192 x 7504658432 less 65 norms of 4096; attention 32 layers x 3
 * passes x 2 x 8192^2 x 32 heads x 128 counted half, twice that in full. */
static void the_three_conventions_differ_as_defined(void **state)
{
    (void)state;
    struct adv_model model = model_named("llama3.1-8b");
    struct adv_model_flops half = adv_model_flops(&model, 1, 8192, ADV_FLOPS_CAUSAL_HALF);
    struct adv_model_flops full = adv_model_flops(&model, 1, 8192, ADV_FLOPS_FULL);
    struct adv_model_flops params = adv_model_flops(&model, 1, 8192, ADV_FLOPS_PARAMS_ONLY);
    double attention_half = 32.0 * 3 * 2 * 8192 * 8192 * 32 * 128;
    assert_close(half.attention, attention_half, 1e-12);
    assert_close(full.attention, 2 * attention_half, 1e-12);
    assert_close(half.weights, full.weights, 0);
    assert_close(params.attention, 0, 0);
    assert_close(params.total, 6.0 * 8192 * 7504658432.0, 1e-12);
    assert_close(half.total, half.weights + half.attention, 0);
}

static void flops_scale_with_the_sequences_of_a_device(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        struct adv_model model = model_named(adv_catalog_tables(catalog)->model_names[i]);
        double one = adv_model_flops(&model, 1, 4096, ADV_FLOPS_CAUSAL_HALF).total;
        assert_close(adv_model_flops(&model, 0.25, 4096, ADV_FLOPS_CAUSAL_HALF).total, one / 4, 1e-12);
        assert_close(adv_model_flops(&model, 3, 4096, ADV_FLOPS_CAUSAL_HALF).total, 3 * one, 1e-12);
    }
}

/* Published TFLOP/s per chip x step time: AI-Hypercomputer/tpu-recipes and MaxText tables. */
static void published_rates_times_step_time_are_these_counts(void **state)
{
    (void)state;
    const struct {
        const char *model;
        int64_t seq_len;
        double sequences_per_chip, tflops_per_s, step_s;
        enum adv_flops_convention convention;
    } rows[] = {
        {"llama3.1-8b", 8192, 4, 417.397, 4.546, ADV_FLOPS_FULL},
        {"gpt3-175b", 2048, 3, 384.891, 17.182, ADV_FLOPS_FULL},
        {"mixtral-8x7b", 4096, 12, 302.311, 13.484, ADV_FLOPS_FULL},
        {"llama4-17b-128e", 8192, 4, 160.005, 24.792, ADV_FLOPS_FULL},
        {"llama2-70b", 4096, 2, 402.274, 9.052, ADV_FLOPS_FULL},
        {"deepseek3-671b", 4096, 16, 607.53, 27.02, ADV_FLOPS_CAUSAL_HALF},
        {"llama3.1-70b", 8192, 4, 1207.05, 12.20, ADV_FLOPS_CAUSAL_HALF},
        {"gpt-oss-120b", 8192, 20, 330.25, 17.10, ADV_FLOPS_CAUSAL_HALF},
        {"gemma4-31b", 8192, 16, 931.3, 27.72, ADV_FLOPS_CAUSAL_HALF},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct adv_model model = model_named(rows[i].model);
        double flops =
            adv_model_flops(&model, rows[i].sequences_per_chip, rows[i].seq_len, rows[i].convention).total;
        if (fabs(flops / (rows[i].tflops_per_s * 1e12 * rows[i].step_s) - 1) > 0.01)
            fail_msg("%s: %.4g FLOPs, published %.4g", rows[i].model, flops,
                     rows[i].tflops_per_s * 1e12 * rows[i].step_s);
    }
}

static void prediction_modules_repeat_the_last_layer(void **state)
{
    (void)state;
    struct adv_model model = model_named("deepseek3-671b");
    double without = adv_model_flops(&model, 1, 4096, ADV_FLOPS_CAUSAL_HALF).total;
    struct adv_model_params params = adv_model_params(&model);
    model.mtp_layers = 1;
    double with = adv_model_flops(&model, 1, 4096, ADV_FLOPS_CAUSAL_HALF).total;
    model.layers[model.layer_kinds_count - 1].count++;
    model.mtp_layers = 0;
    assert_close(with, adv_model_flops(&model, 1, 4096, ADV_FLOPS_CAUSAL_HALF).total, 1e-12);
    assert_true(with > without);
    model.layers[model.layer_kinds_count - 1].count--;
    model.mtp_layers = 1;
    /* one more layer of 11.5 billion, a 2 x 7168 to 7168 projection, three norms */
    assert_close(adv_model_params(&model).total,
                 params.total + params.largest_layer + 2.0 * 7168 * 7168 + 3 * 7168, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flops_of_all_models_are_maxtexts_own_count),
        cmocka_unit_test(the_three_conventions_differ_as_defined),
        cmocka_unit_test(flops_scale_with_the_sequences_of_a_device),
        cmocka_unit_test(published_rates_times_step_time_are_these_counts),
        cmocka_unit_test(prediction_modules_repeat_the_last_layer),
    };
    return run_group_with_catalog(tests);
}
