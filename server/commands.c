/* commands.c: the subcommands that belong to the daemon: migrate, healthcheck. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/cli.h"
#include "server/cli_io.h"
#include "server/db.h"

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

static int connect_to(const char *host, const char *port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, port, &hints, &found)) return -1;
    struct timeval patience = {.tv_sec = 3};
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
                setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
                connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    freeaddrinfo(found);
    if (good) return fd;
    if (fd >= 0) (void)close(fd);
    return -1;
}

/* Exit status 0 when the daemon at the configured address is ready, 1 otherwise; its answer's body is
 * printed. */
int adv_cli_healthcheck(int argc, char **argv)
{
    struct adv_daemon_config config;
    int status = ADV_CLI_OK;
    if (!adv_cli_settings(&config, argc, argv, &status)) return status;
    char host[ADV_LIMIT_SETTING];
    char port[6];
    if (!adv_config_address(config.listen, host, port)) return ADV_CLI_USAGE;
    /* A daemon that listens on every address also listens on this machine's own. */
    const char *target = strcmp(host, "0.0.0.0") == 0 ? "127.0.0.1" : strcmp(host, "::") == 0 ? "::1" : host;
    int fd = connect_to(target, port);
    if (fd < 0) {
        (void)fprintf(stderr, "tpu-advisor: nobody answers on %s port %s: %s\n", target, port,
                      strerror(errno));
        return ADV_CLI_FAILED;
    }
    static const char request[] = "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char answer[2048];
    size_t length = 0;
    ssize_t got = write(fd, request, sizeof request - 1);
    while (got > 0 && length < sizeof answer - 1) {
        got = read(fd, answer + length, sizeof answer - 1 - length);
        if (got > 0) length += (size_t)got;
    }
    (void)close(fd);
    answer[length] = '\0';
    const char *body = strstr(answer, "\r\n\r\n");
    (void)printf("%s\n", body ? body + 4 : "no answer");
    return strncmp(answer, "HTTP/1.1 200", 12) == 0 ? ADV_CLI_OK : ADV_CLI_FAILED;
}
