/* plan_rules.h: what the legality rules share. Private to engine/spec/plan_rules*.c; callers use
 * adv_plan_check().
 *
 * A rule is a row {name, severity, function} of the one table in plan_rules.c. Its function says whether the
 * plan breaks it and, only when somebody listens (report != NULL), says so in words with the numbers and a
 * remedy. Sources: MaxText's config validation, its sharding rules and its kernels, release of 2026-08.
 */
#pragma once

#include "engine/spec/plan.h"

/* Everything several rules need, computed once per plan. Degrees are over ICI and DCN together. */
struct adv_rule_facts {
    const struct adv_plan *plan;
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    int data, stage, fsdp, fsdp_transpose, context, ulysses, tensor, tensor_sequence, expert, autoregressive;
    int sequence_shards;             /* adv_plan_sequence_shards */
    int head_shards;                 /* axes over attention heads and vocabulary */
    int embed_shards;                /* axes over the model dimension of attention weights */
    int mlp_shards;                  /* axes over the feed-forward width */
    int batch_shards;                /* axes over sequences */
    double sequences_per_shard;      /* of one microstep: must be a whole number >= 1 */
    bool has_experts, has_latent;    /* routed experts; multi-head latent attention */
    bool has_local, has_local_tiles; /* window or chunk layers; layers that read local_sa_* */
};

struct adv_rule_report {
    adv_err *err;
    adv_code code;
    const char *rule;
    char hint[ADV_LIMIT_DETAIL];
};

/* Adds the finding (when report is not NULL) and returns true: `return adv_rule_broken(report, …)`. */
bool adv_rule_broken(struct adv_rule_report *report, const char *pointer, const char *hint,
                     const char *format, ...) ADV_PRINTF(4, 5);
/* A hint with numbers in it; NULL when nobody listens. Valid until the next call with the same report. */
const char *adv_rule_hint(struct adv_rule_report *report, const char *format, ...) ADV_PRINTF(2, 3);

/* Whether the plan breaks the rule. */
typedef bool adv_rule(const struct adv_rule_facts *facts, struct adv_rule_report *report);

/* Rules of plan_rules_tiles.c. */
adv_rule adv_rule_block_q, adv_rule_block_kv, adv_rule_block_compute, adv_rule_tile_lanes, adv_rule_tile_rows,
    adv_rule_tile_tails;

/* Rules of plan_rules_mesh.c. */
adv_rule adv_rule_custom_mesh, adv_rule_custom_mesh_unused, adv_rule_optimizer_over_data,
    adv_rule_one_expert_sharding;

/* Rules of plan_rules_pipeline.c. */
adv_rule adv_rule_pipeline_layers, adv_rule_pipeline_cycle, adv_rule_pipeline_experts, adv_rule_pipeline_bias,
    adv_rule_pipeline_positions, adv_rule_pipeline_sharding, adv_rule_pipeline_one_hot,
    adv_rule_pipeline_routed_shards, adv_rule_pipeline_microbatches, adv_rule_pipeline_batch;
/* Sequences of one microbatch on one batch shard. */
double adv_rule_sequences_per_microbatch(const struct adv_plan *plan, const struct adv_cluster *cluster);

/* Rules of plan_rules_kernel.c. */
adv_rule adv_rule_dq_reduction, adv_rule_sparse_attention_kernel, adv_rule_qk_clip_kernel,
    adv_rule_qk_clip_queries, adv_rule_load_balance;

/* Whether tokamax's kernel takes the masks of the model's local layers over the plan's context axis, in tiles
 * of as many keys as queries. */
bool adv_plan_masks_divide(const struct adv_plan *plan, const struct adv_model *model);
/* Whether MaxText shards the masks of the layer's attention over the context axis: those of windows and
 * chunks in tokamax's kernel; jax's own computes them. */
bool adv_plan_shards_masks(const struct adv_plan *plan, const struct adv_layer *layer);
/* The number of partly masked contents of tiles where the context axis does not divide it, which MaxText
 * 0.2.5 refuses; 0 where it does, or where the blocks do not divide the sequence. */
int adv_plan_odd_masks(const struct adv_plan *plan, const struct adv_layer *layer, int block_q, int block_kv);
/* Whether context parallelism must leave the sequence in its order. */
bool adv_plan_keeps_order(const struct adv_plan *plan, const struct adv_model *model);
adv_rule adv_rule_linear_context, adv_rule_compressed_context, adv_rule_multimodal_context,
    adv_rule_vision_models, adv_rule_batch_split_format, adv_rule_batch_split_mesh,
    adv_rule_batch_split_context, adv_rule_batch_split_halves, adv_rule_hash_routing, adv_rule_ring,
    adv_rule_ulysses, adv_rule_usp, adv_rule_local_under_ring, adv_rule_local_masks, adv_rule_fp8_full,
    adv_rule_fp8_accumulation, adv_rule_native_format, adv_rule_muon, adv_rule_predicted_tokens,
    adv_rule_vmem_limit, adv_rule_strided_context, adv_rule_fusion_and_offload, adv_rule_no_sparsecores,
    adv_rule_offload_unclipped, adv_rule_nested_feed_forward;
