/* regime.h: in which order XLA runs a step, as far as memory depends on it: how weights arrive, which
 * iterations leave their loops, and which stacks are read in another layout. Pure.
 */
#pragma once

#include "engine/cost/context.h"

/* Whether XLA multiplies with weights as their shards arrive (windowed einsum), instead of gathering them
 * whole. */
bool adv_memory_windowed(const struct adv_cost *cost);

/* The same of the activations that the tensor axes share, in the layer's feed-forward, or in its attention
 * where that is all it has. False without tensor axes. */
bool adv_memory_tensor_windowed(const struct adv_cost *cost, const struct adv_layer *layer);

/* Whether a step of the scan holds more than one layer. */
static inline bool adv_memory_in_block(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return layer->remat_block > 1 && cost->plan->family.scan_layers;
}

/* Whether XLA takes an iteration out of the loops over layers to have the next one's transfers under way
 * beside each: it does unless a flag tells it not to. */
bool adv_memory_peels_loops(const struct adv_cost *cost);

/* Whether gradients go to other slices. XLA then takes the first iteration of the backward loop out of it, so
 * that they are on their way while the next layer is differentiated (compiled with MaxText 0.2.5). */
static inline bool adv_memory_crosses_slices(const struct adv_cost *cost)
{
    const int *dcn = cost->plan->family.dcn;
    return dcn[ADV_AXIS_DATA] * dcn[ADV_AXIS_FSDP] * dcn[ADV_AXIS_FSDP_TRANSPOSE] > 1;
}

/* Whether that iteration is taken out for transfers of the host, too: then its weights' gradients wait until
 * attention is differentiated, beside tensors that came back for it and for the next. Blocks of layers were
 * seen to keep their order. */
bool adv_memory_begins_twice(const struct adv_cost *cost);

/* Blocks of layers that the step goes through one by one, each with loops of its own; 1 where a loop goes
 * over them. */
double adv_memory_blocks_in_turn(const struct adv_cost *cost);

/* Whether the columns of [mlp, emb] that a device holds of a layer's weights are whole rows of 128 lanes, or
 * the weights are gathered whole: XLA lays out what windowed einsums multiply by their shards. */
bool adv_memory_fills_lanes(const struct adv_cost *cost);

/* Whether stacks of [tokens, emb] are written in the layout in which the iteration that is taken out of the
 * backward loop does not read them. Read from the loops of 91 compiled dense steps: weights that are gathered
 * whole have the longer of sequence and emb along the lanes, windowed einsums emb if their shards fill lanes;
 * norms of queries and keys, and heads of more than 128, want sequences there, and so do windowed einsums
 * that had emb there, of sequences as long as it; others want emb. tests/compile/report.md counts how many
 * compiled steps copy such stacks where this says so. */
bool adv_memory_turns_emb(const struct adv_cost *cost);

/* The same where the iteration is taken out for gradients that go to other slices: there it is nearly the
 * other way round, by the steps of tests/compile/truth/slices.json. */
bool adv_memory_turns_sliced_emb(const struct adv_cost *cost);

/* Whether tiles of the vocabulary's loop bring the hidden states of all devices to each: context shards of
 * more than one sequence are no range of the list that MaxText cuts (adv_plan_tiles_gather), and the
 * generation's XLA does not send each device its part either. */
bool adv_memory_tiles_gather(const struct adv_constants *constants, const struct adv_plan *plan, int tiling);
