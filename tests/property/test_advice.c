/* The promises of an estimate's advice, for every published recipe and tuned configuration: it is offered
 * whatever else is wrong with the plan, and the configuration with its change is exactly the plan that was
 * priced. */
#include "tests/unit/check.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/explain/advice.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_request.h"
#include "engine/rank/rank.h"
#include "tests/unit/catalog_fixture.h"

/* One configuration, decoded and estimated, with its advice. */
struct run {
    struct adv_arena arena;
    struct adv_estimate_request request;
    struct adv_estimate estimate;
    struct adv_ledger ledger;
    struct adv_advice_list advice;
    adv_err err, warnings;
};

static bool decode(struct run *run, const json_t *root)
{
    adv_arena_free(&run->arena);
    adv_arena_init(&run->arena, ADV_LIMIT_ARENA_BYTES);
    adv_err_init(&run->err);
    adv_err_init(&run->warnings);
    return adv_decode_estimate_request(catalog, root, &run->arena, &run->request, &run->err,
                                       &run->warnings) == ADV_OK;
}

static void estimate(struct run *run, bool advised)
{
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, run->request.cluster.chip.name);
    struct adv_estimate_input input = {&run->request.model, &run->request.cluster, &chip->constants,
                                       &run->request.plan, ADV_FLOPS_CAUSAL_HALF};
    if (adv_estimate_plan(&input, &run->estimate, &run->ledger, &run->err) != ADV_OK)
        fail_msg("%s", run->err.findings[0].detail);
    if (!advised) return;
    struct adv_reread reread;
    if (adv_reread_open(&reread, catalog, &run->request.model, run->request.model.name, &run->request.cluster,
                        &run->request.config, &run->arena, &run->err) != ADV_OK)
        fail_msg("%s", run->err.findings[0].detail);
    adv_advice_find(&input, &run->estimate, &run->ledger, &reread, false, &run->advice);
}

/* Recipes name their slice; tuned configurations a chip in their name, here on one slice of some size. */
static json_t *request_of(const json_t *row)
{
    static const struct {
        const char *stem, *chip, *topology;
    } machines[] = {{"trillium/", "v6e", "16x16"}, {"v5p/", "v5p", "4x4x8"}, {"v5e/", "v5e", "16x16"}};
    json_t *config = json_object_get(row, "config"), *model = json_object_get(row, "model");
    json_t *request =
        json_pack("{s:O, s:O}", "config", config, "xla_flags", json_object_get(row, "xla_flags"));
    if (!model) model = json_object_get(config, "model_name");
    (void)json_object_set(request, "model", model);
    (void)json_object_set(request, "cluster", json_object_get(row, "cluster"));
    const char *name = json_string_value(json_object_get(row, "name"));
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++)
        if (strncmp(name, machines[i].stem, strlen(machines[i].stem)) == 0)
            (void)json_object_set_new(
                request, "cluster",
                json_pack("{s:s, s:s}", "chip", machines[i].chip, "topology", machines[i].topology));
    return request;
}

static json_t *load(const char *path)
{
    json_t *rows = json_load_file(path, 0, NULL);
    if (!json_is_array(rows)) fail_msg("%s does not load", path);
    return rows;
}

/* Every published recipe and tuned configuration that is legal on its machine, as an estimate request. */
static void for_each_configuration(int step, void (*check)(const char *name, json_t *request))
{
    static const char *const paths[] = {"tests/data/lint_recipes.json", "tests/data/lint_tuned.json"};
    int checked = 0;
    for (size_t p = 0; p < sizeof paths / sizeof *paths; p++) {
        static struct run run;
        json_t *rows = load(paths[p]);
        for (size_t i = 0; i < json_array_size(rows); i += (size_t)step) {
            json_t *row = json_array_get(rows, i);
            json_t *request = request_of(row);
            if (decode(&run, request)) {
                check(json_string_value(json_object_get(row, "name")), request);
                checked++;
            }
            json_decref(request);
        }
        adv_arena_free(&run.arena);
        json_decref(rows);
    }
    assert_true(checked * step > 80);
}

/* Sets one key or flag of a configuration, as a reader of the answer would. */
static void set(json_t *request, const char *key, const char *value_json)
{
    json_t *value = json_loads(value_json, JSON_DECODE_ANY, NULL);
    if (!value) value = json_string(value_json);
    if (strncmp(key, "xla_", 4) != 0) {
        (void)json_object_set_new(json_object_get(request, "config"), key, value);
        return;
    }
    json_t *flags = json_object_get(request, "xla_flags"), *flag = NULL;
    size_t index = 0;
    json_t *kept = json_array();
    json_array_foreach(flags, index, flag)
    {
        const char *text = json_string_value(flag) + strspn(json_string_value(flag), "-");
        if (strncmp(text, key, strlen(key)) != 0 || (text[strlen(key)] && text[strlen(key)] != '='))
            (void)json_array_append(kept, flag);
    }
    if (!json_is_null(value)) (void)json_array_append_new(kept, json_sprintf("--%s=%s", key, value_json));
    json_decref(value);
    (void)json_object_set_new(request, "xla_flags", kept);
}

static void check_advice(const char *name, json_t *request)
{
    static struct run run, changed;
    assert_true(decode(&run, request));
    estimate(&run, true);
    double now = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &run.estimate);
    for (int i = 0; i < run.advice.count; i++) {
        const struct adv_advice *advice = &run.advice.items[i];
        if (advice->changes_count == 0) continue;
        json_t *applied = json_deep_copy(request);
        for (int k = 0; k < advice->changes_count; k++)
            set(applied, advice->changes[k].key, advice->changes[k].value_json);
        if (!decode(&changed, applied))
            fail_msg("%s: %s makes it illegal: %s", name, advice->code, changed.err.findings[0].detail);
        estimate(&changed, false);
        double gain = 1 - adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &changed.estimate) / now;
        if (!isnan(advice->gain_frac) && !(fabs(gain - advice->gain_frac) < 1e-9))
            fail_msg("%s: %s promises %.4f, gives %.4f", name, advice->code, advice->gain_frac, gain);
        json_decref(applied);
    }
    adv_arena_free(&run.arena);
    adv_arena_free(&changed.arena);
}

static void every_piece_of_advice_gives_what_it_promises(void **state)
{
    (void)state;
    for_each_configuration(1, check_advice);
}

static json_t *answer_to(json_t *request, enum adv_request_kind kind, adv_err *err)
{
    char *text = json_dumps(request, 0);
    struct adv_answer answer;
    adv_err_init(err);
    adv_code code = adv_answer_request(catalog, kind, text, strlen(text), &answer, err);
    free(text);
    if (code != ADV_OK) return NULL;
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    adv_answer_free(&answer);
    return root;
}

/* A search from the configuration on: what is ranked is the configuration with the changes listed. */
static void check_changes(const char *name, json_t *request)
{
    static struct run run;
    adv_err err;
    assert_true(decode(&run, request));
    json_t *asked =
        json_pack("{s:O, s:O, s:{s:I, s:f}, s:{s:O, s:O}, s:{s:i, s:i}}", "model",
                  json_object_get(request, "model"), "cluster", json_object_get(request, "cluster"),
                  "workload", "seq_len", (json_int_t)run.request.plan.family.seq_len, "per_device_batch_size",
                  run.request.plan.family.per_device_batch_size, "baseline", "config",
                  json_object_get(request, "config"), "xla_flags", json_object_get(request, "xla_flags"),
                  "search", "top_k", 2, "max_evaluations", 3000);
    json_t *shape = adv_decode_config_model(catalog, json_object_get(request, "config"));
    (void)json_object_set_new(asked, "pins", shape); /* the same model for the search */
    json_t *answer = answer_to(asked, ADV_REQUEST_ADVISE, &err);
    if (!answer) fail_msg("%s: %s %s", name, err.findings[0].pointer, err.findings[0].detail);
    size_t index = 0;
    json_t *row = NULL;
    json_array_foreach(json_object_get(answer, "ranked"), index, row)
    {
        json_t *applied = json_deep_copy(request), *change = NULL;
        size_t at = 0;
        json_array_foreach(json_object_get(row, "changes_from_baseline"), at, change)
        {
            char *value = json_dumps(json_object_get(change, "to"), JSON_ENCODE_ANY);
            set(applied, json_string_value(json_object_get(change, "key")), value);
            free(value);
        }
        if (!decode(&run, applied)) fail_msg("%s: %s", name, run.err.findings[0].detail);
        estimate(&run, false);
        double ranked = json_number_value(json_object_get(json_object_get(row, "estimate"), "step_time_s"));
        if (fabs(run.estimate.step_time_s / ranked - 1) > 1e-9)
            fail_msg("%s: ranked %zu takes %.6f s, its changes make %.6f s", name, index + 1, ranked,
                     run.estimate.step_time_s);
        json_decref(applied);
    }
    json_decref(answer);
    json_decref(asked);
    adv_arena_free(&run.arena);
}

/* The limit counts what has to be set, keys that wake up included. */
static void check_limit(const char *name, json_t *request)
{
    static struct run run;
    enum { LIMIT = 2 };
    adv_err err;
    assert_true(decode(&run, request));
    json_t *asked =
        json_pack("{s:O, s:O, s:{s:I, s:f}, s:{s:O, s:O}, s:{s:i, s:i, s:i}}", "model",
                  json_object_get(request, "model"), "cluster", json_object_get(request, "cluster"),
                  "workload", "seq_len", (json_int_t)run.request.plan.family.seq_len, "per_device_batch_size",
                  run.request.plan.family.per_device_batch_size, "baseline", "config",
                  json_object_get(request, "config"), "xla_flags", json_object_get(request, "xla_flags"),
                  "search", "top_k", 3, "max_changes", LIMIT, "max_evaluations", 3000);
    json_t *shape = adv_decode_config_model(catalog, json_object_get(request, "config"));
    (void)json_object_set_new(asked, "pins", shape);
    json_t *answer = answer_to(asked, ADV_REQUEST_ADVISE, &err), *row = NULL;
    if (!answer) fail_msg("%s: %s %s", name, err.findings[0].pointer, err.findings[0].detail);
    size_t index = 0;
    json_array_foreach(json_object_get(answer, "ranked"), index, row)
    {
        size_t changes = json_array_size(json_object_get(row, "changes_from_baseline"));
        if (changes > LIMIT) fail_msg("%s: %zu changes", name, changes);
    }
    json_decref(answer);
    json_decref(asked);
    adv_arena_free(&run.arena);
}

static void a_limit_on_changes_counts_every_key_that_has_to_be_set(void **state)
{
    (void)state;
    for_each_configuration(1, check_limit);
}

static void all_changes_from_a_baseline_make_the_ranked_plan(void **state)
{
    (void)state;
    for_each_configuration(1, check_changes);
}

static bool has_code(const struct adv_advice_list *list, const char *code)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->items[i].code, code) == 0) return true;
    return false;
}

static void a_finding_that_the_plan_has_already_silences_no_advice(void **state)
{
    (void)state;
    static struct run with, without;
    json_t *rows = load("tests/data/lint_recipes.json");
    size_t index = 0;
    int compared = 0;
    json_t *row = NULL;
    json_array_foreach(rows, index, row)
    {
        json_t *config = json_object_get(row, "config");
        if (!json_is_true(json_object_get(config, "use_random_routing"))) continue;
        json_t *request = request_of(row);
        assert_true(decode(&with, request));
        estimate(&with, true);
        (void)json_object_set_new(config, "use_random_routing", json_false());
        assert_true(decode(&without, request));
        estimate(&without, true);
        for (int i = 0; i < without.advice.count; i++)
            if (!has_code(&with.advice, without.advice.items[i].code))
                fail_msg("%s: no advice %s", json_string_value(json_object_get(row, "name")),
                         without.advice.items[i].code);
        json_decref(request);
        compared += without.advice.count;
    }
    assert_true(compared > 10);
    adv_arena_free(&with.arena);
    adv_arena_free(&without.arena);
    json_decref(rows);
}

/* Takes memory off the chip until the plan fits, but not for sure. */
static void make_tight(struct run *run, json_t *request)
{
    for (int tries = 0; tries < 20; tries++) {
        assert_true(decode(run, request));
        estimate(run, true);
        if (run->estimate.fit == ADV_FIT_TIGHT) return;
        const double bytes = 0.99 * run->estimate.hbm_limit_bytes_per_device;
        (void)json_object_set_new(json_object_get(request, "cluster"), "overrides",
                                  json_pack("{s:f}", "hbm_usable_bytes_per_device", bytes));
    }
    fail_msg("the recipe is never tight");
}

static void a_tight_recipe_with_a_refused_option_is_told_what_would_fit(void **state)
{
    (void)state;
    static struct run run;
    json_t *rows = load("tests/data/lint_recipes.json"); /* deepseek3-671b, bf16, on 4x4x8 */
    json_t *request = request_of(json_array_get(rows, 0));
    make_tight(&run, request);
    const struct adv_advice *tight = NULL;
    for (int i = 0; i < run.advice.count && !tight; i++)
        if (strcmp(run.advice.items[i].code, "memory_tight") == 0) tight = &run.advice.items[i];
    assert_non_null(tight);
    const char *key = tight->changes[0].key;
    assert_true(strcmp(key, "optimizer_memory_host_offload") == 0 || strcmp(key, "num_vocab_tiling") == 0 ||
                strcmp(key, "per_device_batch_size") == 0);
    assert_non_null(strstr(tight->message, "would fit"));
    assert_non_null(strstr(tight->message, " to spare, enough with a probability of 0.9"));
    adv_arena_free(&run.arena);
    json_decref(request);
    json_decref(rows);
}

/* A change does what its message says. */
static void check_texts(const char *name, json_t *request)
{
    static struct run run;
    assert_true(decode(&run, request));
    estimate(&run, true);
    for (int i = 0; i < run.advice.count; i++) {
        const struct adv_advice *advice = &run.advice.items[i];
        int now[3], better[3];
        const char *tiles = strstr(advice->message, "forward ");
        bool keeps = strcmp(advice->code, "remat") == 0, places = false;
        for (int k = 0; k < advice->changes_count; k++) {
            places |= strcmp(advice->changes[k].key, "remat_policy") == 0;
            for (int t = 0; t < ADV_TENSOR_COUNT; t++)
                places |= strcmp(advice->changes[k].key, adv_tensor_name((enum adv_tensor)t)) == 0;
        }
        if (keeps && !places) fail_msg("%s: %s, but no tensor is placed", name, advice->message);
        if (strcmp(advice->code, "attention_tiles") != 0) continue;
        if (!strstr(advice->message, " s a step instead of")) fail_msg("%s: cut: %s", name, advice->message);
        if (!tiles || sscanf(tiles, "forward %d/%d/%d to %d/%d/%d", &now[0], &now[1], &now[2], &better[0],
                             &better[1], &better[2]) != 6)
            continue;
        if (memcmp(now, better, sizeof now) == 0) fail_msg("%s: %s", name, advice->message);
    }
    adv_arena_free(&run.arena);
}

static void messages_name_what_their_changes_change(void **state)
{
    (void)state;
    for_each_configuration(1, check_texts);
}

/* Window layers under the ring: predicted, with a warning, but neither advised nor searched for. */
static void no_advice_and_no_search_puts_window_layers_under_a_ring(void **state)
{
    (void)state;
    static struct run run;
    static const char *const searches[] = {"{}", "{\"max_changes\":2}",
                                           "{\"max_changes\":1,\"top_k\":50,\"fit_probability\":0.6}"};
    json_t *request =
        json_pack("{s:s, s:{s:s, s:s}, s:{s:f, s:i, s:i, s:i, s:b, s:b, s:s}}", "model", "gemma3-27b",
                  "cluster", "chip", "v6e", "topology", "16x16", "config", "per_device_batch_size", 0.5,
                  "max_target_length", 32768, "ici_context_parallelism", 2, "ici_fsdp_parallelism", 128,
                  "use_tokamax_splash", 1, "allow_split_physical_axes", 1, "remat_policy", "full");
    assert_true(decode(&run, request));
    estimate(&run, true);
    assert_true(run.advice.count > 0);
    assert_false(has_code(&run.advice, "context_strategy"));
    (void)json_object_set_new(json_object_get(request, "config"), "context_parallel_strategy",
                              json_string("ring"));
    assert_true(decode(&run, request)); /* with a warning */
    assert_true(run.warnings.count > 0);
    (void)json_object_del(json_object_get(request, "config"), "context_parallel_strategy");
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        adv_err err;
        json_t *asked =
            json_pack("{s:O, s:O, s:{s:i, s:i}, s:{s:O}, s:o}", "model", json_object_get(request, "model"),
                      "cluster", json_object_get(request, "cluster"), "workload", "seq_len", 32768,
                      "global_batch_sequences", 128, "baseline", "config", json_object_get(request, "config"),
                      "search", json_loads(searches[i], 0, NULL));
        (void)json_object_set_new(json_object_get(asked, "search"), "max_evaluations", json_integer(20000));
        json_t *answer = answer_to(asked, ADV_REQUEST_ADVISE, &err), *row = NULL;
        if (!answer) fail_msg("%s %s", err.findings[0].pointer, err.findings[0].detail);
        size_t index = 0;
        assert_true(json_array_size(json_object_get(answer, "ranked")) > 0);
        json_array_foreach(json_object_get(answer, "ranked"), index, row)
        {
            char *text = json_dumps(json_object_get(row, "config"), 0);
            if (strstr(text, "\"ring\"") || strstr(text, "\"usp\"")) fail_msg("%s", text);
            free(text);
        }
        json_decref(answer);
        json_decref(asked);
    }
    json_decref(request);
    adv_arena_free(&run.arena);
}

/* Sixteen context shards do not divide the masks of tokamax's kernel: jax's own takes them. */
static void window_layers_over_many_context_shards_get_the_kernel_that_takes_them(void **state)
{
    (void)state;
    adv_err err;
    json_t *asked =
        json_pack("{s:s, s:{s:s, s:s}, s:{s:i, s:i}}", "model", "gemma3-27b", "cluster", "chip", "v6e",
                  "topology", "16x16", "workload", "seq_len", 131072, "global_batch_sequences", 16);
    json_t *answer = answer_to(asked, ADV_REQUEST_ADVISE, &err), *row = NULL;
    if (!answer) fail_msg("%s %s", err.findings[0].pointer, err.findings[0].detail);
    size_t index = 0;
    int over_many = 0;
    json_array_foreach(json_object_get(answer, "ranked"), index, row)
    {
        const json_t *config = json_object_get(row, "config");
        const json_int_t shards = json_integer_value(json_object_get(config, "ici_context_parallelism"));
        if (shards <= 2) continue;
        assert_false(json_is_true(json_object_get(config, "use_tokamax_splash")));
        over_many++;
    }
    assert_true(over_many >= 5);
    json_decref(answer);
    json_decref(asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finding_that_the_plan_has_already_silences_no_advice),
        cmocka_unit_test(every_piece_of_advice_gives_what_it_promises),
        cmocka_unit_test(all_changes_from_a_baseline_make_the_ranked_plan),
        cmocka_unit_test(messages_name_what_their_changes_change),
        cmocka_unit_test(no_advice_and_no_search_puts_window_layers_under_a_ring),
        cmocka_unit_test(window_layers_over_many_context_shards_get_the_kernel_that_takes_them),
        cmocka_unit_test(a_limit_on_changes_counts_every_key_that_has_to_be_set),
        cmocka_unit_test(a_tight_recipe_with_a_refused_option_is_told_what_would_fit),
    };
    return run_group_with_catalog(tests);
}
