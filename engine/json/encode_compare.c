#include "engine/json/encode_compare.h"

#include <math.h>

#include "engine/json/encode_common.h"

static json_t *encode_terms(const struct adv_compared_terms *terms)
{
    json_t *list = json_array();
    for (int i = 0; i < terms->count; i++) {
        const struct adv_compared_term *term = &terms->rows[i];
        json_t *row = json_object();
        ADV_SET(row, term, name, from, to);
        adv_encode_set_number(row, "delta", term->to - term->from);
        (void)json_array_append_new(list, row);
    }
    return list;
}

/* "<member>" and "<member>_frac" */
static void set_difference(json_t *object, const char *member, const char *frac_member, double from,
                           double to)
{
    adv_encode_set_number(object, member, to - from);
    adv_encode_set_number(object, frac_member, from > 0 ? to / from - 1 : (double)NAN);
}

static json_t *encode_pair(const struct adv_compared_pair *pair)
{
    const struct adv_compared_run *from = pair->from, *to = pair->to;
    json_t *object = json_object();
    adv_encode_set_string(object, "from", from->id);
    adv_encode_set_string(object, "to", to->id);
    set_difference(object, "step_time_s", "step_time_frac", from->step_time_s, to->step_time_s);
    set_difference(object, "hbm_bytes_per_device", "hbm_frac", from->hbm_bytes_per_device,
                   to->hbm_bytes_per_device);
    (void)json_object_set_new(object, "time_terms", encode_terms(&pair->time));
    (void)json_object_set_new(object, "memory_terms", encode_terms(&pair->memory));
    return object;
}

static json_t *encode_run(const struct adv_compared_run *run)
{
    static const char *const members[] = {
        "step_time_s",           "step_time_low_s", "step_time_high_s",       "tokens_per_step",
        "tokens_per_s_per_chip", "mfu_frac",        "hbm_bytes_per_device",   "fits",
        "fit_verdict",           "bound",           "usd_per_billion_tokens", "confidence"};
    static const char *const of_document[] = {"label", "model", "cluster", "engine"};
    json_t *object = json_object();
    adv_encode_set_string(object, "run_id", run->id);
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
    json_t *root = json_object(), *sides = json_array(), *differences = json_array();
    for (int i = 0; i < count; i++) (void)json_array_append_new(sides, encode_run(&runs[i]));
    for (int i = 0; i + 1 < count; i++) (void)json_array_append_new(differences, encode_pair(&pairs[i]));
    (void)json_object_set_new(root, "runs", sides);
    (void)json_object_set_new(root, "differences", differences);
    return root;
}
