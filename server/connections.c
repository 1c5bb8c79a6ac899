#include "server/connections.h"
#include "server/monotonic.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#define WRITING_LEAST_MS           10000 /* to take an answer of a few kB */
#define WRITING_LEAST_BYTES_PER_MS 100   /* and so much more of a long one: 100 kB/s */

struct adv_connection_slot {
    int socket; /* -1 = free */
    bool swept; /* shut down once; the library closes it */
    enum adv_connection_phase phase;
    int64_t since_ms;
    int64_t writing_ms; /* that the answer may take */
    struct adv_connection_slot *next_free;
};

struct adv_connections {
    pthread_mutex_t lock;
    struct adv_connection_slot *slots, *first_free;
    int capacity_count, open_count;
};

struct adv_connections *adv_connections_new(int capacity_count)
{
    struct adv_connections *connections = calloc(1, sizeof *connections);
    if (!connections) return NULL;
    connections->slots = calloc((size_t)capacity_count, sizeof *connections->slots);
    if (!connections->slots) {
        free(connections);
        return NULL;
    }
    (void)pthread_mutex_init(&connections->lock, NULL);
    connections->capacity_count = capacity_count;
    for (int i = capacity_count - 1; i >= 0; i--) {
        connections->slots[i].socket = -1;
        connections->slots[i].next_free = connections->first_free;
        connections->first_free = &connections->slots[i];
    }
    return connections;
}

void adv_connections_free(struct adv_connections *connections)
{
    if (!connections) return;
    (void)pthread_mutex_destroy(&connections->lock);
    free(connections->slots);
    free(connections);
}

struct adv_connection_slot *adv_connections_open(struct adv_connections *connections, int socket)
{
    (void)pthread_mutex_lock(&connections->lock);
    struct adv_connection_slot *slot = connections->first_free;
    if (slot) {
        connections->first_free = slot->next_free;
        connections->open_count++;
        slot->socket = socket;
        slot->swept = false;
        slot->phase = ADV_CONNECTION_READING;
        slot->since_ms = adv_monotonic_us() / 1000;
    }
    (void)pthread_mutex_unlock(&connections->lock);
    return slot;
}

void adv_connections_close(struct adv_connections *connections, struct adv_connection_slot *slot)
{
    if (!slot) return;
    (void)pthread_mutex_lock(&connections->lock);
    slot->socket = -1;
    slot->next_free = connections->first_free;
    connections->first_free = slot;
    connections->open_count--;
    (void)pthread_mutex_unlock(&connections->lock);
}

void adv_connections_enter(struct adv_connections *connections, struct adv_connection_slot *slot,
                           enum adv_connection_phase phase, size_t answer_bytes)
{
    if (!slot) return;
    (void)pthread_mutex_lock(&connections->lock);
    slot->phase = phase;
    slot->since_ms = adv_monotonic_us() / 1000;
    slot->writing_ms = WRITING_LEAST_MS + (int64_t)(answer_bytes / WRITING_LEAST_BYTES_PER_MS);
    (void)pthread_mutex_unlock(&connections->lock);
}

int adv_connections_count(struct adv_connections *connections)
{
    (void)pthread_mutex_lock(&connections->lock);
    int count = connections->open_count;
    (void)pthread_mutex_unlock(&connections->lock);
    return count;
}

int adv_connections_sweep(struct adv_connections *connections, long reading_limit_ms)
{
    int swept = 0;
    (void)pthread_mutex_lock(&connections->lock);
    int64_t now = adv_monotonic_us() / 1000;
    for (int i = 0; i < connections->capacity_count; i++) {
        struct adv_connection_slot *slot = &connections->slots[i];
        if (slot->socket < 0 || slot->swept || slot->phase == ADV_CONNECTION_WORKING) continue;
        int64_t limit_ms = slot->phase == ADV_CONNECTION_READING ? reading_limit_ms : slot->writing_ms;
        if (now - slot->since_ms < limit_ms) continue;
        (void)shutdown(slot->socket, SHUT_RDWR);
        slot->swept = true;
        swept++;
    }
    (void)pthread_mutex_unlock(&connections->lock);
    return swept;
}
