#include "server/metrics.h"

#include <stdio.h>
#include <string.h>

#include "server/routes.h"

#define PREFIX "tpu_advisor_"

static const int statuses[ADV_METRICS_STATUSES] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 406,
                                                   409, 413, 415, 422, 429, 431, 500, 503, 0 /* any other */};
static const int64_t bucket_limits_us[ADV_METRICS_BUCKETS] = {
    500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 1000000, 2500000, 10000000};

void adv_metrics_request(struct adv_metrics *metrics, int route_index, int status, int64_t duration_us)
{
    struct adv_metrics_route *route = &metrics->routes[route_index];
    int s = 0;
    while (s < ADV_METRICS_STATUSES - 1 && statuses[s] != status) s++;
    int b = 0;
    while (b < ADV_METRICS_BUCKETS && duration_us > bucket_limits_us[b]) b++;
    (void)atomic_fetch_add_explicit(&route->by_status[s], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&route->buckets[b], 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&route->sum_us, (uint64_t)duration_us, memory_order_relaxed);
}

static uint64_t get(atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void print_head(struct adv_text *text, const char *name, const char *help, const char *type)
{
    int length = (int)strcspn(name, "{");
    adv_text_format(text, "# HELP " PREFIX "%.*s %s\n# TYPE " PREFIX "%.*s %s\n", length, name, help, length,
                    name, type);
}

static void print_requests(struct adv_metrics *metrics, struct adv_text *text)
{
    print_head(text, "requests_total", "Requests answered, by route and status", "counter");
    for (int r = 0; r < ADV_LIMIT_ROUTES && adv_routes_method(r); r++)
        for (int s = 0; s < ADV_METRICS_STATUSES; s++) {
            uint64_t count = get(&metrics->routes[r].by_status[s]);
            if (!count) continue;
            adv_text_format(text, PREFIX "requests_total{method=\"%s\",route=\"%s\",code=\"%d\"} %llu\n",
                            adv_routes_method(r), adv_routes_path(r), statuses[s], (unsigned long long)count);
        }
    print_head(text, "request_duration_seconds", "Time from a request's headers to the end of its answer",
               "histogram");
    for (int r = 0; r < ADV_LIMIT_ROUTES && adv_routes_method(r); r++) {
        uint64_t total = 0;
        uint64_t counts[ADV_METRICS_BUCKETS + 1]; /* read once, so that the printed sums agree */
        for (int b = 0; b <= ADV_METRICS_BUCKETS; b++)
            total += counts[b] = get(&metrics->routes[r].buckets[b]);
        if (!total) continue;
        uint64_t sum = 0;
        char labels[160];
        (void)snprintf(labels, sizeof labels, "method=\"%s\",route=\"%s\"", adv_routes_method(r),
                       adv_routes_path(r));
        for (int b = 0; b < ADV_METRICS_BUCKETS; b++) {
            sum += counts[b];
            adv_text_format(text, PREFIX "request_duration_seconds_bucket{%s,le=\"%g\"} %llu\n", labels,
                            (double)bucket_limits_us[b] * 1e-6, (unsigned long long)sum);
        }
        adv_text_format(text, PREFIX "request_duration_seconds_bucket{%s,le=\"+Inf\"} %llu\n", labels,
                        (unsigned long long)total);
        adv_text_format(text, PREFIX "request_duration_seconds_sum{%s} %.6f\n", labels,
                        (double)get(&metrics->routes[r].sum_us) * 1e-6);
        adv_text_format(text, PREFIX "request_duration_seconds_count{%s} %llu\n", labels,
                        (unsigned long long)total);
    }
}

void adv_metrics_print(struct adv_metrics *metrics, struct adv_text *text)
{
#define ROW(name, text, help) {text, help},
    static const struct {
        const char *name, *help;
    } rows[] = {ADV_COUNTER_TABLE(ROW)};
#undef ROW
    print_requests(metrics, text);
    for (int i = 0; i < ADV_COUNTER_COUNT; i++) {
        if (rows[i].help) print_head(text, rows[i].name, rows[i].help, "counter");
        const unsigned long long count = get(&metrics->counters[i]);
        if (i == ADV_COUNTER_ENGINE_US)
            adv_text_format(text, PREFIX "%s %.6f\n", rows[i].name, (double)count * 1e-6);
        else
            adv_text_format(text, PREFIX "%s %llu\n", rows[i].name, count);
    }
    adv_metrics_print_gauge(text, "requests_in_flight", "Requests being read or answered",
                            atomic_load_explicit(&metrics->in_flight, memory_order_relaxed));
}

static void print_value(struct adv_text *text, const char *name, const char *help, const char *type,
                        double value)
{
    if (help) print_head(text, name, help, type);
    adv_text_format(text, PREFIX "%s %.17g\n", name, value);
}

void adv_metrics_print_counter(struct adv_text *text, const char *name, const char *help, double value)
{
    print_value(text, name, help, "counter", value);
}

void adv_metrics_print_gauge(struct adv_text *text, const char *name, const char *help, double value)
{
    print_value(text, name, help, "gauge", value);
}
