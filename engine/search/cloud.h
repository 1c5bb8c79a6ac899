/* cloud.h: all plans that a search priced, counted in bins of step time and memory.
 *
 * The bins are fixed before the first plan is known: steps of 2.5 % around its time, a fiftieth of the memory
 * limit. A search of any length takes the same memory, and the same search gives the same counts.
 */
#pragma once

#include "engine/cost/estimate.h"

enum { ADV_CLOUD_TIMES = 240, ADV_CLOUD_BYTES = 200 };

struct adv_cloud {
    long evaluated, beyond; /* plans offered; those outside of all bins, which are in none */
    double first_time_s;    /* the lower edge of bin 0 is this times ADV_CLOUD_RATIO^(-ADV_CLOUD_TIMES / 2) */
    double bytes_per_bin;
    unsigned counts[ADV_CLOUD_TIMES][ADV_CLOUD_BYTES];
};

/* Lower edge of a bin of time, and so the upper edge of the one before. */
double adv_cloud_time_s(const struct adv_cloud *cloud, int bin);

/* Counts a plan. */
void adv_cloud_offer(struct adv_cloud *cloud, const struct adv_estimate *estimate);
