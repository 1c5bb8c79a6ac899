/* What the files made from an answer say of its settings, to the MaxText release that they are written for.
 */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/base/text.h"
#include "engine/json/decode_answer.h"
#include "tests/unit/catalog_fixture.h"

static const char *warnings = "[]"; /* of the answer */

/* The file `name` of an estimate with the configuration `config`, for the release `maxtext`. */
static void file_of(const char *name, const char *config, const char *maxtext, struct adv_text *text)
{
    struct adv_text answer = adv_text_empty(8192);
    static adv_err err;
    adv_err_init(&err);
    adv_text_init(text, 65536);
    adv_text_format(&answer,
                    "{\"model\":{\"name\":\"m\"},\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\","
                    "\"accelerator\":\"v6e-16\",\"slices\":1,\"chips\":16,\"hosts\":4},\"config\":%s,"
                    "\"xla_flags\":[\"--xla_a=1\"],\"step_time_s\":1,\"software\":{\"maxtext\":\"%s\"},"
                    "\"warnings\":%s}",
                    config, maxtext, warnings);
    if (adv_artifact_from_answer(catalog, name, answer.data, answer.length_bytes, 1, text, &err) != ADV_OK)
        fail_msg("%s: %s", name, err.findings[0].detail);
    adv_text_free(&answer);
}

static void expect(const char *name, const char *config, const char *maxtext, const char *holds,
                   bool expected)
{
    struct adv_text text;
    file_of(name, config, maxtext, &text);
    if ((strstr(text.data, holds) != NULL) != expected)
        fail_msg("%s %s %s:\n%s", name, expected ? "does not hold" : "holds", holds, text.data);
    adv_text_free(&text);
}

/* In a file of one's own MaxText 0.2.5 lets its file of the model win, also under override_model_config:
 * maxtext.yml of four layers trained all 32. */
static void what_the_models_file_says_otherwise_is_an_argument_beside_maxtext_yml(void **state)
{
    (void)state;
    static const char four[] =
        "{\"model_name\":\"llama3.1-8b\",\"base_num_decoder_layers\":4,\"base_emb_dim\":"
        "4096,\"override_model_config\":true,\"steps\":7}";
    static const char unknown[] = "{\"model_name\":\"later\",\"base_num_decoder_layers\":4,"
                                  "\"override_model_config\":true}";
    expect("maxtext.yml", four, "0.2.5", " 'base_num_decoder_layers=4'\n", true);
    expect("maxtext.yml", four, "0.2.5", "\nbase_num_decoder_layers: 4\n", true);
    expect("maxtext.yml", four, "0.2.5", "'base_emb_dim=4096'", false); /* as the file has it */
    expect("maxtext.yml", four, "0.2.5", "'steps=7'", false);           /* the file has it not */
    expect("maxtext.yml", unknown, "0.2.5", " 'base_num_decoder_layers=4'", true);
    expect("maxtext.yml", "{\"model_name\":\"llama3.1-8b\"}", "0.2.5", "file of the model wins", false);
}

/* An argument's rules stand in place of those that they name, a file's in place of all of base.yml's. */
static void axis_rules_are_an_argument_and_no_line_of_maxtext_yml(void **state)
{
    (void)state;
    static const char rules[] = "{\"logical_axis_rules\":[[\"activation_batch\",[\"data\"]]]}";
    expect("maxtext.yml", rules, "0.2.5", " 'logical_axis_rules=[[activation_batch,[data]]]'\n", true);
    expect("maxtext.yml", rules, "0.2.5", "\nlogical_axis_rules:", false);
    expect("maxtext.sh", rules, "0.2.5", "'logical_axis_rules=[[activation_batch,[data]]]'", true);
}

/* A file asks for no variable that it does not use, promises none, and gives MaxText no empty argument. */
static void files_ask_for_what_the_answer_leaves_open_and_for_no_more(void **state)
{
    (void)state;
    static const char all[] = "{\"run_name\":\"r\",\"base_output_directory\":\"gs://b\",\"steps\":7,"
                              "\"dataset_type\":\"synthetic\"}";
    static const char *const submitting[] = {"xpk.sh", "gcluster.sh"};
    expect("maxtext.sh", "{}", "0.2.5", ": \"${RUN_NAME:?", true);
    expect("maxtext.sh", all, "0.2.5", "RUN_NAME", false);
    expect("maxtext.sh", all, "0.2.5", "BASE_OUTPUT_DIRECTORY", false);
    expect("maxtext.sh", all, "0.2.5", "STEPS", false);
    expect("maxtext.yml", "{}", "0.2.5", " run_name=\"${RUN_NAME:-maxtext}\" base_output_directory=", true);
    expect("maxtext.yml", all, "0.2.5", " run_name=", false);
    expect("maxtext.yml", all, "0.2.5", " base_output_directory=", false);
    expect("jobset.yaml", "{}", "0.2.5", " BASE_OUTPUT_DIRECTORY=gs://bucket/path # and, where set: STEPS",
           true);
    expect("jobset.yaml", all, "0.2.5", "image-with-MaxText # and, where set: EXTRA_ARGS\n", true);
    for (size_t i = 0; i < sizeof submitting / sizeof *submitting; i++) {
        expect(submitting[i], "{}", "0.2.5", "training: RUN_NAME, STEPS, DATASET_TYPE, EXTRA_ARGS.\n", true);
        expect(submitting[i], all, "0.2.5", "training: EXTRA_ARGS.\n", true);
        expect(submitting[i], all, "0.2.5", "BASE_OUTPUT_DIRECTORY", false);
        expect(submitting[i], all, "0.2.5", "printf", false);
    }
}

/* MaxText 0.1.0 and 0.2.0 take their first argument for a file, and up to 0.2.1 refuse compile_xla_flags. */
static void commands_are_those_of_the_release(void **state)
{
    (void)state;
    static const struct {
        const char *name, *maxtext, *holds;
        bool expected;
    } rows[] = {
        {"maxtext.sh", "0.1.0", "python3 -m MaxText.train \"$(python3 -c '", true},
        {"maxtext.sh", "0.1.0", "find_spec(\"MaxText\")", true},
        {"xpk.sh", "0.2.0", ".train \"$(python3 -c '", true},
        {"jobset.yaml", "0.2.0", "find_spec(\"maxtext\")", true},
        {"maxtext.yml", "0.1.0", "\n# python3 -m MaxText.train maxtext.yml run_name", true},
        {"maxtext.sh", "0.2.1", "find_spec", false},
        {"maxtext.sh", "0.2.5", "find_spec", false},
        {"verify.sh", "0.2.1", "compile_xla_flags", false},
        {"verify.sh", "0.2.1", "LIBTPU_INIT_ARGS=\"$FLAGS\" python3 -m", true},
        {"verify.sh", "0.2.2", " \"compile_xla_flags=$FLAGS\"", true},
        {"verify.sh", "0.2.2", "LIBTPU_INIT_ARGS", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect(rows[i].name, "{}", rows[i].maxtext, rows[i].holds, rows[i].expected);
}

/* The script of a plan that MaxText refuses, or that trains another model, is kept without its answer. */
static void files_say_what_the_answer_warns_of(void **state)
{
    (void)state;
    static const char *const names[] = {"maxtext.sh",  "maxtext.yml", "libtpu.env", "xpk.sh",
                                        "gcluster.sh", "jobset.yaml", "verify.sh"};
    warnings = "[{\"code\":\"unsupported\",\"detail\":\"factor 8,\\nnot 32\"},"
               "{\"code\":\"unsupported\",\"detail\":\"factor 8,\\nnot 32\",\"hint\":\"another model\"},"
               "{\"code\":\"unsupported\",\"detail\":\"factor 8,\\nnot 32\"},"
               "{\"code\":\"what-if-hardware\",\"detail\":\"of another clock\"}]";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct adv_text text;
        file_of(names[i], "{}", "0.2.5", &text);
        const char *first = strstr(text.data, "\n# Warning: factor 8, not 32: another model\n");
        assert_non_null(first);
        assert_null(strstr(first + 2, "# Warning"));
        adv_text_free(&text);
    }
    expect("report.md", "{}", "0.2.5", "\n## Warnings\n- factor 8, not 32: another model\n", true);
    warnings = "[]";
    expect("report.md", "{}", "0.2.5", "Warnings", false);
}

/* Who starts a script believes that it trains: unless it is told so it takes made-up data for a few steps. */
static void a_script_says_that_it_is_a_short_run(void **state)
{
    (void)state;
    static const char *const names[] = {"maxtext.sh", "xpk.sh", "gcluster.sh", "jobset.yaml"};
    static const char all[] =
        "\n# A short run, unless it is told otherwise: dataset_type=synthetic, steps=30, "
        "enable_checkpointing=false, save_checkpoint_on_completion=false\n",
                      settled[] = "{\"steps\":500,\"dataset_type\":\"hf\",\"enable_checkpointing\":true}";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect(names[i], "{}", "0.2.5", all, true);
        expect(names[i], "{\"steps\":500}", "0.2.5", "otherwise: dataset_type=synthetic, enable_ch", true);
        expect(names[i], settled, "0.2.5", "A short run", false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_models_file_says_otherwise_is_an_argument_beside_maxtext_yml),
        cmocka_unit_test(axis_rules_are_an_argument_and_no_line_of_maxtext_yml),
        cmocka_unit_test(files_ask_for_what_the_answer_leaves_open_and_for_no_more),
        cmocka_unit_test(commands_are_those_of_the_release),
        cmocka_unit_test(files_say_what_the_answer_warns_of),
        cmocka_unit_test(a_script_says_that_it_is_a_short_run),
    };
    return run_group_with_catalog(tests);
}
