/* interval.h: how sure a prediction is: the 90 % interval and the confidence, from cross-validated residuals.
 */
#ifndef ADV_COST_INTERVAL_H
#define ADV_COST_INTERVAL_H

#include "engine/cost/context.h"

/* Sets step_time_low_s, step_time_high_s, confidence and confidence_why of `estimate` (step_time_s must be
 * set). */
void adv_interval_apply(const struct adv_cost *cost, struct adv_estimate *estimate);

#endif
