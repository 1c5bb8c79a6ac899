/* memory.h: what lies in one device's HBM, and in one host's memory, when it matters.
 *
 * Peaks that do not coincide: the loss (state, everything saved, logits), the start of the backward pass
 * (state, saved, gradients, gathered weights, one scan step's working set) and the update. engine/README.md,
 * "Memory".
 */
#ifndef ADV_COST_MEMORY_H
#define ADV_COST_MEMORY_H

#include "engine/cost/context.h"

struct adv_saved {
    double device_bytes, host_bytes;
};

/* What one layer pass keeps for the backward pass, on the device and on the host; bytes per device. */
struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer);

/* True when the layers are unrolled (scan_layers=false) and every activation of every layer fits beside the
 * state: one program then, in which XLA merges the recomputation with the forward pass (a scan's two loops
 * cannot be merged). Supported by the one published unrolled recipe, whose step leaves no time for a
 * recompute. */
bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params);

struct adv_memory {
    double loss_peak_bytes, backward_peak_bytes, update_peak_bytes; /* per device */
    double host_bytes_per_host;
};

/* Fills `memory`; parts go to `ledger` when it is not NULL. */
void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger);

#endif
