#include "tests/unit/check.h"

#include <string.h>

#include "engine/advise.h"
#include "engine/json/decode_kernel.h"
#include "tests/unit/catalog_fixture.h"

static json_t *ask(const char *collection, const char *name)
{
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    if (adv_catalog_json(catalog, collection, name, &answer, &err) != ADV_OK)
        fail_msg("%s/%s: %s", collection, name ? name : "", err.findings[0].detail);
    assert_int_equal(strlen(answer.json), answer.json_bytes);
    json_t *root = json_loadb(answer.json, answer.json_bytes, 0, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(json_object_get(root, "engine"), "catalog_hash")),
                        adv_catalog_hash(catalog));
    adv_answer_free(&answer);
    return root;
}

static bool has_pedigree(const json_t *object)
{
    return json_string_value(json_object_get(object, "source")) &&
           json_string_value(json_object_get(object, "date")) &&
           json_string_value(json_object_get(object, "confidence"));
}

static void collections_list_every_row_once(void **state)
{
    (void)state;
    const struct {
        const char *name;
        size_t rows;
    } lists[] = {
        {"models", 80}, {"chips", 9}, {"topologies", 223}, {"kernels", ADV_KERNEL_COUNT}, {"keys", 868}};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        json_t *root = ask(lists[i].name, NULL);
        const json_t *rows = json_object_get(root, lists[i].name);
        assert_int_equal(json_array_size(rows), lists[i].rows);
        for (size_t k = 0; k < json_array_size(rows); k++)
            assert_non_null(json_string_value(json_object_get(json_array_get(rows, k), "name")));
        json_decref(root);
    }
}

static void numbers_of_chips_models_and_slices_say_where_they_come_from(void **state)
{
    (void)state;
    json_t *root = ask("chips", NULL);
    const json_t *chips = json_object_get(root, "chips");
    int count;
    const struct adv_chip_field *fields = adv_chip_fields(&count);
    for (size_t i = 0; i < json_array_size(chips); i++)
        for (int f = 0; f < count; f++) {
            const json_t *number = json_object_get(json_array_get(chips, i), fields[f].name);
            if (!has_pedigree(number) || !json_object_get(number, "value")) fail_msg("%s", fields[f].name);
        }
    json_decref(root);
    root = ask("models", NULL);
    const json_t *models = json_object_get(root, "models");
    for (size_t i = 0; i < json_array_size(models); i++) assert_true(has_pedigree(json_array_get(models, i)));
    json_decref(root);
    const char *entries[][2] = {
        {"topologies", "v6e-256"}, {"keys", "per_device_batch_size"}, {"models", "llama3.1-8b"}};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        root = ask(entries[i][0], entries[i][1]);
        assert_true(has_pedigree(root));
        json_decref(root);
    }
}

static void constants_of_a_chip_stand_beside_their_source(void **state)
{
    (void)state;
    json_t *root = ask("chips", "ironwood");
    assert_string_equal(json_string_value(json_object_get(root, "name")), "tpu7x");
    const json_t *constant = json_object_get(json_object_get(root, "constants"), "matmul_peak_frac");
    assert_close(json_number_value(json_object_get(constant, "value")),
                 adv_catalog_chip(catalog, "tpu7x")->constants.matmul_peak_frac, 1e-9);
    assert_non_null(json_string_value(json_object_get(constant, "source")));
    assert_non_null(json_string_value(json_object_get(constant, "kind")));
    json_decref(root);
}

static void a_model_entry_has_parameters_layers_and_keys(void **state)
{
    (void)state;
    json_t *root = ask("models", "deepseek3-671b");
    assert_close(json_number_value(json_object_get(root, "total_params")), 671026419200, 0.003);
    assert_int_equal(json_array_size(json_object_get(root, "layer_kinds")), 2);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(root, "keys"), "num_experts")), 256);
    assert_close(json_number_value(json_object_get(json_object_get(root, "params"), "largest_layer")),
                 11507286272, 0.001);
    json_decref(root);
}

static void old_keys_and_flags_answer_under_keys(void **state)
{
    (void)state;
    json_t *root = ask("keys", "fsdp_shard_on_exp");
    assert_string_equal(json_string_value(json_object_get(root, "current")), "shard_exp_on_fsdp");
    json_decref(root);
    root = ask("keys", "--xla_tpu_scoped_vmem_limit_kib");
    assert_string_equal(json_string_value(json_object_get(root, "type")), "int");
    json_decref(root);
}

static void unknown_names_are_not_found_and_get_a_hint(void **state)
{
    (void)state;
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_catalog_json(catalog, "models", "llama3.1-71b", &answer, &err), ADV_E_NOT_FOUND);
    assert_non_null(strstr(err.findings[0].hint, "llama3.1-70b"));
    assert_int_equal(adv_catalog_json(catalog, "planets", NULL, &answer, &err), ADV_E_NOT_FOUND);
}

/* The kernel tables are documentation of what simulate reads: no listed member may be unknown to it. */
static void simulate_knows_every_listed_member(void **state)
{
    (void)state;
    json_t *root = ask("kernels", NULL);
    const json_t *kernels = json_object_get(root, "kernels");
    for (size_t i = 0; i < json_array_size(kernels); i++) {
        const json_t *kernel = json_array_get(kernels, i);
        json_t *request = json_pack("{s:s,s:O,s:{},s:{}}", "chip", "tpu7x", "kernel",
                                    json_object_get(kernel, "name"), "shape", "tile");
        const char *parts[] = {"shape", "tile"};
        for (int p = 0; p < 2; p++) {
            const json_t *members = json_object_get(kernel, parts[p]);
            for (size_t k = 0; k < json_array_size(members); k++)
                (void)json_object_set_new(
                    json_object_get(request, parts[p]),
                    json_string_value(json_object_get(json_array_get(members, k), "name")), json_null());
        }
        struct adv_arena arena;
        struct adv_kernel_request decoded;
        adv_err err;
        adv_err_init(&err);
        adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
        (void)!adv_decode_kernel_request(catalog, request, true, &arena, &decoded, &err, NULL);
        for (int f = 0; f < err.count; f++)
            if (strstr(err.findings[f].detail, "unknown member"))
                fail_msg("%s: %s", json_string_value(json_object_get(kernel, "name")),
                         err.findings[f].detail);
        adv_arena_free(&arena);
        json_decref(request);
    }
    json_decref(root);
}

static bool lists(const json_t *members, const char *name)
{
    for (size_t i = 0; i < json_array_size(members); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(members, i), "name")), name) == 0)
            return true;
    return false;
}

/* Members of the forward product alone are not listed for the gradient; a kernel that XLA tiles has neither
 * tiles nor versions. */
static void kernels_list_what_they_use(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool forward_members, version, tile;
    } cases[] = {{"gmm", true, true, true},
                 {"tgmm", false, true, true},
                 {"ragged_dot_xla", true, false, false},
                 {"ragged_dot_xla_tgmm", false, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *root = ask("kernels", cases[i].name);
        const json_t *shape = json_object_get(root, "shape");
        assert_true(lists(shape, "num_groups"));
        assert_int_equal(lists(shape, "rhs_transposed"), cases[i].forward_members);
        assert_int_equal(lists(shape, "return_residuals"), cases[i].forward_members);
        assert_int_equal(lists(shape, "version"), cases[i].version);
        assert_int_equal(json_array_size(json_object_get(root, "tile")) > 0, cases[i].tile);
        json_decref(root);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(collections_list_every_row_once),
        cmocka_unit_test(numbers_of_chips_models_and_slices_say_where_they_come_from),
        cmocka_unit_test(constants_of_a_chip_stand_beside_their_source),
        cmocka_unit_test(a_model_entry_has_parameters_layers_and_keys),
        cmocka_unit_test(old_keys_and_flags_answer_under_keys),
        cmocka_unit_test(unknown_names_are_not_found_and_get_a_hint),
        cmocka_unit_test(simulate_knows_every_listed_member),
        cmocka_unit_test(kernels_list_what_they_use),
    };
    return run_group_with_catalog(tests);
}
