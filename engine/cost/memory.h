/* memory.h: what lies in one device's HBM, and in one host's memory, when it matters.
 *
 * Peaks that do not coincide: the loss (state, everything saved, logits), the start of the backward pass
 * (state, saved, gradients, gathered weights, one scan step's working set) and the update. engine/README.md,
 * "Memory".
 */
#ifndef ADV_COST_MEMORY_H
#define ADV_COST_MEMORY_H

#include "engine/cost/context.h"

/* Bytes per device by where they go; those under ADV_PLACE_REMAT are not saved. */
struct adv_saved {
    double bytes[ADV_PLACE_COUNT];
};

/* What one layer pass keeps for the backward pass, on the device and on the host. */
struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer);

/* Rows of the buffers in which routed tokens arrive, over the balanced tokens x experts_per_token; 1 without
 * an expert axis. Shapes are static: by all-to-all a device has room for what all its peers could send, at
 * most every token of theirs for each of its experts; the ring of experts sorts every choice of all gathered
 * tokens and only masks those of other devices. ragged_buffer_factor sets it instead and drops what is
 * beyond. Kernels visit the rows of the device's own groups only; whatever else touches the buffers touches
 * all of them. Source: maxtext.md a.2, e ("EP data path") and the shapes in MaxText's moe.py. */
double adv_memory_routed_growth(const struct adv_cost *cost, const struct adv_layer *layer);

/* True for the blocks of the small gemma4 models, which are always unrolled, when every activation of every
 * layer fits beside the state: the published recipe leaves no time for a recompute whatever remat_policy
 * says. Other unrolled layers recompute as scanned ones do: MaxText keeps XLA from merging a recomputation
 * with the forward pass (prevent_cse). */
bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params);

struct adv_memory {
    double loss_peak_bytes, backward_peak_bytes, update_peak_bytes; /* per device */
    double host_bytes_per_host;
};

/* Fills `memory`; parts go to `ledger` when it is not NULL. */
void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger);

#endif
