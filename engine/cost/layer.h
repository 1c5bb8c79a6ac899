/* layer.h: what one decoder layer costs the TensorCore, pass by pass (passes.h): projections, attention,
 * experts, elementwise, quantisation.
 */
#pragma once

#include "engine/cost/passes.h"
#include "engine/cost/projections.h"

/* Seconds of one projection in a pass: [tokens x tp, k] x [k, n / tp], or k / tp: the same work on each
 * device, padded after sharding. Backward has two products, the gradients of the inputs and of the weights.
 */
double adv_cost_projection_s(const struct adv_cost *cost, const struct adv_projection *p, enum adv_pass pass);

/* Share of a kind's layers that compute again what is not kept. Those behind the scan do not: MaxText 0.2.5
 * sets prevent_cse=False wherever scan_layers is on (maxtext_utils.py), which loops make up for and straight
 * code does not, so that XLA merges the recomputation with the forward pass, kernels and all, also inside the
 * loop over microbatches. With a tensor on the host it starts from copies, which are other values: nothing
 * merges but the first queries and keys (left out here). Seen in compiled steps of gemma3. */
double adv_cost_again_frac(const struct adv_cost *cost, const struct adv_layer *layer);

/* Whether some kind has such layers, wherever tensors are. */
bool adv_cost_has_merged(const struct adv_cost *cost);

adv_cost_part adv_cost_layer_fixed ADV_MUST_CHECK;
adv_cost_part adv_cost_layer_placed ADV_MUST_CHECK;

/* ---- Scores and weighted values of a layer: splash, XLA attention or the gated delta net. */

adv_cost_part adv_cost_attention_fixed ADV_MUST_CHECK;
adv_cost_part adv_cost_attention_placed ADV_MUST_CHECK;

/* ---- The sparse-attention indexer of a layer: nothing where it picks no keys. */

void adv_cost_index(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                    struct adv_account *account, struct adv_layer_time *time);

/* ---- Routed experts of a layer: routing, permutation, grouped or dense expert matmuls. */

adv_cost_part adv_cost_experts_fixed ADV_MUST_CHECK;
adv_cost_part adv_cost_experts_placed ADV_MUST_CHECK;
