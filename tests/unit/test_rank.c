/* Order of an answer, on made-up estimates: who is first, who counts as tied, and what of the front is left.
 */
#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/rank/pareto.h"
#include "engine/rank/rank.h"

#define GIB 1073741824.0
#define REQUEST                                                                                              \
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192," \
    "\"global_batch_sequences\":128}}"

static struct fixture fixture;

/* Bytes that no copy of a stack comes on top of. */
static void need(struct adv_candidate *candidate, double gib)
{
    candidate->estimate.hbm_bytes_per_device = gib * GIB;
    candidate->estimate.memory_spread = 1;
}

/* fsdp over 128 devices, `time_s` a step, sure to +-5 %, well inside 100 GiB. */
static struct adv_candidate candidate(double time_s)
{
    struct adv_candidate made;
    memset(&made, 0, sizeof made);
    made.plan = fixture.request->workload.base;
    made.plan.family.ici[ADV_AXIS_FSDP] = 128;
    made.plan.family.per_device_batch_size = 1;
    made.estimate.step_time_s = time_s;
    made.estimate.step_time_high_s = 1.05 * time_s;
    made.estimate.tokens_per_step = 1e6;
    need(&made, 80);
    made.estimate.hbm_limit_bytes_per_device = 100 * GIB;
    made.estimate.host_limit_bytes_per_host = (double)NAN;
    made.estimate.fit_curve =
        (struct adv_fit_curve){.log_sd = 0.0376,
                               .pressed_sds = 0.6,
                               .width_sds = 1.05}; /* 0.94 of the limit is sure, 0.97 is not dangerous */
    return made;
}

static struct adv_candidate with_tensor(double time_s)
{
    struct adv_candidate made = candidate(time_s);
    made.plan.family.ici[ADV_AXIS_FSDP] = 64;
    made.plan.family.ici[ADV_AXIS_TENSOR] = 2;
    return made;
}

/* Which of two, given in any order, comes first. */
static int first_of(struct adv_candidate a, struct adv_candidate b, bool *tied)
{
    struct adv_candidate sorted[2] = {a, b};
    int order[2], swapped = adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &b.estimate) <
                            adv_rank_metric(ADV_OBJECTIVE_STEP_TIME, &a.estimate);
    if (swapped) {
        sorted[0] = b;
        sorted[1] = a;
    }
    assert_int_equal(adv_rank_select(ADV_OBJECTIVE_STEP_TIME, sorted, 2, 2, false, order), 2);
    *tied = sorted[0].tie_group == sorted[1].tie_group;
    return swapped ? !order[0] : order[0];
}

static void the_simplest_of_tied_plans_is_first(void **state)
{
    (void)state;
    bool tied;
    assert_int_equal(first_of(with_tensor(10), candidate(10.15), &tied), 1);
    assert_true(tied);
    assert_int_equal(first_of(with_tensor(10), candidate(10.4), &tied), 0);
    assert_false(tied);
    struct adv_candidate accumulates = candidate(10);
    accumulates.plan.family.ici[ADV_AXIS_FSDP] = 64;
    accumulates.plan.family.ici[ADV_AXIS_DATA] = 2;
    struct adv_candidate whole = accumulates;
    accumulates.plan.family.ici[ADV_AXIS_FSDP] = 32;
    accumulates.plan.family.ici[ADV_AXIS_DATA] = 4;
    accumulates.plan.family.gradient_accumulation_steps = 2;
    whole.estimate.step_time_s *= 1.01;
    whole.estimate.step_time_high_s *= 1.01;
    assert_int_equal(first_of(accumulates, whole, &tied), 1);
    assert_true(adv_rank_simplicity(&whole).axes < adv_rank_simplicity(&accumulates).axes);
    whole.estimate.host_bytes_per_host = GIB; /* as much may go wrong on the host as in accumulation */
    assert_int_equal(adv_rank_simplicity(&whole).axes, adv_rank_simplicity(&accumulates).axes);
}

static void the_surer_of_two_tied_plans_is_first(void **state)
{
    (void)state;
    bool tied;
    struct adv_candidate bold = candidate(10);
    bold.plan.family.ici[ADV_AXIS_FSDP] = 64;
    bold.plan.family.ici[ADV_AXIS_DATA] = 2;
    bold.estimate.step_time_high_s = 11.5;                         /* +15 % against +5 % */
    assert_int_equal(first_of(bold, with_tensor(10.1), &tied), 1); /* simpler, but less sure */
    assert_true(tied);
    assert_int_equal(first_of(bold, candidate(10.4), &tied), 0); /* at most 10.9, but predicted slower */
    assert_false(tied);
}

/* Who runs the first plan wants one that starts: that comes before how sure its time is. */
static void the_one_of_two_tied_plans_that_is_almost_sure_to_fit_is_first(void **state)
{
    (void)state;
    bool tied;
    struct adv_candidate full = candidate(10), roomy = with_tensor(10.2);
    need(&full, 93.5); /* fits with 98.5 % */
    roomy.estimate.step_time_high_s = 1.1 * roomy.estimate.step_time_s;
    assert_int_equal(first_of(full, roomy, &tied), 1);
    assert_true(tied);
    need(&full, 92); /* 99.2 % */
    assert_int_equal(first_of(full, roomy, &tied), 0);
    need(&full, 93.5);
    roomy.estimate.step_time_s = 10.4;
    assert_int_equal(first_of(full, roomy, &tied), 0);
    assert_false(tied);
}

/* Fewer bits change the training: for a tie nobody takes them. */
static void a_tie_is_not_worth_a_quantised_format(void **state)
{
    (void)state;
    bool tied;
    struct adv_candidate quantised = candidate(10);
    quantised.plan.family.quantization = ADV_QUANT_INT8;
    assert_int_equal(first_of(quantised, with_tensor(10.2), &tied), 1);
    assert_true(tied);
    struct adv_candidate unsure = candidate(9.9);
    unsure.estimate.step_time_high_s = 11;
    assert_int_equal(first_of(unsure, quantised, &tied), 0);
    assert_int_equal(first_of(quantised, candidate(10.4), &tied), 0);
    assert_false(tied);
}

/* A simpler plan that is tied with the best comes first however few are asked for; behind the ties of the
 * best, plans are in the order of their predictions. */
static void only_what_is_tied_with_the_best_comes_first_for_being_simple(void **state)
{
    (void)state;
    struct adv_candidate sorted[4] = {with_tensor(10), candidate(10.2), with_tensor(11), candidate(11.1)};
    int order[4];
    sorted[2].plan.family.ici[ADV_AXIS_FSDP] = 32;
    sorted[2].plan.family.ici[ADV_AXIS_TENSOR] = 4;
    sorted[3].plan.family.ici[ADV_AXIS_DATA] = 2;
    for (int top_k = 1; top_k <= 4; top_k++) {
        const int expected[4] = {1, 0, 2, 3};
        assert_int_equal(adv_rank_select(ADV_OBJECTIVE_STEP_TIME, sorted, 4, top_k, false, order), top_k);
        assert_memory_equal(order, expected, (size_t)top_k * sizeof *order);
        assert_int_equal(sorted[0].tie_group, sorted[1].tie_group);
        assert_int_equal(sorted[2].tie_group, sorted[3].tie_group);
    }
    for (int i = 0; i < 4; i++) order[i] = -1;
    assert_int_equal(adv_rank_select(ADV_OBJECTIVE_STEP_TIME, sorted, 4, 4, true, order), 4);
    for (int i = 0; i < 4; i++) assert_int_equal(order[i], i); /* asked for as predicted */
    assert_int_equal(sorted[0].tie_group, sorted[1].tie_group);
    const double cutoff = adv_rank_cutoff(ADV_OBJECTIVE_STEP_TIME, sorted, 4, 1);
    assert_true(cutoff >= 10.2 / sorted[1].estimate.tokens_per_step);
    assert_true(cutoff < 11 / sorted[2].estimate.tokens_per_step);
}

static void a_simple_plan_may_be_tight_but_not_at_the_very_limit(void **state)
{
    (void)state;
    bool tied;
    struct adv_candidate simple = candidate(9.9);
    struct adv_candidate tight = with_tensor(10);
    need(&tight, 95);
    need(&simple, 96);
    tight.estimate.fit = simple.estimate.fit = ADV_FIT_TIGHT;
    assert_int_equal(first_of(tight, simple, &tied), 1);
    assert_true(tied);
    need(&simple, 98);
    assert_int_equal(first_of(tight, simple, &tied), 0);
    need(&simple, 80); /* the host's memory counts as well */
    simple.estimate.host_limit_bytes_per_host = 100 * GIB;
    simple.estimate.host_bytes_per_host = 99 * GIB;
    assert_int_equal(first_of(with_tensor(10), simple, &tied), 0);
}

/* Who asks for less sureness is not given a slower plan for it, however simple. */
static void a_tight_plan_has_to_be_faster_to_come_first(void **state)
{
    (void)state;
    bool tied;
    struct adv_candidate simple = candidate(10.1), complex = with_tensor(10);
    need(&simple, 96);
    assert_int_equal(first_of(complex, simple, &tied), 0);
    assert_true(tied);
    assert_true(adv_rank_outdoes(ADV_OBJECTIVE_STEP_TIME, &complex.estimate, &simple.estimate));
    assert_false(adv_rank_outdoes(ADV_OBJECTIVE_HBM, &complex.estimate, &simple.estimate));
    need(&complex, 96); /* neither fits surely */
    assert_int_equal(first_of(complex, simple, &tied), 1);
    need(&complex, 80);
    need(&simple, 90); /* both fit surely, the one more than the other */
    assert_int_equal(first_of(complex, simple, &tied), 1);
}

/* What is left for sureness is more where bytes are known less well; what the asker leaves is not. */
static void the_share_asked_for_is_as_large_for_every_plan(void **state)
{
    (void)state;
    struct adv_candidate made = candidate(1.0);
    made.estimate.memory_spread = 2;
    const double room = adv_rank_hbm_room_bytes(&made.estimate, (struct adv_rank_share){0.5, 0.9});
    assert_close(room, 0.5 * 0.81 * 100 * GIB, 1e-12);
    need(&made, 49);
    made.estimate.memory_spread = 2;
    assert_true(adv_rank_fits_share(&made.estimate, (struct adv_rank_share){0.5, 1.0}));
}

static void least_memory_is_ordered_by_memory(void **state)
{
    (void)state;
    struct adv_candidate sorted[2] = {with_tensor(12), candidate(10)};
    int order[2];
    need(&sorted[0], 40);
    assert_int_equal(adv_rank_select(ADV_OBJECTIVE_HBM, sorted, 2, 2, false, order), 2);
    assert_int_equal(order[0], 0);
}

static void of_plans_tied_in_memory_the_faster_is_first(void **state)
{
    (void)state;
    struct adv_candidate sorted[3] = {candidate(20), with_tensor(10), with_tensor(5)};
    int order[3];
    need(&sorted[1], 80.5);
    need(&sorted[2], 90);
    sorted[2].plan.family.ici[ADV_AXIS_TENSOR] = 4;
    assert_int_equal(adv_rank_select(ADV_OBJECTIVE_HBM, sorted, 3, 3, false, order), 3);
    assert_int_equal(order[0], 1);
    assert_int_equal(order[1], 0);
    assert_int_equal(order[2], 2);
}

/* Points half a thousandth apart are thinned, but for the two ends. */
static void a_thin_front_keeps_its_fastest_and_its_smallest_point(void **state)
{
    (void)state;
    for (int count = 0; count <= 8; count++) {
        struct adv_candidate items[8];
        struct adv_front front = {.capacity = 8, .items = items};
        for (int i = 0; i < count; i++) {
            struct adv_candidate point = candidate(10 * (1 + 0.0005 * i));
            need(&point, 80 - i);
            adv_front_offer(&front, &point.plan, &point.estimate);
        }
        adv_front_thin(&front, ADV_RANK_KEY_FRAC);
        assert_true(front.count <= count && (front.count < count || count < 3));
        if (count == 0) continue;
        assert_true(items[0].estimate.step_time_s == 10);
        assert_true(items[front.count - 1].estimate.hbm_bytes_per_device == (81 - count) * GIB);
    }
}

/* The first plan is the fastest of this job, by less than what the front is thinned by. */
static void the_first_plan_is_on_the_front(void **state)
{
    (void)state;
    struct fixture job;
    struct adv_search_result result;
    fixture_search(&job,
                   "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
                   "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64},\"search\":{\"top_k\":2}}",
                   &result);
    assert_true(result.pareto[0].estimate.step_time_s <= result.found[0].estimate.step_time_s);
    fixture_close(&job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_simplest_of_tied_plans_is_first),
        cmocka_unit_test(the_surer_of_two_tied_plans_is_first),
        cmocka_unit_test(the_one_of_two_tied_plans_that_is_almost_sure_to_fit_is_first),
        cmocka_unit_test(a_tie_is_not_worth_a_quantised_format),
        cmocka_unit_test(only_what_is_tied_with_the_best_comes_first_for_being_simple),
        cmocka_unit_test(a_simple_plan_may_be_tight_but_not_at_the_very_limit),
        cmocka_unit_test(a_tight_plan_has_to_be_faster_to_come_first),
        cmocka_unit_test(the_share_asked_for_is_as_large_for_every_plan),
        cmocka_unit_test(least_memory_is_ordered_by_memory),
        cmocka_unit_test(of_plans_tied_in_memory_the_faster_is_first),
        cmocka_unit_test(a_thin_front_keeps_its_fastest_and_its_smallest_point),
        cmocka_unit_test(the_first_plan_is_on_the_front),
    };
    struct adv_search_result result;
    fixture_search(&fixture, REQUEST, &result);
    int failed = run_group(tests);
    fixture_close(&fixture);
    return failed;
}
