/* raw_recv.c: the program's recv(), which shows what the HTTP library reads to the raw guards first.
 *
 * Why this is sound, and where it ends:
 * - A program's own definition of recv comes before that of the C library (ELF symbol order), also for calls
 * from shared libraries. libpq's calls come here too and pass: their sockets have no guard.
 * - A library built otherwise (linked symbolically, or reading with read or recvmsg) would pass by. Then the
 * guard has seen nothing when the head arrives, and the request is refused (adv_raw_guard_has_seen): an
 * update of the library can stop the service, never open it. tests/api/smuggling.test.mjs would tell.
 * - Threads: the library reads, notifies and closes a connection on one thread; a guard belongs to a socket
 * from before the first read until before its close, so a number used again never meets an old guard.
 * - epoll: a refused connection looks closed; what is buffered is never handed on.
 * - TLS inside the library would show ciphertext here, and every request would be refused: TLS is a proxy's.
 * The other ways were a parser of our own before a pair of sockets (a copy of every byte, two more
 * descriptors per connection) and a patched library (nobody's security updates). */
/* The C library's header would bring an inline recv of its own. */
#undef _FORTIFY_SOURCE

#include "server/raw_guard.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SOCKETS_MAX 131072 /* twice the most connections; a socket beyond it is not served */

/* By socket. A connection is opened, read and closed by one thread of the library; the pointers are atomic
 * because a number goes from one thread to another when it is used again. */
static _Atomic(struct adv_raw_guard *) guards[SOCKETS_MAX];
static atomic_long refused_count;

static struct adv_raw_guard *guard_of(int socket)
{
    return socket >= 0 && socket < SOCKETS_MAX ? atomic_load(&guards[socket]) : NULL;
}

bool adv_raw_guard_open(int socket)
{
    struct adv_raw_guard *guard = socket >= 0 && socket < SOCKETS_MAX ? calloc(1, sizeof *guard) : NULL;
    if (guard) free(atomic_exchange(&guards[socket], guard));
    return guard != NULL;
}

void adv_raw_guard_close(int socket)
{
    if (guard_of(socket)) free(atomic_exchange(&guards[socket], NULL));
}

bool adv_raw_guard_has_seen(int socket)
{
    const struct adv_raw_guard *guard = guard_of(socket);
    return guard && guard->has_seen;
}

bool adv_raw_guard_is_within(int socket)
{
    const struct adv_raw_guard *guard = guard_of(socket);
    int unread_bytes = 0;
    if (!guard) return false;
    return guard->reason || guard->state != ADV_RAW_BEFORE || guard->after_cr ||
           (ioctl(socket, FIONREAD, &unread_bytes) == 0 && unread_bytes > 0);
}

long adv_raw_guard_refused(void)
{
    return atomic_load(&refused_count);
}

/* Nothing else is being written: the library reads only between answers. */
static void answer(int socket, const char *reason)
{
    char body[256], head[512];
    const int body_bytes =
        snprintf(body, sizeof body,
                 "{\"type\":\"https://tpu-advisor.dev/problems/bad-request\",\"title\":\"The request "
                 "is not valid HTTP for this resource\",\"status\":400,\"detail\":\"%s\",\"errors\":[]}",
                 reason);
    const int head_bytes = snprintf(head, sizeof head,
                                    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\n"
                                    "Content-Length: %d\r\nConnection: close\r\n\r\n%s",
                                    body_bytes, body);
    (void)send(socket, head, (size_t)head_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)shutdown(socket, SHUT_WR); /* what the client still sends is read and thrown away: see linger.h */
}

ssize_t recv(int socket, void *buffer, size_t size, int flags)
{
    const ssize_t got = (ssize_t)syscall(SYS_recvfrom, socket, buffer, size, flags, NULL, NULL);
    struct adv_raw_guard *guard = guard_of(socket);
    if (got <= 0 || !guard || (flags & MSG_PEEK)) return got;
    if (guard->reason) return 0;
    guard->has_seen = true;
    if (adv_raw_guard_feed(guard, buffer, (size_t)got)) return got;
    (void)atomic_fetch_add(&refused_count, 1);
    answer(socket, guard->reason);
    return 0;
}
