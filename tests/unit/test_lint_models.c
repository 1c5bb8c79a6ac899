/* What MaxText's validators say of models: its own, changed ones, and those given by dimensions. */
#include "tests/unit/check.h"

#include "engine/json/lint_rules.h"
#include "tests/unit/lint_fixture.h"

static void a_model_with_the_defaults_breaks_no_rule(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        json_t *config = json_pack("{s:s}", "model_name", name);
        /* MaxText refuses its own files of these unless the layers are not scanned */
        if (strncmp(name, "qwen3-vl-", strlen("qwen3-vl-")) == 0 ||
            strncmp(name, "weaver-", strlen("weaver-")) == 0)
            (void)json_object_set_new(config, "scan_layers", json_false());
        adv_err broken;
        adv_err_init(&broken);
        adv_lint_rules(catalog, name, config, NULL, 0, &broken);
        if (broken.count > 0) fail_msg("%s: %s", name, broken.findings[0].detail);
        json_decref(config);
    }
}

#define MIXTRAL_KEYS                                                                                         \
    "\"decoder_block\":\"mixtral\",\"base_emb_dim\":4096,\"base_moe_mlp_dim\":14336,\"num_experts\":8,"      \
    "\"num_experts_per_tok\":2,\"base_num_query_heads\":32,\"base_num_kv_heads\":8,\"head_dim\":128,"        \
    "\"base_num_decoder_layers\":32,\"vocab_size\":32000,"
#define ON_V5P "\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x4\"}"

/* MaxText wants one width of experts and dense layers: of dimensions as an object, and of one that changes a
 * named model, whose experts no key of the configuration names. */
static void dimensions_that_maxtext_refuses_are_told_by_lint_and_estimate(void **state)
{
    (void)state;
    static const struct {
        const char *text, *pointer;
    } cases[] = {
        {"{\"model\":{" MIXTRAL_KEYS "\"base_mlp_dim\":8192}," ON_V5P "}", "/model"},
        {"{\"model\":\"mixtral-8x7b\"," ON_V5P
         ",\"config\":{\"override_model_config\":true,\"base_mlp_dim\":8192}}",
         "/config/num_experts"},
        {"{\"model\":{" MIXTRAL_KEYS "\"base_mlp_dim\":14336}," ON_V5P "}", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *answer = lint_text(cases[i].text);
        assert_int_equal(errors_of(answer), cases[i].pointer != NULL);
        if (cases[i].pointer) assert_finding(answer, cases[i].pointer, "error", "expert-width");
        json_decref(answer);

        struct adv_answer estimate;
        adv_err refused;
        adv_err_init(&refused);
        assert_int_equal(adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, cases[i].text,
                                            strlen(cases[i].text), &estimate, &refused),
                         ADV_OK);
        assert_int_equal(strstr(estimate.json, "\"expert-width\"") != NULL, cases[i].pointer != NULL);
        adv_answer_free(&estimate);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_with_the_defaults_breaks_no_rule),
        cmocka_unit_test(dimensions_that_maxtext_refuses_are_told_by_lint_and_estimate),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
