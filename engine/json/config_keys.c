/* config_keys.c: the table of MaxText keys that change the prediction, and where each goes. */
#include "engine/json/config_state.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define IN_PLAN(member)  (offsetof(struct adv_config_state, plan) + offsetof(struct adv_plan, member))
#define IN_STATE(member) offsetof(struct adv_config_state, member)

enum { SMALL_COUNT_MAX = 1 << 24 };

static const struct bool_row {
    const char *key;
    size_t offset;
} bool_rows[] = {
    {"allow_split_physical_axes", IN_PLAN(allow_split_physical_axes)},
    {"cast_logits_to_fp32", IN_PLAN(cast_logits_to_fp32)},
    {"context_parallel_load_balance", IN_PLAN(cp_load_balance)},
    {"dense_fsdp_use_two_stage_all_gather", IN_STATE(dense_two_stage)},
    {"float32_logits", IN_PLAN(float32_logits)},
    {"float32_weight_sum", IN_PLAN(float32_weight_sum)},
    {"logits_dot_in_fp32", IN_PLAN(logits_dot_in_fp32)},
    {"megablox", IN_STATE(megablox)},
    {"merge_gating_gmm", IN_PLAN(merge_gating_gmm)},
    {"moe_fsdp_use_two_stage_all_gather", IN_STATE(moe_two_stage)},
    {"optimizer_memory_host_offload", IN_PLAN(optimizer_host_offload)},
    {"packing", IN_PLAN(packing)},
    {"override_model_config", IN_STATE(override_model_config)},
    {"parameter_memory_host_offload", IN_PLAN(parameter_host_offload)},
    {"pipeline_delay_activation_forwarding", IN_PLAN(pipeline_delay_activation_forwarding)},
    {"pipeline_fsdp_ag_once", IN_PLAN(pipeline_fsdp_ag_once)},
    {"sa_use_fused_bwd_kernel", IN_PLAN(use_fused_bwd)},
    {"scan_layers", IN_PLAN(scan_layers)},
    {"shard_exp_on_fsdp", IN_PLAN(shard_exp_on_fsdp)},
    {"shard_optimizer_over_data", IN_PLAN(shard_optimizer_over_data)},
    {"sparse_matmul", IN_STATE(sparse_matmul)},
    {"use_2d_fsdp_sharding", IN_PLAN(use_2d_fsdp_sharding)},
    {"use_custom_sort_vjp", IN_PLAN(use_custom_sort_vjp)},
    {"use_gmm_v2", IN_STATE(use_gmm_v2)},
    {"use_iota_embed", IN_PLAN(use_iota_embed)},
    {"use_qwix_quantization", IN_PLAN(use_qwix)},
    {"use_ragged_sort", IN_PLAN(use_ragged_sort)},
    {"use_random_routing", IN_PLAN(use_random_routing)},
    {"use_ring_of_experts", IN_PLAN(use_ring_of_experts)},
    {"use_splash_scheduler", IN_PLAN(use_splash_scheduler)},
    {"use_tokamax_gmm", IN_STATE(use_tokamax_gmm)},
    {"use_tokamax_splash", IN_PLAN(use_tokamax_splash)},
};

static const struct int_row {
    const char *key;
    size_t offset;
    int low, high;
} int_rows[] = {
    {"dq_reduction_steps", IN_PLAN(dq_reduction_steps), 0, SMALL_COUNT_MAX},
    {"gradient_accumulation_steps", IN_PLAN(gradient_accumulation_steps), 1, 1 << 16},
    {"num_layers_per_pipeline_stage", IN_PLAN(layers_per_stage), 1, 10000},
    {"num_pipeline_microbatches", IN_PLAN(pipeline_microbatches), -1, 1 << 16},
    {"num_vocab_tiling", IN_PLAN(num_vocab_tiling), 1, 1 << 20},
    {"pipeline_parallel_layers", IN_PLAN(pipeline_layers), -1, 10000},
    {"use_max_logit_estimate", IN_PLAN(max_logit_estimate), -1, SMALL_COUNT_MAX},
};

static const struct number_row {
    const char *key;
    size_t offset;
    double low, high;
} number_rows[] = {
    {"capacity_factor", IN_PLAN(capacity_factor), -1e6, 1e6},
    {"gradient_clipping_threshold", IN_PLAN(gradient_clipping_threshold), 0, 1e30},
    {"per_device_batch_size", IN_PLAN(per_device_batch_size), 1e-9, 1e6},
    {"ragged_buffer_factor", IN_PLAN(ragged_buffer_factor), -1e6, 1e6},
};

/* A value MaxText takes, what it becomes, and what to say when the engine only comes near it. */
struct choice {
    const char *name;
    int value;
    const char *caveat;
};
enum { NOT_ON_TPU = -1, NO_MODEL = -2 };

static const struct choice formats[] = {
    {"float32", ADV_FORMAT_F32, NULL},
    {"bfloat16", ADV_FORMAT_BF16, NULL},
    {"float16", ADV_FORMAT_BF16, "costed as bfloat16"},
    {NULL, 0, NULL},
};
static const struct choice activation_formats[] = {
    {"float32", ADV_FORMAT_F32,
     "activations are priced and counted as bfloat16: time and memory come out too small"},
    {"bfloat16", ADV_FORMAT_BF16, NULL},
    {"float16", ADV_FORMAT_BF16, "costed as bfloat16"},
    {NULL, 0, NULL},
};
static const struct choice optimizers[] = {
    {"adamw", ADV_OPT_ADAMW, NULL},
    {"adam_pax", ADV_OPT_ADAM_PAX, NULL},
    {"sgd", ADV_OPT_SGD, NULL},
    {"muon", ADV_OPT_MUON, NULL},
    {NULL, 0, NULL},
};
static const struct choice quantizations[] = {
    {"", ADV_QUANT_NONE, NULL},
    {"int8", ADV_QUANT_INT8, NULL},
    {"intmp", ADV_QUANT_INT8, "costed as int8 everywhere"},
    {"fp8", ADV_QUANT_FP8, NULL},
    {"fp8_full", ADV_QUANT_FP8_FULL, NULL},
    {"fp8_e4m3", ADV_QUANT_FP8, "costed as fp8"},
    {"fp8_e5m2", ADV_QUANT_FP8, "costed as fp8"},
    {"nanoo_fp8", NOT_ON_TPU, NULL},
    {"fp8_nanoo", NOT_ON_TPU, NULL},
    {"fp8_gpu", NOT_ON_TPU, NULL},
    {"te_fp8_delayedscaling", NOT_ON_TPU, NULL},
    {"te_fp8_currentscaling", NOT_ON_TPU, NULL},
    {"te_mxfp8", NOT_ON_TPU, NULL},
    {"te_nvfp4", NOT_ON_TPU, NULL},
    {"te_nvfp4_no_rht", NOT_ON_TPU, NULL},
    {"fp4", NO_MODEL, NULL},
    {"int4", NO_MODEL, NULL},
    {NULL, 0, NULL},
};
static const struct choice attentions[] = {
    {"autoselected", ADV_CHOICE_AUTO, NULL},       {"flash", ADV_CHOICE_FLASH, NULL},
    {"dot_product", ADV_CHOICE_DOT_PRODUCT, NULL}, {"cudnn_flash_te", NOT_ON_TPU, NULL},
    {"cudnn_flash_jax", NOT_ON_TPU, NULL},         {"vllm_rpa", NO_MODEL, NULL},
    {"vllm_batched_rpa", NO_MODEL, NULL},          {NULL, 0, NULL},
};
static const struct choice strategies[] = {
    {"all_gather", ADV_CP_ALL_GATHER, NULL},
    {"ring", ADV_CP_RING, NULL},
    {"ulysses", ADV_CP_ULYSSES, NULL},
    {"usp", ADV_CP_USP, NULL},
    {NULL, 0, NULL},
};
static const struct choice mesh_rules[] = {
    {"", ADV_RULE_DEFAULT, NULL},
    {"pure-fsdp", ADV_RULE_PURE_FSDP, NULL},
    {"cp-as-ep", ADV_RULE_CP_AS_EP, NULL},
    {"ep-as-cp", ADV_RULE_EP_AS_CP, NULL},
    {"ep-as-dp", ADV_RULE_EP_AS_DP, NULL},
    {"shard-exp-on-fsdp", ADV_RULE_SHARD_EXP_ON_FSDP, NULL},
    {"pipeline-large-moe", ADV_RULE_PIPELINE_LARGE_MOE, NULL},
    {"2d-fsdp", NO_MODEL, NULL},
    {NULL, 0, NULL},
};
static const struct choice custom_meshes[] = {
    {"", ADV_CUSTOM_MESH_NONE, NULL},
    {"hybrid_ring_64x4", ADV_CUSTOM_MESH_64X4, NULL},
    {"hybrid_ring_32x8", ADV_CUSTOM_MESH_32X8, NULL},
    {NULL, 0, NULL},
};
static const struct choice layouts[] = {{"HEAD_DIM_MINOR", ADV_LAYOUT_HEAD_DIM_MINOR, NULL},
                                        {"SEQ_MINOR", ADV_LAYOUT_SEQ_MINOR, NULL},
                                        {NULL, 0, NULL}};
static const struct choice policies[] = {
    {"none", ADV_POLICY_NONE, NULL},
    {"full", ADV_POLICY_FULL, NULL},
    {"minimal", ADV_POLICY_MINIMAL, NULL},
    {"minimal_with_context", ADV_POLICY_MINIMAL_WITH_CONTEXT, NULL},
    {"minimal_flash", ADV_POLICY_MINIMAL_WITH_CONTEXT, "a deprecated name of minimal_with_context"},
    {"minimal_with_quantization", ADV_POLICY_MINIMAL, "the same as minimal on TPU"},
    {"minimal_with_context_and_quantization", ADV_POLICY_MINIMAL_WITH_CONTEXT,
     "the same as minimal_with_context on TPU"},
    {"save_dot_with_context_except_mlp", ADV_POLICY_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP, NULL},
    {"save_dot_except_mlpwi", ADV_POLICY_SAVE_DOT_EXCEPT_MLPWI, NULL},
    {"save_dot_except_mlp", ADV_POLICY_SAVE_DOT_EXCEPT_MLP, NULL},
    {"save_qkv_proj", ADV_POLICY_SAVE_QKV_PROJ, NULL},
    {"qkv_proj_offloaded", ADV_POLICY_QKV_PROJ_OFFLOADED, NULL},
    {"minimal_offloaded", ADV_POLICY_MINIMAL_OFFLOADED, NULL},
    {"save_out_proj", ADV_POLICY_SAVE_OUT_PROJ, NULL},
    {"custom", ADV_POLICY_CUSTOM, NULL},
    {NULL, 0, NULL},
};

static const struct choice_row {
    const char *key;
    size_t offset;
    const struct choice *choices;
} choice_rows[] = {
    {"attention", IN_STATE(attention), attentions},
    {"context_parallel_strategy", IN_PLAN(cp_strategy), strategies},
    {"custom_mesh", IN_PLAN(custom_mesh), custom_meshes},
    {"custom_mesh_and_rule", IN_PLAN(rule), mesh_rules},
    {"dtype", IN_PLAN(dtype), activation_formats},
    {"grad_dtype", IN_PLAN(grad_dtype), formats},
    {"mu_dtype", IN_PLAN(mu_dtype), formats},
    {"opt_type", IN_PLAN(optimizer), optimizers},
    {"quantization", IN_PLAN(quantization), quantizations},
    {"remat_policy", IN_PLAN(policy), policies},
    {"sa_k_layout", IN_PLAN(k_layout), layouts},
    {"sa_q_layout", IN_PLAN(q_layout), layouts},
    {"sa_v_layout", IN_PLAN(v_layout), layouts},
    {"weight_dtype", IN_PLAN(weight_dtype), formats},
};

/* Keys that change what a step does in a way the engine leaves out: said aloud when not at MaxText's default.
 */
static const char *const not_modelled[] = {
    "elastic_enabled",
    "enable_diloco",
    "experimental_sa_quant_k_fp8",
    "experimental_sa_quant_q_fp8",
    "fused_mlp",
    "fused_qkv",
    "moba",
    "num_moe_emb_chunks",
    "num_moe_token_chunks",
    "optimize_mesh_for_tpu_v6e",
    "padded_base_moe_mlp_dim",
    "pipeline_fsdp_ag_per_repeat",
    "prefuse_moe_weights",
    "quantize_kvcache",
    "shard_mode",
    "training_objective",
    "use_batch_split_schedule",
    "use_dpo",
    "use_jax_splash",
    "use_manual_quantization",
    "vocab_tiling_ag_once",
};

void adv_config_state_init(struct adv_config_state *state, const struct adv_model *model)
{
    memset(state, 0, sizeof *state);
    adv_plan_defaults(&state->plan, model);
    state->plan.ici[ADV_AXIS_FSDP] = -1;
    state->plan.dcn[ADV_AXIS_DATA] = -1;
    state->sparse_matmul = state->megablox = true;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) state->placements[i] = ADV_PLACE_REMAT;
}

static bool in_range(const struct adv_catalog_key *key, const struct adv_value *value, double low,
                     double high, const struct adv_config_sink *sink)
{
    if (value->kind == ADV_VALUE_NULL) return false;
    if (value->number >= low && value->number <= high) return true;
    char hint[ADV_LIMIT_NAME];
    (void)snprintf(hint, sizeof hint, "%.12g, the nearest legal value", value->number < low ? low : high);
    (void)adv_err_add(sink->err, ADV_E_RANGE, sink->pointer, hint,
                      "%s is %.12g; it must be from %.12g to %.12g", key->name, value->number, low, high);
    return false;
}

static void put_int(struct adv_config_state *state, size_t offset, int value)
{
    memcpy((char *)state + offset, &value, sizeof value);
}

static void put_choice(struct adv_config_state *state, const struct choice_row *row,
                       const struct adv_value *value, const struct adv_config_sink *sink)
{
    const char *name = value->kind == ADV_VALUE_STRING ? value->string : "";
    const struct choice *choice = row->choices;
    while (choice->name && strcmp(choice->name, name) != 0) choice++;
    if (!choice->name) return; /* "" of mu_dtype: as weight_dtype */
    if (choice->value < 0) {
        (void)adv_err_add(sink->err, ADV_E_UNSUPPORTED, sink->pointer, NULL, "%s %s %s", row->key, name,
                          choice->value == NOT_ON_TPU ? "does not run on TPU"
                                                      : "is something the engine has no model for");
        return;
    }
    put_int(state, row->offset, choice->value);
    if (strcmp(row->key, "mu_dtype") == 0) state->mu_dtype_given = true;
    if (choice->caveat) {
        (void)adv_err_add(sink->warnings, ADV_OK, sink->pointer, NULL, "%s %s is %s", row->key, name,
                          choice->caveat);
        adv_err_rule(sink->warnings, "approximated-value");
    }
}

/* ici_<axis>_parallelism and dcn_<axis>_parallelism. */
static bool apply_axis(struct adv_config_state *state, const struct adv_catalog_key *key,
                       const struct adv_value *value, const struct adv_config_sink *sink)
{
    bool is_dcn = strncmp(key->name, "dcn_", 4) == 0;
    if (!is_dcn && strncmp(key->name, "ici_", 4) != 0) return false;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const char *axis = adv_axis_key((enum adv_axis)i);
        size_t length = strlen(axis);
        if (strncmp(key->name + 4, axis, length) != 0 || strcmp(key->name + 4 + length, "_parallelism") != 0)
            continue;
        bool is_fill = value->kind == ADV_VALUE_INT && value->integer == -1;
        if (!is_fill && !in_range(key, value, 1, 1 << 20, sink)) return true;
        int *degrees = is_dcn ? state->plan.dcn : state->plan.ici;
        degrees[i] = (int)value->integer;
        return true;
    }
    return false;
}

static bool apply_placement(struct adv_config_state *state, const struct adv_catalog_key *key,
                            const struct adv_value *value)
{
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        if (strcmp(key->name, adv_tensor_name((enum adv_tensor)i)) != 0) continue;
        for (int place = ADV_PLACE_REMAT; value->kind == ADV_VALUE_STRING && place <= ADV_PLACE_OFFLOAD;
             place++) {
            if (strcmp(value->string, adv_placement_name((enum adv_placement)place)) == 0) {
                state->placements[i] = (enum adv_placement)place;
                state->placement_given[i] = true;
            }
        }
        return true;
    }
    return false;
}

/* sa_block_* and local_sa_block_*: the order is that of struct adv_splash_blocks. */
static bool apply_block(struct adv_config_state *state, const struct adv_catalog_key *key,
                        const struct adv_value *value, const struct adv_config_sink *sink)
{
    static const char *const names[8] = {"q",    "kv",   "kv_compute", "q_dkv", "kv_dkv", "kv_dkv_compute",
                                         "q_dq", "kv_dq"};
    struct adv_splash_blocks *global = &state->plan.blocks[0];
    int *const blocks[8] = {&global->block_q,     &global->block_kv,     &global->block_kv_compute,
                            &global->block_q_dkv, &global->block_kv_dkv, &global->block_kv_dkv_compute,
                            &global->block_q_dq,  &global->block_kv_dq};
    bool is_local = strncmp(key->name, "local_", 6) == 0;
    const char *name = key->name + (is_local ? 6 : 0);
    if (strncmp(name, "sa_block_", 9) != 0) return false;
    for (int i = 0; i < 8; i++) {
        if (strcmp(name + 9, names[i]) != 0) continue;
        if (in_range(key, value, 1, SMALL_COUNT_MAX, sink))
            *(is_local ? &state->local_blocks[i] : blocks[i]) = (int)value->integer;
        return true;
    }
    return false;
}

/* {wi,wo}_tile_{fwd,dlhs,drhs}_{batch_seq,embed_dim,mlp_dim} */
static bool apply_gmm_tile(struct adv_config_state *state, const struct adv_catalog_key *key,
                           const struct adv_value *value, const struct adv_config_sink *sink)
{
    static const char *const matrices[] = {"wi", "wo"};
    static const char *const passes[ADV_GMM_PASSES] = {"fwd", "dlhs", "drhs"};
    static const char *const dims[] = {"batch_seq", "embed_dim", "mlp_dim"};
    if (strncmp(key->name, "wi_tile_", 8) != 0 && strncmp(key->name, "wo_tile_", 8) != 0) return false;
    for (int i = 0; i < 2 * ADV_GMM_PASSES * 3; i++) {
        int matrix = i / (ADV_GMM_PASSES * 3);
        int pass = i / 3 % ADV_GMM_PASSES;
        char name[ADV_LIMIT_NAME];
        (void)snprintf(name, sizeof name, "%s_tile_%s_%s", matrices[matrix], passes[pass], dims[i % 3]);
        if (strcmp(name, key->name) != 0) continue;
        struct adv_gmm_blocks *tile = &state->plan.gmm_blocks[matrix][pass];
        int *const sizes[] = {&tile->batch_seq, &tile->embed_dim, &tile->mlp_dim};
        if (in_range(key, value, 1, SMALL_COUNT_MAX, sink)) *sizes[i % 3] = (int)value->integer;
        return true;
    }
    return false;
}

static bool apply_calibration(struct adv_config_state *state, const struct adv_catalog_key *key,
                              const struct adv_value *value)
{
    bool is_fixed = value->kind == ADV_VALUE_STRING && strncmp(value->string, "fixed", 5) == 0;
    if (strcmp(key->name, "weight_quantization_calibration_method") == 0)
        state->weight_calibration_fixed = is_fixed;
    else if (strcmp(key->name, "act_quantization_calibration_method") == 0)
        state->act_calibration_fixed = is_fixed;
    else
        return false;
    return true;
}

/* Whether `value` is the default, compared by meaning ("None" is null, 1 is 1.0). */
static bool is_default(const struct adv_catalog_key *key, const struct adv_value *value)
{
    const char *text = key->default_json ? key->default_json : "null";
    bool default_is_null =
        strcmp(text, "null") == 0 || strcmp(text, "\"None\"") == 0 || strcmp(text, "\"\"") == 0;
    switch (value->kind) {
    case ADV_VALUE_NULL:
        return default_is_null;
    case ADV_VALUE_BOOL:
        return strcmp(text, value->boolean ? "true" : "false") == 0 || (default_is_null && !value->boolean);
    case ADV_VALUE_INT:
    case ADV_VALUE_FLOAT: {
        double number = 0;
        return sscanf(text, "%lf", &number) == 1 && number >= value->number && number <= value->number;
    }
    case ADV_VALUE_STRING: {
        size_t length = strlen(value->string);
        return (default_is_null && length == 0) ||
               (strlen(text) == length + 2 && strncmp(text + 1, value->string, length) == 0);
    }
    case ADV_VALUE_OTHER:
        break;
    }
    return false;
}

static void report_not_modelled(const struct adv_catalog_key *key, const struct adv_value *value,
                                const struct adv_config_sink *sink)
{
    for (size_t i = 0; i < sizeof not_modelled / sizeof *not_modelled; i++) {
        if (strcmp(key->name, not_modelled[i]) != 0 || is_default(key, value)) continue;
        (void)adv_err_add(sink->warnings, ADV_OK, sink->pointer, NULL,
                          "the engine has no model of %s: the prediction leaves it out", key->name);
        adv_err_rule(sink->warnings, "not-modelled");
    }
}

bool adv_config_apply(struct adv_config_state *state, const struct adv_catalog_key *key,
                      const struct adv_value *value, const struct adv_config_sink *sink)
{
    for (size_t i = 0; i < sizeof bool_rows / sizeof *bool_rows; i++) {
        if (strcmp(bool_rows[i].key, key->name) != 0) continue;
        if (value->kind == ADV_VALUE_BOOL)
            memcpy((char *)state + bool_rows[i].offset, &value->boolean, sizeof value->boolean);
        return true;
    }
    for (size_t i = 0; i < sizeof int_rows / sizeof *int_rows; i++) {
        if (strcmp(int_rows[i].key, key->name) != 0) continue;
        if (in_range(key, value, int_rows[i].low, int_rows[i].high, sink))
            put_int(state, int_rows[i].offset, (int)value->integer);
        return true;
    }
    for (size_t i = 0; i < sizeof number_rows / sizeof *number_rows; i++) {
        if (strcmp(number_rows[i].key, key->name) != 0) continue;
        if (in_range(key, value, number_rows[i].low, number_rows[i].high, sink)) {
            memcpy((char *)state + number_rows[i].offset, &value->number, sizeof value->number);
        }
        return true;
    }
    for (size_t i = 0; i < sizeof choice_rows / sizeof *choice_rows; i++) {
        if (strcmp(choice_rows[i].key, key->name) != 0) continue;
        put_choice(state, &choice_rows[i], value, sink);
        return true;
    }
    if (strcmp(key->name, "max_target_length") == 0) {
        if (in_range(key, value, 1, 1 << 24, sink)) state->plan.seq_len = value->integer;
        return true;
    }
    if (apply_axis(state, key, value, sink) || apply_placement(state, key, value) ||
        apply_block(state, key, value, sink) || apply_gmm_tile(state, key, value, sink) ||
        apply_calibration(state, key, value)) {
        return true;
    }
    report_not_modelled(key, value, sink);
    return false;
}
