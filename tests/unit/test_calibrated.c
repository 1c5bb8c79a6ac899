/* Answers by a calibration: one that another engine has fitted says so, and pictures are corrected too. */
#include "tests/unit/answer_fixture.h"

#include <math.h>

#include "engine/base/version.h"

#define JOB(chip, topology)                                                                                  \
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"" chip "\",\"topology\":\"" topology "\"},"          \
    "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":8192,\"ici_fsdp_parallelism\":16,"        \
    "\"remat_policy\":\"full\"}}"
#define SEARCH                                                                                               \
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":"           \
    "{\"seq_len\":8192,\"global_batch_sequences\":16},\"search\":{\"top_k\":1}}"

/* What v6e measures, fitted on predictions of that engine. */
static struct adv_catalog *correct(const char *version, const char *hash)
{
    static const struct adv_correction slower = {.chip = "v6e", .step_time_frac = 0.2, .hbm_frac = 0.05};
    const struct adv_calibration calibration = {"calibration/x", version, hash, &slower, 1};
    struct adv_catalog *corrected = adv_catalog_corrected(catalog, &calibration);
    assert_non_null(corrected);
    return corrected;
}

/* The detail of the answer's warning of the calibration; NULL: it has none. The caller frees it. */
static char *warning_of(const struct adv_catalog *corrected, enum adv_request_kind kind, const char *text)
{
    struct adv_answer answer;
    adv_err err = adv_err_empty();
    assert_int_equal(adv_answer_request(corrected, kind, text, strlen(text), &answer, &err), ADV_OK);
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL), *warning;
    size_t i;
    char *detail = NULL;
    json_array_foreach(json_object_get(root, "warnings"), i, warning)
    {
        if (strcmp(json_string_value(json_object_get(warning, "code")), "calibration-of-another-engine") != 0)
            continue;
        assert_null(detail);
        detail = strdup(json_string_value(json_object_get(warning, "detail")));
    }
    json_decref(root);
    adv_answer_free(&answer);
    return detail;
}

static void a_correction_of_another_engine_is_told_where_it_counts(void **state)
{
    static const struct {
        const char *version, *hash, *named; /* NULL: this engine's */
    } cases[] = {
        {NULL, NULL, NULL},
        {"0.9.0+old", "0123456789abcdef", "engine 0.9.0+old (catalog 0123456789abcdef)"},
        {NULL, "0123456789abcdef", "catalog 0123456789abcdef"},
        {"", "", "an engine of an earlier release"},
    };
    (void)state;
    assert_string_equal(adv_catalog_fitted_elsewhere(catalog), "");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adv_catalog *corrected = correct(cases[i].version ? cases[i].version : adv_engine_version_text,
                                                cases[i].hash ? cases[i].hash : adv_catalog_hash(catalog));
        char *const told[] = {warning_of(corrected, ADV_REQUEST_ESTIMATE, JOB("v6e", "4x4")),
                              warning_of(corrected, ADV_REQUEST_ADVISE, SEARCH)};
        for (size_t k = 0; k < sizeof told / sizeof *told; k++) {
            if (cases[i].named ? !told[k] || !strstr(told[k], cases[i].named) : told[k] != NULL)
                fail_msg("case %zu, answer %zu: %s", i, k, told[k] ? told[k] : "no warning");
            free(told[k]);
        }
        assert_null(warning_of(corrected, ADV_REQUEST_ESTIMATE, JOB("v5p", "2x2x4"))); /* not corrected */
        adv_catalog_free(corrected);
    }
}

/* What one request is answered; the caller lets go of it. */
static json_t *answer_of(const struct adv_catalog *by, const char *text)
{
    struct adv_answer answer;
    adv_err err = adv_err_empty();
    assert_int_equal(adv_answer_request(by, ADV_REQUEST_ESTIMATE, text, strlen(text), &answer, &err), ADV_OK);
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    adv_answer_free(&answer);
    assert_non_null(root);
    return root;
}

static double number_of(const json_t *object, const char *member)
{
    return json_number_value(json_object_get(object, member));
}

/* What shows of the layers of a step, as people add it up. */
static double shown_of(const json_t *timeline)
{
    double shown_s = 0.0;
    json_t *part, *block;
    size_t i, k;
    json_array_foreach(json_object_get(timeline, "layers"), i, part) json_array_foreach(
        json_object_get(part, "blocks"), k, block) if (json_is_true(json_object_get(block, "exposed")))
        shown_s += number_of(part, "times") * number_of(block, "seconds");
    return shown_s;
}

/* Seconds of all operations of the roofline, each as often as it runs. */
static double busy_of(const json_t *roofline)
{
    double busy_s = 0.0;
    json_t *layer, *operation;
    size_t i, k;
    json_array_foreach(json_object_get(roofline, "layers"), i, layer)
        json_array_foreach(json_object_get(layer, "operations"), k, operation) busy_s +=
        number_of(layer, "times") * number_of(operation, "seconds");
    return busy_s;
}

/* A corrected step is the corrected sum of what it is made of, in every picture of it. */
static void pictures_of_a_corrected_step_add_up_to_it(void **state)
{
    static const char text[] =
        "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"8x8\"},"
        "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096,\"ici_fsdp_parallelism\":64,"
        "\"remat_policy\":\"custom\",\"context\":\"offload\"},\"include\":[\"timeline\",\"roofline\"]}";
    (void)state;
    struct adv_catalog *corrected = correct(adv_engine_version_text, adv_catalog_hash(catalog));
    json_t *plain = answer_of(catalog, text), *slower = answer_of(corrected, text);
    const double step_s = number_of(slower, "step_time_s");
    const json_t *timeline = json_object_get(slower, "timeline");
    const json_t *before = json_object_get(plain, "timeline");
    const double ratios[] = {step_s / number_of(plain, "step_time_s"),
                             number_of(timeline, "step_time_s") / number_of(before, "step_time_s"),
                             shown_of(timeline) / shown_of(before),
                             busy_of(json_object_get(slower, "roofline")) /
                                 busy_of(json_object_get(plain, "roofline"))};
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++)
        if (!(fabs(ratios[i] / 1.2 - 1.0) < 1e-6)) fail_msg("ratio %zu is %g", i, ratios[i]);
    json_decref(plain);
    json_decref(slower);
    adv_catalog_free(corrected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correction_of_another_engine_is_told_where_it_counts),
        cmocka_unit_test(pictures_of_a_corrected_step_add_up_to_it),
    };
    return run_group_with_catalog(tests);
}
