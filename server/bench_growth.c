/* bench_growth.c: how searches grow with their space, and kernel tiles simulated per second, without JSON
 * around them. */
#include <stdio.h>
#include <string.h>

#include "engine/kernel/kernel.h"
#include "engine/kernel/tune_space.h"
#include "server/bench.h"
#include "server/monotonic.h"

enum { GROWTH_REPEATS = 3, REQUEST_BYTES = 1024 };

/* tpu7x has two devices per chip. The batch grows with the slice, as it would in a real job. */
static const struct {
    int devices;
    const char *topology;
} slices[] = {
    {64, "2x4x4"},    {128, "4x4x4"},    {256, "4x4x8"},     {512, "4x8x8"},      {1024, "8x8x8"},
    {2048, "8x8x16"}, {4096, "8x16x16"}, {8192, "16x16x16"}, {16384, "16x16x32"},
};
enum { SLICES = sizeof slices / sizeof *slices, SEQUENCES_PER_DEVICE = 4, SEQ_LEN = 8192, AXES_AT = 3 };

static const char *const models[] = {"llama3.1-70b", "deepseek3-671b"};
enum { MODELS = sizeof models / sizeof *models };

static const struct {
    const char *name, *members;
} open[] = {
    {"tensors placed by the search", ""},
    {"remat_policy and vocabulary tiling pinned",
     ",\"pins\":{\"remat_policy\":\"full\",\"num_vocab_tiling\":1}"},
};
enum { OPEN = sizeof open / sizeof *open };

/* Opened one after the other, the others recomputed. */
static const char *const tensors[] = {
    "context",  "mlpwi_0",    "mlpwi_1",  "moe_mlpwi_0",   "moe_mlpwi_1", "moe_mlpwo",           "query_proj",
    "key_proj", "value_proj", "out_proj", "query_wa_proj", "kv_wa_proj",  "decoder_layer_input",
};
enum { TENSORS = sizeof tensors / sizeof *tensors };

/* Each allows one axis more. */
static const char *const axes[] = {"data", "context", "tensor", "expert", "fsdp_transpose", "pipeline"};
enum { AXES = sizeof axes / sizeof *axes };

static void write_request(char request[REQUEST_BYTES], const char *model, int slice, const char *members)
{
    (void)snprintf(
        request, REQUEST_BYTES,
        "{\"model\":\"%s\",\"cluster\":{\"chip\":\"tpu7x\",\"topology\":\"%s\"},\"workload\":{\"seq_len\":%d,"
        "\"global_batch_sequences\":%d}%s}",
        model, slices[slice].topology, SEQ_LEN, SEQUENCES_PER_DEVICE * slices[slice].devices, members);
}

static void write_point(struct adv_text *out, const struct adv_bench_point *point)
{
    adv_text_format(out,
                    "\"devices\":%.0f,\"considered\":%ld,\"evaluations\":%ld,\"median_ms\":%.4f,"
                    "\"evaluations_per_s\":%.0f,\"considered_per_s\":%.0f}",
                    point->devices, point->considered, point->evaluations, point->median_ms,
                    (double)point->evaluations / point->median_ms * 1e3,
                    (double)point->considered / point->median_ms * 1e3);
}

static adv_code measure(const struct adv_catalog *catalog, bool quick, const char *model, int slice,
                        const char *members, struct adv_bench_point *point, adv_err *err)
{
    const int repeats = quick ? 1 : GROWTH_REPEATS;
    char request[REQUEST_BYTES];
    double seconds[GROWTH_REPEATS];
    write_request(request, model, slice, members);
    adv_code code =
        adv_bench_answer(catalog, ADV_REQUEST_ADVISE, request, repeats, NULL, seconds, point, err);
    if (code != ADV_OK) return code;
    point->devices = slices[slice].devices;
    point->median_ms = seconds[repeats / 2] * 1e3;
    return ADV_OK;
}

static adv_code grow_devices(const struct adv_catalog *catalog, bool quick, struct adv_bench_series *series,
                             struct adv_text *out, adv_err *err)
{
    const int slices_count = quick ? 2 : SLICES;
    adv_text_append(out, "\"growth_devices\":[");
    for (int i = 0; i < MODELS * OPEN; i++) {
        struct adv_bench_series *line = &series[i];
        const char *model = models[i / OPEN];
        (void)snprintf(line->name, sizeof line->name, "%s, %s", model,
                       i % OPEN ? "remat pinned" : "tensors open");
        line->count = 0;
        for (int slice = 0; slice < slices_count; slice++) {
            struct adv_bench_point *point = &line->points[line->count++];
            adv_code code = measure(catalog, quick, model, slice, open[i % OPEN].members, point, err);
            if (code != ADV_OK) return code;
            adv_text_format(out, "%s{\"model\":\"%s\",\"open\":\"%s\",", i + slice ? "," : "", model,
                            open[i % OPEN].name);
            write_point(out, point);
        }
    }
    adv_text_append(out, "]");
    return ADV_OK;
}

static adv_code grow_tensors(const struct adv_catalog *catalog, bool quick, struct adv_text *out,
                             adv_err *err)
{
    adv_text_append(out, "\"growth_tensors\":[");
    for (int m = 0; m < MODELS; m++) {
        for (int opened = 0; opened <= TENSORS; opened++) {
            char members[REQUEST_BYTES / 2] = ",\"pins\":{";
            struct adv_bench_point point;
            for (int i = opened; i < TENSORS; i++) {
                size_t used = strlen(members);
                bool input = i == TENSORS - 1; /* always there: on the device or on the host */
                (void)snprintf(members + used, sizeof members - used, "%s\"%s\":\"%s\"",
                               i > opened ? "," : "", tensors[i], input ? "device" : "remat");
            }
            size_t used = strlen(members);
            (void)snprintf(members + used, sizeof members - used, "}");
            adv_code code = measure(catalog, quick, models[m], quick ? 0 : AXES_AT, members, &point, err);
            if (code != ADV_OK) return code;
            adv_text_format(out, "%s{\"model\":\"%s\",\"open_tensors\":%d,", m + opened ? "," : "", models[m],
                            opened);
            write_point(out, &point);
        }
    }
    adv_text_append(out, "]");
    return ADV_OK;
}

static adv_code grow_axes(const struct adv_catalog *catalog, bool quick, struct adv_text *out, adv_err *err)
{
    adv_text_append(out, "\"growth_axes\":[");
    for (int m = 0; m < MODELS; m++) {
        char allowed[256] = "\"fsdp\"";
        for (int i = 0; i <= AXES; i++) {
            char members[REQUEST_BYTES / 2];
            struct adv_bench_point point;
            (void)snprintf(members, sizeof members, ",\"search\":{\"axes\":[%s]}", allowed);
            adv_code code = measure(catalog, quick, models[m], quick ? 0 : AXES_AT, members, &point, err);
            if (code != ADV_OK) return code;
            adv_text_format(out, "%s{\"model\":\"%s\",\"axes\":[%s],", m + i ? "," : "", models[m], allowed);
            write_point(out, &point);
            size_t used = strlen(allowed);
            if (i < AXES) (void)snprintf(allowed + used, sizeof allowed - used, ",\"%s\"", axes[i]);
        }
    }
    adv_text_append(out, "]");
    return ADV_OK;
}

adv_code adv_bench_growth(const struct adv_catalog *catalog, bool quick,
                          struct adv_bench_series series[ADV_BENCH_SERIES], struct adv_text *out,
                          adv_err *err)
{
    _Static_assert((int)(MODELS * OPEN) <= (int)ADV_BENCH_SERIES && (int)SLICES <= (int)ADV_BENCH_POINTS,
                   "room for every search");
    adv_code code = grow_devices(catalog, quick, series, out, err);
    adv_text_append(out, ",");
    if (code == ADV_OK) code = grow_tensors(catalog, quick, out, err);
    adv_text_append(out, ",");
    if (code == ADV_OK) code = grow_axes(catalog, quick, out, err);
    return code;
}

/* Attention tiles; the sum of times keeps the compiler from leaving them out. */
static long evaluate_attention(const struct adv_kernel_machine *machine, bool quick, double *sum_s)
{
    const int rounds = quick ? 200 : 20000;
    struct adv_attention_tile tiles[ADV_SPLASH_SPACE_MAX];
    const struct adv_attention_shape shape = {.batch = 2,
                                              .q_heads = 64,
                                              .kv_heads = 8,
                                              .q_len = 8192,
                                              .kv_len = 8192,
                                              .head_dim_qk = 128,
                                              .head_dim_v = 128,
                                              .causal = true,
                                              .context_shards = 1,
                                              .dtype = ADV_FORMAT_BF16};
    const struct adv_attention_flags flags = {0};
    const int count = adv_splash_space(ADV_KERNEL_SPLASH_FWD_RESIDUALS, &shape, false, tiles);
    for (int i = 0; i < rounds * count; i++) {
        struct adv_kernel_time time = {0};
        if (adv_splash_time(machine, ADV_KERNEL_SPLASH_FWD_RESIDUALS, &shape, &tiles[i % count], &flags,
                            &time, NULL))
            return 0;
        *sum_s += time.time_s;
    }
    return (long)rounds * count;
}

/* Grouped matmul tiles over 256 groups of given, unequal sizes. */
static long evaluate_gmm(const struct adv_kernel_machine *machine, bool quick, double *sum_s)
{
    enum { GROUPS = 256 };
    const int rounds = quick ? 4 : 400;
    static struct adv_gmm_tile tiles[ADV_GMM_SPACE_MAX];
    int64_t sizes[GROUPS];
    for (int g = 0; g < GROUPS; g++) sizes[g] = 512 + (g % 2 ? g : -(g + 1));
    const struct adv_gmm_shape shape = {.m = 131072,
                                        .k = 7168,
                                        .n = 2048,
                                        .num_groups = GROUPS,
                                        .distribution = ADV_GROUPS_GIVEN,
                                        .group_sizes = sizes,
                                        .lhs = ADV_FORMAT_BF16,
                                        .rhs = ADV_FORMAT_BF16,
                                        .out = ADV_FORMAT_BF16,
                                        .version = 1};
    const int count = adv_gmm_space(&shape, false, tiles);
    for (int i = 0; i < rounds * count; i++) {
        struct adv_kernel_time time = {0};
        struct adv_gmm_tile tile = tiles[i % count];
        tile.input_buffer_count = 2;
        if (adv_gmm_time(machine, ADV_KERNEL_GMM, &shape, &tile, &time, NULL)) return 0;
        *sum_s += time.time_s;
    }
    return (long)rounds * count;
}

void adv_bench_tiles(const struct adv_catalog *catalog, bool quick, struct adv_text *out)
{
    static const struct {
        const char *name;
        long (*evaluate)(const struct adv_kernel_machine *machine, bool quick, double *sum_s);
    } kinds[] = {{"attention_tiles", evaluate_attention}, {"gmm_tiles_256_groups", evaluate_gmm}};
    const struct adv_catalog_chip *chip = adv_catalog_chip(catalog, "tpu7x");
    const struct adv_kernel_machine machine = {.chip = &chip->chip, .constants = &chip->constants};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double sum_s = 0.0;
        const double start_s = adv_monotonic_s();
        const long evaluations = kinds[i].evaluate(&machine, quick, &sum_s);
        const double took_s = adv_monotonic_s() - start_s;
        adv_text_format(out,
                        ",{\"name\":\"%s\",\"repeats\":1,\"min_ms\":%.4f,\"median_ms\":%.4f,\"max_ms\":%.4f,"
                        "\"evaluations\":%ld,\"evaluations_per_s\":%.0f,\"mean_predicted_us\":%.3f}",
                        kinds[i].name, took_s * 1e3, took_s * 1e3, took_s * 1e3, evaluations,
                        (double)evaluations / took_s, sum_s / (double)(evaluations ? evaluations : 1) * 1e6);
    }
}
