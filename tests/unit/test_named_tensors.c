/* Which tensors a remat policy can place, by what MaxText's decoder layers name (tests/compile/names.json).
 */
#include "tests/unit/check.h"

#include "tests/unit/cost_fixture.h"
#include "tests/unit/decode_fixture.h"
#include "tests/unit/rows_fixture.h"

#include "engine/search/remat_space.h"

static uint32_t bit_of(const char *name)
{
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        if (strcmp(adv_tensor_name((enum adv_tensor)i), name) == 0) return UINT32_C(1) << i;
    return 0; /* a name that the engine has no price for: moe_x_sorted */
}

/* Decodes a plan of the row's model and keys. */
static void decode_row(const json_t *row)
{
    json_t *config = json_deep_copy(json_object_get(row, "config"));
    (void)json_object_set_new(config, "per_device_batch_size", json_integer(1));
    (void)json_object_set_new(config, "max_target_length", json_integer(2048));
    json_t *body = json_pack("{s:O,s:{s:s,s:s},s:o}", "model", json_object_get(row, "model"), "cluster",
                             "chip", "v5p", "topology", "4x4x4", "config", config);
    char *text = json_dumps(body, 0);
    assert_ok(decode(text));
    free(text);
    json_decref(body);
}

static void the_engine_knows_which_tensors_maxtext_names(void **state)
{
    (void)state;
    json_t *root = read_rows("tests/compile/names.json"), *row, *name;
    size_t i, k;
    bool family[ADV_DECODER_COUNT] = {false};
    json_array_foreach(json_object_get(root, "rows"), i, row)
    {
        uint32_t wanted = 0;
        decode_row(row);
        family[request.model.decoder] = true;
        json_array_foreach(json_object_get(row, "names"), k, name) wanted |= bit_of(json_string_value(name));
        const uint32_t known = adv_plan_named_tensors(&request.plan, &request.model);
        for (int t = 0; t < ADV_TENSOR_COUNT; t++)
            if (((known ^ wanted) >> t & 1u) != 0)
                fail_msg("%s: %s is %snamed by MaxText", request.model.name,
                         adv_tensor_name((enum adv_tensor)t), (wanted >> t & 1u) != 0 ? "" : "not ");
    }
    for (int d = 0; d < ADV_DECODER_COUNT; d++)
        if (!family[d] && d != ADV_DECODER_DEFAULT)
            fail_msg("no row of decoder_block %s", adv_decoder_name((enum adv_decoder)d));
    json_decref(root);
}

/* Named, but small, or made from what is kept anyway: without bytes of their own. */
static bool is_counted(enum adv_tensor tensor)
{
    return tensor != ADV_TENSOR_QKV_PROJ && tensor != ADV_TENSOR_INDEXER_CUTOFF_THRESHOLD &&
           tensor != ADV_TENSOR_DECODER_LAYER_INPUT;
}

/* Bytes that the tensor alone adds to what all layers keep. */
static double bytes_of(struct bench *b, enum adv_tensor tensor)
{
    double bytes = 0.0;
    for (int kept = 0; kept < 2; kept++) {
        for (int i = 0; i < ADV_TENSOR_COUNT; i++) b->plan.placements[i] = ADV_PLACE_REMAT;
        if (kept) b->plan.placements[tensor] = ADV_PLACE_DEVICE;
        bench_place(b);
        for (int i = 0; i < b->model.layer_kinds_count; i++)
            bytes += (kept ? 1.0 : -1.0) *
                     adv_memory_layer_saved(&b->cost, &b->model.layers[i]).bytes[ADV_PLACE_DEVICE];
    }
    return bytes;
}

static void a_tensor_takes_memory_where_it_is_named_and_read(void **state)
{
    (void)state;
    static const enum adv_moe_impl ways[] = {ADV_MOE_MEGABLOX, ADV_MOE_DENSE};
    const struct adv_catalog_tables *tables = adv_catalog_tables(catalog);
    for (int m = 0; m < tables->models_count; m++) {
        static struct bench b;
        bench_open(&b, tables->model_names[m], "v5p", 4, 4, 4);
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            b.plan.family.moe = ways[way];
            const uint32_t named = adv_plan_named_tensors(&b.plan, &b.model);
            for (int t = 0; t < ADV_TENSOR_COUNT; t++) {
                const enum adv_tensor tensor = (enum adv_tensor)t;
                if (!is_counted(tensor)) continue;
                const bool reads = (named >> t & 1u) != 0 && adv_plan_reads_tensor(&b.model, tensor);
                if (reads != (bytes_of(&b, tensor) > 0.0))
                    fail_msg("%s: %s takes %g bytes", b.model.name, adv_tensor_name(tensor),
                             bytes_of(&b, tensor));
            }
        }
    }
}

/* What a search places for speed is there to be placed. */
static void a_search_opens_tensors_that_are_named_and_read(void **state)
{
    (void)state;
    static const enum adv_moe_impl ways[] = {ADV_MOE_MEGABLOX, ADV_MOE_DENSE};
    const struct adv_catalog_tables *tables = adv_catalog_tables(catalog);
    for (int m = 0; m < tables->models_count; m++) {
        static struct bench b;
        static struct adv_advise_request advise;
        bench_open(&b, tables->model_names[m], "v5p", 4, 4, 4);
        for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
            struct adv_remat_space space;
            b.plan.family.moe = ways[way];
            memset(&advise, 0, sizeof advise);
            advise.model = b.model;
            advise.cluster = b.cluster;
            advise.workload.base = b.plan;
            adv_remat_space_build(&advise, &b.constants, &space);
            const uint32_t named = adv_plan_named_tensors(&b.plan, &b.model);
            for (int i = 0; i < space.units_count; i++) {
                const enum adv_tensor tensor = space.units[i].tensor;
                if ((named >> tensor & 1u) == 0 || !adv_plan_reads_tensor(&b.model, tensor))
                    fail_msg("%s: the search opens %s", b.model.name, adv_tensor_name(tensor));
            }
        }
    }
}

static void a_key_without_a_tensor_is_said_to_change_nothing(void **state)
{
    (void)state;
    const struct {
        const char *model, *keys;
        bool warns;
    } rows[] = {
        {"qwen3-next-80b-a3b", "\"decoder_layer_input\":\"offload\"", true},
        {"qwen3-next-80b-a3b", "\"decoder_layer_input\":\"device\"", false},
        {"qwen3-next-80b-a3b", "\"moe_mlpwi_0\":\"device\"", false},
        {"llama3.1-8b", "\"decoder_layer_input\":\"offload\"", false},
        {"llama3.1-8b", "\"mla_q\":\"device\"", true},
        {"llama3.1-8b", "\"mlpwi\":\"device\"", true},
        {"llama3.1-8b", "\"mlpwi\":\"device\",\"fused_mlp\":true", false},
        {"llama3.1-8b", "\"qkv_proj\":\"device\",\"fused_qkv\":true", false},
        {"llama3.1-8b", "\"mlpwo\":\"device\"", true}, /* nothing reads it */
        {"llama3.1-8b", "\"context\":\"device\",\"attention\":\"dot_product\"", true},
        {"gemma3-12b", "\"mlpwo\":\"device\"", false},
        {"mixtral-8x7b", "\"mlpwo\":\"offload\"", false},
        {"mixtral-8x7b", "\"mlpwi_1\":\"offload\"", true},
        {"mixtral-8x7b", "\"mlpwi_1\":\"offload\",\"sparse_matmul\":false", false},
        {"mixtral-8x7b", "\"mlpwi_1\":\"remat\"", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[1024];
        (void)snprintf(
            text, sizeof text,
            "{\"model\":\"%s\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},\"config\":{"
            "\"per_device_batch_size\":1,\"max_target_length\":4096,\"remat_policy\":\"custom\",%s}}",
            rows[i].model, rows[i].keys);
        assert_ok(decode(text));
        const struct adv_finding *finding = find_rule(&warnings, "placement-without-effect");
        if (!finding != !rows[i].warns)
            fail_msg("%s %s: %s", rows[i].model, rows[i].keys, finding ? finding->detail : "no warning");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_knows_which_tensors_maxtext_names),
        cmocka_unit_test(a_tensor_takes_memory_where_it_is_named_and_read),
        cmocka_unit_test(a_search_opens_tensors_that_are_named_and_read),
        cmocka_unit_test(a_key_without_a_tensor_is_said_to_change_nothing),
    };
    return run_group_with_catalog(tests);
}
