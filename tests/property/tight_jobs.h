/* tight_jobs.h: the jobs on which it is tested how surely plans fit. */
#pragma once

#include "tests/unit/advise_fixture.h"

#include <math.h>

/* Jobs at the limit of their memory, beside which there is a plan that may fit and would be faster. */
static const char *const tight_jobs[] = {
    "\"model\":\"gemma3-12b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x2x2\"},"
    "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":64}",
    "\"model\":\"qwen3-30b-a3b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"4x4x4\"},"
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":128}",
    "\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x4x4\"},"
    "\"workload\":{\"seq_len\":16384,\"global_batch_sequences\":32}",
    "\"model\":\"gemma-7b\",\"cluster\":{\"chip\":\"v5e\",\"topology\":\"4x8\"},"
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":256}",
    "\"model\":\"qwen3-32b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"2x2x1\"},"
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":16}",
    "\"model\":\"gemma4-26b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x2x4\"},"
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":32}",
    "\"model\":\"gpt-oss-20b\",\"cluster\":{\"chip\":\"v4\",\"topology\":\"2x2x4\"},"
    "\"workload\":{\"seq_len\":2048,\"global_batch_sequences\":256}",
    "\"model\":\"gemma3-12b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},"
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":256}",
    "\"model\":\"gemma3-27b\",\"cluster\":{\"chip\":\"v5p\",\"topology\":\"2x4x4\"},"
    "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":256}",
    "\"model\":\"mixtral-8x7b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"8x8\"},"
    "\"workload\":{\"seq_len\":4096,\"global_batch_sequences\":256}",
};
enum { TIGHT_JOBS = sizeof tight_jobs / sizeof *tight_jobs };

static inline void ask_tight(struct fixture *fixture, int job, const char *search,
                             struct adv_search_result *result)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "{%s,\"search\":{%s}}", tight_jobs[job], search);
    fixture_search(fixture, text, result);
}

static inline double fastest_ranked_s(const struct adv_search_result *result)
{
    double fastest_s = (double)INFINITY;
    for (int i = 0; i < result->found_count; i++)
        fastest_s = fmin(fastest_s, result->found[i].estimate.step_time_s);
    return fastest_s;
}
