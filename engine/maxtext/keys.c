#include "engine/maxtext/keys.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/maxtext/read.h"

enum { SMALL_COUNT_MAX = 1 << 24, LAYERS_MAX = 10000 };

static const struct adv_key_choice formats[] = {
    {"float32", ADV_FORMAT_F32, NULL},
    {"bfloat16", ADV_FORMAT_BF16, NULL},
    {"float16", ADV_FORMAT_BF16, "costed as bfloat16"},
    {"float8_e4m3fn", ADV_CHOICE_NO_MODEL, NULL},
    {"float8_e5m2", ADV_CHOICE_NO_MODEL, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice activation_formats[] = {
    {"float32", ADV_FORMAT_F32, "priced and counted as bfloat16: time and memory come out too small"},
    {"bfloat16", ADV_FORMAT_BF16, NULL},
    {"float16", ADV_FORMAT_BF16, "costed as bfloat16"},
    {"float8_e4m3fn", ADV_CHOICE_NO_MODEL, NULL},
    {"float8_e5m2", ADV_CHOICE_NO_MODEL, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice optimizers[] = {
    {"adamw", ADV_OPT_ADAMW, NULL},
    {"adam_pax", ADV_OPT_ADAM_PAX, NULL},
    {"sgd", ADV_OPT_SGD, NULL},
    {"muon", ADV_OPT_MUON, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice quantizations[] = {
    {"", ADV_QUANT_NONE, NULL},
    {"int8", ADV_QUANT_INT8, NULL},
    {"intmp", ADV_QUANT_INT8, "costed as int8 everywhere"},
    {"fp8", ADV_QUANT_FP8, NULL},
    {"fp8_full", ADV_QUANT_FP8_FULL, NULL},
    {"fp8_e4m3", ADV_QUANT_FP8, "costed as fp8"},
    {"fp8_e5m2", ADV_QUANT_FP8, "costed as fp8"},
    {"nanoo_fp8", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"fp8_nanoo", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"fp8_gpu", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"te_fp8_delayedscaling", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"te_fp8_currentscaling", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"te_mxfp8", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"te_nvfp4", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"te_nvfp4_no_rht", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"te_no_quant", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"serve_fp8_weight", ADV_CHOICE_NO_MODEL, NULL},
    {"fp4", ADV_CHOICE_NO_MODEL, NULL},
    {"int4", ADV_CHOICE_NO_MODEL, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice shard_modes[] = {
    {"auto", ADV_SHARD_AUTO, NULL}, {"explicit", ADV_SHARD_EXPLICIT, NULL}, {NULL, 0, NULL}};
static const struct adv_key_choice attentions[] = {
    {"autoselected", ADV_CHOICE_AUTO, NULL},          {"flash", ADV_CHOICE_FLASH, NULL},
    {"dot_product", ADV_CHOICE_DOT_PRODUCT, NULL},    {"cudnn_flash_te", ADV_CHOICE_NOT_ON_TPU, NULL},
    {"cudnn_flash_jax", ADV_CHOICE_NOT_ON_TPU, NULL}, {"vllm_rpa", ADV_CHOICE_NO_MODEL, NULL},
    {"vllm_batched_rpa", ADV_CHOICE_NO_MODEL, NULL},  {NULL, 0, NULL},
};
static const struct adv_key_choice strategies[] = {
    {"all_gather", ADV_CP_ALL_GATHER, NULL},
    {"ring", ADV_CP_RING, NULL},
    {"ulysses", ADV_CP_ULYSSES, NULL},
    {"usp", ADV_CP_USP, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice mesh_rules[] = {
    {"", ADV_RULE_DEFAULT, NULL},
    {"pure-fsdp", ADV_RULE_PURE_FSDP, NULL},
    {"cp-as-ep", ADV_RULE_CP_AS_EP, NULL},
    {"ep-as-cp", ADV_RULE_EP_AS_CP, NULL},
    {"ep-as-dp", ADV_RULE_EP_AS_DP, NULL},
    {"shard-exp-on-fsdp", ADV_RULE_SHARD_EXP_ON_FSDP, NULL},
    {"pipeline-large-moe", ADV_RULE_PIPELINE_LARGE_MOE, NULL},
    {"2d-fsdp", ADV_CHOICE_NO_MODEL, NULL},
    {"fsdp-as-dp-for-attn", ADV_CHOICE_NO_MODEL, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice custom_meshes[] = {
    {"", ADV_CUSTOM_MESH_NONE, NULL},
    {"hybrid_ring_64x4", ADV_CUSTOM_MESH_64X4, NULL},
    {"hybrid_ring_32x8", ADV_CUSTOM_MESH_32X8, NULL},
    {NULL, 0, NULL},
};
static const struct adv_key_choice layouts[] = {{"HEAD_DIM_MINOR", ADV_LAYOUT_HEAD_DIM_MINOR, NULL},
                                                {"SEQ_MINOR", ADV_LAYOUT_SEQ_MINOR, NULL},
                                                {NULL, 0, NULL}};
#define POLICY(id, name) {name, ADV_POLICY_##id, NULL},
static const struct adv_key_choice policies[] = {
    ADV_POLICY_TABLE(POLICY){"minimal_flash", ADV_POLICY_MINIMAL_WITH_CONTEXT,
                             "a deprecated name of minimal_with_context"},
    {"minimal_with_quantization", ADV_POLICY_MINIMAL, "the same as minimal on TPU"},
    {"minimal_with_context_and_quantization", ADV_POLICY_MINIMAL_WITH_CONTEXT,
     "the same as minimal_with_context on TPU"},
    {NULL, 0, NULL},
};

static double says_attention(const struct adv_plan *plan)
{
    return plan->family.attention == ADV_ATTENTION_IMPL_FLASH ? ADV_CHOICE_FLASH : ADV_CHOICE_DOT_PRODUCT;
}

static double says_fixed(const struct adv_plan *plan)
{
    return adv_plan_scales_are_fixed(plan);
}

/* Which grouped matmul runs is a choice of four keys. */
static double says_tokamax(const struct adv_plan *plan)
{
    return plan->family.moe == ADV_MOE_TOKAMAX || plan->family.moe == ADV_MOE_GMM_V2;
}

static double says_gmm_v2(const struct adv_plan *plan)
{
    return plan->family.moe == ADV_MOE_GMM_V2;
}

static double says_megablox(const struct adv_plan *plan)
{
    return plan->family.moe != ADV_MOE_RAGGED_DOT;
}

static double says_sparse(const struct adv_plan *plan)
{
    return plan->family.moe != ADV_MOE_DENSE;
}

#define USUAL_PLACE(id)                                                                                      \
    (ADV_TENSOR_##id == ADV_TENSOR_DECODER_LAYER_INPUT ? ADV_PLACE_DEVICE : ADV_PLACE_REMAT)

#define BYTES(member)          sizeof(((struct adv_plan *)0)->member)
#define MEMBER(member)         .plan_at = offsetof(struct adv_plan, member), .plan_bytes = BYTES(member)
#define IN_PLAN(member)        .read_at = offsetof(struct adv_config_state, plan.member), MEMBER(member)
#define IN_STATE(member)       .read_at = offsetof(struct adv_config_state, member)
#define GROUP(name)            .group = ADV_GROUP_##name
#define RANGE(least, most)     .low = (least), .high = (most)
#define TRIES(order, how, ...) .turn = (order), .tries = ADV_TRIES_##how, VALUES(__VA_ARGS__)
#define OPENS(order, how)      .turn = (order), .tries = ADV_TRIES_##how
#define RECIPE(when, value)    .suits = ADV_SUITS_##when, .recipe = (value)
#define VALUES(...)                                                                                          \
    .values = (const double[]){__VA_ARGS__}, .values_count = sizeof((double[]){__VA_ARGS__}) / sizeof(double)

#define KEY(key, what, member, ...)                                                                          \
    {                                                                                                        \
        .name = (key), .holds = ADV_HOLDS_##what, IN_PLAN(member), __VA_ARGS__                               \
    }
#define BOOL(key, member, ...)          KEY(key, BOOL, member, __VA_ARGS__)
#define INT(key, member, ...)           KEY(key, INT, member, __VA_ARGS__)
#define LONG(key, member, ...)          KEY(key, INT64, member, __VA_ARGS__)
#define NUMBER(key, member, ...)        KEY(key, NUMBER, member, __VA_ARGS__)
#define CHOICE(key, member, names, ...) KEY(key, CHOICE, member, .choices = (names), __VA_ARGS__)
/* A key that shares a member of the plan with others: it is read beside the plan, and says a part of it. */
#define PART(key, what, member, of_plan, ...)                                                                \
    {                                                                                                        \
        .name = (key), .holds = ADV_HOLDS_##what, IN_STATE(member), MEMBER(of_plan), .uncounted = true,      \
        __VA_ARGS__                                                                                          \
    }

#define DEGREE(key, network, id, filling, ...)                                                               \
    KEY(key, DEGREE, network[ADV_AXIS_##id], .usual = 1, RANGE(1, 1 << 20),                                  \
        .always = ADV_AXIS_##id == (filling), .uncounted = true, GROUP(MESH), OPENS(ADV_TURN_MESH, DEGREES), \
        __VA_ARGS__)
#define ICI(id, key, mesh) DEGREE("ici_" key "_parallelism", family.ici, id, ADV_AXIS_FSDP, .of = ADV_OF_ALL),
#define DCN(id, key, mesh)                                                                                   \
    DEGREE("dcn_" key "_parallelism", family.dcn, id, ADV_AXIS_DATA, .of = ADV_OF_SLICES),
#define PLACE(id, key)                                                                                       \
    KEY(key, PLACEMENT, placements[ADV_TENSOR_##id], .usual = USUAL_PLACE(id), GROUP(REMAT),                 \
        .needs = ADV_NEEDS_CUSTOM_REMAT, OPENS(ADV_TURN_REMAT, PLACES)),

/* base.yml: all eight block keys are 512. local_sa_* take the global value where unset. */
#define TILE(key, member, ...) INT(key, member, RANGE(1, SMALL_COUNT_MAX), .uncounted = true, __VA_ARGS__)
#define BLOCK(part, ...)                                                                                     \
    TILE("sa_block_" #part, family.blocks[0].block_##part, .usual = 512, GROUP(ATTENTION), __VA_ARGS__)
#define LOCAL_BLOCK(part, need)                                                                              \
    TILE("local_sa_block_" #part, family.blocks[1].block_##part, .usual = 512, GROUP(ATTENTION),             \
         .follows_at = offsetof(struct adv_plan, family.blocks[0].block_##part), .of = ADV_OF_WINDOWS,       \
         .needs = ADV_NEEDS_##need)
#define BLOCK_SIZES(order) TRIES(order, UP_TO_SEQ, 256, 512, 1024, 2048, 4096, 8192)

#define GMM_TILE(key, member, value)                                                                         \
    TILE(key, member, .usual = (value), GROUP(EXPERTS), .needs = ADV_NEEDS_EXPERT_TILES,                     \
         TRIES(ADV_TURN_LAST, IF_EXPERTS, 128, 256, 512, 1024, 2048, 4096))
#define GMM_TILES(prefix, matrix, pass)                                                                      \
    GMM_TILE(prefix "_batch_seq", family.gmm_blocks[matrix][pass].batch_seq, 512),                           \
        GMM_TILE(prefix "_embed_dim", family.gmm_blocks[matrix][pass].embed_dim, 1024),                      \
        GMM_TILE(prefix "_mlp_dim", family.gmm_blocks[matrix][pass].mlp_dim, 1024)

#define LAYOUT(key, member)                                                                                  \
    CHOICE(key, member, layouts, .usual = ADV_LAYOUT_HEAD_DIM_MINOR, GROUP(ATTENTION), .uncounted = true,    \
           TRIES(13, LISTED, ADV_LAYOUT_HEAD_DIM_MINOR, ADV_LAYOUT_SEQ_MINOR))
#define NOT_MODELLED(key)                                                                                    \
    {                                                                                                        \
        .name = (key), .holds = ADV_HOLDS_NOTHING, .uncounted = true, GROUP(NONE)                            \
    }

/* The order is that of an answer. The axes come first, for adv_key_of_axis(). */
const struct adv_key adv_keys[] = {
    /* the default of ici_fsdp and dcn_data is -1, which would fill up: they are written at 1, too */
    ADV_AXIS_TABLE(ICI) ADV_AXIS_TABLE(DCN)
        CHOICE("remat_policy", policy, policies, .usual = ADV_POLICY_FULL, .always = true, .uncounted = true,
               GROUP(REMAT), OPENS(ADV_TURN_REMAT, POLICIES)),
    ADV_TENSOR_TABLE(PLACE)

        LONG("max_target_length", family.seq_len, .usual = 2048, RANGE(1, 1 << 24), .always = true,
             .uncounted = true, GROUP(NONE)),
    NUMBER("per_device_batch_size", family.per_device_batch_size, .usual = 12, RANGE(1e-9, 1e6),
           .always = true, .uncounted = true, GROUP(MESH), OPENS(ADV_TURN_BATCH, BATCHES)),
    INT("gradient_accumulation_steps", family.gradient_accumulation_steps, .usual = 1, RANGE(1, 1 << 16),
        GROUP(MESH), OPENS(ADV_TURN_BATCH, STEPS)),
    CHOICE("custom_mesh", family.custom_mesh, custom_meshes, GROUP(MESH)),
    CHOICE("custom_mesh_and_rule", family.rule, mesh_rules, GROUP(MESH)),
    BOOL("allow_split_physical_axes", family.allow_split_physical_axes, GROUP(MESH)),
    CHOICE("context_parallel_strategy", family.cp_strategy, strategies, GROUP(MESH),
           .needs = ADV_NEEDS_CONTEXT,
           TRIES(12, LISTED, ADV_CP_ALL_GATHER, ADV_CP_RING, ADV_CP_ULYSSES, ADV_CP_USP)),
    BOOL("context_parallel_load_balance", family.cp_load_balance, .usual = 1, GROUP(MESH),
         .needs = ADV_NEEDS_CONTEXT, TRIES(9, LISTED, 0, 1)),
    BOOL("shard_optimizer_over_data", shard_optimizer_over_data, GROUP(MESH)),
    BOOL("use_2d_fsdp_sharding", family.use_2d_fsdp_sharding, GROUP(MESH)),
    BOOL("shard_exp_on_fsdp", family.shard_exp_on_fsdp, GROUP(MESH)),
    INT("pipeline_parallel_layers", family.pipeline_layers, .usual = -1, RANGE(-1, LAYERS_MAX), GROUP(MESH)),
    INT("num_layers_per_pipeline_stage", family.layers_per_stage, .usual = 1, RANGE(1, LAYERS_MAX),
        GROUP(MESH), .needs = ADV_NEEDS_STAGES, OPENS(15, STAGE_DEPTHS)),
    INT("num_pipeline_microbatches", family.pipeline_microbatches, .usual = -1, RANGE(-1, 1 << 16),
        GROUP(MESH), .needs = ADV_NEEDS_STAGES, OPENS(16, MICROBATCHES)),
    BOOL("pipeline_fsdp_ag_once", family.pipeline_fsdp_ag_once, GROUP(MESH)),
    BOOL("pipeline_delay_activation_forwarding", family.pipeline_delay_activation_forwarding, GROUP(MESH)),
    BOOL("scan_layers", family.scan_layers, .usual = 1, GROUP(REMAT)),
    BOOL("use_multimodal", family.use_multimodal, .uncounted = true, GROUP(NONE), RECIPE(ALWAYS, 0)),
    CHOICE("shard_mode", family.shard_mode, shard_modes, .unpriced = true, .uncounted = true, GROUP(NONE)),
    CHOICE("dtype", family.dtype, activation_formats, .usual = ADV_FORMAT_BF16, GROUP(FORMATS)),
    CHOICE("weight_dtype", family.weight_dtype, formats, GROUP(FORMATS)),
    CHOICE("grad_dtype", family.grad_dtype, formats, GROUP(FORMATS)),
    CHOICE("opt_type", family.optimizer, optimizers, GROUP(OPTIMIZER)),
    BOOL("optimizer_memory_host_offload", optimizer_host_offload, GROUP(OPTIMIZER), TRIES(7, LISTED, 0, 1)),
    BOOL("parameter_memory_host_offload", parameter_host_offload, GROUP(OPTIMIZER)),
    NUMBER("gradient_clipping_threshold", family.gradient_clipping_threshold, .usual = 1, RANGE(0, 1e30),
           GROUP(OPTIMIZER)),
    CHOICE("quantization", family.quantization, quantizations, GROUP(FORMATS),
           TRIES(21, IF_FORMAT_OPEN, ADV_QUANT_NONE, ADV_QUANT_INT8, ADV_QUANT_FP8_FULL)),
    BOOL("use_qwix_quantization", family.use_qwix, GROUP(FORMATS), TRIES(22, IF_FORMAT_OPEN, 0, 1)),
    /* fused backward, layouts; ring attention needs it */
    BOOL("use_tokamax_splash", family.use_tokamax_splash, GROUP(ATTENTION), RECIPE(TOKAMAX, 1),
         TRIES(4, LISTED, 0, 1)),
    /* 5 matmuls instead of 7 in the backward pass */
    BOOL("sa_use_fused_bwd_kernel", family.use_fused_bwd, GROUP(ATTENTION), RECIPE(ALWAYS, 1),
         TRIES(5, LISTED, 0, 1)),
    BOOL("use_splash_scheduler", family.use_splash_scheduler, GROUP(ATTENTION)),
    BOOL("use_qk_clip", family.use_qk_clip, .unpriced = true, .uncounted = true, GROUP(NONE)),
    INT("use_max_logit_estimate", family.max_logit_estimate, .usual = -1, RANGE(-1, SMALL_COUNT_MAX),
        GROUP(ATTENTION)),
    /* query gradients summed in place, as long recipes do */
    INT("dq_reduction_steps", family.dq_reduction_steps, RANGE(0, SMALL_COUNT_MAX), GROUP(ATTENTION),
        RECIPE(LONG, 3)),
    INT("ring_scan_unroll", family.ring_scan_unroll, .usual = 1, RANGE(0, 1 << 16), GROUP(ATTENTION)),
    BOOL("float32_logits", family.float32_logits, GROUP(ATTENTION)),
    LAYOUT("sa_q_layout", family.q_layout),
    LAYOUT("sa_k_layout", family.k_layout),
    LAYOUT("sa_v_layout", family.v_layout),
    BLOCK(q, BLOCK_SIZES(17)),
    BLOCK(kv, BLOCK_SIZES(17)),
    BLOCK(kv_compute, BLOCK_SIZES(17)),
    BLOCK(q_dkv, BLOCK_SIZES(17)),
    BLOCK(kv_dkv, BLOCK_SIZES(17)),
    BLOCK(kv_dkv_compute, BLOCK_SIZES(19)),
    BLOCK(q_dq, .needs = ADV_NEEDS_SPLIT_BACKWARD, BLOCK_SIZES(18)),
    BLOCK(kv_dq, .needs = ADV_NEEDS_SPLIT_BACKWARD, BLOCK_SIZES(20)),
    NUMBER("capacity_factor", family.capacity_factor, .usual = -1, RANGE(-1e6, 1e6), GROUP(EXPERTS)),
    NUMBER("ragged_buffer_factor", family.ragged_buffer_factor, .usual = -1, RANGE(-1e6, 1e6), GROUP(MESH)),
    BOOL("use_ring_of_experts", family.use_ring_of_experts, GROUP(MESH), .needs = ADV_NEEDS_EXPERT_SHARDS,
         TRIES(8, LISTED, 0, 1)),
    BOOL("packing", family.packing, .usual = 1, GROUP(NONE)),
    BOOL("use_ragged_sort", family.use_ragged_sort, GROUP(MESH)),
    BOOL("use_random_routing", family.use_random_routing, GROUP(MESH)),
    BOOL("float32_weight_sum", family.float32_weight_sum, .usual = 1, GROUP(EXPERTS)),
    BOOL("merge_gating_gmm", family.merge_gating_gmm, GROUP(EXPERTS)),
    BOOL("use_custom_sort_vjp", family.use_custom_sort_vjp, .usual = 1, GROUP(EXPERTS)),
    GMM_TILES("wi_tile_fwd", 0, ADV_GMM_FWD),
    GMM_TILES("wi_tile_dlhs", 0, ADV_GMM_DLHS),
    GMM_TILES("wi_tile_drhs", 0, ADV_GMM_DRHS),
    GMM_TILES("wo_tile_fwd", 1, ADV_GMM_FWD),
    GMM_TILES("wo_tile_dlhs", 1, ADV_GMM_DLHS),
    GMM_TILES("wo_tile_drhs", 1, ADV_GMM_DRHS),
    INT("num_vocab_tiling", num_vocab_tiling, .usual = 1, RANGE(1, 1 << 20), GROUP(LOSS),
        TRIES(11, LISTED, 1, 2, 4, 8, 16)),
    /* no gather and no scatter-add of the embedding */
    BOOL("use_iota_embed", family.use_iota_embed, GROUP(LOSS), RECIPE(ALWAYS, 1), TRIES(6, LISTED, 0, 1)),
    BOOL("cast_logits_to_fp32", family.cast_logits_to_fp32, .usual = 1, GROUP(LOSS)),
    BOOL("logits_dot_in_fp32", family.logits_dot_in_fp32, GROUP(LOSS)),
    /* read with the model, which has its default */
    INT("mtp_num_layers", family.mtp_layers, .uncounted = true, GROUP(NONE)),

    PART("attention", CHOICE, attention, family.attention, .choices = attentions, .says = says_attention,
         .always = true, GROUP(ATTENTION)),
    CHOICE("mu_dtype", family.mu_dtype, formats, .follows_at = offsetof(struct adv_plan, family.weight_dtype),
           .uncounted = true, GROUP(FORMATS)),
    /* fixed scales spare the pass for the maxima, as in six of the seven published fp8 recipes */
    PART("weight_quantization_calibration_method", CALIBRATION, weight_calibration_fixed,
         family.quantization_static, .says = says_fixed, GROUP(FORMATS), RECIPE(FIXED_SCALES, 1)),
    PART("act_quantization_calibration_method", CALIBRATION, act_calibration_fixed,
         family.quantization_static, .says = says_fixed, GROUP(FORMATS)),
    PART("use_tokamax_gmm", BOOL, use_tokamax_gmm, family.moe, .says = says_tokamax, .of = ADV_OF_EXPERTS,
         GROUP(EXPERTS), OPENS(14, GROUPED_MATMULS)),
    PART("use_gmm_v2", BOOL, use_gmm_v2, family.moe, .says = says_gmm_v2, .of = ADV_OF_EXPERTS,
         GROUP(EXPERTS)),
    PART("megablox", BOOL, megablox, family.moe, .usual = 1, .says = says_megablox, .of = ADV_OF_MEGABLOX,
         GROUP(EXPERTS), OPENS(14, GROUPED_MATMULS)),
    PART("sparse_matmul", BOOL, sparse_matmul, family.moe, .usual = 1, .says = says_sparse,
         .of = ADV_OF_EXPERTS, GROUP(EXPERTS)),
    PART("moe_fsdp_use_two_stage_all_gather", BOOL, moe_two_stage, family.two_stage_gather,
         .of = ADV_OF_EXPERTS, GROUP(MESH), TRIES(10, IF_TWO_STAGES, 0, 1)),
    PART("dense_fsdp_use_two_stage_all_gather", BOOL, dense_two_stage, family.two_stage_gather,
         .of = ADV_OF_DENSE, GROUP(MESH), TRIES(10, IF_TWO_STAGES, 0, 1)),
    LOCAL_BLOCK(q, NOTHING),
    LOCAL_BLOCK(kv, NOTHING),
    LOCAL_BLOCK(kv_compute, NOTHING),
    LOCAL_BLOCK(q_dkv, NOTHING),
    LOCAL_BLOCK(kv_dkv, NOTHING),
    LOCAL_BLOCK(kv_dkv_compute, NOTHING),
    LOCAL_BLOCK(q_dq, SPLIT_BACKWARD),
    LOCAL_BLOCK(kv_dq, SPLIT_BACKWARD),

#ifdef ADV_KEYS_OF_A_TEST
    ADV_KEYS_OF_A_TEST
#endif
    /* read, but never written with a plan */
    {.name = "override_model_config",
     .holds = ADV_HOLDS_BOOL,
     IN_STATE(override_model_config),
     .uncounted = true,
     GROUP(NONE)},
    NOT_MODELLED("activations_in_float32"),
    NOT_MODELLED("context_sharding"),
    NOT_MODELLED("csa_qk_head_chunk_size"),
    NOT_MODELLED("defer_small_all_reduces"),
    NOT_MODELLED("dropout_rate"),
    NOT_MODELLED("elastic_enabled"),
    NOT_MODELLED("enable_diloco"),
    NOT_MODELLED("experimental_sa_quant_k_fp8"),
    NOT_MODELLED("experimental_sa_quant_q_fp8"),
    NOT_MODELLED("fused_mlp"),
    NOT_MODELLED("fused_qkv"),
    NOT_MODELLED("indexer_use_approx_top_k"),
    NOT_MODELLED("local_sa_fuse_reciprocal"),
    NOT_MODELLED("local_sa_k_layout"),
    NOT_MODELLED("local_sa_q_layout"),
    NOT_MODELLED("local_sa_use_base2_exp"),
    NOT_MODELLED("local_sa_use_fused_bwd_kernel"),
    NOT_MODELLED("local_sa_v_layout"),
    NOT_MODELLED("local_use_splash_scheduler"),
    NOT_MODELLED("logical_axis_rules"),
    NOT_MODELLED("lora"),
    NOT_MODELLED("mesh_axes"),
    NOT_MODELLED("mla_qk_head_chunk_size"),
    NOT_MODELLED("moba"),
    NOT_MODELLED("moe_dispatch_no_expert_sharding"),
    NOT_MODELLED("moe_dropless_fallback"),
    NOT_MODELLED("moe_pin_sparse_core_all_gathers"),
    NOT_MODELLED("moe_pin_sparse_core_ep_all_gathers"),
    NOT_MODELLED("moe_pin_sparse_core_fsdp_all_gathers"),
    NOT_MODELLED("moe_quantize_combine_bwd_method"),
    NOT_MODELLED("moe_quantize_token_all_gather"),
    NOT_MODELLED("moe_routing_maps"),
    NOT_MODELLED("moe_topk_before_ep_all_gather"),
    NOT_MODELLED("moe_use_direct_token_gather"),
    NOT_MODELLED("moe_x_sorted"),
    NOT_MODELLED("mtp_reuse_input_embedding"),
    NOT_MODELLED("muon_use_all_to_all"),
    NOT_MODELLED("num_moe_emb_chunks"),
    NOT_MODELLED("num_moe_token_chunks"),
    NOT_MODELLED("optimize_mesh_for_tpu_v6e"),
    NOT_MODELLED("padded_base_moe_mlp_dim"),
    NOT_MODELLED("pipeline_fsdp_ag_per_repeat"),
    NOT_MODELLED("prefuse_moe_weights"),
    NOT_MODELLED("quantize_kvcache"),
    NOT_MODELLED("quantize_logits_proj"),
    NOT_MODELLED("quantize_mtp"),
    NOT_MODELLED("record_internal_nn_metrics"),
    NOT_MODELLED("router_topk_matmul_vjp"),
    NOT_MODELLED("sa_bwd_dkv_megacore"),
    NOT_MODELLED("sa_fuse_reciprocal"),
    NOT_MODELLED("sa_use_base2_exp"),
    NOT_MODELLED("scan_layers_per_stage"),
    NOT_MODELLED("scan_pipeline_iterations"),
    NOT_MODELLED("set_remat_policy_on_pipeline_iterations"),
    NOT_MODELLED("shard_embed_moe_on_fsdp"),
    NOT_MODELLED("skip_step_on_spikes"),
    NOT_MODELLED("te_moe_block"),
    NOT_MODELLED("trainable_parameters_mask"),
    NOT_MODELLED("training_objective"),
    NOT_MODELLED("unquantized_modules"),
    NOT_MODELLED("use_batch_split_schedule"),
    NOT_MODELLED("use_csa_streamindex_kernel"),
    NOT_MODELLED("use_dpo"),
    NOT_MODELLED("use_gather_mosaic_kernel"),
    NOT_MODELLED("use_gmm_v2_heuristic_tiling"),
    NOT_MODELLED("use_jax_splash"),
    NOT_MODELLED("use_lineage"),
    NOT_MODELLED("use_m3_model"),
    NOT_MODELLED("use_manual_quantization"),
    NOT_MODELLED("use_mla_absorbed_mqa"),
    NOT_MODELLED("use_sliced_mla_proj"),
    NOT_MODELLED("use_tunix_gradient_accumulation"),
    NOT_MODELLED("vocab_tiling_ag_once"),
    NOT_MODELLED("weight_block_size"),
    NOT_MODELLED("weight_sparsity_n"),
};
const int adv_keys_count = sizeof adv_keys / sizeof *adv_keys;
_Static_assert(sizeof adv_keys / sizeof *adv_keys <= ADV_KEYS_MAX, "states have room for every key");

const struct adv_key *adv_key_find(const char *name)
{
    for (int i = 0; i < adv_keys_count; i++)
        if (adv_text_same(adv_keys[i].name, name)) return &adv_keys[i];
    return NULL;
}

const char *adv_key_of_axis(bool is_dcn, enum adv_axis axis)
{
    return adv_keys[(is_dcn ? ADV_AXIS_COUNT : 0) + (int)axis].name; /* the first rows */
}

void adv_keys_spoken(const struct adv_model *model, const struct adv_cluster *cluster,
                     const struct adv_plan *plan, bool spoken[ADV_OFS])
{
    memset(spoken, 0, ADV_OFS * sizeof *spoken);
    spoken[ADV_OF_ALL] = true;
    spoken[ADV_OF_SLICES] = cluster->slices > 1;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        spoken[ADV_OF_EXPERTS] |= layer->experts > 0;
        spoken[ADV_OF_DENSE] |= layer->mlp_dim > 0 || layer->shared_experts > 0;
        spoken[ADV_OF_WINDOWS] |= adv_layer_has_local_tiles(layer);
    }
    spoken[ADV_OF_MEGABLOX] =
        spoken[ADV_OF_EXPERTS] && plan->family.moe != ADV_MOE_TOKAMAX && plan->family.moe != ADV_MOE_GMM_V2;
}

void adv_key_put(const struct adv_key *key, void *at, size_t bytes, double value)
{
    int64_t whole = key->holds == ADV_HOLDS_NUMBER ? 0 : (int64_t)value;
    int number = (int)whole;
    bool is_true = whole != 0;
    if (key->holds == ADV_HOLDS_NUMBER)
        memcpy(at, &value, sizeof value);
    else if (key->holds == ADV_HOLDS_INT64)
        memcpy(at, &whole, sizeof whole);
    else if (bytes == sizeof is_true)
        memcpy(at, &is_true, sizeof is_true);
    else
        memcpy(at, &number, sizeof number); /* enums too */
}

double adv_key_number(const struct adv_key *key, const void *at)
{
    if (key->holds == ADV_HOLDS_NUMBER) return *(const double *)at;
    if (key->holds == ADV_HOLDS_INT64) return (double)*(const int64_t *)at;
    if (key->plan_bytes == sizeof(bool)) return *(const bool *)at;
    int number;
    memcpy(&number, at, sizeof number); /* enums too */
    return number;
}

double adv_key_says(const struct adv_key *key, const struct adv_plan *plan)
{
    if (key->says) return key->says(plan);
    bool asleep = key->holds == ADV_HOLDS_PLACEMENT && plan->policy != ADV_POLICY_CUSTOM;
    return asleep ? key->usual : adv_key_number(key, (const char *)plan + key->plan_at);
}

bool adv_key_is_read(const struct adv_key *key, const struct adv_plan *plan)
{
    switch (key->needs) {
    case ADV_NEEDS_CUSTOM_REMAT:
        return plan->policy == ADV_POLICY_CUSTOM;
    case ADV_NEEDS_CONTEXT:
        return adv_plan_sequence_shards(plan) > 1 || adv_plan_degree(plan, ADV_AXIS_ULYSSES) > 1;
    case ADV_NEEDS_STAGES:
        return adv_plan_degree(plan, ADV_AXIS_STAGE) > 1;
    case ADV_NEEDS_EXPERT_SHARDS:
        return adv_plan_degree(plan, ADV_AXIS_EXPERT) > 1;
    case ADV_NEEDS_EXPERT_TILES:
        return adv_plan_reads_expert_tiles(plan);
    case ADV_NEEDS_SPLIT_BACKWARD:
        return !plan->family.use_fused_bwd && !plan->family.use_tokamax_splash;
    case ADV_NEEDS_NOTHING:
        break;
    }
    return true;
}

void adv_plan_defaults(struct adv_plan *plan, const struct adv_model *model)
{
    memset(plan, 0, sizeof *plan);
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        if (key->plan_bytes > 0 && key->read_at < sizeof *plan)
            adv_key_put(key, (char *)plan + key->plan_at, key->plan_bytes, key->usual);
    }
    plan->family.mtp_layers = model->mtp_layers;
    adv_flags_unset(&plan->flags);
    plan->family.software_date = (double)NAN;
}

/* Shortest of 15 or 17 digits that reads back as the same double; whole numbers without a point. */
static int number_text(double value, char *text, size_t bytes)
{
    if (fabs(value) < 1e15 && value == floor(value)) /* most are */
        return snprintf(text, bytes, "%lld", (long long)value);
    double back = 0;
    int length = snprintf(text, bytes, "%.15g", value);
    if (sscanf(text, "%lf", &back) != 1 || back != value) length = snprintf(text, bytes, "%.17g", value);
    return length;
}

bool adv_key_text(const struct adv_key *key, double value, char *text, size_t bytes)
{
    const char *word = value != 0 ? "true" : "false";
    int length;
    if (key->holds == ADV_HOLDS_CHOICE || key->holds == ADV_HOLDS_PLACEMENT) {
        const struct adv_key_choice *choice = key->choices;
        while (choice && choice->name && choice->value != (int)value) choice++;
        const char *name = !choice        ? adv_placement_name((enum adv_placement)(int)value)
                           : choice->name ? choice->name
                                          : "";
        length = snprintf(text, bytes, "\"%s\"", name);
    } else if (key->holds == ADV_HOLDS_CALIBRATION) {
        length = snprintf(text, bytes, value != 0 ? "\"fixed,-224,224\"" : "\"absmax\"");
    } else if (key->holds == ADV_HOLDS_BOOL) {
        length = snprintf(text, bytes, "%s", word);
    } else {
        length = number_text(value, text, bytes);
    }
    return length >= 0 && (size_t)length < bytes;
}

int adv_key_plain_choices(const struct adv_key *key, const char *names[ADV_KEY_CHOICES_MAX])
{
    int count = 0;
    for (const struct adv_key_choice *choice = key->choices; choice->name; choice++)
        if (choice->value >= 0 && !choice->caveat && count < ADV_KEY_CHOICES_MAX)
            names[count++] = choice->name;
    return count;
}
