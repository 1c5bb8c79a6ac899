/* collective.h: how long one collective takes over one or several logical axes inside a slice, and over DCN.
 *
 * Bytes and times are per JAX device; on tpu7x two devices share the chip's links and the functions account
 * for it. Latency and bandwidth terms add up. Pure, allocation-free, thread safe. A group of one device, or
 * no bytes, takes 0 s. Does not know what is sent (cost/op does) nor what it overlaps with (cost/schedule
 * does).
 *
 * Formulas (W: what a chip takes in per second over the rings of the group together, adv_ring_bytes_per_s; n:
 * chips in the group; V: bytes; c: 2 where both devices of a chip are in like groups that share the links,
 * else 1): all-gather, reduce-scatter   c V (n-1)/n / W; the core pair's share V/2 over the die-to-die link
 * runs beside it all-reduce                   twice that; over several torus axes divided by
 * all_reduce_multi_axis_frac all-to-all                   the worst cut: per ring of m chips floor(m/2)
 * ceil(m/2)/m V_chip / W_ring permute                      c V / link Without wrap-around W is the intake of
 * a corner chip, one link per axis. A scattered group is no torus to the compiler: its gathers and reductions
 * run round one ring, W at most 2 links. No microbenchmark shows this; it is read off context parallelism on
 * v5p, where the two of five strategies that split an axis between ring and Ulysses take 0.2 s a step longer
 * at any length. Ranges: all-gather measured on tpu7x from 1.5 MB to 400 MB per chip; all-reduce 2 to 8 MiB
 * on tpu7x, 600 MB on v6e; permute 1 and 64 MiB on v5p and v6e. All-to-all is not measured anywhere.
 * tests/unit/test_microbench.c prints all.
 */
#pragma once

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

/* A group as the links see it. */
struct adv_links {
    int chips;               /* of the group, on the torus */
    int cores;               /* of a chip inside the group: 1 or 2 */
    double groups_per_chip;  /* like groups that share a chip's links */
    int axes;                /* torus axes used */
    double ici_bytes_per_s;  /* intake of one chip over all rings */
    double link_bytes_per_s; /* slowest single link, one direction, after sharing in the outer part of a split
                                axis */
    double hops;             /* to the farthest chip */
    double next_hops;        /* to the next chip in ring order */
    double cut_s_per_byte;   /* all-to-all: seconds per byte of a chip's payload through the worst cut */
};

/* A group of devices that communicate: the physical factors of one or several logical axes together. */
struct adv_group {
    int devices; /* product of the factors */
    int rings_count;
    struct adv_ring rings[ADV_LIMIT_RINGS];
    bool other_core_too; /* the chip's two devices are in two such groups that share the links (core axis not
                            inside) */
    bool scattered; /* in the group's order the parts of a physical axis lie apart, another axis between them
                     */
    struct adv_links links; /* of more than one device */
};

/* The union of the axes in `axes_mask` (bit 1u << enum adv_axis). Parts of one physical axis that touch are
 * joined. */
struct adv_group adv_group_of(const struct adv_cluster *cluster, const struct adv_mesh *mesh,
                              unsigned axes_mask);

/* The links of a group whose other members are set. */
struct adv_links adv_links_of(const struct adv_cluster *cluster, const struct adv_group *group);

struct adv_collective_time {
    double bandwidth_s; /* bytes over links; bandwidth_s + latency_s is the time */
    double latency_s;
    double hbm_bytes; /* traffic in each device's HBM: what arrives is written, what leaves is read */
};

/* `collective` over `group`; the constants are those of the cluster's chip. */
struct adv_collective_time adv_collective_time(const struct adv_cluster *cluster,
                                               const struct adv_constants *constants,
                                               const struct adv_group *group, enum adv_collective collective,
                                               double bytes_per_device);

/* Between slices: each device exchanges `bytes_per_device` (its shard, already reduced inside its slice) with
 * its peers in the other slices, over its chip's share of the DCN. All-reduce 2 (s-1)/s, gather and scatter
 * (s-1)/s of the bytes; the ICI parts of a hierarchical all-reduce are the caller's adv_collective_time
 * calls. One slice takes 0 s. */
struct adv_collective_time adv_collective_dcn_time(const struct adv_cluster *cluster,
                                                   const struct adv_constants *constants, int slices,
                                                   enum adv_collective collective, double bytes_per_device);
