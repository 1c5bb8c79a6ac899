/* Whole answers to jobs of any size on any machine: odd batches, lengths and objectives, with all that can be
 * asked for beside them. Each ends, says numbers only, and ends soon when nobody waits any more. */
#include "tests/unit/check.h"

#include <string.h>
#include <unistd.h>

#include "engine/advise.h"
#include "engine/base/budget.h"
#include "tests/unit/catalog_fixture.h"
#include "tests/unit/draw.h"

enum { JOBS = 400, SECONDS_MOST = 300 };

static uint64_t random_state = UINT64_C(0x13198a2e03707344);

static int below(int bound)
{
    return (int)(draw_next(&random_state) % (uint64_t)bound);
}

#define ONE_OF(texts) ((texts)[below((int)(sizeof(texts) / sizeof *(texts)))])

static void draw(char *text, size_t text_bytes)
{
    static const char *const chips[] = {"tpu7x", "v6e", "v5p", "v5e", "v4"};
    static const char *const lengths[] = {"1",    "128",   "1000",   "2048",   "3000",
                                          "8192", "32768", "131072", "1048576"};
    static const char *const batches[] = {
        "\"global_batch_sequences\":7",    "\"global_batch_sequences\":64",
        "\"global_batch_sequences\":1000", "\"global_batch_sequences\":9999",
        "\"per_device_batch_size\":0.25",  "\"per_device_batch_size\":1.5",
        "\"per_device_batch_size\":16",    "\"tokens_per_step\":4194304",
        "\"global_batch_sequences\":2000"};
    static const char *const formats[] = {"", "", ",\"quantization\":\"any\"",
                                          ",\"weight_dtype\":\"bfloat16\""};
    static const char *const searches[] = {"",
                                           ",\"objective\":\"hbm\"",
                                           ",\"objective\":\"tokens_per_s\",\"fit_probability\":0.5",
                                           ",\"memory_frac\":0.3",
                                           ",\"max_evaluations\":100",
                                           ",\"fit_probability\":0.999"};
    const struct adv_catalog_tables *tables = adv_catalog_tables(catalog);
    const char *chip = ONE_OF(chips), *const *shapes = NULL;
    const int shapes_count = adv_catalog_shapes(catalog, chip, &shapes);
    snprintf(text, text_bytes,
             "{\"model\":\"%s\",\"cluster\":{\"chip\":\"%s\",\"topology\":\"%s\",\"slices\":%d},"
             "\"workload\":{\"seq_len\":%s,%s%s},\"search\":{\"top_k\":%d,\"sensitivities\":true%s},"
             "\"include\":[\"trade_off\"]}",
             tables->model_names[below(tables->models_count)], chip, shapes[below(shapes_count)],
             below(2) ? 1 : 1 + below(16), ONE_OF(lengths), ONE_OF(batches), ONE_OF(formats),
             below(4) ? 3 : 100, ONE_OF(searches));
}

/* A number that is none, as printf writes it, standing alone. */
static const char *not_a_number(const char *text)
{
    static const char *const words[] = {"nan", "inf"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        for (const char *at = strstr(text, words[i]); at; at = strstr(at + 1, words[i]))
            if (strchr(" -:(,=x", at[-1]) && strchr(" ,.;)%}", at[3])) return at;
    return NULL;
}

static void every_job_has_an_answer_in_numbers(void **state)
{
    (void)state;
    int ranked = 0;
    alarm(SECONDS_MOST); /* an answer that never comes ends the program */
    for (int i = 0; i < JOBS; i++) {
        char text[1024];
        struct adv_answer answer;
        adv_err err = adv_err_empty();
        draw(text, sizeof text);
        const adv_code code =
            adv_answer_request(catalog, ADV_REQUEST_ADVISE, text, strlen(text), &answer, &err);
        if (code) {
            if (code != ADV_E_INVALID || err.count == 0) fail_msg("%s: code %d", text, (int)code);
            continue;
        }
        const char *wrong = not_a_number(answer.json);
        if (wrong) fail_msg("%s\n%.160s", text, wrong - 80);
        ranked += strstr(answer.json, "\"rank\":1,") != NULL;
        adv_answer_free(&answer);
    }
    alarm(0);
    assert_in_range(ranked, JOBS / 8, JOBS);
}

struct patience {
    int asked, most;
};

static bool is_over(void *closure)
{
    struct patience *patience = closure;
    return ++patience->asked > patience->most;
}

/* Wherever it is by then: in the search, the texts or the sensitivities. */
static void a_job_that_nobody_waits_for_ends(void **state)
{
    (void)state;
    static const char text[] =
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\",\"slices\":2},"
        "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":1000},"
        "\"search\":{\"top_k\":3,\"sensitivities\":true},\"include\":[\"trade_off\"]}";
    alarm(SECONDS_MOST);
    int most = 1;
    for (adv_code code = ADV_E_TIMEOUT; code == ADV_E_TIMEOUT; most += 1 + most / 8) {
        struct patience patience = {.most = most};
        const struct adv_budget budget = {.over = is_over, .closure = &patience};
        struct adv_answer answer;
        adv_err err = adv_err_empty();
        code = adv_answer_within(catalog, ADV_REQUEST_ADVISE, text, strlen(text), &budget, &answer, &err);
        if (!code) adv_answer_free(&answer);
        assert_true(code == ADV_OK || code == ADV_E_TIMEOUT);
        assert_int_equal(code == ADV_OK, patience.asked <= most);
    }
    alarm(0);
    assert_true(most > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_job_has_an_answer_in_numbers),
                                       cmocka_unit_test(a_job_that_nobody_waits_for_ends)};
    return run_group_with_catalog(tests);
}
