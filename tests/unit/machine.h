/* machine.h: slices, degrees and constants of the catalog's chips, for tests of hardware/. */
#pragma once

#include <string.h>

#include "engine/catalog/catalog.h"
#include "engine/hardware/collective.h"
#include "engine/hardware/mesh.h"
#include "engine/spec/plan.h"

/* The embedded catalog, loaded once. */
static inline const struct adv_catalog_chip *machine_catalog_chip(const char *name)
{
    static struct adv_catalog *catalog;
    adv_err err;
    adv_err_init(&err);
    if (!catalog) catalog = adv_catalog_load(NULL, &err);
    if (!catalog) fail_msg("%s: %s", err.findings[0].pointer, err.findings[0].detail);
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, name);
    assert_non_null(chip);
    return chip;
}

static inline struct adv_chip machine_chip(const char *name)
{
    return machine_catalog_chip(name)->chip;
}

static inline struct adv_constants machine_constants(const char *name)
{
    return machine_catalog_chip(name)->constants;
}

/* One slice x * y * z with the wrap-around rule of its generation. */
static inline struct adv_cluster machine(const char *name, int x, int y, int z)
{
    struct adv_cluster cluster;
    memset(&cluster, 0, sizeof cluster);
    cluster.chip = machine_chip(name);
    cluster.dims[0] = x;
    cluster.dims[1] = y;
    cluster.dims[2] = z;
    adv_cluster_wraps(&cluster.chip, cluster.dims, cluster.wraps);
    cluster.slices = 1;
    cluster.chips_per_slice = x * y * z;
    cluster.devices_per_slice = cluster.chips_per_slice * (int)cluster.chip.devices_per_chip;
    cluster.devices = cluster.devices_per_slice;
    snprintf(cluster.topology, sizeof cluster.topology, "%dx%dx%d", x, y, z);
    return cluster;
}

/* A plan of which only the degrees matter: pairs of axis and degree, ended by ADV_AXIS_COUNT. */
static inline struct adv_plan machine_plan(int axis, ...)
{
    struct adv_plan plan;
    va_list rest;
    memset(&plan, 0, sizeof plan);
    for (int a = 0; a < ADV_AXIS_COUNT; a++) plan.family.ici[a] = plan.family.dcn[a] = 1;
    va_start(rest, axis);
    while (axis != ADV_AXIS_COUNT) {
        plan.family.ici[axis] = va_arg(rest, int);
        axis = va_arg(rest, int);
    }
    va_end(rest);
    return plan;
}

static inline struct adv_mesh machine_place(const struct adv_cluster *cluster, const struct adv_plan *plan)
{
    struct adv_mesh mesh;
    adv_err err;
    adv_err_init(&err);
    if (adv_mesh_place(cluster, plan, &mesh, &err) != ADV_OK) fail_msg("%s", err.findings[0].detail);
    return mesh;
}
