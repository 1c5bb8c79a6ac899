/* The promises of the first plan where others are as fast: it is one that almost surely fits, wherever there
 * is one. */
#include "tests/property/tight_jobs.h"

#include <string.h>

#include "engine/explain/why.h"
#include "engine/rank/rank.h"

static struct fixture fixture;

static bool is_sure(const struct adv_candidate *candidate)
{
    return candidate->estimate.fit_probability >= ADV_RANK_ALMOST_SURE_PROBABILITY - 1e-9;
}

/* Whoever asks for the certainty by name, which searches all families for it, finds nothing that is as fast
 * as the best where the first plan is not so sure. */
static void the_first_is_almost_sure_where_a_plan_as_fast_is(void **state)
{
    (void)state;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"top_k\":10", &result);
        const double best_s = fastest_ranked_s(&result), first_s = result.found[0].estimate.step_time_s;
        const bool sure = is_sure(&result.found[0]);
        assert_true(first_s <= best_s * (1 + ADV_RANK_TIE_FRAC));
        fixture_close(&fixture);
        ask_tight(&fixture, job, "\"top_k\":10,\"fit_probability\":0.99", &result);
        const bool there_is_one =
            result.found_count > 0 && fastest_ranked_s(&result) <= best_s * (1 + ADV_RANK_TIE_FRAC);
        if (sure != (there_is_one && is_sure(&result.found[0])))
            fail_msg("%s: first in %.4f s is %s; asked for by name %.4f s", tight_jobs[job], first_s,
                     sure ? "sure" : "not sure", fastest_ranked_s(&result));
        fixture_close(&fixture);
    }
}

/* It stands beside the faster plan of its family, and says why it is first. */
static void the_faster_plan_that_is_less_sure_is_told(void **state)
{
    (void)state;
    int found = 0;
    for (int job = 0; job < TIGHT_JOBS; job++) {
        struct adv_search_result result;
        ask_tight(&fixture, job, "\"top_k\":10", &result);
        int beside = 0;
        for (int i = 1; i < result.found_count; i++)
            beside += !is_sure(&result.found[i]) && result.found[i].tie_group == result.found[0].tie_group &&
                      adv_plan_same_family(&result.found[0].plan, &result.found[i].plan);
        if (is_sure(&result.found[0]) && beside > 0) {
            assert_int_equal(beside, 1);
            static struct adv_ledger ledger;
            static struct adv_why why;
            struct adv_estimate estimate;
            const struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                                     fixture.constants, &result.found[0].plan,
                                                     ADV_FLOPS_CAUSAL_HALF};
            assert_int_equal(adv_estimate_plan(&input, &estimate, &ledger, NULL), ADV_OK);
            adv_why_explain(fixture.request, fixture.constants, &result, 0, &ledger, &why);
            found += strstr(why.sentences[1], "first because it fits more surely (with 99.") != NULL;
        }
        fixture_close(&fixture);
    }
    assert_true(found >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_is_almost_sure_where_a_plan_as_fast_is),
        cmocka_unit_test(the_faster_plan_that_is_less_sure_is_told),
    };
    return run_group(tests);
}
