/* state.h: what a device holds of the weights and of the optimizer, and what XLA makes of them. */
#pragma once

#include "engine/cost/context.h"

/* The optimizer's state, and copies made of it; bytes per device. */
struct adv_state {
    double weights, moments, device_weights, device_moments;
    double copies;         /* the layers' weights in the compute format and the matmuls' layout */
    double gradients;      /* in the smaller of the weights' format and grad_dtype; whole ones in dtype */
    double accumulated;    /* gradients of the microbatches before this one */
    double whole_experts;  /* of their gradients, at the update */
    double between_slices; /* gradients on their way to other slices */
};

/* Bytes that an optimizer keeps of each parameter, beside the weight. */
double adv_moment_bytes_per_param(const struct adv_plan *plan);
/* Shards of the optimizer's state beyond those of the weights: the data axes, where it is sharded over them.
 */
double adv_moment_shards(const struct adv_cost *cost);

struct adv_state adv_state_of(const struct adv_cost *cost, const struct adv_model_params *params);
