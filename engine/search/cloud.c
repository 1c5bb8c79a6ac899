#include "engine/search/cloud.h"

#include <math.h>

static const double log_ratio = 0.025, limit_share = 1.0 / 50.0;

double adv_cloud_time_s(const struct adv_cloud *cloud, int bin)
{
    return cloud->first_time_s * exp(log_ratio * (bin - ADV_CLOUD_TIMES / 2));
}

void adv_cloud_offer(struct adv_cloud *cloud, const struct adv_estimate *estimate)
{
    if (cloud->evaluated++ == 0) {
        cloud->first_time_s = estimate->step_time_s;
        cloud->bytes_per_bin = limit_share * estimate->hbm_limit_bytes_per_device;
    }
    const double time =
        floor(log(estimate->step_time_s / cloud->first_time_s) / log_ratio) + ADV_CLOUD_TIMES / 2;
    const double bytes = floor(estimate->hbm_bytes_per_device / cloud->bytes_per_bin);
    if (!(time >= 0 && time < ADV_CLOUD_TIMES && bytes >= 0 && bytes < ADV_CLOUD_BYTES))
        cloud->beyond++;
    else
        cloud->counts[(int)time][(int)bytes]++;
}
