#include "engine/search/remat_amounts.h"

#include <math.h>

static const struct adv_remat_room nothing = {0.0, 0.0};

struct adv_remat_room adv_remat_room_left(struct adv_pricer *pricer, const struct adv_estimate *estimate)
{
    const double room = adv_price_room_bytes(pricer, estimate);
    return (struct adv_remat_room){room - estimate->loss_peak_bytes, room - estimate->backward_peak_bytes};
}

static struct adv_remat_room peaks_of(const struct adv_estimate *estimate)
{
    return (struct adv_remat_room){estimate->loss_peak_bytes, estimate->backward_peak_bytes};
}

static struct adv_estimate memory_of(const struct adv_remat_measured *measured,
                                     const struct adv_places *places)
{
    struct adv_estimate estimate;
    adv_price_memory(measured->pricer, measured->family, places, &estimate);
    return estimate;
}

/* The memory beside something on the host. Another schedule goes with it: a name there that no tensor
 * bears. */
static struct adv_estimate memory_beside_host(const struct adv_remat_measured *measured,
                                              struct adv_places places)
{
    places.tensors = adv_remat_put(places.tensors, ADV_TENSOR_QKV_PROJ, ADV_PLACE_OFFLOAD);
    return memory_of(measured, &places);
}

static struct adv_remat_room room_with(const struct adv_remat_measured *measured,
                                       const struct adv_places *places)
{
    const struct adv_estimate estimate = memory_of(measured, places);
    return adv_remat_room_left(measured->pricer, &estimate);
}

static struct adv_remat_room room_beside_host(const struct adv_remat_measured *measured,
                                              struct adv_places places)
{
    const struct adv_estimate estimate = memory_beside_host(measured, places);
    return adv_remat_room_left(measured->pricer, &estimate);
}

double adv_remat_room_beside_all(const struct adv_remat_measured *measured)
{
    const struct adv_places all = {measured->on_device, measured->num_vocab_tiling};
    return room_beside_host(measured, all).at_backward;
}

static struct adv_remat_room peaks_beside_host(const struct adv_remat_measured *measured,
                                               struct adv_places places)
{
    const struct adv_estimate estimate = memory_beside_host(measured, places);
    return peaks_of(&estimate);
}

static uint64_t without(uint64_t tensors, enum adv_tensor tensor)
{
    return adv_remat_put(tensors, tensor, ADV_PLACE_REMAT);
}

/* Beside something on the host, where the experimental scheduler leaves more. */
static double backward_peak(const struct adv_remat_measured *measured, uint64_t tensors)
{
    return peaks_beside_host(measured, (struct adv_places){tensors, measured->num_vocab_tiling}).at_backward;
}

/* From everything kept: first what does not make the peak smaller goes, then comes what does, once others
 * that filled memory have gone. */
uint64_t adv_remat_leanest(const struct adv_remat_measured *measured)
{
    uint64_t lean = measured->on_device;
    if (measured->family->family.scan_layers) return measured->nowhere;
    for (int i = 0; i < 2 * measured->space->units_count; i++) {
        const bool goes = i < measured->space->units_count;
        const enum adv_tensor tensor = measured->space->units[i % measured->space->units_count].tensor;
        const uint64_t other = goes ? without(lean, tensor) : adv_remat_put(lean, tensor, ADV_PLACE_DEVICE);
        const double gain = backward_peak(measured, lean) - backward_peak(measured, other);
        if (gain > 0.0 || (goes && gain == 0.0)) lean = other;
    }
    return lean;
}

/* The places beside which a unit is measured: its leader kept, those that it leads not, nor itself. */
static struct adv_places beside(const struct adv_remat_measured *measured,
                                const struct adv_remat_amounts *amounts, int unit)
{
    const struct adv_remat_unit *units = measured->space->units;
    const bool scans = measured->family->family.scan_layers;
    struct adv_places places = {amounts->among, measured->num_vocab_tiling};
    for (int i = 0; !scans && i < measured->space->units_count; i++)
        if (i == unit || (units[i].has_leader && units[i].leader == units[unit].tensor))
            places.tensors = without(places.tensors, units[i].tensor);
    if (units[unit].has_leader)
        places.tensors = adv_remat_put(places.tensors, units[unit].leader, ADV_PLACE_DEVICE);
    return places;
}

/* What the unit takes at the backward peak, whose measured amounts are given. */
static void settle_backward(const struct adv_remat_measured *measured, struct adv_remat_room *alone,
                            struct adv_remat_room *shared)
{
    if (!measured->family->family.scan_layers)
        alone->at_backward = shared->at_backward = adv_max(0.0, shared->at_backward);
    else if (!measured->space->has_blocks)
        alone->at_backward = alone->at_loss; /* less is but what waits at the limit */
    shared->at_backward = adv_max(shared->at_backward, alone->at_backward);
}

static void order(struct adv_remat_amounts *amounts, int unit)
{
    int *sorted = amounts->largest_first, at = unit;
    const double bytes = adv_remat_least(amounts->alone[unit]);
    for (; at > 0 && adv_remat_least(amounts->alone[sorted[at - 1]]) < bytes; at--)
        sorted[at] = sorted[at - 1];
    sorted[at] = unit;
}

static void put_amounts(const struct adv_remat_measured *measured, struct adv_remat_amounts *amounts,
                        int unit, struct adv_remat_room alone, struct adv_remat_room shared)
{
    settle_backward(measured, &alone, &shared);
    amounts->alone[unit] = alone;
    amounts->shared[unit] = shared;
    if (alone.at_backward > 0.0)
        amounts->loss_per_backward = adv_max(amounts->loss_per_backward, alone.at_loss / alone.at_backward);
    else if (alone.at_loss > 0.0)
        amounts->loss_per_backward = (double)INFINITY;
    order(amounts, unit);
}

bool adv_remat_measure_units(const struct adv_remat_measured *measured, struct adv_remat_amounts *amounts)
{
    const struct adv_remat_unit *units = measured->space->units;
    struct adv_pricer *pricer = measured->pricer;
    const struct adv_plan *family = measured->family;
    struct adv_estimate none, one;
    struct adv_remat_room shared_none = nothing;
    const bool scans = family->family.scan_layers;
    amounts->among = adv_remat_leanest(measured);
    amounts->loss_per_backward = 1.0;
    for (int i = 0; i < measured->space->units_count; i++) {
        struct adv_places places = beside(measured, amounts, i);
        if (i == 0 || !scans || units[i].has_leader || units[i - 1].has_leader) {
            if (!adv_price_placed(pricer, family, &places, &none)) return false;
            shared_none = peaks_beside_host(measured, places);
        }
        places.tensors = adv_remat_put(places.tensors, units[i].tensor, ADV_PLACE_DEVICE);
        if (!adv_price_placed(pricer, family, &places, &one)) return false;
        put_amounts(measured, amounts, i, adv_remat_difference(peaks_of(&one), peaks_of(&none)),
                    adv_remat_difference(peaks_beside_host(measured, places), shared_none));
        places.tensors = adv_remat_put(places.tensors, units[i].tensor, ADV_PLACE_OFFLOAD);
        if (!adv_price_placed(pricer, family, &places, &one)) return false;
        amounts->host_bytes[i] = one.host_bytes_per_host - none.host_bytes_per_host;
    }
    return amounts->known = true;
}

/* Layers that are not scanned: the rooms beside the set among which units were measured, and what these
 * take. */
static void measure_early(const struct adv_remat_measured *measured, const struct adv_remat_amounts *amounts,
                          struct adv_remat_rooms *rooms)
{
    const enum adv_tensor input = ADV_TENSOR_DECODER_LAYER_INPUT;
    const enum adv_placement there = adv_remat_place(measured->nowhere, input);
    const struct adv_places among = {adv_remat_put(amounts->among, input, there), measured->num_vocab_tiling};
    rooms->alone = room_with(measured, &among);
    rooms->shared = room_beside_host(measured, among);
    for (int i = 0; i < measured->space->units_count; i++) {
        if (adv_remat_place(among.tensors, measured->space->units[i].tensor) != ADV_PLACE_DEVICE) continue;
        rooms->alone = adv_remat_sum(rooms->alone, amounts->alone[i]);
        rooms->shared = adv_remat_sum(rooms->shared, amounts->shared[i]);
    }
}

struct adv_remat_rooms adv_remat_measure_rooms(const struct adv_remat_measured *measured,
                                               const struct adv_remat_amounts *amounts,
                                               const struct adv_estimate *none)
{
    const double host_limit = none->host_limit_bytes_per_host * adv_rank_share_frac(measured->pricer->share);
    const struct adv_places nowhere = {measured->nowhere, measured->num_vocab_tiling};
    struct adv_remat_rooms rooms = {.alone = adv_remat_room_left(measured->pricer, none),
                                    .shared = room_beside_host(measured, nowhere),
                                    .host = isnan(host_limit) ? (double)INFINITY
                                                              : host_limit - none->host_bytes_per_host};
    if (!measured->family->family.scan_layers) measure_early(measured, amounts, &rooms);
    return rooms;
}
