#include "engine/cost/layer_memory.h"

#include <math.h>

#include "engine/base/units.h"
#include "engine/cost/projections.h"
#include "engine/cost/scratch.h"

double adv_memory_lanes(double elements)
{
    static const double row_lanes = 128.0;
    return ceil(elements / row_lanes) * row_lanes;
}

/* Lists a tensor of two names. */
static void add_either(struct adv_saved_tensors *to, enum adv_tensor name, enum adv_tensor other,
                       double bytes)
{
    const bool is_routed = name >= ADV_TENSOR_MOE_MLPWI_0 && name <= ADV_TENSOR_MOE_MLPWO;
    to->tensors[to->count++] = (struct adv_saved_tensor){name, other, bytes, is_routed ? bytes : 0.0};
}

static void add(struct adv_saved_tensors *to, enum adv_tensor name, double bytes)
{
    add_either(to, name, name, bytes);
}

double adv_memory_routed_growth(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const struct adv_plan *plan = cost->plan;
    if (cost->ep <= 1 || plan->family.moe == ADV_MOE_DENSE) return 1.0;
    if (plan->family.ragged_buffer_factor > 0.0) return plan->family.ragged_buffer_factor;
    if (plan->family.use_ring_of_experts) return cost->ep;
    return adv_min(cost->ep, adv_max(1.0, (double)layer->experts / layer->experts_per_token));
}

/* Columns that a kept head takes. The attention kernel decides: with HEAD_DIM_MINOR it reads rows of
 * head_dim, which fill lanes; with SEQ_MINOR the sequence lies along the lanes, and nothing is padded. Seen
 * in all but one of 75 compiled stacks of 64 or 192 columns. */
static double head_columns(const struct adv_cost *cost, enum adv_layout layout, double head_dim)
{
    const bool rows =
        cost->plan->family.attention == ADV_ATTENTION_IMPL_FLASH && layout == ADV_LAYOUT_HEAD_DIM_MINOR;
    return rows ? adv_memory_lanes(head_dim) : head_dim;
}

/* The same of keys and values. Those of context shards meet before the kernel reads them. */
static double key_columns(const struct adv_cost *cost, enum adv_layout layout, double head_dim)
{
    return cost->cp_ring > 1 ? head_dim : head_columns(cost, layout, head_dim);
}

static void add_attention(const struct adv_cost *cost, const struct adv_layer *layer,
                          struct adv_saved_tensors *to)
{
    const struct adv_plan_family *family = &cost->plan->family;
    double t = cost->tokens;
    double heads = layer->q_heads;
    const double value_columns = key_columns(cost, family->v_layout, layer->head_dim_v);
    /* the kernel writes [heads, tokens, head_dim] */
    double context = t * (2.0 * heads * adv_memory_lanes(layer->head_dim_v) + 4.0 * heads);
    add(to, ADV_TENSOR_QUERY_PROJ,
        t * 2.0 * heads * head_columns(cost, family->q_layout, layer->head_dim_qk));
    if (cost->plan->family.attention == ADV_ATTENTION_IMPL_FLASH) add(to, ADV_TENSOR_CONTEXT, context);
    if (cost->model->decoder != ADV_DECODER_GPT3)
        add(to, ADV_TENSOR_ATTENTION_OUT, t * 2.0 * heads * layer->head_dim_v);
    add(to, ADV_TENSOR_OUT_PROJ, t * 2.0 * (double)layer->attention_output_dim);
    if (layer->kv_lora_rank > 0) {
        double qk = layer->qk_nope_head_dim + layer->qk_rope_head_dim;
        add(to, ADV_TENSOR_QUERY_WA_PROJ, t * 2.0 * layer->q_lora_rank);
        add(to, ADV_TENSOR_MLA_Q, t * 2.0 * layer->q_lora_rank);
        add(to, ADV_TENSOR_KV_WA_PROJ, t * 2.0 * (layer->kv_lora_rank + layer->qk_rope_head_dim));
        add(to, ADV_TENSOR_MLA_KV, t * 2.0 * layer->kv_lora_rank);
        add(to, ADV_TENSOR_KEY_PROJ, t * 2.0 * heads * key_columns(cost, family->k_layout, qk));
        add(to, ADV_TENSOR_VALUE_PROJ, t * 2.0 * heads * value_columns);
        return;
    }
    if (layer->reuses_kv) return;
    if (layer->attention == ADV_ATTENTION_COMPRESSED) {
        add(to, ADV_TENSOR_KV_PROJ, t * 2.0 * layer->kv_heads * layer->head_dim_qk);
        return;
    }
    add(to, ADV_TENSOR_KEY_PROJ,
        t * 2.0 * layer->kv_heads * key_columns(cost, family->k_layout, layer->head_dim_qk));
    add(to, ADV_TENSOR_VALUE_PROJ, t * 2.0 * layer->kv_heads * value_columns);
}

int adv_memory_unpad_heads(const struct adv_model *model, struct adv_plan *plan)
{
    const struct {
        enum adv_tensor tensor;
        enum adv_layout *layout;
        bool is_value;
    } kept[] = {{ADV_TENSOR_QUERY_PROJ, &plan->family.q_layout, false},
                {ADV_TENSOR_KEY_PROJ, &plan->family.k_layout, false},
                {ADV_TENSOR_VALUE_PROJ, &plan->family.v_layout, true}};
    int widest = 0;
    if (plan->family.attention != ADV_ATTENTION_IMPL_FLASH) return 0;
    for (size_t t = 0; t < sizeof kept / sizeof *kept; t++) {
        int columns = 0;
        for (int i = 0; i < model->layer_kinds_count; i++) {
            const struct adv_layer *layer = &model->layers[i];
            const int head_dim = kept[t].is_value ? layer->head_dim_v : layer->head_dim_qk;
            if (layer->attention != ADV_ATTENTION_LINEAR && head_dim < adv_memory_lanes(head_dim))
                columns = head_dim;
        }
        if (columns == 0 || *kept[t].layout == ADV_LAYOUT_SEQ_MINOR ||
            plan->placements[kept[t].tensor] == ADV_PLACE_REMAT)
            continue;
        *kept[t].layout = ADV_LAYOUT_SEQ_MINOR;
        widest = columns > widest ? columns : widest;
    }
    return widest;
}

static void add_dense(const struct adv_cost *cost, const struct adv_layer *layer, double width,
                      struct adv_saved_tensors *to)
{
    double bytes = 2.0 * width * cost->tokens;
    if (layer->mlp_inputs == 2) {
        add(to, ADV_TENSOR_MLPWI_0, bytes);
        add(to, ADV_TENSOR_MLPWI_1, bytes);
    } else {
        add(to, ADV_TENSOR_MLPWI, bytes);
    }
    if (layer->has_post_ffw_norm)
        add(to, ADV_TENSOR_MLPWO, 2.0 * (double)cost->model->emb_dim * cost->tokens);
}

static void add_experts(const struct adv_cost *cost, const struct adv_layer *layer,
                        struct adv_saved_tensors *to)
{
    const struct adv_plan *plan = cost->plan;
    bool grouped = plan->family.moe != ADV_MOE_DENSE;
    double rows = cost->tokens * layer->experts_per_token * adv_memory_routed_growth(cost, layer);
    if (!grouped)
        rows = plan->family.capacity_factor > 0.0 ? rows * plan->family.capacity_factor
                                                  : cost->tokens * layer->experts;
    /* tensor axes cut the columns, and the tokens of their group meet */
    double wide = 2.0 * cost->tp * adv_memory_lanes((double)layer->moe_mlp_dim / cost->tp) * rows;
    /* all of them carry both names, but for the second input of grouped matmuls */
    add_either(to, ADV_TENSOR_MOE_MLPWI_0, ADV_TENSOR_MLPWI_0, wide);
    add_either(to, ADV_TENSOR_MOE_MLPWI_1, grouped ? ADV_TENSOR_MOE_MLPWI_1 : ADV_TENSOR_MLPWI_1, wide);
    add_either(to, ADV_TENSOR_MOE_MLPWO, ADV_TENSOR_MLPWO,
               2.0 * adv_memory_lanes((double)layer->moe_input_dim) * rows);
}

static void list_tensors(const struct adv_cost *cost, const struct adv_layer *layer,
                         struct adv_saved_tensors *to)
{
    to->known = true;
    to->count = 0;
    if (layer->attention != ADV_ATTENTION_LINEAR) add_attention(cost, layer, to); /* else it names none */
    if (layer->mlp_dim > 0) add_dense(cost, layer, (double)layer->mlp_dim, to);
    if (layer->shared_experts > 0) add_dense(cost, layer, (double)layer->shared_mlp_dim, to);
    if (layer->experts > 0) add_experts(cost, layer, to);
}

struct adv_saved_input adv_memory_saved_input(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const enum adv_placement place = adv_remat_place(cost->places, ADV_TENSOR_DECODER_LAYER_INPUT);
    const bool each = layer->input_names == ADV_INPUTS_NAMED_EACH &&
                      (place != ADV_PLACE_REMAT || !cost->plan->family.scan_layers);
    return (struct adv_saved_input){.bytes = 2.0 * (double)cost->model->emb_dim * cost->tokens /
                                             (each ? 1.0 : adv_max(1.0, layer->remat_block)),
                                    .on_host = place == ADV_PLACE_OFFLOAD &&
                                               layer->input_names != ADV_INPUTS_UNNAMED};
}

/* XLA takes a loop of one iteration away, and with it the way to the host and back (deepseek2's dense layer).
 * For the one full-attention layer of gemma4's and qwen3-next's blocks MaxText itself keeps on the device
 * what a policy offloads. */
static bool has_no_loop(const struct adv_cost *cost, const struct adv_layer *layer)
{
    return cost->plan->family.scan_layers &&
           (layer->loops_alone || (layer->count == 1 && layer->scan_block <= 1));
}

static struct adv_saved add_up(const struct adv_cost *cost, const struct adv_layer *layer,
                               const struct adv_saved_tensors *list)
{
    struct adv_saved saved = {{0.0}, 0.0};
    const struct adv_saved_input input = adv_memory_saved_input(cost, layer);
    saved.bytes[input.on_host ? ADV_PLACE_OFFLOAD : ADV_PLACE_DEVICE] += input.bytes;
    for (int i = 0; i < list->count; i++) {
        const struct adv_saved_tensor *tensor = &list->tensors[i];
        enum adv_placement place = adv_remat_place(cost->places, tensor->name);
        if (place == ADV_PLACE_REMAT) place = adv_remat_place(cost->places, tensor->other);
        saved.bytes[place] += tensor->bytes;
        if (place == ADV_PLACE_DEVICE) saved.routed_device_bytes += tensor->routed_bytes;
    }
    if (has_no_loop(cost, layer)) {
        saved.bytes[ADV_PLACE_DEVICE] += saved.bytes[ADV_PLACE_OFFLOAD];
        saved.bytes[ADV_PLACE_OFFLOAD] = 0.0;
    }
    return saved;
}

struct adv_saved adv_memory_layer_saved(const struct adv_cost *cost, const struct adv_layer *layer)
{
    struct adv_cost_scratch *scratch = cost->scratch;
    const int kind = adv_cost_kind(cost, layer);
    struct adv_saved_tensors fresh, *list = scratch ? &scratch->tensors[kind] : &fresh;
    if (scratch && scratch->saved_known[kind]) return scratch->saved[kind];
    if (!scratch || !list->known) list_tensors(cost, layer, list);
    const struct adv_saved saved = add_up(cost, layer, list);
    if (!scratch) return saved;
    scratch->saved_known[kind] = true;
    scratch->saved[kind] = saved;
    return saved;
}
