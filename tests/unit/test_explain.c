#include "tests/unit/advise_fixture.h"

#include <string.h>

#include "engine/explain/advice.h"
#include "engine/explain/changes.h"
#include "engine/explain/diff.h"
#include "engine/explain/why.h"
#include "engine/rank/rank.h"
#include "engine/search/why.h"

static const char job[] =
    "{\"model\":\"llama3.1-70b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":256,\"mu_dtype\":\"bfloat16\"},\"baseline\":{\"config\":{\"max_target_"
    "length\":8192,"
    "\"per_device_batch_size\":2,\"ici_fsdp_parallelism\":64,\"ici_tensor_parallelism\":2,\"remat_policy\":"
    "\"full\","
    "\"mu_dtype\":\"bfloat16\",\"attention\":\"flash\",\"use_tokamax_splash\":true}}}";

static const char expert_job[] =
    "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":4096,"
    "\"global_batch_sequences\":512},\"baseline\":{\"config\":{\"max_target_length\":4096,"
    "\"per_device_batch_size\":4,\"ici_fsdp_parallelism\":-1,\"remat_policy\":\"full\",\"sparse_matmul\":"
    "true,"
    "\"attention\":\"flash\",\"use_tokamax_splash\":true}}}";

static void review(const struct fixture *fixture, const struct adv_plan *plan, struct adv_estimate *estimate,
                   struct adv_ledger *ledger, struct adv_advice_list *list)
{
    struct adv_estimate_input input = {&fixture->request->model, &fixture->request->cluster,
                                       fixture->constants, plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, estimate, ledger, NULL), ADV_OK);
    adv_advice_find(&input, estimate, ledger, NULL, false, list);
}

/* The piece of advice with this code; the test fails when there is none. */
static const struct adv_advice *find(const struct adv_advice_list *list, const char *code)
{
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].code, code)) return &list->items[i];
    fail_msg("no advice %s", code);
    return &list->items[0];
}

static const char *change_of(const struct adv_advice *advice, const char *key)
{
    for (int i = 0; i < advice->changes_count; i++)
        if (!strcmp(advice->changes[i].key, key)) return advice->changes[i].value_json;
    fail_msg("%s does not change %s", advice->code, key);
    return "";
}

static void a_plan_with_full_remat_and_room_is_told_to_keep_tensors(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate;
    fixture_open(&fixture, job);
    review(&fixture, &fixture.request->baseline, &estimate, &ledger, &list);
    const struct adv_advice *advice = find(&list, "remat");
    assert_true(advice->gain_frac > 0.05);
    assert_string_equal(change_of(advice, "remat_policy"), "\"custom\"");
    for (int i = 1; i < list.count; i++) { /* by gain */
        double before = isnan(list.items[i - 1].gain_frac) ? 0 : list.items[i - 1].gain_frac;
        double after = isnan(list.items[i].gain_frac) ? 0 : list.items[i].gain_frac;
        assert_true(before >= after);
    }
    fixture_close(&fixture);
}

static void small_tiles_and_tensor_parallelism_are_priced_not_guessed(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate, changed_estimate;
    fixture_open(&fixture, job);
    review(&fixture, &fixture.request->baseline, &estimate, &ledger, &list);
    assert_true(find(&list, "attention_tiles")->gain_frac > 0.05);
    assert_non_null(strstr(find(&list, "attention_tiles")->message, "alone costs"));
    const struct adv_advice *advice = find(&list, "tensor_parallelism");
    assert_string_equal(change_of(advice, "ici_fsdp_parallelism"), "128");
    assert_string_equal(change_of(advice, "ici_tensor_parallelism"), "1");
    struct adv_plan changed = fixture.request->baseline;
    changed.family.ici[ADV_AXIS_FSDP] = 128;
    changed.family.ici[ADV_AXIS_TENSOR] = 1;
    struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster, fixture.constants,
                                       &changed, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &changed_estimate, NULL, NULL), ADV_OK);
    assert_close(advice->gain_frac, 1 - changed_estimate.step_time_s / estimate.step_time_s, 1e-12);
    fixture_close(&fixture);
}

/* Priced as XLA lowers it, not as the kernel it stands in for; and the kernel is offered. */
static void ragged_dot_is_told_of_the_kernel(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate;
    fixture_open(&fixture, expert_job);
    struct adv_plan plan = fixture.request->baseline;
    plan.family.moe = ADV_MOE_RAGGED_DOT;
    review(&fixture, &plan, &estimate, &ledger, &list);
    bool listed = false;
    for (int i = 0; i < ledger.kernels_count; i++)
        listed = listed || strstr(ledger.kernels[i].tile, "ragged_dot");
    assert_true(listed);
    const struct adv_advice *advice = find(&list, "ragged_dot");
    assert_string_equal(change_of(advice, "megablox"), "true");
    assert_true(advice->gain_frac > 0.05);
    fixture_close(&fixture);
}

static void int8_on_a_chip_without_int8_is_named(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate;
    fixture_open(&fixture, job);
    struct adv_plan plan = fixture.request->baseline;
    plan.family.quantization = ADV_QUANT_INT8;
    plan.family.use_qwix = true;
    if (!isnan(fixture.request->cluster.chip.peak_int8_ops_per_s_per_chip))
        fixture.request->cluster.chip.peak_int8_ops_per_s_per_chip = (double)NAN;
    review(&fixture, &plan, &estimate, &ledger, &list);
    const struct adv_advice *advice = find(&list, "quantization_not_native");
    assert_string_equal(change_of(advice, "quantization"), "\"\"");
    fixture_close(&fixture);
}

static void sparsecore_offload_switched_off_is_a_warning_with_its_flags(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate;
    fixture_open(&fixture, job);
    struct adv_plan plan = fixture.request->baseline;
    plan.flags.sc_all_gather = plan.flags.sc_reduce_scatter = plan.flags.sc_all_reduce = 0;
    review(&fixture, &plan, &estimate, &ledger, &list);
    const struct adv_advice *advice = find(&list, "sparsecore_offload");
    assert_int_equal(advice->severity, ADV_SEVERITY_WARNING);
    assert_string_equal(change_of(advice, "xla_tpu_enable_sparse_core_collective_offload_all_gather"),
                        "true");
    fixture_close(&fixture);
}

static void a_plan_that_does_not_fit_gets_a_change_that_makes_it_fit(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate;
    fixture_open(&fixture, job);
    struct adv_plan plan = fixture.request->baseline;
    plan.policy = ADV_POLICY_MINIMAL_WITH_CONTEXT;
    adv_policy_placements(plan.policy, plan.placements);
    review(&fixture, &plan, &estimate, &ledger, &list);
    assert_int_equal(estimate.fit, ADV_FIT_NO);
    assert_string_equal(list.items[0].code, "memory_exceeded");
    assert_int_equal(list.items[0].severity, ADV_SEVERITY_ERROR);
    assert_true(list.items[0].changes_count > 0);
    struct adv_remedy remedy;
    adv_remedy_find(fixture.request, fixture.constants, &plan, &remedy);
    assert_true(remedy.found && !remedy.tight);
    assert_true(adv_rank_fits(&remedy.estimate, adv_rank_memory_frac(&remedy.estimate)));
    fixture_close(&fixture);
}

static void what_nothing_can_make_fit_says_what_is_short(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    fixture_search(&fixture,
                   "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x2\"},"
                   "\"workload\":{\"seq_len\":4096,"
                   "\"global_batch_sequences\":16}}",
                   &result);
    assert_int_equal(result.found_count, 0);
    assert_true(result.near_count > 0);
    assert_non_null(strstr(result.near_misses[0].reason, "GiB of"));
    assert_non_null(strstr(result.near_misses[0].reason, "short"));
    assert_non_null(strstr(result.near_misses[0].reason, "more chips or a smaller model"));
    fixture_close(&fixture);
}

static bool has(const struct adv_advice_list *list, const char *code)
{
    for (int i = 0; i < list->count; i++)
        if (!strcmp(list->items[i].code, code)) return true;
    return false;
}

/* Scores of 2048 x 2048 in float32, twice, are 32 MiB: under a limit of 48 MiB the kernel compiles, under the
 * default of 32 it does not. */
static void tiles_over_the_vmem_limit_are_an_error_with_the_limit_that_would_do(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_advice_list list;
    struct adv_estimate estimate;
    fixture_open(&fixture, job);
    struct adv_plan plan = fixture.request->baseline;
    plan.family.blocks[0].block_q = plan.family.blocks[0].block_kv = plan.family.blocks[0].block_kv_compute =
        2048;
    plan.family.blocks[1] = plan.family.blocks[0];
    review(&fixture, &plan, &estimate, &ledger, &list);
    const struct adv_advice *advice = find(&list, "kernel_over_vmem");
    assert_int_equal(advice->severity, ADV_SEVERITY_ERROR);
    const int needed_kib = atoi(change_of(advice, "xla_tpu_scoped_vmem_limit_kib"));
    assert_true(needed_kib > 32768 && needed_kib <= 65536);
    plan.flags.scoped_vmem_limit_kib = needed_kib;
    review(&fixture, &plan, &estimate, &ledger, &list);
    assert_false(has(&list, "kernel_over_vmem"));
    plan.flags.scoped_vmem_limit_kib = needed_kib - 1024;
    review(&fixture, &plan, &estimate, &ledger, &list);
    assert_true(has(&list, "kernel_over_vmem"));
    fixture_close(&fixture);
}

static void term_moves_add_up_to_the_difference_of_the_steps(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledgers[2];
    struct adv_estimate estimates[2];
    struct adv_search_result result;
    fixture_search(&fixture, job, &result);
    const struct adv_plan *plans[2] = {&fixture.request->baseline, &result.found[0].plan};
    for (int i = 0; i < 2; i++) {
        struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                           fixture.constants, plans[i], ADV_FLOPS_CAUSAL_HALF};
        assert_int_equal(adv_estimate_plan(&input, &estimates[i], &ledgers[i], NULL), ADV_OK);
    }
    struct adv_term_move moves[ADV_LIMIT_LEDGER_TERMS];
    int count = adv_diff_terms(&ledgers[0], &ledgers[1], moves);
    double moved_s = 0;
    for (int i = 0; i < count; i++) {
        moved_s += moves[i].after_s - moves[i].before_s;
        if (i > 0)
            assert_true(fabs(moves[i].after_s - moves[i].before_s) <=
                        fabs(moves[i - 1].after_s - moves[i - 1].before_s));
    }
    assert_close(moved_s, estimates[1].step_time_s - estimates[0].step_time_s, 1e-9);
    fixture_close(&fixture);
}

static void ranked_plans_say_what_binds_what_the_next_costs_and_what_memory_is_left(void **state)
{
    (void)state;
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_why why;
    struct adv_search_result result;
    struct adv_estimate estimate;
    fixture_search(&fixture, job, &result);
    assert_true(result.found_count >= 2);
    for (int i = 0; i < 2; i++) {
        struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                           fixture.constants, &result.found[i].plan, ADV_FLOPS_CAUSAL_HALF};
        assert_int_equal(adv_estimate_plan(&input, &estimate, &ledger, NULL), ADV_OK);
        adv_why_explain(fixture.request, fixture.constants, &result, i, &ledger, &why);
        assert_true(why.count >= 4);
        assert_non_null(strstr(why.sentences[0], "binds the step"));
        assert_non_null(strstr(why.sentences[why.count - 1], "Memory peaks at"));
        assert_non_null(strstr(why.sentences[1], i == 0 ? "the next plan" : "against the first plan"));
    }
    fixture_close(&fixture);
}

/* Plans are in the order of the predictions. Where a slower one is the surer, by the upper ends of the
 * intervals, both say so; a tie says only that it is one. */
static void the_surer_of_two_plans_is_named_where_it_is_the_slower(void **state)
{
    static const char unsure[] =
        "{\"model\":\"qwen3-1.7b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"},"
        "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":16},\"search\":{\"top_k\":8}}";
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_why why;
    struct adv_search_result result;
    struct adv_estimate estimate;
    int told = 0;
    (void)state;
    fixture_search(&fixture, unsure, &result);
    const struct adv_candidate *first = &result.found[0];
    assert_true(result.found_count > 4);
    for (int i = 0; i < result.found_count; i++) {
        const struct adv_candidate *behind = &result.found[i == 0 ? 1 : i];
        struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster,
                                           fixture.constants, &result.found[i].plan, ADV_FLOPS_CAUSAL_HALF};
        const double high_s = behind->estimate.step_time_high_s,
                     first_high_s = first->estimate.step_time_high_s;
        char upper[96] = "";
        assert_int_equal(adv_estimate_plan(&input, &estimate, &ledger, NULL), ADV_OK);
        adv_why_explain(fixture.request, fixture.constants, &result, i, &ledger, &why);
        for (int k = 0; k < why.count; k++)
            assert_int_equal(why.sentences[k][strlen(why.sentences[k]) - 1], '.');
        const bool tied = behind->tie_group == first->tie_group;
        assert_true(behind->estimate.step_time_s >= (tied ? 0.98 : 1.0) * first->estimate.step_time_s);
        assert_int_equal(strstr(why.sentences[1], "tied") || strstr(why.sentences[1], "Tied"), tied);
        if (tied || high_s >= first_high_s) {
            assert_null(strstr(why.sentences[1], i == 0 ? "less sure" : "but surer"));
            continue;
        }
        told++;
        (void)snprintf(upper, sizeof upper, "%s (at most %.3f s against %.3f s)",
                       i == 0 ? "less sure" : "surer", i == 0 ? first_high_s : high_s,
                       i == 0 ? high_s : first_high_s);
        if (!strstr(why.sentences[1], upper)) fail_msg("\"%s\" has no \"%s\"", why.sentences[1], upper);
    }
    assert_true(told > 0);
    fixture_close(&fixture);
}

static void a_plan_that_is_alone_in_the_answer_is_compared_with_the_next(void **state)
{
    (void)state;
    static const char alone[] =
        "{\"model\":\"gpt-oss-20b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x4x4\",\"slices\":4},"
        "\"workload\":{\"seq_len\":512,\"global_batch_sequences\":384},\"search\":{\"top_k\":1}}";
    static struct fixture fixture;
    static struct adv_ledger ledger;
    static struct adv_why why;
    struct adv_search_result result;
    struct adv_estimate estimate;
    fixture_search(&fixture, alone, &result);
    assert_int_equal(result.found_count, 1);
    assert_non_null(result.next);
    struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster, fixture.constants,
                                       &result.found[0].plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &estimate, &ledger, NULL), ADV_OK);
    adv_why_explain(fixture.request, fixture.constants, &result, 0, &ledger, &why);
    assert_non_null(strstr(why.sentences[1], "the next plan"));
    for (int i = 0; i < why.count; i++) assert_null(strstr(why.sentences[i], "No other plan"));
    fixture_close(&fixture);
}

static void all_groups_of_changes_together_are_the_plan(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct adv_search_result result;
    fixture_search(&fixture, job, &result);
    assert_true(result.has_baseline);
    struct adv_changes *changes = adv_arena_alloc(&fixture.arena, sizeof *changes);
    struct adv_plan plan = result.baseline.plan;
    struct adv_estimate estimate;
    assert_int_equal(adv_changes_find(fixture.request, fixture.constants, &result.baseline, &result.found[0],
                                      NULL, &fixture.arena, changes, &fixture.err),
                     ADV_OK);
    assert_true(changes->count > 5);
    assert_close(changes->gain_frac,
                 1 - result.found[0].estimate.step_time_s / result.baseline.estimate.step_time_s, 1e-12);
    for (int group = 0; group < ADV_GROUPS; group++)
        adv_change_group_apply(group, &result.found[0].plan, &plan);
    struct adv_config_change items[4];
    struct adv_config_changes left = {.items = items, .capacity = 4};
    assert_int_equal(adv_config_changes(NULL, &plan, &result.found[0].plan, &fixture.request->model,
                                        &fixture.request->cluster, &fixture.arena, &left, &fixture.err),
                     ADV_OK);
    assert_int_equal(left.count, 0);
    struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster, fixture.constants,
                                       &plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, NULL), ADV_OK);
    assert_close(estimate.step_time_s, result.found[0].estimate.step_time_s, 1e-12);
    assert_close(estimate.hbm_bytes_per_device, result.found[0].estimate.hbm_bytes_per_device, 1e-12);
    fixture_close(&fixture);
}

/* Whether the ledger has a part of that name when `peak` is. */
static bool is_alive(const struct adv_ledger *ledger, const char *name, size_t length,
                     enum adv_memory_at peak)
{
    for (int i = 0; i < ledger->memory_count; i++) {
        const struct adv_memory_part *part = &ledger->memory[i];
        if (strlen(part->name) == length && !strncmp(part->name, name, length) &&
            (part->at == peak || part->at == ADV_AT_ALWAYS))
            return true;
    }
    return false;
}

/* A plan with the one-hot embedding says so where its own price speaks for the look-up, and only there. */
static void check_embedding(const struct fixture *fixture, const struct adv_candidate *candidate,
                            const struct adv_why *why)
{
    struct adv_plan plan = candidate->plan;
    struct adv_estimate estimate;
    struct adv_estimate_input input = {&fixture->request->model, &fixture->request->cluster,
                                       fixture->constants, &plan, ADV_FLOPS_CAUSAL_HALF};
    plan.family.use_iota_embed = false;
    assert_int_equal(adv_estimate_plan(&input, &estimate, NULL, NULL), ADV_OK);
    bool is_told = false;
    for (int i = 0; i < why->count; i++) is_told |= strstr(why->sentences[i], "use_iota_embed=true") != NULL;
    assert_int_equal(is_told, estimate.step_time_s < 0.999 * candidate->estimate.step_time_s);
}

static void check_sentences(const struct fixture *fixture, const struct adv_search_result *result, int index)
{
    static struct adv_ledger ledger;
    static struct adv_why why;
    const struct adv_candidate *candidate = &result->found[index];
    struct adv_estimate estimate;
    struct adv_estimate_input input = {&fixture->request->model, &fixture->request->cluster,
                                       fixture->constants, &candidate->plan, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &estimate, &ledger, NULL), ADV_OK);
    adv_why_explain(fixture->request, fixture->constants, result, index, &ledger, &why);
    const char *memory = why.sentences[why.count - 1], *parts = strstr(memory, "(GiB: ");
    enum adv_memory_at peak = strstr(memory, "at the loss")               ? ADV_AT_LOSS
                              : strstr(memory, "at the optimizer update") ? ADV_AT_UPDATE
                                                                          : ADV_AT_BACKWARD;
    assert_non_null(parts);
    for (const char *name = parts + 6; name; name = strchr(name, ',') ? strchr(name, ',') + 2 : NULL)
        if (!is_alive(&ledger, name, strcspn(name, " "), peak)) fail_msg("%s", memory);
    bool simpler = index == 0 && result->found_count > 1 &&
                   adv_rank_simpler(adv_rank_simplicity(candidate), adv_rank_simplicity(&result->found[1]));
    for (int i = 0; i < why.count; i++) {
        if (strstr(why.sentences[i], "first because") && !simpler) fail_msg("%s", why.sentences[i]);
        if (strstr(why.sentences[i], "decoder_layer_input")) fail_msg("%s", why.sentences[i]);
    }
    check_embedding(fixture, candidate, &why);
}

static void sentences_are_true_of_the_numbers_beside_them(void **state)
{
    (void)state;
    static const char *const requests[] = {
        "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\",\"slices\":4},"
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256}}",
        "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"},"
        "\"workload\":{\"seq_len\":131072,\"global_batch_sequences\":64}}",
        "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\"},"
        "\"workload\":{\"seq_len\":4096,\"per_device_batch_size\":8}}", /* moments on the host */
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x4\"},"
        "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":32},\"pins\":{\"remat_policy\":\"full\"}}",
        "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},"
        "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":32}}",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        static struct fixture fixture;
        struct adv_search_result result;
        fixture_search(&fixture, requests[i], &result);
        assert_true(result.found_count > 0);
        for (int k = 0; k < result.found_count; k++) check_sentences(&fixture, &result, k);
        fixture_close(&fixture);
    }
}

/* Every key has its step, steps count up from 1, and their gains add up to the whole. */
static void check_order(const struct adv_changes *changes)
{
    if (changes->count > ADV_CHANGES_ORDERED) return;
    double sum = 0;
    int last = 0;
    for (int i = 0; i < changes->count; i++) {
        assert_true(changes->items[i].order >= 1);
        last = changes->items[i].order > last ? changes->items[i].order : last;
    }
    for (int number = 1; number <= last; number++) {
        int keys = 0;
        for (int i = 0; i < changes->count; i++) {
            if (changes->items[i].order != number) continue;
            if (keys++ == 0 && !isnan(changes->items[i].gain_frac)) sum += changes->items[i].gain_frac;
        }
        assert_true(keys > 0);
    }
    assert_close(sum, changes->gain_frac, 1e-9);
}

static void a_limit_on_changes_is_kept_and_gains_what_it_can(void **state)
{
    (void)state;
    static const int limits[] = {0, 1, 3, 8, 20, 64};
    double before_s = (double)INFINITY;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        static struct fixture fixture;
        struct adv_search_result result;
        fixture_open(&fixture, job);
        fixture.request->max_changes = limits[i];
        assert_int_equal(
            adv_search_run(fixture.request, NULL, fixture.constants, &fixture.arena, &result, &fixture.err),
            ADV_OK);
        assert_true(result.found_count > 0);
        assert_int_equal(result.exhaustive,
                         limits[i] <= 3); /* of this dense job: sets of four are too many */
        double best_s = (double)INFINITY;
        for (int k = 0; k < result.found_count; k++) {
            struct adv_changes *changes = adv_arena_alloc(&fixture.arena, sizeof *changes);
            assert_int_equal(adv_changes_find(fixture.request, fixture.constants, &result.baseline,
                                              &result.found[k], NULL, &fixture.arena, changes, &fixture.err),
                             ADV_OK);
            assert_true(changes->count <= limits[i]);
            check_order(changes);
            best_s = fmin(best_s, result.found[k].estimate.step_time_s);
        }
        assert_true(best_s <= result.baseline.estimate.step_time_s);
        assert_true(best_s <= before_s * (1 + ADV_RANK_TIE_FRAC));
        before_s = best_s;
        fixture_close(&fixture);
    }
}

/* The answer within one key of `from` is as fast as `to`, one key away, and says that it is complete. */
static void assert_one_key_reaches(const struct adv_plan *from, const struct adv_plan *to)
{
    static struct fixture fixture;
    struct adv_search_result result;
    struct adv_estimate reached;
    fixture_open(&fixture, expert_job);
    fixture.request->baseline = *from;
    fixture.request->workload.base.family.quantization = from->family.quantization;
    fixture.request->max_changes = 1;
    assert_int_equal(
        adv_search_run(fixture.request, NULL, fixture.constants, &fixture.arena, &result, &fixture.err),
        ADV_OK);
    struct adv_estimate_input input = {&fixture.request->model, &fixture.request->cluster, fixture.constants,
                                       to, ADV_FLOPS_CAUSAL_HALF};
    assert_int_equal(adv_estimate_plan(&input, &reached, NULL, NULL), ADV_OK);
    assert_true(reached.step_time_s < result.baseline.estimate.step_time_s);
    assert_true(result.found_count > 0 && result.exhaustive);
    double best_s = (double)INFINITY;
    for (int i = 0; i < result.found_count; i++) best_s = fmin(best_s, result.found[i].estimate.step_time_s);
    assert_true(best_s <= reached.step_time_s);
    fixture_close(&fixture);
}

static void one_key_leads_from_ragged_dot_to_either_kernel(void **state)
{
    (void)state;
    static const enum adv_moe_impl kernels[] = {ADV_MOE_MEGABLOX, ADV_MOE_TOKAMAX};
    static struct fixture fixture;
    fixture_open(&fixture, expert_job);
    for (int i = 0; i < 2; i++) {
        struct adv_plan from = fixture.request->baseline, to = from;
        from.family.moe = ADV_MOE_RAGGED_DOT;
        to.family.moe = kernels[i];
        assert_one_key_reaches(&from, &to);
    }
    fixture_close(&fixture);
}

/* Tokamax reads the tiles when it multiplies in fp8. */
static void tiles_of_quantised_experts_count_as_read_by_tokamax(void **state)
{
    (void)state;
    static struct fixture fixture;
    fixture_open(&fixture, expert_job);
    struct adv_plan from = fixture.request->baseline, to;
    from.family.moe = ADV_MOE_TOKAMAX;
    from.family.quantization = ADV_QUANT_FP8_FULL;
    from.family.use_qwix = true;
    to = from;
    to.family.gmm_blocks[0][ADV_GMM_FWD].embed_dim = 4096;
    assert_one_key_reaches(&from, &to);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_with_full_remat_and_room_is_told_to_keep_tensors),
        cmocka_unit_test(small_tiles_and_tensor_parallelism_are_priced_not_guessed),
        cmocka_unit_test(ragged_dot_is_told_of_the_kernel),
        cmocka_unit_test(int8_on_a_chip_without_int8_is_named),
        cmocka_unit_test(sparsecore_offload_switched_off_is_a_warning_with_its_flags),
        cmocka_unit_test(a_plan_that_does_not_fit_gets_a_change_that_makes_it_fit),
        cmocka_unit_test(what_nothing_can_make_fit_says_what_is_short),
        cmocka_unit_test(tiles_over_the_vmem_limit_are_an_error_with_the_limit_that_would_do),
        cmocka_unit_test(term_moves_add_up_to_the_difference_of_the_steps),
        cmocka_unit_test(ranked_plans_say_what_binds_what_the_next_costs_and_what_memory_is_left),
        cmocka_unit_test(the_surer_of_two_plans_is_named_where_it_is_the_slower),
        cmocka_unit_test(a_plan_that_is_alone_in_the_answer_is_compared_with_the_next),
        cmocka_unit_test(all_groups_of_changes_together_are_the_plan),
        cmocka_unit_test(sentences_are_true_of_the_numbers_beside_them),
        cmocka_unit_test(a_limit_on_changes_is_kept_and_gains_what_it_can),
        cmocka_unit_test(one_key_leads_from_ragged_dot_to_either_kernel),
        cmocka_unit_test(tiles_of_quantised_experts_count_as_read_by_tokamax),
    };
    return run_group(tests);
}
