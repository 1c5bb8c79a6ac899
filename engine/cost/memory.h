/* memory.h: what lies in one device's HBM, and in one host's memory, when it matters.
 *
 * Peaks that do not coincide: the loss (state, everything saved, logits), the start of the backward pass
 * (state, saved, gradients, gathered weights, one scan step's working set) and the update. engine/README.md,
 * "Memory".
 */
#pragma once

#include "engine/cost/context.h"

/* True for the blocks of the small gemma4 models, which are always unrolled, when every activation of every
 * layer fits beside the state: the published recipe leaves no time for a recompute whatever remat_policy
 * says. Not so beyond 32 devices of most generations: compiled steps have none of it there. Other unrolled
 * layers recompute as scanned ones do, only early: see adv_layer_sums.early_bytes. */
bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params);

struct adv_memory {
    double loss_peak_bytes, backward_peak_bytes, update_peak_bytes; /* per device */
    double host_bytes_per_host;
    double log_sd; /* spread of ln(compiled / predicted) bytes of plans that use the host as this one does */
};

/* Fills `memory`; parts go to `ledger` when it is not NULL. */
void adv_memory_plan(const struct adv_cost *cost, const struct adv_model_params *params,
                     struct adv_memory *memory, struct adv_ledger *ledger);

/* ---- What one layer pass keeps for the backward pass, by where the remat policy puts it. */

/* Bytes per device by where they go; those under ADV_PLACE_REMAT are not saved. */
struct adv_saved {
    double bytes[ADV_PLACE_COUNT];
    double routed_device_bytes; /* of those on the device: rows of routed experts */
};

/* A layer pass's tensors but for its input, and their bytes per device; `routed_bytes`: those that are rows
 * of routed experts. One that goes by two names is where `name` is kept, and where `other` is when that is
 * not. */
enum { ADV_SAVED_TENSORS = 20 };
struct adv_saved_tensors {
    bool known;
    int count;
    struct adv_saved_tensor {
        enum adv_tensor name, other;
        double bytes, routed_bytes;
    } tensors[ADV_SAVED_TENSORS];
};

/* A last dimension as HBM holds it: in whole rows of 128 lanes. */
double adv_memory_lanes(double elements);

/* What a layer pass keeps of the inputs of its scan step, bytes per device. A step always keeps its own; a
 * policy that names decoder_layer_input (custom: device, offload) keeps those of the layers inside it too.
 * Read from the stacks of compiled steps of gemma2, gemma3, gpt-oss, llama4 and olmo3. */
struct adv_saved_input {
    double bytes;
    bool on_host;
};
struct adv_saved_input adv_memory_saved_input(const struct adv_cost *cost, const struct adv_layer *layer);

/* The memory that one layer pass keeps for the backward pass, on the device and on the host. */
struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer);

/* Rows of the buffers in which routed tokens arrive, over the balanced tokens x experts_per_token; 1 without
 * an expert axis. Shapes are static: by all-to-all a device has room for what all its peers could send, at
 * most every token of theirs for each of its experts; the ring of experts sorts every choice of all gathered
 * tokens and only masks those of other devices. ragged_buffer_factor sets it instead and drops what is
 * beyond. Kernels visit the rows of the device's own groups only; whatever else touches the buffers touches
 * all of them. Source: maxtext.md a.2, e ("EP data path") and the shapes in MaxText's moe.py. */
double adv_memory_routed_growth(const struct adv_cost *cost, const struct adv_layer *layer);

/* ---- What XLA keeps alive while one layer is differentiated, and for that layer's weights.
 *
 * Shapes are the engine's: tokens, routed rows or slots times a width. How many buffers of a shape live at
 * once is a count read off compiled steps (catalog/memory_constants.h). */

/* Bytes per device of one layer kind's backward pass at its fullest moment. */
struct adv_working {
    double tokens_bytes;  /* attention and dense feed-forward */
    double scores_bytes;  /* of those: whole score matrices, which no order of operations spares */
    double chunks_bytes;  /* of a gated delta net; all of a scan step's are there at once */
    double routed_bytes;  /* rows or slots of routed experts */
    double weights_bytes; /* the layer's weights in the compute format: gathered, and gradients before they
                             scatter */
};

/* Whether XLA multiplies with weights as their shards arrive (windowed einsum), instead of gathering them
 * whole. */
static inline bool adv_memory_windowed(const struct adv_cost *cost)
{
    const double groups = (double)cost->dp * cost->plan->family.dcn[ADV_AXIS_DATA];
    return groups <= 1.0 && cost->dense_group.devices > 1 &&
           cost->dense_group.devices <= (int)cost->constants->windowed_devices_most &&
           cost->plan->flags.collective_matmul_disabled != 1;
}

struct adv_working adv_memory_layer_working(const struct adv_cost *cost, const struct adv_layer *layer,
                                            struct adv_layer_params params);

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
    double update_peak_bytes, host_moments, host_weights, early_moments;
    double blocks;                 /* adv_memory_blocks_in_turn */
    double gradients;              /* at the end of the backward pass */
    double coming_gradients;       /* of those, what comes block by block */
    bool turned_at_loss;           /* those copies are made before the loss */
    double emb_copies, mlp_copies; /* of the stacks of [tokens, emb], and of the larger of [tokens, mlp] */
    double shared_bytes;           /* adv_layer_sums.shared_bytes of the plan */
    double late_logits;            /* backward[…] of logits, where there is room */
};

/* Sums and maxima over the layers of one device: what where tensors are kept decides. */
struct adv_layer_sums {
    double saved_device, saved_host;
    double staged;      /* of one layer's tensors that go to the host */
    double staged_step; /* of those of one step of the scan */
    double emb_stacks;  /* those and others of [tokens, emb] there */
    double mlp_stack;   /* the larger of [tokens, mlp] that may be turned */
    struct adv_working
        top; /* of the layer kind that needs most, and of what shares a step of the scan with it */
    double shared_bytes;  /* of those, what the others add */
    double waiting_bytes; /* of those, what is recomputed later where it has no room */
    double early_bytes;   /* what the other layers compute again ahead of their turn, where there is room */
    /* forward values of layers outside of all loops, which saved_device has none of: of those that fill no
     * whole block behind the scan; of a kind of one layer */
    double behind_bytes, alone_bytes;
};

/* Remembered in the scratch, or else written to `fresh`. */
const struct adv_layer_sums *adv_memory_layer_sums(const struct adv_cost *cost, struct adv_layer_sums *fresh);

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
