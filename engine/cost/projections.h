/* projections.h: the dense matmuls of one decoder layer, as a table: what they multiply, what their output is
 * called in a remat policy, and whether the backward pass needs that output. Routed experts are in layer.h,
 * scores in layer.h.
 */
#pragma once

#include "engine/spec/model.h"
#include "engine/spec/plan.h"

enum { ADV_PROJECTIONS_MAX = 20 };
enum adv_split { ADV_SPLIT_NONE, ADV_SPLIT_N, ADV_SPLIT_K }; /* which side tensor parallelism shards */

struct adv_projection {
    double k, n; /* unsharded; tokens x k times k x n */
    enum adv_split split;
    uint32_t names;    /* a bit per tensor: saved if all of these are saved; 0 = has no name, never saved */
    const char *title; /* of those without a name, for people: "router" */
    bool needed_in_backward; /* false: recomputing it would be dead code */
    bool norm_reads; /* the name is that of a norm's output, whose derivative reads this one: it is computed
                        again wherever the named tensor is */
};

/* Fills `table`; returns the count. */
int adv_projections(const struct adv_model *model, const struct adv_layer *layer,
                    struct adv_projection table[ADV_PROJECTIONS_MAX]);

/* Is the tensor kept (on the device or the host) for the backward pass? */
static inline bool adv_remat_keeps(const struct adv_plan *plan, enum adv_tensor tensor)
{
    return plan->placements[tensor] != ADV_PLACE_REMAT;
}

_Static_assert(ADV_TENSOR_COUNT <= 32 && ADV_PLACE_COUNT <= 4, "a bit, and two, for each tensor");

/* Where all tensors are, two bits each. */
static inline uint64_t adv_remat_places(const struct adv_plan *plan)
{
#define ADV_TENSOR_PLACED(id, name) | (uint64_t)plan->placements[ADV_TENSOR_##id] << 2 * ADV_TENSOR_##id
    return 0 ADV_TENSOR_TABLE(ADV_TENSOR_PLACED);
#undef ADV_TENSOR_PLACED
}

/* All tensors that are kept, a bit each: of each pair of bits whether one is set, moved together. */
static inline uint32_t adv_remat_kept(uint64_t places)
{
    uint64_t kept = (places | places >> 1) & 0x5555555555555555u;
    kept = (kept | kept >> 1) & 0x3333333333333333u;
    kept = (kept | kept >> 2) & 0x0f0f0f0f0f0f0f0fu;
    kept = (kept | kept >> 4) & 0x00ff00ff00ff00ffu;
    kept = (kept | kept >> 8) & 0x0000ffff0000ffffu;
    return (uint32_t)(kept | kept >> 16);
}

/* Whether the backward pass needs no rows of routed experts sent again: the gate's output and the experts'
 * are kept, each under either of its names. */
static inline bool adv_remat_keeps_rows(uint32_t kept)
{
    const uint32_t out = UINT32_C(1) << ADV_TENSOR_MOE_MLPWO | UINT32_C(1) << ADV_TENSOR_MLPWO;
    const uint32_t gate = UINT32_C(1) << ADV_TENSOR_MOE_MLPWI_0 | UINT32_C(1) << ADV_TENSOR_MLPWI_0;
    return (kept & out) != 0 && (kept & gate) != 0;
}

/* Whether some tensor goes to the host. */
static inline bool adv_remat_offloads(uint64_t places)
{
    _Static_assert((int)ADV_PLACE_DEVICE == 1 && (int)ADV_PLACE_OFFLOAD == 2, "the higher bit of the two");
    return (places & 0xaaaaaaaaaaaaaaaau) != 0;
}

/* All in which plans of a family differ beside where weights and moments are. */
struct adv_places {
    uint64_t tensors; /* adv_remat_places */
    int num_vocab_tiling;
};

/* Where one of the tensors is, and the same places with it elsewhere. */
static inline enum adv_placement adv_remat_place(uint64_t places, enum adv_tensor tensor)
{
    return (enum adv_placement)(places >> 2 * tensor & 3u);
}

static inline uint64_t adv_remat_put(uint64_t places, enum adv_tensor tensor, enum adv_placement placement)
{
    return (places & ~(UINT64_C(3) << 2 * tensor)) | (uint64_t)placement << 2 * tensor;
}

static inline struct adv_places adv_places_of(const struct adv_plan *plan)
{
    return (struct adv_places){adv_remat_places(plan), plan->num_vocab_tiling};
}

static inline void adv_places_write(const struct adv_places *places, struct adv_plan *plan)
{
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        plan->placements[i] = adv_remat_place(places->tensors, (enum adv_tensor)i);
    plan->num_vocab_tiling = places->num_vocab_tiling;
}

/* Is the projection's output kept, when these tensors are? Of queries and keys with norms not even then
 * (compiled steps of MaxText 0.2.5 multiply for them again; tests/compile/products.json). */
static inline bool adv_projection_kept(uint32_t kept, const struct adv_projection *projection)
{
    return projection->names != 0 && (projection->names & ~kept) == 0 && !projection->norm_reads;
}
