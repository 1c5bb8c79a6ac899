/* head_memory.h: what the model's head takes of one device's HBM: logits, their gradient and mask, the
 * unembedding's weights, and the hidden states beside them. How many of each live at once is read off
 * compiled steps (catalog/memory_constants.h).
 */
#pragma once

#include "engine/cost/context.h"

/* Bytes per device. */
struct adv_head_memory {
    double logits_bytes;  /* with their gradient and mask */
    double weights_bytes; /* [emb, vocab]: gathered, and a gradient before it scatters */
    double hidden_bytes;  /* [tokens, emb] beside them */
    double holes_bytes;   /* places that are free and that nothing fills (at the loss) */
};

/* At the loss; through the layers of the backward pass, until the head's own gradient is there; at the
 * optimizer's step, behind a backward pass that no loop over microbatches holds. Pure. */
struct adv_head_memory adv_head_memory_at_loss(const struct adv_cost *cost);
struct adv_head_memory adv_head_memory_behind_loss(const struct adv_cost *cost);
struct adv_head_memory adv_head_memory_at_update(const struct adv_cost *cost);
