/* A made-up generation that is only data, in a folder as --catalog takes it, is answered like any other. */
#include <stdio.h>
#include <unistd.h>

#include "engine/base/embed.h"
#include "engine/base/text.h"
#include "engine/json/decode_answer.h"
#include "tests/unit/answer_fixture.h"

#define NEW_CHIP "v9x"
#define DONOR    "v6e"

static char folder[] = "/tmp/adv-new-chip-XXXXXX";
static const char *const files[] = {"chips.json",          "kernel_constants.json", "link_constants.json",
                                    "step_constants.json", "memory_constants.json", "topologies.json"};
enum { FILES = sizeof files / sizeof *files };

static json_t *embedded(const char *name)
{
    const struct adv_embedded_file *file = adv_embedded_catalog;
    while (strcmp(file->name, name) != 0) file++;
    return json_loadb((const char *)file->data, file->length_bytes, 0, NULL);
}

static void path_of(const char *name, char path[256])
{
    (void)snprintf(path, 256, "%s/%s", folder, name);
}

/* The row of the new chip: the donor's, with a name, a recipe and nodes of its own. */
static void add_chip(json_t *root)
{
    json_t *list = json_object_get(root, "chips"), *row, *chip = NULL;
    size_t i;
    json_array_foreach(list, i, row)
    {
        const char *name = json_string_value(json_object_get(row, "name"));
        if (name && strcmp(name, DONOR) == 0) chip = json_deep_copy(row);
    }
    json_object_set_new(chip, "name", json_string(NEW_CHIP));
    json_object_set_new(chip, "title", json_string("TPU v9x (made up)"));
    json_object_set_new(chip, "aliases", json_pack("[s]", "tpu-" NEW_CHIP));
    json_object_set_new(chip, "nodes",
                        json_pack("[{s:s,s:s,s:b,s:s,s:i},s,s]", "label", "tpu-v9x-slice", "machine",
                                  "ct9x-standard", "splits_hosts", 0, "xpk", "v9", "xpk_chips", 4, "gke",
                                  "low"));
    json_t *flags = json_pack("{s:i,s:b}", "xla_tpu_scoped_vmem_limit_kib", 70000,
                              "xla_tpu_enable_async_collective_fusion_fuse_all_gather", 1);
    json_object_set_new(chip, "recipe",
                        json_pack("{s:[o,s,s],s:[b,s,s]}", "flags", flags, "assumed", "low", "tokamax_splash",
                                  1, "assumed", "low"));
    json_array_append_new(list, chip);
}

static void add_constants(json_t *root)
{
    json_object_set(root, NEW_CHIP, json_object_get(root, DONOR));
}

static void add_topologies(json_t *root)
{
    json_t *list = json_object_get(root, "rows"), *row;
    const size_t count = json_array_size(list);
    for (size_t i = 0; i < count; i++) {
        row = json_array_get(list, i);
        const char *name = json_string_value(json_array_get(row, 0));
        if (strcmp(json_string_value(json_array_get(row, 1)), DONOR) != 0) continue;
        char renamed[64];
        (void)snprintf(renamed, sizeof renamed, "%s%s", NEW_CHIP, strchr(name, '-') ? strchr(name, '-') : "");
        row = json_deep_copy(row);
        json_array_set_new(row, 0, json_string(renamed));
        json_array_set_new(row, 1, json_string(NEW_CHIP));
        json_array_append_new(list, row);
    }
}

static int write_folder(void **state)
{
    (void)state;
    adv_err err;
    adv_err_init(&err);
    if (!mkdtemp(folder)) return -1;
    for (int i = 0; i < FILES; i++) {
        json_t *root = embedded(files[i]);
        char path[256];
        path_of(files[i], path);
        (i == 0 ? add_chip : i == FILES - 1 ? add_topologies : add_constants)(root);
        if (json_dump_file(root, path, 0)) return -1;
        json_decref(root);
    }
    catalog = adv_catalog_load(folder, &err);
    for (int i = 0; i < err.count; i++)
        print_error("%s: %s\n", err.findings[i].pointer, err.findings[i].detail);
    return catalog ? 0 : -1;
}

static int remove_folder(void **state)
{
    for (int i = 0; i < FILES; i++) {
        char path[256];
        path_of(files[i], path);
        (void)unlink(path);
    }
    (void)rmdir(folder);
    return free_catalog(state);
}

static bool has_flag(const json_t *flags, const char *flag)
{
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)(uintptr_t)flags, i, item)
    {
        if (strcmp(json_string_value(item), flag) == 0) return true;
    }
    return false;
}

static void it_is_estimated_and_linted(void **state)
{
    (void)state;
    json_t *answer =
        answer_to(ADV_REQUEST_ESTIMATE,
                  "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v9x\",\"topology\":\"4x4\"},"
                  "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096}}");
    assert_true(json_number_value(json_object_get(answer, "step_time_s")) > 0.0);
    json_decref(answer);
    answer = answer_to(ADV_REQUEST_LINT,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v9x\",\"topology\":\"4x4\"},"
                       "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096}}");
    assert_true(json_is_true(json_object_get(answer, "valid")));
    json_decref(answer);
}

static void it_is_advised_with_its_own_recipe_and_written_as_files(void **state)
{
    (void)state;
    json_t *answer = answer_to(
        ADV_REQUEST_ADVISE, "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v9x\",\"topology\":\"4x4\"},"
                            "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":64},"
                            "\"search\":{\"top_k\":1}}");
    const json_t *best = json_array_get(json_object_get(answer, "ranked"), 0);
    const json_t *flags = json_object_get(best, "xla_flags");
    assert_true(has_flag(flags, "--xla_tpu_scoped_vmem_limit_kib=70000"));
    assert_true(has_flag(flags, "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true"));
    assert_true(json_is_true(json_object_get(json_object_get(best, "config"), "use_tokamax_splash")));
    static const char *const wanted[][2] = {
        {"jobset.yaml", "cloud.google.com/gke-tpu-accelerator: tpu-v9x-slice\n"},
        {"xpk.sh", "--tpu-type='v9-16'"},
        {"gcluster.sh", "--compute-type 'ct9x-standard-4t' --topology '4x4' --num-slices 1 \\\n"}};
    char *text = json_dumps(answer, 0);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        struct adv_text file;
        adv_err err;
        adv_err_init(&err);
        adv_text_init(&file, 65536);
        assert_int_equal(adv_artifact_from_answer(catalog, wanted[i][0], text, strlen(text), 1, &file, &err),
                         ADV_OK);
        if (!strstr(file.data, wanted[i][1]))
            fail_msg("%s has no %s: %s", wanted[i][0], wanted[i][1], file.data);
        adv_text_free(&file);
    }
    free(text);
    json_decref(answer);
}

static void its_kernels_are_simulated_and_tuned(void **state)
{
    (void)state;
    json_t *answer = answer_to(ADV_REQUEST_TUNE,
                               "{\"chip\":\"tpu-v9x\",\"kernel\":\"splash_fwd\",\"shape\":{\"q_heads\":32,"
                               "\"kv_heads\":8,\"q_len\":4096,\"head_dim_qk\":128}}");
    assert_true(json_array_size(json_object_get(answer, "ranked")) > 0);
    assert_string_equal(json_string_value(json_object_get(answer, "chip")), NEW_CHIP);
    json_decref(answer);
    answer = answer_to(ADV_REQUEST_SIMULATE, "{\"chip\":\"v9x\",\"kernel\":\"matmul\",\"shape\":{\"m\":4096,"
                                             "\"k\":4096,\"n\":4096}}");
    assert_true(json_number_value(json_object_get(answer, "time_us")) > 0.0);
    json_decref(answer);
}

static void hints_name_it(void **state)
{
    (void)state;
    adv_err err;
    json_t *answer = answer_or_refusal(ADV_REQUEST_SIMULATE,
                                       "{\"chip\":\"v99\",\"kernel\":\"matmul\",\"shape\":{\"m\":4096,"
                                       "\"k\":4096,\"n\":4096}}",
                                       &err);
    assert_null(answer);
    assert_string_equal(err.findings[0].hint, "tpu7x, v6e, v5p, v5e, v4 or v9x");
}

/* A flag that no prediction reads would be set on every plan without anybody pricing it. */
static void a_recipe_of_unknown_flags_is_refused(void **state)
{
    (void)state;
    char other[] = "/tmp/adv-bad-recipe-XXXXXX", path[256];
    json_t *root = embedded("chips.json");
    json_t *chip = json_array_get(json_object_get(root, "chips"), 0);
    json_t *flags = json_array_get(json_object_get(json_object_get(chip, "recipe"), "flags"), 0);
    json_object_set_new(flags, "xla_tpu_go_faster", json_true());
    assert_non_null(mkdtemp(other));
    (void)snprintf(path, sizeof path, "%s/chips.json", other);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
    adv_err err;
    adv_err_init(&err);
    assert_null(adv_catalog_load(other, &err));
    assert_string_equal(err.findings[0].pointer, "/chips.json/chips/0/recipe/flags");
    assert_non_null(strstr(err.findings[0].detail, "xla_tpu_go_faster is no flag"));
    (void)unlink(path);
    (void)rmdir(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_estimated_and_linted),
        cmocka_unit_test(it_is_advised_with_its_own_recipe_and_written_as_files),
        cmocka_unit_test(its_kernels_are_simulated_and_tuned),
        cmocka_unit_test(hints_name_it),
        cmocka_unit_test(a_recipe_of_unknown_flags_is_refused),
    };
    return cmocka_run_group_tests_name(__FILE__, tests, write_folder, remove_folder);
}
