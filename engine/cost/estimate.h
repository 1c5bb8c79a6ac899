/* estimate.h: one plan on one cluster: its predicted step, memory and confidence. The engine's central
 * function.
 *
 * adv_estimate_plan() checks nothing about legality (adv_plan_check does); given a legal plan it always
 * answers or says ADV_E_UNSUPPORTED. Pure and deterministic; thread safe; allocates nothing.
 */
#pragma once

#include <stddef.h>

#include "engine/cost/fit.h"
#include "engine/cost/input.h"
#include "engine/cost/ledger.h"

enum adv_fit { ADV_FIT_FITS, ADV_FIT_TIGHT, ADV_FIT_NO };
const char *adv_fit_name(enum adv_fit fit);  /* "fits" "tight" "does_not_fit" */
const char *adv_fit_known(const char *name); /* that name, static; NULL: no such, or NULL */
enum adv_confidence { ADV_CONFIDENCE_CALIBRATED, ADV_CONFIDENCE_EXTRAPOLATED, ADV_CONFIDENCE_UNSUPPORTED };
const char *adv_confidence_name(enum adv_confidence confidence);

struct adv_estimate {
    /* The members that adv_estimate_again writes: ADV_ESTIMATE_AGAIN_BYTES from the start. */
    double step_time_s;
    double global_batch_sequences, tokens_per_step;
    double hbm_bytes_per_device, hbm_limit_bytes_per_device; /* the larger peak */
    struct adv_fit_curve fit_curve;                          /* of such plans on this chip */
    double memory_spread; /* its log_sd, over that of plans with nothing on the host */
    double loss_peak_bytes, backward_peak_bytes, update_peak_bytes;
    double host_bytes_per_host, host_limit_bytes_per_host;
    /* The rest. */
    double step_time_low_s, step_time_high_s; /* 90 % interval */
    double tokens_per_s_per_chip, tflops_per_s_per_chip, mfu_frac, hfu_frac;
    enum adv_fit fit;
    double hbm_low_bytes_per_device, hbm_high_bytes_per_device; /* 90 % interval */
    double fit_probability;                                     /* that HBM and host memory suffice */
    enum adv_resource bound;
    enum adv_confidence confidence;
    char confidence_why[ADV_LIMIT_DETAIL];
    double usd_per_step, usd_per_billion_tokens; /* NAN without a price */
    double expert_capacity_factor; /* by which routed tokens are dropped or padded; NAN where none is */
};

enum { ADV_ESTIMATE_AGAIN_BYTES = offsetof(struct adv_estimate, step_time_low_s) };

/* `ledger` may be NULL (the search's fast path); the numbers are the same with and without. */
ADV_MUST_CHECK adv_code adv_estimate_plan(const struct adv_estimate_input *input,
                                          struct adv_estimate *estimate, struct adv_ledger *ledger,
                                          adv_err *err);

struct adv_cost_scratch; /* engine/cost/scratch.h */
struct adv_places;       /* engine/cost/projections.h */

/* The same without a ledger, for many plans in a row: what `scratch` remembers is not computed again. Equal
 * to adv_estimate_plan bit for bit (tested) in step time, batch and memory; the rest (rates, bound, mesh, the
 * intervals, the verdict and the confidence) is left as it is: a search does not look at it plan by plan.
 * input->model, cluster and constants must not change behind their pointers while the scratch is in use. */
ADV_MUST_CHECK adv_code adv_estimate_again(const struct adv_estimate_input *input,
                                           struct adv_cost_scratch *scratch, struct adv_estimate *estimate,
                                           adv_err *err);

/* The same for the plan that was priced last with this scratch, with its tensors in other places and the
 * flag that goes with them: nothing of the plan itself is read again. */
ADV_MUST_CHECK adv_code adv_estimate_placed(struct adv_cost_scratch *scratch, const struct adv_places *places,
                                            signed char host_offload_scheduling,
                                            struct adv_estimate *estimate, adv_err *err);

/* Its memory alone, without the time: all members that hold bytes, equal to those of adv_estimate_placed. The
 * others are left as they are. */
void adv_estimate_memory_placed(struct adv_cost_scratch *scratch, const struct adv_places *places,
                                signed char host_offload_scheduling, struct adv_estimate *estimate);

/* The fit curve of plans with nothing on the host: that of bytes on the host, which nothing presses. */
struct adv_fit_curve adv_estimate_usual_curve(const struct adv_estimate *estimate);

/* Adds what follows from the bytes: their interval, the probability that they fit, and the verdict. */
void adv_estimate_verdict(struct adv_estimate *estimate);

/* Adds interval and confidence (but not why) to an estimate of the family that was priced last with this
 * scratch. */
void adv_estimate_again_interval(const struct adv_cost_scratch *scratch, struct adv_estimate *estimate);
