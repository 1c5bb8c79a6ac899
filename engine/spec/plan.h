/* plan.h: one training configuration, resolved: MaxText's keys after defaults, with every -1 filled.
 *
 * Pure data. engine/maxtext/read.h makes it from MaxText keys (old names become warnings);
 * adv_plan_check() knows the legality rules; the search makes plans directly. Byte sizes and degrees derived
 * from a plan are functions here, so that cost, memory and legality agree on them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/err.h"
#include "engine/spec/cluster.h"
#include "engine/spec/flags.h"
#include "engine/spec/model.h"

/* Logical mesh axes in MaxText's mesh order: id, stem of ici_<stem>_parallelism, mesh axis name. */
#define ADV_AXIS_TABLE(X)                                                                                    \
    X(DILOCO, "diloco", "diloco")                                                                            \
    X(DATA, "data", "data")                                                                                  \
    X(STAGE, "pipeline", "stage")                                                                            \
    X(FSDP, "fsdp", "fsdp")                                                                                  \
    X(FSDP_TRANSPOSE, "fsdp_transpose", "fsdp_transpose")                                                    \
    X(SEQUENCE, "sequence", "")                                                                              \
    X(CONTEXT, "context", "context")                                                                         \
    X(ULYSSES, "context_usp_ulysses", "context_usp_ulysses")                                                 \
    X(CONTEXT_AUTOREGRESSIVE, "context_autoregressive", "context_autoregressive")                            \
    X(TENSOR, "tensor", "tensor")                                                                            \
    X(TENSOR_SEQUENCE, "tensor_sequence", "tensor_sequence")                                                 \
    X(EXPERT, "expert", "expert")                                                                            \
    X(AUTOREGRESSIVE, "autoregressive", "autoregressive")

#define ADV_AXIS_ENUM(id, key, mesh) ADV_AXIS_##id,
enum adv_axis { ADV_AXIS_TABLE(ADV_AXIS_ENUM) ADV_AXIS_COUNT };
#undef ADV_AXIS_ENUM
const char *adv_axis_key(enum adv_axis axis); /* "fsdp" of ici_fsdp_parallelism */
const char *
adv_axis_mesh(enum adv_axis axis); /* "fsdp"; "" = not in mesh_axes, the key is ignored by MaxText */

/* The tensors remat_policy=custom can place. Also rows for those that cannot be set but are named by
 * policies. */
#define ADV_TENSOR_TABLE(X)                                                                                  \
    X(DECODER_LAYER_INPUT, "decoder_layer_input")                                                            \
    X(CONTEXT, "context")                                                                                    \
    X(MLPWI, "mlpwi")                                                                                        \
    X(MLPWI_0, "mlpwi_0")                                                                                    \
    X(MLPWI_1, "mlpwi_1")                                                                                    \
    X(MLPWO, "mlpwo")                                                                                        \
    X(MOE_MLPWI_0, "moe_mlpwi_0")                                                                            \
    X(MOE_MLPWI_1, "moe_mlpwi_1")                                                                            \
    X(MOE_MLPWO, "moe_mlpwo")                                                                                \
    X(QUERY_PROJ, "query_proj")                                                                              \
    X(KEY_PROJ, "key_proj")                                                                                  \
    X(VALUE_PROJ, "value_proj")                                                                              \
    X(KV_PROJ, "kv_proj")                                                                                    \
    X(QKV_PROJ, "qkv_proj")                                                                                  \
    X(OUT_PROJ, "out_proj")                                                                                  \
    X(QUERY_WA_PROJ, "query_wa_proj")                                                                        \
    X(KV_WA_PROJ, "kv_wa_proj")                                                                              \
    X(MLA_Q, "mla_q")                                                                                        \
    X(MLA_KV, "mla_kv")                                                                                      \
    X(ATTENTION_OUT, "attention_out")                                                                        \
    X(INDEXER_CUTOFF_THRESHOLD, "indexer_cutoff_threshold")

#define ADV_TENSOR_ENUM(id, name) ADV_TENSOR_##id,
enum adv_tensor { ADV_TENSOR_TABLE(ADV_TENSOR_ENUM) ADV_TENSOR_COUNT };
#undef ADV_TENSOR_ENUM
const char *adv_tensor_name(enum adv_tensor tensor);

enum adv_placement { ADV_PLACE_REMAT, ADV_PLACE_DEVICE, ADV_PLACE_OFFLOAD, ADV_PLACE_COUNT };
const char *adv_placement_name(enum adv_placement placement); /* "remat" "device" "offload" */

#define ADV_POLICY_TABLE(X)                                                                                  \
    X(FULL, "full")                                                                                          \
    X(NONE, "none")                                                                                          \
    X(MINIMAL, "minimal")                                                                                    \
    X(MINIMAL_WITH_CONTEXT, "minimal_with_context")                                                          \
    X(SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP, "save_dot_with_context_except_mlp")                                  \
    X(SAVE_DOT_EXCEPT_MLPWI, "save_dot_except_mlpwi")                                                        \
    X(SAVE_DOT_EXCEPT_MLP, "save_dot_except_mlp")                                                            \
    X(SAVE_QKV_PROJ, "save_qkv_proj")                                                                        \
    X(QKV_PROJ_OFFLOADED, "qkv_proj_offloaded")                                                              \
    X(MINIMAL_OFFLOADED, "minimal_offloaded")                                                                \
    X(SAVE_OUT_PROJ, "save_out_proj")                                                                        \
    X(CUSTOM, "custom")

#define ADV_POLICY_ENUM(id, name) ADV_POLICY_##id,
enum adv_policy { ADV_POLICY_TABLE(ADV_POLICY_ENUM) ADV_POLICY_COUNT };
#undef ADV_POLICY_ENUM
const char *adv_policy_name(enum adv_policy policy);
/* Placement of each tensor under a preset. CUSTOM: MaxText's defaults of the tensor keys, decoder_layer_input
 * on the device and all others REMAT. */
void adv_policy_placements(enum adv_policy policy, enum adv_placement placements[ADV_TENSOR_COUNT]);

enum adv_format { ADV_FORMAT_F32, ADV_FORMAT_BF16, ADV_FORMAT_FP8, ADV_FORMAT_INT8 };
static inline double adv_format_bytes(enum adv_format format)
{
    static const double bytes[] = {4, 2, 1, 1};
    return bytes[format];
}
const char *adv_format_name(enum adv_format format); /* "float32" … */

enum adv_quantization { ADV_QUANT_NONE, ADV_QUANT_INT8, ADV_QUANT_FP8, ADV_QUANT_FP8_FULL };
enum adv_optimizer { ADV_OPT_ADAMW, ADV_OPT_ADAM_PAX, ADV_OPT_SGD, ADV_OPT_MUON };
enum adv_shard_mode { ADV_SHARD_AUTO, ADV_SHARD_EXPLICIT };
enum adv_attention_impl { ADV_ATTENTION_IMPL_FLASH, ADV_ATTENTION_IMPL_DOT_PRODUCT };
enum adv_cp_strategy { ADV_CP_ALL_GATHER, ADV_CP_RING, ADV_CP_ULYSSES, ADV_CP_USP };
enum adv_moe_impl { ADV_MOE_MEGABLOX, ADV_MOE_TOKAMAX, ADV_MOE_GMM_V2, ADV_MOE_RAGGED_DOT, ADV_MOE_DENSE };
enum adv_mesh_rule {
    ADV_RULE_DEFAULT,
    ADV_RULE_PURE_FSDP,
    ADV_RULE_CP_AS_EP,
    ADV_RULE_EP_AS_CP,
    ADV_RULE_EP_AS_DP,
    ADV_RULE_SHARD_EXP_ON_FSDP,
    ADV_RULE_PIPELINE_LARGE_MOE,
};
/* Device orders by hand for 16 x 16 slices: blocks of neighbours that close to rings of 4 or 8, 64 or 32 of
 * them. */
enum adv_custom_mesh { ADV_CUSTOM_MESH_NONE, ADV_CUSTOM_MESH_64X4, ADV_CUSTOM_MESH_32X8 };
enum adv_layout { ADV_LAYOUT_HEAD_DIM_MINOR = 1, ADV_LAYOUT_SEQ_MINOR = 2 };

/* MaxText's spelling of each value: "fp8_full" ("" = none), "all_gather", "hybrid_ring_64x4", "SEQ_MINOR". */
const char *adv_quantization_name(enum adv_quantization quantization);
/* Whether the chip's matrix units take the 8-bit format faster than bf16; true of no quantisation. */
bool adv_quantization_pays(enum adv_quantization quantization, const struct adv_chip *chip);
const char *adv_cp_strategy_name(enum adv_cp_strategy strategy);
const char *adv_custom_mesh_name(enum adv_custom_mesh mesh);
const char *adv_layout_name(enum adv_layout layout);

/* Splash tiles: global layers in [0], sliding (local_sa_*) in [1]; local inherits global where unset. */
struct adv_splash_blocks {
    int block_q, block_kv, block_kv_compute;
    int block_q_dkv, block_kv_dkv, block_kv_dkv_compute;
    int block_q_dq, block_kv_dq;
};

enum { ADV_GMM_FWD, ADV_GMM_DLHS, ADV_GMM_DRHS, ADV_GMM_PASSES };
struct adv_gmm_blocks {
    int batch_seq, embed_dim, mlp_dim;
};

/* The part that all plans of one family share: they differ in where things are kept. */
struct adv_plan_family {
    /* what a device's matmuls and kernels read only by way of what it makes of their shapes: see
     * adv_plan_same_kernels */
    int ici[ADV_AXIS_COUNT], dcn[ADV_AXIS_COUNT]; /* all >= 1 */
    double per_device_batch_size;                 /* sequences per device and microstep; may be fractional */
    int gradient_accumulation_steps;
    int pipeline_microbatches, layers_per_stage;
    enum adv_mesh_rule rule;
    bool allow_split_physical_axes, two_stage_gather, use_ring_of_experts;
    /* sharding */
    int64_t seq_len;
    enum adv_custom_mesh custom_mesh;
    enum adv_cp_strategy cp_strategy;
    bool cp_load_balance;
    bool use_multimodal; /* images or speech beside the text, which the engine does not price */
    bool packing;        /* documents share sequences: segment ids, which MLA cannot pass round a ring */
    bool use_2d_fsdp_sharding, shard_exp_on_fsdp;
    enum adv_shard_mode shard_mode; /* not priced */
    /* pipeline */
    int pipeline_layers;
    bool pipeline_fsdp_ag_once, pipeline_delay_activation_forwarding;
    bool scan_layers;
    /* formats */
    enum adv_format weight_dtype, dtype, grad_dtype, mu_dtype;
    enum adv_optimizer optimizer;
    enum adv_quantization quantization;
    bool quantization_static; /* calibration 'fixed,…' for weights and activations */
    bool use_qwix;
    double gradient_clipping_threshold;
    /* attention */
    enum adv_attention_impl attention;
    bool use_tokamax_splash, use_fused_bwd, use_splash_scheduler;
    struct adv_splash_blocks blocks[2]; /* global, local */
    enum adv_layout q_layout, k_layout, v_layout;
    int max_logit_estimate; /* > 0: constant maximum */
    int dq_reduction_steps; /* 0 or 3 */
    int ring_scan_unroll;   /* steps of a ring that are compiled as one; 0: all */
    bool float32_logits;
    bool use_qk_clip; /* weights clipped by the largest score, which the engine does not price */
    /* experts */
    enum adv_moe_impl moe;
    double capacity_factor;      /* > 0 with ADV_MOE_DENSE: dropping */
    double ragged_buffer_factor; /* < 0: worst case */
    bool use_ragged_sort, use_random_routing, float32_weight_sum, merge_gating_gmm, use_custom_sort_vjp;
    struct adv_gmm_blocks gmm_blocks[2][ADV_GMM_PASSES]; /* [0] wi, [1] wo */
    /* embedding, logits */
    bool use_iota_embed, cast_logits_to_fp32, logits_dot_in_fp32;
    int mtp_layers;
    double software_date; /* year with fraction of the MaxText/libtpu release, NAN = current */
};

struct adv_plan {
    struct adv_plan_family family;
    struct adv_flags flags;
    /* where things are kept, in which plans of one family differ */
    enum adv_policy policy; /* remat */
    enum adv_placement placements[ADV_TENSOR_COUNT];
    int num_vocab_tiling;
    bool optimizer_host_offload, parameter_host_offload, shard_optimizer_over_data;
};

/* Whether two plans have the same family from byte `from` of it on, and the same flags but for the one that
 * follows from where things are kept. Plans are made in zeroed memory, so padding is equal, too. */
static inline bool adv_plan_same_from(size_t from, const struct adv_plan *a, const struct adv_plan *b)
{
    struct adv_flags flags = a->flags;
    flags.host_offload_scheduling = b->flags.host_offload_scheduling;
    return memcmp((const char *)&a->family + from, (const char *)&b->family + from,
                  sizeof a->family - from) == 0 &&
           memcmp(&flags, &b->flags, sizeof flags) == 0;
}

/* Whether they differ only in where things are kept. */
static inline bool adv_plan_same_family(const struct adv_plan *a, const struct adv_plan *b)
{
    return adv_plan_same_from(0, a, b);
}

/* Whether matmuls and kernels of equal shapes are the same in both: they differ in mesh, batch, pipeline or
 * expert exchange besides. */
static inline bool adv_plan_same_kernels(const struct adv_plan *a, const struct adv_plan *b)
{
    return adv_plan_same_from(offsetof(struct adv_plan_family, seq_len), a, b);
}

/* Splash clamps every block to the sequence: min(block, seq_len). Call after the sequence and the blocks are
 * known. */
void adv_plan_clamp_blocks(struct adv_plan *plan);

/* Writes the degrees that are not 1, "fsdp 16 x tensor 2"; `none` where all are. */
void adv_plan_axes_text(const int degrees[ADV_AXIS_COUNT], const char *none, char *text, size_t text_bytes);

/* Devices along an axis over ICI and DCN together. */
static inline int adv_plan_degree(const struct adv_plan *plan, enum adv_axis axis)
{
    return plan->family.ici[axis] * plan->family.dcn[axis];
}

/* Whether context shards hand their keys on, so that one call of the kernel meets one shard's share. */
static inline bool adv_plan_circulates_keys(const struct adv_plan *plan)
{
    return plan->family.cp_strategy == ADV_CP_RING || plan->family.cp_strategy == ADV_CP_USP;
}

/* Whether values are quantised with given scales, without a pass for their maxima: fp8_full reads the
 * calibration, other formats find their scales themselves. */
static inline bool adv_plan_scales_are_fixed(const struct adv_plan *plan)
{
    return plan->family.quantization_static && plan->family.quantization == ADV_QUANT_FP8_FULL;
}

/* Do MaxText's keys decide the tiles of the expert matmuls? Tokamax tunes its own unless the experts are
 * quantised; ragged dot and the einsums have none. */
static inline bool adv_plan_reads_expert_tiles(const struct adv_plan *plan)
{
    return plan->family.moe == ADV_MOE_MEGABLOX || plan->family.moe == ADV_MOE_GMM_V2 ||
           (plan->family.moe == ADV_MOE_TOKAMAX && plan->family.quantization == ADV_QUANT_FP8_FULL);
}

/* The tensors that the decoder layers of a model give a name to, a bit each: a key of another name changes
 * nothing. */
uint32_t adv_plan_named_tensors(const struct adv_plan *plan, const struct adv_model *model);

/* Whether the backward pass reads the tensor, where it is named: the output of a dense feed-forward only
 * where a norm follows. What nothing reads is not kept, wherever its key says. */
bool adv_plan_reads_tensor(const struct adv_model *model, enum adv_tensor tensor);

/* Tokens of one microstep per device, after every axis: per_device_batch_size * seq_len. */
static inline double adv_plan_tokens(const struct adv_plan *plan)
{
    return plan->family.per_device_batch_size * (double)plan->family.seq_len;
}

/* Whether tiles of the vocabulary's loop bring the hidden states of all devices together: context shards of
 * more than one sequence are no range of the flat list of tokens that MaxText cuts into tiles, and XLA
 * gathers what it cannot cut (seen in compiled steps of MaxText 0.2.5: [tiles, tokens of all devices / tiles,
 * emb]). */
static inline bool adv_plan_tiles_gather(const struct adv_plan *plan, int tiling)
{
    const double contexts = (double)adv_plan_degree(plan, ADV_AXIS_CONTEXT);
    return tiling > 1 && contexts > 1.0 &&
           adv_plan_tokens(plan) * contexts > (double)plan->family.seq_len * (1.0 + 1e-9);
}

/* Rows that the expert matmuls of a device take at once where its share of the experts is all of them: the
 * tokens of its tensor group, once for each chosen expert; in a pipeline those of one microbatch. */
static inline double adv_plan_expert_rows(const struct adv_plan *plan, const struct adv_layer *layer)
{
    int stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    int microbatches =
        plan->family.pipeline_microbatches > stages ? plan->family.pipeline_microbatches : stages;
    double tokens = adv_plan_tokens(plan) * (stages > 1 ? (double)stages / microbatches : 1.0);
    int tensor = adv_plan_degree(plan, ADV_AXIS_TENSOR) * adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE);
    return tokens * tensor * layer->experts_per_token;
}

/* Tokens of one microstep that meet on a device around its experts. */
static inline double adv_plan_tokens_met(const struct adv_plan *plan)
{
    return adv_plan_tokens(plan) * adv_plan_degree(plan, ADV_AXIS_TENSOR) *
           adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE);
}

/* Rows of routed tokens, up to which the groups of expert matmuls can be counted. */
#define ADV_PLAN_ROWS_MAX ((double)(1 << 28))

/* The layers whose rows are more than that; NULL: the plan can be priced. */
const struct adv_layer *adv_plan_uncountable(const struct adv_plan *plan, const struct adv_model *model);

/* False: MaxText cannot compute the loss of this model in tiles of the vocabulary. Found with the real
 * compiler, MaxText 0.2.5. */
bool adv_plan_may_tile_vocab(const struct adv_model *model);

/* Layers that are spread over pipeline stages: pipeline_layers, or where that is -1 all of them, of DeepSeek
 * only those with experts (the dense first ones run on every stage). */
int adv_plan_pipelined_layers(const struct adv_plan *plan, const struct adv_model *model);

/* How often a microbatch passes each stage: 1, or more where a stage holds fewer layers than its share and
 * the pipeline is circular. */
double adv_plan_pipeline_rounds(const struct adv_plan *plan, const struct adv_model *model);

/* Global batch of one optimizer step, in sequences. */
double adv_plan_global_batch(const struct adv_plan *plan, const struct adv_cluster *cluster);

/* Sequences of one microstep for each shard of the batch: a whole number in a legal plan. */
double adv_plan_sequences_per_shard(const struct adv_plan *plan, const struct adv_cluster *cluster);

/* Into how many parts attention finds a sequence cut when it begins, but for the Ulysses axis of usp: the
 * context axis, and under the rules ep-as-cp the expert axis, which is that outside the experts. */
int adv_plan_sequence_shards(const struct adv_plan *plan);

/* Whether the attention context has padding between its rows where it lies in HBM, and the chip's host copies
 * take none (adv_chip.whole_host_copies): XLA lays out one sequence with the heads beside the head dimension,
 * in tiles of 8 rows; two or more with the positions there. Seen in compiled steps (libtpu 0.0.50.1) of 6 to
 * 28 heads, with tensor and context parallelism; layers out of a scan are copied otherwise. */
bool adv_plan_context_is_strided(const struct adv_plan *plan, const struct adv_model *model,
                                 const struct adv_cluster *cluster);

/* Whether libtpu refuses to compile the scanned step with this tensor on the host: the context where it is
 * strided, and in qwen3_next, whose linear layers loop inside the scan over blocks, the tensors of the
 * feed-forward, though not its other ones (libtpu 0.0.50.1; four generations of chips). */
bool adv_plan_host_refuses(const struct adv_plan *plan, const struct adv_model *model,
                           const struct adv_cluster *cluster, enum adv_tensor tensor);

/* How many devices share one copy of the weights: attention and dense feed-forward, and routed experts. */
int adv_plan_weight_shards(const struct adv_plan *plan);
int adv_plan_expert_shards(const struct adv_plan *plan);
/* Whether the one-hot of an embedding by matmul is built for the sequences of all fsdp shards on each device:
 * in pipelines of more microbatches than stages (compiled with MaxText 0.2.5: pred[512,2048,151936] where a
 * device has 8 sequences). */
bool adv_plan_one_hot_is_whole(const struct adv_plan *plan);

/* How many devices the sequences of a microstep are shared out to. */
int adv_plan_batch_shards(const struct adv_plan *plan);

/* Every legality rule (axes product, batch divisibility, heads, experts, sequence, blocks, vocabulary tiling,
 * …); all violations are added to `err`, pointers below /config, with the numbers and a remedy. Findings that
 * MaxText accepts but that waste or surprise go to `warnings` (may be NULL). ADV_E_ILLEGAL when any rule is
 * broken. */
ADV_MUST_CHECK adv_code adv_plan_check(const struct adv_plan *plan, const struct adv_model *model,
                                       const struct adv_cluster *cluster, adv_err *err, adv_err *warnings);

/* Whether the mesh of these rules has the axis; MaxText ignores the keys of the others. */
bool adv_plan_axis_in_mesh(enum adv_mesh_rule rule, const struct adv_model *model, enum adv_axis axis);

/* The same rules (also those MaxText refuses only in recent releases) as a yes/no for the search's inner
 * loop: no text, no allocation. NULL = legal, else the rule's name. */
const char *adv_plan_broken_rule(const struct adv_plan *plan, const struct adv_model *model,
                                 const struct adv_cluster *cluster);

/* The same in two shares, for loops over batches on one mesh: OF_MESH are the rules that read neither
 * per_device_batch_size nor gradient_accumulation_steps, quantization, use_qwix or use_ring_of_experts;
 * OF_BATCH the others. A legal plan breaks none of either. */
enum adv_rules { ADV_RULES_ALL, ADV_RULES_OF_MESH, ADV_RULES_OF_BATCH };
const char *adv_plan_broken_rule_among(const struct adv_plan *plan, const struct adv_model *model,
                                       const struct adv_cluster *cluster, enum adv_rules which);

/* A share of the rules as a list, to ask many plans for. */
enum { ADV_RULES_MOST = 72 };
struct adv_rule_list {
    int count;
    unsigned char rules[ADV_RULES_MOST];
};
void adv_plan_list_rules(enum adv_rules which, struct adv_rule_list *list);
const char *adv_plan_broken_rule_of(const struct adv_rule_list *list, const struct adv_plan *plan,
                                    const struct adv_model *model, const struct adv_cluster *cluster);

/* The rule of OF_BATCH that this microstep breaks because it has less than one sequence for each batch shard
 * (of each microbatch), NULL when it has enough. Any smaller microstep on the same mesh breaks it too. */
const char *adv_plan_batch_too_small(const struct adv_plan *plan, const struct adv_cluster *cluster);

/* For changes of a plan that was asked about: the first rule that `changed` breaks and `plan` does not, or
 * NULL. A rule that the plan breaks already does not count against a change. `wasteful`:
 * rules that only warn count too. */
const char *adv_plan_newly_broken_rule(const struct adv_plan *plan, const struct adv_plan *changed,
                                       const struct adv_model *model, const struct adv_cluster *cluster,
                                       bool wasteful);
