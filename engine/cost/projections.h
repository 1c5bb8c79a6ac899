/* projections.h: the dense matmuls of one decoder layer, as a table: what they multiply, what their output is
 * called in a remat policy, and whether the backward pass needs that output. Routed experts are in layer.h,
 * scores in layer.h.
 */
#ifndef ADV_COST_PROJECTIONS_H
#define ADV_COST_PROJECTIONS_H

#include "engine/spec/model.h"
#include "engine/spec/plan.h"

enum { ADV_PROJECTIONS_MAX = 20 };
enum adv_split { ADV_SPLIT_NONE, ADV_SPLIT_N, ADV_SPLIT_K }; /* which side tensor parallelism shards */

struct adv_projection {
    double k, n; /* unsharded; tokens x k times k x n */
    enum adv_split split;
    uint32_t names; /* a bit per tensor: saved if all of these are saved; 0 = has no name, never saved */
    bool needed_in_backward; /* false: recomputing it would be dead code */
};

/* Fills `table`; returns the count. `sparse_names`: the layer's experts run through grouped matmuls. */
int adv_projections(const struct adv_model *model, const struct adv_layer *layer,
                    struct adv_projection table[ADV_PROJECTIONS_MAX]);

/* Is the tensor kept (on the device or the host) for the backward pass? */
static inline bool adv_remat_keeps(const struct adv_plan *plan, enum adv_tensor tensor)
{
    return plan->placements[tensor] != ADV_PLACE_REMAT;
}

_Static_assert(ADV_TENSOR_COUNT <= 32, "a bit for each tensor");

/* All tensors that are kept, a bit each. */
static inline uint32_t adv_remat_kept(const struct adv_plan *plan)
{
    uint32_t kept = 0;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        kept |= (uint32_t)adv_remat_keeps(plan, (enum adv_tensor)i) << i;
    return kept;
}

/* Is the projection's output kept, when these tensors are? */
static inline bool adv_projection_kept(uint32_t kept, const struct adv_projection *projection)
{
    return projection->names != 0 && (projection->names & ~kept) == 0;
}

#endif
