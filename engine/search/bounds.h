/* bounds.h: what can be said of families without pricing them, or by pricing others. */
#pragma once

#include "engine/search/space.h"

/* HBM that no choice of remat, offload of activations or tiling gives back: this device's weights and, unless
 * they live on the host, optimizer moments. Proof: adv_estimate_plan's peaks are sums of non-negative parts,
 * and weights are part of each of them (at the update even when parameters are offloaded); moments are part
 * of the loss and backward peaks unless offloaded. So a family whose value is above the device's memory holds
 * no plan that fits. */
double adv_bound_hbm_bytes_per_device(const struct adv_plan *plan, const struct adv_model_params *params);

/* No plan of the family is better by the metric of a time, which is `doubt` times the time of a token: the
 * interval is as wide for all of a family. */
struct adv_bound {
    double metric, doubt;
    double bubble, hand_overs; /* of the metric: what its pipeline takes */
    int family;                /* of space.families */
};

/* What a search keeps of each family beside itself: a bound, room to sort it, and its least metric. */
#define ADV_BOUND_BYTES_PER_FAMILY (2 * sizeof(struct adv_bound) + sizeof(double))

/* The bound of a family that another one bounds (struct adv_family, bounded_by): `by` is that one's. */
struct adv_bound adv_bound_derived(const struct adv_space *space, const struct adv_bound *by, int family);

/* What such a bound is not below, `steps` families away from `by`: of a deeper pipeline the bubble only
 * grows, and less than all hand-overs, lengthened by less than as much again (adv_pipeline_deeper_s), are
 * saved. */
static inline double adv_bound_derived_least(const struct adv_bound *by, int steps)
{
    return by->metric - 2.0 * steps * by->hand_overs;
}

/* Radix sort by metric: stable, so that the order of equal families does not depend on the C library.
 * `scratch` is as long. False: the budget is over; the bounds are in any order. */
bool adv_bound_sort(struct adv_bound *bounds, struct adv_bound *scratch, int count,
                    const struct adv_budget *budget);
