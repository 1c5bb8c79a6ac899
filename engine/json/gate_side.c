#include "engine/json/gate_side.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/base/version.h"
#include "engine/json/decode_store.h"
#include "engine/json/json_part.h"
#include "engine/json/json_read.h"
#include "engine/maxtext/keys.h"
#include "engine/maxtext/value.h"

static void copy_text(char copy[ADV_LIMIT_NAME], const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    (void)snprintf(copy, ADV_LIMIT_NAME, "%s", text ? text : "");
}

/* From 1. */
static const json_t *plan_of(const json_t *root, int rank)
{
    return json_array_get(json_object_get(root, "ranked"), (size_t)rank - 1);
}

static void read_tags(const json_t *root, struct adv_gate_numbers *numbers)
{
    const json_t *model = json_object_get(root, "model");
    const json_t *cluster = json_object_get(root, "cluster");
    const json_t *engine = json_object_get(root, "engine");
    const json_t *software = json_object_get(root, "software");
    copy_text(numbers->model, model, "name");
    copy_text(numbers->decoder_block, model, "decoder_block");
    numbers->layers_count = adv_json_number_of(model, "layers");
    numbers->params_total = adv_json_number_of(model, "params_total");
    numbers->params_active = adv_json_number_of(model, "params_active");
    copy_text(numbers->chip, cluster, "chip");
    copy_text(numbers->topology, cluster, "topology");
    numbers->slices = (int)json_integer_value(json_object_get(cluster, "slices"));
    numbers->price_usd_per_chip_hour = adv_json_number_of(cluster, "price_usd_per_chip_hour");
    copy_text(numbers->maxtext, software, "maxtext");
    copy_text(numbers->libtpu, software, "libtpu");
    copy_text(numbers->engine_version, engine, "version");
    copy_text(numbers->catalog_hash, engine, "catalog_hash");
    copy_text(numbers->calibration, engine, "calibration");
}

/* The detail of the first warning with the code; `text` stays as it is where there is none. */
static void read_warning(const json_t *estimate, const char *wanted, char text[ADV_LIMIT_DETAIL])
{
    const char *detail = adv_json_warning(estimate, wanted);
    if (detail) (void)snprintf(text, ADV_LIMIT_DETAIL, "%s", detail);
}

static bool is_told_otherwise(const char *code)
{
    static const char *const told[] = {"kernel-over-vmem", "model-overridden",
                                       "calibration-of-another-engine", "what-if-hardware"};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        if (strcmp(told[i], code) == 0) return true;
    return false;
}

static void read_warnings(const json_t *root, struct adv_gate_numbers *numbers)
{
    enum { ROOM = 180 }; /* the note that they are told in has more words */
    for (struct adv_json_walk said = {.in = json_object_get(root, "warnings")}; adv_json_next(&said);) {
        const char *code = json_string_value(json_object_get(said.value, "code"));
        const char *detail = json_string_value(json_object_get(said.value, "detail"));
        if (!code || !detail || is_told_otherwise(code)) continue;
        numbers->warnings_count++;
        if (strlen(numbers->warnings) + strlen(detail) < ROOM)
            adv_append(numbers->warnings, sizeof numbers->warnings, "%s%s", numbers->warnings[0] ? "; " : "",
                       detail);
    }
}

/* Whether two JSON texts are one value; "true" in quotes is true to MaxText. */
static bool same_value(const char *a, const char *b)
{
    char room[2][ADV_LIMIT_DETAIL];
    const char *texts[2] = {a, b};
    struct adv_value values[2];
    for (int i = 0; i < 2; i++) {
        if (strlen(texts[i]) >= ADV_LIMIT_DETAIL || !adv_value_of_json(texts[i], room[i], &values[i]))
            return strcmp(a, b) == 0;
        if (values[i].kind == ADV_VALUE_STRING) values[i] = adv_value_of_word(values[i].string);
    }
    return adv_value_same(&values[0], &values[1]);
}

/* Adds the key where the configuration has it otherwise than a configuration without it. */
static void add_unusual(const struct adv_key *key, const json_t *config, struct adv_gate_numbers *numbers)
{
    char usual[ADV_LIMIT_NAME];
    char *text = json_dumps(json_object_get(config, key->name), JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
    if (text && !(adv_key_text(key, key->usual, usual, sizeof usual) && same_value(text, usual)))
        adv_append(numbers->numerics, sizeof numbers->numerics, "%s%s=%s", numbers->numerics[0] ? ", " : "",
                   key->name, text);
    free(text);
}

/* What decides in which numbers is trained, and by which optimizer: where it differs, other weights come out.
 * Where the optimizer's state lies is none of it. */
static void read_numerics(const json_t *config, struct adv_gate_numbers *numbers)
{
    for (int i = 0; i < adv_keys_count; i++) {
        const struct adv_key *key = &adv_keys[i];
        const bool is_optimizer = key->group == ADV_GROUP_OPTIMIZER && key->holds != ADV_HOLDS_BOOL;
        if (key->group == ADV_GROUP_FORMATS || is_optimizer) add_unusual(key, config, numbers);
    }
}

adv_code adv_gate_read_answer(const char *response_json, struct adv_gate_numbers *numbers, adv_err *err)
{
    ADV_JSON_OWN json_t *root = adv_json_load_string(response_json, JSON_REJECT_DUPLICATES);
    const json_t *ranked = json_object_get(root, "ranked");
    const json_t *estimate = ranked ? json_object_get(plan_of(root, 1), "estimate") : root;
    memset(numbers, 0, sizeof *numbers);
    numbers->step_time_s = adv_json_number_of(estimate, "step_time_s");
    numbers->step_time_low_s = adv_json_number_of(estimate, "step_time_low_s");
    numbers->step_time_high_s = adv_json_number_of(estimate, "step_time_high_s");
    numbers->tokens_per_step = adv_json_number_of(estimate, "tokens_per_step");
    numbers->sequence_tokens =
        numbers->tokens_per_step / adv_json_number_of(estimate, "global_batch_sequences");
    numbers->tokens_per_s_per_chip = adv_json_number_of(estimate, "tokens_per_s_per_chip");
    numbers->usd_per_billion_tokens = adv_json_number_of(estimate, "usd_per_billion_tokens");
    numbers->hbm_bytes_per_device = adv_json_number_of(estimate, "hbm_bytes_per_device");
    numbers->fits = json_is_true(json_object_get(estimate, "fits"));
    copy_text(numbers->fit_verdict, estimate, "fit_verdict");
    numbers->fit_probability = adv_json_number_of(estimate, "fit_probability");
    numbers->tflops_per_token =
        adv_json_number_of(estimate, "tflops_per_s_per_chip") / numbers->tokens_per_s_per_chip;
    numbers->expert_capacity_factor = adv_json_number_of(estimate, "expert_capacity_factor");
    copy_text(numbers->convention, root, "flops_convention"); /* an advise's has its default */
    if (!numbers->convention[0]) (void)snprintf(numbers->convention, ADV_LIMIT_NAME, "causal_half");
    read_warning(estimate, "kernel-over-vmem", numbers->over_vmem);
    read_warning(estimate, "model-overridden", numbers->variant);
    read_warning(root, "calibration-of-another-engine", numbers->outdated); /* an advise's is of all plans */
    read_warnings(estimate, numbers);
    numbers->is_what_if = adv_json_warning(estimate, "what-if-hardware") != NULL;
    read_numerics(json_object_get(ranked ? plan_of(root, 1) : root, "config"), numbers);
    read_tags(root, numbers);
    if (numbers->step_time_s > 0.0) return ADV_OK;
    return adv_err_add(err, ADV_E_INVALID, "",
                       "use a run of an estimate, or of an advise with a plan that fits",
                       "the run has no step time to compare");
}

bool adv_gate_is_todays(const struct adv_catalog *catalog, const struct adv_gate_numbers *numbers)
{
    return strcmp(numbers->engine_version, adv_engine_version_text) == 0 &&
           strcmp(numbers->catalog_hash, adv_catalog_hash(catalog)) == 0 &&
           strcmp(numbers->calibration, adv_catalog_calibration(catalog)) == 0;
}

static const char *text_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text ? text : "";
}

/* Whether the machine that was chosen can be one of those that an entry of the request names. */
static bool may_name(const json_t *entry, const json_t *chosen)
{
    char shape[2 * ADV_LIMIT_NAME];
    const char *chip = text_of(chosen, "chip"), *topology = text_of(chosen, "topology");
    const char *name = text_of(entry, "accelerator"), *asked = text_of(entry, "topology");
    const bool any = strcmp(asked, "any") == 0;
    const json_t *slices = json_object_get(entry, "slices");
    const json_int_t chosen_slices = json_integer_value(json_object_get(chosen, "slices"));
    if (slices ? json_integer_value(slices) != chosen_slices : !any && chosen_slices > 1) return false;
    (void)snprintf(shape, sizeof shape, "%s-%s", chip, topology);
    if (*name) return strcmp(name, text_of(chosen, "accelerator")) == 0 || strcmp(name, shape) == 0;
    return strcmp(text_of(entry, "chip"), chip) == 0 && (any || strcmp(asked, topology) == 0);
}

/* What-if hardware stays with the machine that was chosen. False: not known which of several it is. */
static bool take_overrides(const json_t *request, const json_t *chosen, json_t *cluster)
{
    json_t *entries = json_object_get(request, "clusters"), *found = NULL;
    int named = 0, whats = 0;
    ADV_JSON_OWN json_t *one = entries ? NULL : json_pack("[O]", json_object_get(request, "cluster"));
    for (struct adv_json_walk entry = {.in = entries ? entries : one}; adv_json_next(&entry);) {
        json_t *overrides = json_object_get(entry.value, "overrides");
        whats += overrides != NULL;
        if (!may_name(entry.value, chosen)) continue;
        if (named++ > 0 && !(found == overrides || (found && overrides && json_equal(found, overrides))))
            return false;
        found = overrides;
    }
    if (found) (void)json_object_set(cluster, "overrides", found);
    return named > 0 || whats == 0;
}

/* The machine that an advise's plan is on: the request's own, or, where it left the choice, the one that was
 * chosen. NULL: not known. */
static json_t *cluster_of(const json_t *request, const json_t *answered)
{
    static const char *const members[] = {"chip", "topology", "slices"};
    json_t *asked = json_object_get(request, "cluster");
    const char *shape = text_of(asked, "topology");
    if (json_is_object(asked) && strcmp(shape, "any") != 0) return json_incref(asked);
    json_t *cluster = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        (void)json_object_set(cluster, members[i], json_object_get(answered, members[i]));
    json_t *price = json_object_get(answered, "price_usd_per_chip_hour");
    if (json_is_number(price)) (void)json_object_set(cluster, "price_usd_per_chip_hour", price);
    if (take_overrides(request, answered, cluster)) return cluster;
    json_decref(cluster);
    return NULL;
}

/* What asks for a plan of an advise's answer, which is long, again: "cluster", "config" and "xla_flags",
 * those that are there. NULL: no memory. */
static json_t *read_plan(const char *response_json, const char *ranked, int rank)
{
    const char *plan = adv_json_part_element(ranked, rank - 1);
    const struct {
        const char *name, *part;
    } members[] = {{"cluster", adv_json_part_member(response_json, "cluster")},
                   {"config", adv_json_part_member(plan, "config")},
                   {"xla_flags", adv_json_part_member(plan, "xla_flags")}};
    json_t *read = json_object();
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!members[i].part ||
            json_object_set_new(read, members[i].name, adv_json_part_load(members[i].part)) == 0)
            continue;
        json_decref(read);
        return NULL;
    }
    return read;
}

static json_t *plan_request(const json_t *request, const json_t *plan)
{
    json_t *cluster = cluster_of(request, json_object_get(plan, "cluster"));
    json_t *again = cluster ? json_object() : NULL;
    (void)json_object_set(again, "model", json_object_get(request, "model"));
    (void)json_object_set(again, "software", json_object_get(request, "software"));
    if (json_object_set_new(again, "cluster", cluster)) return NULL;
    (void)json_object_set(again, "config", json_object_get(plan, "config"));
    (void)json_object_set(again, "xla_flags", json_object_get(plan, "xla_flags"));
    return again;
}

/* Ends the making of a request: it is written under the project, if any. */
static adv_code write_request(json_t *request, const char *project, char **json, adv_err *err)
{
    const bool named =
        request && (!*project || !json_object_set_new(request, "project", json_string(project)));
    *json = named ? json_dumps(request, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    return *json ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the run's request");
}

adv_code adv_gate_ask_again(const char *request_json, const char *response_json, int rank,
                            const char *project, char **json, adv_err *err)
{
    static const char *const wishes[] = {ADV_STORE_MEMBERS};
    ADV_JSON_OWN json_t *request = adv_json_load_string(request_json, JSON_REJECT_DUPLICATES);
    const char *ranked = adv_json_part_member(response_json, "ranked");
    ADV_JSON_OWN json_t *plan = ranked ? read_plan(response_json, ranked, rank) : NULL;
    if (ranked && !plan) return write_request(NULL, project, json, err);
    ADV_JSON_OWN json_t *again = ranked ? plan_request(request, plan) : json_incref(request);
    if (!again)
        return adv_err_add(err, ADV_E_INVALID, "", NULL,
                           "the run's request names several machines of the one that was chosen, with other "
                           "overrides: its plan cannot be priced again");
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) (void)json_object_del(again, wishes[i]);
    return write_request(again, project, json, err);
}

adv_code adv_gate_name_project(const char *request_json, const char *project, char **json, adv_err *err)
{
    ADV_JSON_OWN json_t *request = adv_json_load_string(request_json, JSON_REJECT_DUPLICATES);
    return write_request(request, project, json, err);
}
