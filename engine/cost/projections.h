/* projections.h: the dense matmuls of one decoder layer, as a table: what they multiply, what their output is
 * called in a remat policy, and whether the backward pass needs that output. Routed experts are in moe.h,
 * scores in attention.h.
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
    int names_count; /* saved if all of these are saved; 0 = has no name, never saved */
    enum adv_tensor names[2];
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

/* Is the projection's output kept? */
bool adv_projection_kept(const struct adv_plan *plan, const struct adv_projection *projection);

#endif
