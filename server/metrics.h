/* metrics.h: counters of the daemon, printed in the Prometheus text format 0.0.4.
 *
 * Labels are route templates and codes, never paths. Counting is one relaxed atomic addition; thread safe.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "engine/base/text.h"

#define ADV_LIMIT_ROUTES 96 /* rows of the route table, and one for requests that match none */

/* name, help. Adding a counter = adding a row. What is counted in microseconds is printed in seconds, the
 * unit of Prometheus, and has a name that says so. */
#define ADV_COUNTER_TABLE(X)                                                                                 \
    X(REJECTED_GUARD, "rejected_total{reason=\"guard\"}", "Requests refused, by reason")                     \
    X(REJECTED_QUEUE, "rejected_total{reason=\"queue_full\"}", NULL)                                         \
    X(REJECTED_DEADLINE, "rejected_total{reason=\"deadline\"}", NULL)                                        \
    X(REJECTED_SIZE, "rejected_total{reason=\"too_large\"}", NULL)                                           \
    X(REJECTED_TOKEN, "rejected_total{reason=\"token\"}", NULL)                                              \
    X(REJECTED_RATE, "rejected_total{reason=\"rate\"}", NULL)                                                \
    X(ABANDONED_CLIENT, "abandoned_total{reason=\"client_gone\"}",                                           \
      "Requests whose work was given up, by reason")                                                         \
    X(ABANDONED_DEADLINE, "abandoned_total{reason=\"deadline\"}", NULL)                                      \
    X(ABANDONED_DAEMON, "abandoned_total{reason=\"given_up\"}", NULL)                                        \
    X(SWEPT, "slow_clients_closed_total", "Connections closed because the client was too slow")              \
    X(EVALUATIONS, "engine_evaluations_total", "Plans priced by the engine")                                 \
    X(ENGINE_US, "engine_seconds_total", "Time spent in the engine")                                         \
    X(CACHE_HITS, "answer_cache_total{result=\"hit\"}", "Questions looked up among the kept answers")        \
    X(CACHE_MISSES, "answer_cache_total{result=\"miss\"}", NULL)                                             \
    X(CACHE_STORED, "answer_cache_total{result=\"stored\"}", NULL)                                           \
    X(RUNS_STORED, "runs_stored_total", "Answers stored as runs")                                            \
    X(RUNS_NOT_STORED, "runs_not_stored_total", "Answers that could not be stored when asked")               \
    X(SWEEP_ITEMS, "sweep_items_total", "Items of sweeps that this daemon has ended")                        \
    X(DB_QUERIES, "db_queries_total", "Database statements run")                                             \
    X(DB_LOST, "db_errors_total{class=\"connection\"}", "Database errors, by class")                         \
    X(DB_TIMEOUT, "db_errors_total{class=\"timeout\"}", NULL)                                                \
    X(DB_OTHER, "db_errors_total{class=\"other\"}", NULL)                                                    \
    X(DB_REFUSED, "db_refusals_total", "Statements refused for the values that a client sent")

#define ADV_COUNTER_ENUM(name, text, help) ADV_COUNTER_##name,
enum adv_counter { ADV_COUNTER_TABLE(ADV_COUNTER_ENUM) ADV_COUNTER_COUNT };
#undef ADV_COUNTER_ENUM

#define ADV_METRICS_BUCKETS  12
#define ADV_METRICS_STATUSES 20

struct adv_metrics_route {
    atomic_uint_fast64_t by_status[ADV_METRICS_STATUSES];
    atomic_uint_fast64_t buckets[ADV_METRICS_BUCKETS + 1]; /* the last one is +Inf; not cumulative */
    atomic_uint_fast64_t sum_us;
};

struct adv_metrics {
    atomic_uint_fast64_t counters[ADV_COUNTER_COUNT];
    atomic_int in_flight;
    struct adv_metrics_route routes[ADV_LIMIT_ROUTES];
};

static inline void adv_metrics_add(struct adv_metrics *metrics, enum adv_counter counter, uint64_t amount)
{
    (void)atomic_fetch_add_explicit(&metrics->counters[counter], amount, memory_order_relaxed);
}

/* One answered request. route_index is that of the route table. */
void adv_metrics_request(struct adv_metrics *metrics, int route_index, int status, int64_t duration_us);

/* The counters, and histograms of the routes. */
void adv_metrics_print(struct adv_metrics *metrics, struct adv_text *text);

/* A counter that is kept elsewhere. */
void adv_metrics_print_counter(struct adv_text *text, const char *name, const char *help, double value);

/* A gauge, for values read at scrape time. `name` may carry labels; help NULL when the name was described
 * before. */
void adv_metrics_print_gauge(struct adv_text *text, const char *name, const char *help, double value);
