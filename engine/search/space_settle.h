/* space_settle.h: keys that are the same in all plans of a search, settled by their price before it starts.
 */
#pragma once

#include "engine/search/remat_space.h"
#include "engine/search/space.h"

/* Evaluations below which none go into what only makes a search faster or a little better. */
enum { ADV_SETTLE_LEAST_BUDGET = 100 };

/* Puts into space->base the wider published VMEM limit and the other values of the house choices
 * (adv_choices_flip) that make the first family, all on the device, faster. Does nothing to a small budget or
 * an empty space. */
void adv_settle_base(struct adv_space *space, const struct adv_remat_space *open, struct adv_pricer *pricer);
