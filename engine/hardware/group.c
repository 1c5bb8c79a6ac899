#include "engine/hardware/collective.h"

/* Joins `ring` with a part of the same physical axis that touches it; true when it did. */
static bool join(struct adv_group *group, const struct adv_ring *ring)
{
    for (int i = 0; i < group->rings_count; i++) {
        struct adv_ring *other = &group->rings[i];
        if (other->physical != ring->physical) continue;
        if (other->stride * other->size == ring->stride) {
            other->size *= ring->size;
            other->wraps = ring->wraps;
            return true;
        }
        if (ring->stride * ring->size == other->stride) {
            other->size *= ring->size;
            other->stride = ring->stride;
            return true;
        }
    }
    return false;
}

struct adv_group adv_group_of(const struct adv_cluster *cluster, const struct adv_mesh *mesh,
                              unsigned axes_mask)
{
    struct adv_group group = {.devices = 1};
    bool has_core = false;
    int last = -1;
    unsigned seen = 0;
    /* From the last axis, as placed: the inner parts of a split axis come first, so that touching parts meet.
     */
    for (int axis = ADV_AXIS_COUNT - 1; axis >= 0; axis--) {
        if (!(axes_mask & 1u << axis)) continue;
        const struct adv_axis_placement *placement = &mesh->axes[axis];
        for (int i = placement->rings_count - 1; i >= 0; i--) {
            const struct adv_ring *ring = &placement->rings[i];
            group.scattered = group.scattered || (seen & 1u << ring->physical && ring->physical != last);
            seen |= 1u << ring->physical;
            last = ring->physical;
            group.devices *= ring->size;
            has_core = has_core || ring->physical == ADV_PHYSICAL_CORE;
            if (!join(&group, ring) && group.rings_count < ADV_LIMIT_RINGS)
                group.rings[group.rings_count++] = *ring;
        }
    }
    group.other_core_too = cluster->chip.devices_per_chip > 1.0 && !has_core;
    return group;
}
