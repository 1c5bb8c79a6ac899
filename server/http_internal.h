/* http_internal.h: what the files of the HTTP server share: http_daemon.c (threads and sockets),
 * http_request.c (a request's life, its reply), http_read.c (its arrival), http_work.c (workers). Nobody else
 * includes it. */
#pragma once

#include <microhttpd.h>
#include <pthread.h>

#include "server/connections.h"
#include "server/exchange.h"
#include "server/http.h"
#include "server/linger.h"

enum adv_http_stage {
    ADV_STAGE_HEADERS,   /* not seen by the application yet */
    ADV_STAGE_BODY,      /* reading the body */
    ADV_STAGE_SUBMITTED, /* suspended, with a worker */
    ADV_STAGE_ANSWERED,  /* the reply is filled */
    ADV_STAGE_ABANDONED, /* the deadline passed; the worker still owns the reply */
    ADV_STAGE_QUEUED     /* the answer is with the library */
};

/* Whether somebody still waits for the answer. Nobody does once the client has closed its connection (or its
 * sending half: the two look the same), the deadline has passed, or the daemon has given the request up.
 * Asked by one thread, the worker; given up by any. */
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

struct request {
    struct adv_exchange exchange;
    struct adv_http *http;
    struct MHD_Connection *connection;
    struct adv_connection_slot *slot;
    const char *target;                     /* as sent */
    enum adv_http_stage stage;              /* from ADV_STAGE_SUBMITTED on guarded by http->lock */
    bool close_after, body_over, body_lost; /* lost: there was no memory for it */
    int64_t content_length_bytes;
    size_t body_capacity;
    int64_t start_us, deadline_us;
    int64_t queued_us; /* since when it waits for a worker; 0 = one has it. Guarded by http->lock */
    bool overdue;      /* abandoned while it waited */
    struct adv_patience patience;
    int status;
    size_t sent_bytes;
    int owners; /* the connection and, once submitted, the worker; guarded by http->lock */
    struct request *next, *previous; /* list of submitted requests */
};

struct adv_http {
    struct adv_app *app;
    struct MHD_Daemon *daemon;
    struct adv_connections *connections;
    struct adv_linger *linger;
    char address[80];
    pthread_mutex_t lock;
    struct request *submitted;
    pthread_t janitor;
    pthread_cond_t janitor_wake;
    int quiet_fd; /* the listening socket once no more is accepted, -1 before */
    bool has_janitor, stopping, quiesced;
};

void adv_http_request_free(struct request *request);

/* Gives the reply to the library, which frees an owned body. */
enum MHD_Result adv_http_send(struct request *request, struct adv_reply *reply);

/* 503 for a request whose reply a worker still writes to. */
enum MHD_Result adv_http_send_abandoned(struct request *request);

/* The pool of an enum adv_route_place other than ADV_ROUTE_INLINE. */
struct adv_pool *adv_http_pool(const struct adv_app *app, int place);

/* Suspends the connection and hands the request to a pool; false: there is no room. */
bool adv_http_submit(struct request *request, struct adv_pool *pool);

/* Answers requests with 503 that are with the workers and whose deadline is at or before `at_us`, or who wait
 * longer than they should for a worker (or all of them); how many. */
int adv_http_abandon(struct adv_http *http, int64_t at_us, bool all);

/* The library's callbacks; their closure is the struct adv_http. */
void *adv_http_on_request_line(void *closure, const char *target, struct MHD_Connection *connection);
void adv_http_on_completed(void *closure, struct MHD_Connection *connection, void **request_closure,
                           enum MHD_RequestTerminationCode why);
void adv_http_on_connection(void *closure, struct MHD_Connection *connection, void **socket_context,
                            enum MHD_ConnectionNotificationCode what);
enum MHD_Result adv_http_on_access(void *closure, struct MHD_Connection *connection, const char *url,
                                   const char *method, const char *version, const char *upload,
                                   size_t *upload_bytes, void **request_closure);
