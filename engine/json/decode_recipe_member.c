/* decode_recipe_member.c: what a recipe says, put where a request says it. */
#include <string.h>

#include "engine/json/decode_baseline.h"
#include "engine/json/decode_cluster.h"
#include "engine/json/decode_plan.h"
#include "engine/json/decode_recipe.h"
#include "engine/json/decode_value.h"
#include "engine/json/json_load.h"

/* One request on its way: `root` as it came, `said` by the recipe. */
struct merge {
    const struct adv_catalog *catalog;
    json_t *root, *said;
    adv_err *err;
};

static const char *string_of(const json_t *object, const char *member)
{
    const char *text = json_string_value(json_object_get(object, member));
    return text && *text ? text : NULL;
}

/* `name` of the request unless it is there already; takes over the reference. */
static void say(const struct merge *merge, const char *name, json_t *value)
{
    if (value && !json_object_get(merge->root, name))
        (void)json_object_set_new(merge->root, name, value);
    else
        json_decref(value);
}

static bool says_machine(const json_t *root)
{
    const json_t *cluster = json_object_get(root, "cluster");
    return json_object_get(root, "clusters") || json_object_get(cluster, "chip") ||
           json_object_get(cluster, "accelerator") || (cluster && !json_is_object(cluster));
}

/* compile_topology names the machine where no launcher does. */
static json_t *compiled_cluster(const json_t *config)
{
    const char *topology = string_of(config, "compile_topology");
    json_t *slices = json_object_get(config, "compile_topology_num_slices");
    if (!topology) return NULL;
    json_t *cluster = json_pack("{s:s}", "accelerator", topology);
    if (json_integer_value(slices) > 0) (void)json_object_set(cluster, "slices", slices);
    return cluster;
}

static void merge_cluster(const struct merge *merge, const json_t *config)
{
    ADV_JSON_OWN json_t *said = json_incref(json_object_get(merge->said, "cluster"));
    json_t *given = json_object_get(merge->root, "cluster");
    if (!said) said = compiled_cluster(config);
    if (!said || says_machine(merge->root)) return;
    if (json_is_object(given)) (void)json_object_update(said, given); /* slices, price */
    (void)json_object_set(merge->root, "cluster", said);
}

static bool has_model_dims(const json_t *config)
{
    return json_object_get(config, "base_emb_dim") || json_object_get(config, "decoder_block");
}

/* model_name; MaxText trains its default model where a command names none. */
static void merge_model(const struct merge *merge, const json_t *config)
{
    const char *name = string_of(config, "model_name");
    const bool standard = json_is_true(json_object_get(merge->said, "trains")) || has_model_dims(config);
    if (name || standard) say(merge, "model", json_string(name ? name : "default"));
    say(merge, "model", json_incref(json_object_get(merge->said, "model")));
}

/* Of the configuration, or MaxText's default; NULL when it is no number. */
static const json_t *number_of(const struct adv_catalog *catalog, const json_t *config, const char *name,
                               json_t *defaults)
{
    const struct adv_catalog_key *key = adv_catalog_key(catalog, name);
    const json_t *value = json_object_get(config, name);
    if (!value && key) {
        (void)json_object_set_new(defaults, name, adv_json_load_string(key->default_json, JSON_DECODE_ANY));
        value = json_object_get(defaults, name);
    }
    return json_is_number(value) ? value : NULL;
}

/* Sequences of a step: of a device, times the devices, times the accumulation. */
static void merge_batch(const struct merge *merge, const json_t *config, json_t *workload, json_t *defaults)
{
    static const char *const sizes[] = {"global_batch_sequences", "tokens_per_step", "per_device_batch_size"};
    const json_t *machine = json_object_get(merge->said, "cluster");
    const json_t *batch = number_of(merge->catalog, config, "per_device_batch_size", defaults);
    const json_t *steps = number_of(merge->catalog, config, "gradient_accumulation_steps", defaults);
    struct adv_cluster cluster;
    adv_err ignored = adv_err_empty(); /* the machine is judged with the request */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (json_object_get(workload, sizes[i])) return;
    if (json_object_get(json_object_get(merge->root, "pins"), "per_device_batch_size") || !batch || !steps)
        return;
    if (says_machine(merge->root) || !machine) machine = json_object_get(merge->root, "cluster");
    if (!machine || adv_decode_cluster(merge->catalog, machine, "", &cluster, &ignored, NULL) != ADV_OK) {
        (void)json_object_set(workload, "per_device_batch_size", (json_t *)(uintptr_t)batch);
        return;
    }
    const double sequences = json_number_value(batch) * (double)cluster.devices * json_number_value(steps);
    (void)json_object_set_new(workload, "global_batch_sequences", json_real(sequences));
}

static void merge_workload(const struct merge *merge, const json_t *config)
{
    json_t *given = json_object_get(merge->root, "workload");
    ADV_JSON_OWN json_t *workload = json_is_object(given) ? json_copy(given) : json_object();
    ADV_JSON_OWN json_t *defaults = json_object();
    const json_t *length = number_of(merge->catalog, config, "max_target_length", defaults);
    if (given && !json_is_object(given)) return;
    if (length && !json_object_get(workload, "seq_len"))
        (void)json_object_set(workload, "seq_len", (json_t *)(uintptr_t)length);
    merge_batch(merge, config, workload, defaults);
    adv_baseline_formats(config, json_object_get(merge->root, "pins"), workload);
    (void)json_object_set(merge->root, "workload", workload);
}

/* Keys that make the model another one hold for the search, too. */
static void merge_pins(const struct merge *merge, const json_t *config)
{
    ADV_JSON_OWN json_t *model = adv_decode_config_model(merge->catalog, config);
    json_t *pins = json_object_get(merge->root, "pins");
    if (json_object_size(model) == 0 || (pins && !json_is_object(pins))) return;
    if (pins) (void)json_object_update(model, pins);
    (void)json_object_set(merge->root, "pins", model);
}

/* The configuration of the recipe with the keys that stand beside it, in the types of its keys. */
static json_t *merged_config(const struct merge *merge, const json_t *given)
{
    ADV_JSON_OWN json_t *both = json_copy(json_object_get(merge->said, "config"));
    if (!both) both = json_object();
    if (json_is_object(given)) (void)json_object_update(both, (json_t *)(uintptr_t)given);
    return adv_decode_typed_config(merge->catalog, both);
}

static void merge_advise(const struct merge *merge)
{
    json_t *baseline = json_object_get(merge->root, "baseline");
    ADV_JSON_OWN json_t *config = merged_config(merge, json_object_get(baseline, "config"));
    ADV_JSON_OWN json_t *made = json_is_object(baseline) ? json_copy(baseline) : json_object();
    json_t *flags = json_object_get(merge->said, "xla_flags");
    merge_model(merge, config);
    merge_cluster(merge, config);
    merge_workload(merge, config);
    merge_pins(merge, config);
    (void)json_object_set(made, "config", config);
    if (flags && !json_object_get(made, "xla_flags")) (void)json_object_set(made, "xla_flags", flags);
    if (!baseline || json_is_object(baseline)) (void)json_object_set(merge->root, "baseline", made);
}

static void merge_estimate(const struct merge *merge, bool names_model)
{
    const json_t *given = json_object_get(merge->root, "config");
    ADV_JSON_OWN json_t *config = merged_config(merge, given);
    if (names_model) merge_model(merge, config);
    if (names_model || json_object_get(merge->said, "cluster")) merge_cluster(merge, config);
    if (!given || json_is_object(given)) (void)json_object_set(merge->root, "config", config);
    say(merge, "xla_flags", json_incref(json_object_get(merge->said, "xla_flags")));
}

/* A recipe may be a whole request, written as YAML: its members count where the request has none. */
static bool is_request(const json_t *said)
{
    static const char *const members[] = {"workload", "pins", "search", "baseline", "clusters"};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (json_object_get(said, members[i])) return true;
    return false;
}

/* A MaxText YAML has keys only: its flags stand in the environment of the run. */
static void warn_of_flags(const struct merge *merge, enum adv_recipe_use use, adv_err *warnings)
{
    const json_t *root = merge->root, *said = merge->said;
    const json_t *holder = use == ADV_RECIPE_ADVISE ? json_object_get(root, "baseline") : root;
    const bool has_own = json_object_get(said, "cluster") && !json_is_false(json_object_get(said, "trains"));
    if (is_request(said) || has_own || json_object_get(said, "xla_flags") ||
        json_object_get(holder, "xla_flags"))
        return;
    ADV_WARN(
        warnings, "recipe-flags", "/xla_flags",
        "source its flags file (. ./libtpu.env) and give --xla_flags \"$LIBTPU_INIT_ARGS\" beside it",
        "the recipe holds no XLA flags: step time and memory are those of a run without LIBTPU_INIT_ARGS");
}

static void merge_said(const struct merge *merge, enum adv_recipe_use use)
{
    static const char *const own[] = {"config", "xla_flags", "cluster", "trains", "model"};
    ADV_JSON_OWN json_t *others = json_copy(merge->said);
    const bool whole = use == ADV_RECIPE_ADVISE && is_request(merge->said);
    for (size_t i = 0; i < sizeof own / sizeof *own && !whole; i++) (void)json_object_del(others, own[i]);
    (void)json_object_update_missing(merge->root, others);
    if (whole) return;
    if (use == ADV_RECIPE_ADVISE)
        merge_advise(merge);
    else
        merge_estimate(merge, use == ADV_RECIPE_ESTIMATE);
    if (use == ADV_RECIPE_LINT) say(merge, "model", json_incref(json_object_get(merge->said, "model")));
}

adv_code adv_decode_recipe_member(const struct adv_catalog *catalog, enum adv_recipe_use use,
                                  struct adv_arena *arena, json_t **root, adv_err *err, adv_err *warnings)
{
    const char *text = NULL;
    const json_t *recipe = json_object_get(*root, "recipe");
    const json_t *beside = json_object_get(*root, use == ADV_RECIPE_ADVISE ? "baseline" : "config");
    struct adv_recipe_wish wish = {0};
    if (!recipe) return ADV_OK;
    if (!adv_json_lines(*root, "", "recipe", ADV_JSON_REQUIRED, &text, err)) return err->code;
    (void)adv_json_int(*root, "", "recipe_command", ADV_JSON_OPTIONAL, 1, 1000, &wish.command, err);
    wish.given = use == ADV_RECIPE_ADVISE ? json_object_get(beside, "config") : beside;
    wish.has_cluster = says_machine(*root);
    wish.maxtext = string_of(json_object_get(*root, "software"), "maxtext");
    wish.needs_model = use != ADV_RECIPE_LINT && !json_object_get(*root, "model");
    ADV_JSON_OWN json_t *said = NULL;
    adv_code code =
        adv_decode_recipe(catalog, text, json_string_length(recipe), &wish, arena, &said, err, warnings);
    if (code == ADV_OK && !json_is_object(said))
        code = adv_err_add(err, ADV_E_INVALID, "/recipe", NULL, "the recipe is %s, not a configuration",
                           adv_json_type_name(said));
    if (code == ADV_OK && json_object_get(said, "recipe"))
        code = adv_err_add(err, ADV_E_INVALID, "/recipe", "send the inner request itself",
                           "the recipe is a request with a recipe");
    if (code != ADV_OK) return code;
    json_t *merged = json_copy(*root);
    (void)json_object_del(merged, "recipe");
    (void)json_object_del(merged, "recipe_command");
    const struct merge merge = {catalog, merged, said, err};
    warn_of_flags(&merge, use, warnings);
    merge_said(&merge, use);
    json_decref(*root);
    *root = merged;
    return ADV_OK;
}
