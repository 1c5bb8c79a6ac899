#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "server/log.h"

enum setting_type { SETTING_TEXT, SETTING_SECRET, SETTING_BOOL, SETTING_COUNT, SETTING_SECONDS };
enum setting_when { SETTING_START, SETTING_LIVE };

struct setting {
    const char *name; /* with underscores; the flag has dashes */
    enum setting_type type;
    enum setting_when when;
    size_t offset;
    const char *preset;
    long min, max;
    const char *help;
};

#define ROW(type, when, name, field, preset, min, max, help)                                                 \
    {#name, SETTING_##type, SETTING_##when, offsetof(struct adv_daemon_config, field), preset, min, max,     \
     help},
#define TEXT(when, name, preset, help)   ROW(TEXT, when, name, name, preset, 0, 0, help)
#define SECRET(when, name, preset, help) ROW(SECRET, when, name, name, preset, 0, 0, help)
#define BOOL(when, name, preset, help)   ROW(BOOL, when, name, name, preset, 0, 0, help)
#define COUNT(...)                       ROW(COUNT, __VA_ARGS__)
#define SECONDS(...)                     ROW(SECONDS, __VA_ARGS__)
static const struct setting settings[] = {ADV_SETTING_TABLE(TEXT, SECRET, BOOL, COUNT, SECONDS)};

#define SETTINGS_COUNT     ((int)(sizeof settings / sizeof settings[0]))
#define ENVIRONMENT_PREFIX "TPU_ADVISOR_"

/* `name` may have dashes, underscores and capitals. A trailing _file is kept apart for secrets. */
static const struct setting *find_setting(const char *name, bool *from_file)
{
    char plain[64];
    size_t length = 0;
    for (; length < sizeof plain - 1 && name[length]; length++)
        plain[length] = name[length] == '-' ? '_' : (char)tolower((unsigned char)name[length]);
    plain[length] = '\0';
    *from_file = false;
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        if (strcmp(plain, settings[i].name) == 0) return &settings[i];
        size_t own = strlen(settings[i].name);
        if (settings[i].type == SETTING_SECRET && strncmp(plain, settings[i].name, own) == 0 &&
            strcmp(plain + own, "_file") == 0) {
            *from_file = true;
            return &settings[i];
        }
    }
    return NULL;
}

/* Says what is wrong; returns ADV_E_INVALID. */
static adv_code refuse(FILE *errors, const char *format, ...) ADV_PRINTF(2, 3);
static adv_code refuse(FILE *errors, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("tpu-advisor: ", errors);
    (void)vfprintf(errors, format, args);
    (void)fputc('\n', errors);
    va_end(args);
    return ADV_E_INVALID;
}

static adv_code report_unknown(const char *name, const char *where, FILE *errors)
{
    const char *names[SETTINGS_COUNT];
    for (int i = 0; i < SETTINGS_COUNT; i++) names[i] = settings[i].name;
    const char *nearest = adv_text_nearest(name, names, SETTINGS_COUNT);
    return refuse(errors, "%s: there is no setting '%s'%s%s%s", where, name,
                  nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* A secret that is not there must stop the start: without its database's URL a daemon would run and store
 * nothing. */
static adv_code read_first_line(const char *path, char *value, const char *where, FILE *errors)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        return refuse(errors, "%s: cannot read %s: %s", where, path, strerror(errno));
    }
    errno = 0;
    if (!fgets(value, ADV_LIMIT_SETTING, file)) value[0] = '\0';
    const int failure = ferror(file) ? errno : 0; /* of a folder, say */
    const size_t length = strcspn(value, "\r\n");
    const bool is_whole = value[length] != '\0' || fgetc(file) == EOF;
    value[length] = '\0';
    (void)fclose(file);
    if (failure) return refuse(errors, "%s: cannot read %s: %s", where, path, strerror(failure));
    if (!is_whole)
        return refuse(errors, "%s: the first line of %s is longer than %d bytes", where, path,
                      ADV_LIMIT_SETTING - 1);
    if (length == 0) return refuse(errors, "%s: the first line of %s is empty", where, path);
    return ADV_OK;
}

static bool parse_bool(const char *value, bool *result)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", "0", "1"};
    for (int i = 0; i < 8; i++) {
        if (strcmp(value, words[i]) != 0) continue;
        *result = i % 2 == 1;
        return true;
    }
    return false;
}

static adv_code set(struct adv_daemon_config *config, const struct setting *setting, const char *value,
                    const char *where, FILE *errors)
{
    void *field = (char *)config + setting->offset;
    if (setting->type == SETTING_TEXT || setting->type == SETTING_SECRET) {
        if (strlen(value) >= ADV_LIMIT_SETTING) {
            return refuse(errors, "%s: %s is longer than %d bytes", where, setting->name,
                          ADV_LIMIT_SETTING - 1);
        }
        memcpy(field, value, strlen(value) + 1);
        return ADV_OK;
    }
    if (setting->type == SETTING_BOOL) {
        if (parse_bool(value, field)) return ADV_OK;
        return refuse(errors, "%s: %s is true or false, not '%s'", where, setting->name, value);
    }
    char *end = NULL;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end || number < setting->min || number > setting->max) {
        return refuse(errors, "%s: %s is a whole number from %ld to %ld, not '%s'", where, setting->name,
                      setting->min, setting->max, value);
    }
    memcpy(field, &number, sizeof number);
    return ADV_OK;
}

static adv_code set_named(struct adv_daemon_config *config, const char *name, const char *value,
                          const char *where, FILE *errors)
{
    bool from_file = false;
    const struct setting *setting = find_setting(name, &from_file);
    if (!setting) return report_unknown(name, where, errors);
    if (!from_file) return set(config, setting, value, where, errors);
    char content[ADV_LIMIT_SETTING];
    adv_code code = read_first_line(value, content, where, errors);
    return code ? code : set(config, setting, content, where, errors);
}

static char *trim(char *text)
{
    while (isspace((unsigned char)*text)) text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1])) text[--length] = '\0';
    return text;
}

/* Whether fgets had room for the line; what is left of one that is too long is passed over, as it is no line
 * of its own. */
static bool is_whole_line(const char *line, FILE *file)
{
    if (strchr(line, '\n')) return true;
    int next = fgetc(file);
    const bool is_whole = next == EOF;
    while (next != EOF && next != '\n') next = fgetc(file);
    return is_whole;
}

static adv_code load_file(struct adv_daemon_config *config, const char *path, FILE *errors)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        return refuse(errors, "cannot read the settings in %s: %s", path, strerror(errno));
    }
    adv_code result = ADV_OK;
    char line[2 * ADV_LIMIT_SETTING];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        char where[ADV_LIMIT_SETTING + 32];
        (void)snprintf(where, sizeof where, "%.480s, line %d", path, number);
        if (!is_whole_line(line, file)) {
            result = refuse(errors, "%s: the line is longer than %zu bytes", where, sizeof line - 2);
            continue;
        }
        char *name = trim(line);
        if (*name == '\0' || *name == '#') continue;
        char *equals = strchr(name, '=');
        if (!equals) {
            result = refuse(errors, "%s: expected NAME = VALUE", where);
            continue;
        }
        *equals = '\0';
        adv_code code = set_named(config, trim(name), trim(equals + 1), where, errors);
        if (code) result = code;
    }
    if (ferror(file)) result = refuse(errors, "cannot read the settings in %s: %s", path, strerror(errno));
    (void)fclose(file);
    return result;
}

/* What Kubernetes tells every pod of a namespace about a Service called tpu-advisor, or tpu-advisor-…:
 * …SERVICE_HOST, …SERVICE_PORT, …SERVICE_PORT_HTTP, …PORT=tcp://10.0.0.1:80, …PORT_80_TCP_ADDR. No setting is
 * called so. */
static bool is_of_a_service(const char *name, const char *value)
{
    const char *port = strstr(name, "PORT");
    if (strstr(name, "SERVICE_HOST") || strstr(name, "SERVICE_PORT")) return true;
    return port && (port == name || port[-1] == '_') &&
           ((!port[4] && strstr(value, "://")) || (port[4] == '_' && isdigit((unsigned char)port[5])));
}

/* A secret that is in the environment as itself and as a file: which of the two counted would be left to
 * chance. One that is empty is not meant. */
static bool has_file_beside(const char *name, const char *value, char *const *environment, bool *refused)
{
    char other[128];
    bool from_file = false;
    const struct setting *setting = find_setting(name, &from_file);
    *refused = false;
    if (!setting || from_file || setting->type != SETTING_SECRET) return false;
    const int length = snprintf(other, sizeof other, ENVIRONMENT_PREFIX "%s_FILE=", name);
    for (; *environment; environment++)
        if (strncmp(*environment, other, (size_t)length) == 0) {
            *refused = *value != '\0';
            return true;
        }
    return false;
}

static adv_code load_environment(struct adv_daemon_config *config, char *const *environment, FILE *errors)
{
    adv_code result = ADV_OK;
    size_t prefix = strlen(ENVIRONMENT_PREFIX);
    for (char *const *variable = environment; *variable; variable++) {
        if (strncmp(*variable, ENVIRONMENT_PREFIX, prefix) != 0) continue;
        const char *equals = strchr(*variable, '=');
        if (!equals) continue;
        char name[64];
        bool refused = false;
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *variable - (long)prefix),
                       *variable + prefix);
        if (strcmp(name, "CONFIG") == 0) continue;                            /* read before this one */
        if (strcmp(name, "URL") == 0 || strcmp(name, "TOKEN") == 0) continue; /* of `tpu-advisor check` */
        if (is_of_a_service(name, equals + 1)) continue;
        if (has_file_beside(name, equals + 1, environment, &refused)) {
            if (refused)
                result = refuse(errors,
                                "environment: " ENVIRONMENT_PREFIX "%s and " ENVIRONMENT_PREFIX
                                "%s_FILE are both set; keep one",
                                name, name);
            continue;
        }
        adv_code code = set_named(config, name, equals + 1, "environment " ENVIRONMENT_PREFIX "*", errors);
        if (code) result = code;
    }
    return result;
}

static bool take_action(const char *argument, enum adv_config_action *action)
{
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0)
        *action = ADV_CONFIG_HELP;
    else if (strcmp(argument, "--print-config") == 0)
        *action = ADV_CONFIG_PRINT;
    else if (strcmp(argument, "--print-routes") == 0)
        *action = ADV_CONFIG_ROUTES;
    else
        return false;
    return true;
}

/* The value of a flag without "=": the next argument, of which `at` is then the place. A switch is true
 * alone, or says what it is; no flag is the value of another. NULL: there is none. */
static const char *take_value(const struct setting *setting, const char *next, int *at)
{
    bool ignored = false;
    const bool is_switch = setting && setting->type == SETTING_BOOL;
    if (next && (is_switch ? parse_bool(next, &ignored) : strncmp(next, "--", 2) != 0)) {
        ++*at;
        return next;
    }
    return is_switch ? "true" : NULL;
}

/* One pass over the flags. With `config` NULL it only looks for --config. */
static adv_code walk_flags(struct adv_daemon_config *config, int argc, char **argv, const char **config_path,
                           enum adv_config_action *action, FILE *errors)
{
    adv_code result = ADV_OK;
    for (int i = 1; i < argc; i++) {
        if (take_action(argv[i], action)) continue;
        if (strncmp(argv[i], "--", 2) != 0) {
            if (config) result = refuse(errors, "'%s' is not a setting", argv[i]);
            continue;
        }
        char name[64];
        const char *equals = strchr(argv[i], '=');
        (void)snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - argv[i] - 2) : 60, argv[i] + 2);
        bool from_file = false;
        const struct setting *setting = find_setting(name, &from_file);
        const char *value = equals ? equals + 1 : NULL;
        if (!value) value = take_value(setting, i + 1 < argc ? argv[i + 1] : NULL, &i);
        if (strcmp(name, "config") == 0 && value && *value) {
            *config_path = value;
        } else if (strcmp(name, "config") == 0) {
            if (config) result = refuse(errors, "--config needs a file");
        } else if (config && !setting) {
            result = report_unknown(name, "command line", errors);
        } else if (config && !value) {
            result = refuse(errors, "--%s needs a value", name);
        } else if (config) {
            adv_code code = set_named(config, name, value, "command line", errors);
            if (code) result = code;
        }
    }
    return config ? result : ADV_OK;
}

static adv_code check_together(const struct adv_daemon_config *config, FILE *errors)
{
    char host[ADV_LIMIT_SETTING];
    char port[6];
    atomic_int level;
    if (!adv_log_level_parse(config->log_level, &level)) {
        return refuse(errors, "log_level is debug, info, warning or error, not '%s'", config->log_level);
    }
    if (!adv_config_address(config->listen, host, port)) {
        return refuse(errors, "listen is address:port, not '%s'", config->listen);
    }
    if (config->tokens_database && !config->database_url[0]) {
        return refuse(errors, "tokens_database needs a database_url");
    }
    if (!config->insecure && !config->tokens_file[0] && !config->tokens_database &&
        !adv_config_is_loopback(host)) {
        return refuse(errors,
                      "%s can be reached from other machines and no tokens are set; give --tokens-file, "
                      "listen on 127.0.0.1, or say --insecure",
                      config->listen);
    }
    return ADV_OK;
}

adv_code adv_config_load(struct adv_daemon_config *config, int argc, char **argv, char *const *environment,
                         enum adv_config_action *action, FILE *errors)
{
    memset(config, 0, sizeof *config);
    *action = ADV_CONFIG_RUN;
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        adv_code code = set(config, &settings[i], settings[i].preset, "default", errors);
        if (code) return code;
    }
    const char *path = NULL;
    for (char *const *variable = environment; *variable; variable++)
        if (strncmp(*variable, ENVIRONMENT_PREFIX "CONFIG=", strlen(ENVIRONMENT_PREFIX "CONFIG=")) == 0)
            path = strchr(*variable, '=') + 1;
    adv_code code = walk_flags(NULL, argc, argv, &path, action, errors);
    if (*action == ADV_CONFIG_HELP) return ADV_OK;
    if (!code && path && *path) code = load_file(config, path, errors);
    adv_code environment_code = load_environment(config, environment, errors);
    adv_code flags_code = walk_flags(config, argc, argv, &path, action, errors);
    if (!code) code = environment_code;
    if (!code) code = flags_code;
    return code ? code : check_together(config, errors);
}

static bool differs(const struct setting *setting, const struct adv_daemon_config *before,
                    const struct adv_daemon_config *after)
{
    const char *a = (const char *)before + setting->offset, *b = (const char *)after + setting->offset;
    if (setting->type == SETTING_TEXT || setting->type == SETTING_SECRET) return strcmp(a, b) != 0;
    return memcmp(a, b, setting->type == SETTING_BOOL ? sizeof(bool) : sizeof(long)) != 0;
}

void adv_config_differences(const struct adv_daemon_config *before, const struct adv_daemon_config *after,
                            bool live, char names[ADV_LIMIT_SETTING])
{
    size_t used = 0;
    names[0] = '\0';
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        if ((settings[i].when == SETTING_LIVE) != live || !differs(&settings[i], before, after)) continue;
        used += (size_t)snprintf(names + used, ADV_LIMIT_SETTING - used, "%s%s", used ? " " : "",
                                 settings[i].name);
        if (used >= ADV_LIMIT_SETTING) return;
    }
}

void adv_config_help(FILE *out, const char *command)
{
    (void)fprintf(
        out,
        "usage: tpu-advisor %s [--SETTING VALUE ...] [--config FILE] [--print-config] [--print-routes]\n\n"
        "A setting is a flag, a line NAME = VALUE of the file, or the variable TPU_ADVISOR_NAME; flags win "
        "over\n"
        "variables, variables over the file. A secret may be given as a file: --database-url-file PATH.\n\n",
        command);
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        char flag[64];
        (void)snprintf(flag, sizeof flag, "--%s", settings[i].name);
        for (char *at = flag; *at; at++)
            if (*at == '_') *at = '-';
        const char *unit = settings[i].type == SETTING_SECONDS ? " s" : "";
        (void)fprintf(out, "  %-22s %s [%s%s]\n", flag, settings[i].help, settings[i].preset, unit);
    }
}

void adv_config_print(const struct adv_daemon_config *config, FILE *out)
{
    for (int i = 0; i < SETTINGS_COUNT; i++) {
        const void *field = (const char *)config + settings[i].offset;
        const enum setting_type type = settings[i].type;
        char number[24];
        const char *text = field;
        if (type == SETTING_SECRET) text = *text ? "***" : "";
        if (type == SETTING_BOOL) text = *(const bool *)field ? "true" : "false";
        if (type == SETTING_COUNT || type == SETTING_SECONDS) {
            (void)snprintf(number, sizeof number, "%ld", *(const long *)field);
            text = number;
        }
        (void)fprintf(out, "%s = %s\n", settings[i].name, text);
    }
}

bool adv_config_address(const char *listen, char *host, char *port)
{
    const char *colon = strrchr(listen, ':');
    if (!colon || colon == listen) return false;
    size_t port_length = strlen(colon + 1);
    if (port_length == 0 || port_length > 5 || strspn(colon + 1, "0123456789") != port_length) return false;
    if (strtol(colon + 1, NULL, 10) > 65535) return false;
    const char *start = listen;
    size_t length = (size_t)(colon - listen);
    if (listen[0] == '[') {
        if (colon[-1] != ']') return false;
        start++;
        length -= 2;
    } else if (memchr(listen, ':', length)) {
        return false; /* an IPv6 address needs brackets */
    }
    if (length == 0 || length >= ADV_LIMIT_SETTING) return false;
    memcpy(host, start, length);
    host[length] = '\0';
    memcpy(port, colon + 1, port_length + 1);
    return true;
}

bool adv_config_is_loopback(const char *host)
{
    return strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0 || strcmp(host, "localhost") == 0;
}
