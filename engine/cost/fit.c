#include "engine/cost/fit.h"

#include <math.h>

/* Fitted on the verdicts of compiled steps, in spreads of the prediction (`make fit-memory` prints them;
 * tests/compile/report.md judges them). XLA makes a program that fits where it can: it schedules anew with
 * memory in mind, and copies wait for room. So half of the plans are taken that are predicted `pressed_sds`
 * beyond the limit. */
static const double pressed_sds = 0.60, width_sds = 1.05;

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

double adv_fit_probability(double bytes, double limit_bytes, double log_sd)
{
    return normal_cdf((log(limit_bytes / bytes) / log_sd + pressed_sds) / width_sds);
}

/* Bisection: 60 halvings of ±8 standard deviations are below rounding. */
static double normal_quantile(double probability)
{
    double low = -8.0, high = 8.0;
    for (int i = 0; i < 60; i++) {
        double middle = 0.5 * (low + high);
        if (normal_cdf(middle) < probability)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

double adv_fit_limit_frac(double probability, double log_sd)
{
    return fmin(1.0, exp((pressed_sds - width_sds * normal_quantile(probability)) * log_sd));
}
