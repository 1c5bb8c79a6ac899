/* cli_bench.c: the engine's own speed on a fixed set of requests, and how it grows with the space, as JSON.
 * Wall clock of this machine, one thread; searches once more with helpers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "engine/base/budget.h"
#include "server/bench.h"
#include "server/cli.h"
#include "server/cli_io.h"
#include "server/monotonic.h"

enum { REPEATS_MAX = 256 };

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
    {"advise_deepseek3_512_devices", ADV_REQUEST_ADVISE, 3,
     "{\"model\":\"deepseek3-671b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"4x8x8\"},\"workload\":{"
     "\"seq_len\":4096,\"global_batch_sequences\":4096}}"},
    {"advise_llama3.1_70b_9216_chips", ADV_REQUEST_ADVISE, 3,
     "{\"model\":\"llama3.1-70b\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"16x24x24\"},\"workload\":{"
     "\"seq_len\":8192,\"global_batch_sequences\":36864}}"},
    {"advise_20_slice_shapes", ADV_REQUEST_ADVISE, 3,
     "{\"model\":\"llama3.1-70b\",\"clusters\":[{\"chip\":\"tpu7x\",\"topology\":\"any\",\"chips\":128},"
     "{\"chip\":\"tpu7x\",\"topology\":\"any\",\"chips\":64},{\"chip\":\"v6e\",\"topology\":\"any\","
     "\"chips\":256},"
     "{\"chip\":\"v5p\",\"topology\":\"any\",\"chips\":256},{\"chip\":\"v5p\",\"topology\":\"any\",\"chips\":"
     "128}],"
     "\"workload\":{\"seq_len\":8192,\"global_batch_sequences\":512}}"},
    {"tune_splash_forward_8k", ADV_REQUEST_TUNE, 21,
     "{\"chip\":\"tpu7x\",\"kernel\":\"splash_fwd_residuals\",\"shape\":{\"batch\":2,\"q_heads\":64,\"kv_"
     "heads\":8,\"q_len\":8192,"
     "\"kv_len\":8192,\"head_dim_qk\":128,\"head_dim_v\":128,\"causal\":true},\"top_k\":5}"},
    {"tune_gmm_256_groups", ADV_REQUEST_TUNE, 21,
     "{\"chip\":\"tpu7x\",\"kernel\":\"gmm\",\"shape\":{\"m\":131072,\"k\":7168,\"n\":2048,\"num_groups\":"
     "256},"
     "\"top_k\":5}"},
};

static int compare_seconds(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return (*a > *b) - (*a < *b);
}

adv_code adv_bench_answer(const struct adv_catalog *catalog, enum adv_request_kind kind, const char *request,
                          int repeats, struct adv_crew *crew, double *seconds, struct adv_bench_point *point,
                          adv_err *err)
{
    const struct adv_budget budget = {.crew = crew};
    static const char considered[] = "\"considered\":";
    for (int i = 0; i < repeats; i++) {
        struct adv_answer answer;
        double start_s = adv_monotonic_s();
        adv_code code = adv_answer_within(catalog, kind, request, strlen(request), &budget, &answer, err);
        seconds[i] = adv_monotonic_s() - start_s;
        if (code != ADV_OK) return code;
        const char *at = strstr(answer.json, considered);
        point->considered = at ? strtol(at + strlen(considered), NULL, 10) : 0;
        point->evaluations = answer.evaluations;
        adv_answer_free(&answer);
    }
    qsort(seconds, (size_t)repeats, sizeof *seconds, compare_seconds);
    return ADV_OK;
}

/* How long a search takes with the helpers that this machine has processors for. */
static adv_code run_helped(const struct adv_catalog *catalog, const struct bench *bench, int repeats,
                           struct adv_text *out, adv_err *err)
{
    double seconds[REPEATS_MAX] = {0};
    struct adv_bench_point point = {0};
    struct adv_crew *crew = adv_crew_start(0, 0);
    if (!crew) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "threads or memory are exhausted");
    adv_code code =
        adv_bench_answer(catalog, bench->kind, bench->request, repeats, crew, seconds, &point, err);
    adv_crew_stop(crew);
    adv_text_format(out, ",\"helped_min_ms\":%.4f,\"helped_median_ms\":%.4f", seconds[0] * 1e3,
                    seconds[repeats / 2] * 1e3);
    return code;
}

static adv_code run_bench(const struct adv_catalog *catalog, const struct bench *bench, bool quick,
                          struct adv_text *out, adv_err *err)
{
    double seconds[REPEATS_MAX] = {0};
    struct adv_bench_point point = {0};
    int repeats = quick ? 1 : bench->repeats < REPEATS_MAX ? bench->repeats : REPEATS_MAX - 1;
    adv_code code =
        adv_bench_answer(catalog, bench->kind, bench->request, repeats, NULL, seconds, &point, err);
    if (code != ADV_OK) return code;
    double median_s = seconds[repeats / 2];
    adv_text_format(out,
                    "{\"name\":\"%s\",\"repeats\":%d,\"min_ms\":%.4f,\"median_ms\":%.4f,\"max_ms\":%.4f,"
                    "\"evaluations\":%ld,"
                    "\"evaluations_per_s\":%.0f",
                    bench->name, repeats, seconds[0] * 1e3, median_s * 1e3, seconds[repeats - 1] * 1e3,
                    point.evaluations, (double)point.evaluations / median_s);
    if (bench->kind == ADV_REQUEST_ADVISE) code = run_helped(catalog, bench, repeats, out, err);
    adv_text_append(out, "}");
    return code;
}

static double peak_memory_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 : 0;
}

/* The meaning of one evaluation: rates of different depth are not comparable. */
static const char depth[] =
    "one evaluation = one plan's whole step (every layer, kernel, collective and overlap) and "
    "memory, equal to the estimate of that plan; shared parts of a family are computed once; considered = "
    "combinations of mesh, batch and formats: ruled out, bounded or solved; times are of the whole answer, "
    "with tuned tiles, explanations and JSON";

static adv_code run_all(const struct adv_catalog *catalog, double load_s, bool quick,
                        struct adv_bench_series *series, struct adv_text *out, adv_err *err)
{
    adv_code code = ADV_OK;
    adv_text_format(out, "{\"catalog_load_ms\":%.4f,\"depth\":\"%s\",\"benches\":[", load_s * 1e3, depth);
    for (size_t i = 0; code == ADV_OK && i < sizeof benches / sizeof *benches; i++) {
        if (i) adv_text_append(out, ",");
        code = run_bench(catalog, &benches[i], quick, out, err);
    }
    if (code == ADV_OK) adv_bench_tiles(catalog, quick, out);
    adv_text_append(out, "],");
    if (code == ADV_OK) code = adv_bench_growth(catalog, quick, series, out, err);
    adv_text_format(out,
                    ",\"peak_memory_bytes\":%.0f,\"engine\":{\"version\":\"%s\",\"catalog_hash\":\"%s\","
                    "\"calibration\":\"%s\"}}",
                    peak_memory_bytes(), adv_engine_version(), adv_catalog_hash(catalog),
                    adv_catalog_calibration(catalog));
    return code;
}

static int cannot_write(const char *path)
{
    (void)fprintf(stderr, "tpu-advisor: %s: %s\n", path, strerror(errno));
    return ADV_CLI_FAILED;
}

int adv_cli_bench(int argc, char **argv)
{
    adv_err err;
    struct adv_text out;
    struct adv_bench_series series[ADV_BENCH_SERIES] = {0};
    bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0; /* for tests: everything once, small */
    int rest = quick ? 2 : 1;
    const char *plot = argc == rest + 2 && strcmp(argv[rest], "--plot") == 0 ? argv[rest + 1] : NULL;
    if (argc != rest && !plot) {
        (void)fprintf(stderr, "usage: tpu-advisor %s [--quick] [--plot FILE.svg]\n", argv[0]);
        return ADV_CLI_USAGE;
    }
    if (plot && adv_bench_plot(series, 0, plot) != 0) return cannot_write(plot); /* before the long run */
    adv_err_init(&err);
    double start_s = adv_monotonic_s();
    struct adv_catalog *catalog = adv_catalog_load(NULL, &err);
    if (!catalog) return adv_cli_problem(&err);
    adv_text_init(&out, ADV_LIMIT_BODY_BYTES);
    adv_code code = run_all(catalog, adv_monotonic_s() - start_s, quick, series, &out, &err);
    int status = code == ADV_OK ? ADV_CLI_OK : adv_cli_problem(&err);
    if (code == ADV_OK) (void)printf("%s\n", out.data);
    if (code == ADV_OK && plot && adv_bench_plot(series, ADV_BENCH_SERIES, plot) != 0)
        status = cannot_write(plot);
    adv_text_free(&out);
    adv_catalog_free(catalog);
    return status;
}
