/* measurement.h: published steps and how well they are predicted.
 *
 * Rows come from a measurement file (engine/json/decode_measurements.c). Everything here is pure: predicting
 * a row, and the statistics of a set of rows by chip and family. Used by `validate`, `make accuracy` and
 * `make fit`.
 */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/cost/estimate.h"
#include "engine/spec/request.h"

struct adv_measurement {
    char id[ADV_LIMIT_NAME], chip[ADV_LIMIT_NAME];
    char family[ADV_LIMIT_NAME]; /* the model: rows of one model are left out together in cross-validation */
    char format[16];             /* "bf16", "int8", "fp8" */
    double measured_step_time_s; /* NAN: published without a step time that can be judged */
    struct adv_model model;
    struct adv_cluster cluster;
    struct adv_plan plan;
    enum adv_flops_convention flops_convention;
    bool decoded; /* model, cluster and plan are there; else the row stays without a prediction */
    /* The faults of the row: why it is not decoded, or which rules a plan that ran breaks all the same.
     */
    const struct adv_finding *findings;
    int findings_count;
    /* prediction */
    bool answered;
    struct adv_estimate estimate;
    struct adv_ledger ledger;
    double error_frac; /* predicted / measured - 1, NAN when not judged */
};

/* Predicts one row with the given constants; false when it is not decoded or (with err) the engine refuses.
 */
bool adv_measurement_predict(struct adv_measurement *row, const struct adv_constants *constants,
                             adv_err *err);

struct adv_accuracy {
    int judged_count;
    double median_abs_error_frac, p90_abs_error_frac, max_abs_error_frac; /* NAN when nothing was judged */
    double bias_frac;                                                     /* median of signed errors */
    double interval_coverage_frac;
    double interval_half_width_frac; /* median of (high / low)^(1/2) - 1 */
    int fits_count;                  /* rows whose verdict is fits or tight: they ran */
};

/* Statistics over rows[i] with keep[i] (keep NULL = all); nothing is judged when memory is exhausted. */
struct adv_accuracy adv_accuracy_of(const struct adv_measurement *rows, int count, const bool *keep);

/* Of pairs of rows of one chip and family whose measured times per token differ by more than `gap_frac`: how
 * many, and how many are predicted in the right order. */
struct adv_pair_order {
    int pairs_count, right_count;
};
struct adv_pair_order adv_pair_order_of(const struct adv_measurement *rows, int count, double gap_frac);

/* The q-quantile (0..1) of values, nearest rank as the published targets use it: sorted[ceil(q n) - 1].
 * Sorts. */
double adv_quantile(double *values, int count, double q);
