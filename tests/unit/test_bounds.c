#include "tests/unit/cost_fixture.h"
#include "tests/unit/space_fixture.h"

#include <math.h>

#include "engine/search/bounds.h"
#include "engine/search/run.h"
#include "engine/search/space_pipelines.h"

static void check_bounds_of(const char *job)
{
    static struct fixture fixture;
    static struct adv_cost_scratch scratch;
    struct adv_space space;
    int bounded = 0, deeper = 0;
    build(&fixture, job, &space);
    for (int i = 0; i < space.families_count; i++) {
        struct adv_plan plan, by;
        if (space.families[i].bounded_by < 0) continue;
        assert_true(space.families[i].bounded_by < i);
        adv_space_plan(&space, &space.families[i], &plan);
        adv_space_plan(&space, &space.families[space.families[i].bounded_by], &by);
        struct adv_estimate slower = relaxed(&fixture, &plan);
        struct adv_estimate faster = relaxed_again(&fixture, &by, &scratch);
        double least_s = faster.step_time_s;
        if (space.families[i].deeper) {
            const double stages = adv_plan_degree(&plan, ADV_AXIS_STAGE);
            const struct adv_pipeline pipeline = {adv_plan_pipelined_layers(&plan, &fixture.request->model),
                                                  stages, fmax(stages, plan.family.pipeline_microbatches)};
            assert_true(scratch.step.bubble_s > 0 && scratch.step.hand_overs_s > 0);
            least_s +=
                adv_pipeline_deeper_s(&pipeline, by.family.layers_per_stage, plan.family.layers_per_stage,
                                      scratch.step.bubble_s, scratch.step.hand_overs_s);
        }
        const struct adv_bound bound = {.metric = faster.step_time_s,
                                        .hand_overs = scratch.step.hand_overs_s};
        assert_true(adv_bound_derived_least(&bound, 1) <= least_s);
        assert_true(least_s <= slower.step_time_s * (1 + 1e-12));
        bounded++;
        deeper += space.families[i].deeper;
    }
    assert_true(bounded > 50 && deeper > 50);
    fixture_close(&fixture);
}

static void what_bounds_a_family_is_no_slower(void **state)
{
    (void)state;
    check_bounds_of(MOE_JOB);
    check_bounds_of(JOB("{\"chip\":\"tpu7x\",\"topology\":\"2x2x2\",\"slices\":2}",
                        "{\"seq_len\":8192,\"global_batch_sequences\":64,\"quantization\":\"any\"}", ""));
}

static void the_weight_bound_never_exceeds_what_any_plan_of_the_family_needs(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_space space;
    build(&fixture, JOB(V6E_16, BATCH_64, ""), &space);
    struct adv_model_params params = adv_model_params(&fixture.request->model);
    for (int i = 0; i < space.families_count; i++) {
        struct adv_plan plan;
        struct adv_estimate estimate;
        adv_space_plan(&space, &space.families[i], &plan);
        struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                           fixture.constants, &plan, ADV_FLOPS_CAUSAL_HALF};
        assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, NULL), ADV_OK);
        assert_true(adv_bound_hbm_bytes_per_device(&plan, &params) <= estimate.hbm_bytes_per_device);
    }
    fixture_close(&fixture);
}

static void the_weight_bound_knows_how_many_slices_share_weights(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b, "llama3.1-405b", "v5e", 16, 16, 1);
    const double alone = adv_bound_hbm_bytes_per_device(&b.plan, &b.params);
    assert_close(alone, 8.0 * b.params.total / 256.0, 1e-12);
    b.plan.family.dcn[ADV_AXIS_FSDP] = 4;
    assert_close(adv_bound_hbm_bytes_per_device(&b.plan, &b.params), alone / 4.0, 1e-12);
}

enum { BOUNDS = 1000 };

static void draw_bounds(struct adv_bound bounds[BOUNDS])
{
    unsigned random = 1;
    for (int i = 0; i < BOUNDS; i++) {
        random = random * 1664525u + 1013904223u;
        const double metric = ldexp((double)(random >> 20) - 2000.0, (int)(random >> 28) - 30);
        bounds[i] = (struct adv_bound){.metric = metric, .family = i};
    }
}

static void bounds_are_sorted_by_metric_and_equal_ones_stay_in_order(void **state)
{
    (void)state;
    static struct adv_bound bounds[BOUNDS], scratch[BOUNDS];
    draw_bounds(bounds);
    assert_true(adv_bound_sort(bounds, scratch, 0, NULL));
    assert_int_equal(bounds[0].family, 0);
    assert_true(adv_bound_sort(bounds, scratch, BOUNDS, NULL));
    for (int i = 1; i < BOUNDS; i++) {
        const struct adv_bound *a = &bounds[i - 1], *b = &bounds[i];
        assert_true(a->metric < b->metric || (a->metric == b->metric && a->family < b->family));
    }
}

static bool over_after_some(void *left)
{
    return (*(int *)left)-- <= 0;
}

static int by_family(const void *a, const void *b)
{
    return ((const struct adv_bound *)a)->family - ((const struct adv_bound *)b)->family;
}

static void a_sort_that_is_given_up_loses_no_bound(void **state)
{
    (void)state;
    static struct adv_bound bounds[BOUNDS], scratch[BOUNDS];
    bool sorted = false;
    int given_up = 0;
    for (; !sorted; given_up++) {
        int left = given_up;
        const struct adv_budget budget = {.over = over_after_some, .closure = &left};
        draw_bounds(bounds);
        sorted = adv_bound_sort(bounds, scratch, BOUNDS, &budget);
        qsort(bounds, BOUNDS, sizeof *bounds, by_family);
        for (int i = 0; i < BOUNDS; i++) assert_int_equal(bounds[i].family, i);
    }
    assert_in_range(given_up, 3, 20);
}

/* A run whose families without a forerunner are bounded by numbers that were drawn. */
static int bound_some(struct adv_search_run *run, struct fixture *fixture, struct adv_bound *known)
{
    enum { MOST = 1 << 14 };
    static struct adv_bound bounds[MOST];
    static double least[MOST];
    static int bound_at[MOST];
    unsigned random = 1;
    int priced = 0;
    *run = (struct adv_search_run){.bounds = bounds, .least = least, .bound_at = bound_at};
    build(fixture, MOE_JOB, &run->space);
    run->request = fixture->request;
    assert_in_range(run->space.families_count, 100, MOST);
    for (int i = 0; i < run->space.families_count; i++) {
        const int by = run->space.families[i].bounded_by;
        least[i] = -(double)INFINITY;
        random = random * 1664525u + 1013904223u;
        const double part = (double)(random >> 8) / (1 << 24);
        bound_at[i] = ADV_RUN_UNBOUNDED;
        if (by >= 0 && bound_at[by] != ADV_RUN_UNBOUNDED) {
            bound_at[i] = ADV_RUN_DERIVED;
            run->derived_count++;
            known[i] = adv_bound_derived(&run->space, &known[by], i);
        } else if (random >> 29) { /* some are out of the question */
            known[i] = (struct adv_bound){1 + part, 1, 0.1 * part, 0.2 * (1 - part), i};
            bound_at[i] = priced;
            bounds[priced++] = known[i];
        }
    }
    assert_in_range(run->derived_count, 50, run->space.families_count);
    for (int i = 0, k = priced - 1; i < k; i++, k--) { /* as if they were sorted */
        const struct adv_bound swapped = bounds[i];
        bounds[i] = bounds[k];
        bounds[k] = swapped;
    }
    return priced;
}

static void derived_bounds_above_the_cutoff_are_left_out_and_no_others(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_bound known[1 << 14];
    static const double cutoffs[] = {0.5, 1.2, 1.5, 1.9, (double)INFINITY};
    for (size_t c = 0; c < sizeof cutoffs / sizeof *cutoffs; c++) {
        struct adv_search_run run;
        const int priced = bound_some(&run, &fixture, known);
        const int derived = adv_run_derive(&run, priced, cutoffs[c]);
        int at = priced;
        for (int i = 0; i < run.space.families_count; i++) {
            if (run.bound_at[i] != ADV_RUN_DERIVED) continue;
            assert_true(run.least[i] <= known[i].metric);
            assert_true((run.least[i] > cutoffs[c]) == (known[i].metric > cutoffs[c]));
            if (known[i].metric > cutoffs[c]) continue;
            assert_true(run.bounds[at].family == i && run.bounds[at].metric == known[i].metric);
            at++;
        }
        assert_int_equal(at, priced + derived);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_bounds_a_family_is_no_slower),
        cmocka_unit_test(the_weight_bound_never_exceeds_what_any_plan_of_the_family_needs),
        cmocka_unit_test(the_weight_bound_knows_how_many_slices_share_weights),
        cmocka_unit_test(bounds_are_sorted_by_metric_and_equal_ones_stay_in_order),
        cmocka_unit_test(a_sort_that_is_given_up_loses_no_bound),
        cmocka_unit_test(derived_bounds_above_the_cutoff_are_left_out_and_no_others),
    };
    return run_group(tests);
}
