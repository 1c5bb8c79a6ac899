#include "tests/unit/check.h"

#include <string.h>

#include "engine/spec/model_build.h"
#include "tests/unit/catalog_fixture.h"
#include "tests/unit/rows_fixture.h"

static struct adv_model model_named(const char *name)
{
    struct adv_model model;
    adv_err err;
    adv_err_init(&err);
    if (adv_catalog_model(catalog, name, &model, &err) != ADV_OK)
        fail_msg("%s: %s", name, err.findings[0].detail);
    return model;
}

static int layers_of(const struct adv_model *model, enum adv_attention_kind attention)
{
    int count = 0;
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].attention == attention) count += model->layers[i].count;
    return count;
}

static int expert_layers_of(const struct adv_model *model)
{
    int count = 0;
    for (int i = 0; i < model->layer_kinds_count; i++)
        if (model->layers[i].experts > 0) count += model->layers[i].count;
    return count;
}

static void parameters_of_all_models_are_what_maxtext_builds(void **state)
{
    (void)state;
    json_t *root = read_rows("tests/data/model_params.json");
    const json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), adv_catalog_tables(catalog)->models_count);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct adv_model model = model_named(row_text(row, 0));
        struct adv_model_params params = adv_model_params(&model);
        double expected_embedding = row_number(row, 4) + row_number(row, 11);
        const double pairs[][2] = {
            {params.total, row_number(row, 1)},
            {params.active, row_number(row, 2)},
            {params.active_matmul_per_token, row_number(row, 3)},
            {params.embedding, expected_embedding},
            {params.unembedding, row_number(row, 5)},
            {params.attention, row_number(row, 6)},
            {params.dense_ffn, row_number(row, 7)},
            {params.router, row_number(row, 8)},
            {params.routed_experts, row_number(row, 9)},
            {params.shared_experts, row_number(row, 10)},
        };
        for (size_t k = 0; k < sizeof pairs / sizeof pairs[0]; k++)
            if (fabs(pairs[k][0] - pairs[k][1]) > 0.003 * fmax(pairs[k][1], 1))
                fail_msg("%s, column %zu: %.0f, expected %.0f", model.name, k + 1, pairs[k][0], pairs[k][1]);
    }
    json_decref(root);
}

/* The reference counts no norms, mixers or per-layer embeddings here, and gemma2 by MaxText's pairs of
 * layers. */
static void the_largest_layer_is_what_maxtext_builds(void **state)
{
    (void)state;
    json_t *root = read_rows("tests/data/model_params.json");
    const json_t *rows = json_object_get(root, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        struct adv_model model = model_named(row_text(row, 0));
        double largest = 0;
        for (int k = 0; k < model.layer_kinds_count; k++) {
            struct adv_layer_params params = adv_model_layer_params(&model, &model.layers[k]);
            largest = fmax(largest, adv_layer_params_total(&params) - params.norms - params.other);
        }
        if (model.decoder == ADV_DECODER_GEMMA2) largest *= 2;
        if (fabs(largest - row_number(row, 12)) > 0.003 * row_number(row, 12))
            fail_msg("%s: %.0f, expected %.0f", model.name, largest, row_number(row, 12));
    }
    json_decref(root);
}

static void parts_add_up_to_the_total(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        struct adv_model model = model_named(adv_catalog_tables(catalog)->model_names[i]);
        struct adv_model_params p = adv_model_params(&model);
        assert_close(p.embedding + p.unembedding + p.positions + p.attention + p.dense_ffn + p.router +
                         p.routed_experts + p.shared_experts + p.norms + p.other,
                     p.total, 1e-12);
        assert_true(p.active <= p.total);
        int layers = 0;
        for (int k = 0; k < model.layer_kinds_count; k++) layers += model.layers[k].count;
        assert_int_equal(layers,
                         model.decoder == ADV_DECODER_GEMMA2 ? 2 * model.layers_count : model.layers_count);
    }
}

/* llama3.1-8b by hand: attention 2 x 4096^2 + 2 x 4096 x 1024, feed-forward 3 x 4096 x 14336, two norms. */
static void a_dense_layer_has_the_parameters_of_its_matrices(void **state)
{
    (void)state;
    struct adv_model model = model_named("llama3.1-8b");
    assert_int_equal(model.layer_kinds_count, 1);
    struct adv_layer_params params = adv_model_layer_params(&model, &model.layers[0]);
    assert_close(params.attention, 41943040, 0);
    assert_close(params.dense_ffn, 176160768, 0);
    assert_close(params.norms, 8192, 0);
    assert_close(adv_layer_params_total(&params), 218112000, 0);
}

static void local_and_global_layers_are_counted(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int window, full, chunked;
    } rows[] = {
        {"gemma2-9b", 21, 21, 0},      {"gemma3-27b", 52, 10, 0},  {"gemma3-4b", 29, 5, 0},
        {"gemma4-31b", 50, 10, 0},     {"gemma4-26b", 25, 5, 0},   {"gemma4-e2b", 28, 7, 0},
        {"gemma4-e4b", 35, 7, 0},      {"gpt-oss-20b", 12, 12, 0}, {"olmo3-32b", 48, 16, 0},
        {"llama4-17b-16e", 0, 12, 36},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct adv_model model = model_named(rows[i].name);
        assert_int_equal(layers_of(&model, ADV_ATTENTION_WINDOW), rows[i].window);
        assert_int_equal(layers_of(&model, ADV_ATTENTION_FULL), rows[i].full);
        assert_int_equal(layers_of(&model, ADV_ATTENTION_CHUNKED), rows[i].chunked);
    }
    struct adv_model next = model_named("qwen3-next-80b-a3b");
    assert_int_equal(layers_of(&next, ADV_ATTENTION_LINEAR), 36);
    assert_int_equal(layers_of(&next, ADV_ATTENTION_FULL), 12);
}

static void dense_and_expert_layers_are_counted(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int experts;
    } rows[] = {
        {"deepseek3-671b", 58},  {"kimi-k2-1t", 60},   {"llama4-17b-128e", 24}, {"llama4-17b-16e", 48},
        {"envy-switch-base", 6}, {"gpt-oss-120b", 36}, {"gemma4-26b", 30},      {"llama3.1-8b", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct adv_model model = model_named(rows[i].name);
        assert_int_equal(expert_layers_of(&model), rows[i].experts);
    }
}

static void the_last_layers_of_small_gemma4_reuse_keys_and_values(void **state)
{
    (void)state;
    struct adv_model model = model_named("gemma4-e2b");
    int reusing = 0;
    for (int i = 0; i < model.layer_kinds_count; i++) {
        const struct adv_layer *layer = &model.layers[i];
        assert_int_equal(layer->per_layer_embedding_dim, 256);
        assert_int_equal(layer->mlp_dim, layer->reuses_kv ? 12288 : 6144);
        if (layer->reuses_kv) reusing += layer->count;
        assert_int_equal(layer->head_dim_qk, layer->attention == ADV_ATTENTION_FULL ? 512 : 256);
    }
    assert_int_equal(reusing, 20);
    assert_close(model.per_layer_embedding_params, 262144.0 * 35 * 256, 0);
}

static void scan_blocks_follow_the_cycle_of_unlike_layers(void **state)
{
    (void)state;
    const struct {
        const char *name;
        int scan_block;
    } rows[] = {
        {"llama3.1-8b", 1},    {"gemma2-9b", 2},        {"gemma3-27b", 6},         {"gpt-oss-20b", 2},
        {"llama4-17b-16e", 4}, {"olmo3-7b", 4},         {"qwen3-next-80b-a3b", 4}, {"deepseek3-671b", 1},
        {"gemma4-31b", 1},     {"envy-switch-base", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(model_named(rows[i].name).layers[0].scan_block, rows[i].scan_block);
}

static void blocks_the_engine_approximates_say_so(void **state)
{
    (void)state;
    const char *approximated[] = {"deepseek4-284b", "envy-switch-base", "qwen3-custom-30b-a3b",
                                  "deepseek-custom"};
    for (size_t i = 0; i < sizeof approximated / sizeof approximated[0]; i++) {
        struct adv_model model = model_named(approximated[i]);
        assert_false(model.confident);
        assert_true(model.caveat[0] != '\0');
    }
    assert_true(model_named("llama3.1-70b").confident);
    assert_true(model_named("deepseek3-671b").confident);
}

/* MaxText splits 2^n over heads and mlp, then emb, then layers: 64 = 4 x heads, 4 x mlp, 4 x emb, 4 x layers.
 */
static void global_parameter_scale_widens_and_deepens(void **state)
{
    (void)state;
    const struct {
        int scale, heads, mlp, emb, layers;
    } rows[] = {
        {1, 8, 8192, 2560, 16},     {2, 16, 16384, 2560, 16},    {4, 16, 16384, 5120, 16},
        {8, 16, 16384, 5120, 32},   {16, 32, 32768, 5120, 32},   {32, 32, 32768, 10240, 32},
        {64, 32, 32768, 10240, 64}, {128, 64, 65536, 10240, 64},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct adv_model_keys keys;
        struct adv_model model;
        adv_model_keys_defaults(&keys);
        keys.base_emb_dim = 2560;
        keys.base_num_query_heads = keys.base_num_kv_heads = 8;
        keys.base_mlp_dim = 8192;
        keys.base_num_decoder_layers = 16;
        keys.vocab_size = 32768;
        keys.global_parameter_scale = rows[i].scale;
        assert_int_equal(adv_model_build(&keys, "/model", &model, NULL), ADV_OK);
        assert_int_equal(model.emb_dim, rows[i].emb);
        assert_int_equal(model.layers_count, rows[i].layers);
        assert_int_equal(model.layers[0].q_heads, rows[i].heads);
        assert_int_equal(model.layers[0].mlp_dim, rows[i].mlp);
    }
}

static void more_unlike_layers_than_the_table_holds_are_refused(void **state)
{
    (void)state;
    struct adv_model_keys keys;
    struct adv_model model;
    adv_err err;
    adv_err_init(&err);
    adv_model_keys_defaults(&keys);
    keys.decoder_block = ADV_DECODER_DEEPSEEK4;
    keys.base_emb_dim = keys.base_mlp_dim = 64;
    keys.base_num_query_heads = 4;
    keys.base_num_kv_heads = 1;
    keys.base_num_decoder_layers = keys.compress_ratios_count = ADV_LIMIT_LAYER_KINDS + 1;
    keys.vocab_size = 100;
    keys.q_lora_rank = keys.o_lora_rank = keys.o_groups = 4;
    keys.sliding_window_size = 16;
    for (int i = 0; i < keys.compress_ratios_count; i++) keys.compress_ratios[i] = i;
    assert_int_equal(adv_model_build(&keys, "/model", &model, &err), ADV_E_UNSUPPORTED);
    assert_string_equal(err.findings[0].pointer, "/model/compress_ratios");
}

static void narrow_experts_and_attention_are_of_one_decoder(void **state)
{
    (void)state;
    struct adv_model_keys keys;
    struct adv_model model;
    adv_err err;
    adv_err_init(&err);
    adv_model_keys_defaults(&keys);
    keys.decoder_block = ADV_DECODER_MIXTRAL;
    keys.base_emb_dim = keys.base_mlp_dim = 256;
    keys.base_num_query_heads = keys.base_num_kv_heads = 4;
    keys.base_num_decoder_layers = 2;
    keys.vocab_size = 128;
    keys.num_experts = 8;
    keys.num_experts_per_tok = 2;
    keys.attention_output_dim = 1000000; /* MaxText reads it in no other decoder */
    assert_int_equal(adv_model_build(&keys, "/model", &model, &err), ADV_OK);
    assert_int_equal(model.layers[0].attention_output_dim, 256);
    keys.moe_expert_input_dim = 128; /* the router's input then has another width than its weights */
    assert_int_equal(adv_model_build(&keys, "/model", &model, &err), ADV_E_INVALID);
    assert_string_equal(err.findings[0].pointer, "/model/moe_expert_input_dim");
    keys.moe_expert_input_dim = 256;
    assert_int_equal(adv_model_build(&keys, "/model", &model, NULL), ADV_OK);
    keys.decoder_block = ADV_DECODER_QWEN3_CUSTOM_MOE;
    keys.moe_expert_input_dim = keys.attention_output_dim = 128;
    assert_int_equal(adv_model_build(&keys, "/model", &model, NULL), ADV_OK);
    assert_int_equal(model.layers[0].attention_output_dim, 128);
    assert_int_equal(model.layers[0].moe_input_dim, 128);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_all_models_are_what_maxtext_builds),
        cmocka_unit_test(the_largest_layer_is_what_maxtext_builds),
        cmocka_unit_test(parts_add_up_to_the_total),
        cmocka_unit_test(a_dense_layer_has_the_parameters_of_its_matrices),
        cmocka_unit_test(local_and_global_layers_are_counted),
        cmocka_unit_test(dense_and_expert_layers_are_counted),
        cmocka_unit_test(the_last_layers_of_small_gemma4_reuse_keys_and_values),
        cmocka_unit_test(scan_blocks_follow_the_cycle_of_unlike_layers),
        cmocka_unit_test(blocks_the_engine_approximates_say_so),
        cmocka_unit_test(global_parameter_scale_widens_and_deepens),
        cmocka_unit_test(more_unlike_layers_than_the_table_holds_are_refused),
        cmocka_unit_test(narrow_experts_and_attention_are_of_one_decoder),
    };
    return run_group_with_catalog(tests);
}
