/* saved.h: what one layer pass keeps for the backward pass, by where the remat policy puts it. */
#ifndef ADV_COST_SAVED_H
#define ADV_COST_SAVED_H

#include "engine/cost/context.h"

/* Bytes per device by where they go; those under ADV_PLACE_REMAT are not saved. */
struct adv_saved {
    double bytes[ADV_PLACE_COUNT];
};

/* A last dimension as HBM holds it: in whole rows of 128 lanes. */
double adv_memory_lanes(double elements);

/* The memory that one layer pass keeps for the backward pass, on the device and on the host. */
struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer);

/* Rows of the buffers in which routed tokens arrive, over the balanced tokens x experts_per_token; 1 without
 * an expert axis. Shapes are static: by all-to-all a device has room for what all its peers could send, at
 * most every token of theirs for each of its experts; the ring of experts sorts every choice of all gathered
 * tokens and only masks those of other devices. ragged_buffer_factor sets it instead and drops what is
 * beyond. Kernels visit the rows of the device's own groups only; whatever else touches the buffers touches
 * all of them. Source: maxtext.md a.2, e ("EP data path") and the shapes in MaxText's moe.py. */
double adv_memory_routed_growth(const struct adv_cost *cost, const struct adv_layer *layer);

#endif
