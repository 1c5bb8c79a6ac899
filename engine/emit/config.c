#include "engine/emit/config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/emit/model_keys.h"

enum kind {
    KIND_INT,
    KIND_INT64,
    KIND_DOUBLE,
    KIND_BOOL,
    KIND_FORMAT,
    KIND_LAYOUT,
    KIND_QUANT,
    KIND_OPTIMIZER,
    KIND_CP,
    KIND_RULE,
    KIND_CUSTOM_MESH
};

struct row {
    const char *key;
    enum kind kind;
    size_t offset; /* in struct adv_plan */
    bool always;   /* written even at its default */
};

#define AT(member) offsetof(struct adv_plan, member)
#define BLOCKS(index, prefix)                                                                                \
    {prefix "sa_block_q", KIND_INT, AT(blocks[index].block_q), false},                                       \
        {prefix "sa_block_kv", KIND_INT, AT(blocks[index].block_kv), false},                                 \
        {prefix "sa_block_kv_compute", KIND_INT, AT(blocks[index].block_kv_compute), false},                 \
        {prefix "sa_block_q_dkv", KIND_INT, AT(blocks[index].block_q_dkv), false},                           \
        {prefix "sa_block_kv_dkv", KIND_INT, AT(blocks[index].block_kv_dkv), false},                         \
        {prefix "sa_block_kv_dkv_compute", KIND_INT, AT(blocks[index].block_kv_dkv_compute), false},         \
        {prefix "sa_block_q_dq", KIND_INT, AT(blocks[index].block_q_dq), false},                             \
    {                                                                                                        \
        prefix "sa_block_kv_dq", KIND_INT, AT(blocks[index].block_kv_dq), false                              \
    }
#define TILES(matrix, pass, prefix)                                                                          \
    {prefix "_batch_seq", KIND_INT, AT(gmm_blocks[matrix][pass].batch_seq), false},                          \
        {prefix "_embed_dim", KIND_INT, AT(gmm_blocks[matrix][pass].embed_dim), false},                      \
    {                                                                                                        \
        prefix "_mlp_dim", KIND_INT, AT(gmm_blocks[matrix][pass].mlp_dim), false                             \
    }

/* One row per key that is one member of the plan; the order is the order of the answer. */
static const struct row rows[] = {
    {"max_target_length", KIND_INT64, AT(seq_len), true},
    {"per_device_batch_size", KIND_DOUBLE, AT(per_device_batch_size), true},
    {"gradient_accumulation_steps", KIND_INT, AT(gradient_accumulation_steps), false},
    {"custom_mesh", KIND_CUSTOM_MESH, AT(custom_mesh), false},
    {"custom_mesh_and_rule", KIND_RULE, AT(rule), false},
    {"allow_split_physical_axes", KIND_BOOL, AT(allow_split_physical_axes), false},
    {"context_parallel_strategy", KIND_CP, AT(cp_strategy), false},
    {"context_parallel_load_balance", KIND_BOOL, AT(cp_load_balance), false},
    {"shard_optimizer_over_data", KIND_BOOL, AT(shard_optimizer_over_data), false},
    {"use_2d_fsdp_sharding", KIND_BOOL, AT(use_2d_fsdp_sharding), false},
    {"shard_exp_on_fsdp", KIND_BOOL, AT(shard_exp_on_fsdp), false},
    {"pipeline_parallel_layers", KIND_INT, AT(pipeline_layers), false},
    {"num_layers_per_pipeline_stage", KIND_INT, AT(layers_per_stage), false},
    {"num_pipeline_microbatches", KIND_INT, AT(pipeline_microbatches), false},
    {"pipeline_fsdp_ag_once", KIND_BOOL, AT(pipeline_fsdp_ag_once), false},
    {"pipeline_delay_activation_forwarding", KIND_BOOL, AT(pipeline_delay_activation_forwarding), false},
    {"scan_layers", KIND_BOOL, AT(scan_layers), false},
    {"dtype", KIND_FORMAT, AT(dtype), false},
    {"weight_dtype", KIND_FORMAT, AT(weight_dtype), false},
    {"grad_dtype", KIND_FORMAT, AT(grad_dtype), false},
    {"opt_type", KIND_OPTIMIZER, AT(optimizer), false},
    {"optimizer_memory_host_offload", KIND_BOOL, AT(optimizer_host_offload), false},
    {"parameter_memory_host_offload", KIND_BOOL, AT(parameter_host_offload), false},
    {"gradient_clipping_threshold", KIND_DOUBLE, AT(gradient_clipping_threshold), false},
    {"quantization", KIND_QUANT, AT(quantization), false},
    {"use_qwix_quantization", KIND_BOOL, AT(use_qwix), false},
    {"use_tokamax_splash", KIND_BOOL, AT(use_tokamax_splash), false},
    {"sa_use_fused_bwd_kernel", KIND_BOOL, AT(use_fused_bwd), false},
    {"use_splash_scheduler", KIND_BOOL, AT(use_splash_scheduler), false},
    {"use_max_logit_estimate", KIND_INT, AT(max_logit_estimate), false},
    {"dq_reduction_steps", KIND_INT, AT(dq_reduction_steps), false},
    {"float32_logits", KIND_BOOL, AT(float32_logits), false},
    {"sa_q_layout", KIND_LAYOUT, AT(q_layout), false},
    {"sa_k_layout", KIND_LAYOUT, AT(k_layout), false},
    {"sa_v_layout", KIND_LAYOUT, AT(v_layout), false},
    BLOCKS(0, ""),
    {"capacity_factor", KIND_DOUBLE, AT(capacity_factor), false},
    {"ragged_buffer_factor", KIND_DOUBLE, AT(ragged_buffer_factor), false},
    {"use_ring_of_experts", KIND_BOOL, AT(use_ring_of_experts), false},
    {"packing", KIND_BOOL, AT(packing), false},
    {"use_ragged_sort", KIND_BOOL, AT(use_ragged_sort), false},
    {"use_random_routing", KIND_BOOL, AT(use_random_routing), false},
    {"float32_weight_sum", KIND_BOOL, AT(float32_weight_sum), false},
    {"merge_gating_gmm", KIND_BOOL, AT(merge_gating_gmm), false},
    {"use_custom_sort_vjp", KIND_BOOL, AT(use_custom_sort_vjp), false},
    TILES(0, ADV_GMM_FWD, "wi_tile_fwd"),
    TILES(0, ADV_GMM_DLHS, "wi_tile_dlhs"),
    TILES(0, ADV_GMM_DRHS, "wi_tile_drhs"),
    TILES(1, ADV_GMM_FWD, "wo_tile_fwd"),
    TILES(1, ADV_GMM_DLHS, "wo_tile_dlhs"),
    TILES(1, ADV_GMM_DRHS, "wo_tile_drhs"),
    {"num_vocab_tiling", KIND_INT, AT(num_vocab_tiling), false},
    {"use_iota_embed", KIND_BOOL, AT(use_iota_embed), false},
    {"cast_logits_to_fp32", KIND_BOOL, AT(cast_logits_to_fp32), false},
    {"logits_dot_in_fp32", KIND_BOOL, AT(logits_dot_in_fp32), false},
    {"mtp_num_layers", KIND_INT, AT(mtp_layers), false},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* local_sa_* inherit the global value where unset, so they are compared with it, not with base.yml. */
static const struct row local_rows[] = {BLOCKS(1, "local_")};
enum { LOCAL_ROWS = sizeof local_rows / sizeof *local_rows };

static const void *member(const struct adv_plan *plan, const struct row *row)
{
    return (const char *)plan + row->offset;
}

static double number_of(const struct adv_plan *plan, const struct row *row)
{
    const void *at = member(plan, row);
    switch (row->kind) {
    case KIND_INT:
        return *(const int *)at;
    case KIND_INT64:
        return (double)*(const int64_t *)at;
    case KIND_DOUBLE:
        return *(const double *)at;
    case KIND_BOOL:
        return *(const bool *)at;
    case KIND_FORMAT:
        return (double)*(const enum adv_format *)at;
    case KIND_LAYOUT:
        return (double)*(const enum adv_layout *)at;
    case KIND_QUANT:
        return (double)*(const enum adv_quantization *)at;
    case KIND_OPTIMIZER:
        return (double)*(const enum adv_optimizer *)at;
    case KIND_CP:
        return (double)*(const enum adv_cp_strategy *)at;
    case KIND_RULE:
        return (double)*(const enum adv_mesh_rule *)at;
    case KIND_CUSTOM_MESH:
        return (double)*(const enum adv_custom_mesh *)at;
    }
    return 0;
}

static const char *name_of(const struct adv_plan *plan, const struct row *row)
{
    const void *at = member(plan, row);
    switch (row->kind) {
    case KIND_FORMAT:
        return adv_format_name(*(const enum adv_format *)at);
    case KIND_LAYOUT:
        return adv_layout_name(*(const enum adv_layout *)at);
    case KIND_QUANT:
        return adv_quantization_name(*(const enum adv_quantization *)at);
    case KIND_OPTIMIZER:
        return adv_optimizer_name(*(const enum adv_optimizer *)at);
    case KIND_CP:
        return adv_cp_strategy_name(*(const enum adv_cp_strategy *)at);
    case KIND_RULE:
        return adv_mesh_rule_name(*(const enum adv_mesh_rule *)at);
    case KIND_CUSTOM_MESH:
        return adv_custom_mesh_name(*(const enum adv_custom_mesh *)at);
    case KIND_INT:
    case KIND_INT64:
    case KIND_DOUBLE:
    case KIND_BOOL:
        break;
    }
    return NULL;
}

static bool differs(const struct adv_plan *plan, const struct adv_plan *from, const struct row *row)
{
    return number_of(plan, row) != number_of(from, row); /* exact: both sides are copied, never computed */
}

/* Where the answer is being written. */
struct writer {
    struct adv_arena *arena;
    struct adv_config *config;
    bool full;                    /* memory or keys exhausted */
    const struct adv_plan *other; /* when comparing: every key in which it may differ, defaults too */
    const struct adv_plan *goal;  /* when comparing: the one that the other is to become */
};

static void put_text(struct writer *writer, const char *key, const char *value_json)
{
    struct adv_config *config = writer->config;
    char *copy = adv_arena_copy(writer->arena, value_json);
    if (!copy || config->count >= ADV_LIMIT_CONFIG_KEYS) {
        writer->full = true;
        return;
    }
    config->entries[config->count++] = (struct adv_config_entry){key, copy};
}

ADV_PRINTF(3, 4)
static void put(struct writer *writer, const char *key, const char *format, ...)
{
    char value[ADV_LIMIT_NAME + 2];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof value) {
        writer->full = true;
        return;
    }
    put_text(writer, key, value);
}

/* Shortest of 15 or 17 digits that reads back as the same double; whole numbers without a point. */
static void put_double(struct writer *writer, const char *key, double value)
{
    char digits[40];
    if (fabs(value) < 1e15 && value == floor(value)) { /* most are */
        put(writer, key, "%lld", (long long)value);
        return;
    }
    snprintf(digits, sizeof digits, "%.15g", value);
    double back = 0;
    if (sscanf(digits, "%lf", &back) != 1 || back != value) snprintf(digits, sizeof digits, "%.17g", value);
    put_text(writer, key, digits);
}

static void put_row(struct writer *writer, const struct adv_plan *plan, const struct row *row)
{
    const char *name = name_of(plan, row);
    if (name)
        put(writer, row->key, "\"%s\"", name);
    else if (row->kind == KIND_BOOL)
        put_text(writer, row->key, *(const bool *)member(plan, row) ? "true" : "false");
    else
        put_double(writer, row->key, number_of(plan, row));
}

/* Is the row written, where `usual` goes without saying? */
static bool is_said(const struct writer *writer, const struct adv_plan *plan, const struct adv_plan *usual,
                    const struct row *row)
{
    return differs(plan, writer->other ? writer->other : usual, row);
}

static char *axis_key(struct writer *writer, const char *network, enum adv_axis axis)
{
    char key[ADV_LIMIT_NAME];
    snprintf(key, sizeof key, "%s_%s_parallelism", network, adv_axis_key(axis));
    char *copy = adv_arena_copy(writer->arena, key);
    if (!copy) writer->full = true;
    return copy;
}

/* Every degree above 1, and fsdp (ICI) and data (DCN) even at 1, because their default of -1 would fill up.
 */
static void put_mesh(struct writer *writer, const struct adv_plan *plan, const struct adv_cluster *cluster)
{
    for (int i = 0; i < ADV_AXIS_COUNT && !writer->full; i++) {
        enum adv_axis axis = (enum adv_axis)i;
        if (plan->ici[i] == 1 && axis != ADV_AXIS_FSDP && !writer->other) continue;
        if (writer->other && writer->other->ici[i] == plan->ici[i]) continue;
        char *key = axis_key(writer, "ici", axis);
        if (key) put(writer, key, "%d", plan->ici[i]);
    }
    for (int i = 0; i < ADV_AXIS_COUNT && cluster->slices > 1 && !writer->full; i++) {
        enum adv_axis axis = (enum adv_axis)i;
        if (plan->dcn[i] == 1 && axis != ADV_AXIS_DATA && !writer->other) continue;
        if (writer->other && writer->other->dcn[i] == plan->dcn[i]) continue;
        char *key = axis_key(writer, "dcn", axis);
        if (key) put(writer, key, "%d", plan->dcn[i]);
    }
}

static enum adv_placement usual_placement(int tensor)
{
    return tensor == ADV_TENSOR_DECODER_LAYER_INPUT ? ADV_PLACE_DEVICE : ADV_PLACE_REMAT;
}

/* What a tensor's own key says; under a preset MaxText does not look at it. */
static enum adv_placement said_placement(const struct adv_plan *plan, int tensor)
{
    return plan->policy == ADV_POLICY_CUSTOM ? plan->placements[tensor] : usual_placement(tensor);
}

static void put_remat(struct writer *writer, const struct adv_plan *plan)
{
    put(writer, "remat_policy", "\"%s\"", adv_policy_name(plan->policy));
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        enum adv_placement placement = said_placement(plan, i);
        if (placement == (writer->other ? said_placement(writer->other, i) : usual_placement(i))) continue;
        put(writer, adv_tensor_name((enum adv_tensor)i), "\"%s\"", adv_placement_name(placement));
    }
}

static void put_bool(struct writer *writer, const char *key, bool value, bool usual)
{
    if (value != usual || writer->other) put_text(writer, key, value ? "true" : "false");
}

/* Which grouped matmul: a choice of four keys. */
static void put_moe(struct writer *writer, const struct adv_plan *plan)
{
    put_bool(writer, "use_tokamax_gmm", plan->moe == ADV_MOE_TOKAMAX || plan->moe == ADV_MOE_GMM_V2, false);
    put_bool(writer, "use_gmm_v2", plan->moe == ADV_MOE_GMM_V2, false);
    enum adv_moe_impl goal = writer->goal ? writer->goal->moe : plan->moe;
    bool unread = goal == ADV_MOE_TOKAMAX || goal == ADV_MOE_GMM_V2; /* MaxText asks for these first */
    if (!unread) put_bool(writer, "megablox", plan->moe != ADV_MOE_RAGGED_DOT, true);
    put_bool(writer, "sparse_matmul", plan->moe != ADV_MOE_DENSE, true);
}

static bool has_experts(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) return true;
    return false;
}

static bool has_dense(const struct adv_model *model)
{
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].mlp_dim > 0 || model->layers[i].shared_experts > 0) return true;
    return false;
}

/* The keys that are not one member each: derived formats, calibration, attention, experts, local tiles. */
static void put_derived(struct writer *writer, const struct adv_plan *plan, const struct adv_model *model)
{
    put(writer, "attention", "\"%s\"", plan->attention == ADV_ATTENTION_IMPL_FLASH ? "flash" : "dot_product");
    if (plan->mu_dtype != plan->weight_dtype || writer->other)
        put(writer, "mu_dtype", "\"%s\"", adv_format_name(plan->mu_dtype));
    bool fixed = adv_plan_scales_are_fixed(plan);
    if (fixed || writer->other) {
        const char *method = fixed ? "\"fixed,-224,224\"" : "\"absmax\"";
        put_text(writer, "weight_quantization_calibration_method", method);
        put_text(writer, "act_quantization_calibration_method", method);
    }
    if (has_experts(model)) put_moe(writer, plan);
    if (has_experts(model))
        put_bool(writer, "moe_fsdp_use_two_stage_all_gather", plan->two_stage_gather, false);
    if (has_dense(model))
        put_bool(writer, "dense_fsdp_use_two_stage_all_gather", plan->two_stage_gather, false);
    struct adv_plan inherits = *plan;
    inherits.blocks[1] = plan->blocks[0];
    bool local = false;
    for (int i = 0; i < model->layer_kinds_count; i++) local = local || model->layers[i].window_tokens > 0;
    for (int i = 0; i < LOCAL_ROWS && local; i++)
        if (is_said(writer, plan, &inherits, &local_rows[i])) put_row(writer, plan, &local_rows[i]);
}

static void put_pins(struct writer *writer, const struct adv_pin *pins, int pins_count)
{
    for (int i = 0; i < pins_count; i++) {
        if (adv_emit_config_find(writer->config, pins[i].key)) continue;
        size_t length = strlen(pins[i].key);
        bool mesh = length > 12 && !strcmp(pins[i].key + length - 12, "_parallelism");
        if (!mesh)
            put_text(writer, pins[i].key, pins[i].value_json); /* degrees are written out by put_mesh */
    }
}

/* base.yml's tiles as the decoder would read them for this sequence. */
static void defaults_for(const struct adv_plan *plan, const struct adv_model *model,
                         struct adv_plan *defaults)
{
    adv_plan_defaults(defaults, model);
    defaults->seq_len = plan->seq_len;
    adv_plan_clamp_blocks(defaults);
}

static void put_plan(struct writer *writer, const struct adv_plan *plan, const struct adv_model *model,
                     const struct adv_cluster *cluster)
{
    struct adv_plan defaults;
    defaults_for(plan, model, &defaults);
    put_mesh(writer, plan, cluster);
    put_remat(writer, plan);
    for (int i = 0; i < ROWS; i++)
        if (rows[i].always || is_said(writer, plan, &defaults, &rows[i])) put_row(writer, plan, &rows[i]);
    put_derived(writer, plan, model);
}

static adv_code out_of_room(adv_err *err)
{
    return adv_err_add(err, ADV_E_MEMORY, "", NULL,
                       "the configuration has more than %d keys or the request's memory is used up",
                       ADV_LIMIT_CONFIG_KEYS);
}

adv_code adv_emit_config(const struct adv_plan *plan, const struct adv_model *model,
                         const struct adv_cluster *cluster, const struct adv_pin *pins, int pins_count,
                         struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    config->count = 0;
    struct writer writer = {.arena = arena, .config = config};
    if (adv_emit_model_keys(model, arena, config) != ADV_OK) writer.full = true;
    put_plan(&writer, plan, model, cluster);
    put_pins(&writer, pins, pins_count);
    return writer.full ? out_of_room(err) : ADV_OK;
}

/* Two plans with all keys in which they may differ, the same keys in the same order. */
struct pair {
    const struct adv_config *from, *to;
};

static const struct adv_config *write_beside(const struct adv_plan *plan, const struct adv_plan *other,
                                             const struct adv_plan *goal, const struct adv_model *model,
                                             const struct adv_cluster *cluster, struct adv_arena *arena)
{
    struct adv_config *config = adv_arena_alloc(arena, sizeof *config);
    struct writer writer = {arena, config, false, other, goal};
    if (!config) return NULL;
    put_plan(&writer, plan, model, cluster);
    return writer.full ? NULL : config;
}

/* False: out of room. */
static bool write_pair(const struct adv_plan *from, const struct adv_plan *to, const struct adv_model *model,
                       const struct adv_cluster *cluster, struct adv_arena *arena, struct pair *pair)
{
    pair->from = write_beside(from, to, to, model, cluster, arena);
    pair->to = write_beside(to, from, to, model, cluster, arena);
    return pair->from && pair->to;
}

static bool is_alike(const struct pair *pair, int i)
{
    return strcmp(pair->from->entries[i].value_json, pair->to->entries[i].value_json) == 0;
}

static int differing(const struct pair *pair, struct adv_config_change *changes, int capacity)
{
    int count = 0;
    for (int i = 0; i < pair->to->count && count < capacity; i++)
        if (!is_alike(pair, i))
            changes[count++] = (struct adv_config_change){
                pair->to->entries[i].key, pair->from->entries[i].value_json, pair->to->entries[i].value_json};
    return count;
}

adv_code adv_emit_changes(const struct adv_plan *before, const struct adv_plan *after,
                          const struct adv_model *model, const struct adv_cluster *cluster,
                          struct adv_arena *arena, struct adv_config_change *changes, int capacity,
                          int *changes_count, adv_err *err)
{
    struct pair pair;
    *changes_count = 0;
    if (!write_pair(before, after, model, cluster, arena, &pair)) return out_of_room(err);
    *changes_count = differing(&pair, changes, capacity);
    return ADV_OK;
}

static bool among(const struct adv_config_change *changes, int count, const char *key)
{
    for (int i = 0; i < count; i++)
        if (!strcmp(changes[i].key, key)) return true;
    return false;
}

adv_code adv_emit_changes_over(const struct adv_reread *reread, const struct adv_plan *before,
                               const struct adv_plan *after, const struct adv_model *model,
                               const struct adv_cluster *cluster, struct adv_arena *arena,
                               struct adv_config_change *changes, int capacity, int *changes_count,
                               bool *exact, adv_err *err)
{
    enum { ROUNDS = 4 }; /* a key set for another may wake a third */
    struct pair pair, left;
    *changes_count = 0;
    *exact = false;
    if (!write_pair(before, after, model, cluster, arena, &pair)) return out_of_room(err);
    *changes_count = differing(&pair, changes, capacity);
    for (int round = 0; round < ROUNDS; round++) {
        struct adv_plan read;
        if (!reread->read(reread->configuration, changes, *changes_count, &read)) return ADV_OK;
        read.flags = after->flags; /* not read here */
        /* padding only costs the comparison of keys. NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        *exact = memcmp(&read, after, sizeof read) == 0;
        if (*exact) return ADV_OK;
        if (!write_pair(&read, after, model, cluster, arena, &left)) return out_of_room(err);
        int added = 0;
        *exact = true;
        for (int i = 0; i < left.to->count; i++) {
            const struct adv_config_entry *wanted = &left.to->entries[i];
            if (is_alike(&left, i)) continue;
            *exact = false;
            if (*changes_count == capacity || among(changes, *changes_count, wanted->key)) continue;
            const char *from = adv_emit_config_find(pair.from, wanted->key);
            changes[(*changes_count)++] = (struct adv_config_change){
                wanted->key, from ? from : wanted->value_json /* alike in both plans */, wanted->value_json};
            added++;
        }
        if (added == 0) return ADV_OK;
    }
    *exact = false;
    return ADV_OK;
}

static size_t bytes_of(enum kind kind)
{
    if (kind == KIND_INT64) return sizeof(int64_t);
    if (kind == KIND_DOUBLE) return sizeof(double);
    return kind == KIND_BOOL ? sizeof(bool) : sizeof(int); /* enums too */
}

static void copy_row(const struct row *row, const struct adv_plan *from, struct adv_plan *plan)
{
    memcpy((char *)plan + row->offset, (const char *)from + row->offset, bytes_of(row->kind));
}

static bool copy_degree(const char *key, const struct adv_plan *from, struct adv_plan *plan)
{
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        char name[ADV_LIMIT_NAME];
        snprintf(name, sizeof name, "_%s_parallelism", adv_axis_key((enum adv_axis)i));
        if (strcmp(key + 3, name) != 0) continue;
        if (key[0] == 'i')
            plan->ici[i] = from->ici[i];
        else
            plan->dcn[i] = from->dcn[i];
        return true;
    }
    return false;
}

static bool copy_derived(const char *key, const struct adv_plan *from, struct adv_plan *plan)
{
    if (!strcmp(key, "attention"))
        plan->attention = from->attention;
    else if (!strcmp(key, "mu_dtype"))
        plan->mu_dtype = from->mu_dtype;
    else if (strstr(key, "_quantization_calibration_method"))
        plan->quantization_static = from->quantization_static;
    else if (!strcmp(key, "use_tokamax_gmm") || !strcmp(key, "use_gmm_v2") || !strcmp(key, "megablox") ||
             !strcmp(key, "sparse_matmul"))
        plan->moe = from->moe; /* four keys say one choice */
    else if (strstr(key, "_fsdp_use_two_stage_all_gather"))
        plan->two_stage_gather = from->two_stage_gather;
    else
        return false;
    return true;
}

bool adv_emit_copy_key(const char *key, const struct adv_plan *from, struct adv_plan *plan)
{
    if (!strcmp(key, "remat_policy")) {
        plan->policy = from->policy;
        adv_policy_placements(plan->policy, plan->placements);
        return true;
    }
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        if (strcmp(key, adv_tensor_name((enum adv_tensor)i)) != 0) continue;
        if (plan->policy == ADV_POLICY_CUSTOM) plan->placements[i] = from->placements[i];
        return true; /* under a preset it says nothing */
    }
    if (!strncmp(key, "ici_", 4) || !strncmp(key, "dcn_", 4)) return copy_degree(key, from, plan);
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(key, rows[i].key) != 0) continue;
        for (int k = 0; k < LOCAL_ROWS; k++) {
            bool same_block = !strcmp(local_rows[k].key + strlen("local_"), key);
            if (same_block && number_of(plan, &local_rows[k]) == number_of(plan, &rows[i]))
                memcpy((char *)plan + local_rows[k].offset, (const char *)from + rows[i].offset, sizeof(int));
        }
        copy_row(&rows[i], from, plan);
        return true;
    }
    for (int i = 0; i < LOCAL_ROWS; i++) {
        if (strcmp(key, local_rows[i].key) != 0) continue;
        copy_row(&local_rows[i], from, plan);
        return true;
    }
    return copy_derived(key, from, plan);
}

const char *adv_emit_config_find(const struct adv_config *config, const char *key)
{
    for (int i = 0; i < config->count; i++)
        if (!strcmp(config->entries[i].key, key)) return config->entries[i].value_json;
    return NULL;
}

int adv_emit_config_changes_count(const struct adv_plan *plan, const struct adv_model *model)
{
    struct adv_plan defaults;
    defaults_for(plan, model, &defaults);
    int count = adv_emit_config_axes_count(plan) + (plan->policy != ADV_POLICY_FULL);
    for (int i = 0; i < ROWS; i++) {
        bool tuned =
            strstr(rows[i].key, "sa_block") || strstr(rows[i].key, "_tile_") || rows[i].kind == KIND_LAYOUT;
        count += !tuned && !rows[i].always && differs(plan, &defaults, &rows[i]);
    }
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) count += said_placement(plan, i) != usual_placement(i);
    return count + (plan->moe != ADV_MOE_MEGABLOX);
}
