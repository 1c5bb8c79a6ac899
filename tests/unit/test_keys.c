/* The table of MaxText keys. This program has one row more than the engine: a key that MaxText has and the
 * engine does not price is one row away from being read, written back, changed, searched and priced. Its row
 * decides the member of another key, which the requests here pin. */
#define ADV_KEYS_OF_A_TEST BOOL("enable_dropout", family.use_iota_embed, GROUP(LOSS), TRIES(6, LISTED, 0, 1)),
#include "engine/maxtext/keys.c" /* NOLINT(bugprone-suspicious-include): in place of the library's */

#include "tests/unit/advise_fixture.h"

#include "engine/advise.h"
#include "engine/cost/scratch.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_value.h"
#include "engine/maxtext/changes.h"
#include "engine/maxtext/entries.h"
#include "engine/maxtext/write.h"
#include "engine/search/within_changes.h"

static const char new_key[] = "enable_dropout";

static const char job[] = "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                          "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64},"
                          "\"pins\":{\"use_iota_embed\":false}}";

static void read_config(struct fixture *fixture, const char *json, struct adv_plan *plan)
{
    json_t *config = json_loads(json, 0, NULL);
    struct adv_decode_config_input input = {.catalog = fixture->catalog,
                                            .model = &fixture->request->model,
                                            .cluster = &fixture->request->cluster,
                                            .config = config,
                                            .at = "/config",
                                            .strict = true,
                                            .arena = &fixture->arena};
    if (adv_decode_config(&input, plan, NULL, &fixture->err, &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    json_decref(config);
}

static double step_time_of(const struct fixture *fixture, const struct adv_plan *plan)
{
    struct adv_estimate estimate;
    struct adv_estimate_input input = {&fixture->request->model, &fixture->request->cluster,
                                       fixture->constants, plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, NULL), ADV_OK);
    return estimate.step_time_s;
}

static void a_new_row_is_read_priced_written_and_changed(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    struct adv_plan without, with, copied;
    fixture_open(&fixture, job);
    read_config(&fixture, "{\"per_device_batch_size\":4}", &without);
    read_config(&fixture, "{\"per_device_batch_size\":4,\"enable_dropout\":\"True\"}", &with);
    assert_true(with.family.use_iota_embed && !without.family.use_iota_embed);
    assert_false(step_time_of(&fixture, &with) == step_time_of(&fixture, &without));

    const struct adv_advise_request *request = fixture.request;
    assert_int_equal(adv_config_write(&with, &request->model, &request->cluster, NULL, 0, &fixture.arena,
                                      &config, &fixture.err),
                     ADV_OK);
    assert_string_equal(adv_config_find(&config, new_key), "true");

    struct adv_config_change changes[4];
    struct adv_config_changes list = {.items = changes, .capacity = 4};
    int found = 0;
    assert_int_equal(adv_config_changes(NULL, &without, &with, &request->model, &request->cluster,
                                        &fixture.arena, &list, &fixture.err),
                     ADV_OK);
    for (int i = 0; i < list.count; i++) found += strcmp(changes[i].key, new_key) == 0;
    assert_int_equal(found, 1);
    assert_string_equal(adv_change_group_name(adv_change_group_of(new_key)), "loss_and_embedding");

    copied = without;
    assert_true(adv_key_copy(new_key, &with, &copied));
    assert_memory_equal(&copied, &with, sizeof copied);
    assert_int_equal(adv_config_departures(&with),
                     adv_config_departures(&without) + 2); /* and the other key */
    fixture_close(&fixture);
}

struct seen {
    const struct adv_plan *baseline;
    int plans;
};

static void look(void *context, const struct adv_plan *plan)
{
    struct seen *seen = context;
    seen->plans += plan->family.use_iota_embed && !seen->baseline->family.use_iota_embed;
}

static void a_new_row_is_searched(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    fixture_search(&fixture, job, &result);
    const struct adv_plan *baseline = &result.found[0].plan;
    struct adv_pricer pricer = {.request = fixture.request, .constants = fixture.constants};
    struct seen seen = {baseline, 0};
    assert_int_equal(adv_single_keys_visit(&pricer, baseline, 1, &fixture.arena, look, &seen), 1);
    assert_int_equal(seen.plans, 1);
    fixture_close(&fixture);
}

/* A value of another kind is one finding at the key; a value that the row takes is none. */
static void a_new_row_is_linted(void **state)
{
    (void)state;
    static const char *const values[] = {"false", "\"maybe\"", "3"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[512];
        struct adv_answer answer;
        adv_err err;
        adv_err_init(&err);
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                       "\"config\":{\"override_model_config\":true,\"max_target_length\":8192,\"%s\":%s}}",
                       new_key, values[i]);
        assert_int_equal(
            adv_answer_request(fixture_catalog(), ADV_REQUEST_LINT, text, strlen(text), &answer, &err),
            ADV_OK);
        json_t *root = json_loads(answer.json, 0, NULL), *findings = json_object_get(root, "findings");
        assert_int_equal(json_is_true(json_object_get(root, "valid")), i == 0);
        assert_int_equal(json_array_size(findings), i == 0 ? 0 : 1);
        if (i > 0)
            assert_string_equal(json_string_value(json_object_get(json_array_get(findings, 0), "pointer")),
                                "/config/enable_dropout");
        json_decref(root);
        adv_answer_free(&answer);
    }
}

/* Keys whose default is not a value of the plan: what they take is filled in by the rest. */
static bool is_filled_in(const struct adv_key *key)
{
    return key->follows_at > 0 || strcmp(key->name, "ici_fsdp_parallelism") == 0 ||
           strcmp(key->name, "dcn_data_parallelism") == 0 || strcmp(key->name, new_key) == 0;
}

static void every_key_is_in_the_catalog_with_its_default(void **state)
{
    (void)state;
    const struct adv_catalog *catalog = fixture_catalog();
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        const struct adv_catalog_key *known = adv_catalog_key(catalog, key->name);
        char text[ADV_LIMIT_NAME], room[ADV_LIMIT_NAME], usual_room[ADV_LIMIT_NAME];
        struct adv_value own, usual;
        if (!known) {
            fail_msg("%s is not a MaxText key", key->name);
            return;
        }
        assert_ptr_equal(adv_key_find(key->name), key); /* one row a key */
        if (key->holds == ADV_HOLDS_DEGREE)
            assert_ptr_equal(adv_key_of_axis(key->of == ADV_OF_SLICES, (enum adv_axis)(i % ADV_AXIS_COUNT)),
                             key->name);
        if (key->holds == ADV_HOLDS_NOTHING || is_filled_in(key)) continue;
        assert_true(adv_key_text(key, key->usual, text, sizeof text));
        if (!adv_value_of_json(text, room, &own) ||
            !adv_value_of_json(known->default_json, usual_room, &usual) || !adv_value_same(&own, &usual))
            fail_msg("%s is %s by default, and %s in the catalog", key->name, text, known->default_json);
    }
}

/* A row reads what it writes, for each of its values. */
static void every_value_that_a_search_tries_is_read_back(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, job);
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        for (int v = 0; v < key->values_count; v++) {
            char text[ADV_LIMIT_NAME], config[2 * ADV_LIMIT_NAME];
            struct adv_plan plan;
            assert_true(adv_key_text(key, key->values[v], text, sizeof text));
            (void)snprintf(config, sizeof config,
                           "{\"max_target_length\":8192,\"remat_policy\":\"custom\",\"%s\":%s}", key->name,
                           text);
            read_config(&fixture, config, &plan);
            if (adv_key_says(key, &plan) != key->values[v]) fail_msg("%s is not read as written", config);
        }
    }
    fixture_close(&fixture);
}

/* Texts of configurations are read again without the library that wrote them. */
static void a_json_text_is_the_value_that_the_document_has(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "null",         "true",      "false",    "0",    "-12",      "9007199254740993",
        "1.5",          "1e-05",     "2.0",      "\"\"", "\"full\"", "\"a\\\"b\\\\c/\\n\\u0007\"",
        "\"\xc3\xa9\"", "[1,\"a\"]", "{\"a\":1}"};
    static const char *const others[] = {
        "", "nul", "tru", "1x", "-", "\"open", "\"a\"b", "99999999999999999999", "1e999"};
    struct adv_arena arena;
    struct adv_value own, theirs;
    char room[64];
    adv_arena_init(&arena, 1 << 16);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *json = json_loads(texts[i], JSON_DECODE_ANY, NULL);
        assert_true(adv_decode_value(json, &arena, &theirs));
        if (!adv_value_of_json(texts[i], room, &own) || own.kind != theirs.kind ||
            !adv_value_same(&own, &theirs))
            fail_msg("%s is read otherwise", texts[i]);
        json_decref(json);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (adv_value_of_json(others[i], room, &own)) fail_msg("%s is read as a value", others[i]);
    adv_arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_row_is_read_priced_written_and_changed),
        cmocka_unit_test(a_new_row_is_searched),
        cmocka_unit_test(a_new_row_is_linted),
        cmocka_unit_test(every_key_is_in_the_catalog_with_its_default),
        cmocka_unit_test(every_value_that_a_search_tries_is_read_back),
        cmocka_unit_test(a_json_text_is_the_value_that_the_document_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
