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
        json_t *fields = json_array();
        for (const char *const *field = adv_sensitivity_fields(i); *field; field++)
            (void)json_array_append_new(fields, json_string(*field));
        json_t *row = ADV_OBJECT(
            ADV_M("rate", rate->rate), ADV_M("fields", fields),
            ADV_M("change_frac", ADV_SENSITIVITY_RATE_FRAC), ADV_M("slower_step_time_s", rate->slower_s),
            ADV_M("faster_step_time_s", rate->faster_s),
            ADV_M("slower_step_time_change_frac", rate->slower_s / found->step_time_s - 1),
            ADV_M("faster_step_time_change_frac", rate->faster_s / found->step_time_s - 1));
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_step(const struct adv_sensitivities *found, const struct adv_batch_step *step)
{
    const struct adv_estimate *at = &step->estimate;
    if (step->broken_rule) return ADV_OBJECT(ADV_F(step, per_device_batch_size), ADV_F(step, broken_rule));
    return ADV_OBJECT(ADV_F(step, per_device_batch_size), ADV_F(at, step_time_s),
                      ADV_M("step_time_change_frac", at->step_time_s / found->step_time_s - 1),
                      ADV_F(at, tokens_per_s_per_chip),
                      ADV_M("hbm_bytes_per_device", round(at->hbm_bytes_per_device)),
                      ADV_M("fit_verdict", adv_fit_name(at->fit)));
}

static json_t *encode_break_even(const struct adv_break_even *at)
{
    return ADV_OBJECT(ADV_F(at, name), ADV_F(at, reached), ADV_F(at, value),
                      ADV_M_IF(at->applies, "range", json_pack("[f,f]", at->low, at->high)),
                      ADV_M_IF(at->applies, "exposed_share_frac", at->share_at_value),
                      ADV_M_IF(at->applies && at->reached, "fit_verdict", adv_fit_name(at->fit)),
                      ADV_F(at, sentence));
}

/* {"rates": [...], "batch": [...], "break_evens": [...]}; a new reference. */
static json_t *encode_sensitivities(const struct adv_sensitivities *found)
{
    ADV_LIST(batch, i, 2, encode_step(found, &found->batch[i]));
    ADV_LIST(break_evens, i, ADV_BREAK_EVENS, encode_break_even(&found->break_evens[i]));
    return ADV_OBJECT(ADV_F(found, step_time_s), ADV_M("rates", encode_rates(found)), ADV_M("batch", batch),
                      ADV_M("break_evens", break_evens));
}

static json_t *parsed(const char *text)
{
    json_t *value = adv_json_load_string(text, JSON_DECODE_ANY);
    return value ? value : json_string(text);
}

static void set_plan(json_t *row, const struct adv_cluster *cluster, const struct adv_told_plan *plan)
{
    ADV_PUT(row, ADV_M("config", adv_encode_config(plan->config)),
            ADV_M("xla_flags", adv_encode_flags(plan->config)),
            ADV_M("estimate",
                  adv_encode_estimate(cluster, plan->estimate, plan->ledger, plan->advice, plan->warnings)));
}

json_t *adv_encode_told_plan(const struct adv_cluster *cluster, const struct adv_told_plan *plan)
{
    json_t *row = json_object();
    set_plan(row, cluster, plan);
    return row;
}

static json_t *encode_change(const struct adv_changes *changes, const struct adv_change *change)
{
    return ADV_OBJECT(ADV_F(change, key), ADV_M("from", parsed(change->from_json)),
                      ADV_M("to", parsed(change->to_json)),
                      ADV_M("group", adv_change_group_name(change->group)),
                      ADV_M("group_gain_frac", changes->group_gain_frac[change->group]),
                      ADV_M("order", change->order > 0 ? json_integer(change->order) : json_null()),
                      ADV_F(change, gain_frac), ADV_F(change, own_gain_frac));
}

static json_t *encode_ranked(const struct adv_advise_answer *answer, int which)
{
    const struct adv_told_plan *plan = &answer->ranked[which];
    const struct adv_changes *changes = plan->changes;
    ADV_LIST(why, k, plan->why->count, json_string(plan->why->sentences[k]));
    ADV_LIST(list, k, changes ? changes->count : 0, encode_change(changes, &changes->items[k]));
    json_t *row =
        ADV_OBJECT(ADV_M("rank", which + 1), ADV_M("tie_group", answer->result->found[which].tie_group + 1));
    set_plan(row, &answer->request->cluster, plan);
    ADV_PUT(row, ADV_M("why", why), ADV_M_IF(changes, "gain_from_baseline_frac", changes->gain_frac),
            ADV_M("changes_from_baseline", list));
    return row;
}

/* A point of the front (`reason` is NULL) or a near miss: headline numbers and keys. */
static json_t *encode_point(const struct adv_told_plan *plan, const char *reason)
{
    const struct adv_estimate *estimate = plan->estimate;
    return ADV_OBJECT(ADV_F(estimate, step_time_s),
                      ADV_M("hbm_bytes_per_device", round(estimate->hbm_bytes_per_device)),
                      ADV_M("hbm_limit_bytes_per_device", round(estimate->hbm_limit_bytes_per_device)),
                      ADV_M("host_bytes_per_host", round(estimate->host_bytes_per_host)),
                      ADV_M("fit_verdict", adv_fit_name(estimate->fit)), ADV_F(estimate, fit_probability),
                      ADV_M("config", adv_encode_config(plan->config)),
                      ADV_M("xla_flags", adv_encode_flags(plan->config)), ADV_M_IF(reason, "reason", reason));
}

static json_t *encode_row(const struct adv_advise_answer *answer, int which)
{
    const struct adv_search_result *result = answer->result;
    const int near = which - result->found_count - result->pareto_count;
    if (which < result->found_count) return encode_ranked(answer, which);
    return encode_point(&answer->ranked[which], near < 0 ? NULL : result->near_misses[near].reason);
}

const char *adv_encode_told(const struct adv_advise_answer *answer, int which, struct adv_arena *arena)
{
    struct adv_arena values;
    adv_arena_init(&values, arena->limit_bytes);
    adv_json_keep_in(&values);
    const char *written = adv_encode_ahead(encode_row(answer, which), arena);
    const bool whole = adv_json_keep_no_more();
    adv_arena_free(&values);
    return whole ? written : NULL;
}

static json_t *encode_search(const struct adv_advise_answer *answer)
{
    static const char *const objectives[] = {ADV_OBJECTIVE_NAMES};
    const struct adv_search_result *result = answer->result;
    return ADV_OBJECT(
        ADV_F(result, considered), ADV_F(result, illegal), ADV_F(result, pruned),
        ADV_F(result, out_of_memory), ADV_M_IF(result->left_out, "left_out", result->left_out),
        ADV_F(result, evaluated), ADV_F(result, exhaustive), ADV_M("elapsed_ms", (double)NAN),
        ADV_M("evaluations_per_s", (double)NAN), ADV_M("objective", objectives[answer->request->objective]),
        ADV_M("tie_frac", ADV_RANK_TIE_FRAC), ADV_M("tie_fit_probability", ADV_RANK_ALMOST_SURE_PROBABILITY),
        ADV_M("memory_frac", result->memory_frac),
        ADV_M_IF(result->empty_why[0] != '\0', "empty_why", result->empty_why));
}

json_t *adv_encode_advise(const struct adv_advise_answer *answer)
{
    const struct adv_cluster *cluster = &answer->request->cluster;
    const struct adv_search_result *result = answer->result;
    ADV_LIST(ranked, i, result->found_count, adv_encode_written(answer->ranked[i].written));
    ADV_LIST(pareto, i, result->pareto_count, adv_encode_written(answer->pareto[i].written));
    ADV_LIST(near_misses, i, result->near_count, adv_encode_written(answer->near_misses[i].written));
    return ADV_OBJECT(
        ADV_M("model", adv_encode_model(&answer->request->model)),
        ADV_M("cluster", adv_encode_cluster(cluster)), ADV_M("ranked", ranked), ADV_M("pareto", pareto),
        ADV_M("baseline",
              result->has_baseline ? adv_encode_told_plan(cluster, &answer->baseline) : json_null()),
        ADV_M("near_misses", near_misses), ADV_M("search", encode_search(answer)),
        ADV_M_IF(result->cloud, "trade_off", adv_encode_cloud(result->cloud)),
        ADV_M_IF(answer->sensitivities, "sensitivities", encode_sensitivities(answer->sensitivities)),
        ADV_M("warnings", adv_encode_findings(answer->warnings)),
        ADV_M("software", adv_encode_software(&answer->request->software)),
        ADV_M("engine", adv_encode_engine(answer->catalog)));
}
