#include "server/monotonic.h"

#include <time.h>

void adv_monotonic_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

int64_t adv_monotonic_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

double adv_monotonic_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool adv_monotonic_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_us)
{
    const struct timespec until = {until_us / 1000000, until_us % 1000000 * 1000};
    return pthread_cond_timedwait(condition, mutex, &until) != 0;
}

void adv_monotonic_sleep(long ms)
{
    const struct timespec time = {ms / 1000, ms % 1000 * 1000000L};
    (void)nanosleep(&time, NULL);
}
