/* parameters.h: which constants of the whole-step model are fitted, per generation or shared, and how freely.
 *
 * A parameter is one number. `chips` lists the generations that share it; a constant that no parameter covers
 * keeps its value from the data file. The prior is the expectation beforehand, some of it from
 * an earlier model of the same rows; its spread says how far the data may pull. Priors and terms were revised
 * while looking at the left-out errors, which are therefore optimistic.
 */
#pragma once

#include "engine/catalog/constants.h"

enum { PARAMETER_CHIPS = 5, PARAMETERS_MAX = 64 };

struct parameter {
    const char *constant;
    const char *chips[PARAMETER_CHIPS]; /* NULL-terminated unless full */
    double prior;                       /* physical expectation */
    double prior_log_sd;                /* spread of ln(value) around it */
    double low, high;
};

extern const struct parameter parameters[];
extern const int parameters_count;

/* The address of a constant by name; NULL when there is none. */
double *constant_by_name(struct adv_constants *constants, const char *name);
