#include "engine/cost/regime.h"

#include "engine/base/units.h"

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

static bool has_query_key_norms(const struct adv_model *model)
{
    bool has = false;
    for (int i = 0; i < model->layer_kinds_count; i++) has |= model->layers[i].has_qk_norm;
    return has;
}

bool adv_memory_turns_emb(const struct adv_cost *cost)
{
    const double seq = (double)cost->plan->family.seq_len, emb = (double)cost->model->emb_dim;
    if (adv_memory_windowed(cost)) return seq >= cost->constants->windowed_turned_seq_per_emb_least * emb;
    return (seq >= emb) != has_query_key_norms(cost->model);
}
