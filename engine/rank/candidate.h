/* candidate.h: a plan with its estimate: what ranking orders and the search keeps. */
#pragma once

#include "engine/cost/estimate.h"
#include "engine/spec/request.h"

struct adv_candidate {
    struct adv_plan plan;
    struct adv_estimate estimate;
    int tie_group; /* of a ranked plan: plans of one group are predicted equal within rank.h's
                      ADV_RANK_TIE_FRAC */
};
