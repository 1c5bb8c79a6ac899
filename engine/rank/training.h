/* training.h: a whole training on one machine: days, dollars and tokens lost with failures, checkpoints and
 * restarts.
 *
 * Failures come at random, at one rate per chip (an exponential distribution of the time between them). After
 * `interval` seconds of work the devices stop for a checkpoint; a failure throws away the work since the last
 * one and costs a restart, which may fail as well. With mean time between failures M, work T between
 * checkpoints, checkpoint d and restart R, a T of work takes M e^(R/M) (e^((T+d)/M) - 1) on the average, and
 * the best T solves 1 - T/M = e^(-(T+d)/M). Source: J. T. Daly, A higher order estimate of the optimum
 * checkpoint interval for restart dumps, Future Generation Computer Systems 22 (2006), equations 20 and 33.
 * Pure arithmetic; knows no plans and no search.
 */
#pragma once

#include <stdbool.h>

/* Assumptions about the machine; NAN: not given. */
struct adv_goodput {
    double failures_per_chip_day;
    double checkpoint_s;          /* that the devices wait for one checkpoint */
    double restart_s;             /* from a failure to the first step after it */
    double checkpoint_interval_s; /* of work between two checkpoints; NAN: the best */
};

/* One machine and its best plan. */
struct adv_training_of {
    double tokens;         /* of the whole training; NAN: as many as `days` allow */
    double days_available; /* NAN: no limit */
    double step_time_s, step_time_low_s, step_time_high_s, tokens_per_step;
    double state_bytes_per_device; /* weights and optimizer state that a checkpoint takes from HBM */
    double host_link_bytes_per_s_per_device; /* that they leave on */
    double price_usd_per_chip_hour;          /* NAN when unknown */
    int chips;
};

/* Where a number comes from that nobody gave; static text. */
struct adv_goodput_source {
    const char *name, *source; /* member of the request; NULL source: given in the request */
    double value, low, high;   /* low = high = value where it is given */
};
enum { ADV_GOODPUT_SOURCES = 3 };

struct adv_training {
    bool ends; /* false: a failure is to be expected before any work is saved; the rest is NAN */
    double tokens, steps, productive_days;
    double days, days_low, days_high; /* 90 % of the step's interval, and the range of the failure rate */
    double usd, usd_low, usd_high;    /* NAN without a price */
    double goodput_frac;              /* productive over all time */
    double failures, tokens_lost;     /* expected over the training; tokens trained twice */
    double checkpoint_interval_s;     /* whole steps; NAN: without failures there is none to take */
    double checkpoint_interval_steps, checkpoints;
    bool in_time; /* it ends, within days_available where that is given */
    struct adv_goodput_source sources[ADV_GOODPUT_SOURCES];
};

/* Fills `training`. Missing members of `goodput` take sourced defaults. */
void adv_training_plan(const struct adv_training_of *of, const struct adv_goodput *goodput,
                       struct adv_training *training);
