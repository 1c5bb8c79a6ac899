/* search_jobs.h: the jobs that properties of the search are tested on. */
#pragma once

#include "tests/unit/advise_fixture.h"

#include <string.h>

/* Jobs of all kinds: dense and expert, MLA and windows, short and long, one slice and two. */
static const struct {
    const char *model, *cluster;
    int seq_len, sequences;
} jobs[] = {
    {"llama3.1-70b", "{\"accelerator\":\"tpu7x-128\"}", 8192, 256},
    {"llama3.1-8b", "{\"chip\":\"v6e\",\"topology\":\"4x4\"}", 8192, 64},
    {"gemma3-27b", "{\"accelerator\":\"tpu7x-128\"}", 8192, 256},
    {"qwen3-30b-a3b", "{\"accelerator\":\"tpu7x-32\"}", 4096, 128},
    {"deepseek2-16b", "{\"chip\":\"v5p\",\"topology\":\"2x2x4\"}", 4096, 64},
    {"llama3.1-70b", "{\"accelerator\":\"tpu7x-256\"}", 131072, 32},
    {"llama3.1-8b", "{\"chip\":\"v5e\",\"topology\":\"8x8\",\"slices\":2}", 2048, 256},
    {"gpt3-6b", "{\"chip\":\"v4\",\"topology\":\"2x2x4\"}", 2048, 64},
    {"gpt-oss-20b", "{\"chip\":\"v5p\",\"topology\":\"2x2x4\"}", 2048, 64},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

/* Extra is appended inside the document: ",\"search\":{…}". */
static inline void search_job(struct fixture *fixture, int job, const char *overrides, const char *extra,
                              struct adv_search_result *result)
{
    char text[2048], cluster[512];
    snprintf(cluster, sizeof cluster, "%s", jobs[job].cluster);
    cluster[strlen(cluster) - 1] = '\0'; /* reopen the object */
    snprintf(
        text, sizeof text,
        "{\"model\":\"%s\",\"cluster\":%s%s},\"workload\":{\"seq_len\":%d,\"global_batch_sequences\":%d}%s}",
        jobs[job].model, cluster, overrides, jobs[job].seq_len, jobs[job].sequences, extra);
    fixture_search(fixture, text, result);
}

/* Of all plans priced that fit (the ranked ones are the simplest among the tied). */
static inline double fastest_s(const struct adv_search_result *result)
{
    return result->pareto_count > 0 ? result->pareto[0].estimate.step_time_s : (double)INFINITY;
}
