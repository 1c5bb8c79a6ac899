/* commands.c: the subcommands that belong to the daemon: migrate, healthcheck. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cli.h"
#include "server/cli_io.h"
#include "server/db.h"
#include "server/http_client.h"

#define PATIENCE_S 3

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
    if (adv_client_ask(url, "/readyz", NULL, NULL, PATIENCE_S, &answer, &err)) {
        (void)fprintf(stderr, "tpu-advisor: %s\n", err.findings[0].detail);
        return ADV_CLI_FAILED;
    }
    (void)printf("%s\n", answer.body);
    free(answer.body);
    return answer.status == 200 ? ADV_CLI_OK : ADV_CLI_FAILED;
}
