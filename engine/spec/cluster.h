/* cluster.h: the machine of one request: a chip generation, a slice shape, how many slices. */
#pragma once

#include <stdbool.h>

#include "engine/base/err.h"
#include "engine/spec/chip.h"

struct adv_cluster {
    struct adv_chip chip; /* a copy of the catalog's record, with the request's overrides applied */
    int dims[3];          /* chips along x, y, z; unused axes 1 */
    bool wraps[3];        /* this axis closes to a ring */
    int slices;
    int chips_per_slice;   /* dims product */
    int devices_per_slice; /* chips_per_slice * chip.devices_per_chip */
    int devices;           /* of all slices */
    int hosts;             /* of all slices */
    int devices_per_host;
    char topology[ADV_LIMIT_NAME];    /* "4x4x4" */
    char accelerator[ADV_LIMIT_NAME]; /* compile_topology name, "" where MaxText has none */
    double price_usd_per_chip_hour;   /* NAN when unknown */
    bool has_overrides;
};

/* Which axes of a slice wrap: 3-D chips all three once every dimension is >= 4, 2-D chips an axis of
 * exactly 16. Source: maxtext accelerator_to_spec_map.py; checked against all 223 catalog rows by tests. */
void adv_cluster_wraps(const struct adv_chip *chip, const int dims[3], bool wraps[3]);

/* "4x4x8" for three axes, "8x16" (or "8x16x1") for two; false when `text` is no such shape of positive sizes.
 */
bool adv_cluster_parse_shape(const char *text, int axes, int dims[3]);

/* Fills the derived fields (all but `accelerator` and the price) from chip, dims and slices. ADV_E_INVALID
 * (pointer /cluster/topology): a shape that is neither `legal` nor a torus of this chip, with the nearest
 * legal shapes in the hint. ADV_E_RANGE (pointer /cluster/slices): fewer than 1 slice or more than
 * ADV_CLUSTER_SLICES_MAX. `legal` is the catalog's list of "4x4x4" names (adv_catalog_shapes). */
enum { ADV_CLUSTER_SLICES_MAX = 1024 }; /* the largest published run has 199 */
ADV_MUST_CHECK adv_code adv_cluster_build(struct adv_cluster *cluster, const char *const *legal,
                                          int legal_count, adv_err *err);
