/* sweeper.h: the threads of a daemon that work off sweeps, its own and those of any daemon on the same
 * database.
 *
 * They stand back behind what somebody waits for: a niceness of their own, and few of them. A daemon that is
 * killed leaves its items to others when their lease is over; one that stops gives them back.
 */
#pragma once

#include "server/app.h"

struct adv_sweeper;

/* `threads_count` 0: none, NULL is returned. NULL also when memory or threads are exhausted. */
struct adv_sweeper *adv_sweeper_start(struct adv_app *app, int threads_count);

/* There is something to do: they look at once instead of within a second. NULL is fine. */
void adv_sweeper_wake(struct adv_sweeper *sweeper);

/* Gives back what is under way within 50 ms and joins; may be called twice. NULL is fine. */
void adv_sweeper_stop(struct adv_sweeper *sweeper);
void adv_sweeper_free(struct adv_sweeper *sweeper); /* after adv_sweeper_stop; NULL is fine */
