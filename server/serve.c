/* serve.c: the daemon's start, life and orderly end, and two commands beside it: migrate and healthcheck. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "engine/advise.h"
#include "server/app.h"
#include "server/calibrations.h"
#include "server/cli.h"
#include "server/cli_io.h"
#include "server/http.h"
#include "server/http_client.h"
#include "server/sweeper.h"

#define HEALTH_PATIENCE_S 3 /* of healthcheck */
#define SEARCHER_NICENESS 5 /* a third of the share of a thread that is not nice */

/* Tells a service manager about our state (sd_notify's protocol: one datagram). Without one this does
 * nothing. */
static void notify(const char *state)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (!path || !*path || strlen(path) >= sizeof address.sun_path) return;
    memcpy(address.sun_path, path, strlen(path));
    if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&address, length);
    (void)close(fd);
}

/* Settings that were in force once are kept: a request may still read them. */
struct adv_settings {
    struct adv_daemon_config config;
    struct adv_settings *before;
};

/* The tokens of the file, read anew. false: there are mistakes, printed to `errors`; those in force stay. */
static bool read_tokens(struct adv_app *app, FILE *errors)
{
    struct adv_tokens *tokens = NULL;
    if (!app->config.tokens_file[0]) return true;
    if (adv_tokens_load(app->config.tokens_file, &tokens, errors)) return false;
    adv_keyring_set(app->keyring, ADV_KEYRING_FILE, tokens);
    return true;
}

static void log_lines(const struct adv_log *log, char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        adv_log_message(log, ADV_LOG_ERROR, "reload: %s", line);
}

static void take_over(struct adv_app *app, const struct adv_daemon_config *config)
{
    char changed[ADV_LIMIT_SETTING], waiting[ADV_LIMIT_SETTING];
    struct adv_settings *settings = malloc(sizeof *settings);
    if (!settings) return;
    settings->config = *config;
    settings->before = app->reloaded;
    app->reloaded = settings;
    adv_config_differences(adv_app_live(app), config, true, changed);
    adv_config_differences(&app->asked, config, false, waiting);
    (void)adv_log_level_parse(config->log_level, &app->log.level); /* it is one: the settings were checked */
    atomic_store(&app->live, &settings->config);
    struct adv_log_line line;
    adv_log_begin(&app->log, &line, waiting[0] ? ADV_LOG_WARNING : ADV_LOG_INFO, "reloaded");
    adv_log_string(&line, "changed", changed);
    if (waiting[0]) adv_log_string(&line, "need_a_new_start", waiting);
    adv_log_end(&line);
}

/* SIGHUP: settings, tokens and the log's file are read again, from argv as at the start. What a running
 * daemon can is taken over; what needs a new start, and mistakes, are logged and change nothing. */
static void reload(struct adv_app *app, int argc, char **argv)
{
    char *mistakes = NULL;
    size_t mistakes_bytes = 0;
    enum adv_config_action action = ADV_CONFIG_RUN;
    struct adv_daemon_config config;
    FILE *errors = open_memstream(&mistakes, &mistakes_bytes);
    if (!errors) return;
    if (!adv_log_open(&app->log, app->config.log_file))
        (void)fprintf(errors, "cannot open %s: %s\n", app->config.log_file, strerror(errno));
    const bool good = adv_config_load(&config, argc, argv, environ, &action, errors) == ADV_OK;
    const bool has_tokens = read_tokens(app, errors);
    (void)fclose(errors);
    if (good) take_over(app, &config);
    if (!has_tokens) adv_log_message(&app->log, ADV_LOG_ERROR, "reload: the tokens stay as they were");
    if (mistakes) log_lines(&app->log, mistakes);
    free(mistakes);
}

static void log_findings(const struct adv_log *log, const adv_err *err)
{
    for (int i = 0; i < err->count; i++)
        adv_log_message(log, ADV_LOG_ERROR, "%s: %s", err->findings[i].pointer, err->findings[i].detail);
}

static void *open_worker(void *argument)
{
    struct adv_app *app = argument;
    return app->database ? adv_db_open(app->database) : NULL;
}

/* Searches stand back behind everything else that this process does: on Linux a thread has a niceness of its
 * own. */
static void *open_searcher(void *argument)
{
    (void)argument;
    (void)setpriority(PRIO_PROCESS, 0, SEARCHER_NICENESS);
    return NULL;
}

static void close_worker(void *context)
{
    adv_db_close(context);
}

static void choose_counts(struct adv_daemon_config *config)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors < 1) processors = 1;
    if (!config->workers_count) config->workers_count = processors;
    if (!config->quick_workers_count) config->quick_workers_count = processors;
    if (!config->http_threads_count) config->http_threads_count = processors < 8 ? processors : 8;
    /* The library gives each thread an equal share of the connections. */
    if (config->connections_count < config->http_threads_count)
        config->connections_count = config->http_threads_count;
}

static bool start(struct adv_app *app)
{
    adv_err err = adv_err_empty();
    const bool has_tokens = app->config.tokens_file[0] || app->config.tokens_database;
    app->limits = adv_limits_new();
    app->keyring = has_tokens ? adv_keyring_new() : NULL;
    if (!app->limits || (has_tokens && !app->keyring) || !read_tokens(app, stderr)) return false;
    app->catalog = adv_catalog_load(app->config.catalog[0] ? app->config.catalog : NULL, &err);
    if (!app->catalog || adv_documents_make(app->catalog, &app->documents, &err)) {
        log_findings(&app->log, &err);
        return false;
    }
    app->answers = adv_answer_cache_new((size_t)app->config.cache_mib * 1024 * 1024);
    if (app->config.database_url[0])
        app->database =
            adv_database_open(app->config.database_url, app->config.auto_migrate, &app->log, &app->metrics);
    if (app->database && app->config.tokens_database) adv_database_serve_tokens(app->database, app->keyring);
    const struct adv_retention retention = {app->config.keep_days_count, app->config.restore_days_count};
    if (app->database) adv_database_serve_retention(app->database, &retention);
    struct adv_pool_work work = {
        .open = open_worker, .close = close_worker, .run = adv_http_run_job, .argument = app};
    const struct adv_pool_work quick = {.run = adv_http_run_job};
    const struct adv_pool_work search = {.open = open_searcher, .run = adv_http_run_job};
    const int queue = (int)app->config.queue_count;
    app->engine_pool = adv_pool_start((int)app->config.workers_count, queue, &search);
    app->quick_pool = adv_pool_start((int)app->config.quick_workers_count, queue, &quick);
    app->store_pool = adv_pool_start((int)app->config.store_workers_count, queue, &work);
    app->crew = adv_crew_start(0, SEARCHER_NICENESS);
    if (!app->answers || !app->crew || !app->engine_pool || !app->quick_pool || !app->store_pool ||
        (app->config.database_url[0] && !app->database)) {
        adv_log_message(&app->log, ADV_LOG_ERROR, "threads or memory are exhausted");
        return false;
    }
    if (app->database && !adv_calibrations_start(app)) return false;
    if (app->database) app->sweeper = adv_sweeper_start(app, (int)app->config.sweep_workers_count);
    return adv_http_start(app);
}

static void free_app(struct adv_app *app)
{
    adv_sweeper_stop(app->sweeper);
    adv_sweeper_free(app->sweeper);
    adv_pool_stop(app->engine_pool);
    adv_crew_stop(app->crew);
    adv_pool_stop(app->quick_pool);
    adv_pool_stop(app->store_pool);
    adv_http_free(app->http);
    adv_calibrations_stop(app->calibrations);
    adv_database_close(app->database);
    adv_answer_cache_free(app->answers);
    adv_documents_free(app->documents);
    adv_catalog_free(app->catalog);
    adv_keyring_free(app->keyring);
    adv_limits_free(app->limits);
    while (app->reloaded) {
        struct adv_settings *before = app->reloaded->before;
        free(app->reloaded);
        app->reloaded = before;
    }
    free(app);
}

/* In order: not ready, load balancers look away, no new connections, requests under way end, connections
 * close. */
static int drain(struct adv_app *app)
{
    atomic_store(&app->draining, true);
    notify("STOPPING=1");
    adv_sweeper_stop(app->sweeper);
    adv_log_message(&app->log, ADV_LOG_INFO, "draining");
    struct timespec delay = {.tv_sec = app->config.drain_delay_s};
    (void)nanosleep(&delay, NULL);
    int cut_off = adv_http_drain(app->http, app->config.drain_deadline_s);
    if (cut_off) {
        /* Their workers cannot be interrupted and still use the app: leave without taking it apart. */
        adv_log_message(&app->log, ADV_LOG_WARNING, "stopped; %d requests were cut off", cut_off);
        _exit(ADV_CLI_FAILED);
    }
    adv_http_stop(app->http);
    adv_log_message(&app->log, ADV_LOG_INFO, "stopped");
    return ADV_CLI_OK;
}

static bool open_log(struct adv_app *app)
{
    (void)adv_log_level_parse(app->config.log_level,
                              &app->log.level); /* it is one: the settings were checked */
    if (adv_log_open(&app->log, app->config.log_file)) return true;
    (void)fprintf(stderr, "tpu-advisor: cannot open %s: %s\n", app->config.log_file, strerror(errno));
    return false;
}

int adv_cli_serve(int argc, char **argv)
{
    int status = ADV_CLI_FAILED;
    struct adv_app *app = calloc(1, sizeof *app);
    if (!app || !adv_cli_settings(&app->asked, argc, argv, &status)) {
        free(app);
        return status;
    }
    app->config = app->asked;
    choose_counts(&app->config);
    atomic_store(&app->live, &app->config);
    if (!open_log(app)) {
        free(app);
        return ADV_CLI_USAGE;
    }
    /* Blocked before any thread starts, so that only sigwait below sees them. */
    sigset_t ends;
    (void)sigemptyset(&ends);
    (void)sigaddset(&ends, SIGTERM);
    (void)sigaddset(&ends, SIGINT);
    (void)sigaddset(&ends, SIGHUP);
    (void)pthread_sigmask(SIG_BLOCK, &ends, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    status = ADV_CLI_FAILED;
    if (start(app)) {
        struct adv_log_line line;
        adv_log_begin(&app->log, &line, ADV_LOG_INFO, "listening");
        adv_log_string(&line, "address", adv_http_address(app->http));
        adv_log_string(&line, "version", adv_engine_version());
        adv_log_string(&line, "catalog_hash", adv_catalog_hash(app->catalog));
        adv_log_number(&line, "workers", app->config.workers_count);
        adv_log_number(&line, "pid", (int64_t)getpid());
        adv_log_end(&line);
        notify("READY=1");
        int received = 0;
        while (sigwait(&ends, &received) != 0 || received == SIGHUP)
            if (received == SIGHUP) reload(app, argc, argv);
        status = drain(app);
    }
    free_app(app);
    return status;
}

int adv_cli_migrate(int argc, char **argv)
{
    struct adv_daemon_config config;
    int status = ADV_CLI_OK;
    if (!adv_cli_settings(&config, argc, argv, &status)) return status;
    if (!config.database_url[0]) {
        (void)fprintf(stderr, "tpu-advisor: migrate needs --database-url\n");
        return ADV_CLI_USAGE;
    }
    struct adv_log log = {.level = ADV_LOG_INFO};
    return adv_database_migrate(config.database_url, &log) ? ADV_CLI_FAILED : ADV_CLI_OK;
}

/* Exit status 0 when the daemon at the configured address is ready, 1 otherwise; its answer's body is
 * printed. */
int adv_cli_healthcheck(int argc, char **argv)
{
    struct adv_daemon_config config;
    int status = ADV_CLI_OK;
    if (!adv_cli_settings(&config, argc, argv, &status)) return status;
    char host[ADV_LIMIT_SETTING], port[6], url[ADV_LIMIT_SETTING + 32];
    if (!adv_config_address(config.listen, host, port)) return ADV_CLI_USAGE;
    /* A daemon that listens on every address also listens on this machine's own. */
    const char *target = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : strcmp(host, "::") == 0 ? "::1" : host;
    const bool v6 = strchr(target, ':') != NULL;
    (void)snprintf(url, sizeof url, "http://%s%s%s:%s", v6 ? "[" : "", target, v6 ? "]" : "", port);
    adv_err err = adv_err_empty();
    struct adv_client_answer answer;
    if (adv_client_ask(url, "/readyz", NULL, NULL, NULL, HEALTH_PATIENCE_S, &answer, &err)) {
        (void)fprintf(stderr, "tpu-advisor: %s\n", err.findings[0].detail);
        return ADV_CLI_FAILED;
    }
    (void)printf("%s\n", answer.body);
    free(answer.body);
    return answer.status == 200 ? ADV_CLI_OK : ADV_CLI_FAILED;
}
