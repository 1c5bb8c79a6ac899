/* plan_names.c: which tensors MaxText's decoder layers name, for a remat policy to place. Held to what
 * MaxText itself says of each family (tests/compile/names.py). */
#include "engine/spec/plan.h"

#define NAMED(tensor) (UINT32_C(1) << ADV_TENSOR_##tensor)

static uint32_t named_by_attention(const struct adv_plan *plan, const struct adv_model *model,
                                   const struct adv_layer *layer)
{
    if (layer->attention == ADV_ATTENTION_LINEAR) return 0; /* a gated delta net names nothing */
    uint32_t names = NAMED(QUERY_PROJ) | NAMED(OUT_PROJ);
    /* gpt3 has an attention of its own, whose one projection makes all three */
    names |= model->decoder == ADV_DECODER_GPT3 ? NAMED(QKV_PROJ) : NAMED(ATTENTION_OUT);
    /* a kernel names its results; of plain products nothing has this name */
    if (plan->family.attention == ADV_ATTENTION_IMPL_FLASH) names |= NAMED(CONTEXT);
    if (layer->attention == ADV_ATTENTION_COMPRESSED) return names | NAMED(KV_PROJ); /* one for both */
    names |= NAMED(KEY_PROJ) | NAMED(VALUE_PROJ);
    if (layer->kv_lora_rank > 0) names |= NAMED(KV_WA_PROJ) | NAMED(MLA_KV);
    if (layer->q_lora_rank > 0) names |= NAMED(QUERY_WA_PROJ) | NAMED(MLA_Q);
    return names;
}

static uint32_t named_by_feed_forward(const struct adv_plan *plan, const struct adv_layer *layer)
{
    uint32_t names = 0;
    if (layer->mlp_dim > 0 || layer->shared_experts > 0)
        names |= NAMED(MLPWO) | (layer->mlp_inputs == 2 ? NAMED(MLPWI_0) | NAMED(MLPWI_1) : NAMED(MLPWI));
    if (layer->experts == 0) return names;
    /* every tensor of routed experts has two names, but for the second input of grouped matmuls */
    if (plan->family.moe == ADV_MOE_DENSE) names |= NAMED(MLPWI_1);
    return names | NAMED(MLPWI_0) | NAMED(MLPWO) | NAMED(MOE_MLPWI_0) | NAMED(MOE_MLPWI_1) | NAMED(MOE_MLPWO);
}

uint32_t adv_plan_named_tensors(const struct adv_plan *plan, const struct adv_model *model)
{
    uint32_t names = 0;
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        names |= named_by_attention(plan, model, layer) | named_by_feed_forward(plan, layer);
        if (layer->input_names != ADV_INPUTS_UNNAMED) names |= NAMED(DECODER_LAYER_INPUT);
    }
    return names;
}

bool adv_plan_reads_tensor(const struct adv_model *model, enum adv_tensor tensor)
{
    bool reads = tensor != ADV_TENSOR_MLPWO;
    for (int i = 0; i < model->layer_kinds_count; i++)
        reads |= model->layers[i].experts > 0 || model->layers[i].has_post_ffw_norm;
    return reads;
}
