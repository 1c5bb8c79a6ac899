/* correction.h: what a project's own measurements say of a chip: one factor on the step time and one on
 * device memory, shrunk towards the published fit.
 *
 * With x = ln(measured / predicted by the published fit), of n measurements with mean m and variance s^2 the
 * correction is exp(w m) - 1, w = n / (n + s^2 / tau^2): tau is how far the published fit may be off as a
 * whole. Few or scattered measurements move little. Below ADV_CORRECTION_LEAST there is a bias to report and
 * no correction. Cross validation leaves out each run in turn, with all its measurements. Pure; allocates
 * nothing.
 */
#pragma once

#define ADV_CORRECTION_LEAST 3

struct adv_correction_row {
    double log_ratio; /* ln(measured / predicted without any correction) */
    int run;          /* rows of one run have one number */
};

struct adv_correction_fit {
    int rows_count, runs_count;
    double bias_frac;       /* exp(m) - 1: positive = slower, or larger, than predicted; NAN without rows */
    double spread_frac;     /* s */
    double weight_frac;     /* w: how much the measurements are trusted over the published fit */
    double correction_frac; /* 0 below ADV_CORRECTION_LEAST */
    double error_before_frac, error_after_frac; /* mean |error| of the rows: uncorrected, corrected */
    double error_left_out_frac;                 /* with the row's run left out of the fit; NAN with one run */
};

/* `tau`: of ln, see above. */
void adv_correction_fit(const struct adv_correction_row *rows, int count, double tau,
                        struct adv_correction_fit *fit);

#define ADV_CORRECTION_STEP_TAU 0.10 /* the left-out errors of tests/accuracy/report.md: p90 of 4 to 12 % */
#define ADV_CORRECTION_HBM_TAU  0.05 /* tests/compile/report.md */
