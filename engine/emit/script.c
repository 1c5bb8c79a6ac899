#include "engine/emit/script.h"

#include <ctype.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/cost/estimate.h"
#include "engine/maxtext/run.h"

void adv_script_escape(struct adv_text *text, const char *string, const char *special, const char *mark)
{
    for (const char *at = string; *at; at++) {
        if (strchr(special, *at)) adv_text_append(text, mark);
        char character = iscntrl((unsigned char)*at) ? ' ' : *at;
        adv_text_append_bytes(text, &character, 1);
    }
}

void adv_script_plain(struct adv_text *text, const char *string)
{
    adv_script_escape(text, string, "", "");
}

void adv_script_word(struct adv_text *text, const char *string)
{
    adv_text_append(text, "'");
    for (const char *at = string; *at; at++) {
        const char character[] = {*at, '\0'};
        adv_script_escape(text, character, "'", "'\\'");
        if (*at == '$') adv_text_append(text, "''");
    }
    adv_text_append(text, "'");
}

/* A line of its own for what makes the numbers above it worth less. */
static void put_doubt(struct adv_text *text, const char *what, const char *detail)
{
    if (!detail || !detail[0]) return;
    adv_text_format(text, "# %s: ", what);
    adv_script_plain(text, detail);
    adv_text_append(text, "\n");
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
                    ": predicted %.4g s a step (90 %% between %.4g and %.4g), %.1f of %.1f GiB per device",
                    row->step_time_s, row->step_time_low_s, row->step_time_high_s,
                    row->hbm_bytes_per_device / ADV_GIB, source->hbm_limit_bytes_per_device / ADV_GIB);
    const char *verdict = row->verdict ? row->verdict : "";
    if (strcmp(verdict, adv_fit_name(ADV_FIT_NO)) == 0) adv_text_append(text, ": DOES NOT FIT");
    if (strcmp(verdict, adv_fit_name(ADV_FIT_TIGHT)) == 0)
        adv_text_format(text, ": TIGHT, fits with a probability of %.2g", row->fit_probability);
    adv_text_append(text, "\n");
    put_doubt(text, "DOES NOT START", source->over_vmem);
    put_doubt(text, "WHAT-IF HARDWARE", source->what_if);
}

void adv_script_warnings(struct adv_text *text, const struct adv_artifact_source *source)
{
    for (int i = 0; i < source->warnings_count; i++) put_doubt(text, "Warning", source->warnings[i]);
}

void adv_script_release(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_text_append(text, "# For ");
    adv_maxtext_release(source->maxtext, text);
    if (source->jax && *source->jax) {
        adv_text_append(text, ADV_RELEASE_JAX);
        adv_script_plain(text, source->jax);
    }
    if (source->libtpu && *source->libtpu) {
        adv_text_append(text, ADV_RELEASE_LIBTPU);
        adv_script_plain(text, source->libtpu);
    }
    adv_text_append(text, "\n");
}

void adv_script_by_itself(struct adv_text *text, const struct adv_artifact_source *source)
{
    const char *before = "\n# A short run, unless it is told otherwise: ";
    for (int i = 0; i < ADV_RUN_SETTINGS; i++) {
        const struct adv_run_setting *setting = &adv_run_settings[i];
        if (!setting->value || adv_run_setting_is_settled(&source->config, i)) continue;
        adv_text_format(text, "%s%s=%s", before, setting->key, setting->value);
        before = ", ";
    }
}

void adv_script_argument(struct adv_text *text, const struct adv_config_entry *entry)
{
    struct adv_text argument = adv_text_empty(text->limit_bytes);
    adv_text_format(&argument, "%s=", entry->key);
    adv_config_bare_value(entry->value_json, &argument);
    adv_script_word(text, argument.data ? argument.data : "");
    text->overflow = text->overflow || argument.overflow;
    adv_text_free(&argument);
}

/* The answer's keys as arguments, `between` before each. */
static void put_arguments(struct adv_text *text, const struct adv_config *config, const char *between)
{
    for (int i = 0; i < config->count; i++) {
        adv_text_append(text, between);
        adv_script_argument(text, &config->entries[i]);
    }
    for (int i = 0; i < ADV_RUN_SETTINGS; i++)
        if (!adv_run_settings[i].variable && !adv_run_setting_is_settled(config, i))
            adv_text_format(text, "%s%s=%s", between, adv_run_settings[i].key, adv_run_settings[i].value);
}

static bool asks_reader(const struct adv_config *config, int setting)
{
    return adv_run_settings[setting].variable && !adv_run_setting_is_settled(config, setting);
}

/* The settings that are the reader's variables; `in_quotes` is what a value in double quotes starts with. */
static void put_variables(struct adv_text *text, const struct adv_config *config, const char *between,
                          bool key_in_quotes)
{
    for (int i = 0; i < ADV_RUN_SETTINGS; i++) {
        const struct adv_run_setting *setting = &adv_run_settings[i];
        if (!asks_reader(config, i)) continue;
        adv_text_format(text, key_in_quotes ? "%s\"%s=${%s" : "%s%s=\"${%s", between, setting->key,
                        setting->variable);
        if (setting->value) adv_text_format(text, ":-%s", setting->value);
        adv_text_append(text, "}\"");
    }
}

bool adv_script_asks(const struct adv_artifact_source *source, const char *variable)
{
    for (int i = 0; i < ADV_RUN_SETTINGS; i++)
        if (asks_reader(&source->config, i) && strcmp(adv_run_settings[i].variable, variable) == 0)
            return true;
    return false;
}

void adv_script_reaching(struct adv_text *text, const struct adv_artifact_source *source)
{
    for (int i = ADV_RUN_SETTINGS - 1; i >= 0; i--)
        if (adv_run_settings[i].value && asks_reader(&source->config, i))
            adv_text_format(text, "%s, ", adv_run_settings[i].variable);
    adv_text_append(text, "EXTRA_ARGS");
}

void adv_script_command(struct adv_text *text, const struct adv_artifact_source *source, const char *module,
                        const char *arguments)
{
    static const char between[] = " \\\n  ";
    adv_text_format(text, "python3 -m %s.%s%s%s", adv_maxtext_modules(source->maxtext), module,
                    adv_maxtext_base_file(source->maxtext), arguments);
    put_variables(text, &source->config, between, false);
    put_arguments(text, &source->config, between);
    adv_text_format(text, "%s${EXTRA_ARGS:-}\n", between); /* of a key given twice the last counts */
}

void adv_script_flags_word(struct adv_text *text, const struct adv_artifact_source *source)
{
    struct adv_text flags = adv_text_empty(text->limit_bytes);
    for (int i = 0; i < source->config.flags_count; i++) {
        if (i > 0) adv_text_append(&flags, " ");
        adv_script_plain(&flags, source->config.flags[i]);
    }
    adv_script_word(text, flags.data ? flags.data : "");
    text->overflow = text->overflow || flags.overflow;
    adv_text_free(&flags);
}

void adv_script_libtpu(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_text_append(text, "LIBTPU_INIT_ARGS=");
    adv_script_flags_word(text, source);
}

#define PLATFORM "JAX_PLATFORMS=tpu,cpu ENABLE_PJRT_COMPATIBILITY=true"

void adv_script_export(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_text_append(text, "export ");
    adv_script_libtpu(text, source);
    adv_text_append(text, "\nexport " PLATFORM "\n");
}

void adv_script_submitted(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_text_append(text, "read -r COMMAND <<'END_OF_COMMAND'\nset -e && export ");
    adv_script_libtpu(text, source);
    adv_text_format(text, " && export " PLATFORM " && python3 -m %s.train%s",
                    adv_maxtext_modules(source->maxtext), adv_maxtext_base_file(source->maxtext));
    put_arguments(text, &source->config, " ");
    adv_text_append(text, "\nEND_OF_COMMAND\n");
    struct adv_text variables = adv_text_empty(text->limit_bytes);
    put_variables(&variables, &source->config, " ", true);
    if (variables.length_bytes > 0) /* printf would write an empty argument, which MaxText refuses */
        adv_text_format(text, "COMMAND+=$(printf ' %%q'%s)\n", variables.data);
    adv_text_free(&variables);
    adv_text_append(text, "COMMAND+=\"${EXTRA_ARGS:+ ${EXTRA_ARGS}}\"\n");
}

void adv_script_settings(const struct adv_artifact_source *source,
                         void (*put)(struct adv_text *text, const char *key, const char *value_json),
                         struct adv_text *text)
{
    for (int i = 0; i < ADV_RUN_SETTINGS; i++)
        if (adv_run_settings[i].value && !adv_run_setting_is_settled(&source->config, i))
            put(text, adv_run_settings[i].key, adv_run_settings[i].value);
}
