/* slices.h: what several slices add to a step: gradients and weights over the network between them, and
 * waiting for the slowest. */
#ifndef ADV_COST_SLICES_H
#define ADV_COST_SLICES_H

#include "engine/cost/context.h"

/* dense, experts: parameters of a device. The slices wait for each other in proportion to what the account
 * holds: call it last. */
void adv_cost_slices(const struct adv_cost *cost, double dense, double experts, struct adv_account *account);

#endif
