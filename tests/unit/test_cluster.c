#include "tests/unit/check.h"

#include <string.h>

#include "engine/json/decode_cluster.h"
#include "tests/unit/catalog_fixture.h"

static adv_err err, warnings;
static struct adv_cluster cluster;

static adv_code decode(const char *text)
{
    json_t *root;
    adv_err_init(&err);
    adv_err_init(&warnings);
    assert_int_equal(adv_json_parse(text, strlen(text), &root, &err), ADV_OK);
    adv_code code = adv_decode_cluster(catalog, root, "/cluster", &cluster, &err, &warnings);
    json_decref(root);
    return code;
}

static void wraps_and_counts_of_all_known_slices_are_reproduced(void **state)
{
    (void)state;
    assert_int_equal(adv_catalog_tables(catalog)->topologies_count, 223);
    for (int i = 0; i < adv_catalog_tables(catalog)->topologies_count; i++) {
        const struct adv_catalog_topology *row = &adv_catalog_tables(catalog)->topologies[i];
        char text[256];
        (void)snprintf(text, sizeof text, "{\"accelerator\": \"%s\"}", row->name);
        if (decode(text) != ADV_OK) fail_msg("%s: %s", row->name, err.findings[0].detail);
        assert_string_equal(cluster.topology, row->topology);
        assert_string_equal(cluster.accelerator, row->name);
        assert_int_equal(cluster.devices, row->devices);
        assert_int_equal(cluster.chips_per_slice, row->chips);
        if (cluster.hosts != row->hosts)
            fail_msg("%s: %d hosts, expected %d", row->name, cluster.hosts, row->hosts);
        for (int axis = 0; axis < 3; axis++)
            if (cluster.wraps[axis] != row->wraps[axis]) fail_msg("%s: axis %d", row->name, axis);
    }
}

static void one_slice_is_the_same_however_it_is_named(void **state)
{
    (void)state;
    const char *spellings[] = {
        "{\"chip\": \"tpu7x\", \"topology\": \"4x4x4\", \"slices\": 2}",
        "{\"accelerator\": \"tpu7x-128\", \"slices\": 2}",
        "{\"accelerator\": \"tpu7x-4x4x4\", \"slices\": 2}",
        "{\"accelerator\": \"ironwood-4x4x4\", \"slices\": 2}",
        "{\"chip\": \"Ironwood\", \"topology\": \"4x4x4\", \"slices\": 2}",
    };
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        assert_int_equal(decode(spellings[i]), ADV_OK);
        assert_string_equal(cluster.chip.name, "tpu7x");
        assert_int_equal(cluster.devices, 256);
        assert_int_equal(cluster.devices_per_slice, 128);
        assert_int_equal(cluster.hosts, 32);
        assert_int_equal(cluster.devices_per_host, 8);
        assert_string_equal(cluster.accelerator, "tpu7x-128");
    }
}

/* Names that schedulers accept beyond MaxText's list; the last three were published. */
static void a_torus_of_whole_cubes_is_a_slice_with_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *text, *topology;
        int chips;
    } rows[] = {{"{\"chip\": \"tpu7x\", \"topology\": \"4x4x16\"}", "4x4x16", 256},
                {"{\"accelerator\": \"tpu7x-4x4x576\"}", "4x4x576", 9216},
                {"{\"chip\": \"v4\", \"topology\": \"12x4x8\"}", "4x8x12", 384},
                {"{\"chip\": \"v5p\", \"topology\": \"8x16x48\"}", "8x16x48", 6144},
                {"{\"chip\": \"v5p\", \"topology\": \"4x8x64\"}", "4x8x64", 2048},
                {"{\"accelerator\": \"v5p-8x16x32\"}", "8x16x32", 4096}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (decode(rows[i].text) != ADV_OK) fail_msg("%s: %s", rows[i].text, err.findings[0].detail);
        assert_string_equal(cluster.topology, rows[i].topology);
        assert_int_equal(cluster.chips_per_slice, rows[i].chips);
        assert_string_equal(cluster.accelerator, "");
        assert_string_equal(warnings.findings[0].rule, "not-standard-shape");
    }
    static const char *const refused[] = {
        "{\"chip\": \"tpu7x\", \"topology\": \"4x4x6\"}", "{\"chip\": \"tpu7x\", \"topology\": \"4x4x580\"}",
        "{\"chip\": \"v4\", \"topology\": \"2x4x4x4\"}", "{\"chip\": \"v6e\", \"topology\": \"12x12\"}"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_not_equal(decode(refused[i]), ADV_OK);
}

static void an_accelerator_in_the_place_of_the_chip_is_understood(void **state)
{
    (void)state;
    static const char *const same[] = {"{\"chip\": \"tpu7x-128\"}", "{\"chip\": \"tpu7-4x4x4\"}",
                                       "{\"chip\": \"tpu7x-128\", \"topology\": \"4x4x4\"}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        assert_int_equal(decode(same[i]), ADV_OK);
        assert_string_equal(cluster.accelerator, "tpu7x-128");
    }
    assert_int_equal(decode("{\"chip\": \"tpu7x-128\", \"topology\": \"4x4x8\"}"), ADV_E_INVALID);
    assert_non_null(strstr(err.findings[0].detail, "64 chips"));
}

static void spelling_and_order_of_sizes_do_not_matter(void **state)
{
    (void)state;
    static const char *const same[] = {"{\"chip\": \"v5p\", \"topology\": \"4x4x8\"}",
                                       "{\"chip\": \"TPU v5p\", \"topology\": \"8x4x4\"}",
                                       "{\"chip\": \"tpu_v5p\", \"topology\": \"4 X 8 X 4\"}",
                                       "{\"chip\": \"Cloud TPU v5p\", \"topology\": \"4x4x8\"}",
                                       "{\"accelerator\": \"v5p-8x4x4\"}",
                                       "{\"accelerator\": \"v5p-256\"}"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        if (decode(same[i]) != ADV_OK) fail_msg("%s: %s", same[i], err.findings[0].detail);
        assert_string_equal(cluster.chip.name, "v5p");
        assert_string_equal(cluster.topology, "4x4x8");
        assert_string_equal(cluster.accelerator, "v5p-256");
    }
    assert_int_equal(decode("{\"chip\": \"v6e\", \"topology\": \"16x8\"}"), ADV_OK);
    assert_string_equal(cluster.topology, "8x16");
    assert_true(cluster.wraps[1] && !cluster.wraps[0]);
    assert_int_equal(decode("{\"chip\": \"tpu\", \"topology\": \"16x8\"}"), ADV_E_INVALID);
}

static void a_shape_that_is_no_slice_names_the_nearest_ones(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"chip\": \"tpu7x\", \"topology\": \"4x4x5\"}"), ADV_E_INVALID);
    assert_string_equal(err.findings[0].pointer, "/cluster/topology");
    assert_non_null(strstr(err.findings[0].detail, "80 chips"));
    assert_non_null(strstr(err.findings[0].hint, "4x4x4 (64 chips)"));
    assert_non_null(strstr(err.findings[0].hint, "4x4x8 (128 chips)"));
    assert_int_equal(decode("{\"chip\": \"v6e\", \"topology\": \"4x4x4\"}"), ADV_E_INVALID);
    assert_int_equal(decode("{\"accelerator\": \"tpu7x-100\"}"), ADV_E_INVALID);
    assert_non_null(strstr(err.findings[0].hint, "tpu7x-128"));
}

static void everything_wrong_with_a_cluster_is_reported_at_once(void **state)
{
    (void)state;
    assert_int_equal(
        decode("{\"chip\": \"v7\", \"topology\": 4, \"slices\": 0, \"zone\": \"a\", "
               "\"price_usd_per_chip_hour\": -1,"
               " \"overrides\": {\"hbm_bytes\": 1, \"devices_per_chip\": 4, \"clock_hz\": \"fast\"}}"),
        ADV_E_INVALID);
    const char *pointers[] = {"/cluster/zone",
                              "/cluster/slices",
                              "/cluster/topology",
                              "/cluster/price_usd_per_chip_hour",
                              "/cluster/overrides/hbm_bytes",
                              "/cluster/overrides/devices_per_chip",
                              "/cluster/overrides/clock_hz"};
    assert_int_equal(err.count, sizeof pointers / sizeof pointers[0]);
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        assert_string_equal(err.findings[i].pointer, pointers[i]);
    assert_int_equal(decode("{\"chip\": \"H100\", \"topology\": \"8x8\"}"), ADV_E_INVALID);
    assert_int_equal(err.findings[0].code, ADV_E_UNSUPPORTED);
    assert_int_equal(decode("{\"chip\": \"v5e\", \"accelerator\": \"v5e-16\"}"), ADV_E_INVALID);
    assert_int_equal(decode("{\"accelerator\": \"tpu7x\"}"), ADV_E_INVALID);
}

static void overrides_and_price_reach_the_cluster(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"accelerator\": \"v5litepod-256\", \"price_usd_per_chip_hour\": 0.5,"
                            " \"overrides\": {\"hbm_bytes_per_s_per_chip\": 1e12}}"),
                     ADV_OK);
    assert_string_equal(cluster.chip.name, "v5e");
    assert_true(cluster.has_overrides);
    assert_close(cluster.chip.hbm_bytes_per_s_per_chip, 1e12, 0);
    assert_close(cluster.price_usd_per_chip_hour, 0.5, 0);
    assert_int_equal(warnings.count, 1);
    assert_int_equal(decode("{\"accelerator\": \"v5e-256\"}"), ADV_OK);
    assert_false(cluster.has_overrides);
    assert_close(cluster.price_usd_per_chip_hour, 1.2, 0);
    assert_int_equal(decode("{\"accelerator\": \"tpu7x-8\"}"), ADV_OK);
    assert_true(isnan(cluster.price_usd_per_chip_hour));
}

static void an_override_beyond_a_thousand_times_the_chip_is_refused_with_its_range(void **state)
{
    (void)state;
    assert_int_equal(
        decode("{\"accelerator\": \"v5p-8\", \"overrides\": {\"hbm_bytes_per_s_per_chip\": 1e-300,"
               " \"hbm_achieved_frac\": 1.5, \"mxu_rows\": 127.5, \"clock_hz\": 0,"
               " \"ici_hop_latency_s\": -1, \"peak_fp8_flops_per_s_per_chip\": 1e300}}"),
        ADV_E_INVALID);
    assert_int_equal(err.count, 6);
    for (int i = 0; i < err.count; i++) assert_int_equal(err.findings[i].code, ADV_E_RANGE);
    assert_non_null(strstr(err.findings[0].detail, "from 2.765e+09 to 2.765e+15 bytes/s"));
    assert_non_null(strstr(err.findings[2].detail, "a whole number"));
    assert_int_equal(
        decode("{\"accelerator\": \"v5p-8\", \"overrides\": {\"peak_fp8_flops_per_s_per_chip\": 9e14}}"),
        ADV_OK);
    assert_int_equal(warnings.findings[0].code, ADV_OK);
    assert_string_equal(warnings.findings[0].rule, "what-if-hardware");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wraps_and_counts_of_all_known_slices_are_reproduced),
        cmocka_unit_test(one_slice_is_the_same_however_it_is_named),
        cmocka_unit_test(spelling_and_order_of_sizes_do_not_matter),
        cmocka_unit_test(a_shape_that_is_no_slice_names_the_nearest_ones),
        cmocka_unit_test(everything_wrong_with_a_cluster_is_reported_at_once),
        cmocka_unit_test(a_torus_of_whole_cubes_is_a_slice_with_a_warning),
        cmocka_unit_test(an_accelerator_in_the_place_of_the_chip_is_understood),
        cmocka_unit_test(overrides_and_price_reach_the_cluster),
        cmocka_unit_test(an_override_beyond_a_thousand_times_the_chip_is_refused_with_its_range),
    };
    return run_group_with_catalog(tests);
}
