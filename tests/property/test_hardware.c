/* Rules of every mesh and every collective, whatever the constants: checked on random cases of a
 * fixed seed. */
#include "tests/unit/check.h"
#include "tests/unit/machine.h"
#include "tests/unit/draw.h"

enum { CASES = 10000 };

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static int random_below(int limit)
{
    return (int)(draw_next(&random_state) % (uint64_t)limit);
}

struct machine_case {
    struct adv_cluster cluster;
    struct adv_plan plan;
    struct adv_mesh mesh;
};

static const struct adv_constants lossy = {
    .all_gather_launch_s = 1e-5,
    .all_reduce_launch_s = 2e-5,
    .all_reduce_multi_axis_frac = 0.7,
    .all_to_all_launch_s = 1e-5,
    .all_to_all_frac = 0.5,
    .permute_launch_s = 5e-6,
    .permute_link_frac = 0.96,
    .dcn_launch_s = 1e-4,
    .dcn_achieved_frac = 0.3,
};

/* A slice of a random generation and shape, its devices dealt to random axes prime by prime. */
static void draw(struct machine_case *drawn)
{
    static const int cubes[][3] = {{1, 1, 1}, {2, 2, 1},  {2, 2, 2}, {2, 2, 4}, {2, 4, 4},  {4, 4, 4},
                                   {4, 4, 8}, {4, 4, 12}, {4, 8, 8}, {8, 8, 8}, {8, 8, 12}, {8, 8, 16}};
    static const int planes[][3] = {{1, 1, 1}, {2, 2, 1}, {2, 4, 1},  {4, 4, 1},
                                    {4, 8, 1}, {8, 8, 1}, {8, 16, 1}, {16, 16, 1}};
    static const char *const chips[] = {"tpu7x", "tpu7x", "v5p", "v4", "v6e", "v5e"};
    const char *chip = chips[random_below(6)];
    bool flat = strcmp(chip, "v6e") == 0 || strcmp(chip, "v5e") == 0;
    const int *dims = flat ? planes[random_below(8)] : cubes[random_below(12)];
    drawn->cluster = machine(chip, dims[0], dims[1], dims[2]);
    drawn->plan = machine_plan(ADV_AXIS_COUNT);
    drawn->plan.family.allow_split_physical_axes = random_below(2) == 1;
    int left = drawn->cluster.devices_per_slice, axes = 1 + random_below(5), chosen[5] = {0};
    for (int i = 0; i < axes; i++) {
        do chosen[i] = random_below(ADV_AXIS_COUNT);
        while (chosen[i] == ADV_AXIS_SEQUENCE);
    }
    for (int prime = 2; left > 1; prime++) {
        for (; left % prime == 0; left /= prime) drawn->plan.family.ici[chosen[random_below(axes)]] *= prime;
    }
    drawn->mesh = machine_place(&drawn->cluster, &drawn->plan);
}

static double time_of(const struct machine_case *drawn, unsigned axes, enum adv_collective collective,
                      double bytes)
{
    struct adv_group group = adv_group_of(&drawn->cluster, &drawn->mesh, axes);
    struct adv_collective_time time = adv_collective_time(&drawn->cluster, &lossy, &group, collective, bytes);
    assert_true(time.bandwidth_s >= 0.0 && time.latency_s >= 0.0 && time.hbm_bytes >= 0.0);
    assert_true(isfinite(time.bandwidth_s + time.latency_s + time.hbm_bytes));
    return time.bandwidth_s + time.latency_s;
}

static unsigned random_axes(void)
{
    return (unsigned)random_below(1 << ADV_AXIS_COUNT);
}

static void factors_multiply_to_the_axis_and_the_cores_have_one_owner(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < CASES; i++) {
        int core_owners = 0, used[ADV_PHYSICAL_COUNT] = {1, 1, 1, 1};
        draw(&drawn);
        for (int axis = 0; axis < ADV_AXIS_COUNT; axis++) {
            const struct adv_axis_placement *placement = &drawn.mesh.axes[axis];
            int product = 1;
            for (int r = 0; r < placement->rings_count; r++) {
                product *= placement->rings[r].size;
                used[placement->rings[r].physical] *= placement->rings[r].size;
                core_owners += placement->rings[r].physical == ADV_PHYSICAL_CORE;
                assert_true(placement->rings[r].size >= 2);
            }
            assert_int_equal(product, drawn.plan.family.ici[axis]);
            assert_int_equal(placement->size, product);
        }
        assert_true(core_owners <= 1);
        for (int p = 0; p < 3; p++) assert_int_equal(used[p], drawn.cluster.dims[p]);
        assert_int_equal(used[ADV_PHYSICAL_CORE], (int)drawn.cluster.chip.devices_per_chip);
    }
}

static void placing_twice_gives_the_same_mesh(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < 1000; i++) {
        draw(&drawn);
        struct adv_mesh again = machine_place(&drawn.cluster, &drawn.plan);
        assert_memory_equal(&again, &drawn.mesh, sizeof again);
    }
}

static void more_bandwidth_is_never_slower(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < CASES; i++) {
        draw(&drawn);
        struct machine_case faster = drawn;
        double gain = 1.0 + random_below(100) / 25.0;
        if (random_below(2))
            faster.cluster.chip.ici_link_achieved_bytes_per_s *= gain;
        else
            faster.cluster.chip.d2d_bytes_per_s *= gain;
        unsigned axes = random_axes();
        enum adv_collective collective = (enum adv_collective)random_below(ADV_COLLECTIVE_COUNT);
        double bytes = 1.0 + random_below(1 << 30);
        assert_true(time_of(&faster, axes, collective, bytes) <= time_of(&drawn, axes, collective, bytes));
    }
}

static void a_ring_is_never_slower_than_the_line_it_closes(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < CASES; i++) {
        draw(&drawn);
        struct machine_case opened = drawn;
        for (int axis = 0; axis < ADV_AXIS_COUNT; axis++)
            for (int r = 0; r < opened.mesh.axes[axis].rings_count; r++)
                opened.mesh.axes[axis].rings[r].wraps = false;
        unsigned axes = random_axes();
        enum adv_collective collective = (enum adv_collective)random_below(ADV_COLLECTIVE_COUNT);
        assert_true(time_of(&drawn, axes, collective, 1e7) <= time_of(&opened, axes, collective, 1e7));
    }
}

static void one_device_and_no_bytes_take_no_time(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < 1000; i++) {
        draw(&drawn);
        unsigned used = 0;
        for (int axis = 0; axis < ADV_AXIS_COUNT; axis++)
            used |= drawn.plan.family.ici[axis] > 1 ? 1u << axis : 0u;
        for (int c = 0; c < ADV_COLLECTIVE_COUNT; c++) {
            assert_true(time_of(&drawn, random_axes() & ~used, (enum adv_collective)c, 1e9) == 0.0);
            assert_true(time_of(&drawn, random_axes(), (enum adv_collective)c, 0.0) == 0.0);
        }
    }
}

static void more_bytes_never_take_less(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < CASES; i++) {
        draw(&drawn);
        unsigned axes = random_axes();
        double bytes = 1.0 + random_below(1 << 28), more = bytes * (1.0 + random_below(1000) / 100.0);
        enum adv_collective collective = (enum adv_collective)random_below(ADV_COLLECTIVE_COUNT);
        assert_true(time_of(&drawn, axes, collective, bytes) <= time_of(&drawn, axes, collective, more));
    }
}

static void all_reduce_takes_at_least_an_all_gather(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < CASES; i++) {
        draw(&drawn);
        unsigned axes = random_axes();
        assert_true(time_of(&drawn, axes, ADV_COLLECTIVE_ALL_REDUCE, 1e8) >=
                    time_of(&drawn, axes, ADV_COLLECTIVE_ALL_GATHER, 1e8));
    }
}

static void equal_axes_can_change_places(void **state)
{
    (void)state;
    /* Two axes of one degree on equal physical axes: which of them is asked about does not matter. */
    struct adv_cluster cluster = machine("v5p", 8, 8, 8);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_DATA, 8, ADV_AXIS_FSDP, 8, ADV_AXIS_TENSOR, 8, ADV_AXIS_COUNT);
    struct machine_case drawn = {cluster, plan, machine_place(&cluster, &plan)};
    for (int c = 0; c < ADV_COLLECTIVE_COUNT; c++) {
        enum adv_collective collective = (enum adv_collective)c;
        double data = time_of(&drawn, 1u << ADV_AXIS_DATA, collective, 1e8);
        assert_true(data == time_of(&drawn, 1u << ADV_AXIS_FSDP, collective, 1e8));
        assert_true(data == time_of(&drawn, 1u << ADV_AXIS_TENSOR, collective, 1e8));
        assert_true(time_of(&drawn, 1u << ADV_AXIS_DATA | 1u << ADV_AXIS_FSDP, collective, 1e8) ==
                    time_of(&drawn, 1u << ADV_AXIS_FSDP | 1u << ADV_AXIS_TENSOR, collective, 1e8));
    }
}

static void an_all_gather_never_beats_the_chips_links(void **state)
{
    (void)state;
    struct machine_case drawn;
    for (int i = 0; i < CASES; i++) {
        draw(&drawn);
        unsigned axes = random_axes();
        struct adv_group group = adv_group_of(&drawn.cluster, &drawn.mesh, axes);
        int chips = 1;
        for (int r = 0; r < group.rings_count; r++)
            if (group.rings[r].physical != ADV_PHYSICAL_CORE) chips *= group.rings[r].size;
        double bytes = 1e9, links = 2.0 * (drawn.cluster.dims[2] > 1 ? 3 : 2) *
                                    drawn.cluster.chip.ici_link_achieved_bytes_per_s;
        assert_true(time_of(&drawn, axes, ADV_COLLECTIVE_ALL_GATHER, bytes) >=
                    bytes * (chips - 1) / chips / links);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_multiply_to_the_axis_and_the_cores_have_one_owner),
        cmocka_unit_test(placing_twice_gives_the_same_mesh),
        cmocka_unit_test(more_bandwidth_is_never_slower),
        cmocka_unit_test(a_ring_is_never_slower_than_the_line_it_closes),
        cmocka_unit_test(one_device_and_no_bytes_take_no_time),
        cmocka_unit_test(more_bytes_never_take_less),
        cmocka_unit_test(all_reduce_takes_at_least_an_all_gather),
        cmocka_unit_test(equal_axes_can_change_places),
        cmocka_unit_test(an_all_gather_never_beats_the_chips_links),
    };
    return run_group(tests);
}
