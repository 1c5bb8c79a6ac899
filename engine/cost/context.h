/* context.h: what every cost function needs of one (model, cluster, plan): degrees, tokens, rates, groups.
 *
 * Tokens: `tokens` is what one device works on in one pass of one layer, after all axes (data, context,
 * tensor …). A matmul of the layer is then [tokens * tp, k] x [k, n / tp] on each device: FLOPs do not depend
 * on tp.
 */
#pragma once

#include "engine/cost/account.h"
#include "engine/cost/input.h"
#include "engine/hardware/collective.h"

struct adv_cost_scratch;

struct adv_cost {
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    const struct adv_chip *chip;
    const struct adv_constants *constants;
    const struct adv_plan *plan;
    struct adv_kernel_machine machine;
    const struct adv_mesh *mesh;
    struct adv_cost_scratch *scratch; /* NULL: nothing is remembered */

    /* degrees inside a slice */
    int tp;      /* tensor x tensor_sequence: shards heads, mlp, vocabulary */
    int cp_ring; /* context shards that keep their own queries (all-gather and ring) */
    int ulysses; /* context shards that trade sequence for heads */
    int ep;      /* expert */
    int ep_kept; /* shards of the experts that a device's weights keep when they are gathered: ep, but under
                    use_2d_fsdp_sharding and rules of a model's own all experts arrive (moe.py of MaxText
                    0.2.5, w0_pspec) */
    int dp;      /* data (ICI) */
    int stages, microbatches;
    int weight_shards; /* ICI devices that share one copy of attention and dense weights, tp and stages
                          included */
    int expert_shards; /* the same for routed experts */
    int width_shards;  /* devices of fsdp_transpose that keep their part of each feed-forward's width while it
                          runs  (the tokens of the group meet instead); 1 without fsdp beside it, or with
                          two-stage gathers,  which bring the weights together */
    int expert_width_shards; /* the same of routed experts: only einsums leave the width to XLA. Around
                                grouped matmuls MaxText 0.2.5 gathers the experts of a layer whole over fsdp
                                and fsdp_transpose (`mlp_no_fsdp` in layers/moe.py; seen in compiled steps) */

    uint64_t places; /* where each tensor is (adv_remat_places) */
    uint32_t kept;   /* tensors that are kept for the backward pass, a bit each (adv_remat_kept) */
    bool offloads;   /* some tensor goes to the host */

    double tokens;           /* per device and layer pass */
    double passes;           /* how often a layer runs per optimizer step: microbatches x accumulation */
    double bf16_flops_per_s; /* per device, at the in-step matmul rate */
    double lowp_speedup;     /* rate of quantised matmuls over bf16, 1 when not quantised */
    bool quantizes_dense, quantizes_experts;
    double quantize_bytes;   /* HBM bytes per quantised element */
    double hbm_bytes_per_s;  /* per device, achieved in fused elementwise passes */
    double pcie_bytes_per_s; /* per device, one way, inside a step */
    double mxu_k, mxu_n;     /* padding granularity of contraction and output columns */
    bool recompute_elided;   /* nothing is computed again: see adv_memory_keeps_everything */
    bool offload_assumed;    /* what SparseCores hide by these flags: no published step of the chip says it */
    double gather_exposed_frac,
        scatter_exposed_frac; /* of weights and of their gradients, under these flags */

    /* from here on: of the model, the mesh, the sharding rules and two-stage gathers alone (adv_cost_init) */
    struct adv_layer_params layer_params[ADV_LIMIT_LAYER_KINDS];
    struct adv_group dense_group;                      /* shards of attention and dense weights */
    struct adv_group feed_forward_group, expert_group; /* what gathers feed-forwards and routed experts */
    struct adv_group tensor_group, transpose_group, context_group, ulysses_group, ep_group, data_group,
        stage_group;
};

/* Which of the model's layer kinds this is. */
static inline int adv_cost_kind(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return (int)(layer - cost->model->layers);
}

/* Is the tensor kept (on the device or the host) for the backward pass? */
static inline bool adv_cost_keeps(const struct adv_cost *cost, enum adv_tensor tensor)
{
    return cost->kept >> tensor & 1u;
}

/* The same of a tensor that goes by two names: either keeps it. */
static inline bool adv_cost_keeps_either(const struct adv_cost *cost, enum adv_tensor name,
                                         enum adv_tensor other)
{
    return adv_cost_keeps(cost, name) || adv_cost_keeps(cost, other);
}

/* Whether fsdp_transpose and tensor axes share the width of dense feed-forwards. XLA brings its activations
 * together over the tensor axes then: [tokens, mlp] travels instead of [tokens, emb] (compiled with MaxText
 * 0.2.5). */
static inline bool adv_cost_plan_meets_width(const struct adv_constants *constants,
                                             const struct adv_plan *plan)
{
    const int *ici = plan->family.ici;
    const int tp = adv_plan_degree(plan, ADV_AXIS_TENSOR) * adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE);
    if (tp <= 1 || ici[ADV_AXIS_FSDP_TRANSPOSE] <= 1) return false;
    return ici[ADV_AXIS_FSDP] > 1 || constants->width_meets_alone > 0.0;
}

static inline bool adv_cost_meets_width(const struct adv_cost *cost)
{
    return adv_cost_plan_meets_width(cost->constants, cost->plan);
}

/* Whether each device of a tensor group then multiplies for the gradients of the whole width, as the others
 * do: no fsdp axis parts the other dimension (compiled: [emb, mlp] where [emb, mlp / tensor] would do). */
static inline bool adv_cost_repeats_width(const struct adv_cost *cost)
{
    return adv_cost_meets_width(cost) && cost->plan->family.ici[ADV_AXIS_FSDP] <= 1;
}

/* Fills `cost`; the mesh must have been placed. `same_mesh`: `cost` was filled for the same model, ICI mesh,
 * sharding rule, context strategy and two-stage gathers, and layer parameters and groups are still good. */
void adv_cost_init(struct adv_cost *cost, const struct adv_estimate_input *input, const struct adv_mesh *mesh,
                   bool same_mesh);

/* How many torus axes the gathers of dense weights span; 0: nothing is gathered, or the mesh cannot be
 * placed.
 */
int adv_cost_gather_axes(const struct adv_cluster *cluster, const struct adv_plan *plan);

/* Makes `plan`, one of the family that `cost` was filled for, the one that is priced. It must stay where it
 * is.
 */
void adv_cost_set_plan(struct adv_cost *cost, const struct adv_plan *plan);

/* The same plan with its tensors in these places, whatever the plan itself says. */
void adv_cost_set_places(struct adv_cost *cost, uint64_t places);

/* Fills what one device of the chip does inside a step: rates of matmuls, of their 8-bit format and of HBM,
 * padding. */
void adv_cost_rates_init(struct adv_cost *cost, const struct adv_chip *chip,
                         const struct adv_constants *constants, enum adv_quantization quantization);

/* Seconds of [rows, k] x [k, n] on one device inside a step; `low` = in the plan's 8-bit format. */
double adv_cost_matmul_s(const struct adv_cost *cost, double rows, double k, double n, bool low);

/* Seconds to move bytes through one device's HBM in fused elementwise passes. */
static inline double adv_cost_stream_s(const struct adv_cost *cost, double bytes)
{
    return bytes / cost->hbm_bytes_per_s;
}

/* Bytes of a layer's keys and values over all context shards that gather them or pass them round; 0 where the
 * layer has none of its own. */
static inline double adv_cost_keys_values_bytes(const struct adv_cost *cost, const struct adv_layer *layer)
{
    if (layer->attention == ADV_ATTENTION_LINEAR || layer->reuses_kv) return 0.0;
    double width =
        (double)layer->kv_heads * (layer->head_dim_qk + (layer->shares_kv ? 0.0 : (double)layer->head_dim_v));
    return 2.0 * width * cost->tokens * cost->cp_ring;
}

/* Pairs of query and key that one device's sparse-attention indexer scores in a layer: the whole square, on
 * every tensor shard. 0 where it does not run. */
static inline double adv_cost_index_pairs(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const int64_t keys = cost->plan->family.seq_len;
    return adv_layer_picks_keys(layer, keys) ? cost->tokens * cost->tp * (double)keys : 0.0;
}

/* Bytes of one gradient where devices exchange it: MaxText casts gradients to grad_dtype as they leave the
 * backward pass, and the compiler moves the cast before the reduction. Cross-validation is better on every
 * generation than with bf16, the format the matmuls make them in. */
static inline double adv_cost_gradient_bytes(const struct adv_plan *plan)
{
    double weight = adv_format_bytes(plan->family.weight_dtype);
    double cast = adv_format_bytes(plan->family.grad_dtype);
    return cast < weight ? cast : weight;
}

/* Seconds of one collective inside a step. */
double adv_cost_collective_s(const struct adv_cost *cost, const struct adv_group *group,
                             enum adv_collective collective, double bytes_per_device);
