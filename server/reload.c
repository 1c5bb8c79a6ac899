#include "server/reload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Settings that were in force once are kept: a request may still read them. */
struct adv_settings {
    struct adv_daemon_config config;
    struct adv_settings *before;
};

bool adv_reload_tokens(struct adv_app *app, FILE *errors)
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
    (void)adv_log_level_parse(config->log_level, &app->log.level); /* it is one: the caller saw to it */
    atomic_store(&app->live, &settings->config);
    struct adv_log_line line;
    adv_log_begin(&app->log, &line, waiting[0] ? ADV_LOG_WARNING : ADV_LOG_INFO, "reloaded");
    adv_log_string(&line, "changed", changed);
    if (waiting[0]) adv_log_string(&line, "need_a_new_start", waiting);
    adv_log_end(&line);
}

void adv_reload(struct adv_app *app, int argc, char **argv)
{
    char *mistakes = NULL;
    size_t mistakes_bytes = 0;
    enum adv_config_action action = ADV_CONFIG_RUN;
    struct adv_daemon_config config;
    atomic_int level;
    FILE *errors = open_memstream(&mistakes, &mistakes_bytes);
    if (!errors) return;
    if (!adv_log_open(&app->log, app->config.log_file))
        (void)fprintf(errors, "cannot open %s: %s\n", app->config.log_file, strerror(errno));
    bool good = adv_config_load(&config, argc, argv, environ, &action, errors) == ADV_OK;
    if (good && !adv_log_level_parse(config.log_level, &level)) {
        (void)fprintf(errors, "log_level is debug, info, warning or error\n");
        good = false;
    }
    const bool has_tokens = adv_reload_tokens(app, errors);
    (void)fclose(errors);
    if (good) take_over(app, &config);
    if (!has_tokens) adv_log_message(&app->log, ADV_LOG_ERROR, "reload: the tokens stay as they were");
    if (mistakes) log_lines(&app->log, mistakes);
    free(mistakes);
}

void adv_reload_free(struct adv_app *app)
{
    while (app->reloaded) {
        struct adv_settings *before = app->reloaded->before;
        free(app->reloaded);
        app->reloaded = before;
    }
}
