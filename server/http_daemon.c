#include "server/http_internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/guard.h"
#include "server/monotonic.h"

/* Request line and headers of a connection: twice what the guard takes, so that it is the guard who refuses.
 * Beyond it the library answers 431 or 414 by itself, as HTML. */
#define CONNECTION_MEMORY_BYTES (2u * ADV_LIMIT_HEAD_BYTES)
_Static_assert(CONNECTION_MEMORY_BYTES <= 16384,
               "10,000 idle connections in 200 MiB: the library zeroes all of it");
#define JANITOR_PERIOD_US 100000
#define DRAIN_IDLE_MS     250 /* while draining, a connection without a request is closed after this */

static void *janitor_loop(void *argument)
{
    struct adv_http *http = argument;
    struct adv_app *app = http->app;
    (void)pthread_mutex_lock(&http->lock);
    while (!http->stopping) {
        bool quiesced = http->quiesced;
        (void)pthread_mutex_unlock(&http->lock);
        long reading_ms = adv_app_live(app)->request_timeout_s * 1000;
        int swept = adv_connections_sweep(http->connections, quiesced ? DRAIN_IDLE_MS : reading_ms);
        adv_metrics_add(&app->metrics, ADV_COUNTER_SWEPT, (uint64_t)swept);
        (void)adv_http_abandon(http, adv_monotonic_us(), false);
        (void)pthread_mutex_lock(&http->lock);
        const int64_t until_us = adv_monotonic_us() + JANITOR_PERIOD_US;
        if (!http->stopping) (void)adv_monotonic_wait(&http->janitor_wake, &http->lock, until_us);
    }
    (void)pthread_mutex_unlock(&http->lock);
    return NULL;
}

static void on_library_log(void *closure, const char *format, va_list args)
{
    const struct adv_http *http = closure;
    char message[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)vsnprintf(message, sizeof message, format, args);
#pragma GCC diagnostic pop
    message[strcspn(message, "\n")] = '\0';
    adv_log_message(&http->app->log, ADV_LOG_DEBUG, "http: %s", message);
}

static int listen_on(struct adv_http *http, const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int failure = getaddrinfo(host, port, &hints, &found);
    if (failure) {
        adv_log_message(&http->app->log, ADV_LOG_ERROR, "cannot listen on %s: %s", host,
                        gai_strerror(failure));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int yes = 1;
    struct sockaddr_storage own;
    socklen_t own_bytes = sizeof own;
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) == 0 &&
                bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, 1024) == 0 &&
                getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0;
    char own_host[64];
    char own_port[8];
    good = good && getnameinfo((struct sockaddr *)&own, own_bytes, own_host, sizeof own_host, own_port,
                               sizeof own_port, NI_NUMERICHOST | NI_NUMERICSERV) == 0;
    if (good) {
        bool v6 = found->ai_family == AF_INET6;
        (void)snprintf(http->address, sizeof http->address, "%s%s%s:%s", v6 ? "[" : "", own_host,
                       v6 ? "]" : "", own_port);
    } else {
        adv_log_message(&http->app->log, ADV_LOG_ERROR, "cannot listen on %s port %s: %s", host, port,
                        strerror(errno));
        if (fd >= 0) (void)close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    return fd;
}

/* One address leaves a quarter of the connections to others, unless all come from this machine. 0: no limit.
 */
static unsigned connections_per_ip(const struct adv_daemon_config *config)
{
    char host[ADV_LIMIT_SETTING];
    char port[6];
    if (config->connections_per_ip_count >= 0) return (unsigned)config->connections_per_ip_count;
    if (adv_config_address(config->listen, host, port) && adv_config_is_loopback(host)) return 0;
    return (unsigned)(config->connections_count * 3 / 4);
}

static struct MHD_Daemon *start_library(struct adv_http *http, int fd)
{
    const struct adv_daemon_config *config = &http->app->config;
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, adv_http_on_access, http, MHD_OPTION_EXTERNAL_LOGGER, on_library_log, http,
        MHD_OPTION_LISTEN_SOCKET, (MHD_socket)fd, MHD_OPTION_THREAD_POOL_SIZE,
        (unsigned)config->http_threads_count, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)config->connections_count, MHD_OPTION_PER_IP_CONNECTION_LIMIT, connections_per_ip(config),
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)config->idle_timeout_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_MEMORY_BYTES, MHD_OPTION_STRICT_FOR_CLIENT,
        0 /* the guard is stricter, and says why */, MHD_OPTION_NOTIFY_COMPLETED, adv_http_on_completed, NULL,
        MHD_OPTION_NOTIFY_CONNECTION, adv_http_on_connection, http, MHD_OPTION_URI_LOG_CALLBACK,
        adv_http_on_request_line, http, MHD_OPTION_END);
}

bool adv_http_start(struct adv_app *app)
{
    char host[ADV_LIMIT_SETTING];
    char port[6];
    struct adv_http *http = calloc(1, sizeof *http);
    if (!http || !adv_config_address(app->config.listen, host, port)) {
        free(http);
        return false;
    }
    http->app = app;
    http->quiet_fd = -1;
    app->http = http; /* before any thread that may look for it */
    (void)pthread_mutex_init(&http->lock, NULL);
    adv_monotonic_init(&http->janitor_wake);
    http->connections = adv_connections_new((int)app->config.connections_count);
    http->linger = adv_linger_start();
    int fd = http->connections && http->linger ? listen_on(http, host, port) : -1;
    http->has_janitor = fd >= 0 && pthread_create(&http->janitor, NULL, janitor_loop, http) == 0;
    if (http->has_janitor) http->daemon = start_library(http, fd);
    if (http->daemon) return true;
    if (fd >= 0) {
        adv_log_message(&app->log, ADV_LOG_ERROR, "the HTTP server cannot be started: %s", strerror(errno));
        (void)close(fd);
    }
    app->http = NULL;
    adv_http_stop(http);
    adv_http_free(http);
    return false;
}

const char *adv_http_address(const struct adv_http *http)
{
    return http->address;
}

int adv_http_connections(struct adv_http *http)
{
    return adv_connections_count(http->connections);
}

static bool has_submitted(struct adv_http *http)
{
    (void)pthread_mutex_lock(&http->lock);
    bool some = http->submitted != NULL;
    (void)pthread_mutex_unlock(&http->lock);
    return some;
}

int adv_http_drain(struct adv_http *http, long deadline_s)
{
    int64_t until_us = adv_monotonic_us() + deadline_s * 1000000;
    /* Shut, so that connecting is refused at once; closed only when no thread can be about to accept on it.
     */
    http->quiet_fd = MHD_quiesce_daemon(http->daemon);
    if (http->quiet_fd >= 0) (void)shutdown(http->quiet_fd, SHUT_RDWR);
    while (has_submitted(http) && adv_monotonic_us() < until_us) adv_monotonic_sleep(10);
    /* From here on nothing is submitted and idle connections are closed: a suspended connection would abort
     * the library's stop. */
    (void)pthread_mutex_lock(&http->lock);
    http->quiesced = true;
    (void)pthread_mutex_unlock(&http->lock);
    int cut_off = adv_http_abandon(http, 0, true);
    int64_t close_until_us = adv_monotonic_us() + 2000000;
    while (adv_http_connections(http) > 0 && adv_monotonic_us() < close_until_us) adv_monotonic_sleep(10);
    return cut_off;
}

void adv_http_stop(struct adv_http *http)
{
    if (http->daemon) MHD_stop_daemon(http->daemon);
    adv_linger_stop(http->linger);
    if (http->quiet_fd >= 0) (void)close(http->quiet_fd);
    (void)pthread_mutex_lock(&http->lock);
    http->stopping = true;
    (void)pthread_cond_signal(&http->janitor_wake);
    (void)pthread_mutex_unlock(&http->lock);
    if (http->has_janitor) (void)pthread_join(http->janitor, NULL);
}

void adv_http_free(struct adv_http *http)
{
    if (!http) return;
    adv_connections_free(http->connections);
    (void)pthread_cond_destroy(&http->janitor_wake);
    (void)pthread_mutex_destroy(&http->lock);
    free(http);
}
