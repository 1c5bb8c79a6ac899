/* memory.h: what lies in one device's HBM, and in one host's memory, when it matters.
 *
 * Peaks that do not coincide: the loss (state, everything saved, logits), the start of the backward pass
 * (state, saved, gradients, gathered weights, one scan step's working set) and the update. engine/README.md,
 * "Memory".
 */
#pragma once

#include "engine/cost/layer_memory.h"
#include "engine/cost/regime.h"

struct adv_memory {
    double loss_peak_bytes, backward_peak_bytes, update_peak_bytes; /* per device */
    double host_bytes_per_host;
    double log_sd; /* spread of ln(compiled / predicted) bytes of plans that use the host as this one does */
};

/* Fills `memory`; parts go to `ledger` when it is not NULL. */
void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger);

/* ---- What the peaks are added up from. */

enum { ADV_MOMENT_PARTS = 13 };

/* Bytes per device. What where tensors are kept decides is filled in for each plan; the rest goes with the
 * family, the tiling of the vocabulary, and whether tensors, weights and moments are on the host. */
struct adv_memory_frame {
    bool known, peels; /* peels: adv_memory_peels_loops */
    bool begins_twice; /* adv_memory_begins_twice */
    bool unusual;      /* its memory spreads like that of kinds of which few steps were compiled */
    unsigned family;   /* of which family: adv_cost_scratch.family_number */
    uint64_t key;
    double arguments, loss[ADV_MOMENT_PARTS], backward[ADV_MOMENT_PARTS];
    double loss_holes_bytes; /* adv_head_memory.holes_bytes */
    double update_peak_bytes, host_moments, host_weights, early_moments, loss_moments;
    double blocks;                 /* adv_memory_blocks_in_turn */
    double gradients;              /* at the end of the backward pass */
    double coming_gradients;       /* of those, what comes block by block */
    bool sliced;                   /* adv_memory_crosses_slices */
    double emb_copies, mlp_copies; /* of the stacks of [tokens, emb], and of the larger of [tokens, mlp] */
    double early_emb_frac, early_mlp_frac; /* of those, what is made before the loss */
    double shared_bytes;                   /* adv_layer_sums.shared_bytes of the plan */
    double late_logits;                    /* backward[…] of logits, where there is room */
};
