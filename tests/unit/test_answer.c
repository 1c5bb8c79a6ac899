#include "tests/unit/check.h"

#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/json/json_read.h"
#include "tests/unit/catalog_fixture.h"

static const char advise_request[] =
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},\"search\":{\"top_k\":3},"
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32}}";

static struct adv_answer ask(enum adv_request_kind kind, const char *text)
{
    adv_err err;
    struct adv_answer answer;
    adv_err_init(&err);
    adv_code code = adv_answer_request(catalog, kind, text, strlen(text), &answer, &err);
    for (int i = 0; i < err.count; i++)
        print_error("%s: %s\n", err.findings[i].pointer, err.findings[i].detail);
    assert_int_equal(code, ADV_OK);
    return answer;
}

static void ranked_plans_given_back_are_estimated_the_same_and_pass_strictly(void **state)
{
    (void)state;
    struct adv_answer advice = ask(ADV_REQUEST_ADVISE, advise_request);
    json_t *root = json_loads(advice.json, 0, NULL);
    json_t *ranked = json_object_get(root, "ranked");
    assert_int_equal(json_array_size(ranked), 3);
    for (size_t i = 0; i < json_array_size(ranked); i++) {
        json_t *row = json_array_get(ranked, i);
        json_t *document =
            json_pack("{s:s, s:{s:s, s:s}, s:O, s:O, s:b}", "model", "llama3.1-8b", "cluster", "chip", "v6e",
                      "topology", "2x4", "config", json_object_get(row, "config"), "xla_flags",
                      json_object_get(row, "xla_flags"), "strict", 1);
        char *text = json_dumps(document, 0);
        struct adv_answer again = ask(ADV_REQUEST_ESTIMATE, text);
        json_t *estimate = json_object_get(row, "estimate");
        assert_close(again.step_time_s, json_number_value(json_object_get(estimate, "step_time_s")), 1e-11);
        assert_close(again.hbm_bytes_per_device,
                     json_number_value(json_object_get(estimate, "hbm_bytes_per_device")), 1e-9);
        adv_answer_free(&again);
        free(text);
        json_decref(document);
    }
    json_decref(root);
    adv_answer_free(&advice);
}

static void elapsed_time_is_filled_in_by_who_has_a_clock(void **state)
{
    (void)state;
    struct adv_answer answer = ask(ADV_REQUEST_ADVISE, advise_request);
    assert_non_null(strstr(answer.json, "\"elapsed_ms\":null"));
    adv_answer_set_elapsed(&answer, 0.5);
    assert_int_equal(strlen(answer.json), answer.json_bytes);
    json_t *root = json_loads(answer.json, 0, NULL);
    json_t *search = json_object_get(root, "search");
    assert_close(json_number_value(json_object_get(search, "elapsed_ms")), 500, 0);
    assert_close(json_number_value(json_object_get(search, "evaluations_per_s")),
                 2.0 * (double)answer.evaluations, 1e-5);
    json_decref(root);
    adv_answer_free(&answer);
}

static void answers_carry_what_a_store_wants_to_know(void **state)
{
    (void)state;
    struct adv_answer answer =
        ask(ADV_REQUEST_ESTIMATE,
            "{\"model\":\"llama3.1-8b\",\"cluster\":{\"accelerator\":\"v6e-8\"},\"store\":true,"
            "\"label\":\"nightly\",\"project\":\"p\",\"git_ref\":\"abc\","
            "\"config\":{\"per_device_batch_size\":1}}");
    assert_true(answer.wants_store && answer.fits);
    assert_string_equal(answer.label, "nightly");
    assert_string_equal(answer.project, "p");
    assert_string_equal(answer.git_ref, "abc");
    assert_string_equal(answer.model, "llama3.1-8b");
    assert_string_equal(answer.topology, "2x4");
    assert_true(answer.step_time_s > 0);
    adv_answer_free(&answer);
}

static void tuning_never_loses_to_the_default_tiles(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "{\"chip\":\"tpu7x\",\"kernel\":\"splash_bwd_fused\",\"shape\":{\"q_heads\":16,\"kv_heads\":4,\"q_"
        "len\":4096,\"head_dim_qk\":128},\"top_k\":2}",
        "{\"chip\":\"v6e\",\"kernel\":\"gmm\",\"shape\":{\"m\":16384,\"k\":4096,\"n\":14336,\"num_groups\":8}"
        ",\"top_k\":2}",
        "{\"chip\":\"tpu7x\",\"kernel\":\"linear_xent\",\"shape\":{\"tokens\":4096,\"emb_dim\":4096,"
        "\"vocab\":128256},\"top_k\":2}"};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        struct adv_answer answer = ask(ADV_REQUEST_TUNE, requests[i]);
        json_t *root = json_loads(answer.json, 0, NULL);
        json_t *best = json_array_get(json_object_get(root, "ranked"), 0);
        json_t *second = json_array_get(json_object_get(root, "ranked"), 1);
        json_t *standard = json_object_get(root, "default");
        double best_us = json_number_value(json_object_get(best, "time_us"));
        assert_true(best_us > 0 && best_us <= json_number_value(json_object_get(second, "time_us")));
        assert_true(json_is_object(standard));
        if (json_is_true(json_object_get(standard, "fits_vmem"))) {
            assert_true(best_us <= json_number_value(json_object_get(standard, "time_us")) * (1 + 1e-9));
        }
        json_decref(root);
        adv_answer_free(&answer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranked_plans_given_back_are_estimated_the_same_and_pass_strictly),
        cmocka_unit_test(elapsed_time_is_filled_in_by_who_has_a_clock),
        cmocka_unit_test(answers_carry_what_a_store_wants_to_know),
        cmocka_unit_test(tuning_never_loses_to_the_default_tiles),
    };
    return run_group_with_catalog(tests);
}
