#include "server/limits.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "engine/base/hash.h"

#define ROWS_COUNT 16384 /* a power of two; 16 bytes each */
#define PROBES     8

struct adv_limits {
    pthread_mutex_t lock;
    uint64_t seed;
    struct {
        uint64_t who;
        int64_t due_us; /* theoretical arrival time; in the past = a free row */
    } rows[ROWS_COUNT];
};

struct adv_limits *adv_limits_new(void)
{
    struct adv_limits *limits = calloc(1, sizeof *limits);
    if (!limits) return NULL;
    if (getrandom(&limits->seed, sizeof limits->seed, 0) != (ssize_t)sizeof limits->seed) limits->seed = 1;
    (void)pthread_mutex_init(&limits->lock, NULL);
    return limits;
}

void adv_limits_free(struct adv_limits *limits)
{
    if (!limits) return;
    (void)pthread_mutex_destroy(&limits->lock);
    free(limits);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    hash = adv_hash_bytes(hash, bytes, count);
    return hash ^ (hash >> 31);
}

uint64_t adv_limits_of_address(const struct adv_limits *limits, const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address && address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return hash_bytes(limits->seed, &v4.sin_addr, sizeof v4.sin_addr);
    }
    if (address && address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof v6);
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr))
            return hash_bytes(limits->seed, &v6.sin6_addr.s6_addr[12], 4);
        return hash_bytes(limits->seed, &v6.sin6_addr, 8);
    }
    return limits->seed;
}

uint64_t adv_limits_of_name(const struct adv_limits *limits, const char *name)
{
    return hash_bytes(~limits->seed, name, strlen(name));
}

int64_t adv_limits_take(struct adv_limits *limits, enum adv_limit_kind kind, uint64_t who,
                        const struct adv_rate *rate, int64_t now_us)
{
    if (!(rate->per_s > 0.0)) return 0;
    const int64_t step_us = (int64_t)(1e6 / rate->per_s), ahead_us = step_us * (rate->burst - 1);
    who = hash_bytes(who, &kind, sizeof kind);
    (void)pthread_mutex_lock(&limits->lock);
    size_t row = who % ROWS_COUNT;
    for (size_t i = 0; i < PROBES; i++) {
        const size_t other = (who + i) % ROWS_COUNT;
        if (limits->rows[other].who == who) {
            row = other;
            break;
        }
        if (limits->rows[other].due_us < limits->rows[row].due_us) row = other;
    }
    int64_t due_us = limits->rows[row].who == who ? limits->rows[row].due_us : now_us;
    if (due_us < now_us) due_us = now_us;
    const int64_t wait_us = due_us - now_us - ahead_us;
    if (wait_us <= 0) {
        limits->rows[row].who = who;
        limits->rows[row].due_us = due_us + step_us;
    }
    (void)pthread_mutex_unlock(&limits->lock);
    return wait_us > 0 ? wait_us : 0;
}
