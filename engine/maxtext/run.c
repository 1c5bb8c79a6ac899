#include "engine/maxtext/run.h"

#include <string.h>

#include "engine/maxtext/write.h"

const struct adv_run_setting adv_run_settings[ADV_RUN_SETTINGS] = {
    {"run_name", "RUN_NAME", NULL},
    {"base_output_directory", "BASE_OUTPUT_DIRECTORY", NULL},
    {"dataset_type", "DATASET_TYPE", "synthetic"},
    {"steps", "STEPS", "30"},
    {"enable_checkpointing", NULL, "false"},
    {"save_checkpoint_on_completion", NULL, "false"},
};

void adv_maxtext_release(const char *version, struct adv_text *text)
{
    adv_text_append(text, "MaxText ");
    adv_text_append(text, version);
    adv_text_append(text, strcmp(version, ADV_MAXTEXT_VERSION) == 0
                              ? " (PyPI; keys of commit " ADV_MAXTEXT_COMMIT ")"
                              : " (PyPI)");
}

const char *adv_maxtext_modules(const char *version)
{
    return strcmp(version, "0.1.0") == 0 ? "MaxText" : ADV_MAXTEXT_MODULES;
}

static bool says(const struct adv_config *config, const char *key)
{
    const char *value = adv_config_find(config, key);
    return value && strcmp(value, "\"\"") != 0 && strcmp(value, "null") != 0 && strcmp(value, "false") != 0;
}

bool adv_run_setting_is_settled(const struct adv_config *config, int setting)
{
    static const char *const checkpointing[] = {"enable_checkpointing", "load_full_state_path",
                                                "enable_emergency_checkpoint",
                                                "enable_multi_tier_checkpointing"};
    if (adv_config_find(config, adv_run_settings[setting].key)) return true;
    if (!strstr(adv_run_settings[setting].key, "checkpoint")) return false;
    for (size_t i = 0; i < sizeof checkpointing / sizeof *checkpointing; i++)
        if (says(config, checkpointing[i])) return true;
    return false;
}

void adv_config_bare_value(const char *json, struct adv_text *text)
{
    bool list = json[0] == '[';
    for (const char *at = json; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            if (*at == '"' || *at == '\\' || *at == '/') adv_text_append_bytes(text, at, 1);
            continue; /* other escapes are control characters */
        }
        if (*at == '"' || (list && *at == ' ')) continue;
        adv_text_append_bytes(text, at, 1);
    }
}
