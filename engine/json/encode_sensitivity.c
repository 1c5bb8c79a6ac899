#include "engine/json/encode_sensitivity.h"

#include <math.h>

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

json_t *adv_encode_sensitivities(const struct adv_sensitivities *found)
{
    json_t *object = json_object();
    adv_encode_set_number(object, "step_time_s", found->step_time_s);
    (void)json_object_set_new(object, "rates", encode_rates(found));
    (void)json_object_set_new(object, "batch", encode_batch(found));
    (void)json_object_set_new(object, "break_evens", encode_break_evens(found));
    return object;
}
