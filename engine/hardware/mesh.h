/* mesh.h: logical mesh axes laid onto the physical torus of one slice (and, on tpu7x, its core pair).
 *
 * Follows JAX's create_device_mesh: each logical axis takes whole physical axes; with allow_split_physical_axes a
 * physical axis may be split, and a part of a ring is a line at half the bandwidth. The core pair (die-to-die link)
 * belongs to at most one logical axis. Does not know what is communicated.
 */
#ifndef ADV_HARDWARE_MESH_H
#define ADV_HARDWARE_MESH_H

#include "engine/base/err.h"
#include "engine/spec/cluster.h"
#include "engine/spec/plan.h"

enum { ADV_PHYSICAL_X, ADV_PHYSICAL_Y, ADV_PHYSICAL_Z, ADV_PHYSICAL_CORE, ADV_PHYSICAL_COUNT };
const char *adv_physical_name(int physical); /* "x" "y" "z" "core" */

/* One physical factor under a logical axis. */
struct adv_ring {
    int physical;       /* ADV_PHYSICAL_* */
    int size;           /* chips (or cores) in this factor, >= 2 */
    int whole;          /* size of the whole physical axis */
    bool wraps;         /* the factor closes to a ring: whole axis and the torus wraps */
};

struct adv_axis_placement {
    int size;           /* devices along the logical axis inside a slice */
    int rings_count;    /* 0 when size == 1 */
    struct adv_ring rings[ADV_LIMIT_RINGS];
    double bytes_per_s_per_device; /* achievable gather bandwidth of one device over these factors, for display */
};

struct adv_mesh {
    struct adv_axis_placement axes[ADV_AXIS_COUNT]; /* ICI part */
    int split_axes_count;                           /* physical axes shared by several logical ones */
};

/* Places plan->ici on the slice. ADV_E_ILLEGAL (pointer /config): the product is not the slice's devices, or an axis
 * cannot be placed without splitting while splitting is not allowed; the hint names what would work. */
ADV_MUST_CHECK adv_code adv_mesh_place(const struct adv_cluster *cluster, const struct adv_plan *plan,
                                       struct adv_mesh *mesh, adv_err *err);

#endif
