/* scratch.h: what estimates in a row share, so that it is worked out once.
 *
 * A family is a set of plans that differ only in where tensors are kept (remat policy and placements), in
 * vocabulary tiling and in host offload of state: mesh, collective groups, matmul and kernel times and model
 * FLOPs are theirs in common. Families of one mesh share its placement and what is sent over it;
 * families of one request share simulated kernels of equal shape. Everything remembered is keyed by all
 * numbers it depends on, so the results are those of a fresh estimate, bit for bit: the same functions
 * computed them. Owned by the caller, one per thread. Not `valid` means empty: the first plan clears
 * it.
 */
#pragma once

#include "engine/cost/context.h"
#include "engine/cost/passes.h"
#include "engine/cost/memory.h"
#include "engine/cost/projections.h"

#include <string.h>

enum {
    ADV_PLACES_TENSOR_BITS = 48,   /* of a number that says where everything is, those of tensors */
    ADV_SCRATCH_COLLECTIVES = 512, /* (group, collective, bytes) of one mesh: some twenty per family */
    ADV_SCRATCH_KERNELS = 512, /* kernel shapes of one request: batch splits x tensor and context degrees */
    ADV_SCRATCH_COMPUTE =
        128,                 /* sets of shapes of the longest rows; several times as many of few layer kinds:
                                batch splits, also into microbatches, x strategies x tensor degrees */
    ADV_SCRATCH_KEPT = 256,  /* sets of kept tensors of one family: they come again with another tiling, with
                                the layer input on the host, and with each set of tensors there */
    ADV_SCRATCH_BEHIND = 4,  /* the vocabulary whole or in tiles, with and without transfers */
    ADV_SCRATCH_FRAMES = 32, /* tilings of one family, with and without something on the host */
    ADV_SCRATCH_PLACED = 1024, /* sets of places of one family: they come again with each tiling */
    ADV_SCRATCH_SLOTS = 1024,  /* numbers of rows, by the hash of their key */
};

/* Which rows of a table are in use. They stand one after the other in the order they were first needed, so
 * that a short table takes little of the caches and of the system's memory; one that is full starts anew. All
 * zero means empty: what a slot says of a row behind `count` says nothing. */
struct adv_scratch_rows {
    unsigned count;
    uint16_t at[ADV_SCRATCH_SLOTS];
};

struct adv_cost_grouped {
    bool known;
    double seconds;
    struct adv_gmm_tile tile;
};

/* A kernel time by everything that decides it beside the model, the chip and its constants. */
struct adv_cost_kernel {
    bool known; /* its time */
    uint64_t key[16];
    double time_s;
};

struct adv_cost_sent {
    const struct adv_group *group;
    enum adv_collective collective;
    unsigned mesh; /* the mesh it was sent over: adv_cost_scratch.mesh_number */
    double bytes, seconds;
};

struct adv_cost_matmuls {
    bool known;
    double seconds[ADV_PROJECTIONS_MAX]; /* forward, of the layer kind's table */
    double forward_s, forward_flops;     /* of all */
    double backward_s, backward_flops;   /* of all, both gradients */
};

/* The time of gathering and scattering one layer's weights. */
struct adv_cost_weights {
    bool known;
    double gather_s, scatter_s, gathered_bytes, scattered_bytes;
};

/* Of the head and the embedding, that vocabulary tiling does not change. */
struct adv_cost_head_times {
    bool known;
    double matmul_s, gather_s, scatter_s, embedding_s, embedding_flops, embedding_bytes;
};

struct adv_cost_projections {
    bool known;
    int count;
    struct adv_projection table[ADV_PROJECTIONS_MAX];
};

/* The input of a family's matmuls and kernels: a plan that has the same ones (adv_plan_same_kernels), and
 * what mesh, batch and pipeline make of their shapes. */
struct adv_cost_shapes {
    struct adv_plan plan;
    double tokens;
    int tp, cp_ring, ulysses, ep;
    bool repeats_width; /* adv_cost_repeats_width */
};

/* Times of one device's matmuls and kernels. Families of many meshes have them in common. A row of the table
 * is only as long as the model has layer kinds. */
struct adv_cost_compute {
    struct adv_cost_shapes shapes;
    struct adv_cost_compute_kind {
        bool splash_known[ADV_KERNEL_COUNT];
        double splash_s[ADV_KERNEL_COUNT];
        struct adv_cost_grouped grouped[2][ADV_GMM_PASSES]; /* wi, wo; pass */
        struct adv_cost_matmuls matmuls;
    } kinds[ADV_LIMIT_LAYER_KINDS];
};

/* The layers of a family's plans that keep the same tensors, without transfers to the host. */
struct adv_cost_kept {
    bool known;       /* what they take */
    uint32_t tensors; /* adv_remat_kept, and adv_scratch_again */
    struct adv_exposed exposed;
    struct adv_kept_sum {
        bool known;
        uint64_t key; /* adv_cost_behind */
        struct adv_open_sum sum;
    } sums[ADV_SCRATCH_BEHIND]; /* of the layers and what stands behind them */
    struct adv_layer_time times[ADV_LIMIT_LAYER_KINDS];
};

/* What a step takes, and its pipeline's part of that, exposed. */
struct adv_cost_step {
    bool known;
    double time_s, bubble_s, hand_overs_s;
};

/* What a family's plans have in common that keep all tensors, weights and moments in the same places. */
struct adv_cost_placed {
    uint64_t places; /* where everything is: one number */
    bool sums_known;
    struct adv_layer_sums sums;
    struct adv_cost_step steps[2]; /* with the vocabulary whole, and in tiles, however many */
};

/* What a step adds behind its layers, exposed: of plans of a family that tile the vocabulary or not, with
 * weights, moments and transfers treated alike. */
struct adv_cost_behind {
    unsigned family; /* of which family: adv_cost_scratch.family_number */
    uint64_t key;
    struct adv_exposed exposed;
};

struct adv_cost_scratch {
    bool valid;                    /* the only member that has to be set before the first plan */
    const struct adv_model *model; /* identity of what the family was priced for */
    const struct adv_cluster *cluster;
    const struct adv_constants *constants;
    struct adv_plan plan; /* the plan priced last: the caller's may be gone when its interval is asked for */
    struct adv_mesh mesh;
    unsigned mesh_number; /* grows with every new mesh; 0: none yet */
    struct adv_cost cost;
    struct adv_model_params params;
    /* of the family */
    double global_batch_sequences, tokens_per_step;
    struct adv_cost_compute *compute; /* the row of `computed` with its shapes */
    struct adv_cost_weights weights[ADV_LIMIT_LAYER_KINDS];
    struct adv_cost_head_times head;
    bool merges; /* a layer's recomputation merges where no tensor is on the host: adv_cost_has_merged */
    bool fixed_known;
    uint32_t fixed_again;       /* adv_scratch_again of it */
    struct adv_exposed exposed; /* what all of its plans start with: the fixed part of every layer */
    struct adv_layer_time fixed[ADV_LIMIT_LAYER_KINDS];
    bool working_known[ADV_LIMIT_LAYER_KINDS];
    struct adv_working working[ADV_LIMIT_LAYER_KINDS];
    struct adv_saved_tensors tensors[ADV_LIMIT_LAYER_KINDS];
    unsigned family_number; /* grows with every new family; 0: none yet */
    struct adv_memory_frame frames[ADV_SCRATCH_FRAMES];
    struct adv_cost_behind behind[ADV_SCRATCH_BEHIND];
    struct adv_scratch_rows kept_rows, places_rows;
    /* of the plan being priced */
    bool saved_known[ADV_LIMIT_LAYER_KINDS];
    struct adv_saved saved[ADV_LIMIT_LAYER_KINDS];
    struct adv_cost_placed *placed; /* the row of its places */
    struct adv_cost_step step;
    /* of the mesh */
    struct adv_cost_sent sent[ADV_SCRATCH_COLLECTIVES];
    /* of the request */
    struct adv_cost_projections projections[ADV_LIMIT_LAYER_KINDS];
    long computed_anew; /* how often a family found none of its shapes */
    struct adv_scratch_rows computed_rows, kernels_rows;
    /* from here on: rows, each written before it is read */
    struct adv_cost_kept kept[ADV_SCRATCH_KEPT];
    struct adv_cost_placed places[ADV_SCRATCH_PLACED];
    struct adv_cost_kernel kernels[ADV_SCRATCH_KERNELS];
    struct adv_cost_compute computed[ADV_SCRATCH_COMPUTE];
};

/* Makes it empty. */
void adv_scratch_clear(struct adv_cost_scratch *scratch);

/* What it knows of a family is another one's from now on. */
void adv_scratch_leave_family(struct adv_cost_scratch *scratch);

/* The row that holds the kernel of `key`, or the one to write it to (known: false, key set). */
struct adv_cost_kernel *adv_scratch_kernel(struct adv_cost_scratch *scratch, const uint64_t key[16]);

/* A bit above the kept tensors: set where the plan has layers that recompute for being beside tensors on the
 * host (adv_cost_again_frac), which other plans that keep the same tensors do not. */
uint32_t adv_scratch_again(const struct adv_cost_scratch *scratch);

/* The row of what the plan keeps, or the one to write it to (known: false, key set). */
struct adv_cost_kept *adv_scratch_kept(struct adv_cost_scratch *scratch);

/* The row of these places of the family; empty where it is new. */
struct adv_cost_placed *adv_scratch_placed(struct adv_cost_scratch *scratch, uint64_t places);

/* The frame of the plan being priced, whose row of places is known; not known where it was another's. */
struct adv_memory_frame *adv_scratch_frame(struct adv_cost_scratch *scratch);

/* The row of what stands behind the layers of the plan being priced, whose row of places is known; of family
 * 0 where that is not worked out yet. */
struct adv_cost_behind *adv_scratch_behind(struct adv_cost_scratch *scratch);

/* Points scratch->compute to the row of the family that scratch->cost describes; empty where it is new. */
void adv_scratch_enter_compute(struct adv_cost_scratch *scratch, const struct adv_plan *plan);

/* The bits of a number, for keys. */
static inline uint64_t adv_scratch_bits(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}
