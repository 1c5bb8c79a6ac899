/* sensitivity.h: how a plan's step answers to its hardware and its batch, and where its bottleneck changes.
 *
 * Everything is found by estimating the plan again with one thing changed: nothing is linearised. The plan's
 * own mesh, placements and tiles stay as they are, so this says what the same configuration would do, not
 * what another search would find. Some hundred estimates; pure and deterministic.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/rank/candidate.h"

#define ADV_SENSITIVITY_RATE_FRAC 0.1 /* each rate is changed by this much, down and up */
#define ADV_SENSITIVITY_HIDDEN_FRAC                                                                          \
    0.01 /* collectives whose exposed share of the step is below this are hidden */

enum {
    ADV_SENSITIVITY_RATES = 6,        /* peak_flops, hbm_bandwidth, ici_link, die_to_die, dcn, pcie */
    ADV_SENSITIVITY_BATCH_MAX = 4096, /* sequences per device looked at for a break-even */
    ADV_BREAK_EVENS = 3,
};

struct adv_rate_sensitivity {
    const char *rate;          /* static */
    bool known;                /* the chip has this rate; else the rest is NAN */
    double slower_s, faster_s; /* step time with the rate 10 % lower, 10 % higher */
};

/* The next smaller and larger per-device batch: one sequence less or more, from one down half or double. */
struct adv_batch_step {
    double per_device_batch_size;
    const char *broken_rule;      /* the rule that forbids it, NULL when it is legal */
    struct adv_estimate estimate; /* where legal */
};

/* Where something begins to hold, going through values by doubling and then bisection. The quantities are
 * monotone in these values up to rounding of kernels to their tiles; the step before `value` was looked at
 * too. */
struct adv_break_even {
    const char *name; /* static: "fsdp_hidden_per_device_batch", … */
    bool applies;     /* false: the plan has no such collectives; `sentence` says so */
    bool reached;
    double value;          /* the first that holds; NAN when not reached */
    double low, high;      /* the range looked at */
    double share_at_value; /* FSDP: exposed share of the step at `value`, or at the end of the range; DCN: the
                              same of DCN terms */
    enum adv_fit fit;      /* of the plan at `value` */
    char sentence[ADV_LIMIT_DETAIL];
};

struct adv_sensitivities {
    double step_time_s; /* of the plan as it is */
    struct adv_rate_sensitivity rates[ADV_SENSITIVITY_RATES];
    struct adv_batch_step batch[2];                     /* smaller, larger */
    struct adv_break_even break_evens[ADV_BREAK_EVENS]; /* FSDP by batch; DCN by slices at the same batch per
                                                           device, and at the same global batch */
};

/* For `candidate`, a plan of `request`. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_sensitivity_find(const struct adv_advise_request *request,
                                             const struct adv_constants *constants,
                                             const struct adv_candidate *candidate, struct adv_arena *arena,
                                             struct adv_sensitivities *found, adv_err *err);

/* Chip fields of rates[index], NULL-terminated: what cluster.overrides would have to change. */
const char *const *adv_sensitivity_fields(int index);
