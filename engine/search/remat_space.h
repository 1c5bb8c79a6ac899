/* remat_space.h: what is open inside a family: where each named tensor lives, the layer input among them,
 * and vocabulary tiling.
 *
 * Solved exactly as a constrained choice over single tensors, with adv_estimate_again as the objective and
 * only these properties of it (property tests hold the cost model to them): P1  moving a tensor from remat or
 * offload to device never makes the step slower; P2  at the loss, at the
 * backward peak and on the host memory is a constant plus a fixed amount for each tensor kept there, its
 * leader being kept (beside tensors on the host, what waits on its way there and copies of stacks come on
 * top, and the price has the last word); P3  tiling the vocabulary never makes the step
 * faster. For each placement of the layer input and each tiling that gives room: all sets of kept tensors are
 * gone through by branch and bound, where "undecided ones on device" bounds the time from below (P1);
 * undecided ones that the kept ones leave no room for, on device and host together, are given up first (P2).
 * A kept set that is too big for the device is tried with each smallest set of its tensors on the host that
 * makes it fit (P2): larger ones are not faster (P1).
 *
 * Layers that are not scanned are recomputed early where a tensor is not kept: there an amount of P2 may be
 * below 0 at the backward peak, and is then taken for 0.
 *
 * remat_space.c says which tensors are open, remat_amounts.c what they take, remat_solve.c decides them.
 */
#pragma once

#include "engine/search/price.h"

enum { ADV_REMAT_UNITS = ADV_TENSOR_COUNT, ADV_REMAT_TILINGS = 5 };

/* One open tensor. */
struct adv_remat_unit {
    enum adv_tensor tensor;
    bool has_leader;        /* kept only where the leader is kept: what that leaves out is no better, by a
                               proof in remat_space.c */
    enum adv_tensor leader; /* decided earlier */
};

struct adv_remat_space {
    const struct adv_constants *constants; /* borrowed */
    int units_count;
    struct adv_remat_unit units[ADV_REMAT_UNITS]; /* in the order they are decided */
    bool pinned;                                  /* the request fixes all placements (pins remat_policy) */
    bool fixed[ADV_TENSOR_COUNT];                 /* pinned alone: the others stay open */
    enum adv_placement placements[ADV_TENSOR_COUNT]; /* of the fixed ones */
    bool any_fixed;
    bool is_custom;                 /* pinned remat_policy=custom, and no placement with it */
    bool input_may_offload;         /* decoder_layer_input: offload, or where it stays */
    enum adv_placement input_stays; /* adv_remat_input_stays, or as the release has it */
    bool has_blocks;  /* scan steps of many layers: kept tensors take less at the backward peak than at the
                         loss */
    bool device_only; /* no tensor of a unit goes to the host */
    int tilings_count, tilings[ADV_REMAT_TILINGS];
};

/* A pinned remat_policy says where all tensors are, with the tensor keys given beside it; tensor keys pinned
 * without it fix these tensors and leave the others to the search. */
void adv_remat_space_build(const struct adv_advise_request *request, const struct adv_constants *constants,
                           struct adv_remat_space *space);

/* Decides the tensors that save most time per byte first, measured on `plan`: only the speed of the search
 * depends on it. */
void adv_remat_space_order(struct adv_remat_space *space, struct adv_pricer *pricer,
                           const struct adv_plan *plan);

/* All open tensors of `plan` to `placement`, the fixed ones where they belong, the rest recomputed, the input
 * on the device. Does nothing to a pinned space. */
void adv_remat_set_all(const struct adv_remat_space *space, struct adv_plan *plan,
                       enum adv_placement placement);

/* The value of decoder_layer_input, under remat_policy=custom, with which least is saved on the device and
 * nothing goes to the host. Where a scan step is one layer, device and remat are the same. */
enum adv_placement adv_remat_input_stays(const struct adv_model *model);

/* The layer input, unless a pin fixes it. */
void adv_remat_set_input(const struct adv_remat_space *space, struct adv_plan *plan,
                         enum adv_placement placement);

/* Where the layer input may be in plans of this family, the fastest first: where it stays; on the device for
 * each layer of a block, whose recomputation that parts; on the host. Returns how many. */
enum { ADV_REMAT_INPUTS = 3 };
int adv_remat_inputs(const struct adv_remat_space *space, const struct adv_plan *plan,
                     enum adv_placement inputs[ADV_REMAT_INPUTS]);

/* Tiles must split the device's tokens evenly, and bring no hidden states of other devices
 * (adv_memory_tiles_gather) unless no other tiling is open. */
bool adv_remat_may_tile(const struct adv_remat_space *space, const struct adv_plan *plan, int tiling);

/* Gives placements that a preset says too the preset's name. */
void adv_remat_name_policy(const struct adv_remat_space *space, struct adv_plan *plan);

/* The family's relaxation: everything on device, no tiling. Bounds the time of all its plans from below (P1,
 * P3). */
void adv_remat_relax(const struct adv_remat_space *space, struct adv_plan *plan);

/* The other extreme: least HBM, with the tiling and input placement that need least. False: nothing was
 * priced. */
bool adv_remat_smallest(const struct adv_remat_space *space, struct adv_pricer *pricer, struct adv_plan *plan,
                        struct adv_estimate *estimate);

/* SLOWER: what fits, if anything, is not faster than the cutoff. TOO_BIG: nothing fits. */
enum adv_remat_outcome { ADV_REMAT_SOLVED, ADV_REMAT_SLOWER, ADV_REMAT_TOO_BIG };

/* The fastest plan that fits, if it is faster than `cutoff` (by adv_rank_metric). In: the family's plan; out:
 * the solution, written with a preset's name where one says the same, and without placements that gain next
 * to nothing. */
enum adv_remat_outcome adv_remat_solve(const struct adv_remat_space *space, struct adv_pricer *pricer,
                                       double cutoff, struct adv_plan *plan, struct adv_estimate *estimate);

/* What a solution says about lower cutoffs. */
struct adv_remat_reach {
    double same_above;   /* down to (but not) this one the same plans are priced, to the same end */
    double known_above;  /* down to this one it is known what comes of it, and the rows on the pricer's tape
                            say which plans are priced */
    double closed_below; /* up to this one a plan that is not found was outrun */
    double metric;       /* of the solution; infinite: none */
};

/* The same; `plan` and `estimate` are for all cutoffs of which the outcome is SOLVED. */
enum adv_remat_outcome adv_remat_solve_within(const struct adv_remat_space *space, struct adv_pricer *pricer,
                                              double cutoff, struct adv_plan *plan,
                                              struct adv_estimate *estimate, struct adv_remat_reach *reach);

/* What would have come of a cutoff that is not above the one that came to `outcome`. False: it is not
 * known. */
bool adv_remat_outcome_below(const struct adv_remat_reach *reach, double cutoff,
                             enum adv_remat_outcome *outcome);
