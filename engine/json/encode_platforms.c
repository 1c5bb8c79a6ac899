#include "engine/json/encode_platforms.h"

#include <math.h>

static void set_bill(json_t *row, const struct adv_platform_bill *bill)
{
    ADV_PUT(row, ADV_M("days_for_tokens", bill->days), ADV_M("usd_for_tokens", bill->usd),
            ADV_M("energy_kwh", bill->energy_kwh));
}

static json_t *encode_assumption(const struct adv_goodput_source *from)
{
    return ADV_OBJECT(ADV_F(from, name), ADV_F(from, value), ADV_F(from, low), ADV_F(from, high),
                      ADV_M("source", from->source ? from->source : "the request"));
}

static json_t *encode_training(const struct adv_training *from)
{
    ADV_LIST(assumptions, i, ADV_GOODPUT_SOURCES, encode_assumption(&from->sources[i]));
    return ADV_OBJECT(ADV_F(from, ends), ADV_M("total_tokens", from->tokens), ADV_F(from, steps),
                      ADV_F(from, productive_days), ADV_F(from, days), ADV_F(from, days_low),
                      ADV_F(from, days_high), ADV_F(from, usd), ADV_F(from, usd_low), ADV_F(from, usd_high),
                      ADV_F(from, goodput_frac), ADV_F(from, failures), ADV_F(from, tokens_lost),
                      ADV_F(from, checkpoint_interval_s), ADV_F(from, checkpoint_interval_steps),
                      ADV_F(from, checkpoints), ADV_F(from, in_time), ADV_M("assumptions", assumptions));
}

static json_t *encode_row(const struct adv_platforms_answer *answer, int rank)
{
    const struct adv_platform_row *from = answer->rows[rank - 1];
    json_t *cluster = adv_encode_cluster(&from->cluster);
    if (!from->has_best)
        return ADV_OBJECT(ADV_M("rank", json_null()), ADV_M("cluster", cluster), ADV_M("best", json_null()),
                          ADV_M("reason", from->reason));
    json_t *row = ADV_OBJECT(ADV_M("rank", rank), ADV_M("cluster", cluster),
                             ADV_M("best", adv_encode_told_plan(&from->cluster, &from->best)),
                             ADV_M("tie_group", from->platform.tie_group + 1),
                             ADV_M("on_front", json_boolean(from->platform.on_front)));
    if (answer->has_bill) set_bill(row, &from->bill);
    if (answer->has_training) (void)json_object_set_new(row, "training", encode_training(&from->training));
    return row;
}

static json_t *encode_headline(const struct adv_headline_row *from, bool has_bill)
{
    const struct adv_chip *chip = from->chip;
    const struct adv_platform *platform = &from->platform;
    json_t *cluster = ADV_OBJECT(ADV_M("chip", chip->name), ADV_F(platform, chips),
                                 ADV_F(platform, price_usd_per_chip_hour));
    json_t *headline = ADV_OBJECT(
        ADV_F(from, label), ADV_F(from, mfu_frac), ADV_M("roofline_step_time_s", platform->step_time_s),
        ADV_M("tokens_per_step", platform->tokens_per_step), ADV_F(chip, peak_bf16_flops_per_s_per_chip),
        ADV_F(chip, hbm_bytes_per_chip), ADV_F(chip, hbm_bytes_per_s_per_chip),
        ADV_F(chip, power_watts_per_chip));
    if (has_bill) set_bill(headline, &from->bill);
    return ADV_OBJECT(ADV_M("rank", json_null()), ADV_M("cluster", cluster), ADV_M("best", json_null()),
                      ADV_M("headline", headline));
}

json_t *adv_encode_platforms(const struct adv_platforms_answer *answer)
{
    ADV_LIST(list, i, answer->count, encode_row(answer, i + 1));
    for (int i = 0; i < answer->headlines_count; i++)
        (void)json_array_append_new(list, encode_headline(&answer->headlines[i], answer->has_bill));
    return list;
}
