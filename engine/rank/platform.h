/* platform.h: one workload over several clusters: which is best, what it costs, which are worth a look.
 *
 * A platform is judged by the first plan of its own search. Rows without a plan come last, in the order
 * given. Pure arithmetic on predictions; knows no plans and no search.
 */
#pragma once

#include <stdbool.h>

#include "engine/spec/request.h"

/* When a training that was asked for ends; in this order machines are ranked. */
enum adv_platform_end { ADV_END_IN_TIME, ADV_END_LATE, ADV_END_NEVER };

struct adv_platform {
    int chips;
    double step_time_s, tokens_per_step; /* NAN without a plan, as the next two */
    double step_time_high_s;             /* upper end of the 90 % interval; step_time_s of a roofline */
    double hbm_bytes_per_device;
    double price_usd_per_chip_hour; /* NAN when unknown */
    double power_watts_per_chip;    /* NAN when unpublished */
    bool on_front;                  /* set by adv_platform_rank, as the next */
    double extra_time_frac;    /* failures, checkpoints and restarts, over productive time; 0: not asked */
    int tie_group;             /* from 0: machines of one group are predicted equal within rank.h's
                                  ADV_RANK_TIE_FRAC */
    enum adv_platform_end end; /* in time also where nobody asked */
};

/* Productive time, cost and energy of a number of tokens, without failures and checkpoints (training.h); NAN
 * where the price or the power is unknown, or there is no plan. */
struct adv_platform_bill {
    double days, usd, energy_kwh;
};
struct adv_platform_bill adv_platform_bill_of(const struct adv_platform *platform, double tokens);

/* Writes the indices of `platforms` into `order`: those that end in time before those that are late, and
 * these before those that never end; within each best first by the objective: step time and tokens per second
 * go by the time of one token on the whole cluster, extra time included (the upper end: by that), dollars per
 * token by price x chips x that time (unknown price: after the known ones), HBM by bytes per device. Equal
 * ones: fewer chips, then as given. Sets on_front: no other platform is at least as fast and as cheap and
 * better in one (false without a price, or where it never ends). */
void adv_platform_rank(enum adv_objective objective, struct adv_platform *platforms, int count, int *order);
