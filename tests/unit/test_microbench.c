/* Every published collective measurement against the model, printed row by row. */
#include "tests/unit/check.h"
#include "tests/unit/machine.h"

#include <jansson.h>
#include <stdlib.h>

enum { ROWS_MAX = 64 };

static enum adv_collective collective_named(const char *name)
{
    for (int c = 0; c < ADV_COLLECTIVE_COUNT; c++)
        if (strcmp(adv_collective_name((enum adv_collective)c), name) == 0) return (enum adv_collective)c;
    fail_msg("no collective %s", name);
    return ADV_COLLECTIVE_COUNT;
}

/* The group of a row: its whole physical axes and, where said, the core pair. */
static struct adv_group group_of_row(const struct adv_cluster *cluster, const json_t *row)
{
    struct adv_group group = {.devices = 1};
    bool cores = json_is_true(json_object_get(row, "cores"));
    size_t i;
    json_t *name;
    json_array_foreach(json_object_get(row, "axes"), i, name)
    {
        int p = json_string_value(name)[0] - 'x';
        group.rings[group.rings_count++] =
            (struct adv_ring){p, cluster->dims[p], cluster->dims[p], 1, cluster->wraps[p]};
        group.devices *= cluster->dims[p];
    }
    if (cores) {
        group.rings[group.rings_count++] = (struct adv_ring){ADV_PHYSICAL_CORE, 2, 2, 1, false};
        group.devices *= 2;
    }
    group.other_core_too = !cores && cluster->chip.devices_per_chip > 1.0;
    group.links = adv_links_of(cluster, &group);
    return group;
}

static double predicted_us(const json_t *row)
{
    const json_t *dims = json_object_get(row, "dims");
    const char *chip = json_string_value(json_object_get(row, "chip"));
    int z = json_array_size(dims) > 2 ? (int)json_integer_value(json_array_get(dims, 2)) : 1;
    struct adv_cluster cluster = machine(chip, (int)json_integer_value(json_array_get(dims, 0)),
                                         (int)json_integer_value(json_array_get(dims, 1)), z);
    struct adv_constants constants = machine_constants(chip);
    enum adv_collective collective = collective_named(json_string_value(json_object_get(row, "op")));
    double bytes = json_number_value(json_object_get(row, "bytes_per_device"));
    int slices = (int)json_integer_value(json_object_get(row, "slices"));
    struct adv_group group = group_of_row(&cluster, row);
    struct adv_collective_time time =
        slices > 1 ? adv_collective_dcn_time(&cluster, &constants, slices, collective, bytes)
                   : adv_collective_time(&cluster, &constants, &group, collective, bytes);
    return (time.bandwidth_s + time.latency_s) * 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void published_collectives_are_reproduced(void **state)
{
    (void)state;
    double errors[ROWS_MAX];
    int count = 0;
    size_t i;
    json_t *row, *rows = json_load_file("tests/data/microbench.json", 0, NULL);
    assert_non_null(rows);
    printf("  %-6s %-6s %-14s %14s %12s %12s %8s\n", "row", "chip", "collective", "bytes/device",
           "measured us", "model us", "error");
    json_array_foreach(rows, i, row)
    {
        double measured = json_number_value(json_object_get(row, "time_us")), model = predicted_us(row);
        assert_true(count < ROWS_MAX && measured > 0.0);
        printf("  %-6s %-6s %-14s %14.0f %12.1f %12.1f %+7.1f %%\n",
               json_string_value(json_object_get(row, "id")), json_string_value(json_object_get(row, "chip")),
               json_string_value(json_object_get(row, "op")),
               json_number_value(json_object_get(row, "bytes_per_device")), measured, model,
               100.0 * (model / measured - 1.0));
        errors[count++] = fabs(model / measured - 1.0);
    }
    json_decref(rows);
    assert_int_equal(count, 19);
    qsort(errors, (size_t)count, sizeof errors[0], by_size);
    printf("  median %.1f %%, p90 %.1f %%, worst %.1f %%\n", 100.0 * errors[count / 2],
           100.0 * errors[count * 9 / 10], 100.0 * errors[count - 1]);
    assert_true(errors[count / 2] <= 0.03);
    assert_true(errors[count * 9 / 10] <= 0.08);
    assert_true(errors[count - 1] <= 0.08);
}

static void no_measurement_beats_the_links(void **state)
{
    (void)state;
    /* The model's bandwidth part is a lower bound of what was measured. */
    size_t i;
    json_t *row, *rows = json_load_file("tests/data/microbench.json", 0, NULL);
    assert_non_null(rows);
    json_array_foreach(rows, i, row)
    {
        if (json_object_get(row, "slices")) continue;
        const json_t *dims = json_object_get(row, "dims");
        const char *chip = json_string_value(json_object_get(row, "chip"));
        struct adv_cluster cluster = machine(chip, (int)json_integer_value(json_array_get(dims, 0)),
                                             (int)json_integer_value(json_array_get(dims, 1)), 1);
        if (json_array_size(dims) > 2) cluster.dims[2] = (int)json_integer_value(json_array_get(dims, 2));
        cluster.chip.ici_link_achieved_bytes_per_s = cluster.chip.ici_link_bytes_per_s;
        struct adv_constants perfect = {
            .all_reduce_multi_axis_frac = 1, .all_to_all_frac = 1, .permute_link_frac = 1};
        struct adv_group group = group_of_row(&cluster, row);
        struct adv_collective_time time = adv_collective_time(
            &cluster, &perfect, &group, collective_named(json_string_value(json_object_get(row, "op"))),
            json_number_value(json_object_get(row, "bytes_per_device")));
        assert_true(time.bandwidth_s * 1e6 <= json_number_value(json_object_get(row, "time_us")));
    }
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_collectives_are_reproduced),
        cmocka_unit_test(no_measurement_beats_the_links),
    };
    return run_group(tests);
}
