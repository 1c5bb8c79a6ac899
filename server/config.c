#include "server/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"

enum setting_type { SETTING_TEXT, SETTING_SECRET, SETTING_BOOL, SETTING_COUNT, SETTING_SECONDS };

struct setting {
    const char *name; /* with underscores; the flag has dashes */
    enum setting_type type;
    size_t offset;
    const char *preset;
    long min, max;
    const char *help;
    bool live; /* taken over by SIGHUP */
};

#define FIELD(name) offsetof(struct adv_daemon_config, name)

static const struct setting settings[] = {
    {"listen", SETTING_TEXT, FIELD(listen), "127.0.0.1:8080", 0, 0, "address:port; port 0 takes a free one",
     false},
    {"database_url", SETTING_SECRET, FIELD(database_url), "", 0, 0,
     "PostgreSQL, postgresql://user@host/name or key=value words; empty: nothing is stored", false},
    {"tokens_file", SETTING_TEXT, FIELD(tokens_file), "", 0, 0,
     "bearer tokens: lines of NAME SCOPE[,SCOPE] SHA256; scopes read, write, admin", false},
    {"tokens_database", SETTING_BOOL, FIELD(tokens_database), "false", 0, 0,
     "bearer tokens from the database: `tpu-advisor token create`", false},
    {"catalog", SETTING_TEXT, FIELD(catalog), "", 0, 0,
     "folder of catalog files that replace the built-in ones", false},
    {"log_level", SETTING_TEXT, FIELD(log_level), "info", 0, 0, "debug, info, warning or error", true},
    {"log_file", SETTING_TEXT, FIELD(log_file), "", 0, 0, "file to append the log to; empty: standard error",
     false},
    {"hosts", SETTING_TEXT, FIELD(hosts), "", 0, 0,
     "without tokens: names it goes by beside addresses and names without dots; * any", true},
    {"insecure", SETTING_BOOL, FIELD(insecure), "false", 0, 0, "listen beyond loopback without tokens",
     false},
    {"auto_migrate", SETTING_BOOL, FIELD(auto_migrate), "true", 0, 0, "apply database migrations at start",
     false},
    {"http_threads", SETTING_COUNT, FIELD(http_threads_count), "0", 0, 64,
     "threads that speak HTTP; 0: one per processor", false},
    {"workers", SETTING_COUNT, FIELD(workers_count), "0", 0, 256,
     "threads that search (advise, tune); 0: one per processor", false},
    {"quick_workers", SETTING_COUNT, FIELD(quick_workers_count), "0", 0, 256,
     "threads for what takes milliseconds (estimate, simulate, lint); 0: one per processor", false},
    {"plans", SETTING_COUNT, FIELD(plans_count), "640", 0, 1000000,
     "machines times top_k that one request may ask for, twice with sensitivities; 0: no limit", true},
    {"store_workers", SETTING_COUNT, FIELD(store_workers_count), "4", 1, 64,
     "threads that wait for the database, each with a connection", false},
    {"sweep_workers", SETTING_COUNT, FIELD(sweep_workers_count), "1", 0, 256,
     "threads that work off sweeps, behind all others; 0: other daemons do", false},
    {"cache_mib", SETTING_COUNT, FIELD(cache_mib), "64", 0, 65536,
     "MiB of answers kept in memory for questions asked again; 0: none", false},
    {"queue", SETTING_COUNT, FIELD(queue_count), "256", 1, 65536, "requests that may wait for a worker",
     false},
    {"connections", SETTING_COUNT, FIELD(connections_count), "1024", 4, 65536, "open connections", false},
    {"connections_per_ip", SETTING_COUNT, FIELD(connections_per_ip_count), "-1", -1, 65536,
     "open connections of one address; 0: any, -1: three quarters of all, any when listening on loopback",
     false},
    {"request_timeout", SETTING_SECONDS, FIELD(request_timeout_s), "10", 1, 3600,
     "time to send a whole request", true},
    {"idle_timeout", SETTING_SECONDS, FIELD(idle_timeout_s), "15", 1, 3600,
     "time between requests of one connection", false},
    {"deadline", SETTING_SECONDS, FIELD(deadline_s), "30", 1, 3600, "time to answer, waiting included", true},
    {"queue_wait", SETTING_SECONDS, FIELD(queue_wait_s), "2", 1, 3600, "time to wait for a worker; then 503",
     true},
    {"address_rate", SETTING_COUNT, FIELD(address_rate_per_s), "-1", -1, 1000000,
     "requests per second of one address, five times that at once; 0: any, -1: 200 beyond loopback", true},
    {"token_rate", SETTING_COUNT, FIELD(token_rate_per_s), "0", 0, 1000000,
     "requests per second of one token, five times that at once; 0: any", true},
    {"keep_days", SETTING_COUNT, FIELD(keep_days_count), "0", 0, 36500,
     "days after which runs are deleted that are neither baselines nor measured; 0: never", false},
    {"restore_days", SETTING_COUNT, FIELD(restore_days_count), "30", 0, 36500,
     "days in which a deleted run can be restored; then it is purged", false},
    {"drain_delay", SETTING_SECONDS, FIELD(drain_delay_s), "0", 0, 600,
     "after SIGTERM: not ready but listening, so that load balancers look away", false},
    {"drain_deadline", SETTING_SECONDS, FIELD(drain_deadline_s), "20", 0, 600,
     "after SIGTERM: time for requests under way", false},
    {"compiler", SETTING_TEXT, FIELD(compiler), "", 0, 0,
     "verifier: a program that answers in place of the installed MaxText", false},
    {"compile_env", SETTING_TEXT, FIELD(compile_env), "", 0, 0,
     "verifier: folder of the installed MaxText; empty: below ~/.cache", false},
    {"compile_timeout", SETTING_SECONDS, FIELD(compile_timeout_s), "900", 1, 86400,
     "verifier: time for one compile", false},
    {"compile_memory_gib", SETTING_COUNT, FIELD(compile_memory_gib), "16", 1, 65536,
     "verifier: GiB of this machine that one compile may hold", false},
    {"lease", SETTING_SECONDS, FIELD(lease_s), "30", 1, 3600,
     "verifier: silence after which another takes its plan", false},
    {"until_empty", SETTING_BOOL, FIELD(until_empty), "false", 0, 0, "verifier: leave when no plan waits",
     false},
};

#define SETTINGS_COUNT     ((int)(sizeof settings / sizeof settings[0]))
#define ENVIRONMENT_PREFIX "TPU_ADVISOR_"

static void *field_of(struct adv_daemon_config *config, const struct setting *setting)
{
    return (char *)config + setting->offset;
}

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

static adv_code report_unknown(const char *name, const char *where, FILE *errors)
{
    const char *names[SETTINGS_COUNT];
    for (int i = 0; i < SETTINGS_COUNT; i++) names[i] = settings[i].name;
    const char *nearest = adv_text_nearest(name, names, SETTINGS_COUNT);
    (void)fprintf(errors, "tpu-advisor: %s: there is no setting '%s'%s%s%s\n", where, name,
                  nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    return ADV_E_INVALID;
}

static adv_code read_first_line(const char *path, char *value, const char *where, FILE *errors)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        (void)fprintf(errors, "tpu-advisor: %s: cannot read %s: %s\n", where, path, strerror(errno));
        return ADV_E_INVALID;
    }
    if (!fgets(value, ADV_LIMIT_SETTING, file)) value[0] = '\0';
    value[strcspn(value, "\r\n")] = '\0';
    (void)fclose(file);
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
    void *field = field_of(config, setting);
    if (setting->type == SETTING_TEXT || setting->type == SETTING_SECRET) {
        if (strlen(value) >= ADV_LIMIT_SETTING) {
            (void)fprintf(errors, "tpu-advisor: %s: %s is longer than %d bytes\n", where, setting->name,
                          ADV_LIMIT_SETTING - 1);
            return ADV_E_INVALID;
        }
        memcpy(field, value, strlen(value) + 1);
        return ADV_OK;
    }
    if (setting->type == SETTING_BOOL) {
        if (parse_bool(value, field)) return ADV_OK;
        (void)fprintf(errors, "tpu-advisor: %s: %s is true or false, not '%s'\n", where, setting->name,
                      value);
        return ADV_E_INVALID;
    }
    char *end = NULL;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (errno || end == value || *end || number < setting->min || number > setting->max) {
        (void)fprintf(errors, "tpu-advisor: %s: %s is a whole number from %ld to %ld, not '%s'\n", where,
                      setting->name, setting->min, setting->max, value);
        return ADV_E_INVALID;
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

static adv_code load_file(struct adv_daemon_config *config, const char *path, FILE *errors)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        (void)fprintf(errors, "tpu-advisor: cannot read the settings in %s: %s\n", path, strerror(errno));
        return ADV_E_INVALID;
    }
    adv_code result = ADV_OK;
    char line[2 * ADV_LIMIT_SETTING];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        char where[ADV_LIMIT_SETTING + 32];
        (void)snprintf(where, sizeof where, "%.480s, line %d", path, number);
        char *name = trim(line);
        if (*name == '\0' || *name == '#') continue;
        char *equals = strchr(name, '=');
        if (!equals) {
            (void)fprintf(errors, "tpu-advisor: %s: expected NAME = VALUE\n", where);
            result = ADV_E_INVALID;
            continue;
        }
        *equals = '\0';
        adv_code code = set_named(config, trim(name), trim(equals + 1), where, errors);
        if (code) result = code;
    }
    (void)fclose(file);
    return result;
}

static adv_code load_environment(struct adv_daemon_config *config, char *const *environment, FILE *errors)
{
    adv_code result = ADV_OK;
    size_t prefix = strlen(ENVIRONMENT_PREFIX);
    for (; *environment; environment++) {
        if (strncmp(*environment, ENVIRONMENT_PREFIX, prefix) != 0) continue;
        const char *equals = strchr(*environment, '=');
        if (!equals) continue;
        char name[64];
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *environment - (long)prefix),
                       *environment + prefix);
        if (strcmp(name, "CONFIG") == 0) continue;                            /* read before this one */
        if (strcmp(name, "URL") == 0 || strcmp(name, "TOKEN") == 0) continue; /* of `tpu-advisor check` */
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

/* One pass over the flags. With `config` NULL it only looks for --config. */
static adv_code walk_flags(struct adv_daemon_config *config, int argc, char **argv, const char **config_path,
                           enum adv_config_action *action, FILE *errors)
{
    adv_code result = ADV_OK;
    for (int i = 1; i < argc; i++) {
        if (take_action(argv[i], action)) continue;
        if (strncmp(argv[i], "--", 2) != 0) {
            if (config) (void)fprintf(errors, "tpu-advisor: '%s' is not a setting\n", argv[i]);
            result = ADV_E_INVALID;
            continue;
        }
        char name[64];
        const char *equals = strchr(argv[i], '=');
        (void)snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - argv[i] - 2) : 60, argv[i] + 2);
        bool from_file = false;
        const struct setting *setting = find_setting(name, &from_file);
        const char *value = equals ? equals + 1 : NULL;
        if (!value && setting && setting->type == SETTING_BOOL) value = "true";
        if (!value && i + 1 < argc) value = argv[++i];
        if (strcmp(name, "config") == 0) {
            *config_path = value;
        } else if (config && !setting) {
            result = report_unknown(name, "command line", errors);
        } else if (config && !value) {
            (void)fprintf(errors, "tpu-advisor: --%s needs a value\n", name);
            result = ADV_E_INVALID;
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
    if (!adv_config_address(config->listen, host, port)) {
        (void)fprintf(errors, "tpu-advisor: listen is address:port, not '%s'\n", config->listen);
        return ADV_E_INVALID;
    }
    if (config->tokens_database && !config->database_url[0]) {
        (void)fprintf(errors, "tpu-advisor: tokens_database needs a database_url\n");
        return ADV_E_INVALID;
    }
    if (!config->insecure && !config->tokens_file[0] && !config->tokens_database &&
        !adv_config_is_loopback(host)) {
        (void)fprintf(
            errors,
            "tpu-advisor: %s can be reached from other machines and no tokens are set; give --tokens-file, "
            "listen on 127.0.0.1, or say --insecure\n",
            config->listen);
        return ADV_E_INVALID;
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
        if (settings[i].live != live || !differs(&settings[i], before, after)) continue;
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
        const char *field = (const char *)config + settings[i].offset;
        (void)fprintf(out, "%s = ", settings[i].name);
        bool flag = false;
        long number = 0;
        switch (settings[i].type) {
        case SETTING_TEXT:
            (void)fprintf(out, "%s\n", field);
            break;
        case SETTING_SECRET:
            (void)fprintf(out, "%s\n", *field ? "***" : "");
            break;
        case SETTING_BOOL:
            memcpy(&flag, field, sizeof flag);
            (void)fprintf(out, "%s\n", flag ? "true" : "false");
            break;
        case SETTING_COUNT:
        case SETTING_SECONDS:
            memcpy(&number, field, sizeof number);
            (void)fprintf(out, "%ld\n", number);
            break;
        }
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
