/* cli_verifier.c: the verifier: takes plans from the database and puts them before the real compiler, one at
 * a time.
 *
 * It holds each plan by a lease that it renews. It leaves on SIGTERM or SIGINT, giving its plan back; when it
 * is killed the lease runs out and another takes the plan.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli.h"
#include "server/cli_io.h"
#include "server/compiler.h"
#include "server/monotonic.h"
#include "server/store_verifications.h"

#define IDLE_MS      500 /* between two looks at an empty queue */
#define FINISH_TRIES 120 /* half a second each: a result outlives a restart of the database */
#define RENEWS       3   /* in one lease */

static volatile sig_atomic_t leaving;

static void leave(int received)
{
    (void)received;
    leaving = 1;
}

struct verifier {
    const struct adv_daemon_config *config;
    struct adv_log log;
    struct adv_metrics metrics;
    struct adv_database *database;
    struct adv_db *db;
    char name[128];
    struct adv_verification_job job;
    double renewed_s;
    bool held;
};

static void say(const struct verifier *verifier, enum adv_log_level level, const char *message,
                const char *detail)
{
    struct adv_log_line line;
    adv_log_begin(&verifier->log, &line, level, message);
    if (verifier->job.verification_id[0]) {
        adv_log_string(&line, "verification_id", verifier->job.verification_id);
        adv_log_number(&line, "rank", verifier->job.rank);
        adv_log_number(&line, "attempt", verifier->job.attempt);
    }
    if (detail) adv_log_string(&line, "detail", detail);
    adv_log_end(&line);
}

/* Called while the compiler works: renews the lease in time. A database that is away is no reason to stop:
 * the lease may still be ours when it is back. */
static bool watch(void *context, const char *stage, double seconds)
{
    struct verifier *verifier = context;
    const int lease_s = (int)verifier->config->lease_s;
    adv_err err = adv_err_empty();
    (void)seconds;
    if (leaving) return false;
    if (!stage && adv_monotonic_s() - verifier->renewed_s < (double)lease_s / RENEWS) return true;
    verifier->renewed_s = adv_monotonic_s();
    bool held = true;
    if (adv_verification_renew(verifier->db, &verifier->job, lease_s, stage, &held, &err) == ADV_OK)
        verifier->held = held;
    return verifier->held;
}

static void finish(struct verifier *verifier, const char *result)
{
    for (int tries = 0; tries < FINISH_TRIES; tries++) {
        adv_err err = adv_err_empty();
        bool held = false;
        const adv_code code = adv_verification_finish(verifier->db, &verifier->job, result, &held, &err);
        if (code == ADV_OK) {
            say(verifier, ADV_LOG_INFO, held ? "verified" : "verified, but another has the plan", NULL);
            return;
        }
        if (code != ADV_E_STORE) {
            say(verifier, ADV_LOG_ERROR, "result not stored", err.count ? err.findings[0].detail : NULL);
            return;
        }
        adv_monotonic_sleep(IDLE_MS);
    }
    say(verifier, ADV_LOG_ERROR, "result not stored", "the database stayed away");
}

static void give_back(struct verifier *verifier)
{
    adv_err ignored = adv_err_empty(); /* the lease runs out by itself */
    if (adv_verification_release(verifier->db, &verifier->job, &ignored) == ADV_OK)
        say(verifier, ADV_LOG_INFO, "plan given back", NULL);
}

/* Works on the plan that is held; the exit status, -1: go on. */
static int work(struct verifier *verifier)
{
    const struct adv_daemon_config *config = verifier->config;
    const struct adv_compiler_order order = {.plan = verifier->job.plan,
                                             .whole = verifier->job.whole,
                                             .time_s = config->compile_timeout_s,
                                             .memory_gib = config->compile_memory_gib,
                                             .program = config->compiler,
                                             .watch = watch,
                                             .context = verifier};
    char *result = NULL;
    int status = -1;
    adv_err err = adv_err_empty();
    verifier->held = true;
    verifier->renewed_s = adv_monotonic_s();
    say(verifier, ADV_LOG_INFO, "compiling", NULL);
    switch (adv_compiler_run(&order, &result, &err)) {
    case ADV_COMPILER_SAID:
        finish(verifier, result);
        break;
    case ADV_COMPILER_UNWANTED:
        if (verifier->held)
            give_back(verifier);
        else
            say(verifier, ADV_LOG_INFO, "cancelled, or taken by another", NULL);
        break;
    case ADV_COMPILER_NO_ENVIRONMENT:
        give_back(verifier);
        say(verifier, ADV_LOG_ERROR, "the compiler is not installed; run: " ADV_COMPILER_INSTALL, NULL);
        status = ADV_CLI_NO_ENVIRONMENT;
        break;
    case ADV_COMPILER_ERROR:
        give_back(verifier);
        say(verifier, ADV_LOG_ERROR, "cannot compile here", err.count ? err.findings[0].detail : NULL);
        status = ADV_CLI_FAILED;
        break;
    }
    free(result);
    return status;
}

static int loop(struct verifier *verifier)
{
    while (!leaving) {
        adv_err err = adv_err_empty();
        bool taken = false;
        const adv_code code = adv_verification_take(
            verifier->db, verifier->name, (int)verifier->config->lease_s, &verifier->job, &taken, &err);
        if (taken) {
            const int status = work(verifier);
            free(verifier->job.plan);
            memset(&verifier->job, 0, sizeof verifier->job);
            if (status >= 0) return status;
            continue;
        }
        if (code && code != ADV_E_STORE)
            say(verifier, ADV_LOG_ERROR, "queue not read", err.count ? err.findings[0].detail : NULL);
        if (!code && verifier->config->until_empty) break;
        adv_monotonic_sleep(IDLE_MS);
    }
    return ADV_CLI_OK;
}

static int run(struct verifier *verifier)
{
    char host[64] = "";
    struct sigaction action = {.sa_handler = leave};
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    const char *folder = verifier->config->compile_env;
    if (folder[0]) (void)setenv("TPU_ADVISOR_COMPILE_ENV", folder, 1); /* the script's own setting */
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(verifier->name, sizeof verifier->name, "%s/%d", host, (int)getpid());
    if (!adv_compiler_ready(verifier->config->compiler)) {
        say(verifier, ADV_LOG_ERROR, "the compiler is not installed; run: " ADV_COMPILER_INSTALL, NULL);
        return ADV_CLI_NO_ENVIRONMENT;
    }
    verifier->database = adv_database_open(verifier->config->database_url, verifier->config->auto_migrate,
                                           &verifier->log, &verifier->metrics);
    verifier->db = verifier->database ? adv_db_open(verifier->database) : NULL;
    int status = ADV_CLI_FAILED;
    if (verifier->db) {
        say(verifier, ADV_LOG_INFO, "verifier is waiting for plans", verifier->name);
        status = loop(verifier);
    }
    adv_db_close(verifier->db);
    adv_database_close(verifier->database);
    return status;
}

int adv_cli_verifier(int argc, char **argv)
{
    struct adv_daemon_config config;
    int status = ADV_CLI_USAGE;
    if (!adv_cli_settings(&config, argc, argv, &status)) return status;
    struct verifier *verifier = calloc(1, sizeof *verifier);
    if (!verifier) return ADV_CLI_FAILED;
    verifier->config = &config;
    status = ADV_CLI_USAGE;
    if (!config.database_url[0] || !adv_log_level_parse(config.log_level, &verifier->log.level))
        (void)fprintf(stderr, "tpu-advisor: verifier needs --database-url, and a log_level that there is\n");
    else
        status = run(verifier);
    free(verifier);
    return status;
}
