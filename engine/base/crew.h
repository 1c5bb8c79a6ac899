/* crew.h: threads that help others with their work when a processor is idle.
 *
 * Whoever has work enters the crew and may then lend a part of it to a helper. Nobody waits for a helper, and
 * there are never more threads at work than processors, but for those that entered: a helper is lent only
 * while one is idle, and is expected to ask now and then whether its processor is wanted (adv_crew_crowded).
 * Thread safe.
 */
#pragma once

#include <stdbool.h>

#include "engine/base/code.h"

struct adv_crew;

/* Of a caller's stack: it stays where it is from adv_crew_lend to adv_crew_wait. */
struct adv_crew_task {
    void (*run)(void *context); /* in the helper's thread */
    void *context;
    bool ended; /* the crew's own */
    struct adv_crew_task *next;
};

/* Starts processors - 1 helpers of that niceness, none for one processor: `processors` threads may be at
 * work. 0: as many as the machine has. NULL when memory or threads are exhausted. */
struct adv_crew *adv_crew_start(int processors, int niceness);

/* Nobody may be in the crew any more. Does nothing to NULL. */
void adv_crew_stop(struct adv_crew *crew);

/* The caller's thread is at work, until it leaves. A crew that is NULL has no helpers: it may be passed to
 * all functions below. */
void adv_crew_enter(struct adv_crew *crew);
void adv_crew_leave(struct adv_crew *crew);

/* False: no helper is idle, or no processor; the task is the caller's to do. */
ADV_MUST_CHECK bool adv_crew_lend(struct adv_crew *crew, struct adv_crew_task *task);

/* Waits for the end of a task that was lent. */
void adv_crew_wait(struct adv_crew *crew, struct adv_crew_task *task);

/* More threads are at work than there are processors: a helper should end its task soon. */
bool adv_crew_crowded(struct adv_crew *crew);
