#include "engine/json/decode_answer.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/catalog/releases.h"
#include "engine/json/decode_model.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_request.h"
#include "engine/maxtext/entries.h"
#include "engine/maxtext/model_keys.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/own_file.h"
#include "engine/maxtext/run.h"

struct reader {
    struct adv_arena *arena;
    bool full;
};

static const char *kept(struct reader *reader, const char *text)
{
    const char *copy = adv_arena_copy(reader->arena, text ? text : "");
    if (!copy) reader->full = true;
    return copy ? copy : "";
}

static const char *string_of(struct reader *reader, const json_t *object, const char *member)
{
    return kept(reader, json_string_value(json_object_get(object, member)));
}

static double number_of(const json_t *object, const char *member)
{
    return json_number_value(json_object_get(object, member));
}

static void read_config(struct reader *reader, const json_t *keys, const json_t *flags,
                        struct adv_config *config)
{
    for (struct adv_json_walk entry = {.in = keys}; adv_json_next_member(&entry);) {
        if (config->count == ADV_LIMIT_CONFIG_KEYS) break;
        if (adv_config_find(config, entry.key)) continue;
        char *text = json_dumps(entry.value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
        config->entries[config->count++] =
            (struct adv_config_entry){kept(reader, entry.key), kept(reader, text)};
        free(text);
    }
    for (struct adv_json_walk entry = {.in = flags}; adv_json_next(&entry);) {
        if (config->flags_count == ADV_LIMIT_XLA_FLAGS) break;
        config->flags[config->flags_count++] = kept(reader, json_string_value(entry.value));
    }
}

/* A degree of parallelism as a configuration has it; 0: it has none, -1: what the others leave. */
static int degree_of(const json_t *config, const char *key)
{
    const json_t *value = json_object_get(config, key);
    return json_is_string(value) ? (int)strtol(json_string_value(value), NULL, 10)
                                 : (int)json_integer_value(value);
}

/* The axes between slices, "dcn_data=4 ": those of the configuration, and what they leave, which MaxText
 * gives to the axis of -1, data when none is said. */
static void put_dcn(const json_t *config, int slices, struct adv_text *text)
{
    int degrees[ADV_AXIS_COUNT], left = slices, rest = ADV_AXIS_DATA;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        degrees[i] = degree_of(config, adv_key_of_axis(true, (enum adv_axis)i));
        if (degrees[i] > 1) left /= degrees[i];
        if (degrees[i] < 0) rest = i;
    }
    if (degrees[rest] <= 0) degrees[rest] = left;
    for (int i = 0; i < ADV_AXIS_COUNT; i++)
        if (degrees[i] > 1) adv_text_format(text, "dcn_%s=%d ", adv_axis_key((enum adv_axis)i), degrees[i]);
}

/* "dcn_data=2 fsdp=64 context=2": between the slices from the configuration, within one from the estimate. */
static const char *mesh_of(struct reader *reader, const json_t *config, int slices, const json_t *estimate)
{
    struct adv_text text = adv_text_empty(512);
    put_dcn(config, slices, &text);
    for (struct adv_json_walk row = {.in = json_object_get(estimate, "mesh")}; adv_json_next(&row);) {
        const char *axis = json_string_value(json_object_get(row.value, "axis"));
        adv_text_format(&text, "%s%s=%d", row.index ? " " : "", axis ? axis : "",
                        (int)json_integer_value(json_object_get(row.value, "size")));
    }
    const char *copy = kept(reader, text.data);
    adv_text_free(&text);
    return copy;
}

static struct adv_artifact_row read_row(struct reader *reader, const json_t *plan, const json_t *estimate,
                                        int slices, int rank)
{
    const json_t *config = json_object_get(plan, "config");
    const json_t *accumulation = json_object_get(config, ADV_NAME_GRADIENT_ACCUMULATION_STEPS);
    return (struct adv_artifact_row){
        .rank = rank,
        .tie_group = (int)json_integer_value(json_object_get(plan, "tie_group")),
        .step_time_s = number_of(estimate, "step_time_s"),
        .step_time_low_s = number_of(estimate, "step_time_low_s"),
        .step_time_high_s = number_of(estimate, "step_time_high_s"),
        .tokens_per_s_per_chip = number_of(estimate, "tokens_per_s_per_chip"),
        .mfu_frac = number_of(estimate, "mfu_frac"),
        .hbm_bytes_per_device = number_of(estimate, "hbm_bytes_per_device"),
        .verdict = string_of(reader, estimate, "fit_verdict"),
        .fit_probability = number_of(estimate, "fit_probability"),
        .mesh = mesh_of(reader, config, slices, estimate),
        .remat = string_of(reader, config, ADV_NAME_REMAT_POLICY),
        .per_device_batch_size = number_of(config, ADV_NAME_PER_DEVICE_BATCH_SIZE),
        .gradient_accumulation_steps = accumulation ? (int)json_integer_value(accumulation) : 1,
    };
}

static const char *other_than(const char *usual, const char *said)
{
    return strcmp(usual, said) == 0 ? "" : said;
}

static void read_job(struct reader *reader, const struct adv_catalog *catalog, const json_t *root,
                     struct adv_artifact_source *source)
{
    const json_t *cluster = json_object_get(root, "cluster");
    source->model = string_of(reader, json_object_get(root, "model"), "name");
    source->without_maxtext =
        json_is_true(json_object_get(json_object_get(root, "model"), "without_maxtext"));
    source->chip = string_of(reader, cluster, "chip");
    const struct adv_catalog_chip *known = catalog ? adv_catalog_chip(catalog, source->chip) : NULL;
    source->nodes = known ? &known->chip.nodes : NULL;
    source->topology = string_of(reader, cluster, "topology");
    source->accelerator = string_of(reader, cluster, "accelerator");
    source->slices = (int)json_integer_value(json_object_get(cluster, "slices"));
    source->devices = (int)json_integer_value(json_object_get(cluster, "devices"));
    source->chips = (int)json_integer_value(json_object_get(cluster, "chips"));
    source->hosts = (int)json_integer_value(json_object_get(cluster, "hosts"));
    const json_t *software = json_object_get(root, "software");
    const struct adv_software *pinned = catalog ? &adv_catalog_releases(catalog)->pinned : NULL;
    source->maxtext = string_of(reader, software, "maxtext");
    if (!source->maxtext[0]) source->maxtext = ADV_MAXTEXT_VERSION; /* an answer that was stored before */
    source->jax = other_than(pinned ? pinned->jax : "", string_of(reader, software, "jax"));
    source->libtpu = other_than(pinned ? pinned->libtpu : "", string_of(reader, software, "libtpu"));
    source->engine_version = string_of(reader, json_object_get(root, "engine"), "version");
}

static void read_terms(struct reader *reader, const json_t *parts, struct adv_artifact_source *source)
{
    for (struct adv_json_walk part = {.in = parts}; adv_json_next(&part);) {
        if (source->terms_count == ADV_ARTIFACT_TERMS) break;
        source->terms[source->terms_count++] = (struct adv_artifact_term){
            .name = string_of(reader, part.value, "name"),
            .resource = string_of(reader, part.value, "resource"),
            .seconds = number_of(part.value, "seconds"),
            .exposed_seconds = number_of(part.value, "exposed_seconds"),
        };
    }
}

static bool append(struct adv_config *config, struct adv_config_entry entry)
{
    if (config->count == ADV_LIMIT_CONFIG_KEYS) return false;
    config->entries[config->count++] = entry;
    return true;
}

static bool names_the_model(const struct adv_config_entry *entry)
{
    return strcmp(entry->key, ADV_NAME_MODEL_NAME) == 0;
}

static bool has_model_key(const struct adv_catalog *catalog, const json_t *given)
{
    ADV_JSON_OWN json_t *keys = catalog ? adv_decode_config_model(catalog, given) : NULL;
    return json_object_size(keys) > 0;
}

/* Puts the keys that say the model to MaxText in front of a configuration that was given beside a model:
 * without them MaxText would train its default one. The configuration's own keys win, as they did in the
 * estimate; only the name of the model is that of `model_keys`, which counted there. Where `given`, the
 * configuration as JSON, has keys of the architecture, a named model gets override_model_config. False: no
 * room. Doing it twice changes nothing. `catalog` may be NULL: then nothing is known of the architecture. */
static bool put_model_in_front(const struct adv_catalog *catalog, const struct adv_config *model_keys,
                               const json_t *given, struct adv_arena *arena, struct adv_config *config)
{
    struct adv_config *whole = adv_arena_alloc(arena, sizeof *whole);
    bool room = whole != NULL;
    const bool is_named = adv_config_find(model_keys, ADV_NAME_MODEL_NAME) != NULL;
    for (int i = 0; i < model_keys->count && room; i++) {
        const struct adv_config_entry *entry = &model_keys->entries[i];
        if (names_the_model(entry) || !adv_config_find(config, entry->key)) room = append(whole, *entry);
    }
    if (room && is_named && has_model_key(catalog, given) &&
        !adv_config_find(config, ADV_NAME_OVERRIDE_MODEL_CONFIG))
        room = append(whole, (struct adv_config_entry){ADV_NAME_OVERRIDE_MODEL_CONFIG, "true"});
    for (int i = 0; i < config->count && room; i++)
        if (model_keys->count == 0 || !names_the_model(&config->entries[i]))
            room = append(whole, config->entries[i]);
    if (!whole || !room) return false;
    memcpy(config->entries, whole->entries, sizeof config->entries);
    config->count = whole->count;
    return true;
}

/* An estimate's configuration is as it was given, its model stands beside it. */
static void add_model(struct reader *reader, const struct adv_catalog *catalog, const json_t *root,
                      struct adv_config *config)
{
    struct adv_config *keys = adv_arena_alloc(reader->arena, sizeof *keys);
    if (keys) read_config(reader, json_object_get(json_object_get(root, "model"), "config"), NULL, keys);
    if (!keys || !put_model_in_front(catalog, keys, json_object_get(root, "config"), reader->arena, config))
        reader->full = true;
}

/* "what it is: what to do about it" */
static const char *sentence_of(struct reader *reader, const json_t *warning)
{
    const char *detail = json_string_value(json_object_get(warning, "detail"));
    const char *hint = json_string_value(json_object_get(warning, "hint"));
    struct adv_text text = adv_text_empty(4 * (size_t)ADV_LIMIT_DETAIL);
    adv_text_format(&text, "%s%s%s", detail ? detail : "", hint && *hint ? ": " : "", hint ? hint : "");
    const char *copy = kept(reader, text.data);
    adv_text_free(&text);
    return copy;
}

/* Whether a sentence is another, or says the same and what to do about it. */
static bool says_all_of(const char *sentence, const char *other)
{
    const size_t length = strlen(other);
    return strncmp(sentence, other, length) == 0 &&
           (sentence[length] == '\0' || strncmp(sentence + length, ": ", 2) == 0);
}

/* A warning that has a member of its own, or has been read: of a plan's and the job's the longer one stays.
 */
static bool is_told(struct adv_artifact_source *source, const char *code, const char *sentence)
{
    bool told = code && (strcmp(code, "kernel-over-vmem") == 0 || strcmp(code, "what-if-hardware") == 0);
    for (int i = 0; i < source->warnings_count && !told; i++) {
        if (says_all_of(sentence, source->warnings[i])) source->warnings[i] = sentence;
        told = says_all_of(source->warnings[i], sentence);
    }
    return told;
}

static void read_warnings(struct reader *reader, const json_t *warnings, struct adv_artifact_source *source)
{
    for (struct adv_json_walk warning = {.in = warnings}; adv_json_next(&warning);) {
        const char *code = json_string_value(json_object_get(warning.value, "code"));
        const char *sentence = sentence_of(reader, warning.value);
        if (source->warnings_count < ADV_ARTIFACT_SENTENCES && !is_told(source, code, sentence))
            source->warnings[source->warnings_count++] = sentence;
    }
}

static adv_code read_plan(struct reader *reader, const struct adv_catalog *catalog, const json_t *root,
                          int rank, struct adv_artifact_source *source, adv_err *err)
{
    const json_t *ranked = json_object_get(root, "ranked");
    size_t count = json_array_size(ranked);
    const json_t *plan = ranked ? json_array_get(ranked, (size_t)(rank > 0 ? rank - 1 : 0)) : root;
    const json_t *estimate = ranked ? json_object_get(plan, "estimate") : root;
    if (rank < 1 || !plan || (!ranked && rank > 1))
        return adv_err_add(err, ADV_E_NOT_FOUND, "/query/rank", NULL,
                           "the answer has %zu plans, there is no rank %d", ranked ? count : 1, rank);
    if (!json_is_object(json_object_get(plan, "config")) ||
        !json_is_number(json_object_get(estimate, "step_time_s")))
        return adv_err_add(err, ADV_E_INVALID, "", NULL,
                           "the document is not the answer of an estimate or an advise request");
    source->row = read_row(reader, plan, estimate, source->slices, rank);
    source->over_vmem = kept(reader, adv_json_warning(estimate, "kernel-over-vmem"));
    source->what_if = kept(reader, adv_json_warning(estimate, "what-if-hardware"));
    read_warnings(reader, json_object_get(estimate, "warnings"), source);
    read_warnings(reader, json_object_get(root, "warnings"), source);
    source->hbm_limit_bytes_per_device = number_of(estimate, "hbm_limit_bytes_per_device");
    read_terms(reader, json_object_get(estimate, "time_parts"), source);
    read_config(reader, json_object_get(plan, "config"), json_object_get(plan, "xla_flags"), &source->config);
    if (!ranked) add_model(reader, catalog, root, &source->config);
    for (struct adv_json_walk item = {.in = json_object_get(plan, "why")}; adv_json_next(&item);) {
        if (source->why_count < ADV_ARTIFACT_SENTENCES)
            source->why[source->why_count++] = kept(reader, json_string_value(item.value));
    }
    for (struct adv_json_walk item = {.in = ranked}; adv_json_next(&item);) {
        if (source->rows_count == ADV_LIMIT_RANKED) break;
        source->rows[source->rows_count++] = read_row(
            reader, item.value, json_object_get(item.value, "estimate"), source->slices, (int)item.index + 1);
    }
    if (!ranked) source->rows[source->rows_count++] = source->row;
    return ADV_OK;
}

adv_code adv_decode_answer(const struct adv_catalog *catalog, const char *response_json,
                           size_t response_bytes, int rank, struct adv_arena *arena,
                           struct adv_artifact_source **source, adv_err *err)
{
    json_error_t where;
    ADV_JSON_OWN json_t *root = adv_json_load(response_json, response_bytes, JSON_REJECT_DUPLICATES, &where);
    struct reader reader = {arena, false};
    *source = adv_arena_alloc(arena, sizeof **source);
    if (!*source || (!root && json_error_code(&where) == json_error_out_of_memory))
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the answer");
    memset(*source, 0, sizeof **source);
    if (!root) return adv_err_add(err, ADV_E_SYNTAX, "", NULL, "the answer is not JSON: %s", where.text);
    read_job(&reader, catalog, root, *source);
    adv_code code = read_plan(&reader, catalog, root, rank, *source, err);
    if (code == ADV_OK && reader.full)
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the answer is too large");
    return code;
}

/* `source` as a file, when its configuration is complete. */
static adv_code write_artifact(const struct adv_catalog *catalog, const char *name,
                               struct adv_artifact_source *source, struct adv_arena *arena,
                               struct adv_text *text, adv_err *err)
{
    adv_code code = adv_own_file_says(catalog, &source->config, arena, source->own_file, err);
    return code == ADV_OK ? adv_artifact_write(name, source, text, err) : code;
}

adv_code adv_artifact_from_answer(const struct adv_catalog *catalog, const char *name,
                                  const char *response_json, size_t response_bytes, int rank,
                                  struct adv_text *text, adv_err *err)
{
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct adv_artifact_source *source;
    adv_code code = adv_decode_answer(catalog, response_json, response_bytes, rank, &arena, &source, err);
    if (code == ADV_OK) code = write_artifact(catalog, name, source, &arena, text, err);
    adv_arena_free(&arena);
    return code;
}

/* The keys that say which model it is: its name, or its dimensions as they were given. */
static bool write_model(const struct adv_model *model, const json_t *value, struct adv_arena *arena,
                        struct adv_config *keys)
{
    const struct adv_pin *given = NULL;
    int given_count = 0;
    if (adv_config_write_model(model, arena, keys) != ADV_OK) return false;
    if (adv_decode_model_given(value, arena, &given, &given_count) != ADV_OK) return false;
    for (int i = 0; i < given_count; i++) {
        int at = 0;
        while (at < keys->count && strcmp(keys->entries[at].key, given[i].key) != 0) at++;
        struct adv_config_entry entry = {given[i].key, given[i].value_json};
        if (at < keys->count)
            keys->entries[at] = entry;
        else if (!append(keys, entry))
            return false;
    }
    return true;
}

static adv_code add_model_of_request(const struct adv_catalog *catalog, const char *request_json,
                                     struct adv_arena *arena, struct adv_config *config, adv_err *err)
{
    ADV_JSON_OWN json_t *root = NULL;
    struct adv_model model;
    struct adv_config *keys = adv_arena_alloc(arena, sizeof *keys);
    adv_err ignored = adv_err_empty(); /* warnings were given with the answer */
    adv_code code = adv_json_parse(request_json, strlen(request_json), &root, err);
    if (code != ADV_OK) return code;
    const json_t *value = json_object_get(root, "model");
    const json_t *given = json_object_get(root, "config");
    if (!value ||
        !adv_decode_request_model(catalog, value, "/model", given, "/config", &model, err, &ignored))
        code = adv_err_add(err, ADV_E_INVALID, "", "estimate it again",
                           "the model of this run is not known any more: its files would train another");
    if (code == ADV_OK && (!keys || !write_model(&model, value, arena, keys) ||
                           !put_model_in_front(catalog, keys, given, arena, config)))
        code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "the configuration has more than %d keys",
                           ADV_LIMIT_CONFIG_KEYS);
    return code;
}

adv_code adv_artifact_from_run(const struct adv_catalog *catalog, const struct adv_run_documents *run,
                               const char *name, int rank, struct adv_text *text, adv_err *err)
{
    struct adv_arena arena;
    adv_arena_init(&arena, ADV_LIMIT_ARENA_BYTES);
    struct adv_artifact_source *source;
    adv_code code = adv_decode_answer(catalog, run->response_json, strlen(run->response_json), rank, &arena,
                                      &source, err);
    if (code == ADV_OK && run->is_estimate)
        code = add_model_of_request(catalog, run->request_json, &arena, &source->config, err);
    if (code == ADV_OK) code = write_artifact(catalog, name, source, &arena, text, err);
    adv_arena_free(&arena);
    return code;
}
