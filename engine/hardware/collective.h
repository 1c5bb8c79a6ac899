/* collective.h: how long one collective takes over one or several logical axes inside a slice, and over DCN.
 *
 * Bytes and times are per JAX device; on tpu7x two devices share the chip's links and the functions account for it.
 * Latency and bandwidth terms add up. Formulas, ranges and measured checks: engine/README.md, "Collectives".
 * Pure, allocation-free, thread safe. A group of one device takes 0 s.
 */
#ifndef ADV_HARDWARE_COLLECTIVE_H
#define ADV_HARDWARE_COLLECTIVE_H

#include "engine/catalog/constants.h"
#include "engine/hardware/mesh.h"

enum adv_collective {
    ADV_COLLECTIVE_ALL_GATHER,     /* bytes: the full gathered array each device ends with */
    ADV_COLLECTIVE_REDUCE_SCATTER, /* bytes: the full array each device starts with */
    ADV_COLLECTIVE_ALL_REDUCE,     /* bytes: the array each device holds */
    ADV_COLLECTIVE_ALL_TO_ALL,     /* bytes: what each device holds before (and after) */
    ADV_COLLECTIVE_PERMUTE,        /* bytes: what each device sends to its neighbour */
    ADV_COLLECTIVE_COUNT
};
const char *adv_collective_name(enum adv_collective collective);

/* A group of devices that communicate: the physical factors of one or several logical axes together. */
struct adv_group {
    int devices;         /* product of the factors */
    int rings_count;
    struct adv_ring rings[ADV_LIMIT_RINGS];
    bool other_core_too; /* the chip's two devices are in two such groups that share the links (core axis not inside) */
};

/* The union of the axes in `axes_mask` (bit 1u << enum adv_axis). */
struct adv_group adv_group_of(const struct adv_cluster *cluster, const struct adv_mesh *mesh, unsigned axes_mask);

struct adv_collective_time {
    double bandwidth_s; /* bytes over links, the two summed are the time */
    double latency_s;
    double hbm_bytes;   /* traffic the collective causes in each device's HBM */
};

struct adv_collective_time adv_collective_time(const struct adv_cluster *cluster, const struct adv_constants *constants,
                                               const struct adv_group *group, enum adv_collective collective, double bytes_per_device);

/* Between slices: reduce of `bytes_per_device` (each device's shard) over `slices`, hierarchical; per-chip DCN share. */
struct adv_collective_time adv_collective_dcn_time(const struct adv_cluster *cluster, const struct adv_constants *constants,
                                                   int slices, enum adv_collective collective, double bytes_per_device);

#endif
