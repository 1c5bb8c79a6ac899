/* Architecture keys that a decoder block does not read. */
#include "tests/unit/check.h"

#include <jansson.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/json_load.h"
#include "engine/spec/model_build.h"
#include "tests/unit/answer_fixture.h"

#define DIMS                                                                                                 \
    "\"base_emb_dim\":4096,\"base_num_query_heads\":32,\"base_num_kv_heads\":8,\"base_mlp_dim\":14336,"      \
    "\"base_num_decoder_layers\":32,\"vocab_size\":32000"

static json_t *answer_of(enum adv_request_kind kind, const char *model, const char *config)
{
    struct adv_text text;
    adv_text_init(&text, 1 << 16);
    adv_text_format(&text,
                    "{\"model\":%s,\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"
                    "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":2048%s}}",
                    model, config);
    json_t *answer = answer_to(kind, text.data);
    adv_text_free(&text);
    return answer;
}

static json_t *estimate(const char *block, const char *key)
{
    struct adv_text model;
    adv_text_init(&model, 1 << 16);
    adv_text_format(&model, "{" DIMS ",\"decoder_block\":\"%s\"%s}", block, key);
    json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, model.data, "");
    adv_text_free(&model);
    return answer;
}

static double number_of(const json_t *answer, const char *member)
{
    return json_number_value(json_object_get(answer, member));
}

/* What models/llama2.py and others do not hand to their layers takes no time and no memory. */
static void a_key_that_the_block_ignores_is_said_and_not_priced(void **state)
{
    (void)state;
    static const struct {
        const char *block, *key, *value;
    } rows[] = {
        {"llama2", "use_qk_norm", "true"},
        {"llama2", "attention_bias", "true"},
        {"llama2", "mlp_bias", "true"},
        {"qwen3", "attention_bias", "true"},
        {"mistral", "sliding_window_size", "1024"},
        {"qwen3", "attn_logits_soft_cap", "50"},
        {"qwen2", "first_num_dense_layers", "1"},
        {"mistral", "use_qk_norm", "true"},
        {"gemma", "interleave_moe_layer_step", "2"},
        {"llama2", "chunk_attn_window_size", "1024"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char key[64], pointer[64];
        (void)snprintf(key, sizeof key, ",\"%s\":%s", rows[i].key, rows[i].value);
        (void)snprintf(pointer, sizeof pointer, "/model/%s", rows[i].key);
        json_t *without = estimate(rows[i].block, ""), *with = estimate(rows[i].block, key);
        const char *said = adv_json_warning(with, "ignored-key");
        if (!said || !strstr(said, rows[i].key) || !strstr(said, rows[i].block))
            fail_msg("%s %s: %s", rows[i].block, rows[i].key, said ? said : "no warning");
        assert_null(adv_json_warning(without, "ignored-key"));
        assert_close(number_of(with, "step_time_s"), number_of(without, "step_time_s"), 0);
        assert_close(number_of(with, "hbm_bytes_per_device"), number_of(without, "hbm_bytes_per_device"), 0);
        json_decref(without);
        json_decref(with);
    }
}

static void a_key_that_the_block_reads_is_priced_without_a_word(void **state)
{
    (void)state;
    static const struct {
        const char *block, *key;
    } rows[] = {{"qwen3", ",\"use_qk_norm\":true"}, {"qwen2", ",\"attention_bias\":true"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *without = estimate(rows[i].block, ""), *with = estimate(rows[i].block, rows[i].key);
        assert_null(adv_json_warning(with, "ignored-key"));
        assert_true(number_of(with, "hbm_bytes_per_device") > number_of(without, "hbm_bytes_per_device"));
        json_decref(without);
        json_decref(with);
    }
}

/* Gemma 3 has the norms, gpt3 the biases, whatever the keys say; a default changes nothing anywhere. */
static void a_key_that_changes_nothing_is_passed_over(void **state)
{
    (void)state;
    static const struct {
        const char *block, *keys;
    } rows[] = {{"gemma4", ",\"use_qk_norm\":true,\"sliding_window_size\":512"},
                {"llama2", ",\"use_qk_norm\":false,\"sliding_window_size\":0"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *answer = estimate(rows[i].block, rows[i].keys);
        const char *said = adv_json_warning(answer, "ignored-key");
        if (said) fail_msg("%s: %s", rows[i].block, said);
        json_decref(answer);
    }
    json_t *answer = answer_of(ADV_REQUEST_ESTIMATE, "\"gpt3-6b\"",
                               ",\"attention_bias\":true,\"mlp_bias\":true,\"override_model_config\":true");
    assert_null(adv_json_warning(answer, "ignored-key"));
    json_decref(answer);
}

/* A recipe that names a model and sets such a key over it. */
static void a_key_over_a_named_model_is_said_where_it_stands(void **state)
{
    (void)state;
    json_t *answer =
        answer_of(ADV_REQUEST_LINT, "\"mistral-7b\"", ",\"model_name\":\"mistral-7b\",\"use_qk_norm\":true");
    (void)json_object_set(answer, "warnings", json_object_get(answer, "findings"));
    const char *said = adv_json_warning(answer, "ignored-key");
    assert_non_null(said);
    assert_non_null(strstr(said, "use_qk_norm"));
    json_decref(answer);
}

/* The search's model does not have it; the baseline alone does. One that the pins have is said of them. */
static void a_key_of_the_baseline_alone_is_said_where_it_stands(void **state)
{
    (void)state;
    static const char request[] =
        "{\"model\":\"mistral-7b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x1\"},"
        "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":8},\"search\":{\"top_k\":1},"
        "%s\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":4,\"use_qk_norm\":true}}}";
    static const char *const rows[][2] = {{"", "/baseline/config/use_qk_norm"},
                                          {"\"pins\":{\"use_qk_norm\":true},", "/pins/use_qk_norm"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        int count = 0;
        (void)snprintf(text, sizeof text, request, rows[i][0]);
        json_t *answer = answer_to(ADV_REQUEST_ADVISE, text);
        for (struct adv_json_walk said = {.in = json_object_get(answer, "warnings")}; adv_json_next(&said);) {
            if (strcmp(json_string_value(json_object_get(said.value, "code")), "ignored-key") != 0) continue;
            assert_string_equal(json_string_value(json_object_get(said.value, "pointer")), rows[i][1]);
            count++;
        }
        assert_int_equal(count, 1);
        json_decref(answer);
    }
}

/* MaxText's own files set no key in vain. */
static void no_model_of_the_catalog_has_a_key_that_its_block_ignores(void **state)
{
    (void)state;
    const char *unread[ADV_MODEL_UNREAD_MAX];
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        const struct adv_model_keys *keys = adv_catalog_model_keys(catalog, name);
        if (keys && adv_model_unread(keys, unread) > 0) fail_msg("%s: %s", name, unread[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_the_block_ignores_is_said_and_not_priced),
        cmocka_unit_test(a_key_that_the_block_reads_is_priced_without_a_word),
        cmocka_unit_test(a_key_that_changes_nothing_is_passed_over),
        cmocka_unit_test(a_key_over_a_named_model_is_said_where_it_stands),
        cmocka_unit_test(a_key_of_the_baseline_alone_is_said_where_it_stands),
        cmocka_unit_test(no_model_of_the_catalog_has_a_key_that_its_block_ignores),
    };
    return run_group_with_catalog(tests);
}
