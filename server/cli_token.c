/* cli_token.c: tpu-advisor token create|list|revoke. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "server/cli.h"
#include "server/cli_io.h"
#include "server/db_tokens.h"

#define TOKEN_BYTES     32
#define TOKEN_PREFIX    "tpa_" /* so that scanners of repositories can tell one */
#define ARGUMENTS_COUNT 32

struct wishes {
    const char *name, *scopes, *project, *expires;
    struct adv_daemon_config config;
};

static int usage(void)
{
    (void)fprintf(
        stderr,
        "usage: tpu-advisor token create NAME --scope read[,write|,admin] [--project NAME] [--expires 90d]\n"
        "       tpu-advisor token list\n"
        "       tpu-advisor token revoke NAME\n"
        "With --database-url the tokens are the database's (serve --tokens-database); otherwise create adds "
        "a "
        "line to\n--tokens-file. The token is printed once, on standard output; only its SHA-256 is kept.\n");
    return ADV_CLI_USAGE;
}

/* Our own options are taken out of the arguments; what is left are settings of the daemon. */
static bool read_arguments(int argc, char **argv, struct wishes *wishes)
{
    const struct adv_cli_option own[] = {{"--scope", .text = &wishes->scopes},
                                         {"--project", .text = &wishes->project},
                                         {"--expires", .text = &wishes->expires},
                                         {.name = NULL}};
    char *rest[ARGUMENTS_COUNT + 1] = {argv[0]};
    int rest_count = 1;
    for (int i = 2; i < argc && rest_count < ARGUMENTS_COUNT; i++) {
        const enum adv_cli_taken taken = adv_cli_take_option(own, argc, argv, &i);
        if (taken == ADV_CLI_WRONG) return false;
        if (taken == ADV_CLI_TAKEN) continue;
        if (argv[i][0] != '-' && !wishes->name && i == 2)
            wishes->name = argv[i];
        else
            rest[rest_count++] = argv[i];
    }
    enum adv_config_action action = ADV_CONFIG_RUN;
    return adv_config_load(&wishes->config, rest_count, rest, environ, &action, stderr) == ADV_OK &&
           action == ADV_CONFIG_RUN;
}

/* "90d", "12h": seconds from now; 0 = not understood. */
static int64_t read_period(const char *text)
{
    char *end = NULL;
    const long long number = strtoll(text, &end, 10);
    const int64_t unit = strcmp(end, "d") == 0 ? 86400 : strcmp(end, "h") == 0 ? 3600 : 0;
    return number > 0 && number < 100000 ? number * unit : 0;
}

static const char *fill_token(const struct wishes *wishes, struct adv_token *token)
{
    char scopes[64];
    if (!wishes->name || !*wishes->name || strlen(wishes->name) >= sizeof token->name ||
        strpbrk(wishes->name, " \t\r\n#"))
        return "a name has 1 to 63 bytes, without blanks and #";
    if (!wishes->scopes || strlen(wishes->scopes) >= sizeof scopes) return "--scope is read, write or admin";
    memcpy(scopes, wishes->scopes, strlen(wishes->scopes) + 1);
    token->scopes = adv_tokens_scopes(scopes);
    if (!token->scopes) return "--scope is read, write or admin, or several with commas";
    if (wishes->project && (!*wishes->project || strlen(wishes->project) >= sizeof token->project ||
                            strpbrk(wishes->project, " \t\r\n")))
        return "a project has 1 to 95 bytes, without blanks";
    const int64_t period_s = wishes->expires ? read_period(wishes->expires) : 0;
    if (wishes->expires && !period_s) return "--expires is a number of days or hours: 90d, 12h";
    if (period_s) token->expires_s = (int64_t)time(NULL) + period_s;
    memcpy(token->name, wishes->name, strlen(wishes->name) + 1);
    if (wishes->project) memcpy(token->project, wishes->project, strlen(wishes->project) + 1);
    return NULL;
}

static bool append_line(const char *path, const struct adv_token *token, const char *scopes)
{
    FILE *file = fopen(path, "a+");
    if (!file) return false;
    const bool is_open_line = fseek(file, -1, SEEK_END) == 0 && fgetc(file) != '\n';
    (void)fseek(file, 0, SEEK_END);
    if (is_open_line) (void)fputc('\n', file); /* of an editor or printf that ended without one */
    (void)fprintf(file, "%s %s %s", token->name, scopes, token->digest);
    if (token->project[0]) (void)fprintf(file, " project=%s", token->project);
    if (token->expires_s) (void)fprintf(file, " expires=%lld", (long long)token->expires_s);
    (void)fputc('\n', file);
    return fclose(file) == 0;
}

static int report(const adv_err *err)
{
    for (int i = 0; i < err->count; i++)
        (void)fprintf(stderr, "tpu-advisor: %s%s%s\n", err->findings[i].detail,
                      err->findings[i].hint[0] ? "; " : "", err->findings[i].hint);
    return ADV_CLI_FAILED;
}

static int create(const struct wishes *wishes)
{
    struct adv_token token = {0};
    unsigned char random[TOKEN_BYTES];
    char text[sizeof TOKEN_PREFIX + 2 * TOKEN_BYTES] = TOKEN_PREFIX;
    adv_err err = adv_err_empty();
    const char *mistake = fill_token(wishes, &token);
    if (mistake) {
        (void)fprintf(stderr, "tpu-advisor: %s\n", mistake);
        return ADV_CLI_USAGE;
    }
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        (void)fprintf(stderr, "tpu-advisor: the system gives no random bytes: %s\n", strerror(errno));
        return ADV_CLI_FAILED;
    }
    for (int i = 0; i < TOKEN_BYTES; i++)
        (void)snprintf(text + sizeof TOKEN_PREFIX - 1 + 2 * i, 3, "%02x", random[i]);
    adv_sha256_hex(text, strlen(text), token.digest);
    if (wishes->config.database_url[0]) {
        if (adv_db_token_create(wishes->config.database_url, &token, wishes->scopes, &err))
            return report(&err);
    } else if (!append_line(wishes->config.tokens_file, &token, wishes->scopes)) {
        (void)fprintf(stderr, "tpu-advisor: cannot write %s: %s\n", wishes->config.tokens_file,
                      strerror(errno));
        return ADV_CLI_FAILED;
    }
    (void)printf("%s\n", text);
    return ADV_CLI_OK;
}

int adv_cli_token(int argc, char **argv)
{
    struct wishes wishes = {0};
    const char *action = argc > 1 ? argv[1] : "";
    const bool creates = strcmp(action, "create") == 0, lists = strcmp(action, "list") == 0,
               revokes = strcmp(action, "revoke") == 0;
    if ((!creates && !lists && !revokes) || !read_arguments(argc, argv, &wishes)) return usage();
    if ((creates || revokes) && !wishes.name) return usage();
    if (!wishes.config.database_url[0] && !(creates && wishes.config.tokens_file[0])) {
        (void)fprintf(stderr, "tpu-advisor: %s needs --database-url%s\n", action,
                      creates ? " or --tokens-file"
                              : "; of a file, take the line out and send the daemon SIGHUP");
        return ADV_CLI_USAGE;
    }
    if (creates) return create(&wishes);
    adv_err err = adv_err_empty();
    const adv_code code = lists ? adv_db_tokens_list(wishes.config.database_url, stdout, &err)
                                : adv_db_token_revoke(wishes.config.database_url, wishes.name, &err);
    return code ? report(&err) : ADV_CLI_OK;
}
