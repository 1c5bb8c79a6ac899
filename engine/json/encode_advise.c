#include "engine/json/encode_advise.h"

#include <math.h>
#include <string.h>

#include "engine/explain/advice.h"
#include "engine/explain/changes.h"
#include "engine/explain/sensitivity.h"
#include "engine/explain/why.h"
#include "engine/json/encode_estimate.h"
#include "engine/json/encode_sensitivity.h"
#include "engine/json/plan_warnings.h"
#include "engine/maxtext/flags.h"
#include "engine/maxtext/over_model.h"
#include "engine/maxtext/write.h"
#include "engine/rank/rank.h"
#include "engine/search/remat_space.h"

/* What every part of the answer is made from. */
struct encoder {
    const struct adv_catalog *catalog;
    const json_t *root;
    const struct adv_advise_request *request;
    const struct adv_constants *constants;
    const struct adv_search_result *result;
    struct adv_arena *arena;
    adv_err *err;
    adv_code code;
};

/* Models of the catalog by name, others NULL: for the keys that a model's own file sets. */
static const char *model_name(const struct adv_advise_request *request)
{
    return request->model_keys_count > 0 ? NULL : request->model.name;
}

/* Whether nobody waits any more: what is written from here on is not sent. */
static bool is_over(struct encoder *encoder)
{
    if (encoder->code == ADV_OK && adv_budget_over(encoder->request->budget))
        encoder->code = adv_budget_refuse(encoder->err);
    return encoder->code != ADV_OK;
}

static json_t *parsed(const char *text)
{
    json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
    return value ? value : json_string(text);
}

static bool is_pinned(const struct adv_advise_request *request, const char *key)
{
    for (int i = 0; i < request->pins_count; i++) {
        if (strcmp(request->pins[i].key, key) == 0) return true;
    }
    return false;
}

/* The model's own keys as they were given, in place of what its layers can be described by. */
static void put_model_keys(const struct adv_advise_request *request, struct adv_config *config)
{
    for (int k = 0; k < request->model_keys_count; k++) {
        const struct adv_pin *key = &request->model_keys[k];
        int at = 0;
        while (at < config->count && strcmp(config->entries[at].key, key->key) != 0) at++;
        if (at == ADV_LIMIT_CONFIG_KEYS || is_pinned(request, key->key)) continue;
        config->entries[at] = (struct adv_config_entry){key->key, key->value_json};
        if (at == config->count) config->count++;
    }
}

/* Keys and flags of a plan, as "config" and "xla_flags" of `row`. NULL: out of memory. */
static const struct adv_config *set_config(struct encoder *encoder, json_t *row, const struct adv_plan *plan)
{
    struct adv_config *config = adv_arena_alloc(encoder->arena, sizeof *config);
    if (!config) {
        encoder->code = adv_err_add(encoder->err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
        return NULL;
    }
    const struct adv_advise_request *request = encoder->request;
    adv_code code = adv_config_write(plan, &request->model, &request->cluster, request->pins,
                                     request->pins_count, encoder->arena, config, encoder->err);
    if (code == ADV_OK) put_model_keys(request, config);
    if (code == ADV_OK)
        code = adv_say_over_model(encoder->catalog, model_name(request), &request->model, &request->cluster,
                                  plan, encoder->arena, config, encoder->err);
    if (code == ADV_OK)
        code =
            adv_flags_write(plan, &request->cluster, encoder->catalog, encoder->arena, config, encoder->err);
    if (code != ADV_OK) encoder->code = code;
    (void)json_object_set_new(row, "config", adv_encode_config(config));
    (void)json_object_set_new(row, "xla_flags", adv_encode_flags(config));
    return code == ADV_OK ? config : NULL;
}

static void set_changes(struct encoder *encoder, json_t *row, const struct adv_candidate *candidate)
{
    json_t *list = json_array();
    const struct adv_search_result *result = encoder->result;
    struct adv_changes *changes =
        result->has_baseline ? adv_arena_alloc(encoder->arena, sizeof *changes) : NULL;
    if (changes) {
        adv_code code =
            adv_changes_find(encoder->request, encoder->constants, &result->baseline, candidate,
                             encoder->result->baseline_reread, encoder->arena, changes, encoder->err);
        if (code != ADV_OK) encoder->code = code;
        for (int i = 0; i < changes->count; i++) {
            const struct adv_change *change = &changes->items[i];
            json_t *item = json_object();
            adv_encode_set_string(item, "key", change->key);
            (void)json_object_set_new(item, "from", parsed(change->from_json));
            (void)json_object_set_new(item, "to", parsed(change->to_json));
            adv_encode_set_string(item, "group", adv_change_group_name(change->group));
            adv_encode_set_number(item, "group_gain_frac", changes->group_gain_frac[change->group]);
            if (change->order > 0)
                adv_encode_set_integer(item, "order", change->order);
            else
                (void)json_object_set_new(item, "order", json_null());
            adv_encode_set_number(item, "gain_frac", change->gain_frac);
            adv_encode_set_number(item, "own_gain_frac", change->own_gain_frac);
            (void)json_array_append_new(list, item);
        }
        adv_encode_set_number(row, "gain_from_baseline_frac", changes->gain_frac);
    }
    (void)json_object_set_new(row, "changes_from_baseline", list);
}

static json_t *encode_why(const struct adv_why *why)
{
    json_t *list = json_array();
    for (int i = 0; i < why->count; i++) (void)json_array_append_new(list, json_string(why->sentences[i]));
    return list;
}

/* Whether the ranked plans have the best placements and tiles there are: nothing fixed them, and the search
 * was for speed and came to its end. */
static bool ranked_are_searched(const struct encoder *encoder)
{
    const struct adv_advise_request *request = encoder->request;
    struct adv_remat_space open;
    adv_remat_space_build(request, &open);
    bool within = encoder->result->has_baseline && request->max_changes != ADV_CHANGES_ANY;
    return encoder->result->exhaustive && !within && request->objective != ADV_OBJECTIVE_HBM &&
           !open.pinned && !open.any_fixed && open.tilings_count > 1 && !request->tiles_pinned;
}

/* What the estimate of a plan warns of that is written as `row`; NULL without one. */
static const adv_err *warnings_of(const struct encoder *encoder, const json_t *row,
                                  const struct adv_estimate_input *input, const struct adv_estimate *estimate,
                                  const struct adv_ledger *ledger)
{
    struct adv_arena scratch;
    adv_err *warnings = row ? adv_arena_alloc(encoder->arena, sizeof *warnings) : NULL;
    if (!warnings) return NULL;
    adv_err_init(warnings);
    adv_arena_init(&scratch, ADV_LIMIT_ARENA_BYTES);
    adv_warn_of_row(encoder->catalog, encoder->root, row, input, estimate, ledger, &scratch, warnings);
    adv_arena_free(&scratch);
    return warnings;
}

/* Estimate with ledger and advice of a plan. `row`: its keys and flags as written, NULL when its warnings are
 * told elsewhere. */
static json_t *estimated(struct encoder *encoder, const struct adv_candidate *candidate, const json_t *row,
                         const struct adv_reread *reread, bool searched, struct adv_ledger *ledger)
{
    const struct adv_advise_request *request = encoder->request;
    struct adv_estimate estimate;
    struct adv_estimate_input input = {&request->model, &request->cluster, encoder->constants,
                                       &candidate->plan, ADV_FLOPS_CAUSAL_HALF};
    struct adv_advice_list *advice = adv_arena_alloc(encoder->arena, sizeof *advice);
    if (!advice)
        encoder->code = adv_err_add(encoder->err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    adv_code code = adv_estimate_plan(&input, &estimate, ledger, encoder->err);
    if (code != ADV_OK) encoder->code = code;
    if (encoder->code != ADV_OK) return NULL;
    adv_advice_find(&input, &estimate, ledger, reread, searched, advice);
    return adv_encode_estimate(&request->cluster, &estimate, ledger, advice,
                               warnings_of(encoder, row, &input, &estimate, ledger));
}

/* The same of a plan that was written as `config`. */
static json_t *estimated_as(struct encoder *encoder, const struct adv_candidate *candidate,
                            const struct adv_config *config, const json_t *row, bool searched,
                            struct adv_ledger *ledger)
{
    const struct adv_advise_request *request = encoder->request;
    struct adv_reread *reread = adv_arena_alloc(encoder->arena, sizeof *reread);
    if (!reread)
        encoder->code = adv_err_add(encoder->err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    if (!config || !reread) return NULL;
    encoder->code = adv_reread_open(reread, encoder->catalog, &request->model, model_name(request),
                                    &request->cluster, config, encoder->arena, encoder->err);
    return encoder->code == ADV_OK ? estimated(encoder, candidate, row, reread, searched, ledger) : NULL;
}

static json_t *encode_ranked(struct encoder *encoder)
{
    json_t *list = json_array();
    struct adv_ledger *ledger = adv_arena_alloc(encoder->arena, sizeof *ledger);
    struct adv_why *why = adv_arena_alloc(encoder->arena, sizeof *why);
    if (!ledger || !why)
        encoder->code = adv_err_add(encoder->err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    bool searched = ranked_are_searched(encoder);
    for (int i = 0; why && i < encoder->result->found_count && encoder->code == ADV_OK; i++) {
        const struct adv_candidate *candidate = &encoder->result->found[i];
        if (is_over(encoder)) break;
        json_t *row = json_object();
        adv_encode_set_integer(row, "rank", i + 1);
        adv_encode_set_integer(row, "tie_group", candidate->tie_group + 1);
        const struct adv_config *config = set_config(encoder, row, &candidate->plan);
        (void)json_object_set_new(row, "estimate",
                                  estimated_as(encoder, candidate, config, row, searched, ledger));
        if (encoder->code == ADV_OK) {
            adv_why_explain(encoder->request, encoder->constants, encoder->result, i, ledger, why);
            (void)json_object_set_new(row, "why", encode_why(why));
            set_changes(encoder, row, candidate);
        }
        (void)json_array_append_new(list, row);
    }
    return list;
}

/* A point of the front, a near miss, the baseline: keys and headline numbers. */
static json_t *encode_point(struct encoder *encoder, const struct adv_candidate *candidate)
{
    json_t *row = json_object();
    const struct adv_estimate *estimate = &candidate->estimate;
    adv_encode_set_number(row, "step_time_s", estimate->step_time_s);
    adv_encode_set_number(row, "hbm_bytes_per_device", round(estimate->hbm_bytes_per_device));
    adv_encode_set_number(row, "hbm_limit_bytes_per_device", round(estimate->hbm_limit_bytes_per_device));
    adv_encode_set_number(row, "host_bytes_per_host", round(estimate->host_bytes_per_host));
    adv_encode_set_string(row, "fit_verdict", adv_fit_name(estimate->fit));
    (void)set_config(encoder, row, &candidate->plan);
    return row;
}

static json_t *encode_pareto(struct encoder *encoder)
{
    json_t *list = json_array();
    for (int i = 0; i < encoder->result->pareto_count && !is_over(encoder); i++)
        (void)json_array_append_new(list, encode_point(encoder, &encoder->result->pareto[i]));
    return list;
}

static json_t *encode_near_misses(struct encoder *encoder)
{
    json_t *list = json_array();
    for (int i = 0; i < encoder->result->near_count; i++) {
        const struct adv_near_miss *miss = &encoder->result->near_misses[i];
        json_t *row = encode_point(encoder, &miss->candidate);
        adv_encode_set_string(row, "reason", miss->reason);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_baseline(struct encoder *encoder)
{
    if (!encoder->result->has_baseline) return json_null();
    struct adv_ledger *ledger = adv_arena_alloc(encoder->arena, sizeof *ledger);
    json_t *row = json_object();
    (void)json_object_set_new(row, "config", adv_encode_config(&encoder->request->baseline_config));
    (void)json_object_set_new(row, "xla_flags", adv_encode_flags(&encoder->request->baseline_config));
    if (ledger)
        (void)json_object_set_new(row, "estimate",
                                  estimated(encoder, &encoder->result->baseline, NULL,
                                            encoder->result->baseline_reread, false, ledger));
    else
        encoder->code = adv_err_add(encoder->err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    return row;
}

static const char *const objective_names[] = {"step_time", "tokens_per_s", "usd_per_token", "hbm"};

static json_t *encode_search(const struct encoder *encoder)
{
    const struct adv_search_result *result = encoder->result;
    json_t *search = json_object();
    adv_encode_set_integer(search, "considered", result->considered);
    adv_encode_set_integer(search, "illegal", result->illegal);
    adv_encode_set_integer(search, "pruned", result->pruned);
    adv_encode_set_integer(search, "out_of_memory", result->out_of_memory);
    adv_encode_set_integer(search, "evaluated", result->evaluated);
    (void)json_object_set_new(search, "exhaustive", json_boolean(result->exhaustive));
    adv_encode_set_number(search, "elapsed_ms", (double)NAN);
    adv_encode_set_number(search, "evaluations_per_s", (double)NAN);
    adv_encode_set_string(search, "objective", objective_names[encoder->request->objective]);
    adv_encode_set_number(search, "tie_frac", ADV_RANK_TIE_FRAC);
    adv_encode_set_number(search, "memory_frac", result->memory_frac);
    if (result->empty_why[0] != '\0') adv_encode_set_string(search, "empty_why", result->empty_why);
    return search;
}

static json_t *encode_sensitivities(struct encoder *encoder)
{
    struct adv_sensitivities *found = adv_arena_alloc(encoder->arena, sizeof *found);
    if (!found) {
        encoder->code = adv_err_add(encoder->err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
        return json_null();
    }
    if (is_over(encoder)) return json_null();
    adv_code code = adv_sensitivity_find(encoder->request, encoder->constants, &encoder->result->found[0],
                                         encoder->arena, found, encoder->err);
    if (code != ADV_OK) encoder->code = code;
    return code == ADV_OK ? adv_encode_sensitivities(found) : json_null();
}

adv_code adv_encode_advise(const struct adv_catalog *catalog, const json_t *root,
                           const struct adv_advise_request *request, const struct adv_search_result *result,
                           const adv_err *warnings, struct adv_arena *arena, json_t **answer, adv_err *err)
{
    const struct adv_constants *constants = &adv_catalog_chip(catalog, request->cluster.chip.name)->constants;
    struct encoder encoder = {catalog, root, request, constants, result, arena, err, ADV_OK};
    json_t *object = json_object();
    (void)json_object_set_new(object, "model", adv_encode_model(&request->model));
    (void)json_object_set_new(object, "cluster", adv_encode_cluster(&request->cluster));
    (void)json_object_set_new(object, "ranked", encode_ranked(&encoder));
    (void)json_object_set_new(object, "pareto", encode_pareto(&encoder));
    (void)json_object_set_new(object, "baseline", encode_baseline(&encoder));
    (void)json_object_set_new(object, "near_misses", encode_near_misses(&encoder));
    (void)json_object_set_new(object, "search", encode_search(&encoder));
    if (request->wants_sensitivities && result->found_count > 0)
        (void)json_object_set_new(object, "sensitivities", encode_sensitivities(&encoder));
    (void)json_object_set_new(object, "warnings", warnings ? adv_encode_findings(warnings) : json_array());
    (void)json_object_set_new(object, "engine", adv_encode_engine(catalog));
    if (encoder.code != ADV_OK) {
        json_decref(object);
        return encoder.code;
    }
    *answer = object;
    return ADV_OK;
}

adv_code adv_encode_best(const struct adv_catalog *catalog, const json_t *root,
                         const struct adv_advise_request *request, const struct adv_candidate *candidate,
                         struct adv_arena *arena, json_t **row, adv_err *err)
{
    const struct adv_constants *constants = &adv_catalog_chip(catalog, request->cluster.chip.name)->constants;
    struct encoder encoder = {.catalog = catalog,
                              .root = root,
                              .request = request,
                              .constants = constants,
                              .arena = arena,
                              .err = err};
    struct adv_ledger *ledger = adv_arena_alloc(arena, sizeof *ledger);
    if (!ledger) return adv_err_add(err, ADV_E_MEMORY, "", NULL, "the request's memory is used up");
    struct adv_estimate estimate;
    struct adv_estimate_input input = {&request->model, &request->cluster, constants, &candidate->plan,
                                       ADV_FLOPS_CAUSAL_HALF};
    adv_code code = adv_estimate_plan(&input, &estimate, ledger, err);
    if (code != ADV_OK) return code;
    json_t *object = json_object();
    (void)set_config(&encoder, object, &candidate->plan);
    (void)json_object_set_new(object, "estimate",
                              adv_encode_estimate(&request->cluster, &estimate, ledger, NULL,
                                                  warnings_of(&encoder, object, &input, &estimate, ledger)));
    *row = object;
    if (encoder.code == ADV_OK) return ADV_OK;
    json_decref(object);
    *row = NULL;
    return encoder.code;
}
