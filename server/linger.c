#include "server/linger.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/monotonic.h"

struct lingering {
    int socket; /* -1: closed, to be taken from the list */
    int64_t end_ms, nap_end_ms;
    size_t left_bytes;
};

/* Who takes a connection appends to the list, under the lock; what is in it belongs to the thread. */
struct adv_linger {
    pthread_t thread;
    pthread_mutex_t lock;
    int wake; /* an eventfd */
    bool stopping;
    int count;
    struct lingering list[ADV_LIMIT_LINGERING];
    char nowhere[65536];
};

static int64_t now_ms(void)
{
    return adv_monotonic_us() / 1000;
}

static void wake(struct adv_linger *linger)
{
    const uint64_t one = 1;
    (void)!write(linger->wake, &one, sizeof one);
}

/* Some of what has come; false: the connection is over. */
static bool throw_away(struct adv_linger *linger, struct lingering *one)
{
    const ssize_t got = recv(one->socket, linger->nowhere, sizeof linger->nowhere, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0 || (size_t)got >= one->left_bytes) return false;
    one->left_bytes -= (size_t)got;
    one->nap_end_ms = now_ms() + ADV_LIMIT_LINGER_NAP_MS;
    return true;
}

/* Waits until something comes for the first `count`, or is over. */
static void serve(struct adv_linger *linger, int count)
{
    struct pollfd polls[ADV_LIMIT_LINGERING + 1] = {{.fd = linger->wake, .events = POLLIN}};
    uint64_t woken = 0;
    int64_t next_ms = INT64_MAX;
    for (int i = 0; i < count; i++) {
        const struct lingering *one = &linger->list[i];
        polls[i + 1] = (struct pollfd){.fd = one->socket, .events = POLLIN};
        if (one->end_ms < next_ms) next_ms = one->end_ms;
        if (one->nap_end_ms < next_ms) next_ms = one->nap_end_ms;
    }
    const int64_t wait_ms = next_ms - now_ms();
    (void)poll(polls, (nfds_t)count + 1, count == 0 ? -1 : wait_ms > 0 ? (int)wait_ms : 0);
    (void)!read(linger->wake, &woken, sizeof woken);
    for (int i = 0; i < count; i++) {
        struct lingering *one = &linger->list[i];
        const bool goes_on = !polls[i + 1].revents || throw_away(linger, one);
        if (goes_on && now_ms() < one->end_ms && now_ms() < one->nap_end_ms) continue;
        (void)close(one->socket);
        one->socket = -1;
    }
}

static void *linger_loop(void *argument)
{
    struct adv_linger *linger = argument;
    (void)pthread_mutex_lock(&linger->lock);
    while (!linger->stopping) {
        const int count = linger->count;
        (void)pthread_mutex_unlock(&linger->lock);
        serve(linger, count);
        (void)pthread_mutex_lock(&linger->lock);
        for (int i = linger->count - 1; i >= 0; i--)
            if (linger->list[i].socket < 0) linger->list[i] = linger->list[--linger->count];
    }
    (void)pthread_mutex_unlock(&linger->lock);
    return NULL;
}

struct adv_linger *adv_linger_start(void)
{
    struct adv_linger *linger = calloc(1, sizeof *linger);
    if (!linger) return NULL;
    (void)pthread_mutex_init(&linger->lock, NULL);
    linger->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (linger->wake >= 0 && pthread_create(&linger->thread, NULL, linger_loop, linger) == 0) return linger;
    if (linger->wake >= 0) (void)close(linger->wake);
    (void)pthread_mutex_destroy(&linger->lock);
    free(linger);
    return NULL;
}

void adv_linger_take(struct adv_linger *linger, int socket)
{
    (void)pthread_mutex_lock(&linger->lock);
    const bool has_room = linger->count < ADV_LIMIT_LINGERING && !linger->stopping;
    const int own = has_room ? fcntl(socket, F_DUPFD_CLOEXEC, 0) : -1;
    if (own >= 0) {
        const int64_t now = now_ms();
        (void)shutdown(own, SHUT_WR);
        linger->list[linger->count++] = (struct lingering){.socket = own,
                                                           .end_ms = now + ADV_LIMIT_LINGER_MS,
                                                           .nap_end_ms = now + ADV_LIMIT_LINGER_NAP_MS,
                                                           .left_bytes = ADV_LIMIT_LINGER_BYTES};
        wake(linger);
    }
    (void)pthread_mutex_unlock(&linger->lock);
}

void adv_linger_stop(struct adv_linger *linger)
{
    if (!linger) return;
    (void)pthread_mutex_lock(&linger->lock);
    linger->stopping = true;
    (void)pthread_mutex_unlock(&linger->lock);
    wake(linger);
    (void)pthread_join(linger->thread, NULL);
    for (int i = 0; i < linger->count; i++) (void)close(linger->list[i].socket);
    (void)close(linger->wake);
    (void)pthread_mutex_destroy(&linger->lock);
    free(linger);
}
