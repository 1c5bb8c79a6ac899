/* The answer of a search that may not look at everything, or may use more memory than it would dare. */
#include "tests/property/search_jobs.h"

#include "engine/rank/rank.h"

static void a_budget_cuts_the_search_and_says_so(void **state)
{
    (void)state;
    static struct fixture fixture, whole;
    struct adv_search_result result, all;
    search_job(&fixture, 0, "", ",\"search\":{\"max_evaluations\":3000}", &result);
    search_job(&whole, 0, "", "", &all);
    assert_true(result.evaluated <= 3000);
    assert_false(result.exhaustive);
    assert_true(all.exhaustive);
    assert_true(fastest_s(&all) <= fastest_s(&result));
    fixture_close(&fixture);
    fixture_close(&whole);
}

static double best_of(const struct adv_search_result *result)
{
    double best = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        best = fmin(best, adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &result->found[i].estimate));
    return best;
}

/* Without a plan that fits there is at least what misses. */
static void the_smallest_budget_finds_a_plan_where_there_is_one(void **state)
{
    (void)state;
    static const int budgets[] = {1, 2, 7, 30, 64, 65, 99, 200, 1000};
    for (int job = 0; job < JOBS; job++) {
        static struct fixture whole;
        struct adv_search_result all;
        search_job(&whole, job, "", "", &all);
        for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
            static struct fixture fixture;
            struct adv_search_result result;
            char budget[64];
            snprintf(budget, sizeof budget, ",\"search\":{\"max_evaluations\":%d}", budgets[i]);
            search_job(&fixture, job, "", budget, &result);
            assert_in_range(result.evaluated, 1, budgets[i]);
            assert_false(result.exhaustive);
            assert_true(result.found_count > 0 || result.near_count > 0);
            assert_int_equal(result.found_count > 0, all.found_count > 0);
            for (int k = 0; k < result.found_count; k++) {
                assert_true(adv_rank_fits(&result.found[k].estimate, result.memory_frac));
                assert_true(result.found[k].estimate.step_time_high_s > result.found[k].estimate.step_time_s);
            }
            if (result.found_count > 0) /* of a long tie the simplest are shown, not the fastest */
                assert_true(best_of(&all) <= best_of(&result) * (1 + ADV_RANK_TIE_FRAC));
            fixture_close(&fixture);
        }
        fixture_close(&whole);
    }
}

static const char baseline[] =
    ",\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":-1,\"per_device_batch_size\":2,"
    "\"max_target_length\":8192,\"remat_policy\":\"full\"}}";

/* Somebody who runs it shows that so much can be used. */
static void plans_may_fill_memory_as_far_as_the_baseline_does(void **state)
{
    (void)state;
    static const double fills[] = {0.5, 1.02, 1.2};
    static struct fixture open;
    struct adv_search_result result;
    search_job(&open, 0, "", baseline, &result);
    double bytes = result.baseline.estimate.hbm_bytes_per_device;
    fixture_close(&open);
    for (int i = 0; i < 3; i++) {
        static struct fixture fixture;
        char limit[128];
        snprintf(limit, sizeof limit, ",\"overrides\":{\"hbm_usable_bytes_per_device\":%.0f}",
                 bytes / fills[i]);
        search_job(&fixture, 0, limit, baseline, &result);
        assert_true(result.found_count > 0);
        double usual = adv_rank_memory_frac(&result.baseline.estimate);
        double filled = result.baseline.estimate.hbm_bytes_per_device /
                        result.baseline.estimate.hbm_limit_bytes_per_device; /* less where XLA is pressed */
        assert_int_equal(filled > usual && filled <= 1.0, i == 1);
        assert_true(fabs(result.memory_frac - (i == 1 ? filled : usual)) < 1e-6);
        for (int k = 0; k < result.found_count; k++)
            assert_true(adv_rank_fits(&result.found[k].estimate, result.memory_frac));
        fixture_close(&fixture);
    }
}

/* It widens what is not asked for, nothing else. */
static void what_is_asked_for_is_kept_beside_a_baseline(void **state)
{
    (void)state;
    static const struct {
        const char *search;
        double asked, probability;
    } cases[] = {{",\"search\":{\"memory_frac\":0.8}", 0.8, 0.5},
                 {",\"search\":{\"fit_probability\":0.98}", 1.0, 0.98},
                 {",\"search\":{\"fit_probability\":0.999}", 1.0, 0.999}};
    static struct fixture fixture;
    struct adv_search_result result;
    search_job(&fixture, 0, "", baseline, &result);
    char limit[128], rest[512];
    snprintf(limit, sizeof limit, ",\"overrides\":{\"hbm_usable_bytes_per_device\":%.0f}",
             result.baseline.estimate.hbm_bytes_per_device / 0.97);
    fixture_close(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(rest, sizeof rest, "%s%s", baseline, cases[i].search);
        search_job(&fixture, 0, limit, rest, &result);
        assert_true(result.found_count > 0 && result.memory_frac < cases[i].asked);
        for (int k = 0; k < result.found_count; k++) {
            const struct adv_estimate *found = &result.found[k].estimate;
            assert_true(found->hbm_bytes_per_device <= cases[i].asked * found->hbm_limit_bytes_per_device);
            assert_true(found->fit_probability >= cases[i].probability - 1e-9);
        }
        fixture_close(&fixture);
    }
}

/* A plan that fits as surely as was asked for comes before one that fills the memory, however small a share
 * of it the plan was to take. */
static void a_share_of_memory_that_holds_nothing_costs_no_certainty(void **state)
{
    static const char job[] =
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\"},"
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":16},"
        "\"search\":{\"memory_frac\":%s}}";
    static struct fixture fixture;
    struct adv_search_result whole, share;
    char text[512];
    (void)state;
    snprintf(text, sizeof text, job, "1");
    fixture_search(&fixture, text, &whole);
    assert_true(whole.found_count > 0 && whole.memory_frac < 1);
    const double frac = whole.memory_frac;
    fixture_close(&fixture);
    snprintf(text, sizeof text, job, "0.3");
    fixture_search(&fixture, text, &share);
    assert_true(share.found_count > 0);
    assert_true(share.compromised && share.memory_frac <= frac);
    assert_int_equal(share.found[0].estimate.fit, ADV_FIT_FITS);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_share_of_memory_that_holds_nothing_costs_no_certainty),
        cmocka_unit_test(a_budget_cuts_the_search_and_says_so),
        cmocka_unit_test(the_smallest_budget_finds_a_plan_where_there_is_one),
        cmocka_unit_test(plans_may_fill_memory_as_far_as_the_baseline_does),
        cmocka_unit_test(what_is_asked_for_is_kept_beside_a_baseline),
    };
    return run_group(tests);
}
