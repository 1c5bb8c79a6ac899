#include "engine/json/encode_advise.h"

#include <math.h>

#include "engine/json/encode_estimate.h"
#include "engine/json/encode_pictures.h"
#include "engine/json/json_load.h"
#include "engine/rank/rank.h"

static json_t *encode_rates(const struct adv_sensitivities *found)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_SENSITIVITY_RATES; i++) {
        const struct adv_rate_sensitivity *rate = &found->rates[i];
        if (!rate->known) continue;
        json_t *row = json_object();
        json_t *fields = json_array();
        for (const char *const *field = adv_sensitivity_fields(i); *field; field++)
            (void)json_array_append_new(fields, json_string(*field));
        adv_encode_set_string(row, "rate", rate->rate);
        (void)json_object_set_new(row, "fields", fields);
        adv_encode_set_number(row, "change_frac", ADV_SENSITIVITY_RATE_FRAC);
        adv_encode_set_number(row, "slower_step_time_s", rate->slower_s);
        adv_encode_set_number(row, "faster_step_time_s", rate->faster_s);
        adv_encode_set_number(row, "slower_step_time_change_frac", rate->slower_s / found->step_time_s - 1);
        adv_encode_set_number(row, "faster_step_time_change_frac", rate->faster_s / found->step_time_s - 1);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_batch(const struct adv_sensitivities *found)
{
    json_t *list = json_array();
    for (int i = 0; i < 2; i++) {
        const struct adv_batch_step *step = &found->batch[i];
        json_t *row = json_object();
        adv_encode_set_number(row, "per_device_batch_size", step->per_device_batch_size);
        if (step->broken_rule) {
            adv_encode_set_string(row, "broken_rule", step->broken_rule);
        } else {
            const struct adv_estimate *at = &step->estimate;
            adv_encode_set_number(row, "step_time_s", at->step_time_s);
            adv_encode_set_number(row, "step_time_change_frac", at->step_time_s / found->step_time_s - 1);
            adv_encode_set_number(row, "tokens_per_s_per_chip", at->tokens_per_s_per_chip);
            adv_encode_set_number(row, "hbm_bytes_per_device", round(at->hbm_bytes_per_device));
            adv_encode_set_string(row, "fit_verdict", adv_fit_name(at->fit));
        }
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_break_evens(const struct adv_sensitivities *found)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_BREAK_EVENS; i++) {
        const struct adv_break_even *at = &found->break_evens[i];
        json_t *row = json_object();
        ADV_SET(row, at, name, reached, value);
        if (at->applies) {
            (void)json_object_set_new(row, "range", json_pack("[f,f]", at->low, at->high));
            adv_encode_set_number(row, "exposed_share_frac", at->share_at_value);
            if (at->reached) adv_encode_set_string(row, "fit_verdict", adv_fit_name(at->fit));
        }
        adv_encode_set_string(row, "sentence", at->sentence);
        (void)json_array_append_new(list, row);
    }
    return list;
}

/* {"rates": [...], "batch": [...], "break_evens": [...]}; a new reference. */
static json_t *encode_sensitivities(const struct adv_sensitivities *found)
{
    json_t *object = json_object();
    adv_encode_set_number(object, "step_time_s", found->step_time_s);
    (void)json_object_set_new(object, "rates", encode_rates(found));
    (void)json_object_set_new(object, "batch", encode_batch(found));
    (void)json_object_set_new(object, "break_evens", encode_break_evens(found));
    return object;
}

static json_t *parsed(const char *text)
{
    json_t *value = adv_json_load_string(text, JSON_DECODE_ANY);
    return value ? value : json_string(text);
}

static void set_config(json_t *row, const struct adv_config *config)
{
    (void)json_object_set_new(row, "config", adv_encode_config(config));
    (void)json_object_set_new(row, "xla_flags", adv_encode_flags(config));
}

static void set_plan(json_t *row, const struct adv_cluster *cluster, const struct adv_told_plan *plan)
{
    set_config(row, plan->config);
    (void)json_object_set_new(
        row, "estimate",
        adv_encode_estimate(cluster, plan->estimate, plan->ledger, plan->advice, plan->warnings));
}

json_t *adv_encode_told_plan(const struct adv_cluster *cluster, const struct adv_told_plan *plan)
{
    json_t *row = json_object();
    set_plan(row, cluster, plan);
    return row;
}

static json_t *encode_why(const struct adv_why *why)
{
    json_t *list = json_array();
    for (int i = 0; i < why->count; i++) (void)json_array_append_new(list, json_string(why->sentences[i]));
    return list;
}

static json_t *encode_change(const struct adv_changes *changes, const struct adv_change *change)
{
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
    ADV_SET(item, change, gain_frac, own_gain_frac);
    return item;
}

static void set_changes(json_t *row, const struct adv_changes *changes)
{
    json_t *list = json_array();
    for (int i = 0; changes && i < changes->count; i++)
        (void)json_array_append_new(list, encode_change(changes, &changes->items[i]));
    if (changes) adv_encode_set_number(row, "gain_from_baseline_frac", changes->gain_frac);
    (void)json_object_set_new(row, "changes_from_baseline", list);
}

static json_t *encode_ranked(const struct adv_advise_answer *answer)
{
    json_t *list = json_array();
    for (int i = 0; i < answer->result->found_count; i++) {
        const struct adv_told_plan *plan = &answer->ranked[i];
        json_t *row = json_object();
        adv_encode_set_integer(row, "rank", i + 1);
        adv_encode_set_integer(row, "tie_group", answer->result->found[i].tie_group + 1);
        set_plan(row, &answer->request->cluster, plan);
        (void)json_object_set_new(row, "why", encode_why(plan->why));
        set_changes(row, plan->changes);
        (void)json_array_append_new(list, row);
    }
    return list;
}

/* A point of the front or a near miss: headline numbers and keys. */
static json_t *encode_point(const struct adv_told_plan *plan)
{
    json_t *row = json_object();
    const struct adv_estimate *estimate = plan->estimate;
    adv_encode_set_number(row, "step_time_s", estimate->step_time_s);
    adv_encode_set_number(row, "hbm_bytes_per_device", round(estimate->hbm_bytes_per_device));
    adv_encode_set_number(row, "hbm_limit_bytes_per_device", round(estimate->hbm_limit_bytes_per_device));
    adv_encode_set_number(row, "host_bytes_per_host", round(estimate->host_bytes_per_host));
    adv_encode_set_string(row, "fit_verdict", adv_fit_name(estimate->fit));
    set_config(row, plan->config);
    return row;
}

static json_t *encode_pareto(const struct adv_advise_answer *answer)
{
    json_t *list = json_array();
    for (int i = 0; i < answer->result->pareto_count; i++)
        (void)json_array_append_new(list, encode_point(&answer->pareto[i]));
    return list;
}

static json_t *encode_near_misses(const struct adv_advise_answer *answer)
{
    json_t *list = json_array();
    for (int i = 0; i < answer->result->near_count; i++) {
        json_t *row = encode_point(&answer->near_misses[i]);
        adv_encode_set_string(row, "reason", answer->result->near_misses[i].reason);
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_search(const struct adv_advise_answer *answer)
{
    static const char *const objectives[] = {"step_time", "tokens_per_s", "usd_per_token", "hbm"};
    const struct adv_search_result *result = answer->result;
    json_t *search = json_object();
    ADV_SET(search, result, considered, illegal, pruned, out_of_memory, evaluated, exhaustive);
    adv_encode_set_number(search, "elapsed_ms", (double)NAN);
    adv_encode_set_number(search, "evaluations_per_s", (double)NAN);
    adv_encode_set_string(search, "objective", objectives[answer->request->objective]);
    adv_encode_set_number(search, "tie_frac", ADV_RANK_TIE_FRAC);
    adv_encode_set_number(search, "memory_frac", result->memory_frac);
    if (result->empty_why[0] != '\0') adv_encode_set_string(search, "empty_why", result->empty_why);
    return search;
}

json_t *adv_encode_advise(const struct adv_advise_answer *answer)
{
    const struct adv_cluster *cluster = &answer->request->cluster;
    json_t *object = json_object();
    (void)json_object_set_new(object, "model", adv_encode_model(&answer->request->model));
    (void)json_object_set_new(object, "cluster", adv_encode_cluster(cluster));
    (void)json_object_set_new(object, "ranked", encode_ranked(answer));
    (void)json_object_set_new(object, "pareto", encode_pareto(answer));
    (void)json_object_set_new(object, "baseline",
                              answer->result->has_baseline ? adv_encode_told_plan(cluster, &answer->baseline)
                                                           : json_null());
    (void)json_object_set_new(object, "near_misses", encode_near_misses(answer));
    (void)json_object_set_new(object, "search", encode_search(answer));
    if (answer->result->cloud)
        (void)json_object_set_new(object, "trade_off", adv_encode_cloud(answer->result->cloud));
    if (answer->sensitivities)
        (void)json_object_set_new(object, "sensitivities", encode_sensitivities(answer->sensitivities));
    (void)json_object_set_new(object, "warnings", adv_encode_findings(answer->warnings));
    (void)json_object_set_new(object, "engine", adv_encode_engine(answer->catalog));
    return object;
}
