#include "engine/json/encode_compare.h"

#include <math.h>

#include "engine/json/encode_common.h"

static json_t *encode_terms(const struct adv_compared_terms *terms)
{
    const struct adv_compared_term *rows = terms->rows;
    ADV_LIST(list, i, terms->count,
             ADV_OBJECT(ADV_F(&rows[i], name), ADV_F(&rows[i], from), ADV_F(&rows[i], to),
                        ADV_M("delta", rows[i].to - rows[i].from)));
    return list;
}

/* "<member>" and "<member>_frac" */
static void set_difference(json_t *object, const char *member, const char *frac_member, double from,
                           double to)
{
    ADV_PUT(object, ADV_M(member, to - from), ADV_M(frac_member, from > 0 ? to / from - 1 : (double)NAN));
}

static json_t *encode_pair(const struct adv_compared_pair *pair)
{
    const struct adv_compared_run *from = pair->from, *to = pair->to;
    json_t *object = ADV_OBJECT(ADV_M("from", from->id), ADV_M("to", to->id));
    set_difference(object, "step_time_s", "step_time_frac", from->step_time_s, to->step_time_s);
    set_difference(object, "hbm_bytes_per_device", "hbm_frac", from->hbm_bytes_per_device,
                   to->hbm_bytes_per_device);
    ADV_PUT(object, ADV_M("time_terms", encode_terms(&pair->time)),
            ADV_M("memory_terms", encode_terms(&pair->memory)));
    return object;
}

static json_t *encode_run(const struct adv_compared_run *run)
{
    static const char *const members[] = {
        "step_time_s",           "step_time_low_s", "step_time_high_s",       "tokens_per_step",
        "tokens_per_s_per_chip", "mfu_frac",        "hbm_bytes_per_device",   "fits",
        "fit_verdict",           "bound",           "usd_per_billion_tokens", "confidence"};
    static const char *const of_document[] = {"label", "model", "cluster", "engine"};
    json_t *object = ADV_OBJECT(ADV_M("run_id", run->id));
    for (size_t i = 0; i < sizeof of_document / sizeof *of_document; i++) {
        json_t *value = json_object_get(run->document, of_document[i]);
        if (value) (void)json_object_set(object, of_document[i], value);
    }
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *value = json_object_get(run->estimate, members[i]);
        (void)json_object_set_new(object, members[i], value ? json_incref(value) : json_null());
    }
    return object;
}

json_t *adv_encode_compared(const struct adv_compared_run *runs, int count,
                            const struct adv_compared_pair *pairs)
{
    ADV_LIST(sides, i, count, encode_run(&runs[i]));
    ADV_LIST(differences, i, count - 1, encode_pair(&pairs[i]));
    return ADV_OBJECT(ADV_M("runs", sides), ADV_M("differences", differences));
}
