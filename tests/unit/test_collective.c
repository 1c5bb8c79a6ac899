#include "tests/unit/check.h"
#include "tests/unit/machine.h"

/* Constants without launch costs and losses: the times are then the formulas of collective.h by hand. */
static const struct adv_constants perfect = {
    .all_reduce_multi_axis_frac = 1,
    .all_to_all_frac = 1,
    .permute_link_frac = 1,
    .dcn_achieved_frac = 1,
};

static double bandwidth_s(const struct adv_cluster *cluster, const struct adv_plan *plan, unsigned axes,
                          enum adv_collective collective, double bytes)
{
    struct adv_mesh mesh = machine_place(cluster, plan);
    struct adv_group group = adv_group_of(cluster, &mesh, axes);
    return adv_collective_time(cluster, &perfect, &group, collective, bytes).bandwidth_s;
}

static void all_gather_on_a_line_takes_twice_the_ring(void **state)
{
    (void)state;
    struct adv_cluster ring = machine("v5p", 4, 4, 4), line = ring;
    line.wraps[0] = line.wraps[1] = line.wraps[2] = false;
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 16, ADV_AXIS_TENSOR, 4, ADV_AXIS_COUNT);
    double on_ring = bandwidth_s(&ring, &plan, 1u << ADV_AXIS_TENSOR, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    double on_line = bandwidth_s(&line, &plan, 1u << ADV_AXIS_TENSOR, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    /* 3/4 of 1e9 bytes over both directions of one axis: 2 x 90e9. */
    assert_close(on_ring, 0.75e9 / 180e9, 1e-12);
    assert_close(on_line, 2.0 * on_ring, 1e-12);
}

static void axes_of_a_group_work_in_parallel(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v5p", 4, 4, 4);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 64, ADV_AXIS_COUNT);
    double s = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_FSDP, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    assert_close(s, 1e9 * 63 / 64 / (3 * 180e9), 1e-12);
}

static void a_group_with_both_cores_needs_half_the_ici_bytes(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    struct adv_plan together = machine_plan(ADV_AXIS_FSDP, 128, ADV_AXIS_COUNT);
    struct adv_plan apart = machine_plan(ADV_AXIS_DATA, 2, ADV_AXIS_FSDP, 64, ADV_AXIS_COUNT);
    unsigned fsdp = 1u << ADV_AXIS_FSDP;
    double one = bandwidth_s(&cluster, &together, fsdp, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    double two = bandwidth_s(&cluster, &apart, fsdp, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    assert_close(one, 1e9 * 63 / 64 / 540e9, 1e-12);
    assert_close(two, 2.0 * one, 1e-12);
}

static void the_core_pair_alone_is_six_times_one_axis(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    cluster.chip.ici_link_achieved_bytes_per_s = cluster.chip.ici_link_bytes_per_s;
    struct adv_plan plan =
        machine_plan(ADV_AXIS_FSDP, 16, ADV_AXIS_CONTEXT, 4, ADV_AXIS_TENSOR, 2, ADV_AXIS_COUNT);
    double cores = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_TENSOR, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    double axis = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_CONTEXT, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    /* Half of the bytes at 600e9; against three quarters in two groups over 2 x 100e9. Per byte that comes
     * in: the link's 600e9 in one direction are 1200e9 in both, six times an axis's 200e9. */
    assert_close(cores, 0.5e9 / 600e9, 1e-12);
    assert_close((axis / (2 * 0.75)) / (cores / (2 * 0.5)), 6.0, 1e-12);
}

static void all_reduce_is_a_scatter_and_a_gather(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v6e", 16, 16, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 256, ADV_AXIS_COUNT);
    unsigned fsdp = 1u << ADV_AXIS_FSDP;
    double gather = bandwidth_s(&cluster, &plan, fsdp, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    double scatter = bandwidth_s(&cluster, &plan, fsdp, ADV_COLLECTIVE_REDUCE_SCATTER, 1e9);
    double reduce = bandwidth_s(&cluster, &plan, fsdp, ADV_COLLECTIVE_ALL_REDUCE, 1e9);
    assert_close(reduce, gather + scatter, 1e-12);
}

static void all_to_all_on_a_ring_costs_a_quarter_of_the_gather(void **state)
{
    (void)state;
    /* Ring of 16, v bytes per chip: bisection n v / (8 W). The gather of n v bytes takes n v 15/16 / (2 W).
     */
    struct adv_cluster cluster = machine("v6e", 16, 16, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 16, ADV_AXIS_EXPERT, 16, ADV_AXIS_COUNT);
    unsigned expert = 1u << ADV_AXIS_EXPERT;
    double v = 1e8, exchange = bandwidth_s(&cluster, &plan, expert, ADV_COLLECTIVE_ALL_TO_ALL, v);
    assert_close(exchange, 16 * v / (8 * 90e9), 1e-12);
    double gather = bandwidth_s(&cluster, &plan, expert, ADV_COLLECTIVE_ALL_GATHER, 16 * v);
    assert_close(exchange / gather * 15 / 16, 0.25, 1e-12);
}

static void all_to_all_on_a_cube_costs_a_chips_payload_over_one_axis(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    struct adv_plan plan = machine_plan(ADV_AXIS_EXPERT, 128, ADV_AXIS_COUNT);
    double per_device = 1e8, per_chip = 2e8;
    double s = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_EXPERT, ADV_COLLECTIVE_ALL_TO_ALL, per_device);
    assert_close(s, per_chip / 180e9, 1e-12);
}

static void the_mesh_bound_is_the_corner_chips_intake(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 2, 2, 4);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 32, ADV_AXIS_COUNT);
    double s = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_FSDP, ADV_COLLECTIVE_ALL_GATHER, 1e9);
    assert_close(s, 1e9 * 15 / 16 / (3 * 90e9), 1e-12);
}

static void parts_of_an_axis_that_touch_form_the_whole_ring(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("v5p", 8, 8, 8);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 32, ADV_AXIS_TENSOR, 16, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&cluster, &plan);
    struct adv_group group = adv_group_of(&cluster, &mesh, 1u << ADV_AXIS_FSDP | 1u << ADV_AXIS_TENSOR);
    assert_int_equal(group.devices, 512);
    assert_int_equal(group.rings_count, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(group.rings[i].size, 8);
        assert_int_equal(group.rings[i].stride, 1);
        assert_true(group.rings[i].wraps);
    }
}

static void parts_of_an_axis_that_do_not_touch_share_its_links(void **state)
{
    (void)state;
    /* x of 8: tensor 2 inside, context 2 in the middle, 2 of fsdp outside, whose four rings share the two
     * links. */
    struct adv_cluster cluster = machine("v5p", 8, 8, 8);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_FSDP, 128, ADV_AXIS_CONTEXT, 2, ADV_AXIS_TENSOR, 2, ADV_AXIS_COUNT);
    double s = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_FSDP | 1u << ADV_AXIS_TENSOR,
                           ADV_COLLECTIVE_ALL_GATHER, 1e9);
    /* y and z lie between the parts in the group's order: one ring, as fast as its slowest hop. */
    assert_close(s, 1e9 * 255 / 256 / (180e9 / 4), 1e-12);
}

static void a_group_whose_parts_of_an_axis_lie_apart_runs_round_one_ring(void **state)
{
    (void)state;
    /* Ring of 8 and Ulysses of 8 on a cube of 4: y is split between them, z and x come between its parts. */
    struct adv_cluster cluster = machine("v5p", 4, 4, 4);
    struct adv_plan apart = machine_plan(ADV_AXIS_CONTEXT, 8, ADV_AXIS_ULYSSES, 8, ADV_AXIS_COUNT);
    struct adv_plan whole = machine_plan(ADV_AXIS_CONTEXT, 16, ADV_AXIS_ULYSSES, 4, ADV_AXIS_COUNT);
    unsigned both = 1u << ADV_AXIS_CONTEXT | 1u << ADV_AXIS_ULYSSES;
    double bytes = 1e9 * 64 / 63;
    assert_close(bandwidth_s(&cluster, &apart, both, ADV_COLLECTIVE_ALL_GATHER, bytes), 1e9 / 180e9, 1e-12);
    assert_close(bandwidth_s(&cluster, &apart, both, ADV_COLLECTIVE_REDUCE_SCATTER, bytes), 1e9 / 180e9,
                 1e-12);
    assert_close(bandwidth_s(&cluster, &whole, both, ADV_COLLECTIVE_ALL_GATHER, bytes), 1e9 / 540e9, 1e-12);
    /* Alone, either axis is a torus of its own. */
    assert_close(bandwidth_s(&cluster, &apart, 1u << ADV_AXIS_CONTEXT, ADV_COLLECTIVE_ALL_GATHER, 1e9),
                 1e9 * 7 / 8 / (180e9 + 90e9), 1e-12);
}

static void latency_counts_the_hops_to_the_farthest_chip(void **state)
{
    (void)state;
    struct adv_cluster torus = machine("v5p", 4, 4, 8), line = machine("v6e", 2, 4, 1);
    struct adv_plan plan = machine_plan(ADV_AXIS_FSDP, 128, ADV_AXIS_COUNT),
                    small = machine_plan(ADV_AXIS_FSDP, 8, ADV_AXIS_COUNT);
    struct adv_mesh mesh = machine_place(&torus, &plan), small_mesh = machine_place(&line, &small);
    struct adv_group group = adv_group_of(&torus, &mesh, 1u << ADV_AXIS_FSDP);
    struct adv_group small_group = adv_group_of(&line, &small_mesh, 1u << ADV_AXIS_FSDP);
    assert_close(adv_collective_time(&torus, &perfect, &group, ADV_COLLECTIVE_ALL_GATHER, 1).latency_s, 8e-6,
                 1e-12);
    assert_close(adv_collective_time(&line, &perfect, &small_group, ADV_COLLECTIVE_ALL_GATHER, 1).latency_s,
                 4e-6, 1e-12);
    assert_close(adv_collective_time(&torus, &perfect, &group, ADV_COLLECTIVE_ALL_REDUCE, 1).latency_s, 16e-6,
                 1e-12);
}

static void a_permute_sends_over_one_link_and_cores_share_it(void **state)
{
    (void)state;
    struct adv_cluster cluster = machine("tpu7x", 4, 4, 4);
    struct adv_plan plan =
        machine_plan(ADV_AXIS_DATA, 2, ADV_AXIS_FSDP, 16, ADV_AXIS_CONTEXT, 4, ADV_AXIS_COUNT);
    double s = bandwidth_s(&cluster, &plan, 1u << ADV_AXIS_CONTEXT, ADV_COLLECTIVE_PERMUTE, 9e6);
    assert_close(s, 2 * 9e6 / 90e9, 1e-12);
}

static void slices_exchange_over_each_chips_share_of_the_dcn(void **state)
{
    (void)state;
    struct adv_cluster v5e = machine("v5e", 16, 16, 1), tpu7x = machine("tpu7x", 4, 4, 4);
    struct adv_collective_time two =
        adv_collective_dcn_time(&v5e, &perfect, 2, ADV_COLLECTIVE_ALL_REDUCE, 250e6);
    struct adv_collective_time four =
        adv_collective_dcn_time(&v5e, &perfect, 4, ADV_COLLECTIVE_ALL_REDUCE, 250e6);
    assert_close(two.bandwidth_s, 250e6 / 3.125e9, 1e-12);        /* 2 x 1/2 */
    assert_close(four.bandwidth_s, 1.5 * two.bandwidth_s, 1e-12); /* 2 x 3/4 */
    struct adv_collective_time gather =
        adv_collective_dcn_time(&tpu7x, &perfect, 2, ADV_COLLECTIVE_ALL_GATHER, 250e6);
    assert_close(gather.bandwidth_s, 2 * 125e6 / 12.5e9, 1e-12); /* two devices share the chip's 12.5 GB/s */
    assert_close(adv_collective_dcn_time(&v5e, &perfect, 1, ADV_COLLECTIVE_ALL_REDUCE, 250e6).bandwidth_s,
                 0.0, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_gather_on_a_line_takes_twice_the_ring),
        cmocka_unit_test(axes_of_a_group_work_in_parallel),
        cmocka_unit_test(a_group_with_both_cores_needs_half_the_ici_bytes),
        cmocka_unit_test(the_core_pair_alone_is_six_times_one_axis),
        cmocka_unit_test(all_reduce_is_a_scatter_and_a_gather),
        cmocka_unit_test(all_to_all_on_a_ring_costs_a_quarter_of_the_gather),
        cmocka_unit_test(all_to_all_on_a_cube_costs_a_chips_payload_over_one_axis),
        cmocka_unit_test(the_mesh_bound_is_the_corner_chips_intake),
        cmocka_unit_test(parts_of_an_axis_that_touch_form_the_whole_ring),
        cmocka_unit_test(parts_of_an_axis_that_do_not_touch_share_its_links),
        cmocka_unit_test(a_group_whose_parts_of_an_axis_lie_apart_runs_round_one_ring),
        cmocka_unit_test(latency_counts_the_hops_to_the_farthest_chip),
        cmocka_unit_test(a_permute_sends_over_one_link_and_cores_share_it),
        cmocka_unit_test(slices_exchange_over_each_chips_share_of_the_dcn),
    };
    return run_group(tests);
}
