#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/emit/config.h"
#include "engine/emit/flags.h"
#include "engine/json/decode_flags.h"
#include "engine/json/decode_plan.h"
#include "engine/json/encode_common.h"

static const char *const requests[] = {
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256,"
    "\"mu_dtype\":\"bfloat16\"}}",
    "{\"model\":\"gpt-oss-120b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":1280,"
    "\"quantization\":\"any\"},\"search\":{\"top_k\":4}}",
    "{\"model\":\"gemma3-27b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256}}",
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\",\"slices\":2},\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":64,\"quantization\":\"any\"},\"search\":{\"top_k\":5}}",
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"accelerator\":\"tpu7x-512\"},\"workload\":{\"seq_len\":131072,\"global_batch_sequences\":64}}",
    "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_len\":4096,"
    "\"global_batch_sequences\":256,\"optimizer\":\"adam_pax\"},\"pins\":{\"ici_expert_parallelism\":2,\"steps\":30}}",
};
enum { REQUESTS = sizeof requests / sizeof *requests };

/* Reads the emitted keys and flags back; all warnings of decoding and legality end up in fixture->warnings. */
static void read_back(struct fixture *fixture, struct adv_config *config, struct adv_plan *plan)
{
    json_t *keys = adv_encode_config(config);
    json_t *flags = adv_encode_flags(config);
    json_t *own = json_deep_copy(keys);
    json_object_del(own, "model_name");
    struct adv_decode_config_input input = {fixture->catalog, &fixture->request->model, &fixture->request->cluster, own, NULL, "/config",
                                            true, &fixture->arena};
    struct adv_config echo;
    memset(&echo, 0, sizeof echo);
    adv_err_init(&fixture->warnings);
    if (adv_decode_config(&input, plan, &echo, &fixture->err, &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    if (adv_decode_flags(fixture->catalog, flags, "/xla_flags", true, &fixture->arena, &plan->flags, &echo, &fixture->err,
                         &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    if (adv_plan_check(plan, &fixture->request->model, &fixture->request->cluster, &fixture->err, &fixture->warnings) != ADV_OK)
        fail_msg("%s: %s", fixture->err.findings[0].pointer, fixture->err.findings[0].detail);
    json_decref(keys);
    json_decref(flags);
    json_decref(own);
}

static void emitted_keys_and_flags_decode_to_the_same_estimate_without_a_warning(void **state)
{
    (void)state;
    for (int r = 0; r < REQUESTS; r++) {
        static struct fixture fixture;
        static struct adv_config config;
        struct adv_search_result result;
        fixture_search(&fixture, requests[r], &result);
        assert_true(result.found_count > 0);
        for (int i = 0; i < result.found_count; i++) {
            const struct adv_candidate *candidate = &result.found[i];
            const struct adv_advise_request *request = fixture.request;
            assert_int_equal(adv_emit_config(&candidate->plan, &request->model, &request->cluster, request->pins, request->pins_count,
                                             &fixture.arena, &config, &fixture.err),
                             ADV_OK);
            assert_int_equal(adv_emit_flags(&candidate->plan, &request->cluster, fixture.catalog, &fixture.arena, &config, &fixture.err), ADV_OK);
            struct adv_plan plan;
            read_back(&fixture, &config, &plan);
            if (fixture.warnings.count > 0) fail_msg("%s: %s", fixture.warnings.findings[0].pointer, fixture.warnings.findings[0].detail);
            struct adv_estimate estimate;
            struct adv_estimate_input input = {&request->model, &request->cluster, fixture.constants, &plan, ADV_FLOPS_CAUSAL_HALF};
            assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, &fixture.err), ADV_OK);
            assert_close(estimate.step_time_s, candidate->estimate.step_time_s, 1e-12);
            assert_close(estimate.hbm_bytes_per_device, candidate->estimate.hbm_bytes_per_device, 1e-12);
            assert_close(estimate.host_bytes_per_host, candidate->estimate.host_bytes_per_host, 1e-12);
        }
        fixture_close(&fixture);
    }
}

static void mesh_keys_are_complete_so_that_no_axis_fills_up(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[3]);
    struct adv_plan plan = fixture.request->workload.base;
    plan.ici[ADV_AXIS_FSDP] = 1;
    plan.ici[ADV_AXIS_DATA] = 16;
    plan.dcn[ADV_AXIS_DATA] = 1;
    plan.dcn[ADV_AXIS_FSDP] = 2;
    assert_int_equal(adv_emit_config(&plan, &fixture.request->model, &fixture.request->cluster, NULL, 0, &fixture.arena, &config, &fixture.err), ADV_OK);
    assert_string_equal(adv_emit_config_find(&config, "ici_fsdp_parallelism"), "1"); /* default -1 */
    assert_string_equal(adv_emit_config_find(&config, "dcn_data_parallelism"), "1"); /* default -1 */
    assert_string_equal(adv_emit_config_find(&config, "dcn_fsdp_parallelism"), "2");
    assert_string_equal(adv_emit_config_find(&config, "model_name"), "\"llama3.1-8b\"");
    assert_null(adv_emit_config_find(&config, "ici_tensor_parallelism"));
    fixture_close(&fixture);
}

static void keys_the_plan_does_not_speak_of_pass_through_as_pinned(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[5]);
    const struct adv_advise_request *request = fixture.request;
    assert_int_equal(adv_emit_config(&request->workload.base, &request->model, &request->cluster, request->pins, request->pins_count,
                                     &fixture.arena, &config, &fixture.err),
                     ADV_OK);
    assert_string_equal(adv_emit_config_find(&config, "steps"), "30");
    assert_string_equal(adv_emit_config_find(&config, "opt_type"), "\"adam_pax\"");
    fixture_close(&fixture);
}

static void a_model_without_a_name_is_written_as_dimensions(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[0]);
    fixture.request->model.maxtext_name[0] = '\0';
    assert_int_equal(adv_emit_config(&fixture.request->workload.base, &fixture.request->model, &fixture.request->cluster, NULL, 0,
                                     &fixture.arena, &config, &fixture.err),
                     ADV_OK);
    assert_null(adv_emit_config_find(&config, "model_name"));
    assert_string_equal(adv_emit_config_find(&config, "decoder_block"), "\"llama2\"");
    assert_string_equal(adv_emit_config_find(&config, "base_emb_dim"), "8192");
    assert_string_equal(adv_emit_config_find(&config, "base_num_kv_heads"), "8");
    assert_string_equal(adv_emit_config_find(&config, "base_mlp_dim"), "28672");
    assert_string_equal(adv_emit_config_find(&config, "base_num_decoder_layers"), "80");
    fixture_close(&fixture);
}

static void changes_name_exactly_the_keys_that_differ_with_defaults_spelled_out(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, requests[0]);
    struct adv_plan before = fixture.request->workload.base, after = before;
    after.policy = ADV_POLICY_CUSTOM;
    adv_policy_placements(ADV_POLICY_FULL, after.placements);
    after.placements[ADV_TENSOR_CONTEXT] = ADV_PLACE_OFFLOAD;
    after.num_vocab_tiling = 4;
    struct adv_config_change changes[8];
    int count = 0;
    assert_int_equal(adv_emit_changes(&before, &after, &fixture.request->model, &fixture.request->cluster, &fixture.arena, changes, 8, &count,
                                      &fixture.err),
                     ADV_OK);
    assert_int_equal(count, 3);
    assert_string_equal(changes[0].key, "remat_policy");
    assert_string_equal(changes[0].from_json, "\"full\"");
    assert_string_equal(changes[1].key, "context");
    assert_string_equal(changes[1].from_json, "\"remat\"");
    assert_string_equal(changes[1].to_json, "\"offload\"");
    assert_string_equal(changes[2].key, "num_vocab_tiling");
    assert_string_equal(changes[2].from_json, "1");
    fixture_close(&fixture);
}

static void each_flag_is_written_once_and_bundles_do_not_override_the_plan(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_config config;
    fixture_open(&fixture, requests[0]);
    struct adv_plan plan = fixture.request->workload.base;
    plan.flags.sc_all_gather = 1;
    plan.flags.cf_all_gather = -1;
    plan.flags.host_offload_scheduling = 1;
    assert_int_equal(adv_emit_flags(&plan, &fixture.request->cluster, fixture.catalog, &fixture.arena, &config, &fixture.err), ADV_OK);
    assert_true(config.flags_count > 10);
    for (int i = 0; i < config.flags_count; i++) {
        size_t length = strcspn(config.flags[i], "=");
        assert_int_not_equal(config.flags[i][length], '\0');
        assert_null(strstr(config.flags[i], "fuse_all_gather")); /* left to the compiler by the plan, set by a bundle */
        for (int k = 0; k < i; k++) assert_false(strlen(config.flags[k]) > length && !strncmp(config.flags[k], config.flags[i], length + 1));
    }
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emitted_keys_and_flags_decode_to_the_same_estimate_without_a_warning),
        cmocka_unit_test(mesh_keys_are_complete_so_that_no_axis_fills_up),
        cmocka_unit_test(keys_the_plan_does_not_speak_of_pass_through_as_pinned),
        cmocka_unit_test(a_model_without_a_name_is_written_as_dimensions),
        cmocka_unit_test(changes_name_exactly_the_keys_that_differ_with_defaults_spelled_out),
        cmocka_unit_test(each_flag_is_written_once_and_bundles_do_not_override_the_plan),
    };
    return run_group(tests);
}
