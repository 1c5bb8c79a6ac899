/* http_work.c: requests with the workers: handed over, run, given up. */
#include "server/http_internal.h"

#include <poll.h>
#include <string.h>

#include "server/monotonic.h"
#include "server/routes.h"

#define LOOK_EVERY_US 10000 /* at the socket: a system call; the clock is read without one */

static bool client_is_gone(int socket)
{
    struct pollfd waiting = {.fd = socket, .events = POLLRDHUP};
    return poll(&waiting, 1, 0) > 0 && (waiting.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

/* Of a request's budget: the engine asks, and gives up when nobody waits; once true, it stays true. */
static bool is_over(void *closure)
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

static void unlink_submitted(struct adv_http *http, struct request *request)
{
    if (request->previous)
        request->previous->next = request->next;
    else
        http->submitted = request->next;
    if (request->next) request->next->previous = request->previous;
    request->next = request->previous = NULL;
}

static void count_abandoned(struct request *request)
{
    static const enum adv_counter counters[] = {
        [ADV_PATIENCE_CLIENT_GONE] = ADV_COUNTER_ABANDONED_CLIENT,
        [ADV_PATIENCE_DEADLINE] = ADV_COUNTER_ABANDONED_DEADLINE,
        [ADV_PATIENCE_GIVEN_UP] = ADV_COUNTER_ABANDONED_DAEMON,
    };
    const int end = atomic_load(&request->patience.end);
    if (end != ADV_PATIENCE_LASTS) adv_metrics_add(&request->http->app->metrics, counters[end], 1);
}

struct adv_pool *adv_http_pool(const struct adv_app *app, int place)
{
    struct adv_pool *const pools[] = {[ADV_ROUTE_SEARCH] = app->engine_pool,
                                      [ADV_ROUTE_QUICK] = app->quick_pool,
                                      [ADV_ROUTE_STORE] = app->store_pool};
    return pools[place];
}

static int64_t wait_max_us(const struct adv_app *app)
{
    return (int64_t)adv_app_live(app)->queue_wait_s * 1000000;
}

static void set_queued(struct request *request, int64_t queued_us)
{
    (void)pthread_mutex_lock(&request->http->lock);
    request->queued_us = queued_us;
    (void)pthread_mutex_unlock(&request->http->lock);
}

/* The handler, or what it left to be done. false: another pool has the request now. */
static bool run_step(struct request *request, struct adv_db *db)
{
    struct adv_exchange *exchange = &request->exchange;
    exchange->db = db;
    adv_db_act_for(db, exchange->principal, exchange->project,
                   strcmp(exchange->method, "GET") != 0 && strcmp(exchange->method, "HEAD") != 0);
    for (;;) {
        exchange->next_wait_ms = 0;
        adv_routes_run(exchange);
        if (!exchange->next) return true;
        const int64_t wait_us =
            exchange->next_wait_ms ? exchange->next_wait_ms * INT64_C(1000) : wait_max_us(exchange->app);
        set_queued(request, adv_monotonic_us());
        if (adv_pool_try_add(adv_http_pool(exchange->app, exchange->next_place), request, wait_us))
            return false;
        set_queued(request, 0);
        adv_metrics_add(&exchange->app->metrics, ADV_COUNTER_REJECTED_QUEUE, 1);
        exchange->db = NULL;
        exchange->refused = true;
    }
}

void adv_http_run_job(void *job, void *context)
{
    struct request *request = job;
    struct adv_http *http = request->http;
    (void)pthread_mutex_lock(&http->lock);
    bool wanted = request->stage == ADV_STAGE_SUBMITTED;
    request->queued_us = 0;
    (void)pthread_mutex_unlock(&http->lock);
    if (wanted && is_over(&request->patience)) { /* who has gone while waiting costs nothing */
        adv_reply_error(&request->exchange, ADV_E_TIMEOUT, "", NULL, "nobody waits for the answer");
    } else if (wanted && !run_step(request, context)) {
        return; /* it goes on elsewhere */
    }
    adv_reply_encode(&request->exchange);
    count_abandoned(request);
    (void)pthread_mutex_lock(&http->lock);
    if (request->stage == ADV_STAGE_SUBMITTED) {
        request->stage = ADV_STAGE_ANSWERED;
        unlink_submitted(http, request);
        MHD_resume_connection(request->connection);
    }
    bool last = --request->owners == 0;
    (void)pthread_mutex_unlock(&http->lock);
    if (last) adv_http_request_free(request);
}

/* The lock keeps a fast worker from resuming first. */
bool adv_http_submit(struct request *request, struct adv_pool *pool)
{
    struct adv_http *http = request->http;
    (void)pthread_mutex_lock(&http->lock);
    request->stage = ADV_STAGE_SUBMITTED;
    request->patience.deadline_us = request->deadline_us;
    request->exchange.budget = (struct adv_budget){.over = is_over,
                                                   .closure = &request->patience,
                                                   .plans_max = (int)adv_app_live(http->app)->plans_count,
                                                   .crew = http->app->crew};
    request->owners++;
    request->queued_us = adv_monotonic_us();
    bool added = !http->quiesced && adv_pool_try_add(pool, request, wait_max_us(http->app));
    if (added) {
        MHD_suspend_connection(request->connection);
        request->next = http->submitted;
        if (http->submitted) http->submitted->previous = request;
        http->submitted = request;
    } else {
        request->owners--;
        request->stage = ADV_STAGE_BODY;
    }
    (void)pthread_mutex_unlock(&http->lock);
    return added;
}

/* A request that can go on without the database, and has waited long enough for a worker that has it, does so
 * on another. The lock is held. */
static bool goes_without(struct request *request, int64_t at_us)
{
    struct adv_exchange *exchange = &request->exchange;
    const struct adv_app *app = request->http->app;
    if (!request->queued_us || !exchange->next_wait_ms ||
        request->queued_us + exchange->next_wait_ms * INT64_C(1000) > at_us ||
        !adv_pool_take_back(adv_http_pool(app, exchange->next_place), request))
        return false;
    exchange->next_wait_ms = 0;
    exchange->refused = true;
    request->queued_us = at_us;
    if (adv_pool_try_add(app->quick_pool, request, INT64_MAX)) return true;
    request->owners--; /* no worker has it */
    request->queued_us = 1;
    return false;
}

int adv_http_abandon(struct adv_http *http, int64_t at_us, bool all)
{
    int count = 0;
    const int64_t wait_us = wait_max_us(http->app);
    (void)pthread_mutex_lock(&http->lock);
    for (struct request *request = http->submitted; request;) {
        struct request *next = request->next;
        if (!all && goes_without(request, at_us)) {
            request = next;
            continue;
        }
        const bool overdue = request->queued_us && request->queued_us + wait_us <= at_us;
        if (all || overdue || request->deadline_us <= at_us) {
            request->overdue = overdue;
            int lasts = ADV_PATIENCE_LASTS;
            (void)atomic_compare_exchange_strong(&request->patience.end, &lasts, ADV_PATIENCE_GIVEN_UP);
            request->stage = ADV_STAGE_ABANDONED;
            unlink_submitted(http, request);
            MHD_resume_connection(request->connection);
            count++;
        }
        request = next;
    }
    (void)pthread_mutex_unlock(&http->lock);
    return count;
}
