/* The same plan spelled two ways gets the same answer: models by name, keys or Hugging Face configuration;
 * slices by shape, count or XPK name; flags as list or string; values typed or as on a command line; a
 * configuration as JSON, YAML or a command. */
#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/text.h"
#include "tests/unit/catalog_fixture.h"

static adv_err err;

/* The answer to `request` (reference taken over) as JSON; fails the test when it is refused. */
static json_t *answer_to(json_t *request, enum adv_request_kind kind, const char *what)
{
    char *text = json_dumps(request, JSON_ENCODE_ANY);
    struct adv_answer answer;
    adv_err_init(&err);
    if (adv_answer_request(catalog, kind, text, strlen(text), &answer, &err) != ADV_OK)
        fail_msg("%s: %s %s: %s", what, text, err.findings[0].pointer, err.findings[0].detail);
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    adv_answer_free(&answer);
    json_decref(request);
    free(text);
    return root;
}

/* Without what repeats the request. */
static char *prediction_of(json_t *answer)
{
    static const char *const repeated[] = {"config", "xla_flags", "warnings", "advice"};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++)
        (void)json_object_del(answer, repeated[i]);
    (void)json_object_del(json_object_get(answer, "model"), "name");
    (void)json_object_del(json_object_get(answer, "model"), "config");
    char *text = json_dumps(answer, JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    json_decref(answer);
    return text;
}

/* Fails unless both requests (references taken over) get the same prediction. */
static void assert_same(json_t *one, json_t *other, const char *what)
{
    char *first = prediction_of(answer_to(one, ADV_REQUEST_ESTIMATE, what));
    char *second = prediction_of(answer_to(other, ADV_REQUEST_ESTIMATE, what));
    if (strcmp(first, second) != 0) {
        size_t at = 0;
        while (first[at] == second[at]) at++;
        size_t from = at > 60 ? at - 60 : 0;
        fail_msg("%s: …%.120s… against …%.120s…", what, first + from, second + from);
    }
    free(first);
    free(second);
}

static json_t *request_for(json_t *model, json_t *cluster, json_t *config)
{
    /* the batch-split schedule runs over experts and halves the batch */
    const bool halves = json_is_true(json_object_get(config, "use_batch_split_schedule"));
    if (halves) (void)json_object_set_new(config, "ici_expert_parallelism", json_integer(4));
    (void)json_object_set_new(config, "per_device_batch_size", json_integer(halves ? 2 : 1));
    (void)json_object_set_new(config, "max_target_length", json_integer(1024));
    (void)json_object_set_new(config, "use_tokamax_splash", json_true());
    (void)json_object_set_new(config, "scan_layers", json_false());
    return json_pack("{s:o, s:o, s:o}", "model", model, "cluster", cluster, "config", config);
}

static json_t *one_chip(void)
{
    return json_pack("{s:s, s:s}", "chip", "v6e", "topology", "1x1");
}

static json_t *smallest(const json_t *pinned)
{
    const bool halves = json_is_true(json_object_get(pinned, "use_batch_split_schedule"));
    return halves ? json_pack("{s:s, s:s}", "chip", "v6e", "topology", "2x2") : one_chip();
}

static json_t *catalog_entry(const char *collection, const char *name)
{
    struct adv_answer answer;
    adv_err_init(&err);
    assert_int_equal(adv_catalog_json(catalog, collection, name, &answer, &err), ADV_OK);
    json_t *entry = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    adv_answer_free(&answer);
    return entry;
}

static void a_model_is_the_same_by_name_and_by_keys(void **state)
{
    (void)state;
    int compared = 0;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        json_t *entry = catalog_entry("models", name);
        json_t *keys = json_deep_copy(json_object_get(entry, "keys"));
        json_t *pinned = json_object_get(entry, "pinned_keys");
        /* what MaxText's own file of the model sets beside its shape has to be said with the keys */
        json_t *config = pinned ? json_deep_copy(pinned) : json_object();
        json_t *same_config = json_deep_copy(config);
        assert_same(request_for(json_string(name), smallest(pinned), config),
                    request_for(json_deep_copy(keys), smallest(pinned), same_config), name);
        json_decref(keys);
        json_decref(entry);
        compared++;
    }
    assert_int_equal(compared, 80);
}

static void a_model_is_the_same_by_name_and_by_hugging_face_configuration(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3.1-8b", "mistral-7b",  "mixtral-8x7b",
                                        "qwen2.5-7b",  "qwen3-8b",    "gemma2-9b",
                                        "gemma3-27b",  "gpt-oss-20b", "qwen3-30b-a3b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", names[i]);
        json_t *hf = json_pack("{s:o}", "hf_config", json_load_file(path, 0, NULL));
        assert_non_null(hf);
        json_t *entry = catalog_entry("models", names[i]);
        json_t *pinned = json_object_get(entry, "pinned_keys");
        assert_same(request_for(json_string(names[i]), one_chip(), json_object()),
                    request_for(hf, one_chip(), pinned ? json_deep_copy(pinned) : json_object()), names[i]);
        json_decref(entry);
    }
}

static void a_slice_is_the_same_by_shape_count_and_name(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->topologies_count; i++) {
        const struct adv_catalog_topology *row = &adv_catalog_tables(catalog)->topologies[i];
        if (row->devices > 4096) continue; /* the model below does not split further */
        json_t *config = json_pack("{s:i, s:i}", "ici_data_parallelism", -1, "ici_fsdp_parallelism", 1);
        json_t *by_count = json_pack("{s:s}", "accelerator", row->name);
        json_t *by_shape =
            json_pack("{s:s, s:s, s:i}", "chip", row->chip, "topology", row->topology, "slices", 1);
        char name[256];
        (void)snprintf(name, sizeof name, "%s-%s", row->chip, row->topology);
        json_t *by_name = json_pack("{s:s}", "accelerator", name);
        json_t *first = request_for(json_string("gemma-2b"), by_shape, config);
        assert_same(json_deep_copy(first),
                    request_for(json_string("gemma-2b"), by_count, json_deep_copy(config)), name);
        assert_same(first, request_for(json_string("gemma-2b"), by_name, json_deep_copy(config)), name);
    }
}

/* Every value as the string a command line would have. */
static json_t *as_words(const json_t *config)
{
    json_t *words = json_object();
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)config, key, value)
    {
        char *text =
            json_is_string(value) ? strdup(json_string_value(value)) : json_dumps(value, JSON_ENCODE_ANY);
        if (json_is_true(value)) *text = 'T'; /* Python's spelling */
        if (json_is_false(value)) *text = 'F';
        (void)json_object_set_new(words, key, json_string(text));
        free(text);
    }
    return words;
}

/* The published recipes and tuned configurations, as lint requests: what is asked of each is in `check`. */
static void for_each_recipe(void (*check)(const json_t *row))
{
    static const char *const paths[] = {"tests/data/lint_recipes.json", "tests/data/lint_tuned.json"};
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        json_t *root = json_load_file(paths[p], 0, NULL);
        assert_non_null(root);
        json_t *rows = json_is_array(root) ? root : json_object_get(root, "rows");
        size_t index = 0;
        json_t *row = NULL;
        assert_true(json_array_size(rows) > 20);
        json_array_foreach(rows, index, row) check(row);
        json_decref(root);
    }
}

/* Findings of a lint answer as text; members that only one way of writing can have are left out. */
static char *findings_of(json_t *answer)
{
    char *text = json_dumps(json_object_get(answer, "findings"), 0);
    json_decref(answer);
    return text;
}

static char *lint(const char *text)
{
    struct adv_answer answer;
    adv_err_init(&err);
    if (adv_answer_request(catalog, ADV_REQUEST_LINT, text, strlen(text), &answer, &err) != ADV_OK)
        fail_msg("%.200s: %s", text, err.findings[0].detail);
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    adv_answer_free(&answer);
    return findings_of(root);
}

static void check_words(const json_t *row)
{
    json_t *typed = json_pack("{s:O}", "config", json_object_get(row, "config"));
    json_t *words = json_pack("{s:o}", "config", as_words(json_object_get(row, "config")));
    char *typed_text = json_dumps(typed, 0), *words_text = json_dumps(words, 0);
    char *one = lint(typed_text), *other = lint(words_text);
    assert_string_equal(one, other);
    free(one);
    free(other);
    free(typed_text);
    free(words_text);
    json_decref(typed);
    json_decref(words);
}

static void values_mean_the_same_typed_and_as_words(void **state)
{
    (void)state;
    for_each_recipe(check_words);
}

/* The configuration as text: `head`, then each key and its value with `between` and `after`. malloc'ed. */
static char *written(const json_t *config, const char *head, const char *between, const char *after)
{
    struct adv_text text;
    adv_text_init(&text, 1 << 16);
    adv_text_append(&text, head);
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)config, key, value)
    {
        adv_text_append(&text, key);
        adv_text_append(&text, between);
        adv_text_append(&text, "'");
        adv_text_append(&text, json_string_value(value));
        adv_text_append(&text, "'");
        adv_text_append(&text, after);
    }
    assert_false(text.overflow);
    return text.data;
}

/* Without what is said of flags that only a request of JSON would hold: a file's are elsewhere. Frees `text`.
 */
static char *but_for_flags(char *text)
{
    json_t *findings = json_loads(text, 0, NULL);
    assert_non_null(findings);
    for (size_t i = json_array_size(findings); i-- > 0;) {
        const char *code = json_string_value(json_object_get(json_array_get(findings, i), "code"));
        if (strcmp(code, "recipe-flags") == 0 || strcmp(code, "kernel-over-vmem") == 0)
            json_array_remove(findings, i);
    }
    free(text);
    text = json_dumps(findings, 0);
    json_decref(findings);
    return text;
}

static void check_documents(const json_t *row)
{
    const json_t *config = json_object_get(row, "config");
    json_t *plain = as_words(config);
    json_t *request = json_pack("{s:O}", "config", plain);
    char *json_text = json_dumps(request, 0);
    char *yaml_text = written(plain, "# a comment\n---\n", ": ", "   # why\n");
    char *shell_text = written(plain, "export X=1\npython3 -m maxtext.train base.yml \\\n ", "=", " \\\n ");
    char *json_findings = but_for_flags(lint(json_text)), *yaml_findings = but_for_flags(lint(yaml_text)),
         *shell_findings = but_for_flags(lint(shell_text));
    assert_string_equal(json_findings, yaml_findings);
    assert_string_equal(json_findings, shell_findings);
    free(json_findings);
    free(yaml_findings);
    free(shell_findings);
    free(json_text);
    free(yaml_text);
    free(shell_text);
    json_decref(request);
    json_decref(plain);
}

static void lint_finds_the_same_in_json_yaml_and_a_command(void **state)
{
    (void)state;
    for_each_recipe(check_documents);
}

/* The first plan for `model` (reference taken over), as MaxText would run it: nothing but its config and
 * flags. */
static void assert_config_is_complete(json_t *model, const char *what)
{
    json_t *request = json_pack("{s:o, s:{s:s, s:s}, s:{s:i, s:i}, s:{s:i, s:i}}", "model", model, "cluster",
                                "chip", "v5p", "topology", "4x4x4", "workload", "seq_len", 1024,
                                "global_batch_sequences", 64, "search", "top_k", 1, "max_evaluations", 20000);
    json_t *answer = answer_to(request, ADV_REQUEST_ADVISE, what);
    json_t *first = json_array_get(json_object_get(answer, "ranked"), 0);
    if (first) {
        json_t *config = json_object_get(first, "config");
        json_t *name = json_object_get(config, "model_name");
        json_t *again = json_pack("{s:o, s:{s:s, s:s}, s:O, s:O, s:b}", "model",
                                  name ? json_incref(name) : json_string("default"), "cluster", "chip", "v5p",
                                  "topology", "4x4x4", "config", config, "xla_flags",
                                  json_object_get(first, "xla_flags"), "strict", 1);
        json_t *run = answer_to(again, ADV_REQUEST_ESTIMATE, what);
        json_t *estimate = json_object_get(first, "estimate");
        static const char *const members[] = {"step_time_s", "hbm_bytes_per_device", "mfu_frac"};
        for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
            double ran = json_number_value(json_object_get(run, members[i]));
            double advised = json_number_value(json_object_get(estimate, members[i]));
            if (fabs(ran / advised - 1) > 1e-9)
                fail_msg("%s: %s is %g, advised as %g", what, members[i], ran, advised);
        }
        json_decref(run);
    }
    json_decref(answer);
}

static void an_advised_configuration_is_the_whole_model(void **state)
{
    (void)state;
    static const char *const names[] = {
        "llama3-405b",   "llama3.1-8b",      "gpt-oss-20b",        "gemma4-26b",
        "gemma4-e2b",    "llama4-17b-16e",   "qwen3-next-80b-a3b", "gemma2-9b",
        "gemma3-12b",    "deepseek2-16b",    "mixtral-8x7b",       "olmo3-7b",
        "qwen3-30b-a3b", "envy-switch-base", "deepseek-custom",    "gpt3-6b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *entry = catalog_entry("models", names[i]);
        json_t *own = json_deep_copy(json_object_get(entry, "keys"));
        (void)json_object_set_new(own, "name", json_string("own"));
        assert_config_is_complete(json_string(names[i]), names[i]);
        assert_config_is_complete(own, names[i]);
        json_decref(entry);
    }
    static const char *const configs[] = {"gpt-oss-20b", "gemma3-27b", "deepseek2-16b", "gpt2",
                                          "qwen3-30b-a3b"};
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", configs[i]);
        assert_config_is_complete(json_pack("{s:o}", "hf_config", json_load_file(path, 0, NULL)), configs[i]);
    }
}

/* Every plan for one job of `model`, as it would be sent to CI, is linted: remarks may be, nothing to mend.
 */
static int plans_linted(const char *model, const char *chip, const char *topology, int slices)
{
    json_t *cluster = json_pack("{s:s, s:s, s:i}", "chip", chip, "topology", topology, "slices", slices);
    json_t *answer = answer_to(json_pack("{s:s, s:O, s:{s:i, s:i}, s:{s:i, s:i}}", "model", model, "cluster",
                                         cluster, "workload", "seq_len", 8192, "per_device_batch_size", 1,
                                         "search", "top_k", 5, "max_evaluations", 20000),
                               ADV_REQUEST_ADVISE, model);
    json_t *plan = NULL, *finding = NULL;
    size_t index = 0, at = 0;
    int plans = 0;
    json_array_foreach(json_object_get(answer, "ranked"), index, plan)
    {
        json_t *linted = answer_to(json_pack("{s:s, s:O, s:O, s:O}", "model", model, "cluster", cluster,
                                             "config", json_object_get(plan, "config"), "xla_flags",
                                             json_object_get(plan, "xla_flags")),
                                   ADV_REQUEST_LINT, model);
        json_array_foreach(json_object_get(linted, "findings"), at, finding)
        {
            if (strcmp(json_string_value(json_object_get(finding, "severity")), "info") != 0)
                fail_msg("%s on %s %s, plan %zu: %s: %s", model, chip, topology, index + 1,
                         json_string_value(json_object_get(finding, "pointer")),
                         json_string_value(json_object_get(finding, "detail")));
        }
        json_decref(linted);
        plans++;
    }
    json_decref(answer);
    json_decref(cluster);
    return plans;
}

static void an_advised_configuration_is_linted_without_a_warning(void **state)
{
    (void)state;
    static const char *const models[] = {"llama3.1-70b",   "mixtral-8x7b", "deepseek3-671b", "gpt-oss-20b",
                                         "llama4-17b-16e", "gemma4-26b",   "qwen3-30b-a3b"};
    static const struct {
        const char *chip, *topology;
        int slices;
    } clusters[] = {{"tpu7x", "4x8x8", 1}, {"v6e", "16x16", 2}, {"v5p", "8x8x8", 1}, {"v5e", "16x16", 1}};
    int plans = plans_linted("qwen3-235b-a22b", "v5e", "16x16", 1); /* moments on the hosts */
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        for (size_t c = 0; c < sizeof clusters / sizeof *clusters; c++)
            plans += plans_linted(models[m], clusters[c].chip, clusters[c].topology, clusters[c].slices);
    }
    assert_true(plans > 100);
}

static void flags_mean_the_same_however_they_are_given(void **state)
{
    (void)state;
    static const char *const strings[] = {
        "--xla_tpu_scoped_vmem_limit_kib=65536 --xla_enable_async_all_gather=true",
        "xla_tpu_scoped_vmem_limit_kib=65536\n  xla_enable_async_all_gather",
        "export LIBTPU_INIT_ARGS=\"--xla_enable_async_all_gather=True \\\n "
        "--xla_tpu_scoped_vmem_limit_kib=65536\"",
        "LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=1 --xla_tpu_scoped_vmem_limit_kib=65536 "
        "--xla_enable_async_all_gather=1'"};
    json_t *cluster = json_pack("{s:s, s:s}", "chip", "v5p", "topology", "2x2x2");
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        json_t *list = request_for(json_string("gemma-2b"), json_deep_copy(cluster), json_object());
        json_t *text = json_deep_copy(list);
        (void)json_object_set_new(list, "xla_flags",
                                  json_pack("[s, s]", "--xla_tpu_scoped_vmem_limit_kib=65536",
                                            "--xla_enable_async_all_gather=true"));
        (void)json_object_set_new(text, "xla_flags", json_string(strings[i]));
        assert_same(list, text, strings[i]);
    }
    json_decref(cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_the_same_by_name_and_by_keys),
        cmocka_unit_test(a_model_is_the_same_by_name_and_by_hugging_face_configuration),
        cmocka_unit_test(a_slice_is_the_same_by_shape_count_and_name),
        cmocka_unit_test(values_mean_the_same_typed_and_as_words),
        cmocka_unit_test(lint_finds_the_same_in_json_yaml_and_a_command),
        cmocka_unit_test(an_advised_configuration_is_the_whole_model),
        cmocka_unit_test(an_advised_configuration_is_linted_without_a_warning),
        cmocka_unit_test(flags_mean_the_same_however_they_are_given),
    };
    return run_group_with_catalog(tests);
}
