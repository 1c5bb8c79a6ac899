/* chip.h: one accelerator generation. Numbers come from catalog/data/chips.json, each with source and
 * confidence. NAN = not published. "per chip" and "per device" are never mixed: tpu7x has two JAX devices per
 * chip.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/limits.h"
#include "engine/spec/flags.h"

/* Fields of a chip record: member (also the JSON name and the name in cluster.overrides), unit, what. */
#define ADV_CHIP_FIELDS(X)                                                                                   \
    X(devices_per_chip, "devices", "JAX devices per chip")                                                   \
    X(cores_per_chip, "cores", "TensorCores per chip")                                                       \
    X(chips_per_host, "chips", "chips per host VM")                                                          \
    X(mxu_per_core, "MXU", "matrix units per TensorCore")                                                    \
    X(mxu_rows, "rows", "contraction size of one MXU")                                                       \
    X(mxu_columns, "columns", "output columns of one MXU")                                                   \
    X(clock_hz, "Hz", "TensorCore clock; inferred where unpublished")                                        \
    X(peak_bf16_flops_per_s_per_chip, "FLOP/s", "dense bf16 peak")                                           \
    X(peak_fp8_flops_per_s_per_chip, "FLOP/s", "dense fp8 peak; null = no native fp8")                       \
    X(peak_int8_ops_per_s_per_chip, "op/s", "dense int8 peak; null = no native int8")                        \
    X(hbm_bytes_per_chip, "bytes", "nominal HBM capacity")                                                   \
    X(hbm_usable_bytes_per_device, "bytes", "what XLA lets a program use")                                   \
    X(hbm_bytes_per_s_per_chip, "bytes/s", "HBM bandwidth, specification")                                   \
    X(hbm_achieved_frac, "frac", "best measured copy bandwidth over specification")                          \
    X(vmem_bytes_per_core, "bytes", "VMEM capacity of one TensorCore")                                       \
    X(vmem_scoped_default_bytes, "bytes", "xla_tpu_scoped_vmem_limit_kib when unset")                        \
    X(sparsecores_per_chip, "cores", "SparseCores")                                                          \
    X(ici_axes, "axes", "torus dimensions, 2 or 3")                                                          \
    X(ici_link_bytes_per_s, "bytes/s", "one link, one direction, specification")                             \
    X(ici_link_achieved_bytes_per_s, "bytes/s", "one link, one direction, measured")                         \
    X(ici_hop_latency_s, "s", "one hop")                                                                     \
    X(d2d_bytes_per_s, "bytes/s", "die to die, one direction; null = single die or megacore")                \
    X(dcn_bytes_per_s_per_chip, "bytes/s", "data-centre network, one direction")                             \
    X(pcie_bytes_per_s_per_chip, "bytes/s", "host link, one direction, planning value")                      \
    X(host_dram_bytes_per_host, "bytes", "host memory of one VM")                                            \
    X(pod_max_chips, "chips", "largest slice")                                                               \
    X(price_usd_per_chip_hour, "USD", "on-demand list price; null = unpublished")                            \
    X(power_watts_per_chip, "W", "all-in power; null = unpublished")

/* The settings that published recipes of the generation agree on. From the chip's `recipe`; unset without. */
struct adv_chip_recipe {
    struct adv_flags flags, flags_with_experts; /* the second for models with experts */
    bool tokamax_splash;    /* its attention kernels are published and tuned for the generation */
    bool fixed_fp8_scales;  /* fp8 with given scales: no pass for the maxima */
    bool embedding_lookups; /* some published steps gather their embedding */
    bool overlap_gradients; /* the bundle that hides gradients between slices is published for it */
};

/* Names of the chip's nodes in Google Kubernetes Engine, Cluster Toolkit and XPK. From its `nodes`. */
struct adv_chip_nodes {
    char label[ADV_LIMIT_NAME];   /* cloud.google.com/gke-tpu-accelerator */
    char machine[ADV_LIMIT_NAME]; /* --compute-type without the chips of a host: "ct6e-standard" */
    bool splits_hosts;            /* GKE puts two containers on a host, one for each half of its chips */
    char xpk[ADV_LIMIT_NAME];     /* prefix of --tpu-type: "v5litepod" */
    int xpk_chips;                /* of XPK's smallest type */
};

/* For a few small slices JAX has an order of the devices that it cuts into any mesh. From `any_mesh_slices`.
 */
enum { ADV_CHIP_ANY_MESH_SLICES_MAX = 4 };

struct adv_chip {
    char name[ADV_LIMIT_NAME];  /* "tpu7x" */
    char title[ADV_LIMIT_NAME]; /* "TPU7x (Ironwood)" */
    bool is_tpu;                /* false: a headline row for platform comparison only */
    bool has_megacore;          /* one JAX device drives two cores (v4, v5p) */
    bool whole_host_copies;     /* libtpu copies nothing to the host that has padding between its rows */
    bool offloads_collectives;  /* SparseCore offload of AG/RS/AR is on by default (tpu7x) */
#define ADV_CHIP_MEMBER(name, unit, what) double name;
    ADV_CHIP_FIELDS(ADV_CHIP_MEMBER)
#undef ADV_CHIP_MEMBER
    int any_mesh_slices[ADV_CHIP_ANY_MESH_SLICES_MAX][3]; /* chips along x, y, z; zeros after the last */
    struct adv_chip_nodes nodes;
    struct adv_chip_recipe recipe;
    struct adv_flags ignored_flags;             /* what the request's libtpu ignores: ADV_FLAG_IGNORED… */
    double pcie_published_bytes_per_s_per_chip; /* the catalog's: a what-if host link differs from it */
};

/* How much faster than the catalog's the host link is: what was measured through it scales with this. */
double adv_chip_host_link_ratio(const struct adv_chip *chip);

/* The table above at run time, for decoding overrides and encoding the catalog. */
struct adv_chip_field {
    const char *name, *unit, *what;
    size_t offset; /* in struct adv_chip */
};

/* All fields in their order; *count is set. */
const struct adv_chip_field *adv_chip_fields(int *count);
/* By name; NULL when there is no such field. */
const struct adv_chip_field *adv_chip_field(const char *name);
/* The field that goes along when only this one is changed (the achieved rate with the specified one); NULL.
 */
const struct adv_chip_field *adv_chip_field_follower(const struct adv_chip_field *field);
double adv_chip_field_get(const struct adv_chip *chip, const struct adv_chip_field *field);
void adv_chip_field_set(struct adv_chip *chip, const struct adv_chip_field *field, double value);
