#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/catalog_fixture.h"

static bool is_pedigree(const struct adv_provenance *provenance)
{
    return provenance->source[0] != '\0' && provenance->date[0] != '\0' &&
           (strcmp(provenance->confidence, "high") == 0 || strcmp(provenance->confidence, "med") == 0 ||
            strcmp(provenance->confidence, "low") == 0);
}

static void the_catalog_holds_what_the_readme_promises(void **state)
{
    (void)state;
    assert_int_equal(adv_catalog_tables(catalog)->chips_count, 9);
    assert_int_equal(adv_catalog_tables(catalog)->models_count, 80);
    assert_int_equal(adv_catalog_tables(catalog)->topologies_count, 223);
    assert_int_equal(adv_catalog_tables(catalog)->keys_count, 868);
    assert_true(adv_catalog_tables(catalog)->flags_count >= 95);
    assert_true(adv_catalog_tables(catalog)->bundles_count >= 20);
    assert_int_equal(strlen(adv_catalog_hash(catalog)), 16);
    assert_int_equal(strlen(adv_catalog_calibration(catalog)), strlen("2026-11-21/0123456789abcdef"));
}

static void every_number_has_source_date_and_confidence(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->chips_count; i++) {
        const struct adv_catalog_chip *row = &adv_catalog_tables(catalog)->chips[i];
#define CHECK_FIELD(field, field_unit, what)                                                                 \
    if (!is_pedigree(&row->field##_provenance)) fail_msg("%s." #field, row->chip.name);                      \
    assert_string_equal(row->field##_provenance.unit, field_unit);
        ADV_CHIP_FIELDS(CHECK_FIELD)
#undef CHECK_FIELD
    }
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++)
        assert_true(is_pedigree(
            &adv_catalog_model_info(catalog, adv_catalog_tables(catalog)->model_names[i])->provenance));
    assert_true(is_pedigree(&adv_catalog_tables(catalog)->topologies_provenance));
    assert_true(is_pedigree(&adv_catalog_tables(catalog)->keys_provenance));
}

static void chips_are_found_by_name_and_alias_in_any_case(void **state)
{
    (void)state;
    const char *spellings[][2] = {{"tpu7x", "tpu7x"},  {"Ironwood", "tpu7x"}, {"v7x", "tpu7x"},
                                  {"trillium", "v6e"}, {"v5litepod", "v5e"},  {"H100", "H100"}};
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++)
        assert_string_equal(adv_catalog_chip(catalog, spellings[i][0])->chip.name, spellings[i][1]);
    assert_null(adv_catalog_chip(catalog, "v9"));
}

/* Peaks, capacities and links of the public data sheets, per chip. */
static void tpu7x_numbers_are_in_si_units(void **state)
{
    (void)state;
    const struct adv_chip *chip = &adv_catalog_chip(catalog, "tpu7x")->chip;
    assert_close(chip->peak_bf16_flops_per_s_per_chip, 2307e12, 0);
    assert_close(chip->hbm_bytes_per_chip, 192.0 * 1024 * 1024 * 1024, 0);
    assert_close(chip->hbm_usable_bytes_per_device, 94.75 * 1024 * 1024 * 1024, 0);
    assert_close(chip->ici_link_achieved_bytes_per_s, 90e9, 0);
    assert_true(isnan(chip->price_usd_per_chip_hour));
    assert_true(chip->offloads_collectives);
    assert_false(chip->has_megacore);
    assert_true(adv_catalog_chip(catalog, "v5p")->chip.has_megacore);
}

static void every_tpu_has_finite_constants_and_the_fields_the_engine_needs(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->chips_count; i++) {
        const struct adv_catalog_chip *row = &adv_catalog_tables(catalog)->chips[i];
        const struct adv_chip *chip = &row->chip;
        if (!chip->is_tpu) continue;
#define CHECK_CONSTANT(constant, unit, what)                                                                 \
    if (!isfinite(row->constants.constant)) fail_msg("%s." #constant, chip->name);
        ADV_KERNEL_CONSTANTS(CHECK_CONSTANT)
        ADV_LINK_CONSTANTS(CHECK_CONSTANT)
        ADV_STEP_CONSTANTS(CHECK_CONSTANT)
#undef CHECK_CONSTANT
        double needed[] = {chip->devices_per_chip,
                           chip->chips_per_host,
                           chip->clock_hz,
                           chip->hbm_usable_bytes_per_device,
                           chip->hbm_bytes_per_s_per_chip,
                           chip->hbm_achieved_frac,
                           chip->vmem_scoped_default_bytes,
                           chip->ici_axes,
                           chip->ici_link_achieved_bytes_per_s,
                           chip->dcn_bytes_per_s_per_chip,
                           chip->pcie_bytes_per_s_per_chip,
                           chip->host_dram_bytes_per_host}; /* else plans offload without end */
        for (size_t k = 0; k < sizeof needed / sizeof needed[0]; k++)
            if (!(needed[k] > 0)) fail_msg("%s: field %zu", chip->name, k);
        assert_true(chip->hbm_usable_bytes_per_device * chip->devices_per_chip < chip->hbm_bytes_per_chip);
    }
}

static void keys_flags_and_old_keys_are_found_by_name(void **state)
{
    (void)state;
    const struct adv_catalog_key *key = adv_catalog_key(catalog, "per_device_batch_size");
    assert_non_null(key);
    assert_true(key->types & (1u << ADV_KEY_FLOAT));
    key = adv_catalog_key(catalog, "remat_policy");
    assert_string_equal(key->default_json, "\"full\"");
    bool has_custom = false;
    for (int i = 0; i < key->allowed_count; i++)
        has_custom = has_custom || strcmp(key->allowed[i], "custom") == 0;
    assert_true(has_custom);
    assert_true(adv_catalog_key(catalog, "local_sa_block_q")->nullable);
    assert_true(adv_catalog_key(catalog, "emb_dim")->derived);
    assert_null(adv_catalog_key(catalog, "fsdp_shard_on_exp"));
    assert_string_equal(adv_catalog_old_key(catalog, "fsdp_shard_on_exp")->current, "shard_exp_on_fsdp");
    assert_null(adv_catalog_old_key(catalog, "wi_tile_fwd_buffer_count")->current);
    assert_string_equal(adv_catalog_flag(catalog, "xla_tpu_scoped_vmem_limit_kib")->type, "int");
    assert_null(adv_catalog_flag(catalog, "xla_tpu_no_such_flag"));
    for (int i = 1; i < adv_catalog_tables(catalog)->keys_count; i++)
        assert_true(strcmp(adv_catalog_tables(catalog)->keys[i - 1].name,
                           adv_catalog_tables(catalog)->keys[i].name) < 0);
}

static void bundles_name_known_chips_and_known_flags(void **state)
{
    (void)state;
    for (int i = 0; i < adv_catalog_tables(catalog)->bundles_count; i++) {
        const struct adv_catalog_bundle *bundle = &adv_catalog_tables(catalog)->bundles[i];
        for (int c = 0; c < bundle->chips_count; c++)
            assert_non_null(adv_catalog_chip(catalog, bundle->chips[c]));
        for (int f = 0; f < bundle->flags_count; f++) {
            char name[ADV_LIMIT_XLA_FLAG];
            assert_int_equal(strncmp(bundle->flags[f], "--", 2), 0);
            (void)snprintf(name, sizeof name, "%s", bundle->flags[f] + 2);
            *strchr(name, '=') = '\0';
            if (!adv_catalog_flag(catalog, name)) fail_msg("%s: %s", bundle->name, name);
        }
    }
}

static void shapes_of_a_chip_are_listed_by_size(void **state)
{
    (void)state;
    const char *const *shapes;
    assert_int_equal(adv_catalog_shapes(catalog, "v6e", &shapes), 8);
    assert_string_equal(shapes[0], "1x1");
    assert_string_equal(shapes[7], "16x16");
    assert_int_equal(adv_catalog_shapes(catalog, "H100", &shapes), 0);
}

static void an_unknown_model_names_the_nearest(void **state)
{
    (void)state;
    struct adv_model model;
    adv_err err;
    adv_err_init(&err);
    assert_int_equal(adv_catalog_model(catalog, "llama3.1-70", &model, &err), ADV_E_NOT_FOUND);
    assert_non_null(strstr(err.findings[0].hint, "llama3.1-70b"));
    adv_err_init(&err);
    assert_int_equal(adv_catalog_model(catalog, "Qwen2.5", &model, &err), ADV_E_NOT_FOUND);
    assert_string_equal(err.findings[0].hint, "did you mean `qwen2.5-1.5b`, `qwen2.5-14b` or `qwen2.5-7b`?");
    adv_err_init(&err);
    assert_int_equal(adv_catalog_model(catalog, "", &model, &err), ADV_E_NOT_FOUND);
    assert_null(strstr(err.findings[0].hint, "did you mean"));
}

static void a_name_of_maxtext_without_a_model_here_is_refused_with_the_reason(void **state)
{
    (void)state;
    const struct {
        const char *name, *why;
    } names[] = {{"deepseek3-671b-lineage", "MaxText 0.2.5 takes the name and has no file for it"},
                 {"maxtext-omni-gemma3-qwen3", "would train its default model"},
                 {"qwen3.5-35b-fp8", "its file is named qwen3.5-35b-a3b-fp8"},
                 {"qwen3.5-35b-a3b-fp8", "qwen3.5-35b-a3b is the same model with whole weights"},
                 {"qwen3.5-397b-a17b-fp8", "its weights are stored in float8_e4m3fn"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct adv_model model;
        adv_err err;
        adv_err_init(&err);
        assert_int_equal(adv_catalog_model(catalog, names[i].name, &model, &err), ADV_E_NOT_FOUND);
        assert_non_null(strstr(err.findings[0].detail, names[i].why));
        assert_null(adv_catalog_model_info(catalog, names[i].name));
    }
}

static bool allows(const struct adv_catalog_key *key, const char *value)
{
    bool any = false;
    for (int i = 0; i < key->allowed_count; i++) any |= strcmp(key->allowed[i], value) == 0;
    return any;
}

static void maxtext_takes_the_name_of_every_model(void **state)
{
    (void)state;
    const struct adv_catalog_key *key = adv_catalog_key(catalog, "model_name");
    for (int i = 0; i < adv_catalog_tables(catalog)->models_count; i++) {
        const char *name = adv_catalog_tables(catalog)->model_names[i];
        static struct adv_model model;
        assert_int_equal(adv_catalog_model(catalog, name, &model, NULL), ADV_OK);
        if (!allows(key, model.maxtext_name)) fail_msg("%s: MaxText is said not to take it", name);
    }
    assert_true(
        allows(key, "qwen3.5-35b-a3b-fp8")); /* a recipe with it is told why there is no model of it */
}

/* One file in a folder of its own, written by the test. */
static struct adv_catalog *load_with(const char *file, const char *text, adv_err *err)
{
    char directory[] = "/tmp/adv-catalog-XXXXXX";
    char path[128];
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/%s", directory, file);
    FILE *stream = fopen(path, "w");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
    adv_err_init(err);
    struct adv_catalog *loaded = adv_catalog_load(directory, err);
    (void)unlink(path);
    (void)rmdir(directory);
    return loaded;
}

static void a_single_file_can_be_overridden_and_changes_the_hash(void **state)
{
    (void)state;
    adv_err err;
    struct adv_catalog *own =
        load_with("models.json",
                  "{\"sources\": {\"own\": [\"ours\", \"2026-11-21\"]}, \"models\": [{\"name\": \"ours-1b\", "
                  "\"source\": \"own\", \"confidence\": \"high\","
                  " \"keys\": {\"base_emb_dim\": 1024, \"base_num_query_heads\": 8, \"base_num_kv_heads\": "
                  "8, \"base_mlp_dim\": 4096,"
                  " \"base_num_decoder_layers\": 4, \"vocab_size\": 32000}, \"pins\": {}}]}",
                  &err);
    assert_non_null(own);
    assert_int_equal(adv_catalog_tables(own)->models_count, 1);
    assert_int_equal(adv_catalog_tables(own)->chips_count, 9);
    assert_string_not_equal(adv_catalog_hash(own), adv_catalog_hash(catalog));
    assert_string_equal(adv_catalog_calibration(own), adv_catalog_calibration(catalog));
    adv_catalog_free(own);
}

static void a_missing_constant_or_field_is_a_load_error_that_names_it(void **state)
{
    (void)state;
    adv_err err;
    assert_null(load_with("step_constants.json",
                          "{\"tpu7x\": {}, \"v6e\": {}, \"v5p\": {}, \"v5e\": {}, \"v4\": {}}", &err));
    assert_int_equal(strncmp(err.findings[0].pointer, "/step_constants.json/tpu7x/", 27), 0);
    assert_null(load_with(
        "chips.json",
        "{\"sources\": {}, \"chips\": [{\"name\": \"x\", \"title\": \"X\", \"aliases\": [],"
        " \"is_tpu\": false, \"has_megacore\": false, \"offloads_collectives\": false, \"fields\": {}}]}",
        &err));
    assert_string_equal(err.findings[0].pointer, "/chips.json/chips/0/fields/devices_per_chip");
    assert_null(load_with("keys.json", "{\"rows\"", &err));
    assert_int_equal(err.code, ADV_E_SYNTAX);
    assert_string_equal(err.findings[0].pointer, "/keys.json");
}

static void a_folder_without_a_file_of_the_catalog_is_refused(void **state)
{
    (void)state;
    adv_err err;
    assert_null(load_with("model.json", "{}", &err));
    assert_int_equal(err.code, ADV_E_IO);
    assert_non_null(strstr(err.findings[0].detail, "no catalog file in /tmp/adv-catalog-"));
    adv_err_init(&err);
    assert_null(adv_catalog_load("/nonexistent/catalog", &err));
    assert_non_null(strstr(err.findings[0].detail, "/nonexistent/catalog"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_catalog_holds_what_the_readme_promises),
        cmocka_unit_test(every_number_has_source_date_and_confidence),
        cmocka_unit_test(chips_are_found_by_name_and_alias_in_any_case),
        cmocka_unit_test(tpu7x_numbers_are_in_si_units),
        cmocka_unit_test(every_tpu_has_finite_constants_and_the_fields_the_engine_needs),
        cmocka_unit_test(keys_flags_and_old_keys_are_found_by_name),
        cmocka_unit_test(bundles_name_known_chips_and_known_flags),
        cmocka_unit_test(shapes_of_a_chip_are_listed_by_size),
        cmocka_unit_test(an_unknown_model_names_the_nearest),
        cmocka_unit_test(a_name_of_maxtext_without_a_model_here_is_refused_with_the_reason),
        cmocka_unit_test(maxtext_takes_the_name_of_every_model),
        cmocka_unit_test(a_single_file_can_be_overridden_and_changes_the_hash),
        cmocka_unit_test(a_missing_constant_or_field_is_a_load_error_that_names_it),
        cmocka_unit_test(a_folder_without_a_file_of_the_catalog_is_refused),
    };
    return run_group_with_catalog(tests);
}
