/* Files that are written are read back: each file that starts a ranked plan means that plan again, for every
 * model of the catalog on every chip generation in turn. */
#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_answer.h"
#include "tests/unit/answer_fixture.h"

static const struct {
    const char *chip, *topology;
    int slices;
} machines[] = {{"tpu7x", "4x4x4", 1}, {"v6e", "16x16", 2}, {"v5p", "4x4x8", 1},
                {"v5e", "16x16", 1},   {"v4", "4x8x8", 1},  {"tpu7x", "4x4x8", 2}};
enum { MACHINES = sizeof machines / sizeof *machines, RANKS = 3 };

/* Of `model`, which is taken. */
static json_t *request_for(json_t *model, int machine)
{
    return json_pack("{s:o, s:{s:s, s:s, s:i}, s:{s:i, s:i}, s:{s:i, s:i}}", "model", model, "cluster",
                     "chip", machines[machine].chip, "topology", machines[machine].topology, "slices",
                     machines[machine].slices, "workload", "seq_len", 4096, "per_device_batch_size", 1,
                     "search", "top_k", RANKS, "max_evaluations", 400);
}

/* The estimate of a file as the member `recipe`; beside it the machine where the file does not name it, and
 * the flags where they are in a file of their own. */
static json_t *estimate_of(const char *name, const char *text, int machine, const json_t *ranked)
{
    json_t *request = json_pack("{s:s}", "recipe", text);
    adv_err refused;
    if (strncmp(name, "maxtext.", strlen("maxtext.")) == 0)
        (void)json_object_set_new(request, "cluster",
                                  json_pack("{s:s, s:s, s:i}", "chip", machines[machine].chip, "topology",
                                            machines[machine].topology, "slices", machines[machine].slices));
    if (strcmp(name, "maxtext.yml") == 0)
        (void)json_object_set(request, "xla_flags", json_object_get(ranked, "xla_flags"));
    char *json = json_dumps(request, 0);
    json_t *answer = answer_or_refusal(ADV_REQUEST_ESTIMATE, json, &refused);
    if (!answer)
        fail_msg("%s: %s: %s\n%s", name, refused.findings[0].pointer, refused.findings[0].detail, text);
    free(json);
    json_decref(request);
    return answer;
}

static double number_at(const json_t *object, const char *member)
{
    return json_number_value(json_object_get(object, member));
}

/* True: the file starts the plan; a file that says why it cannot is none. */
static bool means_the_plan(const char *name, const char *answer, int rank, int machine, const json_t *ranked)
{
    if (!answer) return false;
    struct adv_text text;
    adv_err err;
    adv_err_init(&err);
    adv_text_init(&text, 1 << 20);
    if (adv_artifact_from_answer(catalog, name, answer, strlen(answer), rank, &text, &err) != ADV_OK)
        fail_msg("%s: %s", name, err.findings[0].detail);
    const bool starts = !strstr(text.data, "\nexit 2\n") || strcmp(name, "maxtext.yml") == 0;
    if (starts) {
        json_t *again = estimate_of(name, text.data, machine, ranked);
        const json_t *estimate = json_object_get(ranked, "estimate");
        const bool same =
            fabs(number_at(again, "step_time_s") / number_at(estimate, "step_time_s") - 1) < 1e-9 &&
            fabs(number_at(again, "hbm_bytes_per_device") / number_at(estimate, "hbm_bytes_per_device") - 1) <
                1e-9;
        if (!same)
            fail_msg("%s: %.17g s again, %.17g s ranked\n%s", name, number_at(again, "step_time_s"),
                     number_at(estimate, "step_time_s"), text.data);
        json_decref(again);
    }
    adv_text_free(&text);
    return starts;
}

/* What the files of the request's ranked plans are read back to; adds to the two counts. */
static void read_back(const json_t *request, int machine, int *plans, int *files)
{
    static const char *const names[] = {"maxtext.sh",  "maxtext.yml", "xpk.sh",
                                        "gcluster.sh", "jobset.yaml", "verify.sh"};
    adv_err err;
    char *text = json_dumps(request, 0);
    json_t *answer = answer_or_refusal(ADV_REQUEST_ADVISE, text, &err);
    const json_t *ranked = json_object_get(answer, "ranked");
    char *dumped = answer ? json_dumps(answer, JSON_REAL_PRECISION(17)) : NULL;
    for (size_t rank = 0; rank < json_array_size(ranked); rank++) {
        for (size_t n = 0; n < sizeof names / sizeof *names; n++)
            *files += means_the_plan(names[n], dumped, (int)rank + 1, machine, json_array_get(ranked, rank));
        ++*plans;
    }
    free(dumped);
    free(text);
    json_decref(answer);
}

static void written_files_are_read_back_to_the_same_plan(void **state)
{
    (void)state;
    int plans = 0, files = 0;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const int machine = i % MACHINES;
        json_t *request = request_for(json_string(adv_catalog_tables(catalog)->model_names[i]), machine);
        read_back(request, machine, &plans, &files);
        json_decref(request);
    }
    print_message("%d plans, %d files\n", plans, files);
    assert_true(plans > 100 && files > 550);
}

/* Models that MaxText has no file for are trained by their dimensions, some under the name of another: what
 * MaxText refuses under that name is never ranked. */
static void files_of_hugging_face_models_are_read_back_too(void **state)
{
    (void)state;
    static const char *const models[] = {"deepseek2-16b", "deepseek3-671b", "gemma2-9b",    "gemma3-27b",
                                         "gpt-oss-20b",   "llama3.1-8b",    "mixtral-8x7b", "qwen3-30b-a3b"};
    int plans = 0, files = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        for (int machine = 0; machine < MACHINES; machine += MACHINES - 1) {
            char path[64];
            (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", models[i]);
            json_t *request =
                request_for(json_pack("{s:o}", "hf_config", json_load_file(path, 0, NULL)), machine);
            read_back(request, machine, &plans, &files);
            json_decref(request);
        }
    }
    print_message("%d plans, %d files\n", plans, files);
    assert_true(plans > 40 && files > 240);
}

static bool warns(const json_t *answer, const char *code)
{
    for (size_t i = 0; i < json_array_size(json_object_get(answer, "warnings")); i++) {
        const json_t *warning = json_array_get(json_object_get(answer, "warnings"), i);
        if (strcmp(json_string_value(json_object_get(warning, "code")), code) == 0) return true;
    }
    return false;
}

/* A file for other releases than the pinned ones says so, and is read as one for them. */
static void files_for_other_releases_are_read_back_for_them(void **state)
{
    (void)state;
    static const char *const names[] = {"maxtext.sh",  "maxtext.yml", "xpk.sh",
                                        "gcluster.sh", "jobset.yaml", "verify.sh"};
    static const char *const softwares[] = {
        "{\"maxtext\":\"0.1.0\"}", "{\"maxtext\":\"0.2.1\",\"jax\":\"0.8.3\"}", "{\"libtpu\":\"0.0.52\"}"};
    for (size_t i = 0; i < sizeof softwares / sizeof *softwares; i++) {
        json_t *request = request_for(json_string("llama3.1-8b"), 1);
        (void)json_object_set_new(request, "software", json_loads(softwares[i], 0, NULL));
        json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
        const json_t *ranked = json_array_get(json_object_get(answer, "ranked"), 0);
        char *dumped = json_dumps(answer, JSON_REAL_PRECISION(17));
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            struct adv_text text;
            adv_err err;
            adv_err_init(&err);
            adv_text_init(&text, 1 << 20);
            assert_int_equal(
                adv_artifact_from_answer(catalog, names[n], dumped, strlen(dumped), 1, &text, &err), ADV_OK);
            json_t *again = estimate_of(names[n], text.data, 1, ranked);
            if (!json_equal(json_object_get(again, "software"), json_object_get(answer, "software")))
                fail_msg("%s for %s is read for others:\n%s", names[n], softwares[i], text.data);
            assert_false(warns(again, "old-module"));
            assert_false(warns(again, "key-not-in-release"));
            json_decref(again);
            adv_text_free(&text);
        }
        free(dumped);
        json_decref(answer);
        json_decref(request);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(written_files_are_read_back_to_the_same_plan),
                                       cmocka_unit_test(files_of_hugging_face_models_are_read_back_too),
                                       cmocka_unit_test(files_for_other_releases_are_read_back_for_them)};
    return run_group_with_catalog(tests);
}
