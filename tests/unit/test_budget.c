/* The engine gives up within 50 ms after nobody waits any more, wherever it is; and a budget limits what one
 * request may ask for. Times are of the thread's processor, so that other programs do not count. */
#include "tests/unit/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/advise.h"
#include "engine/base/budget.h"
#include "tests/unit/catalog_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const double allowed_s = 1.0; /* checked programs are slower */
#else
static const double allowed_s = 0.05;
#endif

struct watch {
    long asked, over_from;            /* over from this question on; -1: never */
    double last_s, longest_s, over_s; /* over_s: when it was first said */
};

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool over(void *closure)
{
    struct watch *watch = closure;
    const double at_s = now_s();
    if (at_s - watch->last_s > watch->longest_s) watch->longest_s = at_s - watch->last_s;
    watch->last_s = at_s;
    const bool says = watch->asked++ >= watch->over_from && watch->over_from >= 0;
    if (says && watch->over_s <= 0) watch->over_s = at_s;
    return says;
}

static adv_code ask(enum adv_request_kind kind, const char *text, struct watch *watch)
{
    const struct adv_budget budget = {.over = over, .closure = watch};
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    watch->last_s = now_s();
    adv_code code = adv_answer_within(catalog, kind, text, strlen(text), &budget, &answer, &err);
    (void)over(watch); /* the way from the last question to the answer */
    if (code == ADV_OK) adv_answer_free(&answer);
    return code;
}

#define POD                                                                                                  \
    "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"16x24x24\"},\"workload\":" \
    "{\"seq_len\":8192,\"global_batch_sequences\":36864},\"search\":{\"top_k\":100,\"sensitivities\":true}}"
#define LARGE                                                                                                \
    "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"8x16x16\"},\"workload\":"  \
    "{\"seq_len\":8192,\"global_batch_sequences\":16384},\"search\":{\"top_k\":100,\"sensitivities\":true}}"
#define MANY                                                                                                 \
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"any\",\"chips\":512},"         \
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":720720000}}"
#define PINNED                                                                                               \
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"any\",\"chips\":512},"         \
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":720720000},\"pins\":{\"sa_block_q\":1024}}"
#define NOTHING_FITS                                                                                         \
    "{\"model\":\"llama3.1-405b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\",\"slices\":64},"        \
    "\"workload\":{\"seq_len\":131072,\"global_batch_sequences\":1024}}"
#define SMALLEST                                                                                             \
    "{\"model\":\"qwen3-235b-a22b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"16x16\",\"slices\":2},"     \
    "\"workload\":{\"seq_len\":32768,\"global_batch_sequences\":2048,\"quantization\":\"any\"},\"search\":"  \
    "{\"objective\":\"hbm\",\"top_k\":100}}"
#define KERNEL(shape)                                                                                        \
    "{\"chip\":\"v4\",\"kernel\":\"splash_bwd_dkv\",\"shape\":{\"batch\":1,\"q_heads\":8,\"kv_heads\":1,"    \
    "\"q_len\":" shape ",\"kv_len\":" shape ",\"head_dim_qk\":192,\"head_dim_v\":128,\"causal\":true,"       \
    "\"dtype\":\"bfloat16\",\"window\":5000},\"tile\":{\"block_q_dkv\":128,\"block_kv_dkv\":128,"            \
    "\"block_kv_dkv_compute\":128},\"timeline\":true}"

#define TUNE_ATTENTION                                                                                       \
    "{\"chip\":\"tpu7x\",\"kernel\":\"splash_fwd\",\"shape\":{\"batch\":1,\"q_heads\":64,\"kv_heads\":8,"    \
    "\"q_len\":983040,\"kv_len\":983040,\"head_dim_qk\":128,\"head_dim_v\":128,\"causal\":true,"             \
    "\"dtype\":\"bfloat16\"},\"wide\":true,\"tile_map\":true}"
#define TUNE_GROUPED                                                                                         \
    "{\"chip\":\"tpu7x\",\"kernel\":\"gmm\",\"shape\":{\"m\":1048576,\"k\":6144,\"n\":6144,"                 \
    "\"num_groups\":256},\"wide\":true,\"tile_map\":true}"
#define TUNE_LOSS                                                                                            \
    "{\"chip\":\"tpu7x\",\"kernel\":\"linear_xent\",\"shape\":{\"tokens\":65536,\"emb_dim\":8192,"           \
    "\"vocab\":131072},\"wide\":true,\"tile_map\":true}"

static const struct {
    enum adv_request_kind kind;
    const char *text;
} costly[] = {
    {ADV_REQUEST_ADVISE, POD},
    {ADV_REQUEST_ADVISE, LARGE},
    {ADV_REQUEST_ADVISE, MANY},
    {ADV_REQUEST_ADVISE, PINNED},
    {ADV_REQUEST_ADVISE, NOTHING_FITS},
    {ADV_REQUEST_ADVISE, SMALLEST},
    {ADV_REQUEST_SIMULATE, KERNEL("983040")},
    {ADV_REQUEST_SIMULATE, KERNEL("8388608")},
    {ADV_REQUEST_TUNE, TUNE_ATTENTION},
    {ADV_REQUEST_TUNE, TUNE_GROUPED},
    {ADV_REQUEST_TUNE, TUNE_LOSS},
};
enum { COSTLY = sizeof costly / sizeof *costly, ATTEMPTS = 4 };

/* How many questions request `i` asks, none long after the one before. */
static long questions_of(int i)
{
    double longest_s = (double)INFINITY; /* of the best attempt: neighbours on the core make one slow */
    long asked = 0;
    for (int attempt = 0; attempt < ATTEMPTS && longest_s > allowed_s; attempt++) {
        struct watch watch = {.over_from = -1};
        assert_int_equal(ask(costly[i].kind, costly[i].text, &watch), ADV_OK);
        longest_s = fmin(longest_s, watch.longest_s);
        asked = watch.asked;
    }
    if (longest_s > allowed_s) fail_msg("request %d: %.1f ms between two questions", i, 1e3 * longest_s);
    return asked;
}

/* After one question, seven, forty-nine, …: wherever it is, it ends soon and says so. */
static void the_engine_asks_often_and_gives_up_at_once_wherever_it_is(void **state)
{
    (void)state;
    for (int i = 0; i < COSTLY; i++) {
        const long asked = questions_of(i);
        for (long from = 0; from < asked - 1; from = from ? from * 7 : 1) {
            double late_s = (double)INFINITY;
            for (int attempt = 0; attempt < ATTEMPTS && late_s > allowed_s; attempt++) {
                struct watch watch = {.over_from = from};
                assert_int_equal(ask(costly[i].kind, costly[i].text, &watch), ADV_E_TIMEOUT);
                late_s = fmin(late_s, watch.last_s - watch.over_s);
            }
            if (late_s > allowed_s)
                fail_msg("request %d given up at %ld: answered %.1f ms later", i, from, 1e3 * late_s);
        }
    }
}

static void a_long_string_of_flags_is_refused_soon(void **state)
{
    (void)state;
    enum { BYTES = 1000000 };
    static const char *const repeated[] = {"--xla_tpu_unknown=1 ", "-a ", "--xla_a=b\\n", "\\\" "};
    for (size_t i = 0; i < sizeof repeated / sizeof *repeated; i++) {
        char *text = malloc(BYTES + 512);
        assert_non_null(text);
        int used = snprintf(text, BYTES,
                            "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},"
                            "\"config\":{},\"xla_flags\":\"");
        while (used < BYTES) used += snprintf(text + used, 64, "%s", repeated[i]);
        (void)snprintf(text + used, 16, "\"}");
        struct watch watch = {.over_from = -1};
        adv_code code = ask(ADV_REQUEST_ESTIMATE, text, &watch);
        assert_true(code == ADV_OK || code == ADV_E_TOO_LARGE);
        assert_true(watch.longest_s < 4 * allowed_s);
        free(text);
    }
}

static void a_budget_limits_machines_and_plans(void **state)
{
    (void)state;
    static const char *const clusters =
        "{\"model\":\"llama3.1-8b\",\"clusters\":[{\"chip\":\"v6e\",\"topology\":\"4x4\"},{\"chip\":\"v5p\","
        "\"topology\":\"2x2x2\"}],\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64},\"search\":{"
        "\"top_k\":%d,\"sensitivities\":%s}}";
    static const struct {
        int machines_max, plans_max, top_k;
        bool sensitivities;
        adv_code code;
        const char *pointer;
    } rows[] = {
        {0, 0, 10, true, ADV_OK, ""},
        {2, 40, 10, true, ADV_OK, ""},
        {1, 0, 1, false, ADV_E_RANGE, "/clusters"},
        {2, 39, 10, true, ADV_E_RANGE, "/search/top_k"},
        {2, 20, 10, false, ADV_OK, ""},
        {2, 19, 10, false, ADV_E_RANGE, "/search/top_k"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[512];
        struct adv_answer answer;
        adv_err err;
        adv_err_init(&err);
        (void)snprintf(text, sizeof text, clusters, rows[i].top_k, rows[i].sensitivities ? "true" : "false");
        const struct adv_budget budget = {.machines_max = rows[i].machines_max,
                                          .plans_max = rows[i].plans_max};
        adv_code code =
            adv_answer_within(catalog, ADV_REQUEST_ADVISE, text, strlen(text), &budget, &answer, &err);
        assert_int_equal(code, rows[i].code);
        if (code == ADV_OK)
            adv_answer_free(&answer);
        else
            assert_string_equal(err.findings[0].pointer, rows[i].pointer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_engine_asks_often_and_gives_up_at_once_wherever_it_is),
        cmocka_unit_test(a_long_string_of_flags_is_refused_soon),
        cmocka_unit_test(a_budget_limits_machines_and_plans),
    };
    return run_group_with_catalog(tests);
}
