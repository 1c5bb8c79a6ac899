#include "engine/cost/scratch.h"

#include <string.h>

struct adv_cost_kernel *adv_scratch_kernel(struct adv_cost_scratch *scratch, const uint64_t key[16])
{
    uint64_t lanes[4] = {0}; /* side by side: a chain of 16 products would take longer than the look-up */
    for (int i = 0; i < 16; i++)
        lanes[i % 4] = (lanes[i % 4] ^ lanes[i % 4] >> 32 ^ key[i]) * 0x9e3779b97f4a7c15u;
    uint64_t hash = lanes[0];
    for (int i = 1; i < 4; i++) hash = (hash ^ hash >> 32 ^ lanes[i]) * 0x9e3779b97f4a7c15u;
    struct adv_cost_kernel *row = &scratch->kernels[(hash >> 48) % ADV_SCRATCH_KERNELS];
    if (row->known && memcmp(row->key, key, sizeof row->key) == 0) return row;
    row->known = false; /* a collision only costs a simulation */
    memcpy(row->key, key, sizeof row->key);
    return row;
}

struct adv_cost_kept *adv_scratch_kept(struct adv_cost_scratch *scratch, uint32_t tensors)
{
    struct adv_cost_kept *row = &scratch->kept[(tensors * 0x9e3779b1u >> 16) % ADV_SCRATCH_KEPT];
    if (row->known && row->family == scratch->family_number && row->tensors == tensors) return row;
    row->known = false;
    row->family = scratch->family_number;
    row->tensors = tensors;
    return row;
}

struct adv_cost_placed *adv_scratch_placed(struct adv_cost_scratch *scratch, uint64_t places)
{
    struct adv_cost_placed *row = &scratch->places[(places * 0x9e3779b97f4a7c15u >> 48) % ADV_SCRATCH_PLACED];
    if (row->family == scratch->family_number && row->places == places) return row;
    row->family = scratch->family_number;
    row->places = places;
    row->sums_known = row->steps[0].known = row->steps[1].known = false;
    return row;
}

struct adv_memory_frame *adv_scratch_frame(struct adv_cost_scratch *scratch)
{
    const uint64_t key = (uint64_t)scratch->plan.num_vocab_tiling << 32 |
                         (uint64_t)scratch->cost.offloads << 31 |
                         scratch->placed->places >> ADV_PLACES_TENSOR_BITS;
    struct adv_memory_frame *frame = &scratch->frames[(key * 0x9e3779b97f4a7c15u >> 48) % ADV_SCRATCH_FRAMES];
    if (frame->family == scratch->family_number && frame->key == key) return frame;
    frame->known = false;
    frame->family = scratch->family_number;
    frame->key = key;
    return frame;
}

struct adv_cost_behind *adv_scratch_behind(struct adv_cost_scratch *scratch)
{
    const bool tiles = scratch->plan.num_vocab_tiling > 1;
    const uint64_t key = scratch->placed->places >> ADV_PLACES_TENSOR_BITS << 1 | (uint64_t)tiles;
    struct adv_cost_behind *row = &scratch->behind[2 * scratch->cost.offloads + tiles];
    if (row->family == scratch->family_number && row->key == key) return row;
    row->family = 0;
    row->key = key;
    return row;
}

static bool same_shapes(const struct adv_cost_shapes *shapes, const struct adv_cost *cost,
                        const struct adv_plan *plan)
{
    return shapes->tokens == cost->tokens && shapes->tp == cost->tp && shapes->cp_ring == cost->cp_ring &&
           shapes->ulysses == cost->ulysses && shapes->ep == cost->ep &&
           adv_plan_same_kernels(&shapes->plan, plan);
}

void adv_scratch_enter_compute(struct adv_cost_scratch *scratch, const struct adv_plan *plan)
{
    const struct adv_cost *cost = &scratch->cost;
    /* what differs between most families; the rest is only compared */
    const uint64_t words[] = {
        adv_scratch_bits(cost->tokens),
        (uint64_t)cost->tp << 32 | (uint64_t)cost->cp_ring,
        (uint64_t)cost->ulysses << 32 | (uint64_t)cost->ep,
        (uint64_t)plan->family.quantization << 32 | (uint64_t)plan->family.cp_strategy,
    };
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash = (hash ^ hash >> 32 ^ words[i]) * 0x9e3779b97f4a7c15u;
    struct adv_cost_compute *row = &scratch->computed[(hash >> 48) % ADV_SCRATCH_COMPUTE];
    scratch->compute = row;
    if (row->known && same_shapes(&row->shapes, cost, plan)) return;
    row->shapes =
        (struct adv_cost_shapes){*plan, cost->tokens, cost->tp, cost->cp_ring, cost->ulysses, cost->ep};
    memset(row->splash_known, 0, sizeof row->splash_known);
    for (int i = 0; i < cost->model->layer_kinds_count; i++) {
        row->matmuls[i].known = false;
        for (int g = 0; g < 2 * ADV_GMM_PASSES; g++)
            row->grouped[i][g / ADV_GMM_PASSES][g % ADV_GMM_PASSES].known = false;
    }
    row->known = true;
    scratch->computed_anew++;
}
