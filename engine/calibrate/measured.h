/* measured.h: what a plan took on the machine: read from a training log, and checked against the plan.
 *
 * Pure functions; thread safe.
 */
#pragma once

#include <stddef.h>

#include "engine/base/err.h"
#include "engine/base/limits.h"

/* A measured step. Numbers that were not measured are NAN. */
struct adv_measured {
    double step_time_s;           /* of one optimizer step */
    double tokens_per_s_per_chip; /* of a chip, not of a device */
    double hbm_bytes_per_device;
    int steps_count;                         /* steps that the time is the median of; 0 when it was given */
    int warm_up_steps_count;                 /* that were left out before them */
    double step_time_p25_s, step_time_p75_s; /* quartiles of the steps */
    double first_step;      /* of a log: the lowest number that a step has, whose training may begin with 0 */
    size_t beginning_bytes; /* of a log, what stays as it is while the log grows; 0: not known */
    double step_time_mad_s; /* median distance of a step from the median; robust against single slow ones */
    char source[ADV_LIMIT_NAME];
    char at[40]; /* 2026-11-21T05:00:00Z; "" = now */
};

/* The plan that was run, as it was answered. */
struct adv_measured_plan {
    double step_time_s, step_time_low_s, step_time_high_s;
    double tokens_per_s_per_chip, hbm_bytes_per_device;
    double hbm_limit_bytes_per_device; /* NAN or 0: not known */
    int devices, chips;
};

enum { ADV_LOG_WARM_UP_STEPS = 3 };

/* Reads the steps of a MaxText log (NUL-terminated, log_bytes long): its "completed step:" lines, or the
 * lines of JSON that MaxText writes to its metrics_file: the medians of the seconds and of the tokens per
 * second of all but the first three steps, which compile and fill queues, and how the seconds scatter. A step
 * of which several lines tell (each host of a job writes one, mixed or one log after the other) counts once,
 * as its slowest line says; gradient accumulation is inside a step. A job that was restarted goes back to its
 * last checkpoint: of each step that it repeats the last time counts, and the three that it restarts with do
 * not. The beginning of the log ends with the line of the first step that is warm. Leaves source and at
 * alone. ADV_E_INVALID: no such lines, or too few steps. */
ADV_MUST_CHECK adv_code adv_measured_from_log(const char *log, size_t log_bytes,
                                              const struct adv_measured_plan *plan,
                                              struct adv_measured *measured, adv_err *err);

/* Refuses what cannot be the plan: a time 50 times or memory 20 times from the predicted (another unit; 0.2 s
 * and 1 GiB more than predicted are always taken), memory a tenth beyond what a program can take of a device,
 * and tokens per second that are not the plan's tokens over
 * the measured time (2 % apart: another batch, length or number of chips). ADV_E_INVALID at the member. */
ADV_MUST_CHECK adv_code adv_measured_check(const struct adv_measured *measured,
                                           const struct adv_measured_plan *plan, adv_err *err);
