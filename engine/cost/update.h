/* update.h: the optimizer update of a step: weights, gradients and moments through HBM, and over the host
 * link what is kept on the host. */
#ifndef ADV_COST_UPDATE_H
#define ADV_COST_UPDATE_H

#include "engine/cost/context.h"

/* HBM bytes per parameter of the plan's update: weights read and written, gradient read twice (norm, update),
 * moments read and written. */
double adv_cost_update_bytes_per_param(const struct adv_plan *plan);

/* shard_params: parameters that a device updates. Loads of weights hide behind what the account holds: call
 * it behind the layers. */
void adv_cost_update(const struct adv_cost *cost, double shard_params, struct adv_account *account);

#endif
