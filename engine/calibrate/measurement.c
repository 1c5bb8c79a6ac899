#include "engine/calibrate/measurement.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool adv_measurement_predict(struct adv_measurement *row, const struct adv_constants *constants, adv_err *err)
{
    struct adv_estimate_input input = {&row->model, &row->cluster, constants, &row->plan,
                                       row->flops_convention};
    row->answered = row->decoded && adv_estimate_plan(&input, &row->estimate, &row->ledger, err) == ADV_OK;
    row->error_frac =
        row->answered ? row->estimate.step_time_s / row->measured_step_time_s - 1.0 : (double)NAN;
    return row->answered;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double adv_quantile(double *values, int count, double q)
{
    if (count <= 0) return (double)NAN;
    qsort(values, (size_t)count, sizeof *values, by_value);
    int rank = (int)ceil(q * count) - 1;
    return values[rank < 0 ? 0 : rank];
}

static double median(double *values, int count)
{
    if (count <= 0) return (double)NAN;
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

struct adv_accuracy adv_accuracy_of(const struct adv_measurement *rows, int count, const bool *keep)
{
    size_t room = count > 0 ? (size_t)count : 1;
    double *absolute = calloc(3 * room, sizeof *absolute);
    double *signed_errors = absolute + room, *widths = absolute + 2 * room;
    struct adv_accuracy accuracy = {0};
    int n = 0;
    int covered = 0;
    for (int i = 0; i < count && absolute; i++) {
        const struct adv_measurement *row = &rows[i];
        if ((keep && !keep[i]) || !row->answered) continue;
        accuracy.fits_count += row->estimate.fit != ADV_FIT_NO;
        if (isnan(row->error_frac)) continue;
        absolute[n] = fabs(row->error_frac);
        signed_errors[n] = row->error_frac;
        widths[n] = sqrt(row->estimate.step_time_high_s / row->estimate.step_time_low_s) - 1.0;
        covered += row->measured_step_time_s >= row->estimate.step_time_low_s &&
                   row->measured_step_time_s <= row->estimate.step_time_high_s;
        n++;
    }
    accuracy.judged_count = n;
    accuracy.interval_coverage_frac = n ? (double)covered / n : (double)NAN;
    accuracy.bias_frac = median(signed_errors, n);
    accuracy.interval_half_width_frac = median(widths, n);
    accuracy.median_abs_error_frac = median(absolute, n);
    accuracy.p90_abs_error_frac = adv_quantile(absolute, n, 0.9);
    accuracy.max_abs_error_frac = adv_quantile(absolute, n, 1.0);
    free(absolute);
    return accuracy;
}

struct adv_pair_order adv_pair_order_of(const struct adv_measurement *rows, int count, double gap_frac)
{
    struct adv_pair_order ranking = {0, 0};
    for (int i = 0; i < count; i++) {
        for (int j = i + 1; j < count; j++) {
            const struct adv_measurement *a = &rows[i];
            const struct adv_measurement *b = &rows[j];
            if (strcmp(a->chip, b->chip) != 0 || strcmp(a->family, b->family) != 0) continue;
            if (!a->answered || !b->answered || isnan(a->error_frac) || isnan(b->error_frac)) continue;
            double measured =
                log((a->measured_step_time_s / a->estimate.tokens_per_step * a->cluster.devices) /
                    (b->measured_step_time_s / b->estimate.tokens_per_step * b->cluster.devices));
            if (fabs(measured) <= log1p(gap_frac)) continue;
            double predicted = log(b->estimate.tokens_per_s_per_chip / a->estimate.tokens_per_s_per_chip);
            ranking.pairs_count++;
            ranking.right_count += (measured > 0.0) == (predicted > 0.0);
        }
    }
    return ranking;
}
