/* fit.h: how sure it is that a plan fits its memory.
 *
 * The bytes that the compiler will ask for are taken to be log-normal around the prediction; the spread is
 * that of the compiled steps (memory_log_sd of catalog/memory_constants.h).
 */
#pragma once

/* Probability, 0..1, that `bytes` predicted turn out to be at most `limit_bytes`. */
double adv_fit_probability(double bytes, double limit_bytes, double log_sd);

/* The share of a limit up to which predicted bytes fit with `probability` (0.5 … below 1). */
double adv_fit_limit_frac(double probability, double log_sd);
