/* The promises of a near miss that may fit: it is worth a compile, and what its reason says to ask for ranks
 * it. */
#include "tests/property/tight_jobs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cost/fit.h"
#include "engine/rank/rank.h"

static struct fixture fixture;

static void it_is_legal_faster_than_all_that_is_ranked_and_may_fit(void **state)
{
    (void)state;
    int found = 0;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"top_k\":5", &result);
        found += result.has_unsure;
        if (!result.has_unsure) {
            fixture_close(&fixture);
            continue;
        }
        const struct adv_candidate *candidate = &result.unsure;
        assert_null(
            adv_plan_broken_rule(&candidate->plan, &fixture.request->model, &fixture.request->cluster));
        assert_true(candidate->estimate.fit_probability >= 0.5);
        assert_true(candidate->estimate.fit_probability < ADV_FIT_SURE_PROBABILITY);
        assert_true(candidate->estimate.step_time_s <=
                    fastest_ranked_s(&result) * (1 - ADV_WORTH_TELLING_FRAC));
        assert_true(adv_plan_same_family(&result.near_misses[0].candidate.plan, &candidate->plan));
        fixture_close(&fixture);
    }
    assert_true(found >= 3); /* all had one when they were chosen; constants move */
}

/* Of the near misses none is both faster and no less sure to fit. */
static void no_other_near_miss_is_faster_and_as_sure(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"top_k\":5", &result);
        for (int i = 1; result.has_unsure && i < result.near_count; i++) {
            const struct adv_estimate *its = &result.near_misses[i].candidate.estimate;
            if (its->step_time_s < result.unsure.estimate.step_time_s &&
                its->fit_probability >= result.unsure.estimate.fit_probability)
                fail_msg("%s: near miss %d takes %.4f s and fits with %.3f, the first %.4f s and %.3f",
                         tight_jobs[job], i + 1, its->step_time_s, its->fit_probability,
                         result.unsure.estimate.step_time_s, result.unsure.estimate.fit_probability);
        }
        fixture_close(&fixture);
    }
}

/* The number behind `says` in the reason of the first near miss. */
static double said(const struct adv_search_result *result, const char *says)
{
    const char *at = strstr(result->near_misses[0].reason, says);
    assert_non_null(at);
    return strtod(at + strlen(says), NULL);
}

/* What it asks for is no more than the plan has. */
static void it_says_how_sure_the_plan_itself_is(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"top_k\":5", &result);
        if (result.has_unsure) {
            const double own = floor(100 * result.unsure.estimate.fit_probability) / 100;
            assert_close(said(&result, "fits with a probability of "), own, 1e-9);
            assert_true(said(&result, "search.fit_probability=") <= own + 1e-9);
        }
        fixture_close(&fixture);
    }
}

/* The user asks again as the reason says. */
static void the_probability_that_it_names_ranks_a_plan_as_fast(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        char search[64];
        ask_tight(&fixture, job, "\"top_k\":10", &result);
        if (!result.has_unsure) {
            fixture_close(&fixture);
            continue;
        }
        static const char says[] = "search.fit_probability=";
        const char *at = strstr(result.near_misses[0].reason, says);
        assert_non_null(at);
        const double promised_s = result.unsure.estimate.step_time_s;
        (void)snprintf(search, sizeof search, "\"top_k\":10,\"fit_probability\":%.4s", at + strlen(says));
        fixture_close(&fixture);
        ask_tight(&fixture, job, search, &result);
        if (fastest_ranked_s(&result) > promised_s * (1 + 1e-9))
            fail_msg("%s: %s ranks %.4f s, promised %.4f s", tight_jobs[job], search,
                     fastest_ranked_s(&result), promised_s);
        fixture_close(&fixture);
    }
}

/* A search of all families for what fills the memory finds nothing much faster. */
static void the_families_of_the_best_plans_hold_the_best_of_them(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"top_k\":5", &result);
        const double ranked_s = fastest_ranked_s(&result);
        const double best_s = result.has_unsure ? result.unsure.estimate.step_time_s : ranked_s;
        fixture_close(&fixture);
        ask_tight(&fixture, job, "\"top_k\":5,\"fit_probability\":0.5", &result);
        const double all_s = fastest_ranked_s(&result);
        if (best_s > all_s * (1 + 2 * ADV_WORTH_TELLING_FRAC))
            fail_msg("%s: %g s beside %g s of all families", tight_jobs[job], best_s, all_s);
        fixture_close(&fixture);
    }
}

static void who_wants_memory_left_or_the_least_of_it_is_told_of_none(void **state)
{
    static const char *const searches[] = {"\"memory_frac\":0.9", "\"objective\":\"hbm\"",
                                           "\"fit_probability\":0.5"};
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
            struct adv_search_result result;
            ask_tight(&fixture, job, searches[i], &result);
            assert_false(result.has_unsure);
            fixture_close(&fixture);
        }
    }
}

/* What is looked at besides changes neither the ranking nor the front. */
static void it_enters_neither_the_front_nor_a_budget(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"max_evaluations\":500", &result);
        assert_true(result.evaluated <= 500);
        fixture_close(&fixture);
        ask_tight(&fixture, job, "\"top_k\":5", &result);
        for (int i = 0; i < result.pareto_count; i++)
            assert_true(adv_rank_fits(&result.pareto[i].estimate, result.memory_frac));
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_legal_faster_than_all_that_is_ranked_and_may_fit),
        cmocka_unit_test(no_other_near_miss_is_faster_and_as_sure),
        cmocka_unit_test(it_says_how_sure_the_plan_itself_is),
        cmocka_unit_test(the_probability_that_it_names_ranks_a_plan_as_fast),
        cmocka_unit_test(the_families_of_the_best_plans_hold_the_best_of_them),
        cmocka_unit_test(who_wants_memory_left_or_the_least_of_it_is_told_of_none),
        cmocka_unit_test(it_enters_neither_the_front_nor_a_budget),
    };
    return run_group(tests);
}
