#include "server/pool.h"
#include "server/monotonic.h"

#include <pthread.h>
#include <stdlib.h>

#define MEAN_OVER 8 /* jobs */

struct adv_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct adv_pool_work work;
    void **ring;
    int ring_count, head, waiting, running;
    bool stopping;
    pthread_t *threads;
    int64_t mean_us;     /* that a job takes, moving */
    int64_t *started_us; /* of each thread's job, 0 without one */
    int threads_count, opened_count;
};

static void *work_loop(void *argument)
{
    struct adv_pool *pool = argument;
    void *context = pool->work.open ? pool->work.open(pool->work.argument) : NULL;
    (void)pthread_mutex_lock(&pool->lock);
    const int self = pool->opened_count++;
    for (;;) {
        while (pool->waiting == 0 && !pool->stopping) (void)pthread_cond_wait(&pool->wake, &pool->lock);
        if (pool->waiting == 0) break;
        void *job = pool->ring[pool->head];
        pool->head = (pool->head + 1) % pool->ring_count;
        pool->waiting--;
        pool->running++;
        pool->started_us[self] = adv_monotonic_us();
        (void)pthread_mutex_unlock(&pool->lock);
        pool->work.run(job, context);
        (void)pthread_mutex_lock(&pool->lock);
        pool->running--;
        pool->mean_us += (adv_monotonic_us() - pool->started_us[self] - pool->mean_us) / MEAN_OVER;
        pool->started_us[self] = 0;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (pool->work.close) pool->work.close(context);
    return NULL;
}

struct adv_pool *adv_pool_start(int threads_count, int queue_count, const struct adv_pool_work *work)
{
    struct adv_pool *pool = calloc(1, sizeof *pool);
    if (!pool) return NULL;
    pool->work = *work;
    pool->ring_count = queue_count;
    pool->ring = calloc((size_t)queue_count, sizeof *pool->ring);
    pool->threads = calloc((size_t)threads_count, sizeof *pool->threads);
    pool->started_us = calloc((size_t)threads_count, sizeof *pool->started_us);
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->wake, NULL);
    bool good = pool->ring && pool->threads && pool->started_us;
    while (good && pool->threads_count < threads_count) {
        good = pthread_create(&pool->threads[pool->threads_count], NULL, work_loop, pool) == 0;
        if (good) pool->threads_count++;
    }
    if (good) return pool;
    adv_pool_stop(pool);
    return NULL;
}

bool adv_pool_try_add(struct adv_pool *pool, void *job, int64_t wait_max_us)
{
    (void)pthread_mutex_lock(&pool->lock);
    const int64_t wait_us = pool->mean_us * pool->waiting / pool->threads_count;
    bool room =
        !pool->stopping && pool->waiting < pool->ring_count && (pool->waiting == 0 || wait_us <= wait_max_us);
    if (room) {
        pool->ring[(pool->head + pool->waiting) % pool->ring_count] = job;
        pool->waiting++;
        (void)pthread_cond_signal(&pool->wake);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return room;
}

bool adv_pool_take_back(struct adv_pool *pool, const void *job)
{
    (void)pthread_mutex_lock(&pool->lock);
    int at = 0;
    while (at < pool->waiting && pool->ring[(pool->head + at) % pool->ring_count] != job) at++;
    const bool found = at < pool->waiting;
    if (found) pool->waiting--;
    for (; at < pool->waiting; at++)
        pool->ring[(pool->head + at) % pool->ring_count] =
            pool->ring[(pool->head + at + 1) % pool->ring_count];
    (void)pthread_mutex_unlock(&pool->lock);
    return found;
}

struct adv_pool_load adv_pool_load(struct adv_pool *pool, int64_t since_us)
{
    (void)pthread_mutex_lock(&pool->lock);
    struct adv_pool_load load = {.waiting = pool->waiting, .running = pool->running};
    for (int i = 0; i < pool->opened_count; i++)
        load.stuck += pool->started_us[i] != 0 && pool->started_us[i] < since_us;
    (void)pthread_mutex_unlock(&pool->lock);
    return load;
}

void adv_pool_stop(struct adv_pool *pool)
{
    if (!pool) return;
    (void)pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    (void)pthread_cond_broadcast(&pool->wake);
    (void)pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->threads_count; i++) (void)pthread_join(pool->threads[i], NULL);
    (void)pthread_cond_destroy(&pool->wake);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->started_us);
    free(pool->threads);
    free(pool->ring);
    free(pool);
}
