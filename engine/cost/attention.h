/* attention.h: scores and weighted values of a layer: splash, XLA attention or the gated delta net. */
#ifndef ADV_COST_ATTENTION_H
#define ADV_COST_ATTENTION_H

#include "engine/cost/passes.h"

adv_cost_part adv_cost_attention_fixed ADV_MUST_CHECK;
adv_cost_part adv_cost_attention_placed ADV_MUST_CHECK;

#endif
