#include "tests/unit/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/json/decode_model.h"
#include "tests/unit/catalog_fixture.h"

static adv_err err, warnings;
static struct adv_model model;

static adv_code decode_json(const json_t *root)
{
    adv_err_init(&err);
    adv_err_init(&warnings);
    return adv_decode_model_over(catalog, root, "/model", NULL, "", &model, &err, &warnings);
}

static adv_code decode(const char *text)
{
    json_t *root = json_loads(text, JSON_DECODE_ANY, NULL);
    assert_non_null(root);
    adv_code code = decode_json(root);
    json_decref(root);
    return code;
}

/* {"hf_config": …} of a file in tests/data/hf. */
static adv_code decode_hf_file(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", name);
    json_t *root = json_pack("{s:o}", "hf_config", json_load_file(path, 0, NULL));
    assert_non_null(root);
    adv_code code = decode_json(root);
    json_decref(root);
    return code;
}

static bool has_finding(const adv_err *list, const char *pointer, const char *text)
{
    for (int i = 0; i < list->count; i++)
        if (strcmp(list->findings[i].pointer, pointer) == 0 &&
            (strstr(list->findings[i].detail, text) || strstr(list->findings[i].hint, text)))
            return true;
    return false;
}

static void a_catalog_name_gives_the_catalog_model(void **state)
{
    (void)state;
    assert_int_equal(decode("\"llama3.1-70b\""), ADV_OK);
    assert_string_equal(model.maxtext_name, "llama3.1-70b");
    assert_int_equal(model.layers_count, 80);
    assert_int_equal(decode("\"llama3.1-8b-Instruct\""), ADV_OK); /* as MaxText reads it */
    assert_string_equal(model.maxtext_name, "llama3.1-8b");
    assert_int_equal(decode("\"llama3.1-7b\""), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model", "did you mean"));
    assert_int_equal(decode("\"meta-llama/Llama-3.1-8B\""), ADV_E_INVALID); /* as its hub writes it */
    assert_true(has_finding(&err, "/model", "did you mean `llama3.1-8b`?"));
    assert_int_equal(decode("17"), ADV_E_INVALID);
}

static void maxtext_keys_give_the_same_model_as_the_name(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"base_emb_dim\": 4096, \"base_num_query_heads\": 32, \"base_num_kv_heads\": 8,"
                            " \"base_num_decoder_layers\": 32, \"base_mlp_dim\": 14336, \"head_dim\": 128,"
                            " \"mlp_activations\": [\"silu\", \"linear\"], \"vocab_size\": 128256, "
                            "\"decoder_block\": \"llama2\","
                            " \"name\": \"my model\"}"),
                     ADV_OK);
    assert_string_equal(model.name, "my model");
    assert_string_equal(model.maxtext_name, "");
    assert_close(adv_model_params(&model).total, 8030261248, 0);
    assert_int_equal(warnings.count, 0);
}

static void all_missing_dims_are_reported_at_once(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"head_dim\": 128, \"base_mlp_dim\": \"wide\"}"), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/base_mlp_dim", "a whole number"));
    const char *missing[] = {"base_emb_dim", "base_num_query_heads", "base_num_kv_heads",
                             "base_num_decoder_layers", "vocab_size"};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        char pointer[ADV_LIMIT_POINTER];
        assert_true(has_finding(&err, adv_json_pointer(pointer, "/model", missing[i]), "required"));
    }
}

static void an_object_with_a_catalog_name_alone_is_told_how_to_write_it(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"name\": \"llama3.1-8b\"}"), ADV_E_INVALID);
    assert_int_equal(err.count, 1);
    assert_true(has_finding(&err, "/model", "write \"model\": \"llama3.1-8b\""));
    assert_int_equal(decode("{\"name\": \"our own\"}"), ADV_E_INVALID); /* its dims are missing */
    assert_true(has_finding(&err, "/model/base_emb_dim", "required"));
}

#define DENSE                                                                                                \
    "\"base_emb_dim\": 1024, \"base_num_query_heads\": 8, \"base_num_kv_heads\": 8, \"base_mlp_dim\": 4096," \
    "\"base_num_decoder_layers\": 4, \"vocab_size\": 32000"

static void unknown_members_are_warnings_with_the_nearest_key(void **state)
{
    (void)state;
    assert_int_equal(decode("{" DENSE ", \"base_mlp_dims\": 1, \"capacity_factor\": 1.5}"), ADV_OK);
    assert_int_equal(warnings.count, 2);
    assert_true(has_finding(&warnings, "/model/base_mlp_dims", "base_mlp_dim"));
    assert_true(has_finding(&warnings, "/model/capacity_factor", "config"));
}

static void dims_that_do_not_go_together_are_refused_with_numbers(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"base_emb_dim\": 1024, \"base_num_query_heads\": 8, \"base_num_kv_heads\": 3, "
                            "\"base_mlp_dim\": 4096,"
                            "\"base_num_decoder_layers\": 4, \"vocab_size\": 32000, \"num_experts\": 4, "
                            "\"num_experts_per_tok\": 8,"
                            "\"decoder_block\": \"gemma3\"}"),
                     ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/base_num_kv_heads", "8 is not a multiple of base_num_kv_heads 3"));
    assert_true(has_finding(&err, "/model/sliding_window_size", "required"));
    assert_true(has_finding(&err, "/model/num_experts", "has no experts"));
    assert_true(has_finding(&err, "/model/num_experts_per_tok", "8 exceeds num_experts 4"));
    assert_int_equal(decode("{" DENSE ", \"global_parameter_scale\": 3}"), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/global_parameter_scale", "3 is not a power of two"));
    assert_int_equal(decode("{" DENSE ", \"decoder_block\": \"gema3\"}"), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/decoder_block", "gemma3"));
}

/* A name in an object is a label: whoever changes a key of a catalogued model is told how. */
#define LAYERS(block, kv)                                                                                    \
    "{\"base_emb_dim\":1024,\"base_num_query_heads\":8,\"base_num_kv_heads\":" kv ",\"base_mlp_dim\":4096,"  \
    "\"base_num_decoder_layers\":4,\"vocab_size\":32000,\"decoder_block\":\"" block "\""

/* What MaxText's layers do not build with is no model. */
static void a_block_has_the_attention_it_is_made_for(void **state)
{
    (void)state;
    static const struct {
        const char *model, *pointer;
    } rows[] = {
        {LAYERS("llama2", "8") ",\"attention_type\":\"mla\"}", "/model/attention_type"},
        {LAYERS("qwen3_moe", "8") ",\"num_experts\":8,\"attention_type\":\"mla\"}", "/model/attention_type"},
        {LAYERS("deepseek", "8") ",\"attention_type\":\"global\"}", "/model/attention_type"},
        {LAYERS("deepseek", "8") "}", "/model/attention_type"},
        {LAYERS("gpt3", "2") "}", "/model/base_num_kv_heads"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(decode(rows[i].model), ADV_E_INVALID);
        assert_int_equal(err.count, 1);
        assert_string_equal(err.findings[0].pointer, rows[i].pointer);
    }
    assert_int_equal(decode(LAYERS("deepseek", "8") ",\"attention_type\":\"mla\"}"), ADV_OK);
    assert_int_equal(decode(LAYERS("gpt3", "8") "}"), ADV_OK);
}

static void shared_experts_count_where_the_block_has_them(void **state)
{
    (void)state;
#define EXPERTS ",\"num_experts\":8,\"num_experts_per_tok\":2,\"shared_experts\":2"
    static const char *const without[] = {LAYERS("mixtral", "8") EXPERTS "}",
                                          LAYERS("qwen3_moe", "8") EXPERTS "}"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(decode(without[i]), ADV_OK);
        assert_int_equal(model.layers[0].shared_experts, 0);
        assert_int_equal(model.layers[0].shared_mlp_dim, 0);
        assert_true(has_finding(&warnings, "/model/shared_experts", "MaxText ignores"));
    }
    assert_int_equal(decode(LAYERS("deepseek", "8") EXPERTS ",\"attention_type\":\"mla\"}"), ADV_OK);
    assert_int_equal(model.layers[0].shared_experts, 2);
    assert_int_equal(warnings.count, 0);
    assert_int_equal(decode(LAYERS("qwen3_next", "8") EXPERTS "}"), ADV_OK);
    assert_int_equal(model.layers[0].shared_experts, 1);
    assert_true(has_finding(&warnings, "/model/shared_experts", "one shared expert"));
#undef EXPERTS
}

static void a_catalogued_name_over_a_few_keys_is_explained_once(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"name\": \"llama3.1-8b\", \"base_num_decoder_layers\": 16}"), ADV_E_INVALID);
    assert_int_equal(err.count, 1);
    assert_true(has_finding(&err, "/model",
                            "\"model\": \"llama3.1-8b\", and put base_num_decoder_layers into config"));
    assert_true(has_finding(&err, "/model", "but a label"));
    assert_int_equal(decode("{\"name\": \"my-8b\", \"base_num_decoder_layers\": 16}"), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/base_emb_dim", "required"));
    assert_int_equal(decode("{\"name\": \"llama3.1-8b\", \"base_emb_dim\": 4096}"), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/vocab_size", "required"));
    assert_int_equal(decode("{\"name\": \"llama3.1-8b\", " DENSE "}"), ADV_OK);
    assert_int_equal(decode("{\"model_name\": \"llama3.1-8b\"}"), ADV_E_INVALID);
    assert_int_equal(err.count, 1);
    assert_true(has_finding(&err, "/model", "\"model\": \"llama3.1-8b\""));
}

/* Sizes of heads that no kernel is priced for are told at the key that says them. */
static void heads_beyond_pricing_are_refused_at_their_key(void **state)
{
    (void)state;
    static const struct {
        const char *model, *pointer;
    } rows[] = {
        {LAYERS("llama2", "8") ",\"head_dim\":5000}", "/model/head_dim"},
        {LAYERS("llama2", "8") ",\"base_num_query_heads\":65536,\"global_parameter_scale\":8}",
         "/model/global_parameter_scale"},
        {LAYERS("deepseek", "8") ",\"attention_type\":\"mla\",\"v_head_dim\":5000}", "/model/v_head_dim"},
        {LAYERS("deepseek", "8") ",\"attention_type\":\"mla\",\"qk_nope_head_dim\":4096}",
         "/model/qk_nope_head_dim"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *root = json_loads(rows[i].model, 0, NULL); /* of a key that is there twice the last counts */
        assert_int_not_equal(decode_json(root), ADV_OK);
        json_decref(root);
        assert_int_equal(err.count, 1);
        assert_string_equal(err.findings[0].pointer, rows[i].pointer);
    }
    assert_int_equal(decode(LAYERS("llama2", "8") ",\"head_dim\":4096}"), ADV_OK);
}

static void experts_without_a_block_name_are_mixtral(void **state)
{
    (void)state;
    assert_int_equal(decode("{" DENSE ", \"num_experts\": 8, \"num_experts_per_tok\": 2}"), ADV_OK);
    assert_int_equal(model.decoder, ADV_DECODER_MIXTRAL);
    assert_int_equal(model.layers[0].experts, 8);
    assert_int_equal(model.layers[0].moe_mlp_dim, 4096);
}

static void hf_configs_give_the_catalog_models(void **state)
{
    (void)state;
    const char *names[] = {"llama3.1-8b",   "mistral-7b",     "mixtral-8x7b", "qwen2.5-7b",
                           "qwen3-8b",      "qwen3-30b-a3b",  "gemma2-9b",    "gemma3-27b",
                           "deepseek2-16b", "deepseek3-671b", "gpt-oss-20b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct adv_model expected;
        adv_err_init(&err);
        assert_int_equal(adv_catalog_model(catalog, names[i], &expected, &err), ADV_OK);
        if (decode_hf_file(names[i]) != ADV_OK) fail_msg("%s: %s", names[i], err.findings[0].detail);
        assert_int_equal(model.decoder, expected.decoder);
        assert_int_equal(model.layer_kinds_count, expected.layer_kinds_count);
        assert_close(adv_model_params(&model).total, adv_model_params(&expected).total, 0);
        assert_close(adv_model_params(&model).active, adv_model_params(&expected).active, 0);
        assert_close(adv_model_flops(&model, 1, 8192, ADV_FLOPS_CAUSAL_HALF).total,
                     adv_model_flops(&expected, 1, 8192, ADV_FLOPS_CAUSAL_HALF).total, 0);
    }
}

/* gpt2: 124 million; gpt-neox: 20.5 billion (their makers' counts). */
/* The value of a key among those a model was decoded to, else MaxText's default; a new reference. */
static json_t *value_of(const struct adv_pin *keys, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(keys[i].key, name) == 0) return json_loads(keys[i].value_json, JSON_DECODE_ANY, NULL);
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    return key ? json_loads(key->default_json, JSON_DECODE_ANY, NULL) : NULL;
}

static bool is_same(const json_t *one, const json_t *other)
{
    if (json_is_number(one) && json_is_number(other))
        return fabs(json_number_value(one) - json_number_value(other)) < 1e-9;
    return json_equal((json_t *)(uintptr_t)one, (json_t *)(uintptr_t)other);
}

/* Every key of MaxText's own file, but for pictures and the tokenizer. */
static void assert_says(const struct adv_pin *keys, int count, const char *members_json,
                        const char *model_name)
{
    json_t *members = json_loads(members_json, 0, NULL);
    const char *name = NULL;
    json_t *wanted = NULL;
    json_object_foreach(members, name, wanted)
    {
        if (strstr(name, "tokenizer") || strstr(name, "image") || strstr(name, "vision")) continue;
        json_t *got = value_of(keys, count, name);
        if (!is_same(got, wanted)) fail_msg("%s: %s is %s", model_name, name, got ? "another" : "missing");
        json_decref(got);
    }
    json_decref(members);
}

static void hf_configs_come_out_as_maxtexts_own_files(void **state)
{
    (void)state;
    static const char *const names[] = {"llama3.1-8b",   "mistral-7b",  "mixtral-8x7b",  "qwen2.5-7b",
                                        "qwen3-8b",      "gemma2-9b",   "qwen3-30b-a3b", "gemma3-27b",
                                        "deepseek2-16b", "gpt-oss-20b", "deepseek3-671b"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", names[i]);
        json_t *root = json_pack("{s:o}", "hf_config", json_load_file(path, 0, NULL));
        struct adv_arena arena;
        adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
        const struct adv_pin *keys = NULL;
        int count = 0;
        assert_int_equal(adv_decode_model_given(root, &arena, &keys, &count), ADV_OK);
        const struct adv_catalog_model *row = adv_catalog_model_info(catalog, names[i]);
        assert_says(keys, count, row->keys_json, names[i]);
        assert_says(keys, count, row->pins_json, names[i]);
        adv_arena_free(&arena);
        json_decref(root);
    }
}

static void what_maxtexts_blocks_cannot_express_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *file, *member, *value;
    } rows[] = {{"qwen3-30b-a3b", "decoder_sparse_step", "2"},
                {"qwen3-30b-a3b", "mlp_only_layers", "[0, 1]"},
                {"deepseek3-671b", "moe_layer_freq", "2"},
                {"llama3.1-8b", "mlp_bias", "true"},
                {"gpt-oss-20b", "layer_types", "[\"sliding_attention\", \"sliding_attention\"]"},
                {"gemma2-9b", "layer_types", "[\"full_attention\", \"sliding_attention\"]"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128], pointer[128];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", rows[i].file);
        (void)snprintf(pointer, sizeof pointer, "/model/hf_config/%s", rows[i].member);
        json_t *config = json_load_file(path, 0, NULL);
        (void)json_object_set_new(config, rows[i].member, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        json_t *root = json_pack("{s:o}", "hf_config", config);
        assert_int_not_equal(decode_json(root), ADV_OK);
        assert_true(has_finding(&err, pointer, "MaxText's"));
        json_decref(root);
    }
}

static void a_rotary_scaling_that_maxtext_lacks_is_said(void **state)
{
    (void)state;
    json_t *config = json_load_file("tests/data/hf/llama3.1-8b.json", 0, NULL);
    json_t *scaling = json_object_get(config, "rope_scaling");
    (void)json_object_set_new(scaling, "factor", json_real(32));
    json_t *root = json_pack("{s:o}", "hf_config", config);
    assert_int_equal(decode_json(root), ADV_OK);
    assert_true(has_finding(&warnings, "/model/hf_config/rope_scaling", "the config asks for 32"));
    (void)json_object_set_new(scaling, "rope_type", json_string("longrope"));
    assert_int_equal(decode_json(root), ADV_OK);
    assert_true(has_finding(&warnings, "/model/hf_config/rope_scaling", "longrope"));
    /* as the library writes it today */
    (void)json_object_set(config, "rope_parameters", scaling);
    (void)json_object_del(config, "rope_scaling");
    assert_int_equal(decode_json(root), ADV_OK);
    assert_true(has_finding(&warnings, "/model/hf_config/rope_parameters", "longrope"));
    json_decref(root);
}

/* MaxText's llama2, mistral, mixtral, gemma and qwen3 blocks do not read attention_bias. */
static void biases_that_a_block_does_not_build_are_said(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool said;
    } rows[] = {{"llama3.1-8b", true}, {"qwen3-8b", true}, {"qwen2.5-7b", false}, {"gpt-oss-20b", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "tests/data/hf/%s.json", rows[i].file);
        json_t *config = json_load_file(path, 0, NULL);
        (void)json_object_set_new(config, "attention_bias", json_true());
        json_t *root = json_pack("{s:o}", "hf_config", config);
        assert_int_equal(decode_json(root), ADV_OK);
        assert_int_equal(has_finding(&warnings, "/model/hf_config/attention_bias", "has no biases"),
                         rows[i].said);
        assert_int_equal(model.layers[0].has_attention_bias, !rows[i].said);
        json_decref(root);
    }
}

static json_t *settings_of(const json_t *config)
{
    struct adv_model_keys keys;
    json_t *settings = json_object();
    adv_err_init(&err);
    adv_err_init(&warnings);
    assert_int_equal(adv_decode_hf_config(config, "", &keys, &err, &warnings), ADV_OK);
    adv_decode_hf_settings(config, &keys, settings);
    return settings;
}

/* Newer versions of transformers write the rotary embedding of each kind of layer by itself. */
static void both_spellings_of_a_rotary_embedding_train_one_model(void **state)
{
    (void)state;
    json_t *config = json_load_file("tests/data/hf/gemma3-27b.json", 0, NULL);
    json_t *text = json_object_get(config, "text_config");
    (void)json_object_set_new(text, "rope_theta", json_real(2e6));
    (void)json_object_set_new(text, "rope_local_base_freq", json_real(20000));
    json_t *before = settings_of(config);
    (void)json_object_del(text, "rope_theta");
    (void)json_object_del(text, "rope_local_base_freq");
    (void)json_object_del(text, "rope_scaling");
    (void)json_object_set_new(text, "rope_parameters",
                              json_pack("{s:{s:s, s:f, s:f}, s:{s:s, s:f}}", "full_attention", "rope_type",
                                        "linear", "factor", 8.0, "rope_theta", 2e6, "sliding_attention",
                                        "rope_type", "default", "rope_theta", 20000.0));
    json_t *after = settings_of(config);
    assert_true(json_equal(before, after));
    assert_close(json_number_value(json_object_get(after, "rope_linear_scaling_factor")), 8, 0);
    json_decref(before);
    json_decref(after);
    json_decref(config);
}

/* Without a scaling in the file MaxText's default lengths, 163840 over 4096, would scale the softmax. */
static void latent_attention_without_a_scaling_has_none(void **state)
{
    (void)state;
    json_t *config = json_load_file("tests/data/hf/deepseek3-671b.json", 0, NULL);
    json_t *scaled = settings_of(config);
    assert_close(json_number_value(json_object_get(scaled, "original_max_position_embeddings")), 4096, 0);
    assert_close(json_number_value(json_object_get(scaled, "max_position_embeddings")), 163840, 0);
    (void)json_object_set_new(config, "rope_scaling", json_null());
    (void)json_object_set_new(config, "max_position_embeddings", json_integer(8192));
    json_t *plain = settings_of(config);
    assert_string_equal(json_string_value(json_object_get(plain, "rope_type")), "default");
    assert_close(json_number_value(json_object_get(plain, "original_max_position_embeddings")), 8192, 0);
    assert_close(json_number_value(json_object_get(plain, "max_position_embeddings")), 8192, 0);
    json_decref(scaled);
    json_decref(plain);
    json_decref(config);
}

/* What MaxText's layers are not is priced, and no command is made of it. */
static void what_maxtext_would_train_otherwise_is_without_maxtext(void **state)
{
    (void)state;
    assert_int_equal(decode_hf_file("gpt2"), ADV_OK);
    assert_false(model.without_maxtext);
    assert_int_equal(decode_hf_file("gpt-neox-20b"), ADV_OK);
    assert_true(model.without_maxtext);
    assert_true(has_finding(&warnings, "/model/hf_config/model_type", "rotary"));
    static const char *const names[] = {"relu2", "quick_gelu"};
    for (int i = 0; i < 2; i++) {
        json_t *config = json_load_file("tests/data/hf/llama3.1-8b.json", 0, NULL);
        (void)json_object_set_new(config, "hidden_act", json_string(names[i]));
        json_t *root = json_pack("{s:o}", "hf_config", config);
        assert_int_equal(decode_json(root), ADV_OK);
        assert_true(model.without_maxtext);
        assert_true(has_finding(&warnings, "/model/hf_config/hidden_act", names[i]));
        struct adv_arena arena;
        adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
        const struct adv_pin *keys = NULL;
        int count = 1;
        assert_int_equal(adv_decode_model_given(root, &arena, &keys, &count), ADV_OK);
        assert_int_equal(count, 0);
        adv_arena_free(&arena);
        json_decref(root);
    }
    assert_int_equal(decode("{" DENSE ", \"mlp_activations\": [\"relu2\", \"linear\"]}"), ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/mlp_activations", "relu2"));
}

/* MaxText takes the scale of their queries from the name of its model. */
static void gemma3_layers_need_a_name_of_maxtexts(void **state)
{
    (void)state;
    assert_int_equal(decode("{" DENSE ", \"decoder_block\": \"gemma3\", \"sliding_window_size\": 512}"),
                     ADV_OK);
    assert_true(has_finding(&warnings, "/model", "refuses the command"));
    assert_int_equal(decode("\"gemma3-4b\""), ADV_OK);
    assert_int_equal(warnings.count, 0);
    assert_int_equal(decode_hf_file("gemma3-27b"), ADV_OK);
    assert_false(has_finding(&warnings, "/model", "refuses the command"));
}

static void gpt_style_configs_have_the_advertised_size(void **state)
{
    (void)state;
    assert_int_equal(decode_hf_file("gpt2"), ADV_OK);
    assert_close(adv_model_params(&model).total, 124.44e6, 0.001);
    assert_int_equal(decode_hf_file("gpt-neox-20b"), ADV_OK);
    assert_close(adv_model_params(&model).total, 20.55e9, 0.003);
}

static void dims_a_config_leaves_out_are_assumed_and_said(void **state)
{
    (void)state;
    assert_int_equal(decode_hf_file("gemma3-4b"), ADV_OK);
    assert_true(has_finding(&warnings, "/model/hf_config/text_config/num_attention_heads", "8"));
    assert_int_equal(model.layers[0].kv_heads, 4);
    assert_int_equal(model.layers[0].head_dim_qk, 256);
    assert_close(adv_model_params(&model).total, 3.88e9, 0.003);
}

static void unknown_architectures_are_refused_by_name(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"hf_config\": {\"model_type\": \"mamba\", \"hidden_size\": 768}}"),
                     ADV_E_UNSUPPORTED);
    assert_true(has_finding(&err, "/model/hf_config/model_type", "mamba"));
    assert_true(has_finding(&err, "/model/hf_config/model_type", "gpt_neox"));
    assert_int_equal(decode("{\"hf_config\": {\"hidden_size\": 768}}"), ADV_E_INVALID);
    assert_int_equal(decode("{\"hf_config\": []}"), ADV_E_INVALID);
    assert_int_equal(decode("{\"hf_config\": {\"model_type\": \"llama\", \"num_attention_heads\": 0}}"),
                     ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/hf_config/hidden_size", "required"));
    assert_true(has_finding(&err, "/model/hf_config/vocab_size", "required"));
    assert_int_equal(
        decode("{\"hf_config\": {\"model_type\": \"gemma2\", \"hidden_size\": 64, \"num_attention_heads\": 2,"
               "\"num_hidden_layers\": 3, \"intermediate_size\": 64, \"vocab_size\": 100, "
               "\"sliding_window\": 8}}"),
        ADV_E_INVALID);
    assert_true(has_finding(&err, "/model/hf_config/num_hidden_layers", "3 is odd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_catalog_name_gives_the_catalog_model),
        cmocka_unit_test(maxtext_keys_give_the_same_model_as_the_name),
        cmocka_unit_test(all_missing_dims_are_reported_at_once),
        cmocka_unit_test(an_object_with_a_catalog_name_alone_is_told_how_to_write_it),
        cmocka_unit_test(unknown_members_are_warnings_with_the_nearest_key),
        cmocka_unit_test(dims_that_do_not_go_together_are_refused_with_numbers),
        cmocka_unit_test(a_block_has_the_attention_it_is_made_for),
        cmocka_unit_test(shared_experts_count_where_the_block_has_them),
        cmocka_unit_test(a_catalogued_name_over_a_few_keys_is_explained_once),
        cmocka_unit_test(heads_beyond_pricing_are_refused_at_their_key),
        cmocka_unit_test(experts_without_a_block_name_are_mixtral),
        cmocka_unit_test(hf_configs_give_the_catalog_models),
        cmocka_unit_test(hf_configs_come_out_as_maxtexts_own_files),
        cmocka_unit_test(what_maxtexts_blocks_cannot_express_is_refused),
        cmocka_unit_test(a_rotary_scaling_that_maxtext_lacks_is_said),
        cmocka_unit_test(biases_that_a_block_does_not_build_are_said),
        cmocka_unit_test(both_spellings_of_a_rotary_embedding_train_one_model),
        cmocka_unit_test(latent_attention_without_a_scaling_has_none),
        cmocka_unit_test(what_maxtext_would_train_otherwise_is_without_maxtext),
        cmocka_unit_test(gemma3_layers_need_a_name_of_maxtexts),
        cmocka_unit_test(gpt_style_configs_have_the_advertised_size),
        cmocka_unit_test(dims_a_config_leaves_out_are_assumed_and_said),
        cmocka_unit_test(unknown_architectures_are_refused_by_name),
    };
    return run_group_with_catalog(tests);
}
