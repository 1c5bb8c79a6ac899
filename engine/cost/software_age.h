/* software_age.h: how much longer a step took with the compilers of a generation's first months. */
#ifndef ADV_COST_SOFTWARE_AGE_H
#define ADV_COST_SOFTWARE_AGE_H

#include "engine/cost/context.h"

/* A dated factor of the generation on all that the account holds, only for runs that say how old their
 * software is. */
void adv_cost_software_age(const struct adv_cost *cost, struct adv_account *account);

#endif
