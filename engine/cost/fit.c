#include "engine/cost/fit.h"

#include <math.h>

static double normal_cdf(double z)
{
    return 0.5 * erfc(-z / sqrt(2.0));
}

struct adv_fit_curve adv_fit_curve(const struct adv_constants *constants, double log_sd)
{
    return (struct adv_fit_curve){log_sd, constants->fit_pressed_sds, constants->fit_width_sds};
}

double adv_fit_probability(const struct adv_fit_curve *curve, double bytes, double limit_bytes)
{
    return normal_cdf((log(limit_bytes / bytes) / curve->log_sd + curve->pressed_sds) / curve->width_sds);
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

double adv_fit_limit_frac(const struct adv_fit_curve *curve, double probability)
{
    const double sds = curve->pressed_sds - curve->width_sds * normal_quantile(probability);
    return fmin(1.0, exp(sds * curve->log_sd));
}
