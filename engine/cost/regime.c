#include "engine/cost/regime.h"

#include <math.h>

#include "engine/base/units.h"

static const double lanes = 128.0; /* elements of a row of vector memory */

/* XLA's own reckoning (spmd/dot_handler.cc under choose_faster_windowed_einsum_over_mem; read off its log
 * with libtpu 0.0.50.1): a loop that multiplies by one shard while the next arrives over one ring takes as
 * long as the longer of both, and the first and the last shard besides; without a loop it is both after each
 * other, over the rings of all axes that wrap. In units of the transfer over one ring. */
static bool loop_pays(const struct adv_cost *cost, const struct adv_group *group, double flops_per_byte)
{
    const struct adv_constants *k = cost->constants;
    if (group->devices <= 1 || group->devices > (int)k->windowed_devices_most) return false;
    double wraps = 0.0;
    for (int i = 0; i < group->rings_count; i++) wraps += group->rings[i].wraps;
    const double multiply = flops_per_byte * k->windowed_bytes_per_flop, transfer = 1.0;
    return adv_max(multiply, transfer) + 2.0 * transfer / group->devices <
           multiply + transfer / adv_max(1.0, wraps);
}

bool adv_memory_windowed(const struct adv_cost *cost)
{
    const double groups = (double)cost->dp * cost->plan->family.dcn[ADV_AXIS_DATA];
    if (groups > 1.0 || cost->plan->flags.collective_matmul_disabled == 1) return false;
    const double flops_per_weight_byte = cost->tokens * cost->tp; /* two of each weight in bf16 */
    return loop_pays(cost, &cost->dense_group, flops_per_weight_byte);
}

bool adv_memory_tensor_windowed(const struct adv_cost *cost, const struct adv_layer *layer)
{
    const double attention = (double)layer->q_heads * layer->head_dim_qk;
    const double width = layer->mlp_dim > 0 ? (double)layer->mlp_dim : attention;
    return cost->plan->flags.collective_matmul_disabled != 1 &&
           loop_pays(cost, &cost->tensor_group, width / cost->tp);
}

bool adv_memory_peels_loops(const struct adv_cost *cost)
{
    return cost->offloads && cost->plan->family.scan_layers &&
           cost->plan->flags.host_transfer_pipelining != 0;
}

bool adv_memory_begins_twice(const struct adv_cost *cost)
{
    if (!adv_memory_crosses_slices(cost) || !adv_memory_peels_loops(cost)) return false;
    for (int i = 0; i < cost->model->layer_kinds_count; i++)
        if (adv_memory_in_block(cost, &cost->model->layers[i])) return false;
    return true;
}

double adv_memory_blocks_in_turn(const struct adv_cost *cost)
{
    const struct adv_model *model = cost->model;
    if (!cost->plan->family.scan_layers) return 1.0; /* no loops at all */
    for (int i = 0; i < model->layer_kinds_count; i++) {
        const struct adv_layer *layer = &model->layers[i];
        if (layer->loops_alone && layer->scan_block <= 1) return adv_max(1.0, layer->count / cost->stages);
    }
    return 1.0;
}

bool adv_memory_fills_lanes(const struct adv_cost *cost)
{
    const double columns = (double)cost->model->emb_dim * cost->tp * cost->stages / cost->weight_shards;
    return !adv_memory_windowed(cost) || fmod(columns, lanes) == 0.0;
}

static bool has_query_key_norms(const struct adv_model *model)
{
    bool has = false;
    for (int i = 0; i < model->layer_kinds_count; i++) has |= model->layers[i].has_qk_norm;
    return has;
}

static bool has_wide_heads(const struct adv_model *model)
{
    bool has = false;
    for (int i = 0; i < model->layer_kinds_count; i++) has |= model->layers[i].head_dim_qk > (int)lanes;
    return has;
}

/* Whether the forward loop writes [tokens, emb] with its sequences along the lanes. */
static bool writes_sequences_minor(const struct adv_cost *cost)
{
    if (adv_memory_windowed(cost)) return !adv_memory_fills_lanes(cost);
    return cost->plan->family.seq_len >= cost->model->emb_dim;
}

/* Whether the iteration behind the backward loop wants them so. */
static bool reads_sequences_minor(const struct adv_cost *cost)
{
    if (has_query_key_norms(cost->model) || has_wide_heads(cost->model)) return true;
    return adv_memory_windowed(cost) && adv_memory_fills_lanes(cost) &&
           cost->plan->family.seq_len >= cost->model->emb_dim;
}

bool adv_memory_turns_emb(const struct adv_cost *cost)
{
    return writes_sequences_minor(cost) != reads_sequences_minor(cost);
}

bool adv_memory_turns_sliced_emb(const struct adv_cost *cost)
{
    const bool windowed = adv_memory_windowed(cost);
    const double seq = (double)cost->plan->family.seq_len, emb = (double)cost->model->emb_dim;
    if (windowed) return seq < cost->constants->windowed_turned_seq_per_emb_least * emb;
    return (seq >= emb) == has_query_key_norms(cost->model);
}

bool adv_memory_tiles_gather(const struct adv_constants *constants, const struct adv_plan *plan, int tiling)
{
    return constants->gathered_tiles_copies > 0.0 && adv_plan_tiles_gather(plan, tiling);
}
