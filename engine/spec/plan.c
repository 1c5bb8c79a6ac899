#include "engine/spec/plan.h"

#include <math.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/base/units.h"

#define KEY(id, key, mesh)  key,
#define MESH(id, key, mesh) mesh,
#define NAME(id, name)      name,
ADV_NAMES(adv_axis_key, enum adv_axis, ADV_AXIS_TABLE(KEY))
ADV_NAMES(adv_axis_mesh, enum adv_axis, ADV_AXIS_TABLE(MESH))
ADV_NAMES(adv_tensor_name, enum adv_tensor, ADV_TENSOR_TABLE(NAME))
ADV_NAMES(adv_policy_name, enum adv_policy, ADV_POLICY_TABLE(NAME))
ADV_NAMES(adv_placement_name, enum adv_placement, "remat", "device", "offload")
ADV_NAMES(adv_format_name, enum adv_format, "float32", "bfloat16", "float8", "int8")
ADV_NAMES(adv_quantization_name, enum adv_quantization, "", "int8", "fp8", "fp8_full")
ADV_NAMES(adv_cp_strategy_name, enum adv_cp_strategy, "all_gather", "ring", "ulysses", "usp")
ADV_NAMES(adv_custom_mesh_name, enum adv_custom_mesh, "", "hybrid_ring_64x4", "hybrid_ring_32x8")
ADV_NAMES(adv_layout_name, enum adv_layout, "HEAD_DIM_MINOR", "HEAD_DIM_MINOR", "SEQ_MINOR")

void adv_plan_axes_text(const int degrees[ADV_AXIS_COUNT], const char *none, char *text, size_t text_bytes)
{
    text[0] = '\0';
    for (int i = 0; i < ADV_AXIS_COUNT; i++)
        if (degrees[i] != 1)
            adv_append(text, text_bytes, "%s%s %d", text[0] ? " x " : "", adv_axis_key((enum adv_axis)i),
                       degrees[i]);
    if (!text[0]) adv_append(text, text_bytes, "%s", none);
}

bool adv_quantization_pays(enum adv_quantization quantization, const struct adv_chip *chip)
{
    if (quantization == ADV_QUANT_NONE) return true;
    double peak = quantization == ADV_QUANT_INT8 ? chip->peak_int8_ops_per_s_per_chip
                                                 : chip->peak_fp8_flops_per_s_per_chip;
    return peak > chip->peak_bf16_flops_per_s_per_chip; /* no rate of its own: NAN */
}

#define BIT(tensor) (1u << ADV_TENSOR_##tensor)
#define QKV         (BIT(QUERY_PROJ) | BIT(KEY_PROJ) | BIT(VALUE_PROJ) | BIT(KV_PROJ) | BIT(QKV_PROJ))
#define MLP         (BIT(MLPWI) | BIT(MLPWI_0) | BIT(MLPWI_1) | BIT(MLPWO))

/* Names each preset keeps. Source: MaxText decoders' get_remat_policy; minimal_offloaded leaves context out.
 */
static const struct {
    unsigned device, offload;
} policy_rows[ADV_POLICY_COUNT] = {
    [ADV_POLICY_SAVE_OUT_PROJ] = {BIT(OUT_PROJ), 0},
    [ADV_POLICY_SAVE_QKV_PROJ] = {QKV, 0},
    [ADV_POLICY_SAVE_DOT_EXCEPT_MLP] = {QKV | BIT(OUT_PROJ), 0},
    [ADV_POLICY_SAVE_DOT_EXCEPT_MLPWI] = {QKV | BIT(OUT_PROJ) | BIT(MLPWO), 0},
    [ADV_POLICY_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP] = {QKV | BIT(CONTEXT) | BIT(OUT_PROJ), 0},
    [ADV_POLICY_MINIMAL] = {QKV | BIT(OUT_PROJ) | MLP, 0},
    [ADV_POLICY_MINIMAL_WITH_CONTEXT] = {QKV | BIT(OUT_PROJ) | MLP | BIT(CONTEXT), 0},
    [ADV_POLICY_QKV_PROJ_OFFLOADED] = {0, QKV & ~BIT(QKV_PROJ)},
    [ADV_POLICY_MINIMAL_OFFLOADED] = {0, QKV | BIT(OUT_PROJ) | MLP},
};

void adv_policy_placements(enum adv_policy policy, enum adv_placement placements[ADV_TENSOR_COUNT])
{
    unsigned device = policy_rows[policy].device;
    if (policy == ADV_POLICY_CUSTOM) device |= BIT(DECODER_LAYER_INPUT);
    unsigned offload = policy_rows[policy].offload;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++) {
        placements[i] = offload & (1u << i)  ? ADV_PLACE_OFFLOAD
                        : device & (1u << i) ? ADV_PLACE_DEVICE
                                             : ADV_PLACE_REMAT;
    }
}

static int clamp_block(int block, int64_t length)
{
    return (int64_t)block > length ? (int)length : block;
}

void adv_plan_clamp_blocks(struct adv_plan *plan)
{
    for (int i = 0; i < 2; i++) {
        struct adv_splash_blocks *blocks = &plan->family.blocks[i];
        int *const all[] = {
            &blocks->block_q,     &blocks->block_kv,     &blocks->block_kv_compute,
            &blocks->block_q_dkv, &blocks->block_kv_dkv, &blocks->block_kv_dkv_compute,
            &blocks->block_q_dq,  &blocks->block_kv_dq,
        };
        for (size_t k = 0; k < sizeof all / sizeof *all; k++)
            *all[k] = clamp_block(*all[k], plan->family.seq_len);
    }
}

int adv_plan_pipelined_layers(const struct adv_plan *plan, const struct adv_model *model)
{
    if (plan->family.pipeline_layers >= 1) return plan->family.pipeline_layers;
    int layers = model->layers_count;
    for (int i = 0; model->decoder == ADV_DECODER_DEEPSEEK && i < model->layer_kinds_count; i++)
        if (model->layers[i].experts == 0) layers -= model->layers[i].count;
    return layers;
}

double adv_plan_pipeline_rounds(const struct adv_plan *plan, const struct adv_model *model)
{
    double stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    double layers_per_stage = adv_max(1.0, plan->family.layers_per_stage);
    return adv_max(1.0, adv_plan_pipelined_layers(plan, model) / (stages * layers_per_stage));
}

double adv_plan_global_batch(const struct adv_plan *plan, const struct adv_cluster *cluster)
{
    /* MaxText: int(devices * per_device_batch_size) sequences a microstep; the guard absorbs decimal
     * fractions. */
    return floor(plan->family.per_device_batch_size * cluster->devices + 1e-6) *
           plan->family.gradient_accumulation_steps;
}

int adv_plan_sequence_shards(const struct adv_plan *plan)
{
    const int experts = plan->family.rule == ADV_RULE_EP_AS_CP ? adv_plan_degree(plan, ADV_AXIS_EXPERT) : 1;
    return adv_plan_degree(plan, ADV_AXIS_CONTEXT) * experts;
}

int adv_plan_weight_shards(const struct adv_plan *plan)
{
    static const enum adv_axis sharding[] = {
        ADV_AXIS_STAGE,   ADV_AXIS_FSDP,   ADV_AXIS_FSDP_TRANSPOSE,  ADV_AXIS_CONTEXT,
        ADV_AXIS_ULYSSES, ADV_AXIS_TENSOR, ADV_AXIS_TENSOR_SEQUENCE, ADV_AXIS_AUTOREGRESSIVE,
    };
    int shards = 1;
    for (size_t i = 0; i < sizeof sharding / sizeof *sharding; i++)
        shards *= adv_plan_degree(plan, sharding[i]);
    return plan->family.rule == ADV_RULE_EP_AS_DP ? shards : shards * adv_plan_degree(plan, ADV_AXIS_EXPERT);
}

int adv_plan_expert_shards(const struct adv_plan *plan)
{
    int experts = adv_plan_degree(plan, ADV_AXIS_EXPERT);
    int shards = adv_plan_weight_shards(plan);
    if (plan->family.rule == ADV_RULE_EP_AS_DP) shards *= experts;
    /* Under the default rules shard_exp_on_fsdp takes the expert dimension away from the expert axis. */
    bool loses_expert_axis = plan->family.shard_exp_on_fsdp && plan->family.rule == ADV_RULE_DEFAULT;
    return loses_expert_axis ? shards / experts : shards;
}

const struct adv_layer *adv_plan_uncountable(const struct adv_plan *plan, const struct adv_model *model)
{
    const double tokens = adv_plan_tokens_met(plan);
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (tokens * model->layers[i].experts_per_token > ADV_PLAN_ROWS_MAX) return &model->layers[i];
    return NULL;
}

bool adv_plan_one_hot_is_whole(const struct adv_plan *plan)
{
    const int stages = adv_plan_degree(plan, ADV_AXIS_STAGE);
    const int shards = adv_plan_degree(plan, ADV_AXIS_FSDP) * adv_plan_degree(plan, ADV_AXIS_FSDP_TRANSPOSE);
    return plan->family.use_iota_embed && stages > 1 && shards > 1 &&
           plan->family.pipeline_microbatches > stages;
}
