#include "engine/emit/script.h"
#include "engine/maxtext/run.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/embed.h"

static int at_least_1(int number)
{
    return number > 0 ? number : 1;
}

static int hosts_per_slice(const struct adv_artifact_source *source)
{
    return at_least_1(source->hosts / at_least_1(source->slices));
}

static int chips_per_host(const struct adv_artifact_source *source)
{
    return at_least_1(source->chips / (at_least_1(source->slices) * hosts_per_slice(source)));
}

bool adv_template_has_xpk_type(const struct adv_artifact_source *source)
{
    const int chips = source->chips / at_least_1(source->slices);
    return !source->nodes || chips == 0 || chips >= source->nodes->xpk_chips;
}

static void put_number(struct adv_text *text, int number)
{
    adv_text_format(text, "%d", number);
}

static void put_slices(struct adv_text *text, const struct adv_artifact_source *source)
{
    put_number(text, at_least_1(source->slices));
}

static void put_hosts(struct adv_text *text, const struct adv_artifact_source *source)
{
    put_number(text, hosts_per_slice(source));
}

static void put_chips(struct adv_text *text, const struct adv_artifact_source *source)
{
    put_number(text, chips_per_host(source));
}

static void put_topology(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_plain(text, source->topology);
}

static void put_topology_word(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_word(text, source->topology);
}

static void put_slice_words(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_word(text, source->chip);
    adv_text_append(text, " ");
    adv_script_word(text, source->topology);
}

static void put_node_label(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_plain(text, source->nodes ? source->nodes->label : source->chip);
}

/* The machine of one host, "ct6e-standard-4t". Source: the toolkit's pkg/config (AcceleratorShorthandMap). */
static void put_compute_type(struct adv_text *text, const struct adv_artifact_source *source)
{
    char type[2 * ADV_LIMIT_NAME];
    (void)snprintf(type, sizeof type, "%.64s-%dt", source->nodes ? source->nodes->machine : source->chip,
                   chips_per_host(source));
    adv_script_word(text, type);
}

static void put_gcluster_flags(struct adv_text *text, const struct adv_artifact_source *source)
{
    if (source->nodes && source->nodes->splits_hosts)
        adv_text_append(text, " --gke-disable-parallel-containers");
}

/* "tpu7x-4x4x4" by shape, where one number of cores has several, "v6e-256" by chips elsewhere. Source:
 * xpk/core/system_characteristics.py. */
static void put_xpk_type(struct adv_text *text, const struct adv_artifact_source *source)
{
    char type[2 * ADV_LIMIT_NAME];
    const char *first = strchr(source->topology, 'x');
    if (source->nodes && first && !strchr(first + 1, 'x'))
        (void)snprintf(type, sizeof type, "%s-%d", source->nodes->xpk,
                       source->chips / at_least_1(source->slices));
    else
        (void)snprintf(type, sizeof type, "%.64s-%.64s", source->nodes ? source->nodes->xpk : source->chip,
                       source->topology);
    adv_script_word(text, type);
}

static void put_accelerator(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_word(text, source->accelerator);
}

static void put_predicted(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_text_format(text, "%.0f", source->row.hbm_bytes_per_device);
}

static void put_limit(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_text_format(text, "%.0f", source->hbm_limit_bytes_per_device);
}

static void put_train(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_command(text, source, "train", "");
}

static void put_compile(struct adv_text *text, const struct adv_artifact_source *source)
{
    static const char slice[] = " \"compile_topology=$TOPOLOGY\" \"compile_topology_num_slices=$SLICES\"";
    char arguments[sizeof slice + 64];
    const bool by_key = adv_maxtext_compiles_flags(source->maxtext);
    (void)snprintf(arguments, sizeof arguments, "%s%s", slice, by_key ? " \"compile_xla_flags=$FLAGS\"" : "");
    if (!by_key) adv_text_append(text, "LIBTPU_INIT_ARGS=\"$FLAGS\" ");
    adv_script_command(text, source, "train_compile", arguments);
}

static void put_headline(struct adv_text *text, const struct adv_artifact_source *source)
{
    adv_script_headline(text, source);
    adv_script_warnings(text, source);
}

static void put_submit_reaching(struct adv_text *text, const struct adv_artifact_source *source)
{
    if (adv_script_asks(source, "RUN_NAME")) adv_text_append(text, "RUN_NAME, ");
    adv_script_reaching(text, source);
}

static void put_run_needed(struct adv_text *text, const struct adv_artifact_source *source)
{
    if (adv_script_asks(source, "RUN_NAME")) adv_text_append(text, "\"${RUN_NAME:?name of the run}\" ");
}

static void put_output_needed(struct adv_text *text, const struct adv_artifact_source *source)
{
    if (adv_script_asks(source, "BASE_OUTPUT_DIRECTORY"))
        adv_text_append(text, "\"${BASE_OUTPUT_DIRECTORY:?gs://bucket/path}\" ");
}

static void put_output_export(struct adv_text *text, const struct adv_artifact_source *source)
{
    if (adv_script_asks(source, "BASE_OUTPUT_DIRECTORY"))
        adv_text_append(text, " BASE_OUTPUT_DIRECTORY=gs://bucket/path");
}

static const struct {
    const char *name;
    void (*put)(struct adv_text *text, const struct adv_artifact_source *source);
} words[] = {
    {"headline", put_headline},
    {"release", adv_script_release},
    {"by_itself", adv_script_by_itself},
    {"libtpu", adv_script_libtpu},
    {"export", adv_script_export},
    {"train", put_train},
    {"compile", put_compile},
    {"submitted", adv_script_submitted},
    {"reaching", adv_script_reaching},
    {"submit_reaching", put_submit_reaching},
    {"run_needed", put_run_needed},
    {"output_needed", put_output_needed},
    {"output_export", put_output_export},
    {"flags_word", adv_script_flags_word},
    {"topology", put_topology},
    {"topology_word", put_topology_word},
    {"slice_words", put_slice_words},
    {"accelerator_word", put_accelerator},
    {"slices", put_slices},
    {"hosts_per_slice", put_hosts},
    {"chips_per_host", put_chips},
    {"node_label", put_node_label},
    {"compute_type", put_compute_type},
    {"gcluster_flags", put_gcluster_flags},
    {"xpk_type", put_xpk_type},
    {"predicted_bytes", put_predicted},
    {"limit_bytes", put_limit},
};

/* A word's text without the line break at its end; further lines begin with `indent` blanks. */
static void put_indented(const struct adv_text *word, size_t indent, struct adv_text *text)
{
    for (size_t i = 0; i < word->length_bytes; i++) {
        const bool ends = word->data[i] == '\n';
        if (ends && i + 1 == word->length_bytes) break;
        adv_text_append_bytes(text, &word->data[i], 1);
        if (ends) adv_text_format(text, "%*s", (int)indent, "");
    }
}

/* False: there is no such word. */
static bool put_word(const char *name, size_t length, size_t indent, const struct adv_artifact_source *source,
                     struct adv_text *text)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].name) != length || strncmp(words[i].name, name, length) != 0) continue;
        struct adv_text word = adv_text_empty(text->limit_bytes);
        words[i].put(&word, source);
        put_indented(&word, indent, text);
        text->overflow = text->overflow || word.overflow;
        adv_text_free(&word);
        return true;
    }
    return false;
}

void adv_template_write(const char *name, const struct adv_artifact_source *source, struct adv_text *text)
{
    const struct adv_embedded_file *file = adv_embedded_templates;
    while (file->name && strcmp(file->name, name) != 0) file++;
    const char *at = (const char *)file->data, *line = at;
    while (file->name && *at) {
        const char *open = strstr(at, "{{"), *close = open ? strstr(open, "}}") : NULL;
        if (!close) break;
        for (const char *c = at; c < open; c++)
            if (*c == '\n') line = c + 1;
        const size_t column = (size_t)(open - line);
        const bool begins = strspn(line, " ") >= column;
        adv_text_append_bytes(text, at, (size_t)(open - at));
        if (!put_word(open + 2, (size_t)(close - open - 2), begins ? column : 0, source, text))
            adv_text_append_bytes(text, open, (size_t)(close + 2 - open));
        at = close + 2;
    }
    if (file->name) adv_text_append(text, at);
}
