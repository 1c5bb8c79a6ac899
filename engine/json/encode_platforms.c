#include "engine/json/encode_platforms.h"

#include <math.h>

static void set_bill(json_t *row, const struct adv_platform_bill *bill)
{
    adv_encode_set_number(row, "days_for_tokens", bill->days);
    adv_encode_set_number(row, "usd_for_tokens", bill->usd);
    adv_encode_set_number(row, "energy_kwh", bill->energy_kwh);
}

static json_t *encode_assumptions(const struct adv_goodput_source *sources)
{
    json_t *list = json_array();
    for (int i = 0; i < ADV_GOODPUT_SOURCES; i++) {
        json_t *row = json_object();
        ADV_SET(row, &sources[i], name, value, low, high);
        adv_encode_set_string(row, "source", sources[i].source ? sources[i].source : "the request");
        (void)json_array_append_new(list, row);
    }
    return list;
}

static json_t *encode_training(const struct adv_training *from)
{
    const struct {
        const char *name;
        double value;
    } members[] = {
        {"total_tokens", from->tokens},
        {"steps", from->steps},
        {"productive_days", from->productive_days},
        {"days", from->days},
        {"days_low", from->days_low},
        {"days_high", from->days_high},
        {"usd", from->usd},
        {"usd_low", from->usd_low},
        {"usd_high", from->usd_high},
        {"goodput_frac", from->goodput_frac},
        {"failures", from->failures},
        {"tokens_lost", from->tokens_lost},
        {"checkpoint_interval_s", from->checkpoint_interval_s},
        {"checkpoint_interval_steps", from->checkpoint_interval_steps},
        {"checkpoints", from->checkpoints},
    };
    json_t *training = json_object();
    (void)json_object_set_new(training, "ends", json_boolean(from->ends));
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        adv_encode_set_number(training, members[i].name,
                              isfinite(members[i].value) ? members[i].value : (double)NAN);
    (void)json_object_set_new(training, "in_time", json_boolean(from->in_time));
    (void)json_object_set_new(training, "assumptions", encode_assumptions(from->sources));
    return training;
}

static json_t *encode_row(const struct adv_platforms_answer *answer, int rank)
{
    const struct adv_platform_row *from = answer->rows[rank - 1];
    json_t *row = json_object();
    (void)json_object_set_new(row, "rank", from->has_best ? json_integer(rank) : json_null());
    (void)json_object_set_new(row, "cluster", adv_encode_cluster(&from->cluster));
    (void)json_object_set_new(
        row, "best", from->has_best ? adv_encode_told_plan(&from->cluster, &from->best) : json_null());
    if (!from->has_best) {
        adv_encode_set_string(row, "reason", from->reason);
        return row;
    }
    adv_encode_set_integer(row, "tie_group", from->platform.tie_group + 1);
    (void)json_object_set_new(row, "on_front", json_boolean(from->platform.on_front));
    if (answer->has_bill) set_bill(row, &from->bill);
    if (answer->has_training) (void)json_object_set_new(row, "training", encode_training(&from->training));
    return row;
}

static json_t *encode_headline(const struct adv_headline_row *from, bool has_bill)
{
    const struct adv_chip *chip = from->chip;
    const struct adv_platform *platform = &from->platform;
    json_t *cluster = json_object();
    adv_encode_set_string(cluster, "chip", chip->name);
    ADV_SET(cluster, platform, chips, price_usd_per_chip_hour);
    json_t *headline = json_object();
    ADV_SET(headline, from, label, mfu_frac);
    adv_encode_set_number(headline, "roofline_step_time_s", platform->step_time_s);
    adv_encode_set_number(headline, "tokens_per_step", platform->tokens_per_step);
    ADV_SET(headline, chip, peak_bf16_flops_per_s_per_chip, hbm_bytes_per_chip, hbm_bytes_per_s_per_chip,
            power_watts_per_chip);
    if (has_bill) set_bill(headline, &from->bill);
    json_t *row = json_object();
    (void)json_object_set_new(row, "rank", json_null());
    (void)json_object_set_new(row, "cluster", cluster);
    (void)json_object_set_new(row, "best", json_null());
    (void)json_object_set_new(row, "headline", headline);
    return row;
}

json_t *adv_encode_platforms(const struct adv_platforms_answer *answer)
{
    json_t *list = json_array();
    for (int i = 0; i < answer->count; i++) (void)json_array_append_new(list, encode_row(answer, i + 1));
    for (int i = 0; i < answer->headlines_count; i++)
        (void)json_array_append_new(list, encode_headline(&answer->headlines[i], answer->has_bill));
    return list;
}
