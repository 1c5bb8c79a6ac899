#include "engine/json/encode_platforms.h"

static void set_bill(json_t *row, const struct adv_platform_bill *bill)
{
    adv_encode_set_number(row, "days_for_tokens", bill->days);
    adv_encode_set_number(row, "usd_for_tokens", bill->usd);
    adv_encode_set_number(row, "energy_kwh", bill->energy_kwh);
}

static json_t *encode_row(const struct adv_platform_row *from, int rank, bool has_bill)
{
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
    if (has_bill) set_bill(row, &from->bill);
    return row;
}

static json_t *encode_headline(const struct adv_headline_row *from, bool has_bill)
{
    const struct adv_chip *chip = from->chip;
    const struct adv_platform *platform = &from->platform;
    json_t *cluster = json_object();
    adv_encode_set_string(cluster, "chip", chip->name);
    adv_encode_set_integer(cluster, "chips", platform->chips);
    adv_encode_set_number(cluster, "price_usd_per_chip_hour", platform->price_usd_per_chip_hour);
    json_t *headline = json_object();
    adv_encode_set_string(headline, "label", from->label);
    adv_encode_set_number(headline, "mfu_frac", from->mfu_frac);
    adv_encode_set_number(headline, "roofline_step_time_s", platform->step_time_s);
    adv_encode_set_number(headline, "tokens_per_step", platform->tokens_per_step);
    adv_encode_set_number(headline, "peak_bf16_flops_per_s_per_chip", chip->peak_bf16_flops_per_s_per_chip);
    adv_encode_set_number(headline, "hbm_bytes_per_chip", chip->hbm_bytes_per_chip);
    adv_encode_set_number(headline, "hbm_bytes_per_s_per_chip", chip->hbm_bytes_per_s_per_chip);
    adv_encode_set_number(headline, "power_watts_per_chip", chip->power_watts_per_chip);
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
    for (int i = 0; i < answer->count; i++)
        (void)json_array_append_new(list, encode_row(answer->rows[i], i + 1, answer->has_bill));
    for (int i = 0; i < answer->headlines_count; i++)
        (void)json_array_append_new(list, encode_headline(&answer->headlines[i], answer->has_bill));
    return list;
}
