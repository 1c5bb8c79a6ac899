/* The words of a command line as MaxText takes them: its own check was asked about each. */
#include "tests/unit/check.h"

#include "tests/unit/lint_fixture.h"

#define COMMAND "python3 -m maxtext.trainers.pre_train.train base.yml model_name=llama3.1-8b "

static void a_key_behind_dashes_is_no_key(void **state)
{
    static const char *const texts[] = {COMMAND "--per_device_batch_size=2\n",
                                        "model_name=llama3.1-8b --per_device_batch_size=2\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *answer = lint_text(texts[i]);
        assert_finding(answer, "/config/--per_device_batch_size", "error", "unknown-key");
        const json_t *finding = finding_at(answer, "/config/--per_device_batch_size");
        assert_non_null(strstr(json_string_value(json_object_get(finding, "hint")), "per_device_batch_size"));
        json_decref(answer);
    }
}

static void options_of_other_programs_are_no_keys(void **state)
{
    static const char *const texts[] = {
        "xpk workload create --cluster=a --zone=b --command=\"" COMMAND "steps=5\"\n",
        COMMAND "--xla_tpu_scoped_vmem_limit_kib=65536 --v=1 --alsologtostderr=1\n",
        "gcloud --zone=b --project=a\nper_device_batch_size=2 model_name=llama3.1-8b\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *answer = lint_text(texts[i]);
        if (!json_is_true(json_object_get(answer, "valid"))) fail_msg("%s", texts[i]);
        json_decref(answer);
    }
}

static void nothing_behind_the_sign_is_null(void **state)
{
    static const struct {
        const char *word, *refused;
    } cases[] = {{"mu_dtype=", "/config/mu_dtype"},
                 {"mu_dtype=\"\"", "/config/mu_dtype"},
                 {"mu_dtype=~", "/config/mu_dtype"},
                 {"mu_dtype='\"\"'", NULL},
                 {"quantization=", NULL},
                 {"remat_policy=", NULL},
                 {"max_target_length=", "/config/max_target_length"},
                 {"scan_layers=", "/config/scan_layers"},
                 {"hf_path=", "/config/hf_path"},
                 {"per_device_batch_size=\"'2'\"", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, COMMAND "%s\n", cases[i].word);
        json_t *answer = lint_text(text);
        if (json_is_true(json_object_get(answer, "valid")) != (cases[i].refused == NULL))
            fail_msg("%s", cases[i].word);
        if (cases[i].refused) assert_finding(answer, cases[i].refused, "error", "invalid-request");
        json_decref(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_behind_dashes_is_no_key),
        cmocka_unit_test(options_of_other_programs_are_no_keys),
        cmocka_unit_test(nothing_behind_the_sign_is_null),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
