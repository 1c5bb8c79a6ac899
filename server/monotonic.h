/* monotonic.h: time and waiting by the clock that only goes forward: a clock of the day that is set moves no
 * deadline.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Since some moment in the past. */
int64_t adv_monotonic_us(void);
double adv_monotonic_s(void);

/* A condition whose timed waits are by CLOCK_MONOTONIC. */
void adv_monotonic_init(pthread_cond_t *condition);

/* Waits until adv_monotonic_us() is `until_us`, with the mutex held; true: it is. */
bool adv_monotonic_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until_us);

void adv_monotonic_sleep(long ms); /* or until a signal is handled */
