/* Memory against what runs reported: XLA's own count of bytes, or that a program ran.
 * tests/accuracy/hbm.json. */
#include "tests/unit/check.h"

#include <stdlib.h>

#include "engine/base/units.h"
#include "engine/cost/estimate.h"
#include "tests/unit/decode_fixture.h"
#include "tests/unit/rows_fixture.h"

static struct adv_ledger ledger;

static struct adv_estimate predict(const json_t *row)
{
    char *text = json_dumps(json_object_get(row, "request"), JSON_COMPACT);
    assert_ok(decode(text));
    free(text);
    const struct adv_constants *constants = &adv_catalog_chip(catalog, request.cluster.chip.name)->constants;
    struct adv_estimate_input input = {&request.model, &request.cluster, constants, &request.plan,
                                       request.flops_convention};
    struct adv_estimate estimate;
    if (adv_estimate_plan(&input, &estimate, &ledger, &err) != ADV_OK) print_findings(&err);
    return estimate;
}

static const char *id_of(const json_t *row)
{
    return json_string_value(json_object_get(row, "id"));
}

static void what_ran_fits_and_what_did_not_does_not(void **state)
{
    (void)state;
    json_t *rows = read_rows("tests/accuracy/hbm.json");
    assert_true(json_array_size(rows) >= 6);
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        struct adv_estimate estimate = predict(row);
        bool ran = json_is_true(json_object_get(row, "ran"));
        print_message("%-26s %-12s %6.1f GiB, reported %6.1f, %s\n", id_of(row), adv_fit_name(estimate.fit),
                      estimate.hbm_bytes_per_device / ADV_GIB,
                      json_number_value(json_object_get(row, "hbm_required_gib_per_device")),
                      ran ? "ran" : "out of memory");
        if (ran && estimate.fit == ADV_FIT_NO) fail_msg("%s ran", id_of(row));
        /* reported of older compilers: today's may need less */
        if (!ran && estimate.hbm_bytes_per_device < 0.8 * estimate.hbm_limit_bytes_per_device)
            fail_msg("%s ran out of memory", id_of(row));
    }
    json_decref(rows);
}

static void usable_memory_is_the_reported_limit(void **state)
{
    (void)state;
    json_t *rows = read_rows("tests/accuracy/hbm.json");
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        struct adv_estimate estimate = predict(row);
        assert_close(estimate.hbm_limit_bytes_per_device / ADV_GIB,
                     json_number_value(json_object_get(row, "hbm_limit_gib_per_device")), 2e-4);
    }
    json_decref(rows);
}

/* Reports of older compilers, which nothing was fitted to: the counts come from today's (tests/compile). */
static void reported_bytes_are_near(void **state)
{
    (void)state;
    json_t *rows = read_rows("tests/accuracy/hbm.json");
    int judged = 0;
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        double reported = json_number_value(json_object_get(row, "hbm_required_gib_per_device"));
        if (!(reported > 0.0)) continue;
        judged++;
        double ratio = predict(row).hbm_bytes_per_device / ADV_GIB / reported;
        if (fabs(ratio - 1.0) > 0.20) fail_msg("%s: %.3f of the reported bytes", id_of(row), ratio);
    }
    assert_true(judged >= 4);
    json_decref(rows);
}

/* Recipes are published to be run. */
static void no_published_recipe_is_refused(void **state)
{
    (void)state;
    json_t *rows = read_rows("tests/data/lint_recipes.json");
    assert_true(json_array_size(rows) >= 23);
    size_t index;
    json_t *row;
    json_array_foreach(rows, index, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        json_t *config = json_deep_copy(json_object_get(row, "config"));
        json_t *asked = json_pack("{s:O, s:O, s:o, s:O}", "model", json_object_get(config, "model_name"),
                                  "cluster", json_object_get(row, "cluster"), "config", config, "xla_flags",
                                  json_object_get(row, "xla_flags"));
        json_t *wrapped = json_pack("{s:o}", "request", asked);
        struct adv_estimate estimate = predict(wrapped);
        if (estimate.fit == ADV_FIT_NO)
            fail_msg("%s: %.1f GiB", name, estimate.hbm_bytes_per_device / ADV_GIB);
        json_decref(wrapped);
    }
    json_decref(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_ran_fits_and_what_did_not_does_not),
        cmocka_unit_test(usable_memory_is_the_reported_limit),
        cmocka_unit_test(reported_bytes_are_near),
        cmocka_unit_test(no_published_recipe_is_refused),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
