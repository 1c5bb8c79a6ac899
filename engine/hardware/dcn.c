#include "engine/hardware/collective.h"

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
