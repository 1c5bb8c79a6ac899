#include "engine/calibrate/correction.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SD 0.01 /* two equal plans do not make a third sure */

struct part {
    int count;
    double mean, variance, weight;
};

static int by_ratio(const void *a, const void *b)
{
    const double of_a = ((const struct adv_correction_row *)a)->log_ratio;
    const double of_b = ((const struct adv_correction_row *)b)->log_ratio;
    return (of_a > of_b) - (of_a < of_b);
}

/* Leaves one row of each plan, with the median of its ratios, in their order. Returns how many. */
static int merge_plans(struct adv_correction_row *rows, int count)
{
    int plans = 0;
    for (int first = 0, next; first < count; first = next) {
        next = first + 1;
        while (next < count && rows[next].plan == rows[first].plan) next++;
        const int of_plan = next - first;
        qsort(&rows[first], (size_t)of_plan, sizeof *rows, by_ratio);
        rows[plans] = rows[first + (of_plan - 1) / 2];
        rows[plans].log_ratio = 0.5 * (rows[plans].log_ratio + rows[first + of_plan / 2].log_ratio);
        plans++;
    }
    return plans;
}

/* Of the rows whose run is not `without` (-1: of all). */
static struct part look_at(const struct adv_correction_row *rows, int count, int without, double tau)
{
    struct part part = {0};
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < count; i++) {
        if (rows[i].run == without) continue;
        part.count++;
        sum += rows[i].log_ratio;
    }
    if (part.count == 0) return part;
    part.mean = sum / part.count;
    for (int i = 0; i < count; i++)
        if (rows[i].run != without)
            squares += (rows[i].log_ratio - part.mean) * (rows[i].log_ratio - part.mean);
    part.variance = part.count > 1 ? squares / (part.count - 1) : 0.0;
    part.variance = fmax(part.variance, LEAST_SD * LEAST_SD);
    part.weight = part.count / (part.count + part.variance / (tau * tau));
    return part;
}

/* Mean |predicted / measured - 1| when every prediction is multiplied by exp(shift). */
static double mean_error(const struct adv_correction_row *rows, int count, double shift)
{
    double sum = 0.0;
    for (int i = 0; i < count; i++) sum += fabs(expm1(shift - rows[i].log_ratio));
    return sum / count;
}

void adv_correction_fit(struct adv_correction_row *rows, int count, double tau,
                        struct adv_correction_fit *fit)
{
    memset(fit, 0, sizeof *fit);
    fit->rows_count = count;
    fit->plans_count = count = merge_plans(rows, count);
    fit->bias_frac = fit->spread_frac = fit->error_before_frac = fit->error_after_frac = (double)NAN;
    fit->error_left_out_frac = (double)NAN;
    if (count == 0) return;
    const struct part all = look_at(rows, count, -1, tau);
    const bool enough = count >= ADV_CORRECTION_LEAST;
    double left_out = 0.0;
    for (int i = 0; i < count; i++) {
        bool seen = false;
        for (int k = 0; k < i; k++) seen = seen || rows[k].run == rows[i].run;
        fit->runs_count += !seen;
        const struct part others = look_at(rows, count, rows[i].run, tau);
        const double shift = others.count >= ADV_CORRECTION_LEAST ? others.weight * others.mean : 0.0;
        left_out += fabs(expm1(shift - rows[i].log_ratio)) / count;
    }
    fit->bias_frac = expm1(all.mean);
    fit->spread_frac = sqrt(all.variance);
    fit->weight_frac = enough ? all.weight : 0.0;
    fit->correction_frac = enough ? expm1(all.weight * all.mean) : 0.0;
    fit->error_before_frac = mean_error(rows, count, 0.0);
    fit->error_after_frac = mean_error(rows, count, enough ? all.weight * all.mean : 0.0);
    if (fit->runs_count > 1) fit->error_left_out_frac = left_out;
}
