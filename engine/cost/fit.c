#include "engine/cost/fit.h"

#include <math.h>

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
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

double adv_fit_probability(double bytes, double limit_bytes, double log_sd)
{
    return normal_cdf(log(limit_bytes / bytes) / log_sd);
}

double adv_fit_limit_frac(double probability, double log_sd)
{
    return exp(-normal_quantile(probability) * log_sd);
}
