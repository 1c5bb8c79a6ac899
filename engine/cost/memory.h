/* memory.h: what lies in one device's HBM, and in one host's memory, when it matters.
 *
 * Peaks that do not coincide: the loss (state, everything saved, logits), the start of the backward pass
 * (state, saved, gradients, gathered weights, one scan step's working set) and the update. engine/README.md,
 * "Memory".
 */
#ifndef ADV_COST_MEMORY_H
#define ADV_COST_MEMORY_H

#include "engine/cost/context.h"
#include "engine/cost/saved.h"

/* True for the blocks of the small gemma4 models, which are always unrolled, when every activation of every
 * layer fits beside the state: the published recipe leaves no time for a recompute whatever remat_policy
 * says. Other unrolled layers recompute as scanned ones do: MaxText keeps XLA from merging a recomputation
 * with the forward pass (prevent_cse). */
bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params);

struct adv_memory {
    double loss_peak_bytes, backward_peak_bytes, update_peak_bytes; /* per device */
    double host_bytes_per_host;
    double turned_bytes; /* beside the backward peak: copies of stacks that XLA makes in some plans */
    double log_sd; /* spread of ln(compiled / predicted) bytes of plans that use the host as this one does */
};

/* Whether XLA may copy this tensor's stack whole, where loops are peeled for transfers: those of [tokens,
 * emb] and [tokens, mlp]. The layer inputs' stack is one too. */
bool adv_memory_may_turn(enum adv_tensor tensor);

/* Fills `memory`; parts go to `ledger` when it is not NULL. */
void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger);

#endif
