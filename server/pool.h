/* pool.h: a fixed number of threads and a bounded queue before them.
 *
 * Adding never waits: a full queue is the caller's answer 503. Each thread owns one context (a database
 * connection), opened and closed on that thread. Thread safe, except start and stop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct adv_pool;

struct adv_pool_work {
    void *(*open)(void *argument); /* a thread's context; may return NULL */
    void (*close)(void *context);
    void (*run)(void *job, void *context);
    void *argument; /* for open */
};

/* NULL when memory or threads are exhausted. */
struct adv_pool *adv_pool_start(int threads_count, int queue_count, const struct adv_pool_work *work);

/* false: the pool is stopping, the queue is full, or what waits will take longer than `wait_max_us`, by the
 * mean of the jobs before. A job always has room while nobody waits. */
bool adv_pool_try_add(struct adv_pool *pool, void *job, int64_t wait_max_us);

/* true: the job was still waiting, and is not run. */
bool adv_pool_take_back(struct adv_pool *pool, const void *job);

/* How many jobs wait, how many threads are at one, and of these since before `since_us` of CLOCK_MONOTONIC.
 */
struct adv_pool_load {
    int waiting, running, stuck;
};
struct adv_pool_load adv_pool_load(struct adv_pool *pool, int64_t since_us);

/* Runs what is queued, joins the threads, frees the pool. NULL is fine. */
void adv_pool_stop(struct adv_pool *pool);
