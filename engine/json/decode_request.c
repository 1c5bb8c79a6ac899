#include "engine/json/decode_request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "engine/json/decode_cluster.h"
#include "engine/json/decode_members.h"
#include "engine/json/decode_model.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_store.h"
#include "engine/json/decode_value.h"
#include "engine/json/json_load.h"
#include "engine/json/request_text.h"
#include "engine/maxtext/software.h"

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

/* The dimensions every model file of MaxText sets: changing one from the command line needs
 * override_model_config. */
static void warn_of_conflicts(const struct adv_model_keys *keys, const json_t *overrides, const char *at,
                              adv_err *warnings)
{
    const struct {
        const char *key;
        int64_t value;
    } dims[] = {{"base_emb_dim", keys->base_emb_dim},
                {"base_num_query_heads", keys->base_num_query_heads},
                {"base_num_kv_heads", keys->base_num_kv_heads},
                {"base_mlp_dim", keys->base_mlp_dim},
                {"base_num_decoder_layers", keys->base_num_decoder_layers},
                {"vocab_size", keys->vocab_size}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        const json_t *value = json_object_get(overrides, dims[i].key);
        if (!json_is_integer(value) || json_integer_value(value) == dims[i].value) continue;
        (void)adv_err_add_rule(warnings, ADV_E_ILLEGAL, "model-key-conflict", ADV_AT(at, dims[i].key),
                               "set override_model_config true",
                               "%s is %lld, but the model's own configuration sets %lld", dims[i].key,
                               (long long)json_integer_value(value), (long long)dims[i].value);
    }
}

/* With override_model_config the name stands for another model: says in what. */
static void warn_of_overrides(const struct adv_model_keys *keys, const json_t *overrides, const char *at,
                              adv_err *warnings)
{
    const struct {
        const char *key;
        int64_t value;
    } dims[] = {{"base_emb_dim", keys->base_emb_dim},
                {"base_num_query_heads", keys->base_num_query_heads},
                {"base_num_kv_heads", keys->base_num_kv_heads},
                {"head_dim", keys->head_dim},
                {"base_mlp_dim", keys->base_mlp_dim},
                {"base_num_decoder_layers", keys->base_num_decoder_layers},
                {"vocab_size", keys->vocab_size}};
    char text[ADV_LIMIT_DETAIL] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof dims / sizeof *dims && used < sizeof text; i++) {
        const json_t *value = json_object_get(overrides, dims[i].key);
        if (!json_is_integer(value) || json_integer_value(value) == dims[i].value) continue;
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s %lld instead of %lld", used ? ", " : "",
                             dims[i].key, (long long)json_integer_value(value), (long long)dims[i].value);
    }
    if (used == 0) return;
    (void)adv_err_add_rule(warnings, ADV_OK, "model-overridden", ADV_AT(at, "override_model_config"), NULL,
                           "a variant of the named model: %s", text);
}

bool adv_decode_request_model(const struct adv_catalog *catalog, const json_t *value, const char *at,
                              const json_t *config, const char *config_at, struct adv_model *model,
                              adv_err *err, adv_err *warnings)
{
    const char *name = json_string_value(value);
    ADV_JSON_OWN json_t *standard =
        name && strcmp(name, "default") == 0 ? adv_decode_default_model(catalog) : NULL;
    ADV_JSON_OWN json_t *overrides = adv_decode_config_model(catalog, config);
    const struct adv_model_keys *keys = name ? adv_catalog_model_keys(catalog, name) : NULL;
    adv_code code = adv_decode_model_over(catalog, standard ? standard : value, at, overrides, config_at,
                                          model, err, warnings);
    bool may_override = json_is_true(json_object_get(config, "override_model_config"));
    if (keys && warnings)
        (may_override ? warn_of_overrides : warn_of_conflicts)(keys, overrides, config_at, warnings);
    if (code != ADV_OK) memset(model, 0, sizeof *model);
    return code == ADV_OK;
}

static void require(const json_t *root, const char *member, const char *hint, adv_err *err)
{
    const json_t *value = json_object_get(root, member);
    if (value && !json_is_null(value)) return;
    (void)adv_err_add(err, ADV_E_INVALID, ADV_AT("", member), hint, "%s is missing", member);
}

/* The model of a request with the architecture keys of its config applied on top, and its cluster. Members
 * that are missing or wrong add findings; the struct is then zeroed. Returns true when both are usable. */
static bool decode_job(const struct adv_catalog *catalog, const json_t *root, const json_t *config,
                       const char *config_at, struct adv_model *model, struct adv_cluster *cluster,
                       adv_err *err, adv_err *warnings)
{
    int before = errors_of(err);
    memset(model, 0, sizeof *model);
    memset(cluster, 0, sizeof *cluster);
    require(root, "model",
            "a catalog name such as \"llama3.1-70b\", or an object of MaxText architecture keys", err);
    require(root, "cluster", "{\"chip\": \"tpu7x\", \"topology\": \"4x4x4\"}", err);
    const json_t *value = json_object_get(root, "model");
    if (value && !json_is_null(value)) {
        (void)adv_decode_request_model(catalog, value, "/model", config, config_at, model, err, warnings);
    }
    value = json_object_get(root, "cluster");
    if (value && !json_is_null(value)) {
        if (adv_decode_cluster(catalog, value, "/cluster", cluster, err, warnings) != ADV_OK)
            memset(cluster, 0, sizeof *cluster);
    }
    return errors_of(err) == before;
}

bool adv_decode_rows_are_countable(const struct adv_plan *plan, const struct adv_model *model, adv_err *err)
{
    const double rows_max = 1 << 28;
    double tokens = adv_plan_tokens(plan) * adv_plan_degree(plan, ADV_AXIS_TENSOR) *
                    adv_plan_degree(plan, ADV_AXIS_TENSOR_SEQUENCE);
    for (int i = 0; i < model->layer_kinds_count; i++) {
        double rows = tokens * model->layers[i].experts_per_token;
        if (rows <= rows_max) continue;
        (void)adv_err_add(
            err, ADV_E_RANGE, "/config/per_device_batch_size", "fewer sequences a device, or shorter ones",
            "%.6g tokens meet on a device and go to %d experts each: %.6g rows, at most %.0f can be priced",
            tokens, model->layers[i].experts_per_token, rows, rows_max);
        return false;
    }
    return true;
}

static adv_code decode_estimate(const struct adv_catalog *catalog, const json_t *root,
                                struct adv_arena *arena, struct adv_estimate_request *request, adv_err *err,
                                adv_err *warnings)
{
    static const char *const members[] = {"model",  "cluster", "config",   "xla_flags",    "flops_convention",
                                          "strict", "include", "software", "recipe_notes", ADV_STORE_MEMBERS};
    static const char *const conventions[] = {"causal_half", "full", "params_only"};
    int before = errors_of(err);
    memset(request, 0, sizeof *request);
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    (void)adv_json_known_members(root, "", members, (int)(sizeof members / sizeof *members), err);
    bool strict = false;
    (void)adv_json_bool(root, "", "strict", ADV_JSON_OPTIONAL, &strict, err);
    int convention = ADV_FLOPS_CAUSAL_HALF;
    (void)adv_json_choice(root, "", "flops_convention", ADV_JSON_OPTIONAL, conventions, 3, &convention, err);
    request->flops_convention = (enum adv_flops_convention)convention;
    request->include = adv_decode_include(root, ADV_INCLUDES_OF_PLAN, err);
    adv_decode_recipe_notes(root, warnings);
    adv_decode_store(root, arena, &request->wish, err);
    adv_decode_software(catalog, root, &request->software, err);

    ADV_JSON_OWN json_t *config = adv_decode_typed_config(catalog, json_object_get(root, "config"));
    bool has_job =
        decode_job(catalog, root, config, "/config", &request->model, &request->cluster, err, warnings);
    if (has_job) adv_software_settle(catalog, &request->software, &request->cluster.chip);
    if (has_job && adv_decode_model_given(json_object_get(root, "model"), arena, &request->model_keys,
                                          &request->model_keys_count) != ADV_OK)
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    struct adv_decode_config_input input = {
        catalog, &request->model, &request->cluster, config, name_of_model(root), "/config", strict, arena,
        false};
    bool valid = adv_decode_config(&input, &request->plan, &request->config, err, warnings) == ADV_OK;
    adv_config_contradictions(catalog, name_of_model(root), &request->cluster, &request->config, warnings);
    valid &= adv_decode_flags(catalog, json_object_get(root, "xla_flags"), "/xla_flags", strict, arena,
                              &request->plan.flags, &request->config, err, warnings) == ADV_OK;
    if (has_job && warnings) {
        adv_software_warn_flags(catalog, &request->software, &request->config, request->cluster.chip.name,
                                "/xla_flags", warnings);
        (void)adv_software_find_keys(catalog, &request->software, &request->config, "/config", warnings);
        adv_software_warn_pair(catalog, &request->software, warnings);
    }
    if (has_job) {
        valid &= adv_plan_check(&request->plan, &request->model, &request->cluster, err, warnings) == ADV_OK;
        if (warnings) adv_decode_explain_batch(err, warnings);
        valid &= adv_decode_rows_are_countable(&request->plan, &request->model, err);
    }
    return valid && errors_of(err) == before ? ADV_OK : err->code;
}

adv_code adv_decode_estimate_request(const struct adv_catalog *catalog, const json_t *root, const char *at,
                                     struct adv_arena *arena, struct adv_estimate_request *request,
                                     adv_err *err, adv_err *warnings)
{
    if (!*at) return decode_estimate(catalog, root, arena, request, err, warnings);
    adv_err own = adv_err_empty();
    adv_err own_warnings = adv_err_empty();
    adv_code code = decode_estimate(catalog, root, arena, request, &own, &own_warnings);
    adv_err_merge(err, &own, at);
    if (warnings) adv_err_merge(warnings, &own_warnings, at);
    return code;
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
    (void)adv_json_number(workload, "/workload", "global_batch_sequences", ADV_JSON_OPTIONAL, 1, 1e9,
                          &out->global_batch_sequences, err);
    (void)adv_json_number(workload, "/workload", "tokens_per_step", ADV_JSON_OPTIONAL, 1, 1e15,
                          &out->tokens_per_step, err);
    bool per_device = adv_json_number(workload, "/workload", "per_device_batch_size", ADV_JSON_OPTIONAL, 1e-9,
                                      1e6, &out->per_device_batch_size, err);
    if (per_device)
        (void)json_object_set_new(keys, "per_device_batch_size", json_real(out->per_device_batch_size));
    /* A pinned per-device batch alone says the batch; beside a global size it fixes the accumulation steps.
     */
    if (given != 1 && !(given == 0 && pinned)) {
        (void)adv_err_add(
            err, ADV_E_INVALID, "/workload",
            "give exactly one of global_batch_sequences, per_device_batch_size, tokens_per_step",
            "%d sizes of the batch are given", given);
    }
    request->batch_pinned = pinned || per_device;
}

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

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
    *keys = NULL;
    if (!workload) return;
    (void)adv_json_known_members(workload, "/workload", workload_members, COUNT(workload_members), err);
    *keys = workload_keys(workload, &request->workload, err);
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
    request->remat_pinned |= strcmp(key, "remat_policy") == 0;
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

/* Pins and workload together are the plan the search starts from. */
static void decode_base(const struct adv_catalog *catalog, const json_t *root, const json_t *pins,
                        json_t *keys, bool strict, struct adv_arena *arena,
                        struct adv_advise_request *request, adv_err *err, adv_err *warnings)
{
    ADV_JSON_OWN json_t *merged = pins ? json_copy((json_t *)(uintptr_t)pins) : json_object();
    for (struct adv_json_walk entry = {.in = keys}; adv_json_next_member(&entry);) {
        if (json_object_get(pins, entry.key)) {
            if (json_equal(json_object_get(pins, entry.key), entry.value)) continue;
            (void)adv_err_add(err, ADV_E_INVALID, ADV_AT("/pins", entry.key), "leave the pin out",
                              "the workload already says %s", entry.key);
        }
        (void)json_object_set(merged, entry.key, entry.value);
    }
    for (struct adv_json_walk entry = {.in = pins}; adv_json_next_member(&entry);)
        note_pin(request, entry.key, entry.value);
    if (!request->remat_pinned && pins_tensor(pins))
        (void)json_object_set_new(merged, "remat_policy", json_string("custom")); /* else it says nothing */
    struct adv_config *config = adv_arena_alloc(arena, sizeof *config);
    if (!config) {
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
        return;
    }
    struct adv_decode_config_input input = {
        catalog, &request->model, &request->cluster, merged, name_of_model(root), "/pins", strict, arena,
        true};
    if (adv_decode_config(&input, &request->workload.base, config, err, warnings) == ADV_OK)
        keep_pins(config, pins, request);
}

/* A format that was asked for is searched with, also where it does not pay; each estimate repeats this
 * warning. */
static void warn_of_format(const json_t *pins, const struct adv_advise_request *request, adv_err *warnings)
{
    enum adv_quantization quantization = request->workload.base.family.quantization;
    const struct adv_chip *chip = &request->cluster.chip;
    if (adv_quantization_pays(quantization, chip)) return;
    (void)adv_err_add_rule(warnings, ADV_OK, "format-not-native",
                           json_object_get(pins, "quantization") ? "/pins/quantization"
                                                                 : "/workload/quantization",
                           "leave it out, or say \"any\" for the formats that pay",
                           "%s has no faster matmul rate for %s: quantisation only adds work", chip->name,
                           adv_quantization_name(quantization));
}

static const double default_fit_probability = 0.95;

static void decode_search(const json_t *root, struct adv_advise_request *request, adv_err *err)
{
    static const char *const objectives[] = {"step_time", "tokens_per_s", "usd_per_token", "hbm"};
    enum { DEFAULT_TOP_K = 10, CHANGES_MAX = 64 };
    const json_t *search = adv_json_object(root, "", "search", ADV_JSON_OPTIONAL, err);
    request->top_k = DEFAULT_TOP_K;
    request->max_changes = ADV_CHANGES_ANY;
    request->fit_probability = default_fit_probability;
    request->memory_frac = 1.0;
    adv_decode_axes(search, request, err);
    if (!search) return;
    int objective = ADV_OBJECTIVE_STEP_TIME;
    int64_t evaluations = 0;
    (void)adv_json_known_members(search, "/search", search_members, COUNT(search_members), err);
    (void)adv_json_bool(search, "/search", "sensitivities", ADV_JSON_OPTIONAL, &request->wants_sensitivities,
                        err);
    (void)adv_json_choice(search, "/search", "objective", ADV_JSON_OPTIONAL, objectives, 4, &objective, err);
    (void)adv_json_int(search, "/search", "top_k", ADV_JSON_OPTIONAL, 1, ADV_LIMIT_RANKED, &request->top_k,
                       err);
    (void)adv_json_int(search, "/search", "max_changes", ADV_JSON_OPTIONAL, 0, CHANGES_MAX,
                       &request->max_changes, err);
    (void)adv_json_integer(search, "/search", "max_evaluations", ADV_JSON_OPTIONAL, 1, 100000000,
                           &evaluations, err);
    (void)adv_json_number(search, "/search", "fit_probability", ADV_JSON_OPTIONAL, 0.5, 0.9999,
                          &request->fit_probability, err);
    (void)adv_json_number(search, "/search", "memory_frac", ADV_JSON_OPTIONAL, 0.1, 1.0,
                          &request->memory_frac, err);
    request->objective = (enum adv_objective)objective;
    request->max_evaluations = (long)evaluations;
}

/* The baseline is a plan for the request's model: keys that make it another one (the pins' stand in `pins`)
 * are errors, for the two could not be compared. */
static void check_baseline_model(const struct adv_catalog *catalog, const json_t *root, const json_t *pins,
                                 const json_t *config, const struct adv_advise_request *request, adv_err *err)
{
    ADV_JSON_OWN json_t *keys = adv_decode_config_model(catalog, config);
    for (struct adv_json_walk entry = {.in = keys}; adv_json_next_member(&entry);) {
        struct adv_model model;
        ADV_JSON_OWN json_t *with =
            json_is_object(pins) ? json_copy((json_t *)(uintptr_t)pins) : json_object();
        (void)json_object_set(with, entry.key, entry.value);
        bool built = adv_decode_request_model(catalog, json_object_get(root, "model"), "/model", with,
                                              "/baseline/config", &model, err, NULL);
        /* both are built in zeroed memory, so their padding is equal, too */
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison) */
        bool same = memcmp(&model, &request->model, sizeof model) == 0;
        if (built && !same)
            (void)adv_err_add(err, ADV_E_INVALID, ADV_AT("/baseline/config", entry.key),
                              "put it into pins (or model) for the search too, or leave it out",
                              "%s makes the baseline another model than the one to advise on", entry.key);
    }
}

static void decode_baseline(const struct adv_catalog *catalog, const json_t *root, const json_t *pins,
                            bool has_job, bool strict, struct adv_arena *arena,
                            struct adv_advise_request *request, adv_err *err, adv_err *warnings)
{
    static const char *const members[] = {"config", "xla_flags"};
    const json_t *baseline = adv_json_object(root, "", "baseline", ADV_JSON_OPTIONAL, err);
    if (!baseline) return;
    int before = errors_of(err);
    (void)adv_json_known_members(baseline, "/baseline", members, 2, err);
    ADV_JSON_OWN json_t *config = adv_decode_typed_config(catalog, json_object_get(baseline, "config"));
    struct adv_decode_config_input input = {catalog,
                                            &request->model,
                                            &request->cluster,
                                            config,
                                            name_of_model(root),
                                            "/baseline/config",
                                            strict,
                                            arena,
                                            false};
    bool has_config =
        adv_decode_config(&input, &request->baseline, &request->baseline_config, err, warnings) == ADV_OK;
    if (has_job) check_baseline_model(catalog, root, pins, config, request, err);
    bool has_flags =
        adv_decode_flags(catalog, json_object_get(baseline, "xla_flags"), "/baseline/xla_flags", strict,
                         arena, &request->baseline.flags, &request->baseline_config, err, warnings) == ADV_OK;
    if (has_job && warnings)
        adv_software_warn_flags(catalog, &request->software, &request->baseline_config,
                                request->cluster.chip.name, "/baseline/xla_flags", warnings);
    if (has_job && has_config && has_flags) {
        adv_err broken = adv_err_empty();
        adv_err notes = adv_err_empty();
        if (adv_plan_check(&request->baseline, &request->model, &request->cluster, &broken, &notes) !=
            ADV_OK) {
            adv_err_merge(err, &broken, "/baseline");
        }
        if (warnings) adv_err_merge(warnings, &notes, "/baseline");
    }
    request->has_baseline = errors_of(err) == before;
}

adv_code adv_decode_advise_request(const struct adv_catalog *catalog, const json_t *root,
                                   struct adv_arena *arena, struct adv_advise_request *request, adv_err *err,
                                   adv_err *warnings)
{
    int before = errors_of(err), first = err->count;
    memset(request, 0, sizeof *request);
    if (!adv_json_is_object(root, "", err)) return ADV_E_INVALID;
    (void)adv_json_known_members(root, "", advise_members, COUNT(advise_members), err);
    bool strict = false;
    (void)adv_json_bool(root, "", "strict", ADV_JSON_OPTIONAL, &strict, err);
    adv_decode_recipe_notes(root, warnings);
    adv_decode_store(root, arena, &request->wish, err);
    adv_decode_software(catalog, root, &request->software, err);
    if (warnings) adv_software_warn_pair(catalog, &request->software, warnings);
    if (adv_decode_verify(root, err) > 0) request->wish.store = true;
    request->include = adv_decode_include(root, ADV_INCLUDE_TRADE_OFF, err);

    ADV_JSON_OWN json_t *pins =
        adv_decode_typed_config(catalog, adv_json_object(root, "", "pins", ADV_JSON_OPTIONAL, err));
    adv_err_init(&request->job_warnings);
    bool has_job = decode_job(catalog, root, pins, "/pins", &request->model, &request->cluster, err,
                              &request->job_warnings);
    if (has_job) adv_software_settle(catalog, &request->software, &request->cluster.chip);
    if (warnings) adv_err_merge(warnings, &request->job_warnings, "");
    if (has_job)
        request->shapes_count = adv_catalog_shapes(catalog, request->cluster.chip.name, &request->shapes);
    ADV_JSON_OWN json_t *keys = NULL;
    decode_search(root, request, err);
    decode_workload(root, pins, request, &keys, err);
    decode_base(catalog, root, pins, keys, strict, arena, request, err, warnings);
    if (has_job && warnings) warn_of_format(pins, request, warnings);
    if (has_job && adv_decode_model_given(json_object_get(root, "model"), arena, &request->model_keys,
                                          &request->model_keys_count) != ADV_OK)
        (void)adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request is too large");
    bool is_global = request->workload.global_batch_sequences > 0 || request->workload.tokens_per_step > 0;
    if (request->batch_pinned && !is_global)
        request->workload.per_device_batch_size = request->workload.base.family.per_device_batch_size;
    if (has_job) adv_decode_check_pinned_axes(request, err);
    decode_baseline(catalog, root, pins, has_job, strict, arena, request, err, warnings);
    if (request->objective == ADV_OBJECTIVE_USD_PER_TOKEN && has_job &&
        isnan(request->cluster.price_usd_per_chip_hour)) {
        (void)adv_err_add(err, ADV_E_INVALID, "/search/objective", "give cluster.price_usd_per_chip_hour",
                          "no price of a chip hour is known");
    }
    if (request->max_changes != ADV_CHANGES_ANY && !json_object_get(root, "baseline")) {
        (void)adv_err_add(err, ADV_E_INVALID, "/search/max_changes",
                          "give baseline, or leave max_changes out",
                          "changes are counted from a baseline, which is missing");
    }
    point_to_places(err, first);
    return errors_of(err) == before ? ADV_OK : err->code;
}
