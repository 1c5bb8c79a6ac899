/* config.h: the daemon's settings, one table: default < file (--config) < environment TPU_ADVISOR_* < flags.
 *
 * A setting `workers` is the flag --workers, the file's line `workers = 4` and the variable
 * TPU_ADVISOR_WORKERS. A secret can also be given as the name of a file: --database-url-file,
 * TPU_ADVISOR_DATABASE_URL_FILE. An unknown name is an error everywhere, and so is a value out of range.
 * Adding a setting = a field here and a row in config.c.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "engine/base/code.h"

#define ADV_LIMIT_SETTING                                                                                    \
    512 /* value of one setting; a database URL with all its parameters stays below 300 */

struct adv_daemon_config {
    char listen[ADV_LIMIT_SETTING];       /* address:port, [address]:port */
    char database_url[ADV_LIMIT_SETTING]; /* secret; empty = no store */
    char tokens_file[ADV_LIMIT_SETTING];
    char catalog[ADV_LIMIT_SETTING]; /* folder whose files replace embedded ones; empty = embedded */
    char log_level[ADV_LIMIT_SETTING];
    char log_file[ADV_LIMIT_SETTING]; /* empty = standard error */
    char hosts[ADV_LIMIT_SETTING];    /* names that a daemon without tokens goes by */
    bool tokens_database;             /* tokens of the database's table count */
    bool insecure;                    /* listen beyond loopback without tokens */
    bool auto_migrate; /* apply migrations at start; off: refuse the store until they are applied */
    long http_threads_count, workers_count, store_workers_count; /* 0 = by the number of processors */
    long quick_workers_count;                                    /* 0 = by the number of processors */
    long plans_count; /* that one request may ask for, machines times top_k; 0 = no limit */
    long cache_mib;   /* of answers kept */
    long sweep_workers_count;
    long queue_count;                                 /* requests waiting for a worker, per pool */
    long connections_count, connections_per_ip_count; /* per-ip 0 = no limit, -1 = the usual one */
    long request_timeout_s;                           /* to send a whole request */
    long idle_timeout_s;                              /* keep-alive */
    long queue_wait_s;                                /* to wait for a worker */
    long address_rate_per_s; /* requests of one address; 0 = no limit, -1 = the usual one beyond loopback */
    long token_rate_per_s;   /* requests of one token; 0 = no limit */
    long keep_days_count;    /* of runs that nobody marked; 0 = for ever */
    long restore_days_count; /* of deleted runs */
    long deadline_s;         /* to answer a request, waiting included */
    long drain_delay_s;      /* not ready, still listening: lets a load balancer look away */
    long drain_deadline_s;   /* for requests under way */
    char compiler[ADV_LIMIT_SETTING];    /* of the verifier: a program in place of the installed one */
    char compile_env[ADV_LIMIT_SETTING]; /* folder of the installed one; the script reads the variable */
    long compile_timeout_s, compile_memory_gib; /* of one compile */
    long lease_s;                               /* a verifier that is silent for longer has lost its plan */
    bool until_empty;                           /* leave when no plan waits */
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
