#include "engine/json/decode_request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/text.h"
#include "engine/cost/fit.h"
#include "engine/json/decode_baseline.h"
#include "engine/json/decode_cluster.h"
#include "engine/json/decode_hf_families.h"
#include "engine/json/decode_members.h"
#include "engine/json/decode_model.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_store.h"
#include "engine/json/decode_value.h"
#include "engine/json/json_load.h"
#include "engine/json/request_text.h"
#include "engine/maxtext/names.h"
#include "engine/maxtext/run.h"
#include "engine/maxtext/software.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static int errors_of(const adv_err *err)
{
    return err->count + err->lost_count;
}

static const char *name_of_model(const json_t *root)
{
    return json_string_value(json_object_get(root, "model"));
}

json_t *adv_decode_default_model(const struct adv_catalog *catalog)
{
    static const char *const names[] = {"base_emb_dim",
                                        "base_num_query_heads",
                                        "base_num_kv_heads",
                                        "base_mlp_dim",
                                        "base_num_decoder_layers",
                                        "vocab_size",
                                        "head_dim",
                                        "mlp_activations",
                                        "decoder_block",
                                        "logits_via_embedding"};
    json_t *model = json_object();
    (void)json_object_set_new(model, "name", json_string("default"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct adv_catalog_key *key = adv_catalog_key(catalog, names[i]);
        json_t *value = key ? adv_json_load_string(key->default_json, JSON_DECODE_ANY) : NULL;
        if (value) (void)json_object_set_new(model, names[i], value);
    }
    return model;
}

bool adv_decode_request_model(const struct adv_catalog *catalog, const json_t *value, const char *at,
                              const json_t *config, const char *config_at, struct adv_model *model,
                              adv_err *err, adv_err *warnings)
{
    const char *name = json_string_value(value);
    ADV_JSON_OWN json_t *standard =
        name && strcmp(name, "default") == 0 ? adv_decode_default_model(catalog) : NULL;
    ADV_JSON_OWN json_t *overrides = adv_decode_config_model(catalog, config);
    adv_code code = adv_decode_model_over(catalog, standard ? standard : value, at, overrides, config_at,
                                          model, err, warnings);
    if (name && warnings && json_is_true(json_object_get(config, ADV_NAME_OVERRIDE_MODEL_CONFIG)))
        adv_decode_say_variant(catalog, name, overrides, config_at, warnings);
    if (code != ADV_OK) memset(model, 0, sizeof *model);
    return code == ADV_OK;
}

/* A request while it is decoded. */
struct decoder {
    const struct adv_catalog *catalog;
    const json_t *root;
    struct adv_arena *arena;
    struct adv_model *model; /* of the request, as the next two */
    struct adv_cluster *cluster;
    struct adv_software *software;
    adv_err *err, *warnings; /* warnings: may be NULL */
    bool strict;
    bool has_job; /* model and cluster are usable */
};

/* As far as the request says it; else 0. */
static int64_t seq_len_of(const struct decoder *d, const json_t *config)
{
    const json_t *workload = json_object_get(d->root, "workload");
    return json_integer_value(workload ? json_object_get(workload, "seq_len")
                                       : json_object_get(config, ADV_NAME_MAX_TARGET_LENGTH));
}

/* The model of a request with the architecture keys of its config applied on top, and its cluster. Members
 * that are missing or wrong add findings; the struct is then zeroed. */
static void decode_job(struct decoder *d, const json_t *config, const char *config_at, adv_err *warnings)
{
    const int before = errors_of(d->err);
    const json_t *model = json_object_get(d->root, "model"), *cluster = json_object_get(d->root, "cluster");
    memset(d->model, 0, sizeof *d->model);
    memset(d->cluster, 0, sizeof *d->cluster);
    if (!adv_json_has(d->root, "model"))
        ADV_REFUSE(d->err, "/model",
                   "a catalog name such as \"llama3.1-70b\", or an object of MaxText architecture keys",
                   "model is missing");
    if (!adv_json_has(d->root, "cluster"))
        ADV_REFUSE(d->err, "/cluster", "{\"chip\": \"tpu7x\", \"topology\": \"4x4x4\"}",
                   "cluster is missing");
    if (adv_json_has(d->root, "model"))
        (void)adv_decode_request_model(d->catalog, model, "/model", config, config_at, d->model, d->err,
                                       warnings);
    if (warnings) adv_hf_warn_of_window(model, "/model", seq_len_of(d, config), warnings);
    if (adv_json_has(d->root, "cluster") &&
        adv_decode_cluster(d->catalog, cluster, "/cluster", d->cluster, d->err, warnings) != ADV_OK)
        memset(d->cluster, 0, sizeof *d->cluster);
    d->has_job = errors_of(d->err) == before;
    if (!d->has_job) return;
    adv_software_settle(d->catalog, d->software, &d->cluster->chip);
    if (warnings)
        adv_software_find_model(d->catalog, d->software, d->model->maxtext_name, "/model", warnings);
}

/* Keys at "/config", "/pins" or "/baseline/config": those of pins are binding. */
static bool read_config(const struct decoder *d, const json_t *config, const char *at, struct adv_plan *plan,
                        struct adv_config *echo)
{
    const struct adv_decode_config_input input = {d->catalog,
                                                  d->model,
                                                  d->cluster,
                                                  config,
                                                  name_of_model(d->root),
                                                  at,
                                                  d->strict,
                                                  d->arena,
                                                  strcmp(at, "/pins") == 0};
    return adv_decode_config(&input, plan, echo, d->err, d->warnings) == ADV_OK;
}

/* The flags beside it in `holder`; what the release refuses of them is a warning. */
static bool read_flags(const struct decoder *d, const json_t *holder, const char *at, struct adv_plan *plan,
                       struct adv_config *echo)
{
    const adv_code code = adv_decode_flags(d->catalog, json_object_get(holder, "xla_flags"), at, d->strict,
                                           d->arena, &plan->flags, echo, d->err, d->warnings);
    if (d->has_job && d->warnings)
        adv_software_warn_flags(d->catalog, d->software, echo, d->cluster->chip.name, at, d->warnings);
    return code == ADV_OK;
}

/* The keys of a model that is given as an object. */
static void keep_model_keys(const struct decoder *d, const struct adv_pin **keys, int *count)
{
    if (d->has_job && adv_decode_model_given(json_object_get(d->root, "model"), d->arena, keys, count))
        (void)adv_err_add(d->err, ADV_E_MEMORY, "", NULL, "the request is too large");
}

bool adv_decode_rows_are_countable(const struct adv_plan *plan, const struct adv_model *model, adv_err *err)
{
    const struct adv_layer *layer = adv_plan_uncountable(plan, model);
    if (!layer) return true;
    const double tokens = adv_plan_tokens_met(plan);
    (void)adv_err_add(
        err, ADV_E_RANGE, "/config/per_device_batch_size", "fewer sequences a device, or shorter ones",
        "%.6g tokens meet on a device and go to %d experts each: %.6g rows, at most %.0f can be priced",
        tokens, layer->experts_per_token, tokens * layer->experts_per_token, ADV_PLAN_ROWS_MAX);
    return false;
}

adv_code adv_decode_estimate_request(const struct adv_catalog *catalog, const json_t *root,
                                     struct adv_arena *arena, struct adv_estimate_request *request,
                                     adv_err *err, adv_err *warnings)
{
    static const char *const members[] = {"model",  "cluster", "config",   "xla_flags",    "flops_convention",
                                          "strict", "include", "software", "recipe_notes", ADV_STORE_MEMBERS};
    struct decoder d = {.catalog = catalog,
                        .root = root,
                        .arena = arena,
                        .model = &request->model,
                        .cluster = &request->cluster,
                        .software = &request->software,
                        .err = err,
                        .warnings = warnings};
    int before = errors_of(err), convention = ADV_FLOPS_CAUSAL_HALF;
    memset(request, 0, sizeof *request);
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    (void)adv_json_known_members(root, "", members, COUNT(members), err);
    (void)adv_json_bool(root, "", "strict", ADV_JSON_OPTIONAL, &d.strict, err);
    (void)adv_json_choice(root, "", "flops_convention", ADV_JSON_OPTIONAL,
                          ADV_JSON_NAMES("causal_half", "full", "params_only"), &convention, err);
    request->flops_convention = (enum adv_flops_convention)convention;
    request->include = adv_decode_include(root, ADV_INCLUDES_OF_PLAN, err);
    adv_decode_recipe_notes(root, warnings);
    adv_decode_store(root, arena, &request->wish, err);
    adv_decode_software(catalog, root, &request->software, err);

    ADV_JSON_OWN json_t *config = adv_decode_typed_config(catalog, json_object_get(root, "config"));
    decode_job(&d, config, "/config", warnings);
    keep_model_keys(&d, &request->model_keys, &request->model_keys_count);
    bool valid = read_config(&d, config, "/config", &request->plan, &request->config);
    adv_config_contradictions(catalog, name_of_model(root), &request->cluster, &request->config, "/config",
                              warnings);
    valid &= read_flags(&d, root, "/xla_flags", &request->plan, &request->config);
    if (d.has_job && warnings) {
        (void)adv_software_find_keys(catalog, &request->software, &request->config, "/config", warnings);
        adv_software_warn_pair(catalog, &request->software, warnings);
    }
    if (d.has_job) {
        valid &= adv_plan_check(&request->plan, &request->model, &request->cluster, err, warnings) == ADV_OK;
        if (warnings) adv_decode_explain_batch(err, warnings);
        valid &= adv_decode_rows_are_countable(&request->plan, &request->model, err);
    }
    return valid && errors_of(err) == before ? ADV_OK : err->code;
}

/* The workload as MaxText keys; wrong members are reported here, under /workload. */
static json_t *workload_keys(const json_t *workload, struct adv_workload *out, adv_err *err)
{
    static const char *const quantizations[] = {"any", "none", "", "int8", "fp8", "fp8_full"};
    static const struct {
        const char *member, *key;
    } formats[] = {{"optimizer", "opt_type"},
                   {"weight_dtype", "weight_dtype"},
                   {"mu_dtype", "mu_dtype"},
                   {"grad_dtype", "grad_dtype"}};
    json_t *keys = json_object();
    int index = 0;
    if (adv_json_integer(workload, "/workload", "seq_len", ADV_JSON_REQUIRED, 1, 1 << 24, &out->seq_len,
                         err)) {
        (void)json_object_set_new(keys, "max_target_length", json_integer((json_int_t)out->seq_len));
    }
    if (adv_json_choice(workload, "/workload", "quantization", ADV_JSON_OPTIONAL, quantizations, 6, &index,
                        err)) {
        out->any_quantization = index == 0;
        if (index > 2) (void)json_object_set_new(keys, "quantization", json_string(quantizations[index]));
        if (index == 5) (void)json_object_set_new(keys, "use_qwix_quantization", json_true());
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const char *names[ADV_KEY_CHOICES_MAX];
        int count = adv_key_plain_choices(adv_key_find(formats[i].key), names);
        if (adv_json_choice(workload, "/workload", formats[i].member, ADV_JSON_OPTIONAL, names, count, &index,
                            err))
            (void)json_object_set_new(keys, formats[i].key, json_string(names[index]));
    }
    return keys;
}

static void decode_batch(const json_t *workload, const json_t *pins, struct adv_advise_request *request,
                         json_t *keys, adv_err *err)
{
    struct adv_workload *out = &request->workload;
    bool pinned = json_object_get(pins, "per_device_batch_size") != NULL;
    int given = (json_object_get(workload, "global_batch_sequences") != NULL) +
                (json_object_get(workload, "tokens_per_step") != NULL) +
                (json_object_get(workload, "per_device_batch_size") != NULL);
    const double tokens = out->seq_len > 0 ? (double)out->seq_len : 1.0; /* ends of a range are hinted at */
    (void)adv_json_number(workload, "/workload", "global_batch_sequences", ADV_JSON_OPTIONAL, 1, 1e9,
                          &out->global_batch_sequences, err);
    (void)adv_json_number(workload, "/workload", "tokens_per_step", ADV_JSON_OPTIONAL, tokens, 1e9 * tokens,
                          &out->tokens_per_step, err);
    bool per_device = adv_json_number(workload, "/workload", "per_device_batch_size", ADV_JSON_OPTIONAL, 1e-9,
                                      1e6, &out->per_device_batch_size, err);
    if (per_device)
        (void)json_object_set_new(keys, "per_device_batch_size", json_real(out->per_device_batch_size));
    /* A pinned per-device batch alone says the batch; beside a global size it fixes the accumulation steps.
     */
    if (given != 1 && !(given == 0 && pinned)) {
        ADV_REFUSE(err, "/workload",
                   "give exactly one of global_batch_sequences, per_device_batch_size, tokens_per_step",
                   "%d sizes of the batch are given", given);
    }
    request->batch_pinned = pinned || per_device;
}

static const char *const advise_members[] = {
    "model",           "cluster", "workload", "pins",         "baseline", "search", "strict",
    ADV_STORE_MEMBERS, "verify",  "include",  "recipe_notes", "software", "goodput"};
static const char *const workload_members[] = {"seq_len",
                                               "global_batch_sequences",
                                               "per_device_batch_size",
                                               "tokens_per_step",
                                               "quantization",
                                               "optimizer",
                                               "weight_dtype",
                                               "mu_dtype",
                                               "grad_dtype",
                                               "total_tokens", /* these two: decode_platforms.c */
                                               "days_available"};
static const char *const search_members[] = {
    "objective",       "top_k",         "max_changes",     "axes",
    "max_evaluations", "sensitivities", "fit_probability", "memory_frac"};

/* Of a member of one of these objects that another of them knows: where it belongs. */
static void point_to_places(adv_err *err, int first)
{
    static const struct {
        const char *at;
        const char *const *members;
        int count;
    } places[] = {{"", advise_members, COUNT(advise_members)},
                  {"/workload", workload_members, COUNT(workload_members)},
                  {"/search", search_members, COUNT(search_members)}};
    for (int i = first; i < err->count; i++) {
        struct adv_finding *finding = &err->findings[i];
        const char *slash = strrchr(finding->pointer, '/');
        if (!slash || strncmp(finding->detail, "unknown member", strlen("unknown member")) != 0) continue;
        size_t parent = (size_t)(slash - finding->pointer);
        bool inside = false;
        for (int place = 0; place < COUNT(places); place++)
            inside = inside || (strlen(places[place].at) == parent &&
                                strncmp(finding->pointer, places[place].at, parent) == 0);
        for (int place = 0; place < COUNT(places) && inside; place++)
            for (int m = 0; m < places[place].count; m++)
                if (strcmp(slash + 1, places[place].members[m]) == 0)
                    (void)snprintf(finding->hint, sizeof finding->hint, "it belongs at %s%s",
                                   places[place].at, slash);
    }
}

static void decode_workload(const json_t *root, const json_t *pins, struct adv_advise_request *request,
                            json_t **keys, adv_err *err)
{
    json_t *workload = adv_json_object(root, "", "workload", ADV_JSON_REQUIRED, err);
    if (!workload) return;
    (void)adv_json_known_members(workload, "/workload", workload_members, COUNT(workload_members), err);
    *keys = workload_keys(workload, &request->workload, err);
    if (json_object_get(pins, "quantization")) request->workload.any_quantization = false;
    decode_batch(workload, pins, request, *keys, err);
}

/* Which parts of the space the pins take away from the search. */
static void note_pin(struct adv_advise_request *request, const char *key, const json_t *value)
{
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        const char *name = adv_key_of_axis(false, (enum adv_axis)i);
        bool is_fill = json_is_integer(value) && json_integer_value(value) == -1;
        if (strcmp(key, name) == 0 && !is_fill) request->axis_pinned[i] = true;
    }
    request->remat_pinned |= strcmp(key, ADV_NAME_REMAT_POLICY) == 0;
    request->tiles_pinned |= strstr(key, "sa_block_") != NULL || strstr(key, "_tile_") != NULL;
    request->vocab_tiling_pinned |= strcmp(key, "num_vocab_tiling") == 0;
    request->cp_strategy_pinned |= strcmp(key, "context_parallel_strategy") == 0;
}

static void keep_pins(const struct adv_config *config, const json_t *pins, struct adv_advise_request *request)
{
    for (int i = 0; i < config->count; i++) {
        const struct adv_config_entry *entry = &config->entries[i];
        if (!json_object_get(pins, entry->key)) continue; /* came from the workload */
        request->pins[request->pins_count++] = (struct adv_pin){entry->key, entry->value_json};
    }
}

/* Whether the place of a tensor is pinned. */
static bool pins_tensor(const json_t *pins)
{
    bool found = false;
    for (int i = 0; i < ADV_TENSOR_COUNT; i++)
        found |= json_object_get(pins, adv_tensor_name((enum adv_tensor)i)) != NULL;
    return found;
}

/* A pin holds in every plan, and no plan is another model's. */
static void check_pinned_model(const struct decoder *d, const json_t *pins)
{
    const char *pinned = json_string_value(json_object_get(pins, ADV_NAME_MODEL_NAME));
    if (!pinned || !*pinned || strcmp(pinned, d->model->name) == 0) return;
    (void)adv_err_add(
        d->err, ADV_E_INVALID, "/pins/" ADV_NAME_MODEL_NAME, "leave it out, or ask for that model",
        "%s says %.60s, but the request's model is %.60s", ADV_NAME_MODEL_NAME, pinned, d->model->name);
}

/* What the release of MaxText lacks stays as it is there: as if it were pinned. */
static void pin_what_the_release_lacks(const struct decoder *d, const json_t *keys, json_t *pins,
                                       struct adv_advise_request *request)
{
    const struct adv_key *lacking[ADV_KEYS_MAX];
    struct adv_plan plan;
    adv_plan_defaults(&plan, d->model);
    const int count =
        adv_software_lacks(d->catalog, &request->software, d->model, d->cluster, &plan, lacking);
    request->has_one_tile_set = !adv_software_has_local_tiles(d->catalog, &request->software);
    request->saves_layer_inputs = !adv_maxtext_recomputes_inputs(request->software.maxtext);
    for (int i = 0; i < count; i++) {
        char text[ADV_LIMIT_NAME];
        if (json_object_get(pins, lacking[i]->name) || json_object_get(keys, lacking[i]->name)) continue;
        if (adv_key_text(lacking[i], lacking[i]->usual, text, sizeof text))
            (void)json_object_set_new(pins, lacking[i]->name, adv_json_load_string(text, JSON_DECODE_ANY));
    }
}

/* Pins and workload together are the plan the search starts from. */
static void decode_base(const struct decoder *d, const json_t *pins, const json_t *keys,
                        struct adv_advise_request *request)
{
    ADV_JSON_OWN json_t *merged = pins ? json_copy((json_t *)(uintptr_t)pins) : json_object();
    for (struct adv_json_walk entry = {.in = keys}; adv_json_next_member(&entry);) {
        if (json_object_get(pins, entry.key)) {
            if (json_equal(json_object_get(pins, entry.key), entry.value)) continue;
            ADV_REFUSE(d->err, ADV_AT("/pins", entry.key), "leave the pin out",
                       "the workload already says %s", entry.key);
        }
        (void)json_object_set(merged, entry.key, entry.value);
    }
    for (struct adv_json_walk entry = {.in = pins}; adv_json_next_member(&entry);)
        note_pin(request, entry.key, entry.value);
    check_pinned_model(d, pins);
    const char *policy = json_string_value(json_object_get(pins, ADV_NAME_REMAT_POLICY));
    request->custom_pinned = policy && strcmp(policy, "custom") == 0 && !pins_tensor(pins);
    request->remat_pinned = request->remat_pinned && !request->custom_pinned;
    if (!request->remat_pinned && pins_tensor(pins))
        (void)json_object_set_new(merged, ADV_NAME_REMAT_POLICY,
                                  json_string("custom")); /* else it says nothing */
    struct adv_config *config = adv_arena_alloc(d->arena, sizeof *config);
    if (!config)
        (void)adv_err_add(d->err, ADV_E_MEMORY, "", NULL, "the request is too large");
    else if (read_config(d, merged, "/pins", &request->workload.base, config))
        keep_pins(config, pins, request);
}

/* A format that was asked for is searched with, also where it does not pay; each estimate repeats this
 * warning. */
static void warn_of_format(const json_t *pins, const struct adv_advise_request *request, adv_err *warnings)
{
    enum adv_quantization quantization = request->workload.base.family.quantization;
    const struct adv_chip *chip = &request->cluster.chip;
    if (adv_quantization_pays(quantization, chip)) return;
    ADV_WARN(warnings, "format-not-native",
             json_object_get(pins, "quantization") ? "/pins/quantization" : "/workload/quantization",
             "leave it out, or say \"any\" for the formats that pay",
             "%s has no faster matmul rate for %s: quantisation only adds work", chip->name,
             adv_quantization_name(quantization));
}

static void decode_search(const json_t *root, struct adv_advise_request *request, adv_err *err)
{
    enum { DEFAULT_TOP_K = 10, CHANGES_MAX = 64 };
    const json_t *search = adv_json_object(root, "", "search", ADV_JSON_OPTIONAL, err);
    request->top_k = DEFAULT_TOP_K;
    request->max_changes = ADV_CHANGES_ANY;
    request->fit_probability = ADV_FIT_SURE_PROBABILITY;
    request->memory_frac = 1.0;
    adv_decode_axes(search, request, err);
    if (!search) return;
    int objective = ADV_OBJECTIVE_STEP_TIME;
    int64_t evaluations = 0;
    (void)adv_json_known_members(search, "/search", search_members, COUNT(search_members), err);
    (void)adv_json_bool(search, "/search", "sensitivities", ADV_JSON_OPTIONAL, &request->wants_sensitivities,
                        err);
    (void)adv_json_choice(search, "/search", "objective", ADV_JSON_OPTIONAL,
                          ADV_JSON_NAMES(ADV_OBJECTIVE_NAMES), &objective, err);
    (void)adv_json_int(search, "/search", "top_k", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->top_k,
                       err);
    (void)adv_json_int(search, "/search", "max_changes", ADV_JSON_OPTIONAL, 0, CHANGES_MAX,
                       &request->max_changes, err);
    (void)adv_json_integer(search, "/search", "max_evaluations", ADV_JSON_OPTIONAL, 1, 100000000,
                           &evaluations, err);
    (void)adv_json_number(search, "/search", "fit_probability", ADV_JSON_OPTIONAL, 0.5, 0.9999,
                          &request->fit_probability, err);
    request->fit_probability_given = json_object_get(search, "fit_probability") != NULL;
    (void)adv_json_number(search, "/search", "memory_frac", ADV_JSON_OPTIONAL, 0.1, 1.0,
                          &request->memory_frac, err);
    request->objective = (enum adv_objective)objective;
    request->max_evaluations = (long)evaluations;
}

/* What was told of the key "/baseline/config/`key`": that the model's block ignores it. */
static void warn_of_baseline_key(const adv_err *told, const char *key, adv_err *warnings)
{
    for (int i = 0; warnings && i < told->count; i++)
        if (strcmp(told->findings[i].pointer, ADV_AT("/baseline/config", key)) == 0)
            (void)adv_err_add_rule(warnings, told->findings[i].code, told->findings[i].rule,
                                   told->findings[i].pointer, told->findings[i].hint, "%s",
                                   told->findings[i].detail);
}

/* The baseline is a plan for the request's model: keys that make it another one (the pins' stand in `pins`)
 * are errors, for the two could not be compared. */
static void check_baseline_model(const struct decoder *d, const json_t *pins, const json_t *config)
{
    ADV_JSON_OWN json_t *keys = adv_decode_config_model(d->catalog, config);
    for (struct adv_json_walk entry = {.in = keys}; adv_json_next_member(&entry);) {
        struct adv_model model;
        ADV_JSON_OWN json_t *with =
            json_is_object(pins) ? json_copy((json_t *)(uintptr_t)pins) : json_object();
        (void)json_object_set(with, entry.key, entry.value);
        adv_err told = adv_err_empty();
        bool built = adv_decode_request_model(d->catalog, json_object_get(d->root, "model"), "/model", with,
                                              "/baseline/config", &model, d->err, &told);
        if (!json_object_get(pins, entry.key)) warn_of_baseline_key(&told, entry.key, d->warnings);
        /* both are built in zeroed memory, so their padding is equal, too */
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        bool same = memcmp(&model, d->model, sizeof model) == 0;
        if (built && !same)
            ADV_REFUSE(d->err, ADV_AT("/baseline/config", entry.key),
                       "put it into pins (or model) for the search too, or leave it out",
                       "%s makes the baseline another model than the one to advise on", entry.key);
    }
}

static void decode_baseline(const struct decoder *d, const json_t *pins, struct adv_advise_request *request)
{
    const json_t *baseline = adv_json_object(d->root, "", "baseline", ADV_JSON_OPTIONAL, d->err);
    if (!baseline) return;
    int before = errors_of(d->err);
    (void)adv_json_known_members(baseline, "/baseline", ADV_JSON_NAMES("config", "xla_flags"), d->err);
    ADV_JSON_OWN json_t *config = adv_decode_typed_config(d->catalog, json_object_get(baseline, "config"));
    adv_baseline_complete(config, request);
    bool has_config =
        read_config(d, config, "/baseline/config", &request->baseline, &request->baseline_config);
    if (d->has_job) check_baseline_model(d, pins, config);
    bool has_flags =
        read_flags(d, baseline, "/baseline/xla_flags", &request->baseline, &request->baseline_config);
    if (d->has_job && has_config && has_flags) {
        adv_err broken = adv_err_empty();
        adv_err notes = adv_err_empty();
        if (adv_plan_check(&request->baseline, d->model, d->cluster, &broken, &notes) != ADV_OK)
            adv_err_merge(d->err, &broken, "/baseline");
        if (d->warnings) adv_err_merge(d->warnings, &notes, "/baseline");
    }
    request->has_baseline = errors_of(d->err) == before;
    if (!request->has_baseline || !d->has_job || !d->warnings) return;
    adv_config_contradictions(d->catalog, name_of_model(d->root), d->cluster, &request->baseline_config,
                              "/baseline/config", d->warnings);
    adv_baseline_warn(request, d->warnings);
}

adv_code adv_decode_advise_request(const struct adv_catalog *catalog, const json_t *root,
                                   struct adv_arena *arena, struct adv_advise_request *request, adv_err *err,
                                   adv_err *warnings)
{
    struct decoder d = {.catalog = catalog,
                        .root = root,
                        .arena = arena,
                        .model = &request->model,
                        .cluster = &request->cluster,
                        .software = &request->software,
                        .err = err,
                        .warnings = warnings};
    int before = errors_of(err), first = err->count;
    memset(request, 0, sizeof *request);
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    (void)adv_json_known_members(root, "", advise_members, COUNT(advise_members), err);
    (void)adv_json_bool(root, "", "strict", ADV_JSON_OPTIONAL, &d.strict, err);
    adv_decode_recipe_notes(root, warnings);
    adv_decode_store(root, arena, &request->wish, err);
    adv_decode_software(catalog, root, &request->software, err);
    if (warnings) adv_software_warn_pair(catalog, &request->software, warnings);
    if (adv_decode_verify(root, err) > 0) request->wish.store = true;
    request->include = adv_decode_include(root, ADV_INCLUDE_TRADE_OFF, err);

    ADV_JSON_OWN json_t *pins =
        adv_decode_typed_config(catalog, adv_json_object(root, "", "pins", ADV_JSON_OPTIONAL, err));
    adv_err_init(&request->job_warnings);
    decode_job(&d, pins, "/pins", &request->job_warnings);
    if (warnings) adv_err_merge(warnings, &request->job_warnings, "");
    if (d.has_job)
        request->shapes_count = adv_catalog_shapes(catalog, request->cluster.chip.name, &request->shapes);
    ADV_JSON_OWN json_t *keys = NULL;
    decode_search(root, request, err);
    ADV_JSON_OWN json_t *merged = adv_baseline_merge(root);
    decode_workload(merged, pins, request, &keys, err);
    if (!pins) pins = json_object();
    if (d.has_job) pin_what_the_release_lacks(&d, keys, pins, request);
    decode_base(&d, pins, keys, request);
    if (d.has_job) warn_of_format(pins, request, warnings);
    keep_model_keys(&d, &request->model_keys, &request->model_keys_count);
    bool is_global = request->workload.global_batch_sequences > 0 || request->workload.tokens_per_step > 0;
    if (request->batch_pinned && !is_global)
        request->workload.per_device_batch_size = request->workload.base.family.per_device_batch_size;
    if (d.has_job) adv_decode_check_pinned_axes(request, err);
    decode_baseline(&d, pins, request);
    if (request->objective == ADV_OBJECTIVE_USD_PER_TOKEN && d.has_job &&
        isnan(request->cluster.price_usd_per_chip_hour)) {
        ADV_REFUSE(err, "/search/objective", "give cluster.price_usd_per_chip_hour",
                   "no price of a chip hour is known");
    }
    if (request->max_changes != ADV_CHANGES_ANY && !json_object_get(root, "baseline")) {
        ADV_REFUSE(err, "/search/max_changes", "give baseline, or leave max_changes out",
                   "changes are counted from a baseline, which is missing");
    }
    point_to_places(err, first);
    return errors_of(err) == before ? ADV_OK : err->code;
}
