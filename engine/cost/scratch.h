/* scratch.h: what estimates of one family share. A family is a set of plans that differ only in where tensors
 * are kept (remat policy and placements), in vocabulary tiling and in host offload of state: mesh, collective
 * groups and kernel times are theirs in common, and simulated once. The numbers are those of a fresh
 * estimate, bit for bit: the same functions computed them. Owned by the caller, one per thread;
 * zero-initialised means empty.
 */
#ifndef ADV_COST_SCRATCH_H
#define ADV_COST_SCRATCH_H

#include "engine/cost/context.h"

struct adv_cost_grouped {
    bool known;
    double seconds;
    struct adv_gmm_tile tile;
};

struct adv_cost_scratch {
    bool valid;
    const struct adv_model *model; /* identity of what the family was priced for */
    const struct adv_cluster *cluster;
    const struct adv_constants *constants;
    struct adv_plan key; /* the plan with the family's free members cleared */
    struct adv_mesh mesh;
    struct adv_cost cost;
    struct adv_model_params params;
    bool splash_known[ADV_LIMIT_LAYER_KINDS][ADV_KERNEL_COUNT];
    double splash_s[ADV_LIMIT_LAYER_KINDS][ADV_KERNEL_COUNT];
    struct adv_cost_grouped grouped[ADV_LIMIT_LAYER_KINDS][2][ADV_GMM_PASSES]; /* wi, wo; pass */
};

#endif
