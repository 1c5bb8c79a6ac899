/* patience.h: whether somebody still waits for the answer to a request. The engine asks (base/budget.h), and
 * gives up when nobody does.
 *
 * Nobody waits once the client has closed its connection (or its sending half: the two look the same), the
 * deadline has passed, or the request was given up by the daemon. Asked by one thread, the worker; given up
 * by any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum adv_patience_end {
    ADV_PATIENCE_LASTS,
    ADV_PATIENCE_CLIENT_GONE,
    ADV_PATIENCE_DEADLINE,
    ADV_PATIENCE_GIVEN_UP /* by the daemon: its own deadline, or its end */
};

struct adv_patience {
    int socket;          /* -1: not looked at */
    int64_t deadline_us; /* of CLOCK_MONOTONIC */
    int64_t looked_us;   /* when the socket was last looked at */
    atomic_int end;      /* enum adv_patience_end */
};

/* `closure` is a struct adv_patience; the answer, once true, stays true. */
bool adv_patience_over(void *closure);
