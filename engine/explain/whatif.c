#include "engine/explain/whatif.h"

#include <math.h>
#include <stdio.h>

static bool differs(const struct adv_chip *a, const struct adv_chip *b, const struct adv_chip_field *field)
{
    double one = adv_chip_field_get(a, field), other = adv_chip_field_get(b, field);
    return isnan(one) != isnan(other) || one < other || one > other;
}

static bool is_same(double one, double other)
{
    return !(one < other) && !(one > other);
}

static bool same_estimate(const struct adv_estimate *one, const struct adv_estimate *other)
{
    return is_same(one->step_time_s, other->step_time_s) && is_same(one->mfu_frac, other->mfu_frac) &&
           is_same(one->hbm_bytes_per_device, other->hbm_bytes_per_device) &&
           is_same(one->hbm_limit_bytes_per_device, other->hbm_limit_bytes_per_device) &&
           is_same(one->host_bytes_per_host, other->host_bytes_per_host) &&
           is_same(one->host_limit_bytes_per_host, other->host_limit_bytes_per_host);
}

/* Changed only along with another field. */
static bool follows(const struct adv_chip *chip, const struct adv_chip *published,
                    const struct adv_chip_field *follower)
{
    int count;
    const struct adv_chip_field *fields = adv_chip_fields(&count);
    for (int i = 0; i < count; i++)
        if (adv_chip_field_follower(&fields[i]) == follower && differs(chip, published, &fields[i]))
            return true;
    return false;
}

void adv_whatif_idle(const struct adv_chip *published, const struct adv_estimate_input *input,
                     const struct adv_estimate *estimate, adv_err *warnings)
{
    int count;
    const struct adv_chip_field *fields = adv_chip_fields(&count);
    const struct adv_chip *chip = &input->cluster->chip;
    for (int i = 0; i < count; i++) {
        if (!differs(chip, published, &fields[i]) || follows(chip, published, &fields[i])) continue;
        struct adv_cluster cluster = *input->cluster;
        struct adv_estimate_input without = *input;
        struct adv_estimate unchanged;
        const struct adv_chip_field *follower = adv_chip_field_follower(&fields[i]);
        adv_chip_field_set(&cluster.chip, &fields[i], adv_chip_field_get(published, &fields[i]));
        if (follower) adv_chip_field_set(&cluster.chip, follower, adv_chip_field_get(published, follower));
        without.cluster = &cluster;
        if (adv_estimate_plan(&without, &unchanged, NULL, NULL) != ADV_OK ||
            !same_estimate(estimate, &unchanged))
            continue;
        (void)adv_err_add_rule(
            warnings, ADV_OK, "idle-override", ADV_AT("/cluster/overrides", fields[i].name), NULL,
            "overriding %s changes nothing in the prediction of this plan", fields[i].name);
    }
}
