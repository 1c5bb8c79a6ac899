#include "server/cli_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cli.h"
#include "server/db.h"
#include "server/routes.h"

/* A measurement file of 4,000 rows is 10 MiB. */
static const size_t file_limit_bytes = 64u * 1024u * 1024u;

char *adv_cli_read_file(const char *path, size_t *text_bytes, adv_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *file = is_stdin ? stdin : fopen(path, "rb");
    if (!file) {
        (void)adv_err_add(err, ADV_E_IO, "", NULL, "cannot open %s: %s", path, strerror(errno));
        return NULL;
    }
    struct adv_text text = adv_text_empty(file_limit_bytes);
    adv_text_append(&text, "");
    char chunk[65536];
    size_t got;
    while ((got = fread(chunk, 1, sizeof chunk, file)) > 0 && !text.overflow)
        adv_text_append_bytes(&text, chunk, got);
    if (ferror(file)) (void)adv_err_add(err, ADV_E_IO, "", NULL, "cannot read %s: %s", path, strerror(errno));
    if (text.overflow)
        (void)adv_err_add(err, ADV_E_TOO_LARGE, "", NULL, "%s is larger than %zu bytes", path,
                          file_limit_bytes);
    if (!is_stdin) (void)fclose(file);
    if (err->code != ADV_OK) {
        adv_text_free(&text);
        return NULL;
    }
    *text_bytes = text.length_bytes;
    return text.data;
}

enum adv_cli_taken adv_cli_take_option(const struct adv_cli_option *options, int argc, char **argv, int *at)
{
    while (options->name && strcmp(argv[*at], options->name) != 0) options++;
    if (!options->name) return ADV_CLI_UNKNOWN;
    if (options->flag) {
        *options->flag = true;
        return ADV_CLI_TAKEN;
    }
    char *value = *at + 1 < argc ? argv[++*at] : NULL;
    char *end = NULL;
    if (!value || (options->count && *options->count == options->most)) return ADV_CLI_WRONG;
    if (options->take) return options->take(options->context, value) ? ADV_CLI_TAKEN : ADV_CLI_WRONG;
    if (options->text) {
        options->text[options->count ? (*options->count)++ : 0] = value;
        return ADV_CLI_TAKEN;
    }
    *options->number = strtol(value, &end, 10);
    const bool good = end != value && !*end && *options->number >= 1 && *options->number <= options->most;
    return good ? ADV_CLI_TAKEN : ADV_CLI_WRONG;
}

static bool take_member(struct adv_cli_given *given, const char *option, const char *value)
{
    if (given->count == ADV_CLI_GIVEN || strlen(option) >= ADV_LIMIT_NAME) return false;
    char *name = given->names[given->count];
    (void)snprintf(name, ADV_LIMIT_NAME, "%s", option);
    for (char *at = name; *at; at++)
        if (*at == '-') *at = '_';
    name[strcspn(name, "=")] = '\0';
    given->members[given->count++] = (struct adv_given_member){name, value};
    return true;
}

bool adv_cli_take_given(struct adv_cli_given *given, int argc, char **argv, int *at)
{
    const char *name = argv[*at] + 2, *equals = strchr(name, '=');
    if (strcmp(name, "strict") == 0 || strcmp(name, "lenient") == 0) return take_member(given, name, "true");
    if (equals) return take_member(given, name, equals + 1);
    return *at + 1 < argc && take_member(given, name, argv[++*at]);
}

adv_code adv_cli_expand(const struct adv_catalog *catalog, enum adv_request_kind kind,
                        const struct adv_cli_given *given, char **text, size_t *text_bytes, adv_err *err)
{
    char *json = NULL;
    size_t json_bytes = 0;
    if (given->count == 0) return ADV_OK;
    const adv_code code = adv_request_expand(catalog, kind, *text, *text_bytes, given->members, given->count,
                                             &json, &json_bytes, err);
    if (code) return code;
    free(*text);
    *text = json;
    *text_bytes = json_bytes;
    return ADV_OK;
}

int adv_cli_write(const struct adv_text *text)
{
    if (fwrite(text->data, 1, text->length_bytes, stdout) == text->length_bytes && fflush(stdout) == 0)
        return ADV_CLI_OK;
    (void)fprintf(stderr, "tpu-advisor: standard output: %s\n", strerror(errno));
    return ADV_CLI_FAILED;
}

int adv_cli_problem(const adv_err *err)
{
    char *problem = adv_problem_json(err, NULL);
    (void)fprintf(stderr, "%s\n", problem ? problem : "{\"title\": \"out of memory\"}");
    free(problem);
    return ADV_CLI_USAGE;
}

static bool is_url_good(const char *url)
{
    adv_err err = adv_err_empty();
    if (!*url || adv_database_url_check(url, &err) == ADV_OK) return true;
    (void)fprintf(stderr, "tpu-advisor: %s; write %s\n", err.findings[0].detail, err.findings[0].hint);
    return false;
}

bool adv_cli_settings(struct adv_daemon_config *config, int argc, char **argv, int *status)
{
    enum adv_config_action action = ADV_CONFIG_RUN;
    const bool good = adv_config_load(config, argc, argv, environ, &action, stderr) == ADV_OK &&
                      (action == ADV_CONFIG_HELP || is_url_good(config->database_url));
    *status = good ? ADV_CLI_OK : ADV_CLI_USAGE;
    if (good && action == ADV_CONFIG_HELP) adv_config_help(stdout, argv[0]);
    if (good && action == ADV_CONFIG_PRINT) adv_config_print(config, stdout);
    if (good && action == ADV_CONFIG_ROUTES) adv_routes_print(stdout);
    return good && action == ADV_CONFIG_RUN;
}
