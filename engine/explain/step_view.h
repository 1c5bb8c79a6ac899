/* step_view.h: one decoder layer laid out in time, and the step folded around it.
 *
 * The schedule knows how long each pass computes, what of each collective and transfer shows and what hides;
 * the view puts that on lanes. What hides starts with its pass (weights of the next layer, gradients of the
 * last one), what shows stands behind the pass's computing, where the TensorCore waits. The order inside a
 * pass is that of the layer; only sums are predicted. Passes of all layers and what is outside of them add up
 * to the step time.
 */
#pragma once

#include "engine/explain/operations.h"

enum adv_view_lane {
    ADV_LANE_TENSORCORE,
    ADV_LANE_ICI_FSDP, /* weights and their gradients */
    ADV_LANE_ICI_TENSOR,
    ADV_LANE_ICI_CONTEXT,
    ADV_LANE_ICI_EXPERT,
    ADV_LANE_PCIE,
    ADV_LANE_DCN,
    ADV_LANE_COUNT
};
const char *adv_view_lane_name(enum adv_view_lane lane);  /* "tensorcore", "ici_fsdp", … */
const char *adv_view_lane_title(enum adv_view_lane lane); /* for people: "TensorCore", "ICI: FSDP", … */

/* The lane of a term of the ledger, by its name and its resource ("ici"): where the view has it, or, of what
 * is in no layer, that of its resource. ADV_LANE_COUNT: ICI that no layer uses, as of the data axis. */
enum adv_view_lane adv_view_lane_of(const char *term, const char *resource);

enum { ADV_VIEW_BLOCKS = ADV_OPERATIONS_MAX + 64 };

struct adv_view_block {
    const char *name; /* of an operation or of a term: static */
    enum adv_view_lane lane;
    enum adv_pass pass;
    enum adv_resource resource;
    double start_s, seconds; /* from the beginning of the layer's forward pass */
    bool exposed;            /* it lengthens the step; on the TensorCore's lane all does */
};

struct adv_layer_view {
    double times; /* how often such a layer runs in a step, on one device */
    double pass_s[ADV_PASS_COUNT];
    int blocks_count;
    struct adv_view_block blocks[ADV_VIEW_BLOCKS];
};

struct adv_outside {
    const char *name;
    enum adv_resource resource;
    double seconds, exposed_seconds; /* per step */
};

struct adv_step_view {
    double step_time_s;
    int layers_count; /* kinds of layers, in the order of the model's table */
    struct adv_layer_view layers[ADV_LIMIT_LAYER_KINDS];
    int outside_count; /* embedding, head, optimizer, … */
    struct adv_outside outside[ADV_TERM_COUNT];
};

/* Pure. Some 100 KiB: the caller keeps it in its arena. */
void adv_step_view_lay(const struct adv_step_trace *trace, struct adv_step_view *view);
