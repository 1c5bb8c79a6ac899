#include "engine/spec/cluster.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"

enum { AXIS_MAX = 4096, CHIPS_MAX = 1 << 20 };

void adv_cluster_wraps(const struct adv_chip *chip, const int dims[3], bool wraps[3])
{
    if (chip->ici_axes >= 3) {
        bool is_cube = dims[0] >= 4 && dims[1] >= 4 && dims[2] >= 4;
        wraps[0] = wraps[1] = wraps[2] = is_cube;
        return;
    }
    for (int axis = 0; axis < 3; axis++) wraps[axis] = axis < 2 && dims[axis] == 16;
}

bool adv_cluster_parse_shape(const char *text, int axes, int dims[3])
{
    int parsed[3] = {1, 1, 1};
    int count = 0;
    while (count < 3) {
        if (*text < '1' || *text > '9') return false;
        char *end;
        long size = strtol(text, &end, 10);
        if (size > AXIS_MAX) return false;
        parsed[count++] = (int)size;
        text = end;
        if (*text != 'x') break;
        text++;
    }
    bool flat = count == 3 && parsed[2] == 1;
    if (*text != '\0' || !(count == axes || (axes == 2 && flat))) return false;
    if ((int64_t)parsed[0] * parsed[1] * parsed[2] > CHIPS_MAX) return false;
    memcpy(dims, parsed, sizeof parsed);
    return true;
}

static void shape_name(const struct adv_cluster *cluster, char *text, size_t text_bytes)
{
    const int *dims = cluster->dims;
    if (cluster->chip.ici_axes >= 3)
        (void)snprintf(text, text_bytes, "%dx%dx%d", dims[0], dims[1], dims[2]);
    else
        (void)snprintf(text, text_bytes, "%dx%d", dims[0], dims[1]);
}

static int shape_chips(const char *shape, int axes)
{
    int dims[3];
    return adv_cluster_parse_shape(shape, axes, dims) ? dims[0] * dims[1] * dims[2] : 0;
}

/* The same sizes in another order first, then the nearest smaller and larger shapes by chips. */
static void suggest_shapes(const struct adv_cluster *cluster, int chips, const char *const *legal,
                           int legal_count, char hint[ADV_LIMIT_DETAIL])
{
    int axes = cluster->chip.ici_axes >= 3 ? 3 : 2;
    const char *below = NULL, *same = NULL, *above = NULL;
    for (int i = 0; i < legal_count; i++) { /* ordered by size */
        int size = shape_chips(legal[i], axes);
        if (size < chips) below = legal[i];
        if (size == chips) same = legal[i];
        if (size > chips && !above) above = legal[i];
    }
    (void)snprintf(hint, ADV_LIMIT_DETAIL, "nearest slices of %s:", cluster->chip.name);
    const char *const nearest[] = {same, below, above};
    for (int i = 0; i < 3; i++)
        if (nearest[i])
            adv_append(hint, ADV_LIMIT_DETAIL, " %s (%d chips)", nearest[i], shape_chips(nearest[i], axes));
}

/* A torus of whole cubes of 4x4x4 chips within the chip's pod: schedulers take it, offered or not. */
static bool is_torus(const struct adv_chip *chip, const int dims[3])
{
    const double chips = (double)dims[0] * dims[1] * dims[2];
    bool whole = chip->ici_axes >= 3 && chips <= chip->pod_max_chips;
    for (int i = 0; i < 3; i++) whole = whole && dims[i] >= 4 && dims[i] % 4 == 0;
    return whole;
}

static adv_code check_shape(const struct adv_cluster *cluster, const char *const *legal, int legal_count,
                            adv_err *err)
{
    for (int i = 0; i < legal_count; i++)
        if (strcmp(legal[i], cluster->topology) == 0) return ADV_OK;
    if (is_torus(&cluster->chip, cluster->dims)) return ADV_OK;
    char hint[ADV_LIMIT_DETAIL];
    int64_t chips = (int64_t)cluster->dims[0] * cluster->dims[1] * cluster->dims[2];
    suggest_shapes(cluster, (int)chips, legal, legal_count, hint);
    return adv_err_add(err, ADV_E_INVALID, "/cluster/topology", hint, "%s (%lld chips) is not a slice of %s",
                       cluster->topology, (long long)chips, cluster->chip.name);
}

adv_code adv_cluster_build(struct adv_cluster *cluster, const char *const *legal, int legal_count,
                           adv_err *err)
{
    adv_code code = ADV_OK;
    if (cluster->slices < 1 || cluster->slices > ADV_CLUSTER_SLICES_MAX)
        code = adv_err_add(err, ADV_E_RANGE, "/cluster/slices", NULL, "slices is %d, must be from 1 to %d",
                           cluster->slices, ADV_CLUSTER_SLICES_MAX);
    shape_name(cluster, cluster->topology, sizeof cluster->topology);
    adv_code shape = check_shape(cluster, legal, legal_count, err);
    if (code == ADV_OK) code = shape;
    if (code != ADV_OK) return code;

    int per_chip = (int)cluster->chip.devices_per_chip;
    int per_host = (int)cluster->chip.chips_per_host;
    cluster->chips_per_slice = cluster->dims[0] * cluster->dims[1] * cluster->dims[2];
    cluster->devices_per_slice = cluster->chips_per_slice * per_chip;
    cluster->devices = cluster->devices_per_slice * cluster->slices;
    int hosts_per_slice = cluster->chips_per_slice / per_host;
    if (hosts_per_slice < 1) hosts_per_slice = 1;
    cluster->hosts = hosts_per_slice * cluster->slices;
    cluster->devices_per_host = cluster->devices_per_slice / hosts_per_slice;
    adv_cluster_wraps(&cluster->chip, cluster->dims, cluster->wraps);
    return ADV_OK;
}
