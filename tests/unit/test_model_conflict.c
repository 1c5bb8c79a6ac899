/* Keys that the model's own file sets, too: what MaxText refuses, and what another model the name then stands
 * for.
 */
#include "tests/unit/check.h"

#include <string.h>

#include "engine/json/json_load.h"
#include "tests/unit/answer_fixture.h"

struct row {
    const char *model, *key, *value, *own;
};

/* The answer to one key set over a model; lint's findings are under another name than estimate's warnings. */
static json_t *answer_of(enum adv_request_kind kind, const struct row *row, bool may_override)
{
    char text[512];
    (void)snprintf(text, sizeof text,
                   "{\"model\":\"%s\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x8\"},"
                   "\"config\":{\"per_device_batch_size\":1,\"%s\":%s%s}}",
                   row->model, row->key, row->value, may_override ? ",\"override_model_config\":true" : "");
    json_t *answer = answer_to(kind, text);
    assert_non_null(answer);
    if (kind == ADV_REQUEST_LINT)
        (void)json_object_set(answer, "warnings", json_object_get(answer, "findings"));
    return answer;
}

static const enum adv_request_kind kinds[] = {ADV_REQUEST_ESTIMATE, ADV_REQUEST_LINT};

static void no_key_of_the_models_file_is_set_twice(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"deepseek3-671b", "first_num_dense_layers", "1", "3"},
        {"mixtral-8x7b", "num_experts", "16", "8"},
        {"llama3.1-8b", "head_dim", "64", "128"},
        {"llama3.1-8b", "logits_via_embedding", "true", "false"},
        {"llama3.1-8b", "decoder_block", "\"qwen3\"", "llama2"},
        {"llama3.1-8b", "mlp_activations", "[\"gelu\",\"linear\"]", "[\"silu\",\"linear\"]"},
        {"gemma3-4b", "sliding_window_size", "512", "1024"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int k = 0; k < 2; k++) {
            json_t *answer = answer_of(kinds[k], &rows[i], false);
            const char *detail = adv_json_warning(answer, "model-key-conflict");
            if (!detail || !strstr(detail, rows[i].key) || !strstr(detail, rows[i].own))
                fail_msg("%s: %s", rows[i].key, detail ? detail : "no warning");
            assert_null(adv_json_warning(answer, "model-overridden"));
            if (kinds[k] == ADV_REQUEST_LINT) assert_true(json_is_false(json_object_get(answer, "valid")));
            json_decref(answer);
            answer = answer_of(kinds[k], &rows[i], true);
            assert_null(adv_json_warning(answer, "model-key-conflict"));
            detail = adv_json_warning(answer, "model-overridden");
            if (!detail || !strstr(detail, rows[i].key) || !strstr(detail, rows[i].own))
                fail_msg("%s: %s", rows[i].key, detail ? detail : "no note");
            json_decref(answer);
        }
    }
}

/* Keys that change nothing here stop MaxText all the same: pictures, the tokenizer, rules of the mesh. */
static void keys_without_a_price_conflict_too(void **state)
{
    (void)state;
    static const struct row rows[] = {{"qwen3-8b", "tokenizer_type", "\"sentencepiece\"", "huggingface"},
                                      {"gemma3-4b", "image_size_for_vit", "448", "896"},
                                      {"llama2-7b", "logical_axis_rules", "[[\"norm\",\"data\"]]", "norm"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int k = 0; k < 2; k++) {
            json_t *answer = answer_of(kinds[k], &rows[i], false);
            const char *detail = adv_json_warning(answer, "model-key-conflict");
            if (!detail || !strstr(detail, rows[i].own))
                fail_msg("%s: %s", rows[i].key, detail ? detail : "");
            json_decref(answer);
        }
    }
}

static void the_same_value_or_a_key_of_no_file_is_no_conflict(void **state)
{
    (void)state;
    static const struct row rows[] = {{"llama3.1-8b", "vocab_size", "128256", ""},
                                      {"llama3.1-8b", "head_dim", "128.0", ""},
                                      {"llama3.1-8b", "decoder_block", "\"llama2\"", ""},
                                      {"llama3.1-8b", "use_qk_norm", "false", ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int k = 0; k < 2; k++) {
            json_t *answer = answer_of(kinds[k], &rows[i], false);
            assert_null(adv_json_warning(answer, "model-key-conflict"));
            json_decref(answer);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_of_the_models_file_is_set_twice),
        cmocka_unit_test(keys_without_a_price_conflict_too),
        cmocka_unit_test(the_same_value_or_a_key_of_no_file_is_no_conflict),
    };
    return run_group_with_catalog(tests);
}
