/* A search gives the same answer, byte for byte, with a helper and without: of everything priced, counted and
 * ranked, on jobs of all kinds, with budgets and limits, and while others come and go. */
#include "tests/unit/check.h"

#include <glob.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/advise.h"
#include "engine/base/budget.h"
#include "engine/base/crew.h"
#include "tests/unit/catalog_fixture.h"

/* Answers within `budget`; the caller frees. NULL: refused. */
static char *answer_of(const char *text, const struct adv_budget *budget)
{
    struct adv_answer answer;
    adv_err err;
    adv_err_init(&err);
    if (adv_answer_within(catalog, ADV_REQUEST_ADVISE, text, strlen(text), budget, &answer, &err) != ADV_OK)
        return NULL;
    return answer.json;
}

static void assert_same(const char *text, struct adv_crew *crew, int repeats)
{
    const struct adv_budget helped = {.crew = crew};
    char *alone = answer_of(text, NULL);
    for (int i = 0; i < repeats; i++) {
        char *with = answer_of(text, &helped);
        if (!alone != !with || (alone && strcmp(alone, with) != 0)) fail_msg("another answer to %s", text);
        free(with);
    }
    free(alone);
}

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    enum { BYTES = 1 << 20 };
    char *text = calloc(1, BYTES);
    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, BYTES - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static void stored_requests_have_one_answer(void **state)
{
    (void)state;
    struct adv_crew *crew = adv_crew_start(2, 0);
    glob_t found;
    assert_non_null(crew);
    assert_int_equal(glob("tests/golden/requests/advise-*.json", 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 4);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = read_whole(found.gl_pathv[i]);
        assert_same(text, crew, 2);
        free(text);
    }
    globfree(&found);
    adv_crew_stop(crew);
}

static const char *const workloads[] = {
    "\"model\":\"llama3.1-70b\",\"cluster\":{\"accelerator\":\"tpu7x-128\"},\"workload\":{\"seq_len\":8192,"
    "\"global_batch_sequences\":256}",
    "\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"workload\":{\"seq_"
    "len\":4096,\"global_batch_sequences\":512}",
    "\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"accelerator\":\"tpu7x-32\"},\"workload\":{\"seq_len\":4096,"
    "\"global_batch_sequences\":128}",
    "\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"8x8\",\"slices\":2},\"workload\":{"
    "\"seq_len\":2048,\"global_batch_sequences\":256}",
    "\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x8\"},\"workload\":{\"seq_len\":"
    "8192,\"global_batch_sequences\":64}",
    "\"model\":\"gemma3-27b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"4x4\"},\"workload\":{\"seq_len\":"
    "32768,\"global_batch_sequences\":16}",
};
static const char *const ways[] = {
    "",
    ",\"search\":{\"top_k\":1}",
    ",\"search\":{\"top_k\":30,\"include\":[\"trade_off\"]}",
    ",\"search\":{\"objective\":\"hbm\"}",
    ",\"search\":{\"max_evaluations\":333}",
    ",\"search\":{\"max_evaluations\":5000}",
    ",\"pins\":{\"remat_policy\":\"full\"}",
    ",\"pins\":{\"mlpwi_0\":\"offload\",\"num_vocab_tiling\":4}",
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads, WAYS = sizeof ways / sizeof *ways };

static void write_request(char text[2048], int workload, int way)
{
    (void)snprintf(text, 2048, "{%s%s}", workloads[workload], ways[way]);
}

static void searches_of_all_kinds_have_one_answer(void **state)
{
    (void)state;
    struct adv_crew *crew = adv_crew_start(2, 0);
    assert_non_null(crew);
    int answered = 0;
    for (int i = 0; i < WORKLOADS * WAYS; i++) {
        char text[2048];
        write_request(text, i / WAYS, i % WAYS);
        assert_same(text, crew, 1);
        char *answer = answer_of(text, NULL);
        answered += answer != NULL;
        free(answer);
    }
    assert_true(answered >= WORKLOADS * WAYS - WORKLOADS); /* refusals prove nothing */
    adv_crew_stop(crew);
}

/* Several callers share one helper, which comes and goes. */
struct caller {
    pthread_t thread;
    struct adv_crew *crew;
    int first;
    char *answers[WORKLOADS];
};

static void *call(void *argument)
{
    struct caller *caller = argument;
    const struct adv_budget budget = {.crew = caller->crew};
    for (int i = 0; i < WORKLOADS; i++) {
        const int workload = (caller->first + i) % WORKLOADS;
        char text[2048];
        write_request(text, workload, 0);
        caller->answers[workload] = answer_of(text, &budget);
    }
    return NULL;
}

static void callers_that_share_a_helper_get_their_answers(void **state)
{
    (void)state;
    enum { CALLERS = 3 };
    struct adv_crew *crew = adv_crew_start(3, 0);
    struct caller callers[CALLERS] = {0};
    assert_non_null(crew);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].crew = crew;
        callers[i].first = i;
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) (void)pthread_join(callers[i].thread, NULL);
    for (int workload = 0; workload < WORKLOADS; workload++) {
        char text[2048];
        write_request(text, workload, 0);
        char *alone = answer_of(text, NULL);
        assert_non_null(alone);
        for (int i = 0; i < CALLERS; i++) {
            assert_non_null(callers[i].answers[workload]);
            assert_string_equal(callers[i].answers[workload], alone);
            free(callers[i].answers[workload]);
        }
        free(alone);
    }
    adv_crew_stop(crew);
}

struct watch {
    pthread_t asker;
    long asked, over_from;
};

static bool over(void *closure)
{
    struct watch *watch = closure;
    assert_true(pthread_equal(watch->asker, pthread_self())); /* the helper never asks */
    return watch->asked++ >= watch->over_from;
}

/* Given up after one question, three, nine, …: a refusal, and the helper is free again. */
static void a_search_that_is_given_up_lets_its_helper_go(void **state)
{
    (void)state;
    struct adv_crew *crew = adv_crew_start(2, 0);
    assert_non_null(crew);
    char text[2048];
    write_request(text, 1, 0);
    bool ended = false;
    for (long from = 0; !ended; from = from ? 3 * from : 1) {
        struct watch watch = {.asker = pthread_self(), .over_from = from};
        const struct adv_budget budget = {.over = over, .closure = &watch, .crew = crew};
        char *answer = answer_of(text, &budget);
        ended = answer != NULL;
        free(answer);
        assert_true(ended || watch.asked > from);
        assert_false(adv_crew_crowded(crew));
    }
    assert_same(text, crew, 1);
    adv_crew_stop(crew);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_requests_have_one_answer),
        cmocka_unit_test(searches_of_all_kinds_have_one_answer),
        cmocka_unit_test(callers_that_share_a_helper_get_their_answers),
        cmocka_unit_test(a_search_that_is_given_up_lets_its_helper_go),
    };
    return run_group_with_catalog(tests);
}
