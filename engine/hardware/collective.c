#include "engine/hardware/collective.h"

#include "engine/base/text.h"
#include "engine/base/units.h"

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

/* The highest bit that is set. */
static int last_of(unsigned mask)
{
    return 31 - __builtin_clz(mask);
}

struct adv_group adv_group_of(const struct adv_cluster *cluster, const struct adv_mesh *mesh,
                              unsigned axes_mask)
{
    struct adv_group group;
    group.devices = 1;
    group.rings_count = 0;
    group.scattered = false;
    bool has_core = false;
    int last = -1;
    unsigned seen = 0;
    /* From the last axis, as placed: the inner parts of a split axis come first, so that touching parts meet.
     */
    for (unsigned left = axes_mask; left;) {
        const int axis = last_of(left);
        left &= ~(1u << axis);
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
    if (group.devices > 1) group.links = adv_links_of(cluster, &group);
    return group;
}

ADV_NAMES(adv_collective_name, enum adv_collective, "all_gather", "reduce_scatter", "all_reduce",
          "all_to_all", "permute")

/* Two parts of one physical axis that do not touch share its links: the slower one counts for both. */
static double axis_bytes_per_s(const struct adv_chip *chip, const struct adv_group *group, int physical)
{
    double slowest = 0.0;
    for (int i = 0; i < group->rings_count; i++) {
        if (group->rings[i].physical != physical) continue;
        double rate = adv_ring_bytes_per_s(chip, &group->rings[i]);
        slowest = slowest > 0.0 ? adv_min(slowest, rate) : rate;
    }
    return slowest;
}

static void add_ring(const struct adv_chip *chip, const struct adv_ring *ring, struct adv_links *links)
{
    if (ring->physical == ADV_PHYSICAL_CORE) {
        links->cores = ring->size;
        return;
    }
    double rate = adv_ring_bytes_per_s(chip, ring), link = ring->wraps ? rate / 2.0 : rate;
    double cut = (double)(ring->size / 2) * (double)((ring->size + 1) / 2) / ring->size / rate;
    links->chips *= ring->size;
    links->hops += (ring->wraps ? (ring->size + 1) / 2 : ring->size - 1) * ring->stride;
    links->next_hops = adv_max(links->next_hops, ring->stride);
    links->link_bytes_per_s = links->link_bytes_per_s > 0.0 ? adv_min(links->link_bytes_per_s, link) : link;
    links->cut_s_per_byte = adv_max(links->cut_s_per_byte, cut);
}

struct adv_links adv_links_of(const struct adv_cluster *cluster, const struct adv_group *group)
{
    struct adv_links links = {.chips = 1, .cores = 1};
    for (int i = 0; i < group->rings_count; i++) add_ring(&cluster->chip, &group->rings[i], &links);
    for (int physical = ADV_PHYSICAL_X; physical <= ADV_PHYSICAL_Z; physical++) {
        double rate = axis_bytes_per_s(&cluster->chip, group, physical);
        links.ici_bytes_per_s += rate;
        links.axes += rate > 0.0;
    }
    if (group->scattered)
        links.ici_bytes_per_s = adv_min(links.ici_bytes_per_s, 2.0 * links.link_bytes_per_s);
    /* On a lone line the message that closes the ring travels back over the whole line. */
    if (links.axes == 1 && group->rings_count == 1 && !group->rings[0].wraps) links.next_hops = links.hops;
    links.groups_per_chip = group->other_core_too ? cluster->chip.devices_per_chip : 1.0;
    return links;
}

/* The share of `bytes` that comes from elsewhere in a group of n. */
static double foreign(double bytes, int n)
{
    return bytes * (n - 1) / n;
}

/* Torus and die-to-die link work side by side; the slower one is seen. */
static double side_by_side(double ici_s, double d2d_bytes, const struct adv_chip *chip)
{
    return d2d_bytes > 0.0 ? adv_max(ici_s, d2d_bytes / chip->d2d_bytes_per_s) : ici_s;
}

static double gather_s(const struct adv_chip *chip, const struct adv_links *links, double bytes)
{
    double ici_s = 0.0;
    if (links->chips > 1)
        ici_s = links->groups_per_chip * foreign(bytes, links->chips) / links->ici_bytes_per_s;
    return side_by_side(ici_s, foreign(bytes, links->cores), chip);
}

static double all_to_all_s(const struct adv_chip *chip, const struct adv_constants *constants,
                           const struct adv_links *links, double bytes)
{
    double chip_bytes = bytes * links->groups_per_chip * links->cores;
    return side_by_side(chip_bytes * links->cut_s_per_byte / constants->all_to_all_frac,
                        foreign(bytes, links->cores), chip);
}

static double permute_s(const struct adv_chip *chip, const struct adv_constants *constants,
                        const struct adv_links *links, double bytes)
{
    if (links->chips == 1) return bytes / chip->d2d_bytes_per_s;
    return side_by_side(bytes * links->groups_per_chip /
                            (links->link_bytes_per_s * constants->permute_link_frac),
                        links->cores > 1 ? bytes : 0.0, chip);
}

struct adv_collective_time adv_collective_time(const struct adv_cluster *cluster,
                                               const struct adv_constants *constants,
                                               const struct adv_group *group, enum adv_collective collective,
                                               double bytes_per_device)
{
    struct adv_collective_time time = {0.0, 0.0, 0.0};
    if (group->devices <= 1 || bytes_per_device <= 0.0) return time;
    const struct adv_chip *chip = &cluster->chip;
    const struct adv_links *links = &group->links;
    double gather = gather_s(chip, links, bytes_per_device),
           moved = foreign(bytes_per_device, group->devices);
    double hops = links->hops;
    switch (collective) {
    case ADV_COLLECTIVE_ALL_GATHER:
        time = (struct adv_collective_time){gather, constants->all_gather_launch_s, 2.0 * moved};
        break;
    case ADV_COLLECTIVE_REDUCE_SCATTER:
        time = (struct adv_collective_time){gather, constants->all_gather_launch_s,
                                            bytes_per_device + 2.0 * moved};
        break;
    case ADV_COLLECTIVE_ALL_REDUCE:
        time = (struct adv_collective_time){2.0 * gather, constants->all_reduce_launch_s,
                                            bytes_per_device + 4.0 * moved};
        if (links->axes > 1) time.bandwidth_s /= constants->all_reduce_multi_axis_frac;
        hops *= 2.0;
        break;
    case ADV_COLLECTIVE_ALL_TO_ALL:
        time = (struct adv_collective_time){all_to_all_s(chip, constants, links, bytes_per_device),
                                            constants->all_to_all_launch_s, 2.0 * bytes_per_device};
        break;
    case ADV_COLLECTIVE_PERMUTE:
        time = (struct adv_collective_time){permute_s(chip, constants, links, bytes_per_device),
                                            constants->permute_launch_s, 2.0 * bytes_per_device};
        hops = links->next_hops;
        break;
    case ADV_COLLECTIVE_COUNT:
        break;
    }
    time.latency_s += hops * chip->ici_hop_latency_s;
    return time;
}

/* Share of the bytes a device sends over DCN, and how often it starts: X(collective, share of s slices,
 * starts). */
static double share_of(enum adv_collective collective, int slices)
{
    double others = (double)(slices - 1) / slices;
    const double shares[ADV_COLLECTIVE_COUNT] = {
        [ADV_COLLECTIVE_ALL_GATHER] = others,
        [ADV_COLLECTIVE_REDUCE_SCATTER] = others,
        [ADV_COLLECTIVE_ALL_REDUCE] = 2.0 * others,
        [ADV_COLLECTIVE_ALL_TO_ALL] = others,
        [ADV_COLLECTIVE_PERMUTE] = 1.0,
    };
    return (unsigned)collective < ADV_COLLECTIVE_COUNT ? shares[collective] : 0.0;
}

struct adv_collective_time adv_collective_dcn_time(const struct adv_cluster *cluster,
                                                   const struct adv_constants *constants, int slices,
                                                   enum adv_collective collective, double bytes_per_device)
{
    struct adv_collective_time time = {0.0, 0.0, 0.0};
    if (slices <= 1 || bytes_per_device <= 0.0) return time;
    double sent = bytes_per_device * share_of(collective, slices);
    double rate = cluster->chip.dcn_bytes_per_s_per_chip * constants->dcn_achieved_frac;
    time.bandwidth_s = sent * cluster->chip.devices_per_chip / rate;
    time.latency_s = constants->dcn_launch_s;
    time.hbm_bytes = 2.0 * sent;
    return time;
}
