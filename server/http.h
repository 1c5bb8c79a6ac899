/* http.h: the HTTP server: the only part that knows the HTTP library.
 *
 * A request goes: guard, route, token, size and media type, body, then its handler, inline or on a worker
 * while the connection is suspended. A request that is not answered by its deadline gets 503; its worker's
 * late result is dropped. Clients that are slow to send or to take are closed.
 */
#pragma once

#include "server/app.h"

/* Sets app->http, listens and serves. On failure the reason is logged and false returned. */
ADV_MUST_CHECK bool adv_http_start(struct adv_app *app);

/* The address in use, "127.0.0.1:8080"; the port is the real one when 0 was asked. */
const char *adv_http_address(const struct adv_http *http);

/* A worker's job: adv_pool_work.run. `context` is the worker's struct adv_db. */
void adv_http_run_job(void *job, void *context);

/* Closes the listening socket, lets requests under way finish until the deadline, answers the rest with 503,
 * closes the connections. Returns how many requests were cut off; their workers may still run, then the pools
 * must not be joined. */
int adv_http_drain(struct adv_http *http, long deadline_s);

/* After adv_http_drain: stops the threads. */
void adv_http_stop(struct adv_http *http);
/* After the pools have ended: a worker lets go of its request after the answer is on its way. NULL is fine.
 */
void adv_http_free(struct adv_http *http);

int adv_http_connections(struct adv_http *http);
