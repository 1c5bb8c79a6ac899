/* fit.h: how sure it is that a plan fits its memory.
 *
 * By the distance of the prediction from the limit, in spreads of such predictions. The compiler makes room
 * for what is a little too big, so a plan that is predicted at the limit fits more often than not.
 */
#pragma once

#include "engine/catalog/constants.h"

/* Of the verdict "fits", and what a search asks for unless the request says otherwise: of 50 first plans 49
 * start, if all of them were as near to the limit as this lets them. */
#define ADV_FIT_SURE_PROBABILITY 0.98

/* The verdicts of compiled steps over their distance from the limit, as a normal distribution: half of the
 * plans are taken that are predicted `pressed_sds` spreads beyond it. */
struct adv_fit_curve {
    double log_sd; /* spread of ln(compiled / predicted) bytes of such plans */
    double pressed_sds, width_sds;
};

/* Of plans whose bytes spread by `log_sd`: fitted on the compiled steps by `make fit-memory`. */
struct adv_fit_curve adv_fit_curve(const struct adv_constants *constants, double log_sd);

/* Probability, 0..1, that the compiler takes a plan of so many bytes. */
double adv_fit_probability(const struct adv_fit_curve *curve, double bytes, double limit_bytes);

/* The share of a limit, at most 1, up to which predicted bytes fit with `probability` (0.5 … below 1). */
double adv_fit_limit_frac(const struct adv_fit_curve *curve, double probability);
