/* correction.h: what a project's own measurements say of a chip: one factor on the step time and one on
 * device memory, shrunk towards the published fit.
 *
 * Of a plan that was measured several times, x = ln(measured / predicted by the published fit) is the median:
 * a run that was repeated says nothing of other plans. With the x of n plans of mean m and variance s^2 the
 * correction is exp(w m) - 1, w = n / (n + s^2 / tau^2): tau is how far the published fit may be off as a
 * whole. Few or scattered plans move little. Below ADV_CORRECTION_LEAST there is a bias to report and
 * no correction. Cross validation leaves out each run in turn, with all its plans. Pure; allocates
 * nothing.
 */
#pragma once

#define ADV_CORRECTION_LEAST 3 /* plans */

struct adv_correction_row {
    double log_ratio; /* ln(measured / predicted without any correction) */
    int run;          /* rows of one run have one number */
    int plan;         /* and those of one plan; they lie beside each other */
};

struct adv_correction_fit {
    int rows_count, plans_count, runs_count;
    double bias_frac;       /* exp(m) - 1: positive = slower, or larger, than predicted; NAN without rows */
    double spread_frac;     /* s, at least 0.01: so much two plans that agree may differ from a third */
    double weight_frac;     /* w: how much the measured plans are trusted over the published fit */
    double correction_frac; /* 0 below ADV_CORRECTION_LEAST */
    double error_before_frac, error_after_frac; /* mean |error| of the plans: uncorrected, corrected */
    double error_left_out_frac; /* with the plan's run left out of the fit; NAN with one run */
};

/* `tau`: of ln, see above. `rows` are one for each plan afterwards. */
void adv_correction_fit(struct adv_correction_row *rows, int count, double tau,
                        struct adv_correction_fit *fit);

#define ADV_CORRECTION_STEP_TAU 0.10 /* the left-out errors of tests/accuracy/report.md: p90 of 4 to 12 % */
#define ADV_CORRECTION_HBM_TAU  0.05 /* tests/compile/report.md */
