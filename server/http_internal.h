/* http_internal.h: what http.c (requests) and http_daemon.c (threads and sockets) share. Nobody else includes
 * it. */
#ifndef ADV_SERVER_HTTP_INTERNAL_H
#define ADV_SERVER_HTTP_INTERNAL_H

#include <microhttpd.h>
#include <pthread.h>

#include "server/connections.h"
#include "server/http.h"

struct request; /* http.c */

struct adv_http {
    struct adv_app *app;
    struct MHD_Daemon *daemon;
    struct adv_connections *connections;
    char address[80];
    pthread_mutex_t lock;
    struct request *submitted;
    pthread_t janitor;
    pthread_cond_t janitor_wake;
    int quiet_fd; /* the listening socket once no more is accepted, -1 before */
    bool has_janitor, stopping, quiesced;
};

/* Answers requests that wait for a worker and whose deadline is at or before `at_us` (or all of them) with
 * 503; how many. */
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

#endif
