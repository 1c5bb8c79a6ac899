/* spread.h: how wide the 90 % intervals have to be, learnt from left-out errors.
 *
 * An error is ln(predicted / measured) of a row whose model was left out of the fit. Each model of a chip
 * counts once however often it was published, because a user's model is a new one.
 *
 *   regime   mean size of the errors inside the regime over that outside, each first divided by the mean size
 * on its chip and by the ratios of the other regimes; drawn towards 1 by n / (n + 4), n the models on the
 * thinner side, and kept within 0.5 to 2. Shared by the chips, which have too few models for ratios of their
 * own. chip     the 90 % quantile of the errors, divided by their regimes' ratios, over that of a normal
 * distribution; widened by Student's t for the number of models behind it, and by half for what the left-out
 * errors do not show (at most to 14 %).
 */
#pragma once

#include "tests/accuracy/solve.h"

/* Sets the interval constants of fit->chips from left_out[i] = predicted / measured - 1 (NAN: not judged). A
 * chip without rows keeps its own. */
void spread_learn(struct fit *fit, const double *left_out);

/* True when the interval around the left-out prediction of a row would hold the measured time. */
bool spread_covers(const struct adv_measurement *row, double left_out);
