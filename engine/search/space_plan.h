/* space_plan.h: a family as a plan, in two steps: what batches on one mesh share, then the batch. */
#pragma once

#include "engine/search/space.h"

/* Writes what all batches on one mesh have in common into a copy of the base. */
void adv_space_write_mesh(const struct adv_space *space, const struct adv_family *family,
                          struct adv_plan *plan);

/* Writes the batch, its number format and the exchange of experts into a plan with the family's mesh. */
void adv_space_write_batch(const struct adv_space *space, const struct adv_family *family,
                           struct adv_plan *plan);
