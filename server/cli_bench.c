/* cli_bench.c: the engine's own speed on a fixed set of requests, as JSON. Wall clock of this machine, one
 * thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/advise.h"
#include "engine/base/text.h"
#include "server/cli.h"
#include "server/cli_io.h"

static const struct bench {
    const char *name;
    enum adv_request_kind kind;
    int repeats; /* odd: the median is one of them */
    const char *request;
} benches[] = {
    {"estimate_llama3.1_70b_64_chips", ADV_REQUEST_ESTIMATE, 201,
     "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"config\":{\"per_"
     "device_batch_size\":2,"
     "\"max_target_length\":8192,\"ici_fsdp_parallelism\":-1,\"attention\":\"flash\",\"use_tokamax_splash\":"
     "true}}"},
    {"estimate_deepseek3_128_chips", ADV_REQUEST_ESTIMATE, 201,
     "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\"},\"config\":{"
     "\"per_device_batch_size\":8,"
     "\"max_target_length\":4096,\"remat_policy\":\"custom\",\"decoder_layer_input\":\"offload\"}}"},
    {"advise_llama3.1_8b_8_chips", ADV_REQUEST_ADVISE, 3,
     "{\"model\":\"llama3.1-8b\",\"cluster\":{\"chip\":\"v6e\",\"topology\":\"2x4\"},\"workload\":{\"seq_"
     "len\":8192,"
     "\"global_batch_sequences\":32}}"},
    {"advise_llama3.1_70b_64_chips", ADV_REQUEST_ADVISE, 3,
     "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x4\"},\"workload\":{"
     "\"seq_len\":8192,"
     "\"global_batch_sequences\":256}}"},
    {"advise_deepseek3_128_chips", ADV_REQUEST_ADVISE, 3,
     "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x4x8\"},\"workload\":{"
     "\"seq_len\":4096,"
     "\"global_batch_sequences\":2048}}"},
    {"tune_splash_forward_8k", ADV_REQUEST_TUNE, 21,
     "{\"chip\":\"tpu7x\",\"kernel\":\"splash_fwd_residuals\",\"shape\":{\"batch\":2,\"q_heads\":64,\"kv_"
     "heads\":8,\"q_len\":8192,"
     "\"kv_len\":8192,\"head_dim_qk\":128,\"head_dim_v\":128,\"causal\":true},\"top_k\":5}"},
};

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int compare_seconds(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return (*a > *b) - (*a < *b);
}

static adv_code run_bench(const struct adv_catalog *catalog, const struct bench *bench, struct adv_text *out,
                          adv_err *err)
{
    enum { REPEATS_MAX = 256 };
    double seconds[REPEATS_MAX];
    long evaluations = 0;
    for (int i = 0; i < bench->repeats && i < REPEATS_MAX; i++) {
        struct adv_answer answer;
        double start_s = now_s();
        adv_code code =
            adv_answer_request(catalog, bench->kind, bench->request, strlen(bench->request), &answer, err);
        seconds[i] = now_s() - start_s;
        if (code != ADV_OK) return code;
        evaluations = answer.evaluations;
        adv_answer_free(&answer);
    }
    qsort(seconds, (size_t)bench->repeats, sizeof *seconds, compare_seconds);
    double median_s = seconds[bench->repeats / 2];
    adv_text_format(out,
                    "{\"name\":\"%s\",\"repeats\":%d,\"min_ms\":%.4f,\"median_ms\":%.4f,\"max_ms\":%.4f,"
                    "\"evaluations\":%ld,"
                    "\"evaluations_per_s\":%.0f}",
                    bench->name, bench->repeats, seconds[0] * 1e3, median_s * 1e3,
                    seconds[bench->repeats - 1] * 1e3, evaluations, (double)evaluations / median_s);
    return ADV_OK;
}

int adv_cli_bench(int argc, char **argv)
{
    adv_err err;
    struct adv_text out;
    if (argc != 1) {
        (void)fprintf(stderr, "usage: tpu-advisor %s\n", argv[0]);
        return ADV_CLI_USAGE;
    }
    adv_err_init(&err);
    double start_s = now_s();
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    if (!catalog) return adv_cli_problem(&err);
    adv_text_init(&out, ADV_LIMIT_BODY_BYTES);
    adv_text_format(&out, "{\"catalog_load_ms\":%.4f,\"benches\":[", (now_s() - start_s) * 1e3);
    adv_code code = ADV_OK;
    for (size_t i = 0; code == ADV_OK && i < sizeof benches / sizeof *benches; i++) {
        if (i) adv_text_append(&out, ",");
        code = run_bench(catalog, &benches[i], &out, &err);
    }
    adv_text_format(&out, "],\"engine\":{\"version\":\"%s\",\"catalog_hash\":\"%s\",\"calibration\":\"%s\"}}",
                    adv_engine_version(), adv_catalog_hash(catalog), adv_catalog_calibration(catalog));
    int status = code == ADV_OK ? ADV_CLI_OK : adv_cli_problem(&err);
    if (code == ADV_OK) (void)printf("%s\n", out.data);
    adv_text_free(&out);
    adv_catalog_free(catalog);
    return status;
}
