/* The curve of certainty: from a prediction and its distance to the limit. */
#include "tests/unit/check.h"

#include "engine/cost/fit.h"

/* XLA makes room for what is a little too big, and the nearer to the limit the less sure it is. */
static void what_is_predicted_at_the_limit_fits_more_often_than_not(void **state)
{
    (void)state;
    const double log_sd = 0.05;
    assert_true(adv_fit_probability(1.0, 1.0, log_sd) > 0.5);
    for (int i = 0; i < 80; i++) {
        const double used = 0.6 + 0.01 * i;
        const double p = adv_fit_probability(used, 1.0, log_sd);
        assert_true(p >= 0.0 && p <= 1.0);
        assert_true(p >= adv_fit_probability(used + 0.01, 1.0, log_sd));
    }
    for (int i = 50; i < 100; i++) {
        const double p = 0.01 * i;
        const double frac = adv_fit_limit_frac(p, log_sd);
        assert_true(frac > 0.5 && frac <= 1.0);
        assert_true(adv_fit_probability(frac, 1.0, log_sd) >= p - 1e-9);
        if (frac < 1.0) assert_close(adv_fit_probability(frac, 1.0, log_sd), p, 1e-9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_predicted_at_the_limit_fits_more_often_than_not),
    };
    return run_group(tests);
}
