/* Keys and flags that releases of MaxText, JAX and libtpu take: the pinned ones are one everywhere, and
 * advice is for a release. */
#include "tests/unit/check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/catalog/releases.h"
#include "engine/maxtext/run.h"
#include "engine/maxtext/software.h"

#define FUSION "xla_tpu_enable_async_collective_fusion"

static struct adv_catalog *catalog;

static int load(void **state)
{
    (void)state;
    adv_err err;
    adv_err_init(&err);
    catalog = adv_catalog_load(NULL, &err);
    return catalog ? 0 : -1;
}

static int drop(void **state)
{
    (void)state;
    adv_catalog_free(catalog);
    return 0;
}

static json_t *answer(enum adv_request_kind kind, const char *text)
{
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_answer_request(catalog, kind, text, strlen(text), &answer, &err), ADV_OK);
    json_t *root = json_loads(answer.json, 0, NULL);
    adv_answer_free(&answer);
    assert_non_null(root);
    return root;
}

/* The finding with the code in a list of warnings or findings, NULL without. */
static const json_t *coded(const json_t *list, const char *code)
{
    size_t index;
    json_t *finding;
    json_array_foreach((json_t *)(uintptr_t)list, index,
                       finding) if (strcmp(json_string_value(json_object_get(finding, "code")), code) ==
                                    0) return finding;
    return NULL;
}

static void the_pinned_releases_are_those_of_the_verifier_and_of_emitted_files(void **state)
{
    (void)state;
    json_t *versions = json_load_file("server/verifier/versions.json", 0, NULL);
    const struct adv_software *pinned = adv_catalog_pinned(catalog);
    assert_string_equal(pinned->maxtext, json_string_value(json_object_get(versions, "maxtext")));
    assert_string_equal(pinned->jax, json_string_value(json_object_get(versions, "jax")));
    assert_string_equal(pinned->libtpu, json_string_value(json_object_get(versions, "libtpu")));
    assert_string_equal(pinned->maxtext, ADV_MAXTEXT_VERSION);
    json_decref(versions);
}

static void the_pinned_libtpu_is_the_one_that_the_pinned_jax_asks_for(void **state)
{
    (void)state;
    const struct adv_software *pinned = adv_catalog_pinned(catalog);
    const char *asked = adv_catalog_jax_asks(catalog, pinned->jax);
    assert_non_null(asked);
    assert_true(adv_catalog_release_matches(asked, pinned->libtpu));
    assert_true(adv_catalog_release_matches("0.0.50.*", "0.0.50"));
    assert_false(adv_catalog_release_matches("0.0.5.*", "0.0.50"));
    assert_false(adv_catalog_release_matches("0.0.50", "0.0.50.1"));
}

static int count_flags(const json_t *flags, const char *flag)
{
    size_t index;
    json_t *item;
    int count = 0;
    json_array_foreach((json_t *)(uintptr_t)flags, index, item) count +=
        strcmp(json_string_value(item), flag) == 0;
    return count;
}

/* libtpu refused the first plans of v6e and v5p: their fused collectives need an option that is on by default
 * and not supported there. */
static void no_ranked_plan_has_flags_that_the_pinned_libtpu_refuses(void **state)
{
    (void)state;
    static const char *const machines[] = {"\"v6e\",\"topology\":\"4x4\"", "\"v5p\",\"topology\":\"2x2x4\"",
                                           "\"v5e\",\"topology\":\"8x8\"", "\"v4\",\"topology\":\"2x4x4\"",
                                           "\"tpu7x\",\"topology\":\"2x2x4\""};
    int off = 0;
    for (size_t m = 0; m < sizeof machines / sizeof *machines; m++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":%s},\"workload\":{\"seq_len\":8192,"
                       "\"global_batch_sequences\":128},\"search\":{\"top_k\":5}}",
                       machines[m]);
        json_t *root = answer(ADV_REQUEST_ADVISE, text), *plan;
        size_t index;
        assert_true(json_array_size(json_object_get(root, "ranked")) > 0);
        json_array_foreach(json_object_get(root, "ranked"), index, plan)
        {
            const json_t *estimate = json_object_get(plan, "estimate");
            assert_null(coded(json_object_get(estimate, "warnings"), "refused-flag"));
            assert_null(coded(json_object_get(estimate, "warnings"), "key-not-in-release"));
            off += count_flags(json_object_get(plan, "xla_flags"), "--" FUSION "_fuse_all_gather=false");
        }
        json_decref(root);
    }
    assert_true(off > 0); /* else this test has lost its plans */
}

static void a_flag_is_refused_by_its_default_too_and_only_beside_what_brings_it(void **state)
{
    (void)state;
    static const char head[] =
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
        "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096},\"xla_flags\":";
    static const struct {
        const char *flags;
        bool refused;
    } cases[] = {
        {"[\"--xla_enable_async_all_gather=true\",\"--" FUSION "_fuse_all_gather=true\"]", true},
        {"[\"--xla_enable_async_all_gather=true\",\"--" FUSION "_fuse_all_gather=true\",\"--" FUSION
         "=true\"]",
         true},
        {"[\"--xla_enable_async_all_gather=true\",\"--" FUSION "_fuse_all_gather=true\",\"--" FUSION
         "=false\"]",
         false},
        {"[\"--" FUSION "_fuse_all_gather=true\"]", false},
        {"[\"--xla_sc_disjoint_spmem=true\"]", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s%s}", head, cases[i].flags);
        json_t *root = answer(ADV_REQUEST_ESTIMATE, text);
        const json_t *found = coded(json_object_get(root, "warnings"), "refused-flag");
        assert_int_equal(found != NULL, cases[i].refused);
        if (found) /* the flag may stand in the request: it is set or left out, not added */
            assert_null(strstr(json_string_value(json_object_get(found, "hint")), "add --"));
        json_decref(root);
    }
}

static void lint_says_what_a_release_refuses(void **state)
{
    (void)state;
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    assert_true(releases->keys_count > 0 && releases->maxtext_count > 1);
    const struct adv_catalog_range *late = NULL;
    for (int i = 0; i < releases->keys_count && !late; i++)
        if (releases->keys[i].since > 0 && releases->keys[i].last == releases->maxtext_count - 1 &&
            strcmp(releases->keys[i].name, "use_tokamax_splash") == 0)
            late = &releases->keys[i];
    assert_non_null(late);
    if (!late) return;
    for (int i = 0; i < releases->maxtext_count; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{\"config\":{\"base_emb_dim\":4096,\"%s\":true},\"software\":{\"maxtext\":\"%s\"}}",
                       late->name, releases->maxtext[i]);
        json_t *root = answer(ADV_REQUEST_LINT, text);
        const json_t *found = coded(json_object_get(root, "findings"), "key-not-in-release");
        assert_int_equal(found != NULL, i < late->since);
        if (found) {
            assert_string_equal(json_string_value(json_object_get(found, "severity")), "error");
            assert_true(json_is_false(json_object_get(root, "valid")));
        }
        json_decref(root);
    }
}

/* MaxText 0.1.0 asserts that the inputs of layers are saved. */
static void an_input_that_a_release_must_save_is_an_error_of_it(void **state)
{
    (void)state;
    static const char *const releases[] = {"0.1.0", "0.2.0"};
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{\"config\":{\"base_emb_dim\":4096,\"remat_policy\":\"custom\","
                       "\"decoder_layer_input\":\"remat\"},\"software\":{\"maxtext\":\"%s\"}}",
                       releases[i]);
        json_t *root = answer(ADV_REQUEST_LINT, text);
        const json_t *found = coded(json_object_get(root, "findings"), "value-not-in-release");
        assert_int_equal(found != NULL, i == 0);
        json_decref(root);
    }
}

/* The table had none of them as long as nobody asked the releases again. */
static void keys_that_came_with_the_pinned_release_are_new_in_it(void **state)
{
    (void)state;
    static const char *const names[] = {"muon_type", "packing_max_segments_per_sample", "moe_mlp_tp_size"};
    const struct adv_catalog_releases *releases = adv_catalog_releases(catalog);
    const char *before = releases->maxtext[releases->maxtext_count - 2];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_non_null(adv_catalog_key_missing(catalog, before, names[i]));
        assert_null(adv_catalog_key_missing(catalog, releases->pinned.maxtext, names[i]));
    }
}

/* Early releases know fewer models: what would start them says so, and so do the files. */
static void a_model_that_a_release_lacks_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *model, *release;
        bool known;
    } cases[] = {{"qwen2.5-7b", "0.2.0", false},
                 {"qwen2.5-7b", "0.2.1", true},
                 {"gemma4-26b", "0.1.0", false},
                 {"llama3.1-8b", "0.1.0", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        static const char job[] = "{\"model\":\"%s\",\"software\":{\"maxtext\":\"%s\"},"
                                  "\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},";
        int length = snprintf(text, sizeof text, job, cases[i].model, cases[i].release);
        char *rest = text + length;
        const size_t room = sizeof text - (size_t)length;
        (void)snprintf(rest, room, "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":2048}}");
        json_t *root = answer(ADV_REQUEST_ESTIMATE, text);
        const json_t *found = coded(json_object_get(root, "warnings"), "model-not-in-release");
        assert_int_equal(found == NULL, cases[i].known);
        json_decref(root);
        root = answer(ADV_REQUEST_LINT, text);
        found = coded(json_object_get(root, "findings"), "model-not-in-release");
        assert_int_equal(found == NULL, cases[i].known);
        if (found) {
            assert_string_equal(json_string_value(json_object_get(found, "severity")), "error");
            assert_non_null(strstr(json_string_value(json_object_get(found, "hint")), "0.2.5"));
        }
        json_decref(root);
        (void)snprintf(rest, room,
                       "\"workload\":{\"seq_len\":2048,\"per_device_batch_size\":1},\"search\":{\"top_k\":1,"
                       "\"max_evaluations\":200}}");
        root = answer(ADV_REQUEST_ADVISE, text);
        found = coded(json_object_get(root, "warnings"), "model-not-in-release");
        assert_int_equal(found == NULL, cases[i].known);
        if (found) assert_string_equal(json_string_value(json_object_get(found, "pointer")), "/model");
        json_decref(root);
    }
}

/* By steps compiled with each flag (tests/compile/schedules.md). */
static void a_flag_that_changes_nothing_on_a_chip_is_a_warning(void **state)
{
    (void)state;
#define OFFLOAD "--xla_tpu_enable_sparse_core_collective_offload_"
    static const struct {
        const char *chip, *topology, *flags, *release;
        bool warned;
    } rows[] = {
        {"v6e", "8x8", OFFLOAD "all_gather=true", "0.0.50.1", true},
        {"v6e", "8x8", OFFLOAD "all_gather=true " OFFLOAD "2d_all_gather=true", "0.0.50.1", false},
        {"v6e", "8x8", OFFLOAD "all_gather=true " OFFLOAD "3d_all_gather=true", "0.0.50.1", true},
        {"v5p", "4x4x4", OFFLOAD "all_gather=true", "0.0.50.1", true},
        {"v5p", "4x4x4", OFFLOAD "all_gather=true " OFFLOAD "2d_all_gather=true", "0.0.50.1", true},
        {"v5p", "4x4x4", OFFLOAD "all_gather=true " OFFLOAD "3d_all_gather=true", "0.0.50.1", false},
        {"tpu7x", "4x4x4", OFFLOAD "all_gather=true", "0.0.50.1", false},
        {"v6e", "8x8", OFFLOAD "reduce_scatter=true", "0.0.50.1", true},
        {"v5p", "4x4x4", OFFLOAD "reduce_scatter=true", "0.0.50.1", true},
        {"v5p", "4x4x4", OFFLOAD "all_reduce=true", "0.0.50.1", false},
        {"v4", "4x4x4", OFFLOAD "all_gather=true " OFFLOAD "2d_all_gather=true", "0.0.50.1", true},
        {"v4", "4x4x4", OFFLOAD "all_reduce=true", "0.0.50.1", true},
        {"v6e", "8x8", OFFLOAD "reduce_scatter=false", "0.0.50.1", false},
        {"v6e", "8x8", OFFLOAD "reduce_scatter=true", "0.0.52", false}, /* nobody has asked it */
        {"v6e", "8x8", OFFLOAD "all_reduce=true", "0.0.50.1", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"%s\",\"topology\":\"%s\"},"
                       "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096},"
                       "\"software\":{\"libtpu\":\"%s\"},\"xla_flags\":\"%s\"}",
                       rows[i].chip, rows[i].topology, rows[i].release, rows[i].flags);
        json_t *root = answer(ADV_REQUEST_ESTIMATE, text);
        const bool warned = coded(json_object_get(root, "warnings"), "ignored-flag") != NULL;
        if (warned != rows[i].warned) fail_msg("%s %s", rows[i].chip, rows[i].flags);
        json_decref(root);
    }
}

/* A v6e slice under fsdp, whose gathers are offloaded by flags; its time. */
static double time_of_gathers(const char *mesh, const char *flags, bool *warned)
{
    char text[1024];
    (void)snprintf(
        text, sizeof text,
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"8x8\"},\"config\":{"
        "\"per_device_batch_size\":2,\"max_target_length\":8192,\"remat_policy\":\"full\",%s},"
        "\"xla_flags\":\"--xla_enable_async_all_gather=true %s\"}",
        mesh, flags);
    json_t *root = answer(ADV_REQUEST_ESTIMATE, text);
    *warned = coded(json_object_get(root, "warnings"), "ignored-flag") != NULL;
    const double step_time_s = json_number_value(json_object_get(root, "step_time_s"));
    json_decref(root);
    return step_time_s;
}

static void offloaded_gathers_count_where_the_flags_cover_their_torus_axes(void **state)
{
    (void)state;
    static const char two_axes[] = "\"ici_fsdp_parallelism\":64", /* and one */
        one_axis[] = "\"ici_fsdp_parallelism\":8,\"ici_tensor_parallelism\":8";
    bool warned;
    const double without_s = time_of_gathers(two_axes, "", &warned);
    assert_close(time_of_gathers(two_axes, OFFLOAD "all_gather=true", &warned), without_s, 0);
    assert_true(warned);
    assert_close(time_of_gathers(two_axes, OFFLOAD "2d_all_gather=true", &warned), without_s, 0);
    assert_true(time_of_gathers(two_axes, OFFLOAD "all_gather=true " OFFLOAD "2d_all_gather=true", &warned) <
                without_s);
    assert_false(warned);
    const double across_s = time_of_gathers(one_axis, "", &warned);
    assert_true(time_of_gathers(one_axis, OFFLOAD "all_gather=true", &warned) < across_s);
    assert_false(warned);
}

static void advice_to_offload_gathers_sets_all_that_they_need(void **state)
{
    (void)state;
    static const char *const slices[] = {"8x8", "16x16"};
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"%s\"},"
                       "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096}}",
                       slices[i]);
        json_t *root = answer(ADV_REQUEST_ESTIMATE, text);
        const json_t *change =
            json_object_get(coded(json_object_get(root, "advice"), "sparsecore_offload"), "change");
        assert_true(json_is_true(json_object_get(change, &OFFLOAD "all_gather"[2])));
        assert_true(json_is_true(json_object_get(change, &OFFLOAD "2d_all_gather"[2])));
        json_decref(root);
    }
}

#undef OFFLOAD

/* Whose image carries which libtpu is unknown unless somebody says it: then a refusal is an error. */
static void a_refused_flag_is_an_error_of_a_named_release_and_of_strict_lint(void **state)
{
    (void)state;
    static const char head[] = "{\"config\":{\"per_device_batch_size\":1},\"model\":\"llama3.1-8b\","
                               "\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                               "\"xla_flags\":[\"--xla_sc_disjoint_spmem=false\"]";
    static const struct {
        const char *rest, *severity;
    } cases[] = {{"}", "warning"}, {",\"software\":{\"libtpu\":\"0.0.50.1\"}}", "error"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "%s%s", head, cases[i].rest);
        json_t *root = answer(ADV_REQUEST_LINT, text);
        const json_t *found = coded(json_object_get(root, "findings"), "refused-flag");
        assert_string_equal(json_string_value(json_object_get(found, "severity")), cases[i].severity);
        assert_int_equal(json_is_true(json_object_get(root, "valid")), i == 0);
        json_decref(root);
    }
    char text[512];
    struct adv_answer refused;
    adv_err err;
    adv_err_init(&err);
    (void)snprintf(text, sizeof text, "%s,\"strict\":true}", head);
    assert_int_not_equal(adv_answer_request(catalog, ADV_REQUEST_LINT, text, strlen(text), &refused, &err),
                         ADV_OK);
    assert_string_equal(err.findings[0].rule, "refused-flag");
}

static void a_libtpu_that_the_jax_did_not_ask_for_is_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *software;
        bool warned;
    } cases[] = {{"{}", false}, {"{\"libtpu\":\"0.0.52\"}", true}, {"{\"libtpu\":\"0.0.50.1\"}", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "{\"config\":{\"base_emb_dim\":4096},\"software\":%s}",
                       cases[i].software);
        json_t *root = answer(ADV_REQUEST_LINT, text);
        assert_int_equal(coded(json_object_get(root, "findings"), "libtpu-not-asked-for") != NULL,
                         cases[i].warned);
        json_decref(root);
    }
}

static void what_is_not_known_of_a_release_is_said(void **state)
{
    (void)state;
    static const char maxtext[] = "{\"config\":{\"base_emb_dim\":4096},\"software\":{\"maxtext\":\"9.9\"}}";
    json_t *root = answer(ADV_REQUEST_LINT, maxtext);
    const json_t *finding = json_array_get(json_object_get(root, "findings"), 0);
    assert_string_equal(json_string_value(json_object_get(finding, "pointer")), "/software/maxtext");
    assert_non_null(strstr(json_string_value(json_object_get(finding, "hint")), ADV_MAXTEXT_VERSION));
    json_decref(root);
    static const char libtpu[] = "{\"config\":{\"base_emb_dim\":4096},\"software\":{\"libtpu\":\"9.9\"}}";
    root = answer(ADV_REQUEST_LINT, libtpu);
    assert_non_null(coded(json_object_get(root, "findings"), "libtpu-not-known"));
    json_decref(root);
    static const struct {
        const char *jax;
        bool known;
    } releases[] = {{"0.4.0", false}, {"99.0", false}, {"0.8.3", true}};
    for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "{\"config\":{\"base_emb_dim\":4096},\"software\":{\"jax\":\"%s\"}}", releases[i].jax);
        root = answer(ADV_REQUEST_LINT, text);
        finding = coded(json_object_get(root, "findings"), "jax-not-known");
        assert_int_equal(finding == NULL, releases[i].known);
        if (finding) {
            assert_non_null(strstr(json_string_value(json_object_get(finding, "detail")),
                                   adv_catalog_pinned(catalog)->libtpu));
            assert_non_null(strstr(json_string_value(json_object_get(finding, "hint")), "0.8.3, "));
        }
        json_decref(root);
    }
    static const char wrong[] = "{\"config\":{\"base_emb_dim\":4096},\"software\":{\"libtpu\":\"newest\"}}";
    root = answer(ADV_REQUEST_LINT, wrong);
    assert_true(json_is_false(json_object_get(root, "valid")));
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_pinned_releases_are_those_of_the_verifier_and_of_emitted_files),
        cmocka_unit_test(the_pinned_libtpu_is_the_one_that_the_pinned_jax_asks_for),
        cmocka_unit_test(no_ranked_plan_has_flags_that_the_pinned_libtpu_refuses),
        cmocka_unit_test(a_flag_is_refused_by_its_default_too_and_only_beside_what_brings_it),
        cmocka_unit_test(lint_says_what_a_release_refuses),
        cmocka_unit_test(an_input_that_a_release_must_save_is_an_error_of_it),
        cmocka_unit_test(keys_that_came_with_the_pinned_release_are_new_in_it),
        cmocka_unit_test(a_model_that_a_release_lacks_is_named),
        cmocka_unit_test(a_flag_that_changes_nothing_on_a_chip_is_a_warning),
        cmocka_unit_test(offloaded_gathers_count_where_the_flags_cover_their_torus_axes),
        cmocka_unit_test(advice_to_offload_gathers_sets_all_that_they_need),
        cmocka_unit_test(a_refused_flag_is_an_error_of_a_named_release_and_of_strict_lint),
        cmocka_unit_test(a_libtpu_that_the_jax_did_not_ask_for_is_a_warning),
        cmocka_unit_test(what_is_not_known_of_a_release_is_said),
    };
    return cmocka_run_group_tests(tests, load, drop);
}
