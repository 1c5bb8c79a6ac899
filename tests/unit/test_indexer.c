/* DeepSeek's sparse-attention indexer: its time and memory, and what an answer says of it. */
#include "tests/unit/cost_fixture.h"

#include <stdlib.h>

#include "engine/advise.h"
#include "engine/json/json_read.h"
#include "tests/unit/catalog_fixture.h"

/* The last kind of layer, under full rematerialisation. */
static struct adv_layer_time price(struct bench *b, const char *model, int64_t seq_len, int tensor)
{
    bench_open(b, model, "tpu7x", 4, 4, 4);
    round_constants(b);
    b->plan.family.seq_len = seq_len;
    b->plan.family.use_tokamax_splash = true;
    bench_axes(b, ADV_AXIS_TENSOR, tensor);
    bench_policy(b, ADV_POLICY_FULL);
    return bench_layer(b, b->model.layer_kinds_count - 1);
}

static void the_index_of_all_pairs_is_priced_forward_and_again(void **state)
{
    (void)state;
    static struct bench b;
    for (int tensor = 1; tensor <= 4; tensor *= 4) {
        (void)price(&b, "deepseek3.2-671b", 8192, tensor);
        const struct adv_slot *forward = &b.account.slots[ADV_TERM_INDEX_FWD];
        const struct adv_slot *again = &b.account.slots[ADV_TERM_INDEX_RECOMPUTE];
        /* of a sequence per device: heads are sharded, what sorts their sums is not */
        const double of_heads = 8192.0 * 8192.0, square = of_heads * tensor;
        assert_close(forward->flops, 2.0 * of_heads * 64 * 128, 1e-12);
        assert_close(again->flops, forward->flops, 1e-12);
        assert_close(forward->bytes, 140.0 * square, 1e-12);
        const double vreg_s = b.constants.splash_fwd_vreg_s;
        const double work_s = 2.0 * of_heads * 64 / 1024 * vreg_s + 91.0 * square / 1024 * vreg_s;
        assert_close(forward->seconds, work_s + adv_cost_stream_s(&b.cost, forward->bytes), 1e-12);
        assert_close(again->seconds, forward->seconds, 1e-12);
    }
}

static void up_to_the_keys_that_it_leaves_nothing_is_indexed(void **state)
{
    (void)state;
    static struct bench b;
    (void)price(&b, "deepseek3.2-671b", 2048, 1);
    assert_close(b.account.slots[ADV_TERM_INDEX_FWD].seconds, 0.0, 0.0);
    (void)price(&b, "deepseek3-671b", 8192, 1);
    assert_close(b.account.slots[ADV_TERM_INDEX_FWD].seconds, 0.0, 0.0);
}

/* 26 bytes a pair fill the layer's working set at long sequences; at short ones other moments are fuller. */
static void its_counts_are_in_the_layers_working_set(void **state)
{
    (void)state;
    static struct bench sparse, dense;
    (void)price(&sparse, "deepseek3.2-671b", 32768, 1);
    (void)price(&dense, "deepseek3-671b", 32768, 1);
    const double pairs = 32768.0 * 32768.0;
    const double fits = bench_estimate(&sparse)->hbm_bytes_per_device;
    assert_true(fits > bench_estimate(&dense)->hbm_bytes_per_device + 1e9);
    assert_true(bench_bytes(&sparse, "layer_working_set") > 26.0 * pairs);
    assert_true(bench_bytes(&dense, "layer_working_set") < 26.0 * pairs);
    assert_int_equal(sparse.estimate.confidence, ADV_CONFIDENCE_EXTRAPOLATED);
    assert_non_null(strstr(sparse.estimate.confidence_why, "indexer"));
}

static bool warns(const json_t *of, const char *code)
{
    for (struct adv_json_walk item = {.in = json_object_get(of, "warnings")}; adv_json_next(&item);)
        if (strcmp(json_string_value(json_object_get(item.value, "code")), code) == 0) return true;
    return false;
}

static json_t *ask(enum adv_request_kind kind, const char *text)
{
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    if (adv_answer_request(catalog, kind, text, strlen(text), &answer, &err) != ADV_OK)
        fail_msg("%s", err.findings[0].detail);
    json_t *root = json_loads(answer.json, 0, NULL);
    adv_answer_free(&answer);
    return root;
}

#define MACHINE "\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"},"

static void a_step_that_trains_no_model_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *model, *keys;
        bool warm_up, unmeasured;
    } cases[] = {
        {"deepseek3.2-671b", "\"max_target_length\":4096", true, true},
        {"deepseek3.2-671b", "\"max_target_length\":2048", true, false},
        {"deepseek3.2-671b", "\"max_target_length\":4096,\"indexer_sparse_training\":true", false, true},
        {"deepseek3-671b", "\"max_target_length\":4096", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        (void)snprintf(text, sizeof text,
                       "{\"model\":\"%s\"," MACHINE "\"config\":{%s,\"per_device_batch_size\":1,"
                       "\"ici_fsdp_parallelism\":512,\"attention\":\"flash\",\"use_tokamax_splash\":true}}",
                       cases[i].model, cases[i].keys);
        json_t *estimate = ask(ADV_REQUEST_ESTIMATE, text);
        assert_int_equal(warns(estimate, "indexer-warm-up"), cases[i].warm_up);
        assert_int_equal(warns(estimate, "indexer-unmeasured"), cases[i].unmeasured);
        json_decref(estimate);
        json_t *lint = ask(ADV_REQUEST_LINT, text);
        char *all = json_dumps(lint, 0);
        assert_int_equal(strstr(all, "indexer-warm-up") != NULL, cases[i].warm_up);
        assert_true(json_is_true(json_object_get(lint, "valid")));
        free(all);
        json_decref(lint);
    }
}

static void advised_plans_train_the_model(void **state)
{
    (void)state;
    json_t *answer = ask(ADV_REQUEST_ADVISE,
                         "{\"model\":\"deepseek3.2-671b\"," MACHINE "\"search\":{\"top_k\":2},\"workload\":{"
                         "\"seq_len\":4096,\"global_batch_sequences\":2048}}");
    const json_t *ranked = json_object_get(answer, "ranked");
    assert_true(json_array_size(ranked) > 0);
    for (struct adv_json_walk row = {.in = ranked}; adv_json_next(&row);) {
        const json_t *config = json_object_get(row.value, "config");
        assert_true(json_is_true(json_object_get(config, "indexer_sparse_training")));
        assert_false(warns(json_object_get(row.value, "estimate"), "indexer-warm-up"));
    }
    json_decref(answer);
}

/* A tokenizer is a file of the run, and its token a secret: no plan holds them. */
static void keys_that_a_run_must_add_are_named(void **state)
{
    (void)state;
    static const char request[] =
        "{\"model\":\"deepseek-custom\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"config\":{"
        "\"max_target_length\":4096,\"per_device_batch_size\":1,\"ici_fsdp_parallelism\":16,"
        "\"attention\":\"flash\",\"use_tokamax_splash\":true}}";
    static const enum adv_request_kind kinds[] = {ADV_REQUEST_ESTIMATE, ADV_REQUEST_LINT};
    for (int i = 0; i < 2; i++) {
        json_t *answer = ask(kinds[i], request);
        char *all = json_dumps(answer, 0);
        assert_non_null(strstr(all, "engram-tokenizer"));
        assert_non_null(strstr(all, "without tokenizer_path and hf_access_token"));
        free(all);
        json_decref(answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_of_all_pairs_is_priced_forward_and_again),
        cmocka_unit_test(up_to_the_keys_that_it_leaves_nothing_is_indexed),
        cmocka_unit_test(its_counts_are_in_the_layers_working_set),
        cmocka_unit_test(a_step_that_trains_no_model_is_told),
        cmocka_unit_test(advised_plans_train_the_model),
        cmocka_unit_test(keys_that_a_run_must_add_are_named),
    };
    return run_group_with_catalog(tests);
}
