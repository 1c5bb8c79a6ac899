/* config.h: the daemon's settings, one table: default < file (--config) < environment TPU_ADVISOR_* < flags.
 *
 * A setting `workers` is the flag --workers, the file's line `workers = 4` and the variable
 * TPU_ADVISOR_WORKERS. A secret can also be given as the name of a file: --database-url-file,
 * TPU_ADVISOR_DATABASE_URL_FILE. An unknown name is an error everywhere, and so is a value out of range.
 * Adding a setting = adding a row.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/code.h"

#define ADV_LIMIT_SETTING                                                                                    \
    512 /* value of one setting; a database URL with all its parameters stays below 300 */

/* Of each: whether a running daemon takes it over (LIVE, by SIGHUP) or only a new start, its name, the member
 * of the struct where that says the unit, its default, the range of a number, and help. */
#define ADV_SETTING_TABLE(TEXT, SECRET, BOOL, COUNT, SECONDS)                                                \
    TEXT(START, listen, "127.0.0.1:8080", "address:port; port 0 takes a free one")                           \
    SECRET(START, database_url, "",                                                                          \
           "PostgreSQL, postgresql://user@host/name or key=value words; empty: nothing is stored")           \
    TEXT(START, tokens_file, "",                                                                             \
         "bearer tokens: lines of NAME SCOPE[,SCOPE] SHA256; scopes read, write, admin")                     \
    BOOL(START, tokens_database, "false", "bearer tokens from the database: `tpu-advisor token create`")     \
    TEXT(START, catalog, "", "folder of catalog files that replace the built-in ones")                       \
    TEXT(LIVE, log_level, "info", "debug, info, warning or error")                                           \
    TEXT(START, log_file, "", "file to append the log to; empty: standard error")                            \
    TEXT(LIVE, hosts, "", "without tokens: names it goes by beside addresses and names without dots; * any") \
    BOOL(START, insecure, "false", "listen beyond loopback without tokens")                                  \
    BOOL(START, auto_migrate, "true", "apply database migrations at start")                                  \
    COUNT(START, http_threads, http_threads_count, "0", 0, 64,                                               \
          "threads that speak HTTP; 0: one per processor")                                                   \
    COUNT(START, workers, workers_count, "0", 0, 256,                                                        \
          "threads that search (advise, tune); 0: one per processor")                                        \
    COUNT(START, quick_workers, quick_workers_count, "0", 0, 256,                                            \
          "threads for what takes milliseconds (estimate, simulate, lint); 0: one per processor")            \
    COUNT(LIVE, plans, plans_count, "640", 0, 1000000,                                                       \
          "machines times top_k that one request may ask for, twice with sensitivities; 0: no limit")        \
    COUNT(START, store_workers, store_workers_count, "4", 1, 64,                                             \
          "threads that wait for the database, each with a connection")                                      \
    COUNT(START, sweep_workers, sweep_workers_count, "1", 0, 256,                                            \
          "threads that work off sweeps, behind all others; 0: other daemons do")                            \
    COUNT(START, cache_mib, cache_mib, "64", 0, 65536,                                                       \
          "MiB of answers kept in memory for questions asked again; 0: none")                                \
    COUNT(START, queue, queue_count, "256", 1, 65536, "requests that may wait for a worker")                 \
    COUNT(START, connections, connections_count, "1024", 4, 65536, "open connections")                       \
    COUNT(START, connections_per_ip, connections_per_ip_count, "-1", -1, 65536,                              \
          "open connections of one address; 0: any, -1: three quarters of all, any when listening on "       \
          "loopback")                                                                                        \
    SECONDS(LIVE, request_timeout, request_timeout_s, "10", 1, 3600, "time to send a whole request")         \
    SECONDS(START, idle_timeout, idle_timeout_s, "15", 1, 3600, "time between requests of one connection")   \
    SECONDS(LIVE, deadline, deadline_s, "30", 1, 3600, "time to answer, waiting included")                   \
    SECONDS(LIVE, queue_wait, queue_wait_s, "2", 1, 3600, "time to wait for a worker; then 503")             \
    COUNT(LIVE, address_rate, address_rate_per_s, "-1", -1, 1000000,                                         \
          "requests per second of one address, five times that at once; 0: any, -1: 200 beyond loopback")    \
    COUNT(LIVE, token_rate, token_rate_per_s, "0", 0, 1000000,                                               \
          "requests per second of one token, five times that at once; 0: any")                               \
    COUNT(START, keep_days, keep_days_count, "0", 0, 36500,                                                  \
          "days after which runs that are no baselines and not measured, and ended sweeps, are "             \
          "deleted; 0: never")                                                                               \
    COUNT(START, restore_days, restore_days_count, "30", 0, 36500,                                           \
          "days in which a deleted run can be restored; then it is purged")                                  \
    SECONDS(START, drain_delay, drain_delay_s, "0", 0, 600,                                                  \
            "after SIGTERM: not ready but listening, so that load balancers look away")                      \
    SECONDS(START, drain_deadline, drain_deadline_s, "20", 0, 600,                                           \
            "after SIGTERM: time for requests under way")                                                    \
    TEXT(START, compiler, "", "verifier: a program that answers in place of the installed MaxText")          \
    TEXT(START, compile_env, "", "verifier: folder of the installed MaxText; empty: below ~/.cache")         \
    SECONDS(START, compile_timeout, compile_timeout_s, "900", 1, 86400, "verifier: time for one compile")    \
    COUNT(START, compile_memory_gib, compile_memory_gib, "16", 1, 65536,                                     \
          "verifier: GiB of this machine that one compile may hold")                                         \
    SECONDS(START, lease, lease_s, "30", 1, 3600, "verifier: silence after which another takes its plan")    \
    BOOL(START, until_empty, "false", "verifier: leave when no plan waits")

#define ADV_SETTING_TEXT(when, name, ...)          char name[ADV_LIMIT_SETTING];
#define ADV_SETTING_BOOL(when, name, ...)          bool name;
#define ADV_SETTING_NUMBER(when, name, field, ...) long field;
struct adv_daemon_config {
    ADV_SETTING_TABLE(ADV_SETTING_TEXT, ADV_SETTING_TEXT, ADV_SETTING_BOOL, ADV_SETTING_NUMBER,
                      ADV_SETTING_NUMBER)
};

/* The actions that the command line may ask for besides settings. */
enum adv_config_action { ADV_CONFIG_RUN, ADV_CONFIG_HELP, ADV_CONFIG_PRINT, ADV_CONFIG_ROUTES };

/* Fills `config` from all sources; argv[0] is the command's name, environment is `environ`-like
 * (NULL-terminated). On an error the reason is printed to `errors` and ADV_E_INVALID returned; --help comes
 * back in `action`. */
ADV_MUST_CHECK adv_code adv_config_load(struct adv_daemon_config *config, int argc, char **argv,
                                        char *const *environment, enum adv_config_action *action,
                                        FILE *errors);

/* The names of settings that differ between `before` and `after`, separated by blanks, into `names`: those
 * that a running daemon can take over (`live`), or those that need a new start. */
void adv_config_differences(const struct adv_daemon_config *before, const struct adv_daemon_config *after,
                            bool live, char names[ADV_LIMIT_SETTING]);

/* The table as a list of flags with defaults; and the settings in effect, secrets as ***. */
void adv_config_help(FILE *out, const char *command);
void adv_config_print(const struct adv_daemon_config *config, FILE *out);

/* Splits `listen` into host and port (buffers of ADV_LIMIT_SETTING and 6 bytes); false when it is not
 * host:port. */
bool adv_config_address(const char *listen, char *host, char *port);

/* Whether the host can only be reached from this machine. */
bool adv_config_is_loopback(const char *host);
