#include "engine/emit/artifact.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/emit/script.h"
#include "engine/maxtext/run.h"

static void write_xpk(const struct adv_artifact_source *source, struct adv_text *text)
{
    adv_template_write(adv_template_has_xpk_type(source) ? "xpk.sh" : "xpk-refused.sh", source, text);
}

/* Has XLA check the plan's memory before a machine is booked. */
static void write_verify(const struct adv_artifact_source *source, struct adv_text *text)
{
    adv_template_write(*source->accelerator ? "verify.sh" : "verify-refused.sh", source, text);
}

static void put_yaml(struct adv_text *text, const char *key, const char *value_json)
{
    adv_text_format(text, "%s: ", key);
    adv_script_plain(text, value_json); /* JSON values are YAML values */
    adv_text_append(text, "\n");
}

/* What the file cannot say to MaxText, as arguments beside it. */
static void put_beside_file(const struct adv_artifact_source *source, struct adv_text *text)
{
    for (int i = 0; i < source->config.count; i++) {
        if (source->own_file[i] == ADV_OWN_FILE_SAYS) continue;
        adv_text_append(text, " ");
        adv_script_argument(text, &source->config.entries[i]);
    }
}

static bool has_key(const struct adv_artifact_source *source, enum adv_own_file says)
{
    for (int i = 0; i < source->config.count; i++)
        if (source->own_file[i] == says) return true;
    return false;
}

static void put_yaml_head(const struct adv_artifact_source *source, struct adv_text *text)
{
    adv_script_headline(text, source);
    adv_script_warnings(text, source);
    adv_script_release(text, source);
    if (source->config.flags_count > 0) adv_text_append(text, "# First, for its XLA flags: . ./libtpu.env\n");
    if (has_key(source, ADV_OWN_FILE_LOSES))
        adv_text_append(text,
                        "# MaxText's file of the model wins over this one, whatever override_model_config "
                        "says: without the arguments another model is trained.\n");
    if (has_key(source, ADV_OWN_FILE_MISLEADS))
        adv_text_append(text, "# Axis rules in this file would stand in place of all others: they are an "
                              "argument.\n");
    adv_text_format(text, "# python3 -m %s.train maxtext.yml", adv_maxtext_modules(source->maxtext));
    if (adv_script_asks(source, "RUN_NAME")) adv_text_append(text, " run_name=\"${RUN_NAME:-maxtext}\"");
    if (adv_script_asks(source, "BASE_OUTPUT_DIRECTORY"))
        adv_text_append(text, " base_output_directory=\"${BASE_OUTPUT_DIRECTORY:-/tmp/maxtext}\"");
    put_beside_file(source, text);
    adv_text_append(text, "\nbase_config: base.yml\n");
}

/* MaxText reads only files named *.yml. */
static void write_yaml(const struct adv_artifact_source *source, struct adv_text *text)
{
    put_yaml_head(source, text);
    for (int i = 0; i < source->config.count; i++) {
        const struct adv_config_entry *entry = &source->config.entries[i];
        bool simple = entry->key[0] != '\0' && source->own_file[i] != ADV_OWN_FILE_MISLEADS;
        for (const char *at = entry->key; *at; at++)
            simple = simple && (isalnum((unsigned char)*at) || *at == '_');
        if (simple) put_yaml(text, entry->key, entry->value_json); /* else no key of MaxText's */
    }
    adv_script_settings(source, put_yaml, text);
}

/* A Markdown cell: no bars, no line breaks. */
static void put_cell(struct adv_text *text, const char *string)
{
    adv_script_escape(text, string, "|\\<`", "\\");
}

/* A heading and a list, where there is anything to list. */
static void put_sentences(struct adv_text *text, const char *heading, const char *const *sentences, int count)
{
    if (count > 0) adv_text_format(text, "\n## %s\n", heading);
    for (int i = 0; i < count; i++) {
        adv_text_append(text, "- ");
        put_cell(text, sentences[i]);
        adv_text_append(text, "\n");
    }
}

static void write_report(const struct adv_artifact_source *source, struct adv_text *text)
{
    const struct adv_artifact_row *row = &source->row;
    adv_script_headline(text, source);
    adv_text_format(text,
                    "\n%.0f tokens/s per chip, MFU %.1f %%, memory verdict: ", row->tokens_per_s_per_chip,
                    100 * row->mfu_frac);
    adv_script_plain(text, row->verdict);
    adv_text_append(text, ".\n");
    put_sentences(text, "Warnings", source->warnings, source->warnings_count);
    put_sentences(text, "Why this plan", source->why, source->why_count);
    if (source->rows_count > 0)
        adv_text_append(text, "\n## Ranked plans\n| rank | s a step | MFU % | GiB | mesh | batch | "
                              "accumulation | remat |\n|---|---|---|---|---|---|---|---|\n");
    for (int i = 0; i < source->rows_count; i++) {
        const struct adv_artifact_row *other = &source->rows[i];
        adv_text_format(text, "| %d | %.4g | %.1f | %.1f | ", other->rank, other->step_time_s,
                        100 * other->mfu_frac, other->hbm_bytes_per_device / ADV_GIB);
        put_cell(text, other->mesh);
        adv_text_format(text, " | %.6g | %d | ", other->per_device_batch_size,
                        other->gradient_accumulation_steps);
        put_cell(text, other->remat);
        adv_text_append(text, " |\n");
    }
    adv_text_append(text, "\n## Configuration\n| key | value |\n|---|---|\n");
    for (int i = 0; i < source->config.count; i++) {
        adv_text_append(text, "| ");
        put_cell(text, source->config.entries[i].key);
        adv_text_append(text, " | ");
        put_cell(text, source->config.entries[i].value_json);
        adv_text_append(text, " |\n");
    }
    adv_text_append(text, "\n## XLA flags\n");
    for (int i = 0; i < source->config.flags_count; i++) {
        adv_text_append(text, "    ");
        adv_script_plain(text, source->config.flags[i]);
        adv_text_append(text, "\n");
    }
    adv_text_append(text, "\nEngine ");
    adv_script_plain(text, source->engine_version);
    adv_text_append(text, ", for ");
    adv_maxtext_release(source->maxtext, text);
    adv_text_append(text, "\n");
}

/* RFC 4180: in quotes, quotes doubled; a leading = + - @ is kept from being a formula. */
static void put_csv(struct adv_text *text, const char *string)
{
    adv_text_append(text, string[0] != '\0' && strchr("=+-@", string[0]) ? ",\"'" : ",\"");
    adv_script_escape(text, string, "\"", "\"");
    adv_text_append(text, "\"");
}

static void write_table(const struct adv_artifact_source *source, struct adv_text *text)
{
    adv_text_append(text,
                    "rank,tie_group,step_time_s,step_time_low_s,step_time_high_s,tokens_per_s_per_chip,mfu_"
                    "frac,hbm_bytes_per_device,"
                    "per_device_batch_size,gradient_accumulation_steps,fit_verdict,mesh,remat_policy,"
                    "maxtext_release,model,chip,topology,slices\r\n");
    for (int i = 0; i < source->rows_count; i++) {
        const struct adv_artifact_row *row = &source->rows[i];
        adv_text_format(text, "%d,%d,%.9g,%.9g,%.9g,%.9g,%.6g,%.0f,%.9g,%d", row->rank, row->tie_group,
                        row->step_time_s, row->step_time_low_s, row->step_time_high_s,
                        row->tokens_per_s_per_chip, row->mfu_frac, row->hbm_bytes_per_device,
                        row->per_device_batch_size, row->gradient_accumulation_steps);
        put_csv(text, row->verdict);
        put_csv(text, row->mesh);
        put_csv(text, row->remat);
        struct adv_text release = adv_text_empty(text->limit_bytes);
        adv_maxtext_release(source->maxtext, &release);
        put_csv(text, release.data ? release.data : "");
        adv_text_free(&release);
        put_csv(text, source->model);
        put_csv(text, source->chip);
        put_csv(text, source->topology);
        adv_text_format(text, ",%d", source->slices);
        adv_text_append(text, "\r\n");
    }
}

/* Adding an artifact = adding a row, and a template where the text is mostly fixed. */
static const struct {
    const char *name, *media_type;
    void (*write)(const struct adv_artifact_source *source, struct adv_text *text); /* NULL: the template */
} artifacts[] = {
    {"maxtext.sh", "text/x-shellscript", NULL},
    {"maxtext.yml", "application/yaml", write_yaml},
    {"libtpu.env", "text/plain", NULL},
    {"xpk.sh", "text/x-shellscript", write_xpk},
    {"gcluster.sh", "text/x-shellscript", NULL},
    {"jobset.yaml", "application/yaml", NULL},
    {"verify.sh", "text/x-shellscript", write_verify},
    {"report.md", "text/markdown", write_report},
    {"trace.json", "application/json", adv_step_trace_write},
    {"ranked.csv", "text/csv", write_table},
};
enum { ARTIFACTS = sizeof artifacts / sizeof *artifacts };

const char *adv_artifact_current_name(const char *name)
{
    return strcmp(name, "maxtext.yaml") == 0 ? "maxtext.yml" : name; /* what MaxText refuses to read */
}

const char *adv_artifact_name(int index)
{
    return index >= 0 && index < ARTIFACTS ? artifacts[index].name : NULL;
}

const char *adv_artifact_media_type(const char *name)
{
    name = adv_artifact_current_name(name);
    for (int i = 0; i < ARTIFACTS; i++)
        if (!strcmp(artifacts[i].name, name)) return artifacts[i].media_type;
    return NULL;
}

static bool starts_training(const char *media_type)
{
    return strcmp(media_type, "text/x-shellscript") == 0 || strcmp(media_type, "application/yaml") == 0;
}

adv_code adv_artifact_write(const char *name, const struct adv_artifact_source *source, struct adv_text *text,
                            adv_err *err)
{
    name = adv_artifact_current_name(name);
    for (int i = 0; i < ARTIFACTS; i++) {
        if (strcmp(artifacts[i].name, name) != 0) continue;
        if (source->without_maxtext && starts_training(artifacts[i].media_type))
            return adv_err_add(err, ADV_E_UNSUPPORTED, "", "report.md and ranked.csv say what was predicted",
                               "%s would train another model: MaxText has no model file for %.60s", name,
                               source->model);
        if (artifacts[i].write)
            artifacts[i].write(source, text);
        else
            adv_template_write(name, source, text);
        if (text->overflow)
            return adv_err_add(err, ADV_E_MEMORY, "", NULL, "%s would be longer than %zu bytes", name,
                               text->limit_bytes);
        return ADV_OK;
    }
    char known[256] = "";
    for (int i = 0; i < ARTIFACTS; i++)
        adv_append(known, sizeof known, "%s%s", i ? ", " : "", artifacts[i].name);
    return adv_err_add(err, ADV_E_NOT_FOUND, "", known, "there is no artifact \"%.60s\"", name);
}
