#include "engine/json/encode_platforms.h"

#include <math.h>
#include <stdio.h>

#include "engine/json/encode_common.h"

static void set_bill(json_t *row, const struct adv_platform *platform, double token_budget)
{
    if (isnan(token_budget)) return;
    struct adv_platform_bill bill = adv_platform_bill_of(platform, token_budget);
    adv_encode_set_number(row, "days_for_tokens", bill.days);
    adv_encode_set_number(row, "usd_for_tokens", bill.usd);
    adv_encode_set_number(row, "energy_kwh", bill.energy_kwh);
}

json_t *adv_encode_platforms(struct adv_platform_row *rows, const struct adv_platform *platforms,
                             const int *order, int count, double token_budget)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) {
        struct adv_platform_row *from = &rows[order[i]];
        const struct adv_platform *platform = &platforms[order[i]];
        json_t *row = json_object();
        if (from->best)
            adv_encode_set_integer(row, "rank", i + 1);
        else
            (void)json_object_set_new(row, "rank", json_null());
        (void)json_object_set_new(row, "cluster", from->cluster);
        (void)json_object_set_new(row, "best", from->best ? from->best : json_null());
        if (from->best) {
            adv_encode_set_integer(row, "tie_group", platform->tie_group + 1);
            (void)json_object_set_new(row, "on_front", json_boolean(platform->on_front));
            set_bill(row, platform, token_budget);
        } else {
            adv_encode_set_string(row, "reason", from->reason);
        }
        from->cluster = from->best = NULL;
        (void)json_array_append_new(list, row);
    }
    return list;
}

static double tokens_per_step(const struct adv_workload *workload, int chips)
{
    double seq_len = (double)workload->seq_len;
    if (workload->tokens_per_step > 0) return workload->tokens_per_step;
    if (workload->global_batch_sequences > 0) return workload->global_batch_sequences * seq_len;
    return workload->per_device_batch_size * chips * seq_len;
}

json_t *adv_encode_headline(const struct adv_platform_job *job, const struct adv_model *model,
                            const struct adv_workload *workload, double token_budget)
{
    const struct adv_chip *chip = job->chip;
    bool assumed = !isnan(job->assumed_mfu_frac);
    double mfu_frac = assumed ? job->assumed_mfu_frac : 1;
    double tokens = tokens_per_step(workload, job->chips);
    double flops =
        adv_model_flops(model, tokens / (double)workload->seq_len, workload->seq_len, ADV_FLOPS_CAUSAL_HALF)
            .total;
    struct adv_platform platform = {
        .chips = job->chips,
        .step_time_s = flops / (chip->peak_bf16_flops_per_s_per_chip * job->chips * mfu_frac),
        .tokens_per_step = tokens,
        .price_usd_per_chip_hour = job->price_usd_per_chip_hour,
        .power_watts_per_chip = chip->power_watts_per_chip,
    };
    char label[ADV_LIMIT_NAME];
    if (assumed)
        (void)snprintf(label, sizeof label, "roofline at the request's MFU of %.3g, not modelled", mfu_frac);
    else
        (void)snprintf(label, sizeof label, "roofline at peak, not modelled: real runs are slower");
    json_t *cluster = json_object();
    adv_encode_set_string(cluster, "chip", chip->name);
    adv_encode_set_integer(cluster, "chips", job->chips);
    adv_encode_set_number(cluster, "price_usd_per_chip_hour", job->price_usd_per_chip_hour);
    json_t *headline = json_object();
    adv_encode_set_string(headline, "label", label);
    adv_encode_set_number(headline, "mfu_frac", mfu_frac);
    adv_encode_set_number(headline, "roofline_step_time_s", platform.step_time_s);
    adv_encode_set_number(headline, "tokens_per_step", tokens);
    adv_encode_set_number(headline, "peak_bf16_flops_per_s_per_chip", chip->peak_bf16_flops_per_s_per_chip);
    adv_encode_set_number(headline, "hbm_bytes_per_chip", chip->hbm_bytes_per_chip);
    adv_encode_set_number(headline, "hbm_bytes_per_s_per_chip", chip->hbm_bytes_per_s_per_chip);
    adv_encode_set_number(headline, "power_watts_per_chip", chip->power_watts_per_chip);
    set_bill(headline, &platform, token_budget);
    json_t *row = json_object();
    (void)json_object_set_new(row, "rank", json_null());
    (void)json_object_set_new(row, "cluster", cluster);
    (void)json_object_set_new(row, "best", json_null());
    (void)json_object_set_new(row, "headline", headline);
    return row;
}
