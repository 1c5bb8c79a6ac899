/* pareto.h: the front of step time against HBM over all plans shown to it. */
#pragma once

#include "engine/rank/candidate.h"

struct adv_front {
    int count; /* fastest first, so HBM falls along the array */
    int capacity;
    struct adv_candidate *items; /* `capacity` entries, the caller's */
};

/* Adds the plan unless one in the front is at least as fast and as small; drops those it beats. When the
 * front is full the point whose loss changes it least (nearest neighbours in time) makes room. */
void adv_front_offer(struct adv_front *front, const struct adv_plan *plan,
                     const struct adv_estimate *estimate);

/* Whether adv_front_offer would add a plan with this estimate. */
bool adv_front_wants(const struct adv_front *front, const struct adv_estimate *estimate);

/* Drops points where a smaller one takes at most `time_frac` more time: nobody would choose them. The fastest
 * and the smallest stay. */
void adv_front_thin(struct adv_front *front, double time_frac);
