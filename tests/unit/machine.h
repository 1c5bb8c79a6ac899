/* machine.h: clusters and link constants for tests of hardware/. Chip numbers: public specifications, measured links. */
#ifndef TESTS_UNIT_MACHINE_H
#define TESTS_UNIT_MACHINE_H

#include <stdlib.h>
#include <string.h>

#include "engine/catalog/constants.h"
#include "engine/hardware/collective.h"
#include "engine/hardware/mesh.h"
#include "engine/spec/plan.h"

#include <jansson.h>

#define MACHINE_CHIPS(X) /* name, devices, TFLOP/s, HBM GB/s, achieved, link, achieved, die to die, DCN, PCIe, mxu, 3-D */ \
    X("tpu7x", 2, 2307, 7380, 0.870, 100, 90, 600, 12.5, 32, 256, true)                                      \
    X("v6e", 1, 918, 1638, 0.830, 100, 90, NAN, 12.5, 32, 256, false)                                        \
    X("v5p", 1, 459, 2765, 0.870, 100, 90, NAN, 6.25, 16, 128, true)                                         \
    X("v5e", 1, 197, 819, 0.870, 50, 45, NAN, 3.125, 16, 128, false)                                         \
    X("v4", 1, 275, 1228, 0.870, 50, 45, NAN, 6.25, 16, 128, true)

static inline struct adv_chip machine_chip(const char *name, bool *is_3d)
{
    struct adv_chip chip;
    memset(&chip, 0, sizeof chip);
#define MACHINE_CHIP(chip_name, devices, tflops, hbm, hbm_frac, link, link_achieved, d2d, dcn, pcie, mxu, three_d) \
    if (strcmp(name, chip_name) == 0) {                                                                      \
        snprintf(chip.name, sizeof chip.name, "%s", chip_name);                                              \
        chip.is_tpu = true;                                                                                  \
        chip.devices_per_chip = devices;                                                                     \
        chip.chips_per_host = 4;                                                                             \
        chip.peak_bf16_flops_per_s_per_chip = (tflops)*1e12;                                                 \
        chip.hbm_bytes_per_s_per_chip = (hbm)*1e9;                                                           \
        chip.hbm_achieved_frac = hbm_frac;                                                                   \
        chip.ici_link_bytes_per_s = (link)*1e9;                                                              \
        chip.ici_link_achieved_bytes_per_s = (link_achieved)*1e9;                                            \
        chip.ici_hop_latency_s = 1e-6;                                                                       \
        chip.d2d_bytes_per_s = (double)(d2d)*1e9;                                                            \
        chip.dcn_bytes_per_s_per_chip = (dcn)*1e9;                                                           \
        chip.pcie_bytes_per_s_per_chip = (pcie)*1e9;                                                         \
        chip.host_dram_bytes_per_host = 960e9;                                                               \
        chip.mxu_rows = mxu;                                                                                 \
        if (is_3d) *is_3d = three_d;                                                                         \
    }
    MACHINE_CHIPS(MACHINE_CHIP)
#undef MACHINE_CHIP
    assert_string_equal(chip.name, name);
    return chip;
}

/* One slice x * y * z with the wrap-around rule of its generation. */
static inline struct adv_cluster machine(const char *name, int x, int y, int z)
{
    struct adv_cluster cluster;
    bool is_3d = false;
    memset(&cluster, 0, sizeof cluster);
    cluster.chip = machine_chip(name, &is_3d);
    cluster.dims[0] = x;
    cluster.dims[1] = y;
    cluster.dims[2] = z;
    for (int p = 0; p < 3; p++)
        cluster.wraps[p] = is_3d ? x >= 4 && y >= 4 && z >= 4 : cluster.dims[p] == 16;
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
    for (int a = 0; a < ADV_AXIS_COUNT; a++) plan.ici[a] = plan.dcn[a] = 1;
    va_start(rest, axis);
    while (axis != ADV_AXIS_COUNT) {
        plan.ici[axis] = va_arg(rest, int);
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

/* Link constants of a chip from the catalog's data file; the other constants stay 0. */
static inline struct adv_constants machine_constants(const char *chip)
{
    struct adv_constants constants;
    memset(&constants, 0, sizeof constants);
    json_t *root = json_load_file("engine/catalog/data/link_constants.json", 0, NULL);
    const json_t *rows = json_object_get(root, chip);
    assert_non_null(rows);
#define MACHINE_CONSTANT(name, unit, what)                                                                   \
    constants.name = json_number_value(json_object_get(json_object_get(rows, #name), "value"));              \
    assert_true(constants.name > 0.0);
    ADV_LINK_CONSTANTS(MACHINE_CONSTANT)
#undef MACHINE_CONSTANT
    json_decref(root);
    return constants;
}

#endif
