#include "engine/hardware/mesh.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/maxtext/names.h"

/* Sizes of the physical axes and, while placing, what each logical axis took of them. */
struct placing {
    int whole[ADV_PHYSICAL_COUNT];
    int taken[ADV_PHYSICAL_COUNT]; /* product of the factors given away so far */
    int factors[ADV_AXIS_COUNT][ADV_PHYSICAL_COUNT];
};

ADV_NAMES(adv_physical_name, int, "x", "y", "z", "core")

static bool in_mesh(int axis)
{
    return axis != ADV_AXIS_SEQUENCE;
}

static int axis_size(const struct adv_plan *plan, int axis)
{
    return in_mesh(axis) ? plan->family.ici[axis] : 1;
}

static void start_placing(const struct adv_cluster *cluster, struct placing *placing)
{
    for (int p = 0; p < 3; p++) placing->whole[p] = cluster->dims[p] > 1 ? cluster->dims[p] : 1;
    placing->whole[ADV_PHYSICAL_CORE] =
        (int)cluster->chip.devices_per_chip > 1 ? (int)cluster->chip.devices_per_chip : 1;
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) placing->taken[p] = 1;
    for (int a = 0; a < ADV_AXIS_COUNT; a++)
        for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) placing->factors[a][p] = 1;
}

static void give(struct placing *placing, int axis, const int factors[ADV_PHYSICAL_COUNT])
{
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) {
        placing->factors[axis][p] = factors[p];
        placing->taken[p] *= factors[p];
    }
}

/* Subsets of the physical axes (bit p = axis p) in the order JAX tries subsets of equal size: lexicographic
 * by axis. */
static const unsigned subsets_in_order[] = {1, 3, 7, 15, 11, 5, 13, 9, 2, 6, 14, 10, 4, 12, 8};

static int bits(unsigned mask)
{
    return __builtin_popcount(mask);
}

/* Gives `size` whole free physical axes. false: no combination has that product. */
static bool place_whole(struct placing *placing, int axis, int size)
{
    unsigned best = 0;
    const unsigned core = 1u << ADV_PHYSICAL_CORE;
    for (size_t i = 0; i < sizeof subsets_in_order / sizeof subsets_in_order[0]; i++) {
        unsigned subset = subsets_in_order[i];
        int64_t product = 1;
        bool free_axes = true;
        for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) {
            if (!(subset & 1u << p)) continue;
            free_axes = free_axes && placing->whole[p] > 1 && placing->taken[p] == 1;
            product *= placing->whole[p];
        }
        if (!free_axes || product != size) continue;
        bool better = best == 0 || bits(subset) > bits(best) ||
                      (bits(subset) == bits(best) && (subset & core) && !(best & core));
        if (better) best = subset;
    }
    if (best == 0) return false;
    int factors[ADV_PHYSICAL_COUNT];
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) factors[p] = best & 1u << p ? placing->whole[p] : 1;
    give(placing, axis, factors);
    return true;
}

/* The order of split assignments, most important first. */
struct split_score {
    int64_t whole_product, whole_axes, core, on_taken_axes;
};

static struct split_score score_split(const struct placing *placing, const int factors[ADV_PHYSICAL_COUNT])
{
    struct split_score score = {1, 0, factors[ADV_PHYSICAL_CORE] > 1, 1};
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) {
        if (factors[p] == placing->whole[p]) {
            score.whole_product *= factors[p];
            score.whole_axes += factors[p] > 1;
        }
        if (placing->taken[p] > 1) score.on_taken_axes *= factors[p];
    }
    return score;
}

static bool split_is_better(const struct placing *placing, const int a[ADV_PHYSICAL_COUNT],
                            const int b[ADV_PHYSICAL_COUNT])
{
    struct split_score sa = score_split(placing, a), sb = score_split(placing, b);
    if (sa.whole_product != sb.whole_product) return sa.whole_product > sb.whole_product;
    if (sa.whole_axes != sb.whole_axes) return sa.whole_axes > sb.whole_axes;
    if (sa.core != sb.core) return sa.core > sb.core;
    if (sa.on_taken_axes != sb.on_taken_axes) return sa.on_taken_axes > sb.on_taken_axes;
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++)
        if (a[p] != b[p]) return a[p] > b[p];
    return false;
}

/* Gives `size` as the best product of divisors of what is left of each physical axis. As the sizes of all
 * logical and all physical axes have the same prime factors, there always is one. */
static bool place_split(struct placing *placing, int axis, int size)
{
    int best[ADV_PHYSICAL_COUNT], left[ADV_PHYSICAL_COUNT];
    bool found = false;
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) left[p] = placing->whole[p] / placing->taken[p];
    for (int x = 1; x <= left[0]; x++) {
        if (left[0] % x != 0 || size % x != 0) continue;
        for (int y = 1; y <= left[1]; y++) {
            if (left[1] % y != 0 || size / x % y != 0) continue;
            for (int core = 1; core <= left[3]; core++) { /* z takes what is left */
                if (left[3] % core != 0 || size / x / y % core != 0) continue;
                int factors[ADV_PHYSICAL_COUNT] = {x, y, size / x / y / core, core};
                if (left[2] % factors[2] != 0) continue;
                if (found && !split_is_better(placing, factors, best)) continue;
                memcpy(best, factors, sizeof best);
                found = true;
            }
        }
    }
    if (found) give(placing, axis, best);
    return found;
}

static bool place_all(const struct adv_cluster *cluster, const struct adv_plan *plan, struct placing *placing,
                      bool (*place)(struct placing *, int, int))
{
    start_placing(cluster, placing);
    for (int axis = ADV_AXIS_COUNT - 1; axis >= 0; axis--) {
        int size = axis_size(plan, axis);
        if (size > 1 && !place(placing, axis, size)) return false;
    }
    return true;
}

/* Whether JAX cuts any mesh from its own order of the slice's devices. */
static bool takes_any_mesh(const struct adv_cluster *cluster)
{
    for (int i = 0; i < ADV_CHIP_ANY_MESH_SLICES_MAX; i++)
        if (memcmp(cluster->chip.any_mesh_slices[i], cluster->dims, sizeof cluster->dims) == 0) return true;
    return false;
}

/* The two axes of a device order made by hand; false where MaxText does not look at it. */
static bool place_by_hand(const struct adv_cluster *cluster, const struct adv_plan *plan,
                          struct placing *placing)
{
    if (plan->family.custom_mesh == ADV_CUSTOM_MESH_NONE ||
        (!plan->family.allow_split_physical_axes && cluster->slices == 1))
        return false;
    const int block[ADV_PHYSICAL_COUNT] = {2, plan->family.custom_mesh == ADV_CUSTOM_MESH_64X4 ? 2 : 4, 1, 1};
    const int ring = block[0] * block[1];
    int first = -1, second = -1, others = 0;
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) {
        if (axis_size(plan, axis) == 1) continue;
        others += second >= 0;
        if (first < 0)
            first = axis;
        else
            second = axis;
    }
    start_placing(cluster, placing);
    const int *whole = placing->whole;
    if (second < 0 || others > 0 || whole[0] != 16 || whole[1] != 16) return false;
    int inner[ADV_PHYSICAL_COUNT] = {block[0], block[1], 1, 1}, outer[ADV_PHYSICAL_COUNT] = {1, 1, 1, 1};
    if (axis_size(plan, first) == ring && axis_size(plan, second) == 256 / ring) {
        inner[0] =
            whole[0] / axis_size(plan, first); /* rows of blocks on the shorter axis, which comes first */
        inner[1] = whole[1];
    } else if (axis_size(plan, second) != ring || axis_size(plan, first) != 256 / ring) {
        return false;
    }
    for (int p = 0; p < 2; p++) outer[p] = whole[p] / inner[p];
    give(placing, second, inner);
    give(placing, first, outer);
    return true;
}

double adv_ring_bytes_per_s(const struct adv_chip *chip, const struct adv_ring *ring)
{
    if (ring->physical == ADV_PHYSICAL_CORE) return chip->d2d_bytes_per_s;
    double link = isnan(chip->ici_link_achieved_bytes_per_s) ? chip->ici_link_bytes_per_s
                                                             : chip->ici_link_achieved_bytes_per_s;
    return (ring->wraps ? 2.0 : 1.0) * link / ring->stride;
}

/* Gather bandwidth of one device: the rings work in parallel; two devices of a chip share the links unless
 * the core pair is among the rings (then what one device receives the other gets over the die-to-die link).
 */
static double placement_bytes_per_s(const struct adv_cluster *cluster,
                                    const struct adv_axis_placement *placement)
{
    double ici = 0.0;
    bool has_core = false, has_ici = false;
    for (int i = 0; i < placement->rings_count; i++) {
        if (placement->rings[i].physical == ADV_PHYSICAL_CORE) {
            has_core = true;
        } else {
            has_ici = true;
            ici += adv_ring_bytes_per_s(&cluster->chip, &placement->rings[i]);
        }
    }
    if (!has_ici) return has_core ? cluster->chip.d2d_bytes_per_s : (double)NAN;
    return has_core ? ici : ici / cluster->chip.devices_per_chip;
}

/* Writes the factors as rings. Later logical axes are the inner part of a split physical axis. */
static void write_rings(const struct adv_cluster *cluster, const struct adv_plan *plan,
                        const struct placing *placing, struct adv_mesh *mesh)
{
    int inner[ADV_PHYSICAL_COUNT] = {1, 1, 1, 1};
    memset(mesh, 0, sizeof *mesh);
    for (int axis = ADV_AXIS_COUNT - 1; axis >= 0; axis--) {
        struct adv_axis_placement *placement = &mesh->axes[axis];
        placement->size = axis_size(plan, axis);
        for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) {
            int size = placing->factors[axis][p];
            if (size < 2) continue;
            bool reaches_round = size * inner[p] == placing->whole[p];
            placement->rings[placement->rings_count++] = (struct adv_ring){
                .physical = p,
                .size = size,
                .whole = placing->whole[p],
                .stride = inner[p],
                .wraps = p != ADV_PHYSICAL_CORE && reaches_round && cluster->wraps[p],
            };
            inner[p] *= size;
        }
        placement->bytes_per_s_per_device = placement_bytes_per_s(cluster, placement);
    }
}

static adv_code report_product(const struct adv_cluster *cluster, const struct adv_plan *plan,
                               int64_t devices, int64_t product, adv_err *err)
{
    char hint[ADV_LIMIT_DETAIL], degrees[ADV_LIMIT_DETAIL / 2];
    int ici[ADV_AXIS_COUNT], fsdp = axis_size(plan, ADV_AXIS_FSDP);
    int64_t others = fsdp > 0 ? product / fsdp : 0;
    memcpy(ici, plan->family.ici, sizeof ici);
    ici[ADV_AXIS_SEQUENCE] = 1;
    adv_plan_axes_text(ici, "all 1", degrees, sizeof degrees);
    if (others > 0 && devices % others == 0)
        snprintf(hint, sizeof hint, "ici_fsdp_parallelism would have to be %" PRId64 " (or -1)",
                 devices / others);
    else
        snprintf(hint, sizeof hint, "choose degrees >= 1 whose product is %" PRId64, devices);
    return adv_err_add(err, ADV_E_ILLEGAL, "/config", hint,
                       "a slice %s has %" PRId64 " devices, the ici_*_parallelism degrees (%s) make %" PRId64,
                       cluster->topology, devices, degrees, product);
}

adv_code adv_mesh_place(const struct adv_cluster *cluster, const struct adv_plan *plan, struct adv_mesh *mesh,
                        adv_err *err)
{
    struct placing placing;
    int64_t product = 1, devices = 1;
    bool positive = true;
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) {
        positive = positive && axis_size(plan, axis) >= 1;
        if (positive && product <= INT32_MAX) product *= axis_size(plan, axis);
    }
    start_placing(cluster, &placing);
    for (int p = 0; p < ADV_PHYSICAL_COUNT; p++) devices *= placing.whole[p];
    if (!positive || product != devices)
        return report_product(cluster, plan, devices, positive ? product : 0, err);
    const bool whole =
        place_by_hand(cluster, plan, &placing) || place_all(cluster, plan, &placing, place_whole);
    if (!whole && !place_all(cluster, plan, &placing, place_split))
        return adv_err_add(err, ADV_E_INTERNAL, "/config", NULL, "the mesh cannot be placed on %s",
                           cluster->topology);
    write_rings(cluster, plan, &placing, mesh);
    mesh->needs_split = !whole && !takes_any_mesh(cluster);
    return ADV_OK;
}

void adv_mesh_report_split(const struct adv_cluster *cluster, const struct adv_plan *plan, adv_code code,
                           adv_err *findings)
{
    struct adv_mesh mesh;
    if (plan->family.allow_split_physical_axes || adv_mesh_place(cluster, plan, &mesh, NULL) != ADV_OK ||
        !mesh.needs_split)
        return;
    char degrees[ADV_LIMIT_DETAIL / 2];
    int ici[ADV_AXIS_COUNT];
    for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) ici[axis] = axis_size(plan, axis);
    adv_plan_axes_text(ici, "all 1", degrees, sizeof degrees);
    (void)adv_err_add_rule(
        findings, code, "split-axes", "/config/" ADV_NAME_ALLOW_SPLIT_PHYSICAL_AXES,
        "set it to true, or choose degrees that are products of whole axes of the slice",
        "JAX refuses the mesh (%s) on a slice %s: its axes do not each cover whole axes of "
        "the torus",
        degrees, cluster->topology);
}
