/* solve.h: robust bounded least squares of ln(predicted / measured) over the published steps.
 *
 * Levenberg-Marquardt from the GNU Scientific Library on ln(value) of each parameter; residuals pass through
 * a pseudo-Huber loss, so that one odd row does not pull; each parameter adds a residual towards its prior. A
 * model that was measured often counts by the square root of its rows: a user's model is a new one.
 */
#pragma once

#include "engine/calibrate/measurement.h"
#include "tests/accuracy/parameters.h"

struct constants_of_chip {
    char chip[ADV_LIMIT_NAME];
    struct adv_constants constants;
};

struct fit {
    struct constants_of_chip *chips; /* in and out */
    int chips_count;
    struct adv_measurement *rows;
    const double
        *fitted_s; /* per row: seconds to fit to, NAN = the row is not fitted. Rows of which only the MFU is
                      published have their model FLOPs over it here: fitted, at half weight, never judged */
    int rows_count;
    double values[PARAMETERS_MAX];
    double log_error[PARAMETERS_MAX]; /* standard error of ln(value) */
};

/* Fits on rows with use[i]; leaves the constants in fit->chips. */
void fit_solve(struct fit *fit, const bool *use);

/* Predicts all rows with fit->chips. */
void fit_predict(struct fit *fit);

struct adv_constants *fit_constants(struct fit *fit, const char *chip);
