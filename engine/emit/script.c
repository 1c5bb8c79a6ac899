#include "engine/emit/script.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/maxtext/write.h"

void adv_script_plain(struct adv_text *text, const char *string)
{
    for (const char *at = string; *at; at++) {
        char character = iscntrl((unsigned char)*at) ? ' ' : *at;
        adv_text_append_bytes(text, &character, 1);
    }
}

void adv_script_word(struct adv_text *text, const char *string)
{
    adv_text_append(text, "'");
    for (const char *at = string; *at; at++) {
        char character = iscntrl((unsigned char)*at) ? ' ' : *at;
        if (character == '\'')
            adv_text_append(text, "'\\''");
        else
            adv_text_append_bytes(text, &character, 1);
    }
    adv_text_append(text, "'");
}

/* A JSON value as MaxText's command line takes it: strings bare, lists without quotes. */
static void bare_value(const char *json, struct adv_text *text)
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

void adv_script_headline(struct adv_text *text, const struct adv_artifact_source *source)
{
    const struct adv_artifact_row *row = &source->row;
    adv_text_append(text, "# ");
    adv_script_plain(text, source->model);
    adv_text_append(text, " on ");
    adv_script_plain(text, source->chip);
    adv_text_append(text, " ");
    adv_script_plain(text, source->topology);
    if (source->slices > 1) adv_text_format(text, " x %d slices", source->slices);
    adv_text_format(text,
                    ": predicted %.4g s a step (90 %% between %.4g and %.4g), %.1f of %.1f GiB per device\n",
                    row->step_time_s, row->step_time_low_s, row->step_time_high_s,
                    row->hbm_bytes_per_device / ADV_GIB, source->hbm_limit_bytes_per_device / ADV_GIB);
}

void adv_script_flags(struct adv_text *text, const struct adv_config *config)
{
    for (int i = 0; i < config->flags_count; i++) {
        if (i > 0) adv_text_append(text, " ");
        adv_script_plain(text, config->flags[i]);
    }
}

void adv_script_command(struct adv_text *text, const struct adv_artifact_source *source, const char *module,
                        const char *arguments)
{
    static const struct {
        const char *key, *argument;
    } variables[] = {
        {"run_name", "run_name=\"${RUN_NAME}\""},
        {"base_output_directory", "base_output_directory=\"${BASE_OUTPUT_DIRECTORY}\""},
        {"dataset_type", "dataset_type=\"${DATASET_TYPE:-synthetic}\""},
        {"steps", "steps=\"${STEPS:-30}\""},
    };
    adv_text_format(text, "python3 -m maxtext.trainers.pre_train.%s%s ${EXTRA_ARGS:-}", module, arguments);
    for (size_t v = 0; v < sizeof variables / sizeof *variables; v++)
        if (!adv_config_find(&source->config, variables[v].key))
            adv_text_format(text, " \\\n  %s", variables[v].argument);
    for (int i = 0; i < source->config.count; i++) {
        const struct adv_config_entry *entry = &source->config.entries[i];
        struct adv_text argument;
        adv_text_init(&argument, 4096);
        adv_text_format(&argument, "%s=", entry->key);
        bare_value(entry->value_json, &argument);
        adv_text_append(text, " \\\n  ");
        adv_script_word(text, argument.data ? argument.data : "");
        adv_text_free(&argument);
    }
    adv_text_append(text, "\n");
}

void adv_script_export(struct adv_text *text, const struct adv_artifact_source *source)
{
    struct adv_text flags;
    adv_text_init(&flags, 64 * 1024);
    adv_script_flags(&flags, &source->config);
    adv_text_append(text, "export LIBTPU_INIT_ARGS=");
    adv_script_word(text, flags.data ? flags.data : "");
    adv_text_append(text, "\n");
    adv_text_free(&flags);
}
