#include "server/bench.h"

#include <math.h>
#include <stdio.h>

/* The frame, in SVG units, and what it spans. Powers of two across, powers of ten up. */
enum { WIDTH = 760, HEIGHT = 440, LEFT = 70, RIGHT = 20, TOP = 50, BOTTOM = 60, LEGEND = 18 };

struct span {
    double low, high; /* powers: of two for devices, of ten for milliseconds */
};

static double across(const struct span *span, double devices)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * (log2(devices) - span->low) / (span->high - span->low);
}

static double up(const struct span *span, double ms)
{
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(ms) - span->low) / (span->high - span->low);
}

static void find_spans(const struct adv_bench_series *series, int count, struct span *devices,
                       struct span *ms)
{
    *devices = *ms = (struct span){(double)INFINITY, -(double)INFINITY};
    for (int s = 0; s < count; s++) {
        for (int i = 0; i < series[s].count; i++) {
            const struct adv_bench_point *point = &series[s].points[i];
            devices->low = fmin(devices->low, log2(point->devices));
            devices->high = fmax(devices->high, log2(point->devices));
            ms->low = fmin(ms->low, floor(log10(point->median_ms)));
            ms->high = fmax(ms->high, ceil(log10(point->median_ms)));
        }
    }
}

static void write_axes(FILE *file, const struct span *devices, const struct span *ms)
{
    for (int power = (int)ceil(devices->low); power <= (int)floor(devices->high); power++) {
        double x = across(devices, exp2(power));
        (void)fprintf(file,
                      "<line x1='%.1f' y1='%d' x2='%.1f' y2='%d' stroke='#ddd'/>"
                      "<text x='%.1f' y='%d' text-anchor='middle'>%.0f</text>\n",
                      x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, exp2(power));
    }
    for (int power = (int)ceil(ms->low); power <= (int)floor(ms->high); power++) {
        double y = up(ms, pow(10, power));
        (void)fprintf(file,
                      "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>"
                      "<text x='%d' y='%.1f' text-anchor='end'>%g</text>\n",
                      LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, pow(10, power));
    }
    (void)fprintf(
        file,
        "<text x='%d' y='%d' text-anchor='middle'>devices</text>"
        "<text x='16' y='%d' text-anchor='middle' transform='rotate(-90 16 %d)'>ms per advise</text>\n",
        (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 16, HEIGHT / 2, HEIGHT / 2);
}

static void write_series(FILE *file, const struct adv_bench_series *series, int index,
                         const struct span *devices, const struct span *ms)
{
    static const char *const colours[ADV_BENCH_SERIES] = {"#1b6ca8", "#7fb3d5", "#b03a2e", "#e59866"};
    const char *colour = colours[index % ADV_BENCH_SERIES];
    (void)fprintf(file, "<polyline fill='none' stroke='%s' stroke-width='2' points='", colour);
    for (int i = 0; i < series->count; i++)
        (void)fprintf(file, "%.1f,%.1f ", across(devices, series->points[i].devices),
                      up(ms, series->points[i].median_ms));
    (void)fprintf(file, "'/>\n");
    for (int i = 0; i < series->count; i++) {
        const struct adv_bench_point *point = &series->points[i];
        (void)fprintf(
            file,
            "<circle cx='%.1f' cy='%.1f' r='3' fill='%s'><title>%.0f devices: %ld combinations, %ld plans "
            "priced, %.1f ms</title></circle>\n",
            across(devices, point->devices), up(ms, point->median_ms), colour, point->devices,
            point->considered, point->evaluations, point->median_ms);
    }
    int y = HEIGHT - BOTTOM - 12 - LEGEND * index;
    (void)fprintf(
        file,
        "<line x1='%d' y1='%d' x2='%d' y2='%d' stroke='%s' stroke-width='2'/><text x='%d' y='%d'>%s</text>\n",
        WIDTH - 290, y - 4, WIDTH - 266, y - 4, colour, WIDTH - 258, y, series->name);
}

int adv_bench_plot(const struct adv_bench_series *series, int count, const char *path)
{
    struct span devices, ms;
    FILE *file = fopen(path, "w");
    if (!file) return -1;
    find_spans(series, count, &devices, &ms);
    (void)fprintf(
        file,
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' "
        "font-size='12'>\n<rect width='%d' height='%d' fill='#fff'/>\n"
        "<text x='%d' y='28' font-size='15'>Time of one advise request as the slice grows (tpu7x, whole "
        "space, one thread)</text>\n",
        WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
    if (count > 0) write_axes(file, &devices, &ms);
    for (int i = 0; i < count; i++) write_series(file, &series[i], i, &devices, &ms);
    (void)fprintf(file, "</svg>\n");
    bool failed = ferror(file) != 0;
    return fclose(file) != 0 || failed ? -1 : 0;
}
