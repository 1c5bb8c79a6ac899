#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_platforms.h"
#include "engine/rank/platform.h"
#include "tests/unit/catalog_fixture.h"

#define WORKLOAD "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64}"

static adv_err err;

static adv_code ask(const char *machine_and_workload, json_t **root)
{
    char text[2048];
    struct adv_answer answer;
    const char *search = strstr(machine_and_workload, "\"search\"") ? "" : "\"search\":{\"top_k\":2},";
    (void)snprintf(text, sizeof text, "{\"model\":\"llama3.1-8b\",%s%s}", search, machine_and_workload);
    adv_err_init(&err);
    *root = NULL;
    adv_code code = adv_answer_request(catalog, ADV_REQUEST_ADVISE, text, strlen(text), &answer, &err);
    if (code != ADV_OK) return code;
    *root = json_loads(answer.json, 0, NULL);
    assert_non_null(*root);
    adv_answer_free(&answer);
    return ADV_OK;
}

static json_t *asked(const char *machine_and_workload)
{
    json_t *root;
    if (ask(machine_and_workload, &root) != ADV_OK)
        fail_msg("%s: %s", err.findings[0].pointer, err.findings[0].detail);
    return root;
}

static json_t *at(const json_t *root, const char *path) /* "platforms.0.best", indices in arrays */
{
    char copy[128];
    (void)snprintf(copy, sizeof copy, "%s", path);
    json_t *value = (json_t *)(uintptr_t)root;
    for (char *rest = copy, *step = strsep(&rest, "."); step; step = strsep(&rest, "."))
        value = json_is_array(value) ? json_array_get(value, strtoul(step, NULL, 10))
                                     : json_object_get(value, step);
    if (!value) fail_msg("there is no %s", path);
    return value;
}

static double number(const json_t *root, const char *path)
{
    json_t *value = at(root, path);
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static const char *text(const json_t *root, const char *path)
{
    return json_string_value(at(root, path));
}

static void refused(const char *request, const char *pointer, const char *detail, const char *hint)
{
    json_t *root;
    assert_int_not_equal(ask(request, &root), ADV_OK);
    for (int i = 0; i < err.count; i++) {
        const struct adv_finding *finding = &err.findings[i];
        if (!strcmp(finding->pointer, pointer) && strstr(finding->detail, detail) &&
            strstr(finding->hint, hint))
            return;
    }
    fail_msg("%s: %s: %s (%s)", request, err.findings[0].pointer, err.findings[0].detail,
             err.findings[0].hint);
}

static void any_topology_tries_every_number_of_equal_slices(void **state)
{
    (void)state;
    json_t *root = asked("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"any\",\"chips\":32}," WORKLOAD);
    assert_int_equal(json_array_size(at(root, "platforms")), 4); /* 4x8, 2 of 4x4, 4 of 2x4, 8 of 2x2 */
    double before_s = 0;
    for (size_t i = 0; i < 4; i++) {
        json_t *row = json_array_get(at(root, "platforms"), i);
        assert_int_equal(number(row, "cluster.chips"), 32);
        assert_int_equal(number(row, "rank"), i + 1);
        assert_true(number(row, "best.estimate.step_time_s") >= before_s);
        before_s = number(row, "best.estimate.step_time_s");
    }
    json_decref(root);
    root = asked("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"any\",\"chips\":32,\"slices\":2}," WORKLOAD);
    assert_int_equal(json_array_size(at(root, "platforms")), 1);
    assert_string_equal(text(root, "platforms.0.cluster.topology"), "4x4");
    json_decref(root);
}

static void the_ranked_plans_are_those_of_the_best_machine(void **state)
{
    (void)state;
    json_t *root =
        asked("\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"2x4\"},{\"chip\":\"tpu7x\",\"topology\":"
              "\"2x2x2\"}]," WORKLOAD);
    assert_string_equal(text(root, "platforms.0.cluster.chip"), "tpu7x");
    assert_true(json_equal(at(root, "cluster"), at(root, "platforms.0.cluster")));
    assert_true(json_equal(at(root, "ranked.0.config"), at(root, "platforms.0.best.config")));
    assert_true(json_equal(at(root, "ranked.0.xla_flags"), at(root, "platforms.0.best.xla_flags")));
    json_t *alone = asked("\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x2\"}," WORKLOAD);
    assert_true(json_equal(at(alone, "ranked"), at(root, "ranked")));
    assert_null(json_object_get(alone, "platforms"));
    json_decref(alone);
    json_decref(root);
}

/* A key that sleeps under the baseline's preset counts when a change wakes it, on each of several machines as
 * on one. */
static void changed_keys_count_alike_on_each_machine(void **state)
{
    (void)state;
    static const char rest[] =
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32},\"search\":{\"max_changes\":2},"
        "\"baseline\":{\"config\":{\"per_device_batch_size\":4,\"max_target_length\":8192,\"remat_policy\":"
        "\"save_dot_except_mlp\",\"mlpwi_1\":\"offload\",\"sa_block_q\":1024}}";
    char request[1024];
    (void)snprintf(request, sizeof request, "\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},%s", rest);
    json_t *alone = asked(request);
    (void)snprintf(request, sizeof request, "\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"4x4\"}],%s",
                   rest);
    json_t *among = asked(request);
    assert_close(number(among, "platforms.0.best.estimate.step_time_s"),
                 number(alone, "ranked.0.estimate.step_time_s"), 1e-12);
    assert_true(json_equal(at(among, "ranked"), at(alone, "ranked")));
    json_decref(among);
    json_decref(alone);
}

static void the_bill_is_time_price_and_power_of_the_token_budget(void **state)
{
    (void)state;
    json_t *root =
        asked("\"clusters\":[{\"chip\":\"tpu7x\",\"topology\":\"2x2x2\",\"price_usd_per_chip_hour\":5},"
              "{\"chip\":\"v6e\",\"topology\":\"2x4\"}],\"workload\":{\"seq_len\":8192,"
              "\"global_batch_sequences\":64,\"token_budget\":1e12}");
    double step_s = number(root, "platforms.0.best.estimate.step_time_s");
    double days = 1e12 / (64 * 8192) * step_s / 86400;
    assert_close(number(root, "platforms.0.days_for_tokens"), days, 1e-9);
    assert_close(number(root, "platforms.0.usd_for_tokens"), days * 24 * 8 * 5, 1e-9);
    assert_close(number(root, "platforms.0.energy_kwh"), days * 24 * 8 * 1.085, 1e-9);
    assert_true(isnan(number(root, "platforms.1.energy_kwh"))); /* v6e's power is not published */
    assert_close(number(root, "platforms.0.usd_for_tokens") / 1e3,
                 number(root, "platforms.0.best.estimate.usd_per_billion_tokens"), 1e-9);
    json_decref(root);
}

static void a_training_has_failures_checkpoints_and_sources(void **state)
{
    (void)state;
    json_t *root =
        asked("\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"price_usd_per_chip_hour\":5},"
              "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256,\"total_tokens\":1e12,"
              "\"days_available\":5},\"goodput\":{\"failures_per_chip_day\":0.01}");
    const double days = number(root, "platforms.0.training.days");
    assert_true(days > number(root, "platforms.0.days_for_tokens")); /* which counts no failures */
    assert_close(number(root, "platforms.0.training.usd"), days * 24 * 64 * 5, 1e-9);
    assert_true(days > 5 && json_is_false(at(root, "platforms.0.training.in_time")));
    assert_string_equal(text(root, "platforms.0.training.assumptions.0.source"), "the request");
    assert_close(number(root, "platforms.0.training.assumptions.0.high"), 0.01, 1e-9);
    assert_non_null(strstr(text(root, "platforms.0.training.assumptions.2.source"), "arXiv"));
    const double steps = number(root, "platforms.0.training.checkpoint_interval_steps");
    assert_true(steps >= 1 && steps == floor(steps));
    json_decref(root);
}

static void the_objective_orders_machines(void **state)
{
    (void)state;
    static const char machines[] =
        "\"clusters\":[{\"chip\":\"tpu7x\",\"topology\":\"2x2x2\",\"price_usd_per_chip_hour\":100},"
        "{\"chip\":\"v6e\",\"topology\":\"2x4\"}],\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":"
        "64},"
        "\"search\":{\"objective\":\"%s\"}";
    char request[512], document[600];
    static const char *const best[][2] = {{"step_time", "tpu7x"}, {"usd_per_token", "v6e"}};
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(request, sizeof request, machines, best[i][0]);
        (void)snprintf(document, sizeof document, "{\"model\":\"llama3.1-8b\",%s}", request);
        struct adv_answer answer;
        adv_err_init(&err);
        assert_int_equal(
            adv_answer_request(catalog, ADV_REQUEST_ADVISE, document, strlen(document), &answer, &err),
            ADV_OK);
        assert_string_equal(answer.chip, best[i][1]);
        json_t *root = json_loads(answer.json, 0, NULL);
        assert_true(json_is_true(at(root, "platforms.0.on_front")));
        assert_true(json_is_true(at(root, "platforms.1.on_front"))); /* one is faster, the other cheaper */
        json_decref(root);
        adv_answer_free(&answer);
    }
}

static void gpus_are_headline_rows_that_say_so(void **state)
{
    (void)state;
    json_t *root =
        asked("\"clusters\":[{\"chip\":\"H100\",\"chips\":64,\"assumed_mfu_frac\":0.4},{\"chip\":\"h100\","
              "\"chips\":64},{\"chip\":\"v6e\",\"topology\":\"2x4\"}]," WORKLOAD);
    assert_string_equal(text(root, "platforms.0.cluster.chip"), "v6e");
    for (size_t i = 1; i < 3; i++) {
        json_t *row = json_array_get(at(root, "platforms"), i);
        assert_true(json_is_null(at(row, "best")) && json_is_null(at(row, "rank")));
        assert_non_null(strstr(text(row, "headline.label"), "roofline"));
        assert_non_null(strstr(text(row, "headline.label"), "not modelled"));
    }
    /* The same FLOPs at peak: what the estimate calls MFU on the TPU. */
    double tpu_s = number(root, "platforms.0.best.estimate.step_time_s");
    double flops = number(root, "platforms.0.best.estimate.mfu_frac") * tpu_s * 8 * 918e12;
    assert_close(number(root, "platforms.2.headline.roofline_step_time_s"), flops / (64 * 989e12), 1e-9);
    assert_close(number(root, "platforms.1.headline.roofline_step_time_s") * 0.4,
                 number(root, "platforms.2.headline.roofline_step_time_s"), 1e-9);
    json_decref(root);
    refused("\"clusters\":[{\"chip\":\"H100\",\"chips\":8}]," WORKLOAD, "/clusters", "not modelled", "TPUs");
}

static void a_machine_without_a_plan_says_why_and_the_others_stay(void **state)
{
    (void)state;
    json_t *root =
        asked("\"clusters\":[{\"chip\":\"v5e\",\"topology\":\"1x1\"},{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
              "{\"chip\":\"v6e\",\"topology\":\"2x2\"}],\"pins\":{\"ici_tensor_parallelism\":8}," WORKLOAD);
    assert_string_equal(text(root, "platforms.0.cluster.topology"), "4x4");
    assert_non_null(strstr(text(root, "platforms.1.reason"), "pinned axes"));
    assert_non_null(strstr(text(root, "platforms.2.reason"), "pinned axes"));
    json_decref(root);
    root = asked("\"clusters\":[{\"chip\":\"v5e\",\"topology\":\"1x1\"},{\"chip\":\"v6e\",\"topology\":"
                 "\"1x1\"}]," WORKLOAD);
    assert_int_equal(json_array_size(at(root, "ranked")), 0);
    assert_true(json_array_size(at(root, "near_misses")) > 0);
    assert_true(strlen(text(root, "platforms.0.reason")) > 0);
    json_decref(root);
}

static void impossible_machines_are_refused_with_what_works(void **state)
{
    (void)state;
    refused("\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"any\",\"chips\":100}," WORKLOAD, "/cluster/chips",
            "100 chips", "96 (3 slices of 2x4x4), 112 (7 slices of 2x2x4)");
    refused("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"any\",\"chips\":300,\"slices\":1}," WORKLOAD,
            "/cluster/chips", "300 chips", "256 (1 slice of 16x16)");
    refused("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"any\"}," WORKLOAD, "/cluster/chips", "required",
            "");
    refused("\"clusters\":[]," WORKLOAD, "/clusters", "at least one", "");
    refused("\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"4x4\"},{\"chip\":\"v6e\",\"topology\":\"3x3\"}]"
            "," WORKLOAD,
            "/clusters/1/topology", "3x3", "nearest");
    refused("\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"4x4\"}],\"cluster\":{\"chip\":\"v6e\","
            "\"topology\":\"4x4\"}," WORKLOAD,
            "/clusters", "either", "");
    refused("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":8192,"
            "\"global_batch_sequences\":64,\"token_budget\":-1}",
            "/workload/token_budget", "token_budget", "");
    refused("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":8192,"
            "\"global_batch_sequences\":64},\"goodput\":{\"restart_s\":60}",
            "/goodput", "how long", "total_tokens");
    refused("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":8192,"
            "\"global_batch_sequences\":64,\"total_tokens\":1e12},\"goodput\":{\"restarts\":60}",
            "/goodput/restarts", "unknown", "restart_s");
    refused("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":8192,"
            "\"global_batch_sequences\":64,\"total_tokens\":1e12,\"token_budget\":2e12}",
            "/workload/token_budget", "differ", "total_tokens");
    refused("\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"4x4\"}],\"workload\":{\"seq_len\":8192}",
            "/workload", "0 sizes", ""); /* wrong on every machine */
}

static void ranking_puts_machines_without_a_plan_or_price_last(void **state)
{
    (void)state;
    struct adv_platform platforms[] = {
        {8, (double)NAN, (double)NAN, (double)NAN, (double)NAN, 1, 1, false, 0, 0, ADV_END_IN_TIME},
        {8, 2, 100, 3.2, 5, (double)NAN, 1, false, 0, 0, ADV_END_IN_TIME},
        {8, 3, 100, 3.1, 4, 1, 1, false, 0, 0, ADV_END_IN_TIME},
        {4, 3, 100, 3.3, 4, 2, 1, false, 0, 0, ADV_END_IN_TIME},
    };
    int order[4];
    adv_platform_rank(ADV_OBJECTIVE_STEP_TIME, platforms, 4, order);
    const int by_time[] = {1, 3, 2, 0}, by_usd[] = {3, 2, 1, 0};
    assert_memory_equal(order, by_time, sizeof order);
    assert_int_equal(platforms[1].tie_group, 0);
    assert_int_equal(platforms[2].tie_group, platforms[3].tie_group); /* equally fast */
    assert_int_equal(platforms[3].tie_group, 1);
    adv_platform_rank(ADV_OBJECTIVE_USD_PER_TOKEN, platforms, 4, order);
    assert_memory_equal(order, by_usd, sizeof order);
    assert_true(platforms[2].on_front && platforms[3].on_front);
    assert_false(platforms[0].on_front || platforms[1].on_front);
    const int by_high[] = {2, 1, 3, 0};
    adv_platform_rank(ADV_OBJECTIVE_STEP_TIME_HIGH, platforms, 4, order);
    assert_memory_equal(order, by_high, sizeof order);
    platforms[1].end = ADV_END_NEVER;
    platforms[2].end = ADV_END_LATE;
    const int by_end[] = {3, 2, 1, 0}; /* whatever the objective */
    adv_platform_rank(ADV_OBJECTIVE_HBM, platforms, 4, order);
    assert_memory_equal(order, by_end, sizeof order);
    assert_int_equal(platforms[2].tie_group, 1); /* as little memory as the first, but late */
    adv_platform_rank(ADV_OBJECTIVE_STEP_TIME, platforms, 4, order);
    assert_memory_equal(order, by_end, sizeof order);
    assert_false(platforms[1].on_front);
}

static bool warns(const json_t *root, const char *code)
{
    size_t i;
    json_t *warning;
    bool found = false;
    json_array_foreach(at(root, "warnings"), i, warning) found =
        found || strcmp(text(warning, "code"), code) == 0;
    return found;
}

/* Two v6e slices, the smaller of which is cheaper per token and slower. */
static json_t *asked_by(const char *days_and_rest)
{
    char request[1024];
    (void)snprintf(request, sizeof request,
                   "\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"4x4\",\"price_usd_per_chip_hour\":1},"
                   "{\"chip\":\"v6e\",\"topology\":\"8x8\",\"price_usd_per_chip_hour\":5}],"
                   "\"search\":{\"objective\":\"usd_per_token\"},\"workload\":{\"seq_len\":8192,"
                   "\"global_batch_sequences\":64,\"total_tokens\":1e11,%s",
                   days_and_rest);
    return asked(request);
}

static void machines_in_time_come_before_cheaper_late_ones(void **state)
{
    (void)state;
    json_t *root = asked_by("\"days_available\":1000}");
    assert_string_equal(text(root, "platforms.0.cluster.topology"), "4x4");
    assert_false(warns(root, "deadline-missed"));
    const double small = number(root, "platforms.0.training.days");
    const double large = number(root, "platforms.1.training.days");
    json_decref(root);
    char days[64];
    (void)snprintf(days, sizeof days, "\"days_available\":%.3f}", (small + large) / 2);
    root = asked_by(days);
    assert_string_equal(text(root, "platforms.0.cluster.topology"), "8x8");
    assert_string_equal(text(root, "cluster.topology"), "8x8");
    assert_true(json_is_true(at(root, "platforms.0.training.in_time")));
    assert_true(json_is_false(at(root, "platforms.1.training.in_time")));
    assert_false(warns(root, "deadline-missed"));
    json_decref(root);
    (void)snprintf(days, sizeof days, "\"days_available\":%.3f}", large / 2);
    root = asked_by(days);
    assert_string_equal(text(root, "platforms.0.cluster.topology"), "4x4");
    assert_true(warns(root, "deadline-missed"));
    json_decref(root);
}

#define FRAIL "\"goodput\":{\"failures_per_chip_day\":10,\"restart_s\":86400,\"checkpoint_s\":86400}"

static void a_training_that_never_ends_is_not_in_time(void **state)
{
    (void)state;
    static const char *const limits[] = {"\"days_available\":1000}," FRAIL,
                                         "\"quantization\":\"none\"}," FRAIL};
    for (size_t i = 0; i < 2; i++) { /* with and without a deadline; the smaller one ends, some day */
        json_t *root = asked_by(limits[i]);
        assert_string_equal(text(root, "platforms.0.cluster.topology"), "4x4");
        assert_true(json_is_true(at(root, "platforms.0.training.ends")));
        assert_true(json_is_false(at(root, "platforms.1.training.ends")));
        assert_true(json_is_false(at(root, "platforms.1.training.in_time")));
        assert_int_equal(warns(root, "deadline-missed"), i == 0);
        json_decref(root);
    }
    json_t *root = asked("\"cluster\":{\"chip\":\"v6e\",\"topology\":\"8x8\"},\"workload\":{\"seq_len\":8192,"
                         "\"global_batch_sequences\":64,\"total_tokens\":1e11}," FRAIL);
    assert_true(warns(root, "training-never-ends"));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_topology_tries_every_number_of_equal_slices),
        cmocka_unit_test(the_ranked_plans_are_those_of_the_best_machine),
        cmocka_unit_test(changed_keys_count_alike_on_each_machine),
        cmocka_unit_test(the_bill_is_time_price_and_power_of_the_token_budget),
        cmocka_unit_test(a_training_has_failures_checkpoints_and_sources),
        cmocka_unit_test(the_objective_orders_machines),
        cmocka_unit_test(gpus_are_headline_rows_that_say_so),
        cmocka_unit_test(a_machine_without_a_plan_says_why_and_the_others_stay),
        cmocka_unit_test(impossible_machines_are_refused_with_what_works),
        cmocka_unit_test(ranking_puts_machines_without_a_plan_or_price_last),
        cmocka_unit_test(machines_in_time_come_before_cheaper_late_ones),
        cmocka_unit_test(a_training_that_never_ends_is_not_in_time),
    };
    return run_group_with_catalog(tests);
}
