/* whatif.h: which of the overridden fields of a chip say nothing about a plan. */
#pragma once

#include "engine/cost/estimate.h"

/* Adds a finding (rule "idle-override", below /cluster/overrides) for each field by which the chip of `input`
 * differs from `published` and without which the plan is estimated the same. One estimate per field. */
void adv_whatif_idle(const struct adv_chip *published, const struct adv_estimate_input *input,
                     const struct adv_estimate *estimate, adv_err *warnings);
