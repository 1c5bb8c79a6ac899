/* The promises of a near miss that may fit: it is worth a compile, and what its reason says to ask for ranks
 * it. */
#include "tests/property/search_jobs.h"

#include <math.h>

#include "engine/rank/rank.h"

/* Jobs at the limit of their memory, beside which there are such near misses. */
static const char *const tight[] = {
    "\"model\":\"gemma3-12b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"},"
    "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":64}",
    "\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\"},"
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":128}",
    "\"model\":\"llama2-13b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
    "\"workload\":{\"seq_len\":32768,\"global_batch_sequences\":64}",
    "\"model\":\"qwen3-32b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x1\"},"
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":16}",
    "\"model\":\"gemma2-9b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\"},"
    "\"workload\":{\"seq_len\":16384,\"global_batch_sequences\":64}",
};
enum { TIGHT = sizeof tight / sizeof *tight };

static struct fixture fixture;

static void ask(const char *job, const char *search, struct adv_search_result *result)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "{%s,\"search\":{%s}}", job, search);
    fixture_search(&fixture, text, result);
}

static double fastest_ranked_s(const struct adv_search_result *result)
{
    double fastest_s = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        fastest_s = fmin(fastest_s, result->found[i].estimate.step_time_s);
    return fastest_s;
}

static void each_is_legal_faster_than_all_that_is_ranked_and_may_fit(void **state)
{
    (void)state;
    int found = 0;
    for (int job = 0; job < TIGHT; job++) {
        struct adv_search_result result;
        ask(tight[job], "\"top_k\":5", &result);
        assert_true(result.near_count >= result.unsure_count);
        found += result.unsure_count > 0;
        for (int i = 0; i < result.unsure_count; i++) {
            const struct adv_candidate *candidate = &result.unsure[i];
            assert_null(
                adv_plan_broken_rule(&candidate->plan, &fixture.request->model, &fixture.request->cluster));
            assert_true(candidate->estimate.fit_probability >= ADV_UNSURE_PROBABILITY);
            assert_true(candidate->estimate.fit_probability < ADV_RANK_FIT_PROBABILITY);
            assert_true(candidate->estimate.step_time_s <=
                        fastest_ranked_s(&result) * (1 - ADV_WORTH_TELLING_FRAC));
            if (i > 0) assert_true(candidate->estimate.fit_probability > candidate[-1].estimate.fit_probability);
            assert_true(adv_plan_same_family(&result.near_misses[i].candidate.plan, &candidate->plan));
        }
        fixture_close(&fixture);
    }
    assert_true(found >= TIGHT - 1); /* each was such a job when it was chosen; constants move */
}

/* The user asks again as the reason says. */
static void the_probability_that_it_names_ranks_a_plan_as_fast(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT; job++) {
        struct adv_search_result result, again;
        double times_s[ADV_SEARCH_UNSURE];
        char search[ADV_SEARCH_UNSURE][64];
        ask(tight[job], "\"top_k\":5", &result);
        const int count = result.unsure_count;
        for (int i = 0; i < count; i++) {
            static const char says[] = "search.fit_probability=";
            const char *at = strstr(result.near_misses[i].reason, says);
            assert_non_null(at);
            times_s[i] = result.unsure[i].estimate.step_time_s;
            (void)snprintf(search[i], sizeof search[i], "\"top_k\":5,\"fit_probability\":%.4s",
                           at + strlen(says));
        }
        fixture_close(&fixture);
        for (int i = 0; i < count; i++) {
            ask(tight[job], search[i], &again);
            if (fastest_ranked_s(&again) > times_s[i] * (1 + ADV_RANK_TIE_FRAC))
                fail_msg("%s: %s ranks %.4f s, promised %.4f s", tight[job], search[i],
                         fastest_ranked_s(&again), times_s[i]);
            fixture_close(&fixture);
        }
    }
}

/* A search of all families for what fits as likely as not finds nothing much faster. */
static void the_families_of_the_best_plans_hold_the_best_of_them(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT; job++) {
        struct adv_search_result result;
        ask(tight[job], "\"top_k\":5", &result);
        double best_s = fastest_ranked_s(&result);
        for (int i = 0; i < result.unsure_count; i++)
            best_s = fmin(best_s, result.unsure[i].estimate.step_time_s);
        fixture_close(&fixture);
        ask(tight[job], "\"top_k\":5,\"fit_probability\":0.5", &result);
        assert_true(best_s <= fastest_ranked_s(&result) * (1 + 2 * ADV_WORTH_TELLING_FRAC));
        fixture_close(&fixture);
    }
}

static void who_wants_memory_left_or_the_least_of_it_is_told_of_none(void **state)
{
    static const char *const searches[] = {"\"memory_frac\":0.9", "\"objective\":\"hbm\"",
                                           "\"fit_probability\":0.5"};
    (void)state;
    for (int job = 0; job < TIGHT; job++) {
        for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
            struct adv_search_result result;
            ask(tight[job], searches[i], &result);
            assert_int_equal(result.unsure_count, 0);
            fixture_close(&fixture);
        }
    }
}

/* What is looked at besides changes neither the ranking nor the front. */
static void they_enter_neither_the_front_nor_a_budget(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT; job++) {
        struct adv_search_result result;
        ask(tight[job], "\"max_evaluations\":500", &result);
        assert_true(result.evaluated <= 500);
        fixture_close(&fixture);
        ask(tight[job], "\"top_k\":5", &result);
        for (int i = 0; i < result.pareto_count; i++)
            assert_true(adv_rank_fits(&result.pareto[i].estimate, result.memory_frac));
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_legal_faster_than_all_that_is_ranked_and_may_fit),
        cmocka_unit_test(the_probability_that_it_names_ranks_a_plan_as_fast),
        cmocka_unit_test(the_families_of_the_best_plans_hold_the_best_of_them),
        cmocka_unit_test(who_wants_memory_left_or_the_least_of_it_is_told_of_none),
        cmocka_unit_test(they_enter_neither_the_front_nor_a_budget),
    };
    return run_group(tests);
}
