/* bench.h: parts of `tpu-advisor bench`: how the cost of a search grows with its space, and the picture of
 * it. */
#pragma once

#include "engine/advise.h"
#include "engine/base/crew.h"
#include "engine/base/text.h"

enum { ADV_BENCH_POINTS = 16, ADV_BENCH_SERIES = 4, ADV_BENCH_NAME = 64 };

/* One search: what it looked at and how long it took. */
struct adv_bench_point {
    double devices;
    long considered, evaluations; /* combinations looked at; plans priced */
    double median_ms;
};

struct adv_bench_series {
    char name[ADV_BENCH_NAME];
    int count;
    struct adv_bench_point points[ADV_BENCH_POINTS];
};

/* Answers `request` `repeats` times (odd), with the helpers of `crew` (may be NULL); writes seconds in
 * ascending order and what the last answer counted. */
ADV_MUST_CHECK adv_code adv_bench_answer(const struct adv_catalog *catalog, enum adv_request_kind kind,
                                         const char *request, int repeats, struct adv_crew *crew,
                                         double *seconds, struct adv_bench_point *point, adv_err *err);

/* Searches of a dense and an expert model on 64 to 16,384 devices, with the placement of tensors open and
 * fixed (fills `series`), with one tensor after the other open, and with one axis after the other allowed;
 * appends members "growth_devices", "growth_tensors" and "growth_axes" to `out`. `quick`: the smallest slices
 * only, each search once. */
ADV_MUST_CHECK adv_code adv_bench_growth(const struct adv_catalog *catalog, bool quick,
                                         struct adv_bench_series series[ADV_BENCH_SERIES],
                                         struct adv_text *out, adv_err *err);

/* Simulates attention tiles and grouped matmul tiles over 256 given groups, `quick`: a hundredth as many;
 * appends ",{…}" entries to `out`. */
void adv_bench_tiles(const struct adv_catalog *catalog, bool quick, struct adv_text *out);

/* Writes the series as a picture (SVG, both axes logarithmic) into `path`; no series: an empty frame. 0, or
 * -1 with errno. */
int adv_bench_plot(const struct adv_bench_series *series, int count, const char *path);
