/* fit.h: how sure it is that a plan fits its memory.
 *
 * By the distance of the prediction from the limit, in spreads of such predictions (memory_log_sd of
 * catalog/memory_constants.h). The compiler makes room for what is a little too big, so a plan that is
 * predicted at the limit fits more often than not.
 */
#pragma once

/* Of the verdict "fits", and what a search asks for unless the request says otherwise: of 50 first plans 49
 * start, if all of them were as near to the limit as this lets them. */
#define ADV_FIT_SURE_PROBABILITY 0.98

/* Probability, 0..1, that the compiler takes a plan of so many bytes. */
double adv_fit_probability(double bytes, double limit_bytes, double log_sd);

/* The share of a limit, at most 1, up to which predicted bytes fit with `probability` (0.5 … below 1). */
double adv_fit_limit_frac(double probability, double log_sd);
