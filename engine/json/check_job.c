#include "engine/json/check_job.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/json/encode_common.h"
#include "engine/maxtext/names.h"
#include "engine/json/decode_recipe.h"
#include "engine/json/decode_text.h"

#define LINES_LIMIT_BYTES (64u * 1024u)

/* A whole request names its model or its cluster beside the configuration. */
static bool is_request(const json_t *root)
{
    return json_is_object(json_object_get(root, "config")) &&
           (json_object_get(root, "model") || json_object_get(root, "cluster"));
}

static json_t *cluster_of(const json_t *config, const struct adv_check_spec *spec)
{
    const char *name = spec->accelerator
                           ? spec->accelerator
                           : json_string_value(json_object_get(config, ADV_NAME_COMPILE_TOPOLOGY));
    const json_t *slices = json_object_get(config, ADV_NAME_COMPILE_TOPOLOGY_NUM_SLICES);
    json_t *cluster = name ? json_pack("{s:s}", "accelerator", name) : NULL;
    if (cluster && json_is_integer(slices)) {
        const json_int_t count = json_integer_value(slices);
        if (count > 0) (void)json_object_set_new(cluster, "slices", json_integer(count));
    }
    return cluster;
}

/* Fills in what the document does not say; `root` is changed. */
static adv_code complete(json_t *root, const struct adv_check_spec *spec, adv_err *err)
{
    const json_t *config = json_object_get(root, "config");
    const bool is_recipe = json_object_get(root, "recipe") != NULL; /* which may say both */
    if (!is_recipe && !json_object_get(root, "model")) {
        json_t *name = json_object_get(config, ADV_NAME_MODEL_NAME);
        if (json_is_string(name))
            (void)json_object_set(root, "model", name);
        else
            ADV_REFUSE(err, "/model", "write model_name into the configuration",
                       "the candidate names no model");
    }
    if (!json_object_get(root, "cluster")) {
        json_t *cluster = cluster_of(config, spec);
        if (cluster)
            (void)json_object_set_new(root, "cluster", cluster);
        else if (!is_recipe)
            ADV_REFUSE(err, "/cluster", "say --accelerator v6e-256, or write compile_topology",
                       "the candidate names no cluster");
    }
    return err->code;
}

/* JSON or YAML as it is; another text is a recipe, which the daemon reads. */
static adv_code read_text(const char *text, size_t text_bytes, json_t **root, adv_err *err)
{
    text = adv_json_after_mark(text, &text_bytes);
    const char *zero = memchr(text, '\0', text_bytes);
    if (zero)
        return adv_err_add(err, ADV_E_SYNTAX, "", "a configuration as JSON, YAML or a script",
                           "byte %td is zero: that is no text", zero - text);
    const size_t blank = strspn(text, " \t\r\n");
    const bool is_json = text[blank] == '{' || text[blank] == '[';
    if (text[blank] == '\0')
        return adv_err_add(err, ADV_E_SYNTAX, "", "a configuration as JSON, YAML or a script",
                           "the document is empty");
    adv_code code = ADV_OK;
    if (is_json)
        code = adv_json_parse(text, text_bytes, root, err);
    else if (adv_text_is_yaml(text, text_bytes))
        code = adv_decode_yaml(text, text_bytes, root, err);
    if (code) return code;
    if (*root && !adv_recipe_is_manifest(*root)) {
        *root = adv_text_as_request(*root);
        return ADV_OK;
    }
    json_decref(*root);
    *root = json_pack("{s:s%}", "recipe", text, text_bytes);
    return *root ? ADV_OK : adv_err_add(err, ADV_E_SYNTAX, "", NULL, "the text is not UTF-8");
}

static adv_code read_candidate(const struct adv_check_spec *spec, const char *text, size_t text_bytes,
                               json_t **candidate, adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    adv_code code = read_text(text, text_bytes, &root, err);
    if (code) return code;
    json_t *config = json_object_get(root, "config");
    json_t *request =
        is_request(config) ? config : root; /* a request in YAML was taken for a configuration */
    code = json_is_object(request) ? complete(request, spec, err)
                                   : adv_err_add(err, ADV_E_INVALID, "", NULL, "the candidate is no object");
    if (code == ADV_OK) *candidate = json_incref(request);
    return code;
}

static void name_as(json_t *candidate, const char *member, const char *name)
{
    if (name) (void)json_object_set_new(candidate, member, json_string(name));
}

/* How the candidate is stored: of what it says itself, the commit and the tags go before what the pipeline
 * says. Its project and label are the baseline's: as another's it could never be what the next is compared
 * with. */
static void name_run(json_t *candidate, const struct adv_check_spec *spec)
{
    if (!json_object_get(candidate, "git_ref")) name_as(candidate, "git_ref", spec->git_ref);
    if (spec->store) {
        if (!json_object_get(candidate, "store")) (void)json_object_set_new(candidate, "store", json_true());
        name_as(candidate, "project", spec->baseline_project);
        name_as(candidate, "label", spec->baseline_label);
    }
    json_t *tags = json_object_get(candidate, "tags");
    if (!tags && spec->tags_count > 0) {
        tags = json_array();
        (void)json_object_set_new(candidate, "tags", tags);
    }
    for (int i = 0; json_is_array(tags) && i < spec->tags_count; i++) {
        bool is_there = false;
        for (size_t j = 0; j < json_array_size(tags); j++) {
            const char *tag = json_string_value(json_array_get(tags, j));
            is_there |= tag && strcmp(tag, spec->tags[i]) == 0;
        }
        if (!is_there) (void)json_array_append_new(tags, json_string(spec->tags[i]));
    }
}

static json_t *limits_of(const struct adv_check_spec *spec)
{
    json_t *limits = json_object();
    for (int i = 0; i < spec->limits_count; i++)
        (void)json_object_set_new(limits, spec->limits[i].name, json_real(spec->limits[i].frac));
    (void)json_object_set_new(limits, "must_fit", json_boolean(!spec->may_not_fit));
    if (spec->must_compile) (void)json_object_set_new(limits, "must_compile", json_true());
    return limits;
}

adv_code adv_check_body(const struct adv_check_spec *spec, const char *text, size_t text_bytes, char **body,
                        adv_err *err)
{
    json_t *candidate = NULL;
    adv_code code = read_candidate(spec, text, text_bytes, &candidate, err);
    if (code) return code;
    name_run(candidate, spec);
    const char *run_id = spec->stand_in_run_id ? spec->stand_in_run_id : spec->baseline_run_id;
    json_t *baseline =
        run_id ? json_pack("{s:s}", "run_id", run_id)
               : json_pack("{s:s, s:s}", "project", spec->baseline_project, "label", spec->baseline_label);
    ADV_JSON_OWN json_t *root = json_pack("{s:o, s:o, s:o, s:o, s:b}", "baseline", baseline, "candidate",
                                          candidate, "limits", limits_of(spec), "allow_unlike",
                                          adv_encode_strings(spec->unlike, spec->unlike_count), "reports", 1);
    *body = root ? json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    return *body ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the check");
}

static char *take_text(json_t *root, const char *member)
{
    const char *value = json_string_value(json_object_get(root, member));
    return value ? strdup(value) : NULL;
}

/* The run that the check was against, where a note says that it stands in for a baseline. */
static char *take_stand_in(const json_t *root)
{
    const json_t *notes = json_object_get(root, "notes");
    for (struct adv_json_walk note = {.in = notes}; adv_json_next(&note);) {
        const char *code = json_string_value(json_object_get(note.value, "code"));
        if (code && strcmp(code, "stand_in_baseline") == 0)
            return take_text(json_object_get(root, "baseline"), "run_id");
    }
    return NULL;
}

bool adv_check_answer_read(const char *text, size_t text_bytes, struct adv_check_answer *answer)
{
    ADV_JSON_OWN json_t *root = adv_json_load(text, text_bytes, JSON_REJECT_DUPLICATES, NULL);
    json_t *reports = json_object_get(root, "reports");
    const char *verdict = json_string_value(json_object_get(root, "verdict"));
    memset(answer, 0, sizeof *answer);
    const bool pass = verdict && strcmp(verdict, "pass") == 0;
    if (reports && (pass || (verdict && strcmp(verdict, "fail") == 0))) {
        answer->pass = pass;
        answer->markdown = take_text(reports, "markdown");
        answer->junit = take_text(reports, "junit");
        answer->stand_in_run_id = take_stand_in(root);
        (void)json_object_del(root, "reports");
        answer->json = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
    }
    if (answer->json && answer->markdown && answer->junit) return true;
    adv_check_answer_free(answer);
    return false;
}

void adv_check_answer_free(struct adv_check_answer *answer)
{
    free(answer->json);
    free(answer->markdown);
    free(answer->junit);
    free(answer->stand_in_run_id);
    memset(answer, 0, sizeof *answer);
}

char *adv_check_problem_lines(const char *text, size_t text_bytes)
{
    ADV_JSON_OWN json_t *root = adv_json_load(text, text_bytes, 0, NULL);
    const json_t *errors = json_object_get(root, "errors");
    struct adv_text lines = adv_text_empty(LINES_LIMIT_BYTES);
    for (struct adv_json_walk error = {.in = errors}; adv_json_next(&error);) {
        const char *pointer = json_string_value(json_object_get(error.value, "pointer"));
        const char *detail = json_string_value(json_object_get(error.value, "detail"));
        const char *hint = json_string_value(json_object_get(error.value, "hint"));
        adv_text_format(&lines, "%s%s%s%s%s\n", pointer ? pointer : "", pointer && *pointer ? ": " : "",
                        detail ? detail : "", hint && *hint ? "; " : "", hint ? hint : "");
    }
    if (lines.length_bytes > 0 && !lines.overflow) return lines.data;
    adv_text_free(&lines);
    return NULL;
}
