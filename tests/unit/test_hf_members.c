/* Members of a Hugging Face configuration that the file leaves out, or that are left out of it. */
#include "tests/unit/check.h"

#include <stdio.h>
#include <string.h>

#include "engine/json/decode_model.h"
#include "tests/unit/catalog_fixture.h"

static adv_err err, warnings;
static struct adv_model model;

/* `overrides`: keys of the request's config; NULL: none. */
static adv_code decode_over(const json_t *root, const json_t *overrides)
{
    adv_err_init(&err);
    adv_err_init(&warnings);
    return adv_decode_model_over(catalog, root, "/model", overrides, "/config", &model, &err, &warnings);
}

static bool has_warning(const char *pointer, const char *text)
{
    for (int i = 0; i < warnings.count; i++)
        if (strcmp(warnings.findings[i].pointer, pointer) == 0 && strstr(warnings.findings[i].detail, text))
            return true;
    return false;
}

static json_t *settings_of(const json_t *config)
{
    struct adv_model_keys keys;
    json_t *settings = json_object();
    adv_err_init(&err);
    assert_int_equal(adv_decode_hf_config(config, "", &keys, &err, NULL), ADV_OK);
    adv_decode_hf_settings(config, &keys, settings);
    return settings;
}

/* A file may say the class alone, and the library writes no topk_method: its class always has the bias. */
static void the_class_of_a_model_says_what_its_type_does(void **state)
{
    (void)state;
    json_t *config = json_load_file("tests/data/hf/deepseek3-671b.json", 0, NULL);
    json_t *whole = settings_of(config);
    (void)json_object_del(config, "model_type");
    (void)json_object_del(config, "topk_method");
    json_t *by_class = settings_of(config);
    assert_true(json_equal(whole, by_class));
    assert_string_equal(json_string_value(json_object_get(by_class, "model_name")), "deepseek3-671b");
    assert_true(json_is_true(json_object_get(by_class, "routed_bias")));
    json_decref(whole);
    json_decref(by_class);
    json_decref(config);
}

static void attention_dropout_is_said_to_be_left_out(void **state)
{
    (void)state;
    static const char *const files[] = {"llama3.1-8b", "gemma3-4b", "gpt2"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[64], pointer[64];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", files[i]);
        json_t *config = json_load_file(path, 0, NULL), *text = json_object_get(config, "text_config");
        const char *member = strcmp(files[i], "gpt2") == 0 ? "attn_pdrop" : "attention_dropout";
        json_t *root = json_pack("{s:o}", "hf_config", config);
        (void)snprintf(pointer, sizeof pointer, "/model/hf_config/%s%s", text ? "text_config/" : "", member);
        (void)json_object_set_new(text ? text : config, member, json_real(0.0));
        assert_int_equal(decode_over(root, NULL), ADV_OK);
        assert_false(has_warning(pointer, ""));
        (void)json_object_set_new(text ? text : config, member, json_real(0.1));
        assert_int_equal(decode_over(root, NULL), ADV_OK);
        assert_true(has_warning(pointer, "0.1 is left out"));
        json_decref(root);
    }
    json_t *plain = json_pack("{s:{s:s,s:i,s:i,s:i,s:i,s:i,s:f}}", "hf_config", "model_type", "granite",
                              "hidden_size", 2048, "num_attention_heads", 32, "num_hidden_layers", 24,
                              "vocab_size", 49152, "intermediate_size", 8192, "attention_dropout", 0.25);
    assert_int_equal(decode_over(plain, NULL), ADV_OK);
    assert_true(has_warning("/model/hf_config/attention_dropout", "0.25 is left out"));
    json_decref(plain);
}

/* Of a file that leaves out what equals the library's defaults; these are not what follows from the others.
 */
static void sizes_that_a_file_leaves_out_are_those_of_the_library(void **state)
{
    (void)state;
    static const struct {
        const char *file, *member;
        int64_t value;
    } rows[] = {{"qwen3-8b", "head_dim", 128},
                {"gemma2-9b", "head_dim", 256},
                {"gpt-oss-20b", "head_dim", 64},
                {"mistral-7b", "num_key_value_heads", 8},
                {"mixtral-8x7b", "num_key_value_heads", 8}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128], pointer[64];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", rows[i].file);
        (void)snprintf(pointer, sizeof pointer, "/model/hf_config/%s", rows[i].member);
        json_t *config = json_load_file(path, 0, NULL);
        (void)json_object_del(config, rows[i].member);
        (void)json_object_set_new(config, "num_attention_heads", json_integer(64));
        (void)json_object_set_new(config, "hidden_size", json_integer(2048));
        json_t *root = json_pack("{s:o}", "hf_config", config);
        assert_int_equal(decode_over(root, NULL), ADV_OK);
        const struct adv_layer *layer = &model.layers[0];
        assert_int_equal(strcmp(rows[i].member, "head_dim") ? layer->kv_heads : layer->head_dim_qk,
                         rows[i].value);
        assert_true(has_warning(pointer, "is assumed"));
        json_decref(root);
    }
}

/* Soft caps and biases are those of the file; what it leaves out the library has, and null is none. */
static void caps_and_biases_are_read_of_every_family_that_has_them(void **state)
{
    (void)state;
    static const struct {
        const char *file, *member;
        const char *value; /* NULL: left out */
        double cap;
    } rows[] = {{"gemma2-9b", "attn_logit_softcapping", NULL, 50},
                {"gemma2-9b", "attn_logit_softcapping", "null", 0},
                {"gemma3-27b", "attn_logit_softcapping", NULL, 0},
                {"gemma3-27b", "attn_logit_softcapping", "50.0", 50}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", rows[i].file);
        json_t *config = json_load_file(path, 0, NULL), *text = json_object_get(config, "text_config");
        json_t *decoder = text ? text : config;
        (void)json_object_del(decoder, rows[i].member);
        if (rows[i].value)
            (void)json_object_set_new(decoder, rows[i].member,
                                      json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        json_t *root = json_pack("{s:o}", "hf_config", config);
        assert_int_equal(decode_over(root, NULL), ADV_OK);
        assert_close(model.attention_soft_cap, rows[i].cap, 0);
        json_decref(root);
    }
    json_t *config = json_load_file("tests/data/hf/gpt-oss-20b.json", 0, NULL);
    json_t *root = json_pack("{s:o}", "hf_config", config);
    assert_int_equal(decode_over(root, NULL), ADV_OK);
    assert_true(model.layers[0].has_attention_bias);
    (void)json_object_set_new(config, "attention_bias", json_false());
    assert_int_equal(decode_over(root, NULL), ADV_OK);
    assert_false(model.layers[0].has_attention_bias);
    json_decref(root);
}

/* An embedding model that looks both ways is no decoder of MaxText. */
static void attention_to_both_sides_is_said_to_be_another_model(void **state)
{
    (void)state;
    json_t *config = json_load_file("tests/data/hf/gemma3-27b.json", 0, NULL);
    json_t *root = json_pack("{s:o}", "hf_config", config);
    static const char pointer[] = "/model/hf_config/text_config/use_bidirectional_attention";
    assert_int_equal(decode_over(root, NULL), ADV_OK);
    assert_false(has_warning(pointer, ""));
    (void)json_object_set_new(json_object_get(config, "text_config"), "use_bidirectional_attention",
                              json_true());
    assert_int_equal(decode_over(root, NULL), ADV_OK);
    assert_true(has_warning(pointer, "earlier tokens only"));
    json_decref(root);
}

/* Layers that predict tokens behind the next are in no decoder of the library. */
static void multi_token_prediction_that_is_left_out_is_said(void **state)
{
    (void)state;
    json_t *config = json_load_file("tests/data/hf/deepseek3-671b.json", 0, NULL);
    json_t *root = json_pack("{s:o}", "hf_config", config);
    static const char pointer[] = "/model/hf_config/num_nextn_predict_layers";
    (void)json_object_set_new(config, "num_nextn_predict_layers", json_integer(0));
    assert_int_equal(decode_over(root, NULL), ADV_OK);
    assert_false(has_warning(pointer, ""));
    (void)json_object_set_new(config, "num_nextn_predict_layers", json_integer(1));
    assert_int_equal(decode_over(root, NULL), ADV_OK);
    assert_true(has_warning(pointer, "left out"));
    assert_int_equal(model.mtp_layers, 0);
    json_t *overrides = json_pack("{s:i}", "mtp_num_layers", 1);
    assert_int_equal(decode_over(root, overrides), ADV_OK);
    assert_false(has_warning(pointer, ""));
    assert_int_equal(model.mtp_layers, 1);
    json_decref(overrides);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_class_of_a_model_says_what_its_type_does),
        cmocka_unit_test(sizes_that_a_file_leaves_out_are_those_of_the_library),
        cmocka_unit_test(multi_token_prediction_that_is_left_out_is_said),
        cmocka_unit_test(caps_and_biases_are_read_of_every_family_that_has_them),
        cmocka_unit_test(attention_dropout_is_said_to_be_left_out),
        cmocka_unit_test(attention_to_both_sides_is_said_to_be_another_model),
    };
    return run_group_with_catalog(tests);
}
