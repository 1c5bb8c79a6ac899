/* report.h: the accuracy page: markdown and a picture, generated, never typed. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "tests/accuracy/solve.h"

/* Writes the page: in-sample and left-out statistics by chip and family, constants, worst rows with their
 * ledger. left_out_error[i]: error of row i when its model was left out of the fit. accounts: what is missing
 * in rows that resist, an array of {rows (start of the id), missing}; NULL for none. */
void report_write(FILE *out, const struct fit *fit, const double *left_out_error, const json_t *accounts);

/* Predicted against measured, log-log, as SVG. */
void report_picture(FILE *out, const struct fit *fit);

/* Median, p90 and max of |error| of rows with keep[i]; returns the count. */
int report_errors(const double *errors, const bool *keep, int count, double *median, double *p90,
                  double *max);
