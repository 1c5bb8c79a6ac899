/* The price of a plan is the number of its answer, or the refusal. */
#include "tests/unit/answer_fixture.h"

#include "engine/base/budget.h"

#define JOB(chip, topology)                                                                                  \
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"" chip "\",\"topology\":\"" topology "\"},"          \
    "\"config\":{\"per_device_batch_size\":1,\"max_target_length\":8192,\"ici_fsdp_parallelism\":16,"        \
    "\"remat_policy\":\"full\"}}"

static void a_price_is_that_of_the_answer_or_its_refusal(void **state)
{
    static const char *const texts[] = {
        JOB("v6e", "4x4"),
        JOB("v5p", "2x2x4"),
        "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\",\"overrides\":"
        "{\"clock_hz\":1.6e9}},\"software\":{\"maxtext\":\"0.2.2\"},\"include\":[\"scaling\"],\"config\":"
        "{\"per_device_batch_size\":1,\"max_target_length\":4096,\"ici_fsdp_parallelism\":32}}",
        "{\"model\":\"llama-of-old\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"config\":{}}",
        JOB("v6e", "16x16"), /* the mesh is another */
        "[]",
        "{",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct adv_answer answer;
        struct adv_price price;
        adv_err of_answer = adv_err_empty(), of_price = adv_err_empty();
        const size_t bytes = strlen(texts[i]);
        const adv_code code =
            adv_answer_request(catalog, ADV_REQUEST_ESTIMATE, texts[i], bytes, &answer, &of_answer);
        if (adv_price_within(catalog, texts[i], bytes, NULL, &price, &of_price) != code)
            fail_msg("%s: %s", texts[i], adv_code_slug(of_price.code));
        if (code) {
            assert_string_equal(of_price.findings[0].detail, of_answer.findings[0].detail);
            continue;
        }
        assert_true(price.step_time_s == answer.step_time_s);
        assert_true(price.hbm_bytes_per_device == answer.hbm_bytes_per_device);
        adv_answer_free(&answer);
    }
}

static bool is_over(void *closure)
{
    (void)closure;
    return true;
}

static void nobody_who_is_gone_gets_a_price(void **state)
{
    const struct adv_budget over = {.over = is_over};
    struct adv_price price;
    adv_err err = adv_err_empty();
    (void)state;
    assert_int_equal(
        adv_price_within(catalog, JOB("v6e", "4x4"), strlen(JOB("v6e", "4x4")), &over, &price, &err),
        ADV_E_TIMEOUT);
    assert_true(isnan(price.step_time_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_price_is_that_of_the_answer_or_its_refusal),
        cmocka_unit_test(nobody_who_is_gone_gets_a_price),
    };
    return run_group_with_catalog(tests);
}
