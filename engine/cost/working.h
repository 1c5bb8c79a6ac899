/* working.h: what XLA keeps alive while one layer is differentiated, and for that layer's weights.
 *
 * Shapes are the engine's: tokens, routed rows or slots times a width. How many buffers of a shape live at
 * once is a count read off compiled steps (catalog/memory_constants.h).
 */
#ifndef ADV_COST_WORKING_H
#define ADV_COST_WORKING_H

#include "engine/cost/context.h"

/* Bytes per device of one layer kind's backward pass at its fullest moment. */
struct adv_working {
    double tokens_bytes;  /* attention and dense feed-forward */
    double routed_bytes;  /* rows or slots of routed experts */
    double weights_bytes; /* the layer's weights in the compute format: gathered, and gradients before they
                             scatter */
};

/* Whether XLA multiplies with weights as their shards arrive (windowed einsum), instead of gathering them
 * whole. */
bool adv_memory_windowed(const struct adv_cost *cost);

struct adv_working adv_memory_layer_working(const struct adv_cost *cost, const struct adv_layer *layer,
                                            struct adv_layer_params params);

#endif
