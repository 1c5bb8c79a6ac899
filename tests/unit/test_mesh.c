#include "tests/unit/check.h"

#include <jansson.h>
#include <stdio.h>

#include "tests/unit/machine.h"

/* "x4 core2" of one logical axis; a part of an axis is "x2/8", its outer part "x4/8:2". */
static const char *placed(const struct adv_mesh *mesh, int axis)
{
    static char text[128];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < mesh->axes[axis].rings_count; i++) {
        const struct adv_ring *ring = &mesh->axes[axis].rings[i];
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s%d", used ? " " : "",
                                 adv_physical_name(ring->physical), ring->size);
        if (ring->size != ring->whole)
            used += (size_t)snprintf(text + used, sizeof text - used, "/%d", ring->whole);
        if (ring->stride != 1) used += (size_t)snprintf(text + used, sizeof text - used, ":%d", ring->stride);
    }
    return text;
}

struct expected {
    const char *chip;
    int dims[3];
    int axis_a, size_a;
    const char *placed_a;
    int axis_b, size_b;
    const char *placed_b;
    int splits;
};

static void expect_placements(const struct expected *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct expected *row = &rows[i];
        struct adv_cluster cluster = machine(row->chip, row->dims[0], row->dims[1], row->dims[2]);
        struct adv_plan plan =
            machine_plan(row->axis_a, row->size_a, row->axis_b, row->size_b, ADV_AXIS_COUNT);
        struct adv_mesh mesh = machine_place(&cluster, &plan);
        assert_string_equal(placed(&mesh, row->axis_a), row->placed_a);
        assert_string_equal(placed(&mesh, row->axis_b), row->placed_b);
        assert_int_equal(mesh.needs_split, row->splits > 0);
    }
}

static void whole_axes_are_taken_as_jax_takes_them(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {"v5p", {4, 4, 8}, ADV_AXIS_FSDP, 32, "y4 z8", ADV_AXIS_TENSOR, 4, "x4", 0},
        {"v5p", {4, 4, 8}, ADV_AXIS_FSDP, 16, "x4 y4", ADV_AXIS_TENSOR, 8, "z8", 0},
        {"v5p", {4, 8, 8}, ADV_AXIS_FSDP, 32, "x4 z8", ADV_AXIS_TENSOR, 8, "y8", 0},
        {"v5p", {8, 8, 8}, ADV_AXIS_FSDP, 64, "y8 z8", ADV_AXIS_TENSOR, 8, "x8", 0},
        {"v5p", {8, 8, 16}, ADV_AXIS_FSDP, 64, "x8 y8", ADV_AXIS_TENSOR, 16, "z16", 0},
        {"v5p", {4, 4, 4}, ADV_AXIS_CONTEXT, 16, "y4 z4", ADV_AXIS_ULYSSES, 4, "x4", 0},
        {"v5e", {16, 16, 1}, ADV_AXIS_FSDP, 16, "y16", ADV_AXIS_TENSOR, 16, "x16", 0},
        {"v6e", {16, 16, 1}, ADV_AXIS_FSDP, 16, "y16", ADV_AXIS_EXPERT, 16, "x16", 0},
        {"v5p", {2, 2, 1}, ADV_AXIS_FSDP, 4, "x2 y2", ADV_AXIS_TENSOR, 1, "", 0},
        {"tpu7x", {4, 8, 8}, ADV_AXIS_FSDP, 64, "y8 z8", ADV_AXIS_CONTEXT, 8, "x4 core2", 0},
        {"tpu7x", {4, 4, 4}, ADV_AXIS_FSDP, 16, "y4 z4", ADV_AXIS_FSDP_TRANSPOSE, 8, "x4 core2", 0},
        {"tpu7x", {4, 4, 4}, ADV_AXIS_DATA, 2, "core2", ADV_AXIS_FSDP, 64, "x4 y4 z4", 0},
        {"tpu7x", {4, 4, 4}, ADV_AXIS_DATA, 4, "z4", ADV_AXIS_FSDP, 32, "x4 y4 core2", 0},
        {"tpu7x", {4, 4, 4}, ADV_AXIS_DATA, 1, "", ADV_AXIS_FSDP, 128, "x4 y4 z4 core2", 0},
    };
    expect_placements(rows, sizeof rows / sizeof rows[0]);
}

static void the_core_pair_wins_among_equal_combinations(void **state)
{
    (void)state;
    /* jax #39340: FSDP 32 on (2, 4, 4, 2) took x y z although y z core has the same product. */
    static const struct expected rows[] = {
        {"tpu7x", {2, 4, 4}, ADV_AXIS_DATA, 2, "x2", ADV_AXIS_FSDP, 32, "y4 z4 core2", 0},
        {"tpu7x", {2, 4, 4}, ADV_AXIS_FSDP, 32, "x2 y4 z4", ADV_AXIS_TENSOR, 2, "core2", 0},
        {"tpu7x", {2, 2, 1}, ADV_AXIS_FSDP, 4, "x2 y2", ADV_AXIS_TENSOR, 2, "core2", 0},
    };
    expect_placements(rows, sizeof rows / sizeof rows[0]);
}

static void what_needs_a_split_is_split_and_marked(void **state)
{
    (void)state;
    static const struct expected rows[] = {
        {"v5p", {8, 8, 8}, ADV_AXIS_FSDP, 32, "y4/8:2 z8", ADV_AXIS_TENSOR, 16, "x8 y2/8", 1},
        {"v5p", {4, 4, 4}, ADV_AXIS_CONTEXT, 8, "y2/4:2 z4", ADV_AXIS_ULYSSES, 8, "x4 y2/4", 1},
        {"v5p", {4, 4, 4}, ADV_AXIS_CONTEXT, 32, "x2/4:2 y4 z4", ADV_AXIS_ULYSSES, 2, "x2/4", 1},
    };
    expect_placements(rows, sizeof rows / sizeof rows[0]);
}

/* JAX's own create_device_mesh said so, tests/eco/meshes.py. */
static void what_jax_refuses_needs_a_split_and_nothing_else(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int axis;
    } axes[] = {{"data", ADV_AXIS_DATA},
                {"fsdp", ADV_AXIS_FSDP},
                {"fsdp_transpose", ADV_AXIS_FSDP_TRANSPOSE},
                {"context", ADV_AXIS_CONTEXT},
                {"tensor", ADV_AXIS_TENSOR}};
    json_t *root = json_load_file("tests/data/jax_meshes.json", 0, NULL);
    const json_t *rows = json_object_get(root, "meshes");
    int refused_count = 0;
    assert_true(json_array_size(rows) > 300);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const bool refused = json_is_true(json_object_get(row, "refused"));
        int dims[3] = {1, 1, 1};
        (void)sscanf(json_string_value(json_object_get(row, "topology")), "%dx%dx%d", &dims[0], &dims[1],
                     &dims[2]);
        struct adv_cluster cluster =
            machine(json_string_value(json_object_get(row, "chip")), dims[0], dims[1], dims[2]);
        struct adv_plan plan = machine_plan(ADV_AXIS_COUNT);
        for (size_t a = 0; a < sizeof axes / sizeof *axes; a++) {
            const json_t *size = json_object_get(row, axes[a].name);
            if (size) plan.family.ici[axes[a].axis] = (short)json_integer_value(size);
        }
        adv_err found = adv_err_empty();
        adv_mesh_report_split(&cluster, &plan, ADV_E_ILLEGAL, &found);
        if (refused != (found.count == 1)) fail_msg("row %zu: JAX %s it", i, refused ? "refuses" : "takes");
        plan.family.allow_split_physical_axes = true;
        adv_mesh_report_split(&cluster, &plan, ADV_E_ILLEGAL, &found);
        assert_int_equal(found.count, refused);
        refused_count += refused;
    }
    assert_in_range(refused_count, 50, json_array_size(rows) - 50);
    json_decref(root);
}

static void splits_stay_on_axes_already_split(void **state)
{
    (void)state;
    /* 3 fits z only; the next axis goes there too, although x is free. */
    struct adv_cluster cluster = machine("v5p", 4, 4, 12);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_FSDP, 32, ADV_AXIS_CONTEXT, 2, ADV_AXIS_EXPERT, 3, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_EXPERT), "z3/12");
    assert_string_equal(placed(&mesh, ADV_AXIS_CONTEXT), "z2/12:3");
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "x4 y4 z2/12:6");
}

static void the_core_pair_wins_among_equal_splits_too(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 2, 4, 4);
    struct adv_plan plan = machine_plan(ADV_AXIS_DILOCO, 2, ADV_AXIS_DATA, 2, ADV_AXIS_STAGE, 2,
                                        ADV_AXIS_FSDP, 8, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "y4 core2");
    assert_string_equal(placed(&mesh, ADV_AXIS_STAGE), "x2");
    assert_string_equal(placed(&mesh, ADV_AXIS_DATA), "z2/4");
    assert_string_equal(placed(&mesh, ADV_AXIS_DILOCO), "z2/4:2");
}

static void tp2_takes_the_cores_and_cp2_then_is_a_line(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_FSDP, 32, ADV_AXIS_CONTEXT, 2, ADV_AXIS_TENSOR, 2, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_TENSOR), "core2");
    assert_string_equal(placed(&mesh, ADV_AXIS_CONTEXT), "x2/4");
    assert_false(mesh.axes[ADV_AXIS_CONTEXT].rings[0].wraps);
    /* Half of one wrapped axis (2 x 90e9), shared by the chip's two devices. */
    assert_close(mesh.axes[ADV_AXIS_CONTEXT].bytes_per_s_per_device, 90e9 / 2, 1e-12);
    assert_close(mesh.axes[ADV_AXIS_TENSOR].bytes_per_s_per_device, 600e9, 1e-12);
}

static void three_axes_of_a_large_mesh_share_one_axis(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 8, 8, 8);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_DATA, 2, ADV_AXIS_FSDP, 256, ADV_AXIS_FSDP_TRANSPOSE, 2, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP_TRANSPOSE), "core2");
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "x8 y8 z4/8");
    assert_string_equal(placed(&mesh, ADV_AXIS_DATA), "z2/8:4");
    assert_true(mesh.needs_split);
}

static void a_part_of_a_ring_has_half_its_bandwidth(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v5p", 8, 8, 8);
    struct adv_ring whole = {ADV_PHYSICAL_X, 8, 8, 1, true}, inner = {ADV_PHYSICAL_X, 4, 8, 1, false};
    struct adv_ring outer = {ADV_PHYSICAL_X, 4, 8, 2, true};
    assert_close(adv_ring_bytes_per_s(&cluster.chip, &whole), 180e9, 1e-12);
    assert_close(adv_ring_bytes_per_s(&cluster.chip, &inner), 90e9, 1e-12);
    assert_close(adv_ring_bytes_per_s(&cluster.chip, &outer), 90e9, 1e-12);
}

static void devices_share_the_links_unless_the_cores_gather_together(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    struct adv_plan together = machine_plan(ADV_AXIS_FSDP, 128, ADV_AXIS_COUNT);
    struct adv_plan apart = machine_plan(ADV_AXIS_DATA, 2, ADV_AXIS_FSDP, 64, ADV_AXIS_COUNT);
    struct adv_mesh a = machine_place(&cluster, &together), b = machine_place(&cluster, &apart);
    assert_close(a.axes[ADV_AXIS_FSDP].bytes_per_s_per_device, 540e9, 1e-12);
    assert_close(b.axes[ADV_AXIS_FSDP].bytes_per_s_per_device, 270e9, 1e-12);
}

static void a_mesh_of_the_wrong_size_is_refused_with_the_degree_that_fits(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_FSDP, 16, ADV_AXIS_CONTEXT, 2, ADV_AXIS_TENSOR, 2, ADV_AXIS_COUNT);
    struct adv_mesh mesh;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_mesh_place(&cluster, &plan, &mesh, &err), ADV_E_ILLEGAL);
    assert_string_equal(err.findings[0].pointer, "/config");
    assert_non_null(strstr(err.findings[0].detail, "128 devices"));
    assert_non_null(strstr(err.findings[0].detail, "(fsdp 16 x context 2 x tensor 2) make 64"));
    assert_non_null(strstr(err.findings[0].hint, "ici_fsdp_parallelism would have to be 32"));
    /* The same degrees are a whole slice of half the size. */
    struct adv_cluster half = machine("tpu7x", 2, 4, 4);
    mesh = machine_place(&half, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_TENSOR), "core2");
}

static void degrees_below_one_and_huge_products_are_refused(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v6e", 16, 16, 1);
    struct adv_plan zero = machine_plan(ADV_AXIS_FSDP, 256, ADV_AXIS_TENSOR, 0, ADV_AXIS_COUNT);
    struct adv_plan huge =
        machine_plan(ADV_AXIS_DATA, INT32_MAX, ADV_AXIS_FSDP, INT32_MAX, ADV_AXIS_CONTEXT, INT32_MAX,
                     ADV_AXIS_TENSOR, INT32_MAX, ADV_AXIS_EXPERT, INT32_MAX, ADV_AXIS_COUNT);
    struct adv_mesh mesh;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_mesh_place(&cluster, &zero, &mesh, &err), ADV_E_ILLEGAL);
    assert_int_equal(adv_mesh_place(&cluster, &huge, &mesh, &err), ADV_E_ILLEGAL);
}

static void the_sequence_axis_is_not_in_the_mesh(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v6e", 4, 4, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 16, ADV_AXIS_SEQUENCE, 4, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_int_equal(mesh.axes[ADV_AXIS_SEQUENCE].rings_count, 0);
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "x4 y4");
}

static void hand_made_orders_close_blocks_of_neighbours_to_rings(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v6e", 16, 16, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 64, ADV_AXIS_EXPERT, 4, ADV_AXIS_COUNT);
    plan.family.allow_split_physical_axes = true;
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_EXPERT), "x4/16");
    double line = mesh.axes[ADV_AXIS_EXPERT].bytes_per_s_per_device;
    plan.family.custom_mesh = ADV_CUSTOM_MESH_64X4;
    mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_EXPERT), "x2/16 y2/16");
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "x8/16:2 y8/16:2");
    assert_close(mesh.axes[ADV_AXIS_EXPERT].bytes_per_s_per_device, 2.0 * line, 1e-12);
    struct adv_plan eights = machine_plan(ADV_AXIS_FSDP, 32, ADV_AXIS_EXPERT, 8, ADV_AXIS_COUNT);
    eights.family.allow_split_physical_axes = true;
    eights.family.custom_mesh = ADV_CUSTOM_MESH_32X8;
    mesh = machine_place(&cluster, &eights);
    assert_string_equal(placed(&mesh, ADV_AXIS_EXPERT), "x2/16 y4/16");
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "x8/16:2 y4/16:4");
}

static void hand_made_orders_count_only_where_maxtext_looks_at_them(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v6e", 16, 16, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 64, ADV_AXIS_EXPERT, 4, ADV_AXIS_COUNT);
    plan.family.custom_mesh = ADV_CUSTOM_MESH_64X4;
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_EXPERT), "x4/16");
    cluster.slices = 2; /* the multi-slice path takes it without allow_split_physical_axes */
    mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_EXPERT), "x2/16 y2/16");
}

static void a_short_axis_that_comes_first_steps_over_rows_of_blocks(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v6e", 16, 16, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_DATA, 4, ADV_AXIS_FSDP, 64, ADV_AXIS_COUNT);
    plan.family.allow_split_physical_axes = true;
    plan.family.custom_mesh = ADV_CUSTOM_MESH_64X4;
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    assert_string_equal(placed(&mesh, ADV_AXIS_FSDP), "x4/16 y16");
    assert_string_equal(placed(&mesh, ADV_AXIS_DATA), "x4/16:4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_axes_are_taken_as_jax_takes_them),
        cmocka_unit_test(the_core_pair_wins_among_equal_combinations),
        cmocka_unit_test(what_needs_a_split_is_split_and_marked),
        cmocka_unit_test(what_jax_refuses_needs_a_split_and_nothing_else),
        cmocka_unit_test(splits_stay_on_axes_already_split),
        cmocka_unit_test(the_core_pair_wins_among_equal_splits_too),
        cmocka_unit_test(tp2_takes_the_cores_and_cp2_then_is_a_line),
        cmocka_unit_test(three_axes_of_a_large_mesh_share_one_axis),
        cmocka_unit_test(a_part_of_a_ring_has_half_its_bandwidth),
        cmocka_unit_test(devices_share_the_links_unless_the_cores_gather_together),
        cmocka_unit_test(a_mesh_of_the_wrong_size_is_refused_with_the_degree_that_fits),
        cmocka_unit_test(degrees_below_one_and_huge_products_are_refused),
        cmocka_unit_test(the_sequence_axis_is_not_in_the_mesh),
        cmocka_unit_test(hand_made_orders_close_blocks_of_neighbours_to_rings),
        cmocka_unit_test(hand_made_orders_count_only_where_maxtext_looks_at_them),
        cmocka_unit_test(a_short_axis_that_comes_first_steps_over_rows_of_blocks),
    };
    return run_group(tests);
}
