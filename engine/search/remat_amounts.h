/* remat_amounts.h: what the tensors of a family take of device and host, and how much of both there is for
 * them (remat_space.h, P2).
 *
 * Layers that are not scanned are recomputed ahead of their turn where a tensor is not kept, as far as memory
 * goes. There a tensor takes less at the backward peak than its bytes, or makes it smaller, and that peak
 * stands still where memory is full: so units are measured beside the leanest set. What makes the peak
 * smaller counts as taking nothing, and the room as what it is with all of these kept.
 */
#pragma once

#include "engine/base/units.h"
#include "engine/search/remat_space.h"

/* Bytes at the two peaks that kept tensors are part of. Copies of stacks belong to the second only. */
struct adv_remat_room {
    double at_loss, at_backward;
};

struct adv_remat_amounts {
    bool known;
    struct adv_remat_room alone[ADV_REMAT_UNITS];  /* what each unit takes of the device at least */
    struct adv_remat_room shared[ADV_REMAT_UNITS]; /* the same where something is on the host */
    double host_bytes[ADV_REMAT_UNITS];            /* what it takes of a host instead */
    int largest_first[ADV_REMAT_UNITS];            /* units */
    double loss_per_backward; /* most that a unit takes at the loss, for each byte at the backward peak */
    uint64_t among;           /* the tensors beside which units were measured */
};

/* Of the device, left by the plan with nothing kept, alone and beside something on the host; of a host. */
struct adv_remat_rooms {
    struct adv_remat_room alone, shared;
    double host;
};

/* A family whose plan was priced last, with one placement of the layer input. */
struct adv_remat_measured {
    const struct adv_remat_space *space;
    struct adv_pricer *pricer;
    const struct adv_plan *family;
    uint64_t nowhere, on_device; /* none of the open tensors kept; all of them */
    int num_vocab_tiling;
};

/* The set of kept tensors with which the backward peak is least: none, where layers are scanned. */
uint64_t adv_remat_leanest(const struct adv_remat_measured *measured);

/* False: the budget is spent. */
bool adv_remat_measure_units(const struct adv_remat_measured *measured, struct adv_remat_amounts *amounts);

/* `none`: the estimate with nothing kept. */
struct adv_remat_rooms adv_remat_measure_rooms(const struct adv_remat_measured *measured,
                                               const struct adv_remat_amounts *amounts,
                                               const struct adv_estimate *none);

/* What the backward peak leaves beside everything kept: mostly less than nothing. Near the limit XLA packs a
 * program anew, so that of two plans that keep nothing and leave the same one may have more to give. */
double adv_remat_room_beside_all(const struct adv_remat_measured *measured);

struct adv_remat_room adv_remat_room_left(struct adv_pricer *pricer, const struct adv_estimate *estimate);

static inline double adv_remat_least(struct adv_remat_room room)
{
    return adv_min(room.at_loss, room.at_backward);
}

static inline struct adv_remat_room adv_remat_sum(struct adv_remat_room a, struct adv_remat_room b)
{
    return (struct adv_remat_room){a.at_loss + b.at_loss, a.at_backward + b.at_backward};
}

static inline struct adv_remat_room adv_remat_difference(struct adv_remat_room a, struct adv_remat_room b)
{
    return (struct adv_remat_room){a.at_loss - b.at_loss, a.at_backward - b.at_backward};
}

static inline struct adv_remat_room adv_remat_times(struct adv_remat_room a, double factor)
{
    return (struct adv_remat_room){a.at_loss * factor, a.at_backward * factor};
}

static inline struct adv_remat_room adv_remat_widest(struct adv_remat_room a, struct adv_remat_room b)
{
    return (struct adv_remat_room){adv_max(a.at_loss, b.at_loss), adv_max(a.at_backward, b.at_backward)};
}

static inline bool adv_remat_is_within(struct adv_remat_room room, struct adv_remat_room other)
{
    return room.at_loss <= other.at_loss && room.at_backward <= other.at_backward;
}
