#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/explain/diff.h"
#include "engine/explain/sensitivity.h"

static const char *const jobs[] = {
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
    "len\":8192,"
    "\"global_batch_sequences\":256},\"search\":{\"top_k\":1}}",
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_"
    "len\":8192,"
    "\"global_batch_sequences\":64},\"search\":{\"top_k\":1}}",
    "{\"model\":\"deepseek2-16b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x4\",\"slices\":2},"
    "\"workload\":{"
    "\"seq_len\":4096,\"global_batch_sequences\":256},\"search\":{\"top_k\":1}}",
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\",\"slices\":2},\"workload\":"
    "{\"seq_len\":4096,\"global_batch_sequences\":1000},\"search\":{\"top_k\":1}}", /* part of a sequence a
                                                                                       device */
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"1x1\",\"overrides\":{"
    "\"hbm_usable_bytes_per_device\":2e11}},\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":4},"
    "\"search\":{"
    "\"top_k\":1}}",
};
enum { JOBS = sizeof jobs / sizeof *jobs, ONE_CHIP = 4 };

static struct fixture fixture;
static struct adv_search_result result;
static struct adv_sensitivities found;
static struct adv_ledger ledger;

static void study(int job)
{
    fixture_search(&fixture, jobs[job], &result);
    assert_true(result.found_count == 1);
    assert_int_equal(adv_sensitivity_find(fixture.request, fixture.constants, &result.found[0],
                                          &fixture.arena, &found, &fixture.err),
                     ADV_OK);
}

static const struct adv_rate_sensitivity *rate_of(const char *name)
{
    int at = 0;
    while (at < ADV_SENSITIVITY_RATES - 1 && strcmp(found.rates[at].rate, name) != 0) at++;
    assert_string_equal(found.rates[at].rate, name);
    return &found.rates[at];
}

static struct adv_estimate estimate(const struct adv_plan *plan)
{
    struct adv_estimate at;
    struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster, fixture.constants,
                                       plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &at, &ledger, NULL), ADV_OK);
    return at;
}

static void a_slower_part_never_makes_the_step_faster_nor_a_faster_one_slower(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        study(job);
        double all_s = 0;
        for (int i = 0; i < ADV_SENSITIVITY_RATES; i++) {
            const struct adv_rate_sensitivity *rate = &found.rates[i];
            if (!rate->known) continue;
            if (rate->slower_s < found.step_time_s || rate->faster_s > found.step_time_s)
                fail_msg("job %d, %s: %.6f s slower, %.6f s, %.6f s faster", job, rate->rate, rate->slower_s,
                         found.step_time_s, rate->faster_s);
            all_s += rate->slower_s - found.step_time_s;
            /* No part alone does more than the whole step 1/0.9 times as long. (Together they may: a search
             * balances host transfers with the compute that hides them, and there each of both binds.) */
            assert_true(rate->slower_s <= found.step_time_s / 0.9 * (1 + 1e-9));
        }
        /* Something binds. */
        assert_true(all_s > 0.01 * found.step_time_s);
        fixture_close(&fixture);
    }
}

static void rates_that_the_plan_does_not_use_change_nothing(void **state)
{
    (void)state;
    study(0);
    assert_close(rate_of("dcn")->slower_s, found.step_time_s, 0); /* one slice */
    assert_true(rate_of("die_to_die")->known);
    fixture_close(&fixture);
    study(ONE_CHIP);
    assert_close(rate_of("ici_link")->slower_s, found.step_time_s, 0);
    assert_false(rate_of("die_to_die")->known);
    fixture_close(&fixture);
}

static void a_sensitivity_is_the_estimate_with_that_rate_overridden(void **state)
{
    (void)state;
    study(1);
    double expected_s = rate_of("ici_link")->slower_s;
    assert_true(expected_s > found.step_time_s);
    fixture.request->cluster.chip.ici_link_bytes_per_s *= 0.9;
    fixture.request->cluster.chip.ici_link_achieved_bytes_per_s *= 0.9;
    assert_close(estimate(&result.found[0].plan).step_time_s, expected_s, 1e-12);
    fixture_close(&fixture);
}

static void batch_steps_are_the_neighbours_and_illegal_ones_name_their_rule(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        study(job);
        struct adv_plan plan = result.found[0].plan;
        double batch = plan.family.per_device_batch_size;
        assert_true(found.batch[0].per_device_batch_size < batch &&
                    found.batch[1].per_device_batch_size > batch);
        for (int i = 0; i < 2; i++) {
            plan.family.per_device_batch_size = found.batch[i].per_device_batch_size;
            const char *rule =
                adv_plan_broken_rule(&plan, &fixture.request->model, &fixture.request->cluster);
            assert_true((rule != NULL) == (found.batch[i].broken_rule != NULL));
            if (!rule) assert_close(found.batch[i].estimate.step_time_s, estimate(&plan).step_time_s, 1e-12);
        }
        fixture_close(&fixture);
    }
}

static double exposed_share(struct adv_plan plan, double batch)
{
    plan.family.per_device_batch_size = batch;
    double step_s = estimate(&plan).step_time_s;
    return adv_diff_group_s(&ledger, ADV_TERM_GROUP_GATHER | ADV_TERM_GROUP_SCATTER) / step_s;
}

static void fsdp_is_hidden_from_the_break_even_on_and_not_before(void **state)
{
    (void)state;
    for (int job = 0; job < ONE_CHIP; job++) {
        study(job);
        const struct adv_break_even *row = &found.break_evens[0];
        const struct adv_plan *plan = &result.found[0].plan;
        assert_true(row->applies);
        assert_true(strlen(row->sentence) > 20);
        if (row->reached) {
            assert_close(exposed_share(*plan, row->value), row->share_at_value, 1e-12);
            assert_true(row->share_at_value < ADV_SENSITIVITY_HIDDEN_FRAC);
            if (row->value > row->low)
                assert_true(exposed_share(*plan, row->value > 1 ? row->value - 1 : row->value / 2) >=
                            ADV_SENSITIVITY_HIDDEN_FRAC);
        } else {
            assert_true(isnan(row->value));
            assert_non_null(strstr(row->sentence, "not reached in range"));
            assert_true(row->share_at_value >= ADV_SENSITIVITY_HIDDEN_FRAC);
        }
        fixture_close(&fixture);
    }
    study(ONE_CHIP);
    assert_false(found.break_evens[0].applies || found.break_evens[0].reached);
    fixture_close(&fixture);
}

static enum adv_resource bound_with(int slices)
{
    struct adv_cluster *cluster = &fixture.request->cluster;
    struct adv_plan plan = result.found[0].plan;
    plan.family.dcn[ADV_AXIS_DATA] = plan.family.dcn[ADV_AXIS_DATA] * slices / cluster->slices;
    struct adv_cluster before = *cluster;
    cluster->slices = slices;
    cluster->devices = cluster->devices_per_slice * slices;
    enum adv_resource bound = estimate(&plan).bound;
    *cluster = before;
    return bound;
}

static void dcn_binds_from_the_break_even_on_and_not_with_one_slice_less(void **state)
{
    (void)state;
    study(1);
    const struct adv_break_even *row = &found.break_evens[1];
    assert_true(row->reached && row->value > 2);
    assert_int_equal(bound_with((int)row->value), ADV_RES_DCN);
    assert_int_not_equal(bound_with((int)row->value - 1), ADV_RES_DCN);
    fixture_close(&fixture);
    int reached = 0;
    for (int job = 0; job < JOBS; job++) {
        study(job);
        for (int i = 1; i < ADV_BREAK_EVENS; i++) {
            row = &found.break_evens[i];
            reached += row->reached;
            assert_true(row->reached == !isnan(row->value));
            assert_true(row->reached == (strstr(row->sentence, "not reached in range") == NULL));
        }
        fixture_close(&fixture);
    }
    assert_true(reached > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slower_part_never_makes_the_step_faster_nor_a_faster_one_slower),
        cmocka_unit_test(rates_that_the_plan_does_not_use_change_nothing),
        cmocka_unit_test(a_sensitivity_is_the_estimate_with_that_rate_overridden),
        cmocka_unit_test(batch_steps_are_the_neighbours_and_illegal_ones_name_their_rule),
        cmocka_unit_test(fsdp_is_hidden_from_the_break_even_on_and_not_before),
        cmocka_unit_test(dcn_binds_from_the_break_even_on_and_not_with_one_slice_less),
    };
    return run_group(tests);
}
