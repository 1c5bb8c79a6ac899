/* layer.h: what one decoder layer costs the TensorCore, pass by pass (passes.h): projections, attention,
 * experts, elementwise, quantisation. */
#ifndef ADV_COST_LAYER_H
#define ADV_COST_LAYER_H

#include "engine/cost/passes.h"

adv_cost_part adv_cost_layer_fixed ADV_MUST_CHECK;
adv_cost_part adv_cost_layer_placed ADV_MUST_CHECK;

#endif
