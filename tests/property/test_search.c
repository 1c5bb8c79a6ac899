#include "tests/property/search_jobs.h"

#include <pthread.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/cost/scratch.h"
#include "engine/rank/rank.h"
#include "engine/search/remat_space.h"
#include "engine/search/space.h"
#include "tests/unit/draw.h"

static void every_ranked_plan_is_legal_fits_and_is_exhaustively_best(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        static struct fixture fixture;
        struct adv_search_result result;
        search_job(&fixture, job, "", "", &result);
        if (result.found_count == 0) fail_msg("nothing found for %s", jobs[job].model);
        assert_true(result.exhaustive);
        for (int i = 0; i < result.found_count; i++) {
            const struct adv_candidate *candidate = &result.found[i];
            const char *rule =
                adv_plan_broken_rule(&candidate->plan, &fixture.request->model, &fixture.request->cluster);
            if (rule) fail_msg("%s: rank %d breaks %s", jobs[job].model, i + 1, rule);
            assert_true(adv_rank_fits(&candidate->estimate, result.memory_frac));
            if (!result.compromised) assert_int_equal(candidate->estimate.fit, ADV_FIT_FITS);
            assert_close(candidate->estimate.global_batch_sequences, jobs[job].sequences, 1e-12);
            if (i > 0) assert_true(candidate->tie_group >= result.found[i - 1].tie_group);
        }
        fixture_close(&fixture);
    }
}

static void allowing_another_axis_never_makes_the_best_worse(void **state)
{
    (void)state;
    static const char *const steps[] = {
        ",\"search\":{\"axes\":[\"fsdp\"]}",
        ",\"search\":{\"axes\":[\"fsdp\",\"data\"]}",
        ",\"search\":{\"axes\":[\"fsdp\",\"data\",\"context\"]}",
        ",\"search\":{\"axes\":[\"fsdp\",\"data\",\"context\",\"tensor\"]}",
        ",\"search\":{\"axes\":[\"fsdp\",\"data\",\"context\",\"tensor\",\"expert\",\"fsdp_transpose\"]}",
    };
    for (int job = 0; job < JOBS; job++) {
        double before_s = (double)INFINITY;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            static struct fixture fixture;
            struct adv_search_result result;
            search_job(&fixture, job, "", steps[i], &result);
            double now_s = fastest_s(&result);
            if (!result.compromised && now_s > before_s * (1 + ADV_RANK_KEY_FRAC))
                fail_msg("%s: %.6f s, without the axis %.6f s", jobs[job].model, now_s, before_s);
            before_s = now_s;
            fixture_close(&fixture);
        }
    }
}

static void pinned_keys_hold_in_every_answer(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    search_job(&fixture, 0, "",
               ",\"pins\":{\"ici_tensor_parallelism\":2,\"num_vocab_tiling\":4,\"remat_policy\":\"custom\","
               "\"context\":\"device\","
               "\"sa_block_q\":1024,\"gradient_accumulation_steps\":2}",
               &result);
    assert_true(result.found_count > 0);
    for (int i = 0; i < result.found_count; i++) {
        const struct adv_plan *plan = &result.found[i].plan;
        assert_int_equal(plan->family.ici[ADV_AXIS_TENSOR], 2);
        assert_int_equal(plan->num_vocab_tiling, 4);
        assert_int_equal(plan->policy, ADV_POLICY_CUSTOM);
        assert_int_equal(plan->placements[ADV_TENSOR_CONTEXT], ADV_PLACE_DEVICE);
        assert_int_equal(plan->placements[ADV_TENSOR_QUERY_PROJ], ADV_PLACE_REMAT);
        assert_int_equal(plan->family.blocks[0].block_q, 1024);
        assert_int_equal(plan->family.gradient_accumulation_steps, 2);
    }
    fixture_close(&fixture);
}

static void a_shorter_answer_is_the_beginning_of_a_longer_one(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        static struct fixture few, many;
        struct adv_search_result short_answer, long_answer;
        search_job(&few, job, "", ",\"search\":{\"top_k\":3}", &short_answer);
        search_job(&many, job, "", ",\"search\":{\"top_k\":12}", &long_answer);
        assert_true(long_answer.found_count >= short_answer.found_count);
        for (int i = 0; i < short_answer.found_count; i++)
            assert_memory_equal(&short_answer.found[i].plan, &long_answer.found[i].plan,
                                sizeof short_answer.found[i].plan);
        fixture_close(&few);
        fixture_close(&many);
    }
}

/* Searches a job whose bytes hardly move, with this much memory and so sure to fit. */
static void search_small(struct fixture *fixture, double hbm_bytes, double fit_probability,
                         struct adv_search_result *result)
{
    char job[512];
    snprintf(
        job, sizeof job,
        "{\"model\":\"qwen3-4b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"1x1\",\"overrides\":{"
        "\"hbm_usable_bytes_per_device\":%.0f}},\"workload\":{\"seq_len\":1024,\"global_batch_sequences\":8,"
        "\"weight_dtype\":\"bfloat16\"},\"search\":{\"fit_probability\":%g}}",
        hbm_bytes, fit_probability);
    fixture_search(fixture, job, result);
}

/* Memory with which something fits at 0.9, and nothing at 0.98. */
static double memory_between(double least_bytes, double most_bytes)
{
    static struct fixture fixture;
    struct adv_search_result result;
    enum { STEPS = 60 };
    for (int i = 0; i <= STEPS; i++) {
        const double hbm_bytes = least_bytes + (most_bytes - least_bytes) * i / STEPS;
        search_small(&fixture, hbm_bytes, 0.9, &result);
        const bool fits = result.found_count > 0 && !result.compromised;
        fixture_close(&fixture);
        if (fits) return hbm_bytes;
    }
    fail_msg("nothing fits in %g bytes", most_bytes);
    return most_bytes;
}

/* Where nothing is as sure as asked, or as small, the answer is the nearest to it, and says so. */
static void what_cannot_be_had_is_missed_by_little(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    const double hbm_bytes = memory_between(30e9, 39e9);
    search_small(&fixture, hbm_bytes, 0.9, &result);
    const double time_s = result.found[0].estimate.step_time_s;
    fixture_close(&fixture);
    search_small(&fixture, hbm_bytes, 0.98, &result);
    assert_true(result.compromised && result.memory_frac < 1);
    assert_close(result.found[0].estimate.step_time_s, time_s, 1e-9);
    assert_true(result.found[0].estimate.fit_probability >= 0.9);
    fixture_close(&fixture);
    fixture_search(
        &fixture,
        "{\"model\":\"llama2-7b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\"},\"workload\":{\"seq_"
        "len\":4096,\"global_batch_sequences\":64},\"search\":{\"memory_frac\":0.3}}",
        &result);
    assert_true(result.compromised);
    for (int i = 0; i < result.found_count; i++)
        assert_true(result.found[i].estimate.hbm_bytes_per_device <
                    0.475 * result.found[i].estimate.hbm_limit_bytes_per_device);
    fixture_close(&fixture);
}

static void more_memory_is_never_slower(void **state)
{
    (void)state;
    static const double gib[] = {24, 32, 48, 64, 96, 160};
    for (int job = 0; job < JOBS; job++) {
        double before_s = (double)INFINITY;
        for (size_t i = 0; i < sizeof gib / sizeof *gib; i++) {
            static struct fixture fixture;
            struct adv_search_result result;
            char overrides[128];
            snprintf(overrides, sizeof overrides, ",\"overrides\":{\"hbm_usable_bytes_per_device\":%.0f}",
                     gib[i] * 1073741824.0);
            search_job(&fixture, job, overrides, "", &result);
            double now_s = fastest_s(&result);
            if (now_s > before_s * (1 + ADV_RANK_KEY_FRAC))
                fail_msg("%s: %.6f s with %g GiB, %.6f s with less", jobs[job].model, now_s, gib[i],
                         before_s);
            before_s = now_s;
            fixture_close(&fixture);
        }
    }
}

static void the_same_request_gives_the_same_answer(void **state)
{
    (void)state;
    static struct fixture a, b;
    struct adv_search_result first, second;
    search_job(&a, 3, "", "", &first);
    search_job(&b, 3, "", "", &second);
    assert_int_equal(first.evaluated, second.evaluated);
    assert_int_equal(first.found_count, second.found_count);
    for (int i = 0; i < first.found_count; i++)
        assert_memory_equal(&first.found[i].plan, &second.found[i].plan, sizeof first.found[i].plan);
    fixture_close(&a);
    fixture_close(&b);
}

/* One of several threads that ask the same catalog at the same time. */
struct asker {
    pthread_t thread;
    const char *request;
    char *json;
};

static void *ask(void *context)
{
    struct asker *asker = context;
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    if (adv_answer_request(fixture_catalog(), ADV_REQUEST_ADVISE, asker->request, strlen(asker->request),
                           &answer, &err) == ADV_OK)
        asker->json = answer.json;
    return NULL;
}

static void the_answer_does_not_depend_on_how_many_threads_ask(void **state)
{
    (void)state;
    enum { ASKERS = 6 };
    static const char *const requests[] = {
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":64}}",
        "{\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"accelerator\":\"tpu7x-32\"},"
        "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":128}}",
    };
    struct asker alone[2] = {{.request = requests[0]}, {.request = requests[1]}}, together[ASKERS] = {0};
    (void)fixture_catalog(); /* loaded before any thread needs it */
    for (int i = 0; i < 2; i++) (void)ask(&alone[i]);
    for (int i = 0; i < ASKERS; i++) {
        together[i].request = requests[i % 2];
        assert_int_equal(pthread_create(&together[i].thread, NULL, ask, &together[i]), 0);
    }
    for (int i = 0; i < ASKERS; i++) {
        assert_int_equal(pthread_join(together[i].thread, NULL), 0);
        assert_non_null(together[i].json);
        assert_string_equal(together[i].json, alone[i % 2].json);
        free(together[i].json);
    }
    for (int i = 0; i < 2; i++) free(alone[i].json);
}

static uint64_t random_state = 0x2545f4914f6cdd1du;
static int pick(int count)
{
    return (int)(draw_next(&random_state) % (uint64_t)count);
}

static void estimate(const struct fixture *fixture, const struct adv_plan *plan,
                     struct adv_estimate *estimate_out)
{
    struct adv_estimate_input input = {&fixture->request->model, &fixture->request->cluster,
                                       fixture->constants, plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, estimate_out, NULL, NULL), ADV_OK);
}

static void put(const struct adv_remat_unit *unit, struct adv_plan *plan, enum adv_placement placement)
{
    plan->placements[unit->tensor] = placement;
}

/* The families of a job, in the fixture's arena. */
static void open_families(struct fixture *fixture, int job, struct adv_space *families)
{
    struct adv_search_result result;
    search_job(fixture, job, "", "", &result);
    assert_int_equal(
        adv_space_build(fixture->request, fixture->constants, &fixture->arena, families, &fixture->err),
        ADV_OK);
}

/* `plan` with nothing kept but the unit's leader, and with the unit on the device beside it. */
static void measure_alone(const struct fixture *fixture, const struct adv_remat_space *space,
                          const struct adv_remat_unit *unit, struct adv_plan plan, struct adv_estimate *none,
                          struct adv_estimate *one)
{
    for (int i = 0; i < space->units_count; i++) put(&space->units[i], &plan, ADV_PLACE_REMAT);
    if (unit->has_leader) plan.placements[unit->leader] = ADV_PLACE_DEVICE;
    estimate(fixture, &plan, none);
    put(unit, &plan, ADV_PLACE_DEVICE);
    estimate(fixture, &plan, one);
}

/* A tensor takes what it takes beside nothing else; beside tensors on the host stacks are copied, too. */
static void assert_takes(double bytes, double beside_nothing, bool alone)
{
    if (alone) assert_close(bytes, beside_nothing, 1e-6);
    assert_true(bytes >= beside_nothing * (1 - 1e-6));
}

/* The cost model keeps what remat_space.h assumes (P1, P2, P3), on random plans of every job. */
static void the_cost_model_has_the_properties_that_the_search_relies_on(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        static struct fixture fixture;
        struct adv_remat_space space;
        struct adv_space families;
        open_families(&fixture, job, &families);
        adv_remat_space_build(fixture.request, fixture.constants, &space);
        for (int trial = 0; trial < 300; trial++) {
            struct adv_plan plan;
            struct adv_estimate remat, device, offload, tiled;
            adv_space_plan(&families, &families.families[pick(families.families_count)], &plan);
            plan.policy = ADV_POLICY_CUSTOM;
            adv_policy_placements(ADV_POLICY_FULL, plan.placements);
            for (int i = 0; i < space.units_count; i++)
                put(&space.units[i], &plan, (enum adv_placement)pick(3));
            const struct adv_remat_unit *unit = &space.units[pick(space.units_count)];
            if (unit->has_leader) plan.placements[unit->leader] = ADV_PLACE_DEVICE;
            for (int i = 0; i < space.units_count; i++) /* not kept without it */
                if (space.units[i].has_leader && space.units[i].leader == unit->tensor)
                    put(&space.units[i], &plan, ADV_PLACE_REMAT);
            put(unit, &plan, ADV_PLACE_REMAT);
            estimate(&fixture, &plan, &remat);
            put(unit, &plan, ADV_PLACE_OFFLOAD);
            estimate(&fixture, &plan, &offload);
            put(unit, &plan, ADV_PLACE_DEVICE);
            estimate(&fixture, &plan, &device);
            if (device.step_time_s > remat.step_time_s * (1 + 1e-12) ||
                device.step_time_s > offload.step_time_s * (1 + 1e-12))
                fail_msg("P1: %s, %s: device %.9f, remat %.9f, offload %.9f s", jobs[job].model,
                         adv_tensor_name(unit->tensor), device.step_time_s, remat.step_time_s,
                         offload.step_time_s);
            assert_true(remat.hbm_bytes_per_device <= device.hbm_bytes_per_device * (1 + 1e-9));
            assert_true(remat.host_bytes_per_host <= offload.host_bytes_per_host);
            /* near the limit copies and late logits wait until the loop is over */
            bool alone = true; /* beside tensors on the host stacks are turned */
            for (int i = 0; i < ADV_TENSOR_COUNT; i++)
                alone = alone && plan.placements[i] != ADV_PLACE_OFFLOAD;
            const double pressed_frac =
                alone ? fixture.constants->pressed_limit_frac : fixture.constants->peeled_pressed_limit_frac;
            const bool has_room =
                device.backward_peak_bytes < pressed_frac * device.hbm_limit_bytes_per_device * (1 - 1e-9);
            double at_loss = device.loss_peak_bytes - remat.loss_peak_bytes;
            double in_backward = device.backward_peak_bytes - remat.backward_peak_bytes;
            struct adv_estimate none, one;
            measure_alone(&fixture, &space, unit, plan, &none, &one);
            assert_takes(at_loss, one.loss_peak_bytes - none.loss_peak_bytes, alone);
            double taken = one.backward_peak_bytes - none.backward_peak_bytes;
            assert_true(one.backward_peak_bytes >= none.backward_peak_bytes * (1 - 1e-12)); /* rounding */
            assert_true(taken <= at_loss * (1 + 1e-6));
            if (has_room) assert_takes(in_backward, taken, alone);
            if (fmod(adv_plan_tokens(&plan), 4) != 0) continue;
            plan.num_vocab_tiling = 4;
            estimate(&fixture, &plan, &tiled);
            assert_true(tiled.step_time_s >= device.step_time_s * (1 - 1e-12));
        }
        fixture_close(&fixture);
    }
}

/* A random family of the job with random layouts of its kernel and placements of what is open; half of them
 * without the host, whose transfers hide what is computed again. */
static void draw_placements(const struct adv_space *families, const struct adv_remat_space *space,
                            struct adv_plan *plan)
{
    adv_space_plan(families, &families->families[pick(families->families_count)], plan);
    enum adv_layout *const layouts[] = {&plan->family.q_layout, &plan->family.k_layout,
                                        &plan->family.v_layout};
    for (int i = 0; i < 3; i++) *layouts[i] = pick(2) ? ADV_LAYOUT_SEQ_MINOR : ADV_LAYOUT_HEAD_DIM_MINOR;
    plan->policy = ADV_POLICY_CUSTOM;
    adv_policy_placements(ADV_POLICY_FULL, plan->placements);
    const int places = pick(2) ? ADV_PLACE_OFFLOAD : ADV_PLACE_COUNT;
    for (int i = 0; i < space->units_count; i++)
        put(&space->units[i], plan, (enum adv_placement)pick(places));
}

/* The leader kept in the follower's stead, or beside it where that takes no more memory, or neither: one of
 * them is as good as the follower alone. */
static void check_follower(const struct fixture *fixture, const struct adv_plan *alone,
                           const struct adv_remat_unit *unit)
{
    static const enum adv_placement instead[][2] = {{ADV_PLACE_DEVICE, ADV_PLACE_REMAT},
                                                    {ADV_PLACE_DEVICE, ADV_PLACE_DEVICE},
                                                    {ADV_PLACE_REMAT, ADV_PLACE_REMAT}};
    struct adv_estimate before, after;
    estimate(fixture, alone, &before);
    for (int i = 0; i < 3; i++) {
        struct adv_plan changed = *alone;
        changed.placements[unit->leader] = instead[i][0];
        changed.placements[unit->tensor] = instead[i][1];
        estimate(fixture, &changed, &after);
        if (after.step_time_s <= before.step_time_s * (1 + 1e-12) &&
            after.hbm_bytes_per_device <= before.hbm_bytes_per_device)
            return;
    }
    fail_msg("%s without %s is better than any of the two", adv_tensor_name(unit->tensor),
             adv_tensor_name(unit->leader));
}

/* The promises of remat_space.c about names that it leaves recomputed, and those that follow a leader. */
static void tensors_that_are_not_open_save_no_time_and_followers_no_more_than_their_leaders(void **state)
{
    (void)state;
    for (int job = 0; job < JOBS; job++) {
        static struct fixture fixture;
        struct adv_space families;
        struct adv_remat_space space;
        open_families(&fixture, job, &families);
        adv_remat_space_build(fixture.request, fixture.constants, &space);
        bool open[ADV_TENSOR_COUNT] = {[ADV_TENSOR_DECODER_LAYER_INPUT] = true};
        for (int i = 0; i < space.units_count; i++) open[space.units[i].tensor] = true;
        for (int trial = 0; trial < 200; trial++) {
            struct adv_plan plan, changed;
            struct adv_estimate before, after;
            draw_placements(&families, &space, &plan);
            for (int tensor = 0; tensor < ADV_TENSOR_COUNT; tensor++) {
                if (open[tensor]) continue;
                changed = plan;
                changed.placements[tensor] = ADV_PLACE_DEVICE;
                estimate(&fixture, &plan, &before);
                estimate(&fixture, &changed, &after);
                if (after.step_time_s < before.step_time_s)
                    fail_msg("%s: keeping %s saves time, but it is not open", jobs[job].model,
                             adv_tensor_name((enum adv_tensor)tensor));
                /* both may be at the limit, where what waits makes room */
                assert_true(after.hbm_bytes_per_device >= before.hbm_bytes_per_device * (1 - 1e-9));
            }
            const struct adv_remat_unit *unit = &space.units[pick(space.units_count)];
            if (!unit->has_leader) continue;
            for (int i = 0; i < space.units_count; i++) /* one follower at a time */
                if (space.units[i].has_leader && space.units[i].leader == unit->leader)
                    put(&space.units[i], &plan, ADV_PLACE_REMAT);
            plan.placements[unit->leader] = ADV_PLACE_REMAT;
            plan.placements[unit->tensor] = ADV_PLACE_DEVICE;
            check_follower(&fixture, &plan, unit);
        }
        fixture_close(&fixture);
    }
}

static void a_tensor_pinned_alone_stays_where_it_is_pinned_and_the_others_are_open(void **state)
{
    (void)state;
    static const char *const names[] = {"value_proj", "key_proj", "context", "decoder_layer_input"};
    static const enum adv_tensor tensors[] = {ADV_TENSOR_VALUE_PROJ, ADV_TENSOR_KEY_PROJ, ADV_TENSOR_CONTEXT,
                                              ADV_TENSOR_DECODER_LAYER_INPUT};
    static const char *const places[] = {"remat", "device", "offload"};
    for (int i = 0; i < 4; i++) {
        for (int place = i == 3 ? 1 : 0; place < 3; place++) {
            static struct fixture fixture;
            struct adv_search_result result;
            char pins[128];
            snprintf(pins, sizeof pins, ",\"pins\":{\"%s\":\"%s\"}", names[i], places[place]);
            search_job(&fixture, 0, "", pins, &result);
            assert_true(result.found_count > 0 && result.exhaustive);
            assert_int_equal(fixture.warnings.count, 0);
            bool others = false;
            for (int k = 0; k < result.found_count; k++) {
                const struct adv_plan *plan = &result.found[k].plan;
                assert_int_equal(plan->placements[tensors[i]], place);
                assert_int_equal(plan->policy, ADV_POLICY_CUSTOM);
                for (int t = 0; t < ADV_TENSOR_COUNT; t++)
                    others = others || (t != (int)tensors[i] && t != ADV_TENSOR_DECODER_LAYER_INPUT &&
                                        plan->placements[t] != ADV_PLACE_REMAT);
            }
            assert_true(others);
            fixture_close(&fixture);
        }
    }
}

/* One scratch through all kinds of families in turn, as in a search: what it remembers of other meshes,
 * batches and kernels changes no number. */
static void the_search_prices_a_plan_as_estimate_does(void **state)
{
    (void)state;
    static struct adv_cost_scratch scratch;
    for (int job = 0; job < JOBS; job++) {
        static struct fixture fixture;
        struct adv_space families;
        struct adv_remat_space space;
        open_families(&fixture, job, &families);
        adv_remat_space_build(fixture.request, fixture.constants, &space);
        memset(&scratch, 0, sizeof scratch);
        for (int trial = 0; trial < 1000; trial++) {
            struct adv_plan plan;
            struct adv_estimate fresh, again;
            int neighbour = trial % 2 ? trial % families.families_count : pick(families.families_count);
            adv_space_plan(&families, &families.families[neighbour], &plan);
            plan.policy = ADV_POLICY_CUSTOM;
            adv_policy_placements(ADV_POLICY_FULL, plan.placements);
            for (int i = 0; i < space.units_count; i++)
                put(&space.units[i], &plan, (enum adv_placement)pick(3));
            plan.optimizer_host_offload = pick(2);
            estimate(&fixture, &plan, &fresh);
            struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                               fixture.constants, &plan, ADV_FLOPS_CAUSAL_HALF};
            assert_int_equal(adv_estimate_again(&input, &scratch, &again, NULL), ADV_OK);
            adv_estimate_again_interval(&scratch, &again);
            assert_true(again.step_time_s == fresh.step_time_s);
            assert_true(again.step_time_high_s == fresh.step_time_high_s);
            assert_true(again.tokens_per_step == fresh.tokens_per_step);
            assert_true(again.loss_peak_bytes == fresh.loss_peak_bytes);
            assert_true(again.backward_peak_bytes == fresh.backward_peak_bytes);
            assert_true(again.hbm_bytes_per_device == fresh.hbm_bytes_per_device);
            assert_true(again.host_bytes_per_host == fresh.host_bytes_per_host);
        }
        fixture_close(&fixture);
    }
}

/* A plan costs about a microsecond where every plan is a family of its own. */
static void families_of_many_meshes_share_their_matmuls_and_kernels(void **state)
{
    (void)state;
    static struct adv_cost_scratch scratch;
    for (int job = 0; job < JOBS; job++) {
        static struct fixture fixture;
        struct adv_space families;
        open_families(&fixture, job, &families);
        memset(&scratch, 0, sizeof scratch);
        for (int i = 0; i < families.families_count; i++) {
            struct adv_plan plan;
            struct adv_estimate priced;
            adv_space_plan(&families, &families.families[i], &plan);
            struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                               fixture.constants, &plan, ADV_FLOPS_CAUSAL_HALF};
            assert_int_equal(adv_estimate_again(&input, &scratch, &priced, NULL), ADV_OK);
        }
        assert_true(families.families_count > 20);
        assert_true(2 * scratch.computed_anew < families.families_count);
        fixture_close(&fixture);
    }
}

/* The ways of the published recipes of tpu7x. */
static void dense_jobs_start_with_fsdp_without_tensor_and_long_ones_with_context(void **state)
{
    (void)state;
    static const struct {
        const char *model, *accelerator, *workload;
        bool is_long;
    } recipes[] = {
        {"llama3.1-70b", "tpu7x-128",
         "\"seq_len\":8192,\"global_batch_sequences\":256,\"mu_dtype\":\"bfloat16\"", false},
        {"llama3.1-70b", "tpu7x-512",
         "\"seq_len\":8192,\"global_batch_sequences\":1024,\"mu_dtype\":\"bfloat16\"", false},
        {"llama3.1-405b", "tpu7x-512",
         "\"seq_len\":8192,\"global_batch_sequences\":1536,\"mu_dtype\":\"bfloat16\"", false},
        {"gemma4-31b", "tpu7x-128", "\"seq_len\":8192,\"global_batch_sequences\":1024", false},
        {"llama3.1-70b", "tpu7x-512",
         "\"seq_len\":131072,\"global_batch_sequences\":64,\"optimizer\":\"adam_pax\"", true},
    };
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        static struct fixture fixture;
        struct adv_search_result result;
        char text[512];
        snprintf(text, sizeof text,
                 "{\"model\":\"%s\",\"cluster\":{\"accelerator\":\"%s\"},\"workload\":{%s}}",
                 recipes[i].model, recipes[i].accelerator, recipes[i].workload);
        fixture_search(&fixture, text, &result);
        assert_true(result.found_count > 0);
        const int *ici = result.found[0].plan.family.ici;
        assert_true(ici[ADV_AXIS_FSDP] > 1);
        assert_int_equal(ici[ADV_AXIS_TENSOR], 1);
        if (recipes[i].is_long) assert_true(ici[ADV_AXIS_CONTEXT] > 1);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_ranked_plan_is_legal_fits_and_is_exhaustively_best),
        cmocka_unit_test(allowing_another_axis_never_makes_the_best_worse),
        cmocka_unit_test(pinned_keys_hold_in_every_answer),
        cmocka_unit_test(a_shorter_answer_is_the_beginning_of_a_longer_one),
        cmocka_unit_test(what_cannot_be_had_is_missed_by_little),
        cmocka_unit_test(more_memory_is_never_slower),
        cmocka_unit_test(the_same_request_gives_the_same_answer),
        cmocka_unit_test(the_answer_does_not_depend_on_how_many_threads_ask),
        cmocka_unit_test(dense_jobs_start_with_fsdp_without_tensor_and_long_ones_with_context),
        cmocka_unit_test(the_cost_model_has_the_properties_that_the_search_relies_on),
        cmocka_unit_test(the_search_prices_a_plan_as_estimate_does),
        cmocka_unit_test(families_of_many_meshes_share_their_matmuls_and_kernels),
        cmocka_unit_test(tensors_that_are_not_open_save_no_time_and_followers_no_more_than_their_leaders),
        cmocka_unit_test(a_tensor_pinned_alone_stays_where_it_is_pinned_and_the_others_are_open),
    };
    return run_group(tests);
}
