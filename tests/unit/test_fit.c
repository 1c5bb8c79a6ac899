/* How sure a plan fits: the curve, the verdict that follows, and what a search lets pass. */
#include "tests/unit/cost_fixture.h"

#include "engine/cost/fit.h"
#include "engine/rank/rank.h"

static struct bench *open_cube(const char *model)
{
    static struct bench b;
    bench_open(&b, model, "v5p", 4, 4, 4);
    return &b;
}

/* XLA makes room for what is a little too big, and the nearer to the limit the less sure it is. */
static void what_is_predicted_at_the_limit_fits_more_often_than_not(void **state)
{
    (void)state;
    const struct adv_fit_curve curve = {.log_sd = 0.05, .pressed_sds = 0.6, .width_sds = 1.05};
    assert_true(adv_fit_probability(&curve, 1.0, 1.0) > 0.5);
    for (int i = 0; i < 80; i++) {
        const double used = 0.6 + 0.01 * i;
        const double p = adv_fit_probability(&curve, used, 1.0);
        assert_true(p >= 0.0 && p <= 1.0);
        assert_true(p >= adv_fit_probability(&curve, used + 0.01, 1.0));
    }
    for (int i = 50; i < 100; i++) {
        const double p = 0.01 * i;
        const double frac = adv_fit_limit_frac(&curve, p);
        assert_true(frac > 0.5 && frac <= 1.0);
        assert_true(adv_fit_probability(&curve, frac, 1.0) >= p - 1e-9);
        if (frac < 1.0) assert_close(adv_fit_probability(&curve, frac, 1.0), p, 1e-9);
    }
}

/* Of the limit, that a plan of this spread takes which fits with this probability; also beyond it. */
static double used_at(double probability, const struct adv_fit_curve *curve)
{
    double low = 0.5, high = 2.0;
    for (int i = 0; i < 60; i++) {
        const double middle = 0.5 * (low + high);
        if (adv_fit_probability(curve, middle, 1.0) > probability)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static void the_verdict_is_tight_near_the_limit(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    double bytes = bench_estimate(b)->hbm_bytes_per_device;
    const double sure = used_at(ADV_FIT_SURE_PROBABILITY, &b->estimate.fit_curve);
    const double hardly = used_at(0.1, &b->estimate.fit_curve);
    const struct {
        double used;
        enum adv_fit fit;
    } cases[] = {{sure * 0.9999, ADV_FIT_FITS},
                 {sure * 1.0001, ADV_FIT_TIGHT},
                 {hardly * 0.9999, ADV_FIT_TIGHT},
                 {hardly * 1.0001, ADV_FIT_NO}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b->cluster.chip.hbm_usable_bytes_per_device = bytes / cases[i].used;
        assert_int_equal(bench_estimate(b)->fit, cases[i].fit);
        assert_close(b->estimate.hbm_bytes_per_device, bytes, 1e-12);
        assert_true((b->estimate.fit_probability >= ADV_FIT_SURE_PROBABILITY) ==
                    (cases[i].fit == ADV_FIT_FITS));
        assert_true(b->estimate.hbm_low_bytes_per_device < bytes &&
                    bytes < b->estimate.hbm_high_bytes_per_device);
    }
}

static void a_host_that_overflows_does_not_fit_either(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    assert_int_equal(bench_estimate(b)->fit, ADV_FIT_FITS);
    const double bytes =
        b->estimate.host_bytes_per_host; /* known to a percent or two, and nothing presses them */
    b->cluster.chip.host_dram_bytes_per_host = 1.001 * bytes;
    assert_int_equal(bench_estimate(b)->fit, ADV_FIT_TIGHT);
    b->cluster.chip.host_dram_bytes_per_host = 0.999 * bytes;
    assert_int_equal(bench_estimate(b)->fit, ADV_FIT_NO);
    assert_close(b->estimate.fit_probability, 0.0, 0.0);
}

static void what_a_search_lets_pass_has_the_certainty_asked_for(void **state)
{
    (void)state;
    struct bench *b = open_cube("llama3.1-8b");
    b->plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT] = ADV_PLACE_OFFLOAD;
    const struct adv_estimate first = *bench_estimate(b);
    assert_true(first.memory_spread > 1.0); /* on the host too: one certainty, two spreads */
    double frac = adv_rank_memory_frac(&first);
    for (int on_host = 0; on_host < 2; on_host++)
        for (int step = -1; step <= 1; step += 2) {
            double used = frac * (1.0 + 1e-6 * step);
            b->cluster.chip.host_dram_bytes_per_host = first.host_bytes_per_host / (on_host ? used : 0.1);
            b->cluster.chip.hbm_usable_bytes_per_device =
                first.hbm_bytes_per_device / (on_host ? 0.1 : pow(used, first.memory_spread));
            const struct adv_estimate *e = bench_estimate(b);
            assert_true(adv_rank_fits(e, frac) == (step < 0));
            assert_true((e->fit_probability >= ADV_FIT_SURE_PROBABILITY) == (step < 0));
        }
}

/* The search adds up what tensors take: beyond what it fills by default XLA orders the step anew, and bytes
 * no longer add up. */
static void memory_is_pressed_only_beyond_what_a_search_fills(void **state)
{
    (void)state;
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        const struct adv_constants k = machine_constants(chips[i]);
        const struct adv_fit_curve plain = adv_fit_curve(&k, k.memory_log_sd);
        const struct adv_fit_curve peeled = adv_fit_curve(&k, k.peeled_memory_log_sd);
        assert_true(k.pressed_limit_frac > adv_fit_limit_frac(&plain, ADV_FIT_SURE_PROBABILITY));
        assert_true(k.peeled_pressed_limit_frac > adv_fit_limit_frac(&peeled, ADV_FIT_SURE_PROBABILITY));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_predicted_at_the_limit_fits_more_often_than_not),
        cmocka_unit_test(the_verdict_is_tight_near_the_limit),
        cmocka_unit_test(a_host_that_overflows_does_not_fit_either),
        cmocka_unit_test(what_a_search_lets_pass_has_the_certainty_asked_for),
        cmocka_unit_test(memory_is_pressed_only_beyond_what_a_search_fills),
    };
    return run_group(tests);
}
