/* Answers by a calibration that another engine has fitted say so. */
#include "tests/unit/answer_fixture.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correction_of_another_engine_is_told_where_it_counts),
    };
    return run_group_with_catalog(tests);
}
