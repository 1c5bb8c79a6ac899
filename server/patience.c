#include "server/patience.h"
#include "server/monotonic.h"

#include <poll.h>

#define LOOK_EVERY_US 10000 /* at the socket: a system call; the clock is read without one */

static bool client_is_gone(int socket)
{
    struct pollfd waiting = {.fd = socket, .events = POLLRDHUP};
    return poll(&waiting, 1, 0) > 0 && (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

bool adv_patience_over(void *closure)
{
    struct adv_patience *patience = closure;
    if (atomic_load_explicit(&patience->end, memory_order_relaxed) != ADV_PATIENCE_LASTS) return true;
    const int64_t now_us = adv_monotonic_us();
    int end = ADV_PATIENCE_LASTS;
    if (now_us >= patience->deadline_us) {
        end = ADV_PATIENCE_DEADLINE;
    } else if (patience->socket >= 0 && now_us - patience->looked_us >= LOOK_EVERY_US) {
        patience->looked_us = now_us;
        if (client_is_gone(patience->socket)) end = ADV_PATIENCE_CLIENT_GONE;
    }
    if (end == ADV_PATIENCE_LASTS) return false;
    int lasts = ADV_PATIENCE_LASTS; /* the first reason stays */
    (void)atomic_compare_exchange_strong(&patience->end, &lasts, end);
    return true;
}
