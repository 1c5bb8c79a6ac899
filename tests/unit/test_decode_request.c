#include "tests/unit/check.h"

#include <stdlib.h>

#include "engine/advise.h"
#include "tests/unit/decode_fixture.h"

static void one_axis_takes_what_the_others_leave(void **state)
{
    (void)state;
    assert_ok(decode_config("\"ici_tensor_parallelism\":4"));
    assert_int_equal(request.plan.family.ici[ADV_AXIS_FSDP], 16);
    assert_ok(decode_config("\"ici_fsdp_parallelism\":1,\"ici_data_parallelism\":-1"));
    assert_int_equal(request.plan.family.ici[ADV_AXIS_DATA], 64);
}

static void two_open_axes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(decode_config("\"ici_tensor_parallelism\":-1"), ADV_E_ILLEGAL);
    assert_non_null(find(&err, "/config/ici_tensor_parallelism"));
}

static void slices_fill_the_data_axis_over_dcn(void **state)
{
    (void)state;
    assert_ok(
        decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"8x8\",\"slices\":4},"
               "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096}}"));
    assert_int_equal(request.plan.family.dcn[ADV_AXIS_DATA], 4);
}

static void values_are_read_as_maxtext_reads_its_command_line(void **state)
{
    (void)state;
    assert_ok(decode_config(
        "\"sa_block_q\":\"1024\",\"use_tokamax_splash\":\"True\",\"num_vocab_tiling\":\"4e0\","
        "\"use_iota_embed\":1,\"gradient_clipping_threshold\":\"0\",\"local_sa_block_q\":\"None\","
        "\"sa_block_kv\":1024.0,\"mlp_activations\":\"[silu,linear]\",\"scan_layers\":\"no\","
        "\"sa_use_fused_bwd_kernel\":\"On\",\"cast_logits_to_fp32\":\"f\",\"float32_logits\":\"Y\""));
    assert_int_equal(request.plan.family.blocks[0].block_q, 1024);
    assert_int_equal(request.plan.family.blocks[0].block_kv, 1024);
    assert_int_equal(request.plan.num_vocab_tiling, 4);
    assert_true(request.plan.family.use_tokamax_splash && request.plan.family.use_iota_embed);
    assert_close(request.plan.family.gradient_clipping_threshold, 0, 0);
    assert_false(request.plan.family.scan_layers || request.plan.family.cast_logits_to_fp32);
    assert_true(request.plan.family.use_fused_bwd && request.plan.family.float32_logits);
}

static void wrong_types_and_values_are_errors_with_their_pointer(void **state)
{
    (void)state;
    assert_int_equal(
        decode_config(
            "\"sa_block_q\":true,\"scan_layers\":\"maybe\",\"remat_policy\":\"fulll\",\"opt_type\":\"lion\","
            "\"gradient_accumulation_steps\":0,\"num_vocab_tiling\":2.5,\"steps\":[1]"),
        ADV_E_INVALID);
    static const char *const pointers[] = {"/config/sa_block_q",
                                           "/config/scan_layers",
                                           "/config/remat_policy",
                                           "/config/opt_type",
                                           "/config/gradient_accumulation_steps",
                                           "/config/num_vocab_tiling",
                                           "/config/steps"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) assert_non_null(find(&err, pointers[i]));
}

static void unknown_keys_warn_with_the_nearest_name_and_fail_when_strict(void **state)
{
    (void)state;
    assert_ok(decode_config("\"atention\":\"flash\""));
    assert_string_equal(must_find(&warnings, "unknown-key")->hint, "did you mean attention?");
    assert_int_equal(decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":"
                            "\"2x4x4\"},\"strict\":true,"
                            "\"config\":{\"atention\":\"flash\",\"int8_training\":true}}"),
                     ADV_E_INVALID);
    assert_non_null(find(&err, "/config/atention"));
    assert_non_null(find(&err, "/config/int8_training"));
}

/* A name has chosen a block, and so has decoder_block; where nobody did, experts mean one that has them. */
static void experts_over_a_model_of_a_dense_block_are_refused_where_they_stand(void **state)
{
    static const char experts[] =
        "\"num_experts\":8,\"num_experts_per_tok\":2,\"override_model_config\":true";
    static const char dims[] = "\"base_emb_dim\":4096,\"base_num_query_heads\":32,\"base_num_kv_heads\":8,"
                               "\"base_mlp_dim\":14336,\"base_num_decoder_layers\":32,\"vocab_size\":32000";
    static const struct {
        const char *block, *more;
        adv_code code;
    } objects[] = {{"", "", ADV_OK},
                   {",\"decoder_block\":\"llama2\"", "", ADV_E_INVALID},
                   {",\"decoder_block\":\"llama2\"", ",\"decoder_block\":\"mixtral\"", ADV_OK}};
    char text[1024];
    (void)state;
    assert_int_equal(decode_config(experts), ADV_E_INVALID);
    assert_int_equal(err.count, 1);
    assert_non_null(strstr(find(&err, "/config/num_experts")->detail, "has no experts"));
    assert_non_null(strstr(find(&err, "/config/num_experts")->hint, "mixtral"));
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        (void)snprintf(text, sizeof text,
                       "{\"model\":{%s%s},\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"},\"config\":{"
                       "\"per_device_batch_size\":1,\"max_target_length\":4096,%s%s}}",
                       dims, objects[i].block, experts, objects[i].more);
        assert_int_equal(decode(text), objects[i].code);
        if (objects[i].code == ADV_OK) assert_int_equal(request.model.decoder, ADV_DECODER_MIXTRAL);
    }
}

static void what_has_to_be_above_zero_is_not_told_the_least_such_number(void **state)
{
    static const struct {
        const char *batch, *hint;
    } rows[] = {{"0", "a number above 0, such as 1"},
                {"-3", "a number above 0, such as 1"},
                {"2e6", "1000000, the nearest legal value"}};
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"
                       "\"config\":{\"max_target_length\":4096,\"per_device_batch_size\":%s}}",
                       rows[i].batch);
        assert_int_equal(decode(text), ADV_E_RANGE);
        assert_string_equal(find(&err, "/config/per_device_batch_size")->hint, rows[i].hint);
    }
}

static void old_keys_take_effect_under_their_present_name(void **state)
{
    (void)state;
    assert_ok(
        decode("{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},\"config\":{"
               "\"per_device_batch_size\":1,\"max_target_length\":4096,\"int8_training\":true,\"fsdp_shard_"
               "on_exp\":true,"
               "\"enable_flash_attention\":false,\"tile_mlp_dim\":2048,\"wo_tile_dlhs_mlp_dim\":512}}"));
    assert_int_equal(request.plan.family.quantization, ADV_QUANT_INT8);
    assert_true(request.plan.family.shard_exp_on_fsdp);
    assert_int_equal(request.plan.family.attention, ADV_ATTENTION_IMPL_DOT_PRODUCT);
    assert_int_equal(request.plan.family.gmm_blocks[0][ADV_GMM_FWD].mlp_dim, 2048);
    assert_int_equal(request.plan.family.gmm_blocks[1][ADV_GMM_DLHS].mlp_dim,
                     512); /* the present name wins */
    assert_string_equal(find(&warnings, "/config/fsdp_shard_on_exp")->hint, "use shard_exp_on_fsdp");
}

static void tiles_in_the_order_of_2025_are_turned_with_a_warning(void **state)
{
    (void)state;
    static const char form[] =
        "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":"
        "\"4x4x8\"},\"config\":{\"per_device_batch_size\":1,\"max_target_length\":4096,"
        "\"wi_tile_dlhs_embed_dim\":%d,\"wi_tile_dlhs_mlp_dim\":%d,"
        "\"wo_tile_drhs_embed_dim\":%d,\"wo_tile_drhs_mlp_dim\":%d}}";
    char text[1024];
    /* 7168 x 2048: 3584 is no part of the width, and 1792 divides the embedding only */
    (void)snprintf(text, sizeof text, form, 2048, 3584, 2048, 1792);
    assert_ok(decode(text));
    const struct adv_gmm_blocks *wi = &request.plan.family.gmm_blocks[0][ADV_GMM_DLHS];
    const struct adv_gmm_blocks *wo = &request.plan.family.gmm_blocks[1][ADV_GMM_DRHS];
    assert_true(wi->embed_dim == 3584 && wi->mlp_dim == 2048);
    assert_true(wo->embed_dim == 1792 && wo->mlp_dim == 2048);
    assert_string_equal(must_find(&warnings, "tile-names-permuted")->pointer, "/config/wi_tile_dlhs_mlp_dim");
    /* tiles that divide as they are named stay */
    (void)snprintf(text, sizeof text, form, 3584, 2048, 1792, 2048);
    assert_ok(decode(text));
    assert_true(wi->embed_dim == 3584 && wi->mlp_dim == 2048);
    assert_null(find_rule(&warnings, "tile-names-permuted"));
    /* and so do those that say one thing here and another there */
    (void)snprintf(text, sizeof text, form, 2048, 3584, 1792, 2048);
    assert_ok(decode(text));
    assert_true(wi->embed_dim == 2048 && wi->mlp_dim == 3584);
}

static void old_values_take_effect_under_their_present_name(void **state)
{
    (void)state;
    assert_ok(decode_config("\"remat_policy\":\"proj\",\"quantization\":\"aqt_fp8\""));
    assert_int_equal(request.plan.policy, ADV_POLICY_SAVE_QKV_PROJ);
    assert_int_equal(request.plan.family.quantization, ADV_QUANT_FP8);
    assert_string_equal(must_find(&warnings, "renamed-value")->hint, "use save_qkv_proj");
}

static void old_names_of_dimensions_leave_the_given_model_alone(void **state)
{
    (void)state;
    assert_ok(decode_config("\"scale\":3,\"base_num_heads\":8"));
    assert_int_equal(request.model.layers[0].q_heads, 32);
    assert_int_equal(request.model.emb_dim, 4096);
    assert_non_null(find(&warnings, "/config/base_num_heads"));
}

static void the_nearest_batch_is_one_that_is_legal(void **state)
{
    (void)state;
    assert_int_equal(
        decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x8\"},\"config\":{"
               "\"per_device_batch_size\":1,\"max_target_length\":4096,\"ici_fsdp_parallelism\":64}}"),
        ADV_E_ILLEGAL);
    assert_string_equal(must_find(&err, "batch-by-shards")->hint,
                        "it must be a multiple of 2; the nearest is 2");
    assert_int_equal(
        decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x8\"},\"config\":{"
               "\"per_device_batch_size\":0.3,\"max_target_length\":4000,\"ici_context_parallelism\":4}}"),
        ADV_E_ILLEGAL);
    assert_string_equal(must_find(&err, "batch-by-shards")->hint,
                        "it must be a multiple of 1/4; the nearest is 0.25");
}

static void a_configuration_for_another_model_or_machine_is_told(void **state)
{
    (void)state;
    assert_ok(
        decode_config("\"model_name\":\"llama3.1-70b\",\"compile_topology\":\"v5p-128\",\"num_slices\":4,"
                      "\"hardware\":\"gpu\""));
    static const char *const pointers[] = {"/config/model_name", "/config/compile_topology",
                                           "/config/num_slices", "/config/hardware"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        const struct adv_finding *finding = find(&warnings, pointers[i]);
        assert_true(finding && finding->rule && strcmp(finding->rule, "contradiction") == 0);
    }
    assert_ok(decode_config("\"model_name\":\"llama3.1-8b\",\"compile_topology\":\"tpu7x-64\","
                            "\"compile_topology_num_slices\":1,\"hardware\":\"tpu\",\"num_slices\":-1"));
    assert_null(find_rule(&warnings, "contradiction"));
}

static void sizes_beyond_counting_are_told_in_the_words_of_the_request(void **state)
{
    (void)state;
    assert_int_equal(
        decode("{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x8\"},"
               "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":33554432}}"),
        ADV_E_RANGE);
    assert_non_null(find(&err, "/config/max_target_length"));
    assert_int_equal(
        decode("{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x8\"},"
               "\"config\":{\"per_device_batch_size\":64,\"max_target_length\":1048576}}"),
        ADV_E_RANGE);
    assert_int_equal(err.count, 1);
    assert_string_equal(err.findings[0].pointer, "/config/per_device_batch_size");
}

static void architecture_keys_in_the_config_reshape_the_model(void **state)
{
    (void)state;
    assert_ok(decode_config(
        "\"base_num_decoder_layers\":16,\"base_emb_dim\":\"2048\",\"override_model_config\":true"));
    assert_int_equal(request.model.layers_count, 16);
    assert_int_equal(request.model.emb_dim, 2048);
    assert_null(find_rule(&warnings, "model-key-conflict"));
    assert_ok(decode_config("\"base_emb_dim\":2048"));
    assert_int_equal(must_find(&warnings, "model-key-conflict")->code, ADV_E_ILLEGAL);
    assert_ok(decode_config("\"enable_dropout\":0")); /* the model's false */
    assert_null(find_rule(&warnings, "model-key-conflict"));
    assert_ok(decode_config("\"enable_dropout\":1"));
    assert_int_equal(must_find(&warnings, "model-key-conflict")->code, ADV_E_ILLEGAL);
}

static void the_models_own_file_sets_training_defaults(void **state)
{
    (void)state;
    assert_ok(decode("{\"model\":\"gpt3-175b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},"
                     "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":2048}}"));
    assert_int_equal(request.plan.family.optimizer, ADV_OPT_ADAM_PAX);
}

static void tensors_are_placed_under_the_custom_policy_only(void **state)
{
    (void)state;
    assert_ok(decode_config(
        "\"remat_policy\":\"custom\",\"query_proj\":\"offload\",\"decoder_layer_input\":\"remat\""));
    assert_int_equal(request.plan.placements[ADV_TENSOR_QUERY_PROJ], ADV_PLACE_OFFLOAD);
    assert_int_equal(request.plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT], ADV_PLACE_REMAT);
    assert_ok(decode_config("\"remat_policy\":\"custom\""));
    assert_int_equal(request.plan.placements[ADV_TENSOR_DECODER_LAYER_INPUT], ADV_PLACE_DEVICE);
    assert_ok(decode_config("\"remat_policy\":\"full\",\"decoder_layer_input\":\"device\""));
    assert_null(find_rule(&warnings, "ignored-placement"));
    assert_ok(decode_config("\"remat_policy\":\"full\",\"query_proj\":\"offload\""));
    assert_int_equal(request.plan.placements[ADV_TENSOR_QUERY_PROJ], ADV_PLACE_REMAT);
    assert_non_null(find_rule(&warnings, "ignored-placement"));
}

static void fixed_scales_without_effect_are_said_to_be(void **state)
{
    (void)state;
    assert_ok(decode_config("\"quantization\":\"fp8_full\",\"use_qwix_quantization\":true,"
                            "\"weight_quantization_calibration_method\":\"fixed,-224,224\","
                            "\"act_quantization_calibration_method\":\"fixed,-224,224\""));
    assert_null(find_rule(&warnings, "ignored-calibration"));
    assert_ok(decode_config("\"quantization\":\"int8\","
                            "\"weight_quantization_calibration_method\":\"fixed,-224,224\","
                            "\"act_quantization_calibration_method\":\"fixed,-224,224\""));
    assert_non_null(find_rule(&warnings, "ignored-calibration"));
}

static void blocks_beside_attention_without_blocks_are_said_to_be_unused(void **state)
{
    (void)state;
    static const char *const with_blocks[] = {"\"attention\":\"flash\",\"sa_block_q\":1024",
                                              "\"sa_block_q\":1024", "\"attention\":\"dot_product\""};
    for (size_t i = 0; i < sizeof with_blocks / sizeof *with_blocks; i++) {
        assert_ok(decode_config(with_blocks[i]));
        assert_null(find_rule(&warnings, "block-unused"));
    }
    assert_ok(decode_config("\"attention\":\"dot_product\",\"local_sa_block_kv\":512,\"sa_block_q\":1024"));
    assert_int_equal(warnings.count, 2);
    for (int i = 0; i < 2; i++) assert_string_equal(warnings.findings[i].rule, "block-unused");
    const struct adv_finding *found = find_rule(&warnings, "block-unused");
    assert_string_equal(found->pointer, "/config/sa_block_q");
    assert_string_equal(found->detail, "sa_block_q changes nothing: attention dot_product has no blocks");
    assert_string_equal(found->hint, "leave it out, or set attention flash");
}

static void first_moment_follows_the_weights_unless_given(void **state)
{
    (void)state;
    assert_ok(decode_config("\"weight_dtype\":\"bfloat16\""));
    assert_int_equal(request.plan.family.mu_dtype, ADV_FORMAT_BF16);
    assert_ok(decode_config("\"weight_dtype\":\"bfloat16\",\"mu_dtype\":\"float32\""));
    assert_int_equal(request.plan.family.mu_dtype, ADV_FORMAT_F32);
}

static void local_blocks_inherit_the_global_ones(void **state)
{
    (void)state;
    assert_ok(
        decode_config("\"sa_block_q\":1024,\"local_sa_block_kv\":256,\"local_sa_block_kv_compute\":256"));
    assert_int_equal(request.plan.family.blocks[1].block_q, 1024);
    assert_int_equal(request.plan.family.blocks[1].block_kv, 256);
    assert_int_equal(request.plan.family.blocks[0].block_kv, 512);
}

static void axes_outside_the_mesh_are_ignored_with_a_warning(void **state)
{
    (void)state;
    assert_ok(decode_config("\"ici_sequence_parallelism\":4"));
    assert_int_equal(request.plan.family.ici[ADV_AXIS_SEQUENCE], 1);
    assert_non_null(find_rule(&warnings, "ignored-axis"));
}

static adv_code decode_flags(const char *flags)
{
    char text[2048];
    (void)snprintf(
        text, sizeof text,
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},\"config\":{"
        "\"per_device_batch_size\":1,\"max_target_length\":4096},\"xla_flags\":%s}",
        flags);
    return decode(text);
}

static void flags_mean_the_same_as_a_list_and_as_one_string(void **state)
{
    (void)state;
    assert_ok(
        decode_flags("[\"--xla_tpu_scoped_vmem_limit_kib=98304\",\"--xla_enable_async_all_gather=true\"]"));
    struct adv_flags listed = request.plan.flags;
    assert_int_equal(listed.scoped_vmem_limit_kib, 98304);
    assert_int_equal(listed.async_all_gather, 1);
    assert_int_equal(listed.sc_all_gather, -1);
    assert_ok(decode_flags(
        "\"LIBTPU_INIT_ARGS='--xla_tpu_scoped_vmem_limit_kib=98304 --xla_enable_async_all_gather=true'\""));
    assert_memory_equal(&listed, &request.plan.flags, sizeof listed);
    assert_string_equal(request.config.flags[1], "--xla_enable_async_all_gather=true");
}

static void a_flag_given_twice_counts_once_with_a_warning(void **state)
{
    (void)state;
    assert_ok(decode_flags("\"--xla_enable_async_all_gather=true --xla_enable_async_all_gather=false\""));
    assert_int_equal(request.plan.flags.async_all_gather, 0);
    assert_int_equal(request.config.flags_count, 1);
    assert_non_null(find_rule(&warnings, "contradictory-flags"));
}

static void unknown_flags_warn_and_bad_numbers_fail(void **state)
{
    (void)state;
    assert_ok(decode_flags("[\"--xla_tpu_scoped_vmem_limit_kb=1\"]"));
    assert_string_equal(must_find(&warnings, "unknown-flag")->hint,
                        "did you mean xla_tpu_scoped_vmem_limit_kib?");
    assert_int_equal(decode_flags("[\"--xla_tpu_scoped_vmem_limit_kib=lots\"]"), ADV_E_INVALID);
    assert_int_equal(decode_flags("[1]"), ADV_E_INVALID);
    assert_int_equal(decode_flags("7"), ADV_E_INVALID);
}

static void every_error_of_a_document_is_reported_at_once(void **state)
{
    (void)state;
    assert_int_equal(decode("{\"modle\":\"x\",\"cluster\":{\"chip\":\"v9\",\"topology\":\"4x4\"},\"config\":{"
                            "\"scan_layers\":7},"
                            "\"xla_flags\":{},\"flops_convention\":\"half\",\"label\":3}"),
                     ADV_E_INVALID);
    static const char *const pointers[] = {
        "/modle", "/model", "/cluster/chip", "/config/scan_layers", "/xla_flags", "/flops_convention",
        "/label"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        if (!find(&err, pointers[i])) fail_msg("%s is not reported", pointers[i]);
    }
}

static char *read_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    *bytes = file && text ? fread(text, 1, 1 << 20, file) : 0;
    if (file) (void)fclose(file);
    return text;
}

static void every_published_run_decodes_and_is_legal(void **state)
{
    (void)state;
    size_t bytes = 0;
    char *text = read_file("tests/accuracy/e2e.json", &bytes);
    json_t *rows = json_loadb(text, bytes, 0, NULL);
    free(text);
    assert_true(json_array_size(rows) > 100);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        json_t *row = json_array_get(rows, i);
        forget();
        adv_code code = adv_decode_estimate_request(catalog, json_object_get(row, "request"), &arena,
                                                    &request, &err, &warnings);
        if (code != ADV_OK) print_error("%s\n", json_string_value(json_object_get(row, "id")));
        assert_ok(code);
    }
    json_decref(rows);
}

static void an_answer_adds_up_and_is_the_same_every_time(void **state)
{
    (void)state;
    static const char text[] =
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},"
        "\"config\":{\"per_device_batch_size\":2,\"max_target_length\":8192}}";
    struct adv_answer first, second;
    forget();
    assert_ok(adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, text, strlen(text), &first, &err));
    assert_ok(adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, text, strlen(text), &second, &err));
    assert_string_equal(first.json, second.json);
    json_t *root = json_loads(first.json, 0, NULL);
    json_t *parts = json_object_get(root, "time_parts");
    double exposed_s = 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        exposed_s += json_number_value(json_object_get(json_array_get(parts, i), "exposed_seconds"));
    }
    assert_true(json_array_size(parts) > 0);
    assert_close(exposed_s, json_number_value(json_object_get(root, "step_time_s")), 1e-9);
    json_decref(root);
    adv_answer_free(&first);
    adv_answer_free(&second);
}

static void a_count_of_flops_beyond_the_executed_ones_is_told(void **state)
{
    (void)state;
    static const char *const models[] = {"olmo3-7b", "llama3.1-8b"};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"config\":{"
                       "\"per_device_batch_size\":1,\"max_target_length\":65536}}",
                       models[i]);
        struct adv_answer answer;
        forget();
        assert_ok(adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, text, strlen(text), &answer, &err));
        json_t *root = json_loads(answer.json, 0, NULL);
        double mfu = json_number_value(json_object_get(root, "mfu_frac"));
        double hfu = json_number_value(json_object_get(root, "hfu_frac"));
        assert_int_equal(strstr(answer.json, "flops-count") != NULL, hfu < mfu);
        assert_int_equal(hfu < mfu, i == 0);
        json_decref(root);
        adv_answer_free(&answer);
    }
}

static void an_array_is_answered_in_order_or_not_at_all(void **state)
{
    (void)state;
    static const char good[] =
        "[{\"chip\":\"v6e\",\"kernel\":\"matmul\",\"shape\":{\"m\":4096,\"k\":4096,\"n\":4096}},"
        "{\"chip\":\"tpu7x\",\"kernel\":\"matmul\",\"shape\":{\"m\":4096,\"k\":4096,\"n\":4096}}]";
    static const char bad[] = "[{\"chip\":\"v6e\",\"kernel\":\"matmul\",\"shape\":{\"m\":4096,\"k\":4096,"
                              "\"n\":4096}},{\"chip\":\"v6e\"}]";
    char *answers = NULL;
    size_t bytes = 0;
    forget();
    assert_ok(adv_answer_documents(catalog, ADV_REQUEST_SIMULATE, good, strlen(good), NULL, NULL, &answers,
                                   &bytes, NULL, &err));
    json_t *root = json_loadb(answers, bytes, 0, NULL);
    assert_int_equal(json_array_size(root), 2);
    assert_string_equal(json_string_value(json_object_get(json_array_get(root, 1), "chip")), "tpu7x");
    json_decref(root);
    free(answers);
    assert_int_not_equal(adv_answer_documents(catalog, ADV_REQUEST_SIMULATE, bad, strlen(bad), NULL, NULL,
                                              &answers, &bytes, NULL, &err),
                         ADV_OK);
    assert_null(answers);
    assert_non_null(find(&err, "/1/kernel"));
}

static void a_document_that_is_no_object_is_called_so(void **state)
{
    (void)state;
    static const struct {
        const char *text, *detail;
    } documents[] = {{"null", "must be an object, not null"},
                     {" 1 ", "must be an object, not an integer"},
                     {"\"x\"", "must be an object, not a string"},
                     {" \n", "the document is empty"},
                     {"", "the document is empty"},
                     {"{", "not valid JSON"}};
    static const enum adv_request_kind kinds[] = {ADV_REQUEST_ESTIMATE, ADV_REQUEST_ADVISE,
                                                  ADV_REQUEST_SIMULATE, ADV_REQUEST_TUNE};
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct adv_answer answer;
            forget();
            assert_int_not_equal(adv_answer_request(catalog, kinds[k], documents[i].text,
                                                    strlen(documents[i].text), &answer, &err),
                                 ADV_OK);
            assert_int_equal(err.count, 1);
            if (!strstr(err.findings[0].detail, documents[i].detail)) fail_msg("%s", err.findings[0].detail);
        }
    }
}

static void assert_hinted(const char *pointer, const char *word)
{
    const struct adv_finding *finding = find(&err, pointer);
    if (!finding || !strstr(finding->hint, word)) fail_msg("%s: no hint names %s", pointer, word);
}

static void an_unknown_block_or_policy_lists_the_known_ones(void **state)
{
    (void)state;
    (void)!decode(
        "{\"model\":{\"decoder_block\":\"foo\"},\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"}}");
    assert_hinted("/model/decoder_block", "`llama2`");
    assert_hinted("/model/decoder_block", "`olmo3`");
    (void)!decode_config("\"decoder_block\":\"foo\",\"remat_policy\":\"bar\"");
    assert_hinted("/config/decoder_block", "qwen3_next");
    assert_hinted("/config/remat_policy", "save_out_proj");
}

/* What is read is stored, and printed into the files of a plan. */
static void a_secret_is_refused_and_not_repeated(void **state)
{
    (void)state;
    assert_int_equal(decode_config("\"hf_access_token\":\"hf_abcdef\""), ADV_E_UNSUPPORTED);
    assert_hinted("/config/hf_access_token", "HF_TOKEN");
    const struct adv_finding *finding = find(&err, "/config/hf_access_token");
    if (finding && strstr(finding->detail, "hf_abcdef")) fail_msg("the error repeats the secret");
    assert_int_equal(decode_config("\"hf_access_token\":\"$HF_TOKEN\""), ADV_OK);
    assert_int_equal(decode_config("\"hf_access_token\":\"\""), ADV_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_secret_is_refused_and_not_repeated),
        cmocka_unit_test(a_document_that_is_no_object_is_called_so),
        cmocka_unit_test(an_unknown_block_or_policy_lists_the_known_ones),
        cmocka_unit_test(one_axis_takes_what_the_others_leave),
        cmocka_unit_test(two_open_axes_are_refused),
        cmocka_unit_test(slices_fill_the_data_axis_over_dcn),
        cmocka_unit_test(values_are_read_as_maxtext_reads_its_command_line),
        cmocka_unit_test(wrong_types_and_values_are_errors_with_their_pointer),
        cmocka_unit_test(unknown_keys_warn_with_the_nearest_name_and_fail_when_strict),
        cmocka_unit_test(experts_over_a_model_of_a_dense_block_are_refused_where_they_stand),
        cmocka_unit_test(what_has_to_be_above_zero_is_not_told_the_least_such_number),
        cmocka_unit_test(old_keys_take_effect_under_their_present_name),
        cmocka_unit_test(old_values_take_effect_under_their_present_name),
        cmocka_unit_test(old_names_of_dimensions_leave_the_given_model_alone),
        cmocka_unit_test(the_nearest_batch_is_one_that_is_legal),
        cmocka_unit_test(a_configuration_for_another_model_or_machine_is_told),
        cmocka_unit_test(sizes_beyond_counting_are_told_in_the_words_of_the_request),
        cmocka_unit_test(architecture_keys_in_the_config_reshape_the_model),
        cmocka_unit_test(the_models_own_file_sets_training_defaults),
        cmocka_unit_test(tensors_are_placed_under_the_custom_policy_only),
        cmocka_unit_test(fixed_scales_without_effect_are_said_to_be),
        cmocka_unit_test(blocks_beside_attention_without_blocks_are_said_to_be_unused),
        cmocka_unit_test(first_moment_follows_the_weights_unless_given),
        cmocka_unit_test(tiles_in_the_order_of_2025_are_turned_with_a_warning),
        cmocka_unit_test(local_blocks_inherit_the_global_ones),
        cmocka_unit_test(axes_outside_the_mesh_are_ignored_with_a_warning),
        cmocka_unit_test(flags_mean_the_same_as_a_list_and_as_one_string),
        cmocka_unit_test(a_flag_given_twice_counts_once_with_a_warning),
        cmocka_unit_test(unknown_flags_warn_and_bad_numbers_fail),
        cmocka_unit_test(every_error_of_a_document_is_reported_at_once),
        cmocka_unit_test(every_published_run_decodes_and_is_legal),
        cmocka_unit_test(an_answer_adds_up_and_is_the_same_every_time),
        cmocka_unit_test(a_count_of_flops_beyond_the_executed_ones_is_told),
        cmocka_unit_test(an_array_is_answered_in_order_or_not_at_all),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
