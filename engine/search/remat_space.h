/* remat_space.h: what is open inside a family: where each named tensor lives, vocabulary tiling, input offload.
 *
 * Solved exactly as a constrained choice by branch and bound, with adv_estimate_plan as the objective and only these
 * properties of it (property tests hold the cost model to them):
 *   P1  moving a tensor from remat or offload to device never makes the step slower;
 *   P2  moving a tensor from device or offload to remat never needs more HBM or host memory.
 * So with some tensors decided, "all others on device" bounds the time from below (P1) and "all others rematerialised"
 * bounds the memory from below (P2); a branch is left when the first cannot win or the second does not fit.
 */
#ifndef ADV_SEARCH_REMAT_SPACE_H
#define ADV_SEARCH_REMAT_SPACE_H

#include "engine/search/price.h"

enum { ADV_REMAT_TENSORS = 16, ADV_REMAT_TILINGS = 5 };

struct adv_remat_space {
    int tensors_count;
    enum adv_tensor tensors[ADV_REMAT_TENSORS]; /* those the model has, in the order they are decided */
    bool follows[ADV_REMAT_TENSORS];            /* equal in size and gain to the one before: never kept better than it */
    bool pinned;                                /* the request fixes all placements */
    bool input_may_offload;                     /* decoder_layer_input: device or offload */
    bool experts;
    int tilings_count, tilings[ADV_REMAT_TILINGS];
};

void adv_remat_space_build(const struct adv_advise_request *request, struct adv_remat_space *space);

/* Decides the tensors that save most time per byte first, measured on `plan`: only the speed of the search depends on it. */
void adv_remat_space_order(struct adv_remat_space *space, struct adv_pricer *pricer, const struct adv_plan *plan);

/* The family's relaxation: everything on device, no tiling. Bounds the time of all its plans from below (P1). */
void adv_remat_relax(const struct adv_remat_space *space, struct adv_plan *plan);

/* The other extreme: least HBM (P2), with the tiling and input placement that need least. False: nothing was priced. */
bool adv_remat_smallest(const struct adv_remat_space *space, struct adv_pricer *pricer, struct adv_plan *plan, struct adv_estimate *estimate);

/* SLOWER: what fits, if anything, is not faster than the cutoff. TOO_BIG: nothing fits. */
enum adv_remat_outcome { ADV_REMAT_SOLVED, ADV_REMAT_SLOWER, ADV_REMAT_TOO_BIG };

/* The fastest plan that fits, if it is faster than `cutoff` (by adv_rank_metric). In: the family's plan; out: the
 * solution, written with a preset's name where one says the same, and without placements that gain next to nothing. */
enum adv_remat_outcome adv_remat_solve(const struct adv_remat_space *space, struct adv_pricer *pricer, double cutoff,
                                       struct adv_plan *plan, struct adv_estimate *estimate);

#endif
