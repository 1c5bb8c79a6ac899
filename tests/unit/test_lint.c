#include "tests/unit/check.h"

#include <stdlib.h>

#include "engine/json/lint_rules.h"
#include "tests/unit/lint_fixture.h"

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *bytes = file && text ? fread(text, 1, 1 << 20, file) : 0;
    if (file) (void)fclose(file);
    return text;
}

static json_t *load(const char *path)
{
    size_t bytes = 0;
    char *text = read_file(path, &bytes);
    json_t *rows = json_loadb(text, bytes, 0, NULL);
    free(text);
    assert_non_null(rows);
    return rows;
}

static json_t *lint_row(const json_t *row, bool strict)
{
    static const char *const members[] = {"config", "xla_flags", "model", "cluster"};
    json_t *request_json = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(row, members[i]);
        if (value) (void)json_object_set(request_json, members[i], value);
    }
    (void)json_object_set_new(request_json, "strict", json_boolean(strict));
    char *text = json_dumps(request_json, 0);
    json_decref(request_json);
    json_t *answer = lint_text(text);
    free(text);
    return answer;
}

static void published_recipes_that_validate_have_no_errors(void **state)
{
    (void)state;
    json_t *rows = load("tests/data/lint_recipes.json");
    assert_int_equal(json_array_size(rows), 23);
    int validating_count = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!json_is_true(json_object_get(row, "validates"))) continue;
        validating_count++;
        json_t *answer = lint_row(row, true);
        if (!answer) print_findings(&err);
        assert_true(json_is_true(json_object_get(answer, "valid")));
        json_decref(answer);
    }
    assert_int_equal(validating_count, 11);
    json_decref(rows);
}

static void refused_recipes_have_exactly_the_keys_maxtext_refuses(void **state)
{
    (void)state;
    json_t *rows = load("tests/data/lint_recipes.json");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        json_t *refused = json_object_get(row, "refused_keys");
        if (json_is_true(json_object_get(row, "validates"))) continue;
        assert_null(lint_row(row, true));
        int keys_count = 0; /* beside what libtpu says of the flags */
        for (int f = 0; f < err.count; f++)
            keys_count += strncmp(err.findings[f].pointer, "/config/", strlen("/config/")) == 0;
        assert_int_equal(keys_count, (int)json_array_size(refused));
        for (size_t k = 0; k < json_array_size(refused); k++) {
            char pointer[ADV_LIMIT_POINTER];
            (void)snprintf(pointer, sizeof pointer, "/config/%s",
                           json_string_value(json_array_get(refused, k)));
            if (!find(&err, pointer))
                fail_msg("%s: %s", json_string_value(json_object_get(row, "name")), pointer);
        }
    }
    json_decref(rows);
}

static void tuned_configurations_pass_but_those_that_maxtext_refuses_today(void **state)
{
    (void)state;
    json_t *rows = load("tests/data/lint_tuned.json");
    assert_int_equal(json_array_size(rows), 66);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        json_t *answer = lint_row(row, false);
        bool valid = json_is_true(json_object_get(answer, "valid"));
        if (strcmp(name, "trillium/llama3_1-70b-129024") == 0) {
            assert_false(valid);
            assert_finding(answer, "/config/ici_sequence_parallelism", "warning", "ignored-axis");
            assert_finding(answer, "/config/per_device_batch_size", "error", "batch-by-shards");
        } else if (strcmp(name, "trillium/custom_moe_700b") == 0) {
            assert_finding(answer, "/config/num_experts", "error", "expert-width");
        } else if (strcmp(name, "v5p/deepseek3_671b_v5p_1024") == 0) {
            assert_finding(answer, "/config/tile_mlp_dim", "error", "renamed-key");
        } else if (!valid) {
            fail_msg("%s has errors", name);
        }
        json_decref(answer);
    }
    json_decref(rows);
}

/* Each was put to MaxText's own check, which refuses it too (tests/eco/recipes.py). */
static void what_validators_refuse_together_is_an_error_with_its_rule(void **state)
{
    (void)state;
    json_t *rows = load("tests/data/lint_rules.json");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *rule = json_string_value(json_object_get(row, "rule"));
        json_t *answer = lint_row(row, false);
        bool told = false;
        size_t index = 0;
        json_t *finding = NULL;
        json_array_foreach(json_object_get(answer, "findings"), index, finding) told =
            told || (!strcmp(json_string_value(json_object_get(finding, "code")), rule) &&
                     !strcmp(json_string_value(json_object_get(finding, "severity")), "error"));
        if (!told) fail_msg("row %zu: nothing is said of %s", i, rule);
        json_decref(answer);
        assert_null(lint_row(row, true));
    }
    json_decref(rows);
}

/* base.yml of MaxText 0.2.5: dataset_type is synthetic. */
static void a_run_that_names_no_data_set_is_not_told_of_one(void **state)
{
    (void)state;
    json_t *config = json_pack("{s:b, s:b}", "use_dpo", 1, "packing", 0);
    adv_err broken;
    adv_err_init(&broken);
    adv_lint_rules(catalog, "llama3.1-8b", config, NULL, 0, &broken);
    if (broken.count > 0) fail_msg("%s", broken.findings[0].detail);
    (void)json_object_set_new(config, "dataset_type", json_string("tfds"));
    adv_lint_rules(catalog, "llama3.1-8b", config, NULL, 0, &broken);
    assert_string_equal(broken.findings[0].rule, "tfds-dpo");
    json_decref(config);
}

static void a_block_of_a_kernel_that_does_not_run_is_told_once(void **state)
{
    (void)state;
    json_t *answer =
        lint_text("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                  "\"config\":{\"attention\":\"dot_product\",\"sa_block_q_dq\":16384,"
                  "\"max_target_length\":8192,\"per_device_batch_size\":1}}");
    int about_block = 0;
    size_t index = 0;
    json_t *finding = NULL;
    json_array_foreach(json_object_get(answer, "findings"), index, finding) about_block +=
        strcmp(json_string_value(json_object_get(finding, "pointer")), "/config/sa_block_q_dq") == 0;
    assert_int_equal(about_block, 1);
    assert_finding(answer, "/config/sa_block_q_dq", "info", "block-unused");
    json_decref(answer);
}

static void offload_to_sparsecores_that_a_chip_lacks_is_a_warning(void **state)
{
    (void)state;
    static const struct {
        const char *cluster;
        bool warned;
    } cases[] = {{",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\"}", true},
                 {",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"}", false},
                 {"", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\"%s,\"config\":{\"per_device_batch_size\":1,"
                       "\"max_target_length\":2048},\"xla_flags\":"
                       "\"--xla_tpu_enable_sparse_core_collective_offload_all_reduce=true\"}",
                       cases[i].cluster);
        json_t *answer = lint_text(text);
        assert_non_null(answer);
        assert_true(json_is_true(json_object_get(answer, "valid")));
        if (cases[i].warned)
            assert_finding(answer, "/xla_flags", "warning", "no-sparsecores");
        else
            assert_null(finding_at(answer, "/xla_flags"));
        json_decref(answer);
    }
}

static bool mentions(const json_t *list, const char *code)
{
    size_t index = 0;
    json_t *item = NULL;
    json_array_foreach((json_t *)(uintptr_t)list, index, item)
    {
        const char *found = json_string_value(json_object_get(item, "code"));
        if (found && strcmp(found, code) == 0) return true;
    }
    return false;
}

static void lint_and_estimate_agree_on_kernels_over_their_vmem(void **state)
{
    (void)state;
    static const struct {
        const char *config, *flags;
        bool over;
    } cases[] = {{"", "", false},
                 {",\"sa_block_q\":8192,\"sa_block_kv\":8192,\"sa_block_kv_compute\":8192", "", true},
                 {"", "--xla_tpu_scoped_vmem_limit_kib=1", true},
                 {",\"sa_block_q\":2048,\"sa_block_kv\":2048", "--xla_tpu_scoped_vmem_limit_kib=4096", true},
                 {",\"attention\":\"dot_product\"", "--xla_tpu_scoped_vmem_limit_kib=1", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[1024];
        struct adv_answer estimate;
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},"
                       "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":8192%s},"
                       "\"xla_flags\":\"%s\"}",
                       cases[i].config, cases[i].flags);
        json_t *linted = lint_text(text);
        assert_non_null(linted);
        if (json_is_true(json_object_get(linted, "valid")) == cases[i].over)
            fail_msg("case %zu: valid is wrong", i);
        if (cases[i].over) assert_finding(linted, "/config", "error", "kernel-over-vmem");
        assert_int_equal(
            adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, text, strlen(text), &estimate, &err), ADV_OK);
        json_t *root = json_loads(estimate.json, 0, NULL);
        assert_int_equal(mentions(json_object_get(root, "warnings"), "kernel-over-vmem"), cases[i].over);
        assert_int_equal(mentions(json_object_get(root, "advice"), "kernel_over_vmem"), cases[i].over);
        json_decref(root);
        json_decref(linted);
        adv_answer_free(&estimate);
    }
}

/* A MaxText YAML cannot hold the flag that raises the limit; a request could, and a chip has only so much. */
static void vmem_that_a_flag_gives_is_no_error_of_a_yaml_without_flags(void **state)
{
    (void)state;
    static const char keys[] = "compile_topology: tpu7x-128\ncompile_topology_num_slices: 1\n"
                               "model_name: llama3.1-8b\nper_device_batch_size: 1\n"
                               "max_target_length: 8192\nici_fsdp_parallelism: -1\n"
                               "attention: flash\nuse_tokamax_splash: true\nsa_block_q: %d\n"
                               "sa_block_kv: 4096\nsa_block_kv_compute: 2048\n";
    for (int i = 0; i < 2; i++) {
        char text[512];
        const bool raisable = i == 0;
        (void)snprintf(text, sizeof text, keys, raisable ? 2048 : 8192);
        json_t *answer = lint_text(text);
        assert_non_null(answer);
        assert_finding(answer, "/config", raisable ? "warning" : "error", "kernel-over-vmem");
        assert_int_equal(json_is_true(json_object_get(answer, "valid")), raisable);
        char *all = json_dumps(answer, 0);
        assert_non_null(strstr(all, "LIBTPU_INIT_ARGS"));
        free(all);
        json_decref(answer);
    }
}

static void a_file_of_configurations_says_whether_one_is_not_valid(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool refutes;
    } files[] = {{"{\"config\":{\"sa_block_q\":512}}", false},
                 {"{\"config\":{\"sa_block_q\":\"big\"}}", true},
                 {"[{\"config\":{\"sa_block_q\":512}},{\"config\":{\"sa_block_q\":512}}]", false},
                 {"[{\"config\":{\"sa_block_q\":\"big\"}},{\"config\":{\"sa_block_q\":512}}]", true}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *answers = NULL;
        size_t bytes = 0;
        bool refutes = !files[i].refutes;
        forget();
        assert_ok(adv_answer_documents(catalog, ADV_REQUEST_LINT, files[i].text, strlen(files[i].text), NULL,
                                       NULL, &answers, &bytes, &refutes, &err));
        assert_int_equal(refutes, files[i].refutes);
        assert_int_equal(strstr(answers, "\"valid\":false") != NULL, files[i].refutes);
        free(answers);
    }
}

static void one_mistake_is_one_error(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pointer;
        int errors;
    } cases[] = {
        {"{\"model\":\"llama3.1-8b\",\"config\":{\"per_device_batch_size\":0.3}}",
         "/config/per_device_batch_size", 1},
        {"{\"model\":{\"base_emb_dim\":\"x\",\"base_num_query_heads\":32,\"base_num_kv_heads\":8,"
         "\"base_mlp_dim\":14336,\"base_num_decoder_layers\":32,\"vocab_size\":32000},\"config\":{}}",
         "/model/base_emb_dim", 1},
        {"{\"model\":{\"base_emb_dim\":4096,\"base_num_query_heads\":32},\"config\":{}}", "/model/vocab_size",
         4},
        {"{\"model\":7,\"config\":{}}", "/model", 1},
        {"{\"cluster\":7,\"config\":{}}", "/cluster", 1},
        /* tensor takes what is left: 0.25 sequences a device are a whole one on 4 devices */
        {"{\"config\":{\"per_device_batch_size\":0.25,\"ici_tensor_parallelism\":-1,"
         "\"ici_fsdp_parallelism\":4}}",
         NULL, 0},
        {"{\"config\":{\"ici_fsdp_parallelism\":-1,\"ici_tensor_parallelism\":-1}}",
         "/config/ici_tensor_parallelism", 1},
        {"{\"config\":{\"ici_tensor_parallelism\":-1}}", "/config/ici_tensor_parallelism", 1},
        {"{\"config\":{\"dcn_data_parallelism\":2,\"dcn_fsdp_parallelism\":-1,\"dcn_tensor_parallelism\":-1}}",
         "/config/dcn_tensor_parallelism", 1},
        {"{\"config\":{\"dcn_data_parallelism\":-1,\"dcn_fsdp_parallelism\":-1}}",
         "/config/dcn_fsdp_parallelism", 0},
        /* 16 is no product of whole axes of 8x8x8 */
        {"{\"cluster\":{\"chip\":\"v5p\",\"topology\":\"8x8x8\"},\"config\":{\"per_device_batch_size\":2,"
         "\"max_target_length\":2048,\"ici_fsdp_parallelism\":-1,\"ici_tensor_parallelism\":16}}",
         "/config/allow_split_physical_axes", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *answer = lint_text(cases[i].text);
        assert_non_null(answer);
        if (errors_of(answer) != cases[i].errors) fail_msg("%s: %d errors", cases[i].text, errors_of(answer));
        if (cases[i].pointer) assert_non_null(finding_at(answer, cases[i].pointer));
        char *text = json_dumps(answer, 0);
        assert_null(strstr(text, "1 devices"));
        if (cases[i].pointer)
            assert_true(strcmp(cases[i].pointer, "/model") != 0 || !strstr(text, "no model"));
        free(text);
        json_decref(answer);
    }
}

static void a_batch_refused_for_an_ignored_axis_names_it(void **state)
{
    (void)state;
    assert_int_not_equal(
        decode(
            "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"16x16\"},\"config\":{"
            "\"per_device_batch_size\":0.125,\"max_target_length\":8192,\"ici_sequence_parallelism\":8}}"),
        ADV_OK);
    assert_non_null(
        strstr(must_find(&err, "batch-by-shards")->hint, "ici_sequence_parallelism 8 is ignored"));
    assert_non_null(strstr(must_find(&err, "batch-by-shards")->hint, "ici_context_parallelism"));
}

static void a_key_that_maxtext_lacks_is_an_error_unless_lenient(void **state)
{
    (void)state;
    static const char *const texts[] = {"\"config\":{\"stepz\":4}", "\"recipe\":\"stepz: 4\"",
                                        "\"recipe\":\"python3 -m maxtext.train base.yml stepz=4\""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[256];
        (void)snprintf(text, sizeof text, "{%s}", texts[i]);
        json_t *answer = lint_text(text);
        assert_finding(answer, "/config/stepz", "error", "unknown-key");
        assert_true(json_is_false(json_object_get(answer, "valid")));
        json_decref(answer);
        (void)snprintf(text, sizeof text, "{%s,\"lenient\":true}", texts[i]);
        answer = lint_text(text);
        assert_finding(answer, "/config/stepz", "warning", "unknown-key");
        assert_true(json_is_true(json_object_get(answer, "valid")));
        json_decref(answer);
        (void)snprintf(text, sizeof text, "{%s,\"strict\":true}", texts[i]);
        assert_null(lint_text(text));
    }
    assert_null(lint_text("{\"config\":{},\"strict\":true,\"lenient\":true}"));
}

static void a_script_is_read_like_the_request_it_stands_for(void **state)
{
    (void)state;
    json_t *answer = lint_text(
        "#!/bin/bash\n# not=a_key\nexport LIBTPU_INIT_ARGS=\"--xla_tpu_scoped_vmem_limit_kib=99999999 \\\n"
        " --xla_tpu_no_such=1\"\nARGS=\"per_device_batch_size=2 sa_block_q=big\"\n"
        "python3 -m MaxText.train base.yml model_name=llama3.1-8b max_target_length=8192 ${ARGS} "
        "use_max_logits_estimate=30 run_name='a b'\n");
    assert_non_null(answer);
    assert_finding(answer, "/config/sa_block_q", "error", "invalid-request");
    assert_finding(answer, "/config/use_max_logits_estimate", "error", "unknown-key");
    assert_finding(answer, "/xla_flags/1", "warning", "unknown-flag");
    assert_null(finding_at(answer, "/config/not"));
    assert_null(finding_at(answer, "/config/run_name"));
    json_decref(answer);
}

static void yaml_is_read_with_its_types(void **state)
{
    (void)state;
    json_t *answer =
        lint_text("# run\nmodel_name: \"llama3.1-8b\"\nper_device_batch_size: 0.5\nscan_layers: yes please\n"
                  "mlp_activations: [silu, linear]\nici_sequence_parallelism: 4\nquantization:\n");
    assert_non_null(answer);
    assert_finding(answer, "/config/scan_layers", "error", "invalid-request");
    assert_finding(answer, "/config/ici_sequence_parallelism", "warning", "ignored-axis");
    assert_null(finding_at(answer, "/config/mlp_activations"));
    assert_null(finding_at(answer, "/config/quantization"));
    json_decref(answer);
}

static void yaml_aliases_are_followed_as_long_as_they_stay_flat(void **state)
{
    (void)state;
    json_t *answer =
        lint_text("ici_tensor_parallelism: &two 2\nici_fsdp_parallelism: *two\nprofiler_steps: *two\n"
                  "mlp_activations: &gated [silu, linear]\nmodel_name: llama3.1-8b\n");
    assert_non_null(answer);
    assert_true(json_is_true(json_object_get(answer, "valid")));
    json_decref(answer);
    answer = lint_text("ici_tensor_parallelism: &x 3\nici_fsdp_parallelism: *x\nmodel_name: llama3.1-8b\n");
    assert_finding(answer, "/config/ici_tensor_parallelism", "error", "heads-by-tensor");
    json_decref(answer);
    assert_null(
        lint_text("a: &a [1, 2]\nb: &b [*a, *a]\nc: [*b, *b]\n")); /* the way to a document without end */
    assert_null(lint_text("a: &a\n  b: *a\n"));
    assert_null(lint_text("a: *nothing\n"));
}

static void yaml_is_known_by_its_first_key_whatever_its_letters(void **state)
{
    (void)state;
    static const char *const texts[] = {"st\xc3\xa9ps: 5\n", "'stepz': 5\n", "<<: {stepz: 5}\nsteps: 5\n",
                                        "%YAML 1.1\n---\nstepz: 5\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *answer = lint_text(texts[i]);
        assert_non_null(answer);
        const json_t *finding = finding_at(answer, i ? "/config/stepz" : "/config/st\xc3\xa9ps");
        assert_string_equal(json_string_value(json_object_get(finding, "code")), "unknown-key");
        json_decref(answer);
    }
}

static void yaml_words_for_true_and_false_are_read(void **state)
{
    (void)state;
    json_t *answer = lint_text("scan_layers: yes\nuse_iota_embed: Off\nmodel_name: gemma4-e2b\n");
    assert_finding(answer, "/config/scan_layers", "error", "scan-cycle");
    assert_null(finding_at(answer, "/config/use_iota_embed"));
    json_decref(answer);
}

/* A run's whole configuration, as MaxText prints it, is something to lint too. */
static void every_key_at_its_default_is_valid(void **state)
{
    (void)state;
    json_t *config = json_object();
    for (int i = 0; i < adv_catalog_tables(catalog)->keys_count; i++) {
        const struct adv_catalog_key *key = &adv_catalog_tables(catalog)->keys[i];
        json_t *value = key->default_json ? json_loads(key->default_json, JSON_DECODE_ANY, NULL) : NULL;
        if (value && !key->derived) (void)json_object_set_new(config, key->name, value);
    }
    assert_true(json_object_size(config) > 600);
    json_t *root = json_pack("{s:o}", "config", config);
    char *text = json_dumps(root, 0);
    json_t *answer = lint_text(text);
    for (int i = 0; i < err.count; i++)
        print_error("%s: %s\n", err.findings[i].pointer, err.findings[i].detail);
    assert_non_null(answer);
    if (!json_is_true(json_object_get(answer, "valid"))) {
        char *findings = json_dumps(json_object_get(answer, "findings"), 0);
        fail_msg("%s", findings);
    }
    json_decref(answer);
    json_decref(root);
    free(text);
}

static void a_byte_order_mark_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xef\xbb\xbf{\"config\":{\"steps\":5}}", "\xef\xbb\xbfsteps: 5\n",
                                        "\xef\xbb\xbfpython3 train.py steps=5"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *answer = lint_text(texts[i]);
        assert_non_null(answer);
        assert_true(json_is_true(json_object_get(answer, "valid")));
        json_decref(answer);
    }
}

static void keys_given_twice_in_yaml_are_reported_all_at_once(void **state)
{
    (void)state;
    assert_null(lint_text("steps: 1\nscan_layers: true\nsteps: 2\nscan_layers: false\nsteps: 3\n"));
    assert_int_equal(err.count, 3);
    assert_non_null(strstr(err.findings[1].detail, "line 4: the key scan_layers"));
}

static void texts_that_are_nothing_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",           "  \n",         "{\"config\":", "a: [", "b: *x\n", "# nothing\n", "just words\n",
        "\xff\xfe\n", "a: 1\na: 2\n", "[1,2]"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_null(lint_text(texts[i]));
        assert_true(err.count > 0);
    }
}

static void model_and_slice_come_from_the_configuration(void **state)
{
    (void)state;
    json_t *answer = lint_text(
        "{\"model_name\":\"llama3.1-8b\",\"compile_topology\":\"v6e-8\",\"compile_topology_num_slices\":1,"
        "\"ici_fsdp_parallelism\":16,\"per_device_batch_size\":1}");
    assert_finding(answer, "/config/ici_fsdp_parallelism", "error", "ici-product");
    json_decref(answer);
    answer = lint_text("{\"model_name\":\"llama3.1-8b\",\"compile_topology\":\"v6e-8\"}");
    assert_finding(answer, "/config/compile_topology", "error", "invalid-request");
    json_decref(answer);
}

static void swapped_tile_names_are_recognised(void **state)
{
    (void)state;
    json_t *answer = lint_text(
        "{\"model_name\":\"deepseek3-671b\",\"wo_tile_fwd_embed_dim\":2048,\"wo_tile_fwd_mlp_dim\":7168}");
    assert_finding(answer, "/config/wo_tile_fwd_mlp_dim", "warning", "tile-names-permuted");
    json_decref(answer);
}

static void offloaded_moments_beside_clipping_are_only_remarked(void **state)
{
    (void)state;
    json_t *answer = lint_text("{\"model_name\":\"llama3.1-8b\",\"optimizer_memory_host_offload\":true}");
    bool remarked = false;
    for (size_t i = 0; i < json_array_size(json_object_get(answer, "findings")); i++) {
        const json_t *finding = json_array_get(json_object_get(answer, "findings"), i);
        if (strcmp(json_string_value(json_object_get(finding, "code")), "offload-with-clipping") != 0)
            continue;
        assert_string_equal(json_string_value(json_object_get(finding, "severity")), "info");
        remarked = true;
    }
    assert_true(remarked);
    json_decref(answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_recipes_that_validate_have_no_errors),
        cmocka_unit_test(refused_recipes_have_exactly_the_keys_maxtext_refuses),
        cmocka_unit_test(tuned_configurations_pass_but_those_that_maxtext_refuses_today),
        cmocka_unit_test(what_validators_refuse_together_is_an_error_with_its_rule),
        cmocka_unit_test(a_run_that_names_no_data_set_is_not_told_of_one),
        cmocka_unit_test(a_block_of_a_kernel_that_does_not_run_is_told_once),
        cmocka_unit_test(offload_to_sparsecores_that_a_chip_lacks_is_a_warning),
        cmocka_unit_test(lint_and_estimate_agree_on_kernels_over_their_vmem),
        cmocka_unit_test(vmem_that_a_flag_gives_is_no_error_of_a_yaml_without_flags),
        cmocka_unit_test(a_file_of_configurations_says_whether_one_is_not_valid),
        cmocka_unit_test(one_mistake_is_one_error),
        cmocka_unit_test(a_batch_refused_for_an_ignored_axis_names_it),
        cmocka_unit_test(a_script_is_read_like_the_request_it_stands_for),
        cmocka_unit_test(a_key_that_maxtext_lacks_is_an_error_unless_lenient),
        cmocka_unit_test(yaml_is_read_with_its_types),
        cmocka_unit_test(yaml_aliases_are_followed_as_long_as_they_stay_flat),
        cmocka_unit_test(yaml_is_known_by_its_first_key_whatever_its_letters),
        cmocka_unit_test(yaml_words_for_true_and_false_are_read),
        cmocka_unit_test(every_key_at_its_default_is_valid),
        cmocka_unit_test(a_byte_order_mark_is_passed_over),
        cmocka_unit_test(keys_given_twice_in_yaml_are_reported_all_at_once),
        cmocka_unit_test(texts_that_are_nothing_are_refused),
        cmocka_unit_test(model_and_slice_come_from_the_configuration),
        cmocka_unit_test(swapped_tile_names_are_recognised),
        cmocka_unit_test(offloaded_moments_beside_clipping_are_only_remarked),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
