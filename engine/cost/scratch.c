#include "engine/cost/scratch.h"

#include <stddef.h>
#include <string.h>

void adv_scratch_clear(struct adv_cost_scratch *scratch)
{
    memset(scratch, 0, offsetof(struct adv_cost_scratch, kept));
}

void adv_scratch_leave_family(struct adv_cost_scratch *scratch)
{
    memset(scratch->working_known, 0, sizeof scratch->working_known);
    memset(scratch->weights, 0, sizeof scratch->weights);
    for (int i = 0; i < ADV_LIMIT_LAYER_KINDS; i++) scratch->tensors[i].known = false;
    scratch->fixed_known = scratch->head.known = false;
    scratch->kept_rows.count = scratch->places_rows.count = 0;
    scratch->family_number++;
}

/* Where the number of the row with a key of this hash stands, if there is one. */
static uint16_t *slot_of(struct adv_scratch_rows *rows, uint64_t hash)
{
    return &rows->at[(hash >> 48) % ADV_SCRATCH_SLOTS];
}

/* The number of a new row of a table of `most`, put into the slot. */
static uint16_t new_row(struct adv_scratch_rows *rows, uint16_t *slot, unsigned most)
{
    if (rows->count == most) rows->count = 0;
    *slot = (uint16_t)rows->count++;
    return *slot;
}

struct adv_cost_kernel *adv_scratch_kernel(struct adv_cost_scratch *scratch, const uint64_t key[16])
{
    uint64_t lanes[4] = {0}; /* side by side: a chain of 16 products would take longer than the look-up */
    for (int i = 0; i < 16; i++)
        lanes[i % 4] = (lanes[i % 4] ^ lanes[i % 4] >> 32 ^ key[i]) * 0x9e3779b97f4a7c15u;
    uint64_t hash = lanes[0];
    for (int i = 1; i < 4; i++) hash = (hash ^ hash >> 32 ^ lanes[i]) * 0x9e3779b97f4a7c15u;
    uint16_t *slot = slot_of(&scratch->kernels_rows, hash);
    struct adv_cost_kernel *row = &scratch->kernels[*slot];
    if (*slot < scratch->kernels_rows.count && memcmp(row->key, key, sizeof row->key) == 0) return row;
    row = &scratch->kernels[new_row(&scratch->kernels_rows, slot, ADV_SCRATCH_KERNELS)];
    row->known = false;
    memcpy(row->key, key, sizeof row->key);
    return row;
}

uint32_t adv_scratch_again(const struct adv_cost_scratch *scratch)
{
    _Static_assert((int)ADV_TENSOR_COUNT < 31, "room for all tensors");
    return scratch->merges && scratch->cost.offloads ? UINT32_C(1) << 31 : 0;
}

struct adv_cost_kept *adv_scratch_kept(struct adv_cost_scratch *scratch)
{
    const uint32_t tensors = scratch->cost.kept | adv_scratch_again(scratch);
    uint16_t *slot = slot_of(&scratch->kept_rows, tensors * 0x9e3779b97f4a7c15u);
    struct adv_cost_kept *row = &scratch->kept[*slot];
    if (*slot < scratch->kept_rows.count && row->tensors == tensors) return row;
    row = &scratch->kept[new_row(&scratch->kept_rows, slot, ADV_SCRATCH_KEPT)];
    row->known = false;
    for (int i = 0; i < ADV_SCRATCH_BEHIND; i++) row->sums[i].known = false;
    row->tensors = tensors;
    return row;
}

struct adv_cost_placed *adv_scratch_placed(struct adv_cost_scratch *scratch, uint64_t places)
{
    uint16_t *slot = slot_of(&scratch->places_rows, places * 0x9e3779b97f4a7c15u);
    struct adv_cost_placed *row = &scratch->places[*slot];
    if (*slot < scratch->places_rows.count && row->places == places) return row;
    row = &scratch->places[new_row(&scratch->places_rows, slot, ADV_SCRATCH_PLACED)];
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
           shapes->repeats_width == adv_cost_repeats_width(cost) &&
           adv_plan_same_kernels(&shapes->plan, plan);
}

static struct adv_cost_compute *computed_row(struct adv_cost_scratch *scratch, unsigned row, size_t row_bytes)
{
    void *at = (unsigned char *)scratch->computed + row * row_bytes;
    return at;
}

void adv_scratch_enter_compute(struct adv_cost_scratch *scratch, const struct adv_plan *plan)
{
    const struct adv_cost *cost = &scratch->cost;
    struct adv_cost_compute *row;
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
    const int kinds = cost->model->layer_kinds_count;
    const size_t row_bytes = offsetof(struct adv_cost_compute, kinds) + (size_t)kinds * sizeof row->kinds[0];
    uint16_t *slot = slot_of(&scratch->computed_rows, hash);
    row = computed_row(scratch, *slot, row_bytes);
    scratch->compute = row;
    if (*slot < scratch->computed_rows.count && same_shapes(&row->shapes, cost, plan)) return;
    const unsigned most = (unsigned)(sizeof scratch->computed / row_bytes);
    row = computed_row(scratch, new_row(&scratch->computed_rows, slot, most), row_bytes);
    scratch->compute = row;
    row->shapes = (struct adv_cost_shapes){
        *plan, cost->tokens, cost->tp, cost->cp_ring, cost->ulysses, cost->ep, adv_cost_repeats_width(cost)};
    for (int i = 0; i < kinds; i++) {
        struct adv_cost_compute_kind *kind = &row->kinds[i];
        memset(kind->splash_known, 0, sizeof kind->splash_known);
        kind->matmuls.known = false;
        for (int g = 0; g < 2 * ADV_GMM_PASSES; g++)
            kind->grouped[g / ADV_GMM_PASSES][g % ADV_GMM_PASSES].known = false;
    }
    scratch->computed_anew++;
}
