/* mesh.h: logical mesh axes laid onto the physical torus of one slice (and, on tpu7x, its core pair).
 *
 * Follows JAX's create_device_mesh. Logical axes are placed from the last of the mesh order to the first (the
 * last communicates most). Each takes the largest number of whole physical axes whose product is its size;
 * among equals the combination with the core pair wins (jax #39340), then the first in x, y, z order. When
 * one axis finds no such combination all are placed again with physical axes split: the assignment with the
 * largest product of whole axes, then the most whole axes, the core pair, the most use of axes already split,
 * the largest x, y, z. Of a split axis the logical axis placed first gets neighbouring chips. The core pair
 * (die-to-die link) belongs to at most one logical axis.
 *
 * With custom_mesh (16 x 16 slices) the shorter axis takes blocks of 2 x 2 or 2 x 4 neighbours, which close
 * to rings, and the longer one steps from block to block. As MaxText, which reshapes one list of devices,
 * this holds where the shorter axis comes later in the mesh order; otherwise the longer one gets whole rows.
 *
 * JAX refuses axes that need a split where allow_split_physical_axes is off; here they are placed all the
 * same, and mesh.needs_split tells. For the smallest slices JAX has orders of their devices made by hand,
 * which every mesh is cut from: there it refuses none. Does not know what is communicated. Pure,
 * allocation-free, deterministic, thread safe.
 */
#pragma once

#include "engine/base/err.h"
#include "engine/spec/cluster.h"
#include "engine/spec/plan.h"

enum { ADV_PHYSICAL_X, ADV_PHYSICAL_Y, ADV_PHYSICAL_Z, ADV_PHYSICAL_CORE, ADV_PHYSICAL_COUNT };
const char *adv_physical_name(int physical); /* "x" "y" "z" "core" */

/* One physical factor under a logical axis. */
struct adv_ring {
    int physical; /* ADV_PHYSICAL_* */
    int size;     /* chips (or cores) in this factor, >= 2 */
    int whole;    /* size of the whole physical axis */
    int stride;   /* distance of neighbours on the physical axis: 1, or more in the outer part of a split axis
                   */
    bool wraps;   /* the factor closes to a ring: it reaches round the whole axis and the torus wraps */
};

/* Bytes per second one chip takes in over this factor while its group gathers: measured links, 2 in a ring, 1
 * on a line (the end chip binds); in the outer part of a split axis `stride` groups share each link. A part
 * of a ring is thus at most half as fast as the ring. For the core pair: the die-to-die link. NAN when the
 * chip has no such link. */
double adv_ring_bytes_per_s(const struct adv_chip *chip, const struct adv_ring *ring);

struct adv_axis_placement {
    int size;        /* devices along the logical axis inside a slice */
    int rings_count; /* 0 when size == 1 */
    struct adv_ring rings[ADV_PHYSICAL_COUNT];
    double bytes_per_s_per_device; /* achievable gather bandwidth of one device over these factors, for
                                      display */
};

struct adv_mesh {
    struct adv_axis_placement axes[ADV_AXIS_COUNT]; /* ICI part */
    bool needs_split;                               /* JAX refuses it without allow_split_physical_axes */
};

/* Places plan->ici on the slice; axes that are not in MaxText's mesh_axes (sequence) are ignored, as MaxText
 * does. ADV_E_ILLEGAL (pointer /config): the product of the axes is not the slice's devices; the hint says
 * which degree would be. Every other factorisation can be placed. */
ADV_MUST_CHECK adv_code adv_mesh_place(const struct adv_cluster *cluster, const struct adv_plan *plan,
                                       struct adv_mesh *mesh, adv_err *err);

/* Adds the finding "split-axes" with `code` where JAX refuses the plan's mesh on this slice: an axis is no
 * product of whole physical axes, and allow_split_physical_axes is off. A mesh that cannot be placed is not
 * its business. */
void adv_mesh_report_split(const struct adv_cluster *cluster, const struct adv_plan *plan, adv_code code,
                           adv_err *findings);
