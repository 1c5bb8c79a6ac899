#include "engine/maxtext/run.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/maxtext/entries.h"
#include "engine/maxtext/value.h"

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

/* Where a package lies, for a shell: it is found without being started. */
#define BASE_FILE(package)                                                                                   \
    " \"$(python3 -c 'from importlib.util import find_spec; print(find_spec(\"" package                      \
    "\").submodule_search_locations[0])')/configs/base.yml\""

/* Releases that are started otherwise than later ones. Source: pyconfig.py and train_compile.py of each. */
static const struct release {
    const char *version, *modules, *base_file;
    bool saves_inputs; /* refuses decoder_layer_input=remat */
} early_releases[] = {
    {"0.1.0", "MaxText", BASE_FILE("MaxText"), true},
    {"0.2.0", ADV_MAXTEXT_MODULES, BASE_FILE("maxtext"), false},
    {"0.2.1", ADV_MAXTEXT_MODULES, "", false},
};

/* NULL: a later one. */
static const struct release *early(const char *version)
{
    for (size_t i = 0; i < sizeof early_releases / sizeof *early_releases; i++)
        if (strcmp(early_releases[i].version, version) == 0) return &early_releases[i];
    return NULL;
}

const char *adv_maxtext_modules(const char *version)
{
    const struct release *release = early(version);
    return release ? release->modules : ADV_MAXTEXT_MODULES;
}

const char *adv_maxtext_base_file(const char *version)
{
    const struct release *release = early(version);
    return release ? release->base_file : "";
}

bool adv_maxtext_compiles_flags(const char *version)
{
    return !early(version);
}

bool adv_maxtext_recomputes_inputs(const char *version)
{
    const struct release *release = early(version);
    return !release || !release->saves_inputs; /* pyconfig.py:424 of 0.1.0 */
}

bool adv_maxtext_has_activation(const char *name)
{
    static const char *const names[] = {
        "celu",       "elu",     "gelu",       "hard_sigmoid", "hard_silu", "hard_swish",  "hard_tanh",
        "identity",   "linear",  "leaky_relu", "log_sigmoid",  "mish",      "relu",        "relu6",
        "selu",       "sigmoid", "silu",       "soft_sign",    "softplus",  "sparse_plus", "sparse_sigmoid",
        "squareplus", "swish",   "tanh",       "sqrtsoftplus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

bool adv_maxtext_is_base_file(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return strcmp(name, "base.yml") == 0 || strcmp(name, "base.yaml") == 0;
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

/* Whether the command line reads the bare text as this string: it is no number, no word for true or null, and
 * has no mark of YAML, of which a list knows more. */
static bool is_plain(const char *text, size_t bytes, bool in_list)
{
    char word[ADV_LIMIT_NAME];
    if (bytes == 0 || bytes >= sizeof word || !(isalpha((unsigned char)*text) || strchr("_/", *text)))
        return false;
    for (size_t i = 0; i < bytes; i++) {
        const bool is_scheme = bytes - i > 3 && strncmp(text + i, "://", 3) == 0;
        if (!isalnum((unsigned char)text[i]) && !strchr(in_list ? "_./+-" : "_./+-,", text[i]) && !is_scheme)
            return false;
    }
    (void)snprintf(word, sizeof word, "%.*s", (int)bytes, text);
    return adv_value_of_word(word).kind == ADV_VALUE_STRING;
}

void adv_config_bare_value(const char *json, struct adv_text *text)
{
    const bool in_list = *json == '[', has_names = strchr(json, '{') != NULL;
    for (const char *at = json; *at; at++) {
        if (*at != '"') {
            adv_text_append_bytes(text, at, 1);
            continue;
        }
        const char *end = at + 1;
        while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
        const size_t bytes = (size_t)(end - at) - 1;
        if (!has_names && is_plain(at + 1, bytes, in_list))
            adv_text_append_bytes(text, at + 1, bytes);
        else
            adv_text_append_bytes(text, at, bytes + 1 + (*end == '"'));
        if (!*end) return;
        at = end;
    }
}
