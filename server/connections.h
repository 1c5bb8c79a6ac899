/* connections.h: who is connected and what they are doing, so that slow clients can be closed.
 *
 * The HTTP library's timeout counts inactivity: a byte every two seconds holds a connection for ever. Here a
 * client has a time to send a whole request and a time to take the answer. A slot is taken when a connection
 * opens and given back before its socket is closed, under one lock, so a socket number is never one of
 * another connection. Thread safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct adv_connections;
struct adv_connection_slot;

enum adv_connection_phase {
    ADV_CONNECTION_READING, /* between requests or within one */
    ADV_CONNECTION_WORKING, /* the request is complete and being answered; its own deadline applies */
    ADV_CONNECTION_WRITING  /* the answer is going out */
};

struct adv_connections *adv_connections_new(int capacity_count); /* NULL when memory is exhausted */
void adv_connections_free(struct adv_connections *connections);

/* NULL when all slots are taken (never, when the capacity is the library's connection limit). */
struct adv_connection_slot *adv_connections_open(struct adv_connections *connections, int socket);
void adv_connections_close(struct adv_connections *connections, struct adv_connection_slot *slot);

/* Enters a phase; the time of the phase starts anew, and that to take an answer grows with its length. NULL
 * slot is fine. */
void adv_connections_enter(struct adv_connections *connections, struct adv_connection_slot *slot,
                           enum adv_connection_phase phase, size_t answer_bytes);

int adv_connections_count(struct adv_connections *connections);

/* Shuts down the sockets of clients that send a request for longer than this, or take too long to take an
 * answer; returns how many. */
int adv_connections_sweep(struct adv_connections *connections, long reading_limit_ms);
