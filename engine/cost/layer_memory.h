/* layer_memory.h: what one layer, and all layers of a device, keep and need in the backward pass. */
#pragma once

#include "engine/cost/context.h"

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

/* Lets the attention kernel read along the sequence what the plan keeps of queries, keys and values in heads
 * that leave lanes over: so they are not padded. Returns the columns of such a head; 0: the plan has none,
 * and stays as it is. */
int adv_memory_unpad_heads(const struct adv_model *model, struct adv_plan *plan);

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

/* Elements that grouped matmuls keep alive for each routed row while a layer with experts is differentiated.
 * Tensor axes cut the width and spare gathered rows; beside expert axes, where rows are exchanged as well,
 * they spare none. A bias and a clamp of the experts keep more of the width. Counted in compiled steps. */
double adv_memory_routed_elements(const struct adv_constants *constants, const struct adv_layer *layer,
                                  double tensor_shards, double expert_shards);

/* ---- What XLA keeps alive while one layer is differentiated, and for that layer's weights.
 *
 * Shapes are the engine's: tokens, routed rows or slots times a width. How many buffers of a shape live at
 * once is a count read off compiled steps (catalog/memory_constants.h). */

/* Bytes per device of one layer kind's backward pass at its fullest moment. */
struct adv_working {
    double tokens_bytes;  /* attention and dense feed-forward */
    double scores_bytes;  /* of those: whole score matrices, which no order of operations spares */
    double turn_bytes;    /* of those: what is there only while this layer is differentiated: query gradients
                             of blocks of keys, shards and sums that tensor axes exchange */
    double chunks_bytes;  /* of a gated delta net; all of a scan step's are there at once */
    double routed_bytes;  /* rows or slots of routed experts */
    double weights_bytes; /* the layer's weights in the compute format: gathered, and gradients before they
                             scatter */
};

struct adv_working adv_memory_layer_working(const struct adv_cost *cost, const struct adv_layer *layer,
                                            struct adv_layer_params params);

/* ---- The same of all layers. */

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

/* Layers of the kind that follow the scan because they fill no whole block: those that lead a block, which
 * are of the kind that it has most of (gemma3: 34 layers are five blocks of six, and four local ones). */
double adv_memory_layers_behind(const struct adv_cost *cost, const struct adv_layer *layer);

/* True for the blocks of the small gemma4 models, which are always unrolled, when every activation of every
 * layer fits beside the state: the published recipe leaves no time for a recompute whatever remat_policy
 * says. Not so beyond 32 devices of most generations: compiled steps have none of it there. Other unrolled
 * layers recompute as scanned ones do, only early: see adv_layer_sums.early_bytes. */
bool adv_memory_keeps_everything(const struct adv_cost *cost, const struct adv_model_params *params);
