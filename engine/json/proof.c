#include "engine/json/proof.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/units.h"
#include "engine/json/decode_answer.h"
#include "engine/json/encode_common.h"
#include "engine/json/json_read.h"

#define NAME(name, text) text,
static const char *const verdicts[] = {ADV_PROOF_VERDICT_TABLE(NAME)};
#undef NAME

const char *adv_proof_verdict_name(enum adv_proof_verdict verdict)
{
    return verdicts[verdict];
}

/* Not so a template, which may begin with "{{". */
static bool is_object(const char *text, size_t bytes)
{
    text = adv_json_after_mark(text, &bytes);
    size_t at = 0;
    while (at < bytes && isspace((unsigned char)text[at])) at++;
    if (at == bytes || text[at] != '{') return false;
    return at + 1 == bytes || text[at + 1] != '{';
}

adv_code adv_proof_file_kind(const char *text, size_t text_bytes, enum adv_proof_file *kind, adv_err *err)
{
    static const struct {
        const char *member;
        enum adv_proof_file kind;
    } tells[] = {
        {"response", ADV_PROOF_OF_RUN},       {"ranked", ADV_PROOF_OF_ANSWER},
        {"step_time_s", ADV_PROOF_OF_ANSWER}, {"workload", ADV_PROOF_OF_ADVISE},
        {"config", ADV_PROOF_OF_ESTIMATE},    {"recipe", ADV_PROOF_OF_ESTIMATE},
        {"model", ADV_PROOF_OF_ESTIMATE},
    };
    ADV_JSON_OWN json_t *root = NULL;
    *kind = ADV_PROOF_OF_RECIPE;
    if (!is_object(text, text_bytes)) return ADV_OK;
    const adv_code code = adv_json_parse_file_text(text, text_bytes, &root, err);
    if (code) return code;
    size_t at = 0;
    while (at < sizeof tells / sizeof *tells && !json_object_get(root, tells[at].member)) at++;
    if (at == sizeof tells / sizeof *tells)
        return adv_err_add(
            err, ADV_E_INVALID, "",
            "give a recipe, a request of estimate or advise, an answer of theirs, or a stored run",
            "the file holds no plan that could be verified");
    *kind = tells[at].kind;
    return ADV_OK;
}

adv_code adv_proof_run_answer(const char *json, size_t json_bytes, char **answer, adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    const adv_code code = adv_json_parse_file_text(json, json_bytes, &root, err);
    if (code) return code;
    *answer = json_dumps(json_object_get(root, "response"), JSON_COMPACT | JSON_REAL_PRECISION(17));
    return *answer ? ADV_OK : adv_err_add(err, ADV_E_INVALID, "/response", NULL, "the run has no answer");
}

/* The plan as it goes before the compiler. Members are sorted, so that one plan is one text. */
static char *print_plan(const struct adv_artifact_source *source)
{
    ADV_JSON_OWN json_t *plan =
        json_pack("{s:{s:s,s:s,s:i},s:o,s:o}", "cluster", "chip", source->chip, "topology", source->topology,
                  "slices", source->slices > 0 ? source->slices : 1, "config",
                  adv_encode_config(&source->config), "xla_flags", adv_encode_flags(&source->config));
    return plan ? json_dumps(plan, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15)) : NULL;
}

/* The prediction of the plan: members of its estimate. */
static char *print_predicted(const json_t *root, int rank)
{
    const json_t *ranked = json_object_get(root, "ranked");
    const json_t *estimate =
        ranked ? json_object_get(json_array_get(ranked, (size_t)rank - 1), "estimate") : root;
    static const char *const members[][2] = {{"hbm_bytes_per_device", "hbm_bytes_per_device"},
                                             {"hbm_limit_bytes_per_device", "hbm_limit_bytes_per_device"},
                                             {"fit_probability", "fit_probability"},
                                             {"hbm_parts", "parts"}};
    ADV_JSON_OWN json_t *predicted = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        (void)json_object_set(predicted, members[i][1], json_object_get(estimate, members[i][0]));
    (void)json_object_set(predicted, "software", json_object_get(root, "software"));
    return json_dumps(predicted, JSON_COMPACT | JSON_REAL_PRECISION(15));
}

/* Without the model's keys the compiler would be asked about MaxText's default model; of hardware that is not
 * sold it knows nothing. */
static adv_code check_askable(const struct adv_artifact_source *source, const json_t *root, adv_err *err)
{
    const json_t *model = json_object_get(root, "model");
    if (source->what_if[0])
        return adv_err_add(
            err, ADV_E_UNSUPPORTED, "", "verify the same plan without cluster.overrides",
            "the compiler would be asked about other hardware: it knows the published %.20s only",
            source->chip);
    if (source->without_maxtext)
        return adv_err_add(err, ADV_E_UNSUPPORTED, "", "the prediction stands without the compiler's word",
                           "the compiler would be asked about another model: MaxText has no model file for "
                           "%.60s",
                           source->model);
    if (json_object_get(root, "ranked") || json_is_object(json_object_get(model, "config"))) return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, "", "estimate it again, and verify that",
                       "the answer is of a release that did not write the model into it: the compiler would "
                       "be asked about another one");
}

adv_code adv_proof_plan_read(const struct adv_catalog *catalog, const char *answer, size_t answer_bytes,
                             int rank, struct adv_proof_plan *plan, int *ranks_count, adv_err *err)
{
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    memset(plan, 0, sizeof *plan);
    struct adv_artifact_source *source;
    adv_code code = adv_decode_answer(catalog, answer, answer_bytes, rank, &arena, &source, err);
    ADV_JSON_OWN json_t *root = code ? NULL : adv_json_load(answer, answer_bytes, 0, NULL);
    if (code == ADV_OK) code = check_askable(source, root, err);
    if (code == ADV_OK) {
        *ranks_count = source->rows_count;
        plan->plan = print_plan(source);
        plan->predicted = print_predicted(root, rank);
        if (!plan->plan || !plan->predicted)
            code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the plan");
    }
    adv_arena_free(&arena);
    if (code) adv_proof_plan_free(plan);
    return code;
}

void adv_proof_plan_free(struct adv_proof_plan *plan)
{
    free(plan->plan);
    free(plan->predicted);
    memset(plan, 0, sizeof *plan);
}

/* A verdict of "compiles" stands on the bytes of the program: without them it is none. */
static void check_bytes(json_t *result)
{
    const char *verdict = json_string_value(json_object_get(result, "verdict"));
    if (!verdict || strcmp(verdict, verdicts[ADV_PROOF_COMPILES]) != 0 ||
        json_number_value(json_object_get(result, "compiled_hbm_bytes_per_device")) > 0.0)
        return;
    (void)json_object_set_new(result, "verdict", json_string(verdicts[ADV_PROOF_FAILED]));
    (void)json_object_set_new(result, "reason", json_string("the compiler named no bytes of the program"));
}

bool adv_proof_line_read(const char *line, size_t line_bytes, struct adv_proof_line *said)
{
    ADV_JSON_OWN json_t *root = adv_json_load(line, line_bytes, JSON_REJECT_DUPLICATES, NULL);
    json_t *result = json_object_get(root, "result");
    const char *stage = json_string_value(json_object_get(root, "stage"));
    memset(said, 0, sizeof *said);
    (void)snprintf(said->stage, sizeof said->stage, "%s", stage ? stage : "");
    said->seconds = adv_json_number_of(root, "seconds");
    check_bytes(result);
    if (json_is_object(result)) said->result = json_dumps(result, JSON_COMPACT | JSON_REAL_PRECISION(17));
    return stage || said->result;
}

char *adv_proof_failed(const char *reason, bool whole, double seconds)
{
    ADV_JSON_OWN json_t *result = json_pack(
        "{s:s,s:s,s:s,s:f,s:n,s:[],s:[],s:[],s:[],s:[],s:{}}", "verdict", "failed", "reason", reason, "mode",
        whole ? "whole" : "assign", "seconds", round(seconds), "compiled_hbm_bytes_per_device", "parts",
        "buffers", "refused_keys", "unknown_flags", "refused_flags", "versions");
    return result ? json_dumps(result, JSON_COMPACT) : NULL;
}

static void print_versions(const json_t *versions, char text[ADV_LIMIT_PROOF_VERSIONS])
{
    for (struct adv_json_walk version = {.in = versions}; adv_json_next_member(&version);) {
        const char *number = json_string_value(version.value);
        if (number)
            adv_append(text, ADV_LIMIT_PROOF_VERSIONS, "%s%.40s %.40s", *text ? ", " : "", version.key,
                       number);
    }
}

adv_code adv_proof_summarize(const char *result, struct adv_proof_summary *summary, adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    if (adv_json_parse(result, strlen(result), &root, err)) return err->code;
    int verdict = ADV_PROOF_FAILED;
    (void)adv_json_choice(root, "", "verdict", ADV_JSON_REQUIRED, verdicts, ADV_PROOF_VERDICTS, &verdict,
                          err);
    memset(summary, 0, sizeof *summary);
    summary->verdict = (enum adv_proof_verdict)verdict;
    summary->compiled_hbm_bytes_per_device = adv_json_number_of(root, "compiled_hbm_bytes_per_device");
    const char *reason = json_string_value(json_object_get(root, "reason"));
    (void)snprintf(summary->reason, sizeof summary->reason, "%s", reason ? reason : "");
    print_versions(json_object_get(root, "versions"), summary->versions);
    return err->code;
}

void adv_proof_versions(const char *releases, char text[ADV_LIMIT_PROOF_VERSIONS])
{
    ADV_JSON_OWN json_t *root = adv_json_load_string(releases, 0);
    text[0] = '\0';
    print_versions(root, text);
}

bool adv_proof_is_by(const char *result, const char *releases)
{
    ADV_JSON_OWN json_t *root = adv_json_load_string(result, 0);
    ADV_JSON_OWN json_t *known = adv_json_load_string(releases, 0);
    bool is_by = json_object_size(json_object_get(root, "versions")) > 0;
    for (struct adv_json_walk version = {.in = json_object_get(root, "versions")};
         adv_json_next_member(&version);)
        is_by = is_by && json_equal(version.value, json_object_get(known, version.key));
    return is_by;
}

/* Says that other releases gave the word than those that the plan is for. */
static void note_releases(json_t *result, const json_t *asked)
{
    const json_t *by = json_object_get(result, "versions");
    char wanted[ADV_LIMIT_PROOF_VERSIONS] = "", had[ADV_LIMIT_PROOF_VERSIONS] = "";
    bool differs = false;
    for (struct adv_json_walk release = {.in = asked}; adv_json_next_member(&release);) {
        const json_t *version = json_object_get(by, release.key);
        differs = differs || (version && !json_equal(version, release.value));
    }
    if (!differs) return;
    print_versions(asked, wanted);
    print_versions(by, had);
    (void)json_object_set_new(
        result, "note",
        json_sprintf("the plan is for %s, and this is the word of %s: its own releases may take other keys "
                     "and flags and need other memory",
                     wanted, had));
}

static void put_part(json_t *parts, const char *name, const char *side, double bytes)
{
    for (struct adv_json_walk part = {.in = parts}; adv_json_next(&part);) {
        if (strcmp(json_string_value(json_object_get(part.value, "name")), name) != 0) continue;
        (void)json_object_set_new(part.value, side,
                                  json_real(json_number_value(json_object_get(part.value, side)) + bytes));
        return;
    }
    json_t *part =
        json_pack("{s:s,s:n,s:n}", "name", name, "compiled_bytes_per_device", "predicted_bytes_per_device");
    (void)json_object_set_new(part, side, json_real(bytes));
    (void)json_array_append_new(parts, part);
}

/* Both sides at the compiler's peak. What lives through the whole step is the program's arguments: weights
 * and the optimizer's state. */
static json_t *join_parts(const json_t *result, const json_t *predicted)
{
    static const char compiled_side[] = "compiled_bytes_per_device",
                      our_side[] = "predicted_bytes_per_device";
    const char *peak = json_string_value(json_object_get(result, "peak_at"));
    json_t *joined = json_array();
    if (!peak) return joined;
    const json_t *arguments = json_object_get(result, "argument_bytes_per_device");
    if (json_is_number(arguments))
        put_part(joined, "weights_and_optimizer_state", compiled_side, json_number_value(arguments));
    for (struct adv_json_walk part = {.in = json_object_get(result, "parts")}; adv_json_next(&part);) {
        const char *name = json_string_value(json_object_get(part.value, "name"));
        if (name)
            put_part(joined, name, compiled_side, json_number_value(json_object_get(part.value, "bytes")));
    }
    for (struct adv_json_walk part = {.in = json_object_get(predicted, "parts")}; adv_json_next(&part);) {
        const char *at = json_string_value(json_object_get(part.value, "at"));
        const char *name = json_string_value(json_object_get(part.value, "name"));
        const bool always = at && strcmp(at, "always") == 0;
        if (!name || !at || (!always && strcmp(at, peak) != 0)) continue;
        put_part(joined, always ? "weights_and_optimizer_state" : name, our_side,
                 json_number_value(json_object_get(part.value, "bytes")));
    }
    return joined;
}

adv_code adv_proof_join(const char *result, const char *predicted, int rank, struct adv_text *text,
                        adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    const adv_code code = adv_json_parse_file_text(result, strlen(result), &root, err);
    if (code) return code;
    ADV_JSON_OWN json_t *ours = adv_json_load_string(predicted, 0);
    json_t *bytes = json_object_get(ours, "hbm_bytes_per_device");
    json_t *compiled = json_object_get(root, "compiled_hbm_bytes_per_device");
    (void)json_object_set_new(root, "rank", json_integer(rank));
    (void)json_object_set(root, "predicted_hbm_bytes_per_device", bytes ? bytes : json_null());
    if (!json_is_number(json_object_get(root, "hbm_limit_bytes_per_device")))
        (void)json_object_set(root, "hbm_limit_bytes_per_device",
                              json_object_get(ours, "hbm_limit_bytes_per_device"));
    (void)json_object_set_new(root, "hbm_error_frac",
                              json_is_number(compiled) && json_is_number(bytes) &&
                                      json_number_value(compiled) > 0.0
                                  ? json_real(json_number_value(bytes) / json_number_value(compiled) - 1.0)
                                  : json_null());
    (void)json_object_set_new(root, "parts", join_parts(root, ours));
    note_releases(root, json_object_get(ours, "software"));
    char *dump = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(12));
    adv_text_append(text, dump ? dump : "");
    const bool whole = dump && !text->overflow;
    free(dump);
    return whole ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the result");
}

#define LINE "  %-28s %10s %10s\n"

static void gibibytes(const json_t *object, const char *member, char text[16])
{
    const json_t *bytes = json_object_get(object, member);
    if (json_is_number(bytes))
        (void)snprintf(text, 16, "%.2f GiB", json_number_value(bytes) / ADV_GIB);
    else
        (void)snprintf(text, 16, "-");
}

static void print_list(const json_t *result, const char *member, const char *what, struct adv_text *text)
{
    size_t index = 0;
    for (struct adv_json_walk item = {.in = json_object_get(result, member)}; adv_json_next(&item);)
        adv_text_format(text, "%s%s", item.index ? ", " : what, json_string_value(item.value));
    if (index) adv_text_append(text, "\n");
}

static void print_parts(const json_t *result, struct adv_text *text)
{
    char compiled[16], predicted[16];
    gibibytes(result, "compiled_hbm_bytes_per_device", compiled);
    gibibytes(result, "predicted_hbm_bytes_per_device", predicted);
    adv_text_format(text, LINE LINE, "per device", "XLA", "predicted", "in all", compiled, predicted);
    for (struct adv_json_walk part = {.in = json_object_get(result, "parts")}; adv_json_next(&part);) {
        gibibytes(part.value, "compiled_bytes_per_device", compiled);
        gibibytes(part.value, "predicted_bytes_per_device", predicted);
        adv_text_format(text, LINE, json_string_value(json_object_get(part.value, "name")), compiled,
                        predicted);
    }
}

static void print_buffers(const json_t *result, struct adv_text *text)
{
    const char *peak = json_string_value(json_object_get(result, "peak_at"));
    if (peak) adv_text_format(text, "alive at the peak (%s):\n", peak);
    for (struct adv_json_walk buffer = {.in = json_object_get(result, "buffers")}; adv_json_next(&buffer);) {
        char bytes[16];
        gibibytes(buffer.value, "bytes", bytes);
        const char *part = json_string_value(json_object_get(buffer.value, "part"));
        const char *shape = json_string_value(json_object_get(buffer.value, "shape"));
        adv_text_format(text, "  %10s %2d x %-28s %s\n", bytes,
                        (int)json_integer_value(json_object_get(buffer.value, "count")), shape ? shape : "",
                        part ? part : "");
    }
}

adv_code adv_proof_print(const char *joined, struct adv_text *text, adv_err *err)
{
    ADV_JSON_OWN json_t *result = NULL;
    const adv_code code = adv_json_parse_file_text(joined, strlen(joined), &result, err);
    if (code) return code;
    const char *verdict = json_string_value(json_object_get(result, "verdict"));
    const char *reason = json_string_value(json_object_get(result, "reason"));
    adv_text_format(text, "plan %d: %s", (int)json_integer_value(json_object_get(result, "rank")),
                    verdict ? verdict : "");
    adv_text_format(text, "%s%s (%.0f s)\n", reason ? ": " : "", reason ? reason : "",
                    json_number_value(json_object_get(result, "seconds")));
    const char *note = json_string_value(json_object_get(result, "note"));
    if (note) adv_text_format(text, "note: %s\n", note);
    print_parts(result, text);
    print_buffers(result, text);
    print_list(result, "refused_keys", "refused keys: ", text);
    print_list(result, "refused_flags", "refused flags: ", text);
    print_list(result, "unknown_flags", "unknown flags, left out: ", text);
    for (struct adv_json_walk version = {.in = json_object_get(result, "versions")};
         adv_json_next_member(&version);)
        adv_text_format(text, "%s %s  ", version.key, json_string_value(version.value));
    adv_text_append(text, "\n");
    return text->overflow ? adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the text") : ADV_OK;
}
