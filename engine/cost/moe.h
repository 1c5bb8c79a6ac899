/* moe.h: routed experts of a layer: routing, permutation, grouped or dense expert matmuls. */
#ifndef ADV_COST_MOE_H
#define ADV_COST_MOE_H

#include "engine/cost/passes.h"

adv_cost_part adv_cost_experts_fixed ADV_MUST_CHECK;
adv_cost_part adv_cost_experts_placed ADV_MUST_CHECK;

#endif
