/* Measured plans may change: much when they agree, little when they are few or scattered, nothing below
 * three. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "engine/calibrate/correction.h"

static struct adv_correction_fit fit(const double *ratios, const int *runs, int count)
{
    struct adv_correction_row rows[16];
    struct adv_correction_fit found;
    for (int i = 0; i < count; i++)
        rows[i] = (struct adv_correction_row){log(ratios[i]), runs ? runs[i] : i, i};
    adv_correction_fit(rows, count, 0.10, &found);
    return found;
}

static void near(double actual, double expected)
{
    assert_true(fabs(actual - expected) < 1e-9);
}

static void two_measurements_show_a_bias_and_correct_nothing(void **state)
{
    (void)state;
    const struct adv_correction_fit two = fit((const double[]){1.1, 1.1}, NULL, 2);
    near(two.bias_frac, 0.1);
    near(two.correction_frac, 0.0);
    near(two.weight_frac, 0.0);
    near(two.error_before_frac, two.error_after_frac);
    assert_int_equal(fit(NULL, NULL, 0).rows_count, 0);
    assert_true(isnan(fit(NULL, NULL, 0).bias_frac));
}

static void the_correction_is_the_formula_of_the_header(void **state)
{
    (void)state;
    const double ratios[] = {1.1, 1.2, 1.3, 1.2};
    double mean = 0.0, variance = 0.0;
    for (int i = 0; i < 4; i++) mean += log(ratios[i]) / 4.0;
    for (int i = 0; i < 4; i++) variance += (log(ratios[i]) - mean) * (log(ratios[i]) - mean) / 3.0;
    const struct adv_correction_fit four = fit(ratios, NULL, 4);
    near(four.weight_frac, 4.0 / (4.0 + variance / 0.01));
    near(four.correction_frac, expm1(four.weight_frac * mean));
    assert_true(four.error_after_frac < four.error_before_frac);
    assert_true(four.error_left_out_frac > four.error_after_frac &&
                four.error_left_out_frac < four.error_before_frac);
}

static void scattered_measurements_are_trusted_less(void **state)
{
    (void)state;
    const struct adv_correction_fit even = fit((const double[]){1.2, 1.2, 1.2}, NULL, 3);
    const struct adv_correction_fit wild = fit((const double[]){0.8, 1.2, 1.8}, NULL, 3);
    assert_true(even.weight_frac > 0.99);
    assert_true(wild.weight_frac < 0.5);
    assert_true(wild.correction_frac < wild.bias_frac);
}

static void one_run_measured_often_is_no_cross_validation(void **state)
{
    (void)state;
    const double ratios[] = {1.2, 1.2, 1.2, 1.0};
    assert_true(isnan(fit(ratios, (const int[]){7, 7, 7, 7}, 4).error_left_out_frac));
    /* The rest, without the run with three, corrects nothing. */
    const struct adv_correction_fit two = fit(ratios, (const int[]){7, 7, 7, 8}, 4);
    assert_int_equal(two.runs_count, 2);
    near(two.error_left_out_frac, (3.0 * (1.0 - 1.0 / 1.2) + expm1(log(1.2) * 3.0 / (3.0 + 0.01))) / 4.0);
}

static struct adv_correction_fit fit_plans(const double *ratios, const int *plans, int count)
{
    struct adv_correction_row rows[16];
    struct adv_correction_fit found;
    for (int i = 0; i < count; i++) rows[i] = (struct adv_correction_row){log(ratios[i]), plans[i], plans[i]};
    adv_correction_fit(rows, count, 0.10, &found);
    return found;
}

static void one_plan_measured_often_counts_once(void **state)
{
    (void)state;
    const double nine[] = {3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0};
    const struct adv_correction_fit one = fit_plans(nine, (const int[9]){0}, 9);
    assert_int_equal(one.rows_count, 9);
    assert_int_equal(one.plans_count, 1);
    near(one.bias_frac, 2.0);
    near(one.weight_frac, 0.0);
    near(one.correction_frac, 0.0);
    /* The odd plan is one of four, however often it is repeated; its slow run is not its median. */
    const double ratios[] = {1.1, 1.2, 1.3, 1.3, 9.0, 1.0};
    const struct adv_correction_fit often = fit_plans(ratios, (const int[]){0, 1, 2, 2, 2, 3}, 6);
    const struct adv_correction_fit once = fit((const double[]){1.1, 1.2, 1.3, 1.0}, NULL, 4);
    assert_int_equal(often.plans_count, 4);
    near(often.weight_frac, once.weight_frac);
    near(often.correction_frac, once.correction_frac);
    near(often.error_before_frac, once.error_before_frac);
    near(often.error_left_out_frac, once.error_left_out_frac);
    /* Of two the median is between them. */
    near(fit_plans((const double[]){1.0, 1.44}, (const int[2]){0}, 2).bias_frac, 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_measurements_show_a_bias_and_correct_nothing),
        cmocka_unit_test(the_correction_is_the_formula_of_the_header),
        cmocka_unit_test(scattered_measurements_are_trusted_less),
        cmocka_unit_test(one_run_measured_often_is_no_cross_validation),
        cmocka_unit_test(one_plan_measured_often_counts_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
