/* What a search is asked to make least is the least in its answer: whatever another objective finds is no
 * better by more than a tie, also within a limit on changed keys; and behind the ties of the best, plans are
 * in the order of what was asked for.
 */
#include "tests/unit/answer_fixture.h"

#include <math.h>

#include "engine/rank/rank.h"

static const struct {
    const char *name, *member;
} objectives[] = {
    {"step_time", "step_time_s"}, {"step_time_high", "step_time_high_s"}, {"hbm", "hbm_bytes_per_device"}};
enum { OBJECTIVES = sizeof objectives / sizeof *objectives };

/* The baseline is a plan that all of them can better within a few keys. */
static const char *const jobs[] = {
    "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x4\"},\"workload\":"
    "{\"seq_len\":4096,\"global_batch_sequences\":64},\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":4,"
    "\"ici_tensor_parallelism\":4,\"remat_policy\":\"minimal\",\"per_device_batch_size\":4}}}",
    "{\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x4\"},\"workload\":"
    "{\"seq_len\":4096,\"global_batch_sequences\":128},\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":8,"
    "\"ici_expert_parallelism\":4,\"remat_policy\":\"full\",\"per_device_batch_size\":4}}}",
    "{\"model\":\"qwen3-1.7b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"},\"workload\":"
    "{\"seq_len\":2048,\"global_batch_sequences\":16},\"baseline\":{\"config\":{\"ici_fsdp_parallelism\":8,"
    "\"remat_policy\":\"full\",\"per_device_batch_size\":2}}}"};
enum { JOBS = sizeof jobs / sizeof *jobs };

static json_t *answer_by(int job, int objective, int max_changes)
{
    json_t *request = json_loads(jobs[job], 0, NULL);
    json_t *search = json_pack("{s:s, s:i}", "objective", objectives[objective].name, "top_k", 20);
    if (max_changes > 0) json_object_set_new(search, "max_changes", json_integer(max_changes));
    json_object_set_new(request, "search", search);
    json_t *answer = answer_to_document(ADV_REQUEST_ADVISE, request);
    json_decref(request);
    assert_true(json_array_size(json_object_get(answer, "ranked")) > 2);
    return answer;
}

static double of_rank(const json_t *answer, size_t i, int objective)
{
    const json_t *plan = json_array_get(json_object_get(answer, "ranked"), i);
    return json_number_value(
        json_object_get(json_object_get(plan, "estimate"), objectives[objective].member));
}

static json_int_t group_of(const json_t *answer, size_t i)
{
    const json_t *plan = json_array_get(json_object_get(answer, "ranked"), i);
    return json_integer_value(json_object_get(plan, "tie_group"));
}

static double least(const json_t *answer, int objective)
{
    double value = (double)INFINITY;
    for (size_t i = 0; i < json_array_size(json_object_get(answer, "ranked")); i++)
        value = fmin(value, of_rank(answer, i, objective));
    return value;
}

static void assert_in_order(const json_t *answer, int objective)
{
    assert_true(of_rank(answer, 0, objective) <= least(answer, objective) * (1 + ADV_RANK_TIE_FRAC));
    for (size_t i = 1; i < json_array_size(json_object_get(answer, "ranked")); i++)
        if (group_of(answer, i) != group_of(answer, 0))
            if (group_of(answer, i - 1) != group_of(answer, 0) &&
                of_rank(answer, i, objective) < of_rank(answer, i - 1, objective) * (1 - 1e-9))
                fail_msg("by %s: rank %zu has %.9g, the one before %.9g", objectives[objective].name, i + 1,
                         of_rank(answer, i, objective), of_rank(answer, i - 1, objective));
}

/* Who asks for a few changes to a configuration is given those that gain most, first. */
static void assert_by_gain(const json_t *answer, int objective)
{
    if (strcmp(objectives[objective].name, "hbm") == 0) return;
    for (size_t i = 1; i < json_array_size(json_object_get(answer, "ranked")); i++)
        if (of_rank(answer, i, objective) < of_rank(answer, i - 1, objective) * (1 - 1e-9))
            fail_msg("by %s: rank %zu has %.9g, the one before %.9g", objectives[objective].name, i + 1,
                     of_rank(answer, i, objective), of_rank(answer, i - 1, objective));
}

static void each_objective_finds_its_own_best(void **state)
{
    (void)state;
    int apart = 0;
    for (int job = 0; job < JOBS; job++)
        for (int max_changes = 0; max_changes <= 4; max_changes += 2) {
            json_t *answers[OBJECTIVES];
            for (int o = 0; o < OBJECTIVES; o++) answers[o] = answer_by(job, o, max_changes);
            for (int o = 0; o < OBJECTIVES; o++) {
                assert_in_order(answers[o], o);
                if (max_changes > 0) assert_by_gain(answers[o], o);
                for (int other = 0; other < OBJECTIVES; other++) {
                    if (least(answers[o], o) > least(answers[other], o) * (1 + ADV_RANK_KEY_FRAC))
                        fail_msg("job %d within %d: %s finds %.6g, %s finds %.6g", job, max_changes,
                                 objectives[o].name, least(answers[o], o), objectives[other].name,
                                 least(answers[other], o));
                    apart +=
                        of_rank(answers[other], 0, o) > of_rank(answers[o], 0, o) * (1 + ADV_RANK_TIE_FRAC);
                }
            }
            for (int o = 0; o < OBJECTIVES; o++) json_decref(answers[o]);
        }
    assert_true(apart > JOBS); /* they do not all ask for the same */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_objective_finds_its_own_best)};
    return run_group_with_catalog(tests);
}
