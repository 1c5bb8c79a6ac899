/* platform.h: one workload over several clusters: which is best, what it costs, which are worth a look.
 *
 * A platform is judged by the first plan of its own search. Rows without a plan come last, in the order
 * given. Pure arithmetic on predictions; knows no plans and no search.
 */
#pragma once

#include <stdbool.h>

#include "engine/spec/request.h"

struct adv_platform {
    int chips;
    double step_time_s, tokens_per_step; /* NAN without a plan, as the next two */
    double step_time_high_s;             /* upper end of the 90 % interval; step_time_s of a roofline */
    double hbm_bytes_per_device;
    double price_usd_per_chip_hour; /* NAN when unknown */
    double power_watts_per_chip;    /* NAN when unpublished */
    bool on_front;                  /* set by adv_platform_rank, as the next */
    double extra_time_frac; /* failures, checkpoints and restarts, over productive time; 0: not asked */
    int tie_group;          /* from 0: machines of one group are predicted equal within rank.h's
                               ADV_RANK_TIE_FRAC */
};

/* Productive time, cost and energy of a number of tokens, without failures and checkpoints (training.h); NAN
 * where the price or the power is unknown, or there is no plan. */
struct adv_platform_bill {
    double days, usd, energy_kwh;
};
struct adv_platform_bill adv_platform_bill_of(const struct adv_platform *platform, double tokens);

/* Writes the indices of `platforms` into `order`, best first by the objective: step time and tokens per
 * second go by the time of one token on the whole cluster, extra time included (the upper end: by that),
 * dollars per token by price x chips x that time (unknown price: after the known ones), HBM by bytes per
 * device. Equal ones: fewer chips, then as given. Sets on_front: no other platform is at least as fast and as
 * cheap and better in one (false without a price). */
void adv_platform_rank(enum adv_objective objective, struct adv_platform *platforms, int count, int *order);
