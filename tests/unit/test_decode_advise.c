#include "tests/unit/check.h"

#include <string.h>

#include "engine/json/decode_kernel.h"
#include "tests/unit/decode_fixture.h"

static struct adv_advise_request advise;
static struct adv_kernel_request kernel;

static adv_code decode_advise(const char *members)
{
    char text[4096];
    json_t *root = NULL;
    forget();
    (void)snprintf(text, sizeof text,
                   "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"}%s%s}",
                   *members ? "," : "", members);
    adv_code code = adv_json_parse(text, strlen(text), &root, &err);
    if (code == ADV_OK) code = adv_decode_advise_request(catalog, root, &arena, &advise, &err, &warnings);
    json_decref(root);
    return code;
}

#define WORKLOAD "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256}"

static void the_workload_and_the_pins_make_the_base_plan(void **state)
{
    (void)state;
    assert_ok(
        decode_advise("\"workload\":{\"seq_len\":4096,\"tokens_per_step\":2097152,\"weight_dtype\":"
                      "\"bfloat16\",\"optimizer\":\"sgd\"},"
                      "\"pins\":{\"ici_tensor_parallelism\":4,\"remat_policy\":\"full\",\"steps\":30}"));
    assert_int_equal(advise.workload.base.family.seq_len, 4096);
    assert_int_equal(advise.workload.base.family.optimizer, ADV_OPT_SGD);
    assert_int_equal(advise.workload.base.family.mu_dtype, ADV_FORMAT_BF16);
    assert_true(advise.axis_pinned[ADV_AXIS_TENSOR] && advise.remat_pinned && !advise.tiles_pinned);
    assert_int_equal(advise.workload.base.family.ici[ADV_AXIS_TENSOR], 4);
    assert_int_equal(advise.workload.base.family.ici[ADV_AXIS_FSDP], 1); /* open: the search fills it */
    assert_int_equal(advise.pins_count, 3);
    assert_close(advise.workload.tokens_per_step, 2097152, 0);
}

static void quantization_any_leaves_the_choice_open(void **state)
{
    (void)state;
    assert_ok(decode_advise(
        "\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":2,\"quantization\":\"any\"}"));
    assert_true(advise.workload.any_quantization && advise.batch_pinned);
    assert_ok(decode_advise("\"pins\":{\"quantization\":\"int8\"},\"workload\":{\"seq_len\":8192,"
                            "\"per_device_batch_size\":2,\"quantization\":\"any\"}"));
    assert_false(advise.workload.any_quantization); /* a pin is not the search's to change */
    assert_int_equal(advise.workload.base.family.quantization, ADV_QUANT_INT8);
    assert_ok(decode_advise(
        "\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":2,\"quantization\":\"fp8_full\"}"));
    assert_int_equal(advise.workload.base.family.quantization, ADV_QUANT_FP8_FULL);
    assert_true(advise.workload.base.family.use_qwix);
}

static void the_batch_is_given_exactly_once(void **state)
{
    (void)state;
    assert_int_equal(decode_advise("\"workload\":{\"seq_len\":8192}"), ADV_E_INVALID);
    assert_int_equal(
        decode_advise("\"workload\":{\"seq_len\":8192,\"per_device_batch_size\":2,\"tokens_per_step\":1e6}"),
        ADV_E_INVALID);
    assert_ok(decode_advise(WORKLOAD ",\"pins\":{\"per_device_batch_size\":1}")); /* two accumulation steps */
    assert_true(advise.batch_pinned && advise.workload.per_device_batch_size == 0);
    assert_ok(decode_advise("\"workload\":{\"seq_len\":8192},\"pins\":{\"per_device_batch_size\":2}"));
    assert_close(advise.workload.per_device_batch_size, 2, 0);
}

static void pins_may_not_contradict_the_workload(void **state)
{
    (void)state;
    assert_int_equal(decode_advise(WORKLOAD ",\"pins\":{\"max_target_length\":4096}"), ADV_E_INVALID);
    assert_non_null(find(&err, "/pins/max_target_length"));
    assert_int_equal(decode_advise(WORKLOAD
                                   ",\"pins\":{\"model_name\":\"gemma-2b\",\"use_tokamax_splash\":true,"
                                   "\"sa_use_fused_bwd_kernel\":false}"),
                     ADV_E_INVALID);
    assert_non_null(find(&err, "/pins/model_name"));
    assert_non_null(find(&err, "/pins/sa_use_fused_bwd_kernel")); /* nothing of tokamax is not fused */
    assert_int_equal(err.count, 2);
    assert_ok(decode_advise(WORKLOAD ",\"pins\":{\"max_target_length\":8192}"));
}

static void pinned_axes_must_fit_the_slice(void **state)
{
    (void)state;
    assert_int_equal(decode_advise(WORKLOAD ",\"pins\":{\"ici_tensor_parallelism\":3}"), ADV_E_ILLEGAL);
    assert_non_null(find(&err, "/pins"));
    assert_ok(decode_advise(WORKLOAD ",\"pins\":{\"ici_fsdp_parallelism\":-1}"));
    assert_false(advise.axis_pinned[ADV_AXIS_FSDP]);
}

static void a_baseline_is_checked_where_it_stands(void **state)
{
    (void)state;
    assert_int_equal(
        decode_advise(WORKLOAD
                      ",\"baseline\":{\"config\":{\"ici_tensor_parallelism\":16,\"per_device_batch_size\":2},"
                      "\"xla_flags\":7}"),
        ADV_E_INVALID);
    assert_non_null(find(&err, "/baseline/xla_flags"));
    assert_int_equal(
        decode_advise(
            WORKLOAD
            ",\"baseline\":{\"config\":{\"ici_tensor_parallelism\":16,\"per_device_batch_size\":2}}"),
        ADV_E_ILLEGAL);
    assert_non_null(find(&err, "/baseline/config/ici_tensor_parallelism"));
    assert_ok(decode_advise(
        WORKLOAD ",\"baseline\":{\"config\":{\"per_device_batch_size\":2}},\"search\":{\"max_changes\":2}"));
    assert_true(advise.has_baseline);
    assert_int_equal(advise.max_changes, 2);
}

static void search_options_are_checked(void **state)
{
    (void)state;
    assert_int_equal(decode_advise(WORKLOAD ",\"search\":{\"objective\":\"speed\",\"top_k\":0,\"axes\":["
                                            "\"fsdp\",\"warp\"],\"max_changes\":1}"),
                     ADV_E_INVALID);
    static const char *const pointers[] = {"/search/objective", "/search/top_k", "/search/axes/1",
                                           "/search/max_changes"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) assert_non_null(find(&err, pointers[i]));
    assert_int_equal(decode_advise(WORKLOAD ",\"search\":{\"axes\":[\"warp\"]}"), ADV_E_INVALID);
    assert_int_equal(err.count, 1); /* one mistake, one error */
    assert_non_null(strstr(err.findings[0].hint, "fsdp_transpose"));
    assert_ok(decode_advise(
        WORKLOAD
        ",\"search\":{\"axes\":[\"fsdp\",\"ici_tensor_parallelism\"],\"top_k\":3,\"objective\":\"hbm\"}"));
    assert_true(advise.axis_allowed[ADV_AXIS_FSDP] && advise.axis_allowed[ADV_AXIS_TENSOR] &&
                !advise.axis_allowed[ADV_AXIS_DATA]);
    assert_int_equal(advise.objective, ADV_OBJECTIVE_HBM);
}

static void misplaced_members_are_sent_to_their_place(void **state)
{
    (void)state;
    static const char *const moved[][2] = {
        {"/search/pins", "it belongs at /pins"},
        {"/search/seq_len", "it belongs at /workload/seq_len"},
        {"/top_k", "it belongs at /search/top_k"},
        {"/search/top", "did you mean `top_k`?"},
    };
    assert_int_equal(decode_advise(WORKLOAD ",\"top_k\":3,\"search\":{\"pins\":{},\"seq_len\":1,\"top\":2}"),
                     ADV_E_INVALID);
    for (size_t i = 0; i < sizeof moved / sizeof *moved; i++) {
        const struct adv_finding *finding = find(&err, moved[i][0]);
        assert_non_null(finding);
        assert_string_equal(finding->hint, moved[i][1]);
    }
}

static void dollars_need_a_price(void **state)
{
    (void)state;
    bool priced = !isnan(adv_catalog_chip(catalog, "tpu7x")->chip.price_usd_per_chip_hour);
    adv_code code = decode_advise(WORKLOAD ",\"search\":{\"objective\":\"usd_per_token\"}");
    assert_int_equal(code == ADV_OK, priced);
}

static adv_code decode_kernel(const char *text, bool with_tile)
{
    json_t *root = NULL;
    forget();
    adv_code code = adv_json_parse(text, strlen(text), &root, &err);
    if (code == ADV_OK)
        code = adv_decode_kernel_request(catalog, root, with_tile, &arena, &kernel, &err, &warnings);
    json_decref(root);
    return code;
}

static void kernel_requests_take_published_names(void **state)
{
    (void)state;
    assert_ok(decode_kernel(
        "{\"chip\":\"v7x\",\"kernel\":\"splash_fwd\",\"shape\":{\"batch\":2,\"q_heads\":32,\"kv_heads\":8,"
        "\"q_len\":8192,"
        "\"head_dim_qk\":128,\"causal\":true,\"window\":null,\"dtype\":\"bf16\"},\"tile\":{\"block_q\":1024,"
        "\"block_kv\":2048,\"block_kv_compute\":512,\"q_layout\":2,\"k_layout\":\"HEAD_DIM_MINOR\"},"
        "\"flags\":{\"use_max_logit_estimate\":30,\"xla_tpu_scoped_vmem_limit_kib\":65536}}",
        true));
    assert_int_equal(kernel.attention.kv_len, 8192);
    assert_int_equal(kernel.attention.head_dim_v, 128);
    assert_int_equal(kernel.tile.attention.q_layout, ADV_LAYOUT_SEQ_MINOR);
    assert_true(kernel.attention_flags.max_logit_constant);
    assert_close(kernel.scoped_vmem_limit_bytes, 67108864, 0);
}

static void kernel_requests_report_every_missing_member(void **state)
{
    (void)state;
    assert_int_equal(decode_kernel("{\"chip\":\"v7x\",\"kernel\":\"gmm\",\"shape\":{\"m\":1024,\"k\":512,"
                                   "\"num_groups\":2,\"group_sizes\":"
                                   "[1,2000]},\"tile\":{\"tile_m\":0,\"tile_q\":1}}",
                                   true),
                     ADV_E_INVALID);
    static const char *const pointers[] = {"/shape/n",     "/shape/group_sizes", "/tile/tile_m",
                                           "/tile/tile_k", "/tile/tile_n",       "/tile/tile_q"};
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        if (!find(&err, pointers[i])) fail_msg("%s is not reported", pointers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_workload_and_the_pins_make_the_base_plan),
        cmocka_unit_test(quantization_any_leaves_the_choice_open),
        cmocka_unit_test(the_batch_is_given_exactly_once),
        cmocka_unit_test(pins_may_not_contradict_the_workload),
        cmocka_unit_test(pinned_axes_must_fit_the_slice),
        cmocka_unit_test(a_baseline_is_checked_where_it_stands),
        cmocka_unit_test(search_options_are_checked),
        cmocka_unit_test(misplaced_members_are_sent_to_their_place),
        cmocka_unit_test(dollars_need_a_price),
        cmocka_unit_test(kernel_requests_take_published_names),
        cmocka_unit_test(kernel_requests_report_every_missing_member),
    };
    int failed = run_group_with_catalog(tests);
    adv_arena_free(&arena);
    return failed;
}
