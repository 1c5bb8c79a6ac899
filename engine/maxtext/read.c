#include "engine/maxtext/read.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/reader.h"
#include "engine/spec/model_build.h"

_Static_assert(offsetof(struct adv_config_state, plan) == 0, "what is read into the plan lies in the plan");

bool adv_config_is_model_key(const char *name)
{
#define ADV_INTEGER_NAME(key, fallback, low, high) #key,
#define ADV_PLAIN_NAME(key)                        #key,
    static const char *const names[] = {
        ADV_MODEL_INTEGER_KEYS(ADV_INTEGER_NAME) ADV_MODEL_BOOL_KEYS(ADV_PLAIN_NAME)
            ADV_MODEL_NUMBER_KEYS(ADV_PLAIN_NAME) "decoder_block",
        "attention_type",
        "mlp_activations",
        "compress_ratios",
        "engram_layers",
    };
#undef ADV_INTEGER_NAME
#undef ADV_PLAIN_NAME
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (adv_text_same(names[i], name)) return true;
    }
    return false;
}

/* Where the findings about one key go. */
struct sink {
    const char *pointer;
    adv_err *err, *warnings;
};

/* Ranges that begin with the least number that is above 0. */
static const double above_zero = 1e-6;

static bool in_range(const struct adv_key *key, const struct adv_value *value, const struct sink *sink)
{
    if (value->kind == ADV_VALUE_NULL) return false;
    if (value->number >= key->low && value->number <= key->high) return true;
    char hint[ADV_LIMIT_NAME];
    const double nearest = value->number < key->low ? key->low : key->high;
    (void)snprintf(hint, sizeof hint, "%.12g, the nearest legal value", nearest);
    if (nearest > 0 && nearest < above_zero) (void)snprintf(hint, sizeof hint, "a number above 0, such as 1");
    (void)adv_err_add(sink->err, ADV_E_RANGE, sink->pointer, hint,
                      "%s is %.12g; it must be from %.12g to %.12g", key->name, value->number, key->low,
                      key->high);
    return false;
}

/* The value of an enum that the choice stands for; false: none, or one that cannot be priced. */
static bool choose(const struct adv_key *key, const struct adv_value *value, const struct sink *sink,
                   double *number)
{
    const char *name = value->kind == ADV_VALUE_STRING ? value->string : "";
    const struct adv_key_choice *choice = key->choices;
    while (choice->name && strcmp(choice->name, name) != 0) choice++;
    if (!choice->name) return false; /* "" of mu_dtype: as weight_dtype */
    if (choice->value < 0) {
        (void)adv_err_add(sink->err, ADV_E_UNSUPPORTED, sink->pointer, NULL, "%s %s %s", key->name, name,
                          choice->value == ADV_CHOICE_NOT_ON_TPU
                              ? "does not run on TPU"
                              : "is something the engine has no model for");
        return false;
    }
    *number = choice->value;
    if (choice->caveat)
        (void)adv_err_add_rule(sink->warnings, ADV_OK, "approximated-value", sink->pointer, NULL,
                               "%s %s is %s", key->name, name, choice->caveat);
    return true;
}

static bool place(const struct adv_value *value, double *number)
{
    for (int i = 0; value->kind == ADV_VALUE_STRING && i < ADV_PLACE_COUNT; i++) {
        *number = i;
        if (strcmp(value->string, adv_placement_name((enum adv_placement)i)) == 0) return true;
    }
    return false;
}

/* Whether `value` is the default, compared by meaning ("None" is null, 1 is 1.0). */
static bool is_default(const struct adv_catalog_key *key, const struct adv_value *value)
{
    const char *text = key->default_json ? key->default_json : "null";
    bool default_is_null =
        strcmp(text, "null") == 0 || strcmp(text, "\"None\"") == 0 || strcmp(text, "\"\"") == 0;
    switch (value->kind) {
    case ADV_VALUE_NULL:
        return default_is_null;
    case ADV_VALUE_BOOL:
        if (strcmp(text, "null") == 0) return false; /* as another key has it: false says something */
        return strcmp(text, value->boolean ? "true" : "false") == 0 || (default_is_null && !value->boolean);
    case ADV_VALUE_INT:
    case ADV_VALUE_FLOAT: {
        double number = 0;
        return sscanf(text, "%lf", &number) == 1 && number >= value->number && number <= value->number;
    }
    case ADV_VALUE_STRING: {
        size_t length = strlen(value->string);
        return (default_is_null && length == 0) ||
               (strlen(text) == length + 2 && strncmp(text + 1, value->string, length) == 0);
    }
    case ADV_VALUE_LIST:
    case ADV_VALUE_OBJECT:
        return strcmp(text, value->string) == 0;
    }
    return false;
}

/* The number that a row takes from a value of its type; false: the key keeps its value. */
static bool number_of(const struct adv_key *key, const struct adv_value *value, const struct sink *sink,
                      double *number)
{
    *number = value->number;
    switch (key->holds) {
    case ADV_HOLDS_BOOL:
        *number = value->boolean;
        return value->kind == ADV_VALUE_BOOL;
    case ADV_HOLDS_CHOICE:
        return choose(key, value, sink, number);
    case ADV_HOLDS_PLACEMENT:
        return place(value, number);
    case ADV_HOLDS_CALIBRATION:
        *number = value->kind == ADV_VALUE_STRING && strncmp(value->string, "fixed", 5) == 0;
        return true;
    case ADV_HOLDS_DEGREE:
        if (value->kind == ADV_VALUE_INT && value->integer == -1) return true;
        return in_range(key, value, sink);
    case ADV_HOLDS_INT:
    case ADV_HOLDS_INT64:
    case ADV_HOLDS_NUMBER:
        return in_range(key, value, sink);
    case ADV_HOLDS_NOTHING:
        break;
    }
    return false;
}

static void take(struct adv_config_state *state, const struct adv_catalog_key *key,
                 const struct adv_value *value, const struct sink *sink)
{
    const struct adv_key *row = adv_key_find(key->name);
    double number = 0;
    if (!row) return;
    if ((row->holds == ADV_HOLDS_NOTHING || row->unpriced) && !is_default(key, value))
        (void)adv_err_add_rule(sink->warnings, ADV_OK, "not-modelled", sink->pointer, NULL,
                               "the engine has no model of %s: the prediction leaves it out", key->name);
    if (!number_of(row, value, sink, &number)) return;
    bool is_small = row->holds == ADV_HOLDS_BOOL || row->holds == ADV_HOLDS_CALIBRATION;
    adv_key_put(row, (char *)state + row->read_at, is_small ? sizeof(bool) : sizeof(int), number);
    state->given[row - adv_keys] = true;
}

void adv_reader_take(struct adv_config_reader *reader, const struct adv_catalog_key *key,
                     const struct adv_value *raw, const char *pointer)
{
    const struct sink sink = {pointer, reader->err, reader->warnings};
    struct adv_value value;
    if (adv_value_read(key, raw, pointer, &value, reader->err) == ADV_OK &&
        !adv_config_is_model_key(key->name))
        take(reader->state, key, &value, &sink);
}

/* 0 and 1 are Python's False and True. */
static bool is_switch_number(const struct adv_value *own, const struct adv_value *given)
{
    const bool is_number = given->kind == ADV_VALUE_INT || given->kind == ADV_VALUE_FLOAT;
    return own->kind == ADV_VALUE_BOOL && is_number && given->number >= own->boolean &&
           given->number <= own->boolean;
}

static void describe(const struct adv_value *value, char text[ADV_LIMIT_NAME])
{
    if (value->kind == ADV_VALUE_BOOL)
        (void)snprintf(text, ADV_LIMIT_NAME, "%s", value->boolean ? "true" : "false");
    else if (value->kind == ADV_VALUE_INT || value->kind == ADV_VALUE_FLOAT)
        (void)snprintf(text, ADV_LIMIT_NAME, "%.12g", value->number);
    else
        (void)snprintf(text, ADV_LIMIT_NAME, "%s", value->kind == ADV_VALUE_NULL ? "null" : value->string);
}

/* A key the model's own file sets to something else: MaxText wants override_model_config for that. */
static void check_model_conflict(struct adv_config_reader *reader, const struct adv_given *given,
                                 const char *pointer)
{
    const struct adv_config_source *source = reader->source;
    const struct adv_value *own = adv_given_find(source->defaults, source->defaults_count, given->key);
    if (!own || adv_value_same(own, &given->value) || is_switch_number(own, &given->value)) return;
    const struct adv_value *may = adv_given_find(source->given, source->given_count, "override_model_config");
    if (may && may->kind == ADV_VALUE_BOOL && may->boolean) return;
    char said[ADV_LIMIT_NAME], owns[ADV_LIMIT_NAME];
    describe(&given->value, said);
    describe(own, owns);
    (void)adv_err_add_rule(reader->warnings, ADV_E_ILLEGAL, "model-key-conflict", pointer,
                           "set override_model_config true",
                           "%.80s is %s, but the model's own configuration sets %s", given->key, said, owns);
}

/* What is read is stored, and printed into the files of a plan: a secret is refused. An empty one is none;
 * one that begins with "$" is a variable of a script, which stays as it is. */
static bool is_secret(const struct adv_given *given)
{
    return strcmp(given->key, ADV_NAME_HF_ACCESS_TOKEN) == 0 && given->value.kind == ADV_VALUE_STRING &&
           *given->value.string && *given->value.string != '$';
}

static void read_key(struct adv_config_reader *reader, const struct adv_given *given)
{
    char pointer[ADV_LIMIT_POINTER];
    (void)adv_json_pointer(pointer, reader->source->at, given->key);
    const struct adv_catalog_key *key = adv_catalog_key(reader->source->catalog, given->key);
    struct adv_value value = given->value;
    if (is_secret(given)) {
        (void)adv_err_add(reader->err, ADV_E_UNSUPPORTED, pointer, /* MaxText takes it: lint only warns */
                          "leave it out: MaxText reads the token from the environment variable HF_TOKEN",
                          "%s is a secret, and configurations are stored and printed into files", given->key);
        return;
    }
    if (!key) {
        adv_reader_take_old(reader, given, pointer);
        return;
    }
    if (key->derived) {
        (void)adv_err_add_rule(reader->warnings, ADV_OK, "derived-key", pointer, "leave it out",
                               "MaxText computes %s itself: the value is overwritten", given->key);
        return;
    }
    check_model_conflict(reader, given, pointer);
    (void)adv_reader_current_value(reader, given, pointer, &value);
    adv_reader_take(reader, key, &value, pointer);
    if (strcmp(given->key, "sparse_matmul") == 0) reader->state->says_sparse_matmul = true;
}

/* The state before any key of the configuration: MaxText's defaults under those of the model's file. */
static void init(struct adv_config_state *state, const struct adv_config_source *source)
{
    memset(state, 0, sizeof *state);
    for (int i = 0; i < adv_keys_count; i++)
        if (adv_keys[i].read_at >= sizeof state->plan)
            adv_key_put(&adv_keys[i], (char *)state + adv_keys[i].read_at,
                        adv_keys[i].holds == ADV_HOLDS_CHOICE ? sizeof(int) : sizeof(bool),
                        adv_keys[i].usual);
    adv_plan_defaults(&state->plan, source->model);
    state->plan.family.ici[ADV_AXIS_FSDP] = -1;
    state->plan.family.dcn[ADV_AXIS_DATA] = -1;
    struct adv_config_reader silent = {source, state, NULL, NULL};
    for (int i = 0; i < source->defaults_count; i++) {
        const struct adv_catalog_key *key = adv_catalog_key(source->catalog, source->defaults[i].key);
        if (key) adv_reader_take(&silent, key, &source->defaults[i].value, "");
    }
}

static void read_keys(struct adv_config_reader *reader)
{
    init(reader->state, reader->source);
    for (int i = 0; i < reader->source->given_count; i++) read_key(reader, &reader->source->given[i]);
}

adv_code adv_config_read(const struct adv_config_source *source, struct adv_plan *plan, adv_err *err,
                         adv_err *warnings)
{
    struct adv_config_state state;
    struct adv_config_reader reader = {source, &state, err, warnings};
    int errors_before = err->count + err->lost_count;
    read_keys(&reader);
    adv_reader_resolve(&reader);
    *plan = state.plan;
    return err->count + err->lost_count > errors_before ? err->code : ADV_OK;
}

/* Entries with JSON texts as raw values; what is no value is left out. */
static adv_code values_of(const struct adv_config_entry *entries, int entries_count, struct adv_arena *arena,
                          const struct adv_given **given, int *count, adv_err *err)
{
    struct adv_given *values = adv_arena_array(arena, (size_t)entries_count, sizeof *values);
    *given = values;
    *count = 0;
    for (int i = 0; values && i < entries_count; i++) {
        const char *text = entries[i].value_json;
        char *room = *text == '"' ? adv_arena_alloc(arena, strlen(text)) : NULL;
        if (*text == '"' && !room) values = NULL;
        if (values && adv_value_of_json(text, room, &values[*count].value))
            values[(*count)++].key = entries[i].key;
    }
    return values || entries_count == 0
               ? ADV_OK
               : adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
}

adv_code adv_config_of_model(const struct adv_catalog *catalog, const char *model_name,
                             struct adv_arena *arena, const struct adv_given **given, int *count,
                             adv_err *err)
{
    const struct adv_catalog_model *info = model_name ? adv_catalog_model_info(catalog, model_name) : NULL;
    return values_of(info ? info->sets : NULL, info ? info->sets_count : 0, arena, given, count, err);
}

adv_code adv_config_source_open(struct adv_config_source *source, const struct adv_catalog *catalog,
                                const struct adv_model *model, const char *model_name,
                                const struct adv_cluster *cluster, const struct adv_config *config,
                                struct adv_arena *arena, adv_err *err)
{
    *source = (struct adv_config_source){.catalog = catalog, .model = model, .cluster = cluster, .at = ""};
    adv_code code =
        adv_config_of_model(catalog, model_name, arena, &source->defaults, &source->defaults_count, err);
    if (code == ADV_OK)
        code = values_of(config->entries, config->count, arena, &source->given, &source->given_count, err);
    return code;
}

adv_code adv_reread_open(struct adv_reread *reread, const struct adv_catalog *catalog,
                         const struct adv_model *model, const char *model_name,
                         const struct adv_cluster *cluster, const struct adv_config *config,
                         struct adv_arena *arena, adv_err *err)
{
    adv_err findings = adv_err_empty();
    adv_code code =
        adv_config_source_open(&reread->source, catalog, model, model_name, cluster, config, arena, err);
    if (code != ADV_OK) return code;
    struct adv_config_reader reader = {&reread->source, &reread->read, &findings, &findings};
    read_keys(&reader);
    return ADV_OK;
}

adv_code adv_reread_baseline(const struct adv_catalog *catalog, const struct adv_advise_request *request,
                             struct adv_arena *arena, const struct adv_reread **reread, adv_err *err)
{
    struct adv_reread *baseline = request->has_baseline ? adv_arena_alloc(arena, sizeof *baseline) : NULL;
    const char *model = request->model_keys_count > 0 ? NULL : request->model.name;
    *reread = baseline;
    if (!request->has_baseline) return ADV_OK;
    if (!baseline) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    return adv_reread_open(baseline, catalog, &request->model, model, &request->cluster,
                           &request->baseline_config, arena, err);
}

bool adv_reread_over(const struct adv_reread *reread, const struct adv_config_change *changes,
                     int changes_count, struct adv_plan *plan)
{
    struct adv_config_state changed = reread->read;
    adv_err err = adv_err_empty(), warnings;
    adv_err_init(&warnings);
    struct adv_config_reader reader = {&reread->source, &changed, &err, &warnings};
    for (int i = 0; i < changes_count; i++) {
        char room[ADV_LIMIT_NAME];
        struct adv_given given = {.key = changes[i].key};
        if (strlen(changes[i].to_json) < sizeof room &&
            adv_value_of_json(changes[i].to_json, room, &given.value))
            read_key(&reader, &given);
    }
    adv_reader_resolve(&reader);
    *plan = changed.plan;
    return err.count == 0;
}
