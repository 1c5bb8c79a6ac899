#include "engine/rank/platform.h"

#include <math.h>

#include "engine/base/list.h"
#include "engine/rank/rank.h"

static const double seconds_per_day = 86400, seconds_per_hour = 3600, joules_per_kwh = 3.6e6;

static double productive_token_time_s(const struct adv_platform *platform)
{
    return platform->step_time_s / platform->tokens_per_step;
}

static double token_time_s(const struct adv_platform *platform)
{
    return productive_token_time_s(platform) * (1 + platform->extra_time_frac);
}

static double usd_per_token(const struct adv_platform *platform)
{
    return token_time_s(platform) / seconds_per_hour * platform->chips * platform->price_usd_per_chip_hour;
}

struct adv_platform_bill adv_platform_bill_of(const struct adv_platform *platform, double tokens)
{
    const double time_s = tokens * productive_token_time_s(platform);
    return (struct adv_platform_bill){
        .days = time_s / seconds_per_day,
        .usd = time_s / seconds_per_hour * platform->chips * platform->price_usd_per_chip_hour,
        .energy_kwh = time_s * platform->chips * platform->power_watts_per_chip / joules_per_kwh,
    };
}

static double metric(enum adv_objective objective, const struct adv_platform *platform)
{
    double value = token_time_s(platform);
    if (objective == ADV_OBJECTIVE_HBM) value = platform->hbm_bytes_per_device;
    if (objective == ADV_OBJECTIVE_USD_PER_TOKEN) value = usd_per_token(platform);
    if (objective == ADV_OBJECTIVE_STEP_TIME_HIGH)
        value *= platform->step_time_high_s / platform->step_time_s;
    return isnan(value) ? (double)INFINITY : value;
}

static bool better(enum adv_objective objective, const struct adv_platform *a, const struct adv_platform *b)
{
    const bool both_plan = !isnan(a->step_time_s) && !isnan(b->step_time_s);
    if (both_plan && a->end != b->end) return a->end < b->end;
    double of_a = metric(objective, a), of_b = metric(objective, b);
    if (of_a < of_b || of_b < of_a) return of_a < of_b;
    bool has_a = !isnan(a->step_time_s), has_b = !isnan(b->step_time_s);
    if (has_a != has_b) return has_a;
    return has_a && a->chips < b->chips;
}

static bool dominates(const struct adv_platform *a, const struct adv_platform *b)
{
    double time_a = token_time_s(a), time_b = token_time_s(b);
    double usd_a = usd_per_token(a), usd_b = usd_per_token(b);
    return time_a <= time_b && usd_a <= usd_b && (time_a < time_b || usd_a < usd_b);
}

void adv_platform_rank(enum adv_objective objective, struct adv_platform *platforms, int count, int *order)
{
    for (int i = 0, ordered = 0; i < count; i++) {
        int at = i;
        while (at > 0 && better(objective, &platforms[i], &platforms[order[at - 1]])) at--;
        (void)adv_list_open(order, sizeof *order, &ordered, count, at);
        order[at] = i;
    }
    double limit = -1;
    for (int i = 0, group = -1; i < count; i++) {
        const struct adv_platform *platform = &platforms[order[i]];
        double value = metric(objective, platform);
        const bool of_other_end = i > 0 && platform->end != platforms[order[i - 1]].end;
        if (group < 0 || value > limit || of_other_end) {
            group++;
            limit = value * (1 + ADV_RANK_TIE_FRAC);
        }
        platforms[order[i]].tie_group = group;
    }
    for (int i = 0; i < count; i++) {
        platforms[i].on_front = !isnan(usd_per_token(&platforms[i])) && platforms[i].end != ADV_END_NEVER;
        for (int j = 0; j < count; j++)
            if (dominates(&platforms[j], &platforms[i])) platforms[i].on_front = false;
    }
}
