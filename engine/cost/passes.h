/* passes.h: the three passes of a decoder layer and what one layer takes in each, for all who add to them.
 *
 * Forward, recompute (what the remat policy did not keep), backward. Terms go to the account, scaled by
 * `times` (layer count x passes per step); the seconds of `time` are of one layer, for the overlap schedule.
 */
#pragma once

#include "engine/cost/context.h"

enum adv_pass { ADV_PASS_FWD, ADV_PASS_RECOMPUTE, ADV_PASS_BWD, ADV_PASS_COUNT };

struct adv_layer_time {
    double pass_s[ADV_PASS_COUNT];
    /* share of the kind's layers that recompute; of the others XLA takes the forward values
     * (adv_cost_again_frac). Times are the mean of both */
    double again_frac;
    double links_s[ADV_PASS_COUNT]; /* of each pass: its links carry what a ring of context shards sends */
    /* 0 where the attention context is kept */
    double attention_again_s; /* its share of the recompute */
    double residuals_s;       /* what writing the softmax residuals takes there, and would take forward */
    /* what shows of the weights' collectives in the forward pass, and behind it */
    double weights_forward_exposed_s, weights_backward_exposed_s;
};

/* Adds terms of one layer to the account, `times` over, and their seconds to `time`. */
typedef adv_code adv_cost_part(const struct adv_cost *cost, const struct adv_layer *layer, double times,
                               struct adv_account *account, struct adv_layer_time *time, adv_err *err);

/* A layer's terms in two parts. `fixed`: what is the same wherever tensors are kept, for all plans of a
 * family; it starts `time`. `placed`: what depends on it (forward attention and all that is recomputed by
 * choice), added to that. */

/* Share of the kind's layers that have this pass. */
static inline double adv_cost_pass_share(const struct adv_layer_time *time, enum adv_pass pass)
{
    return pass == ADV_PASS_RECOMPUTE ? time->again_frac : 1.0;
}

/* Adds `seconds` of one layer to a pass and to its term. */
static inline void adv_cost_add(struct adv_account *account, struct adv_layer_time *time, enum adv_pass pass,
                                enum adv_term_id id, double seconds, double times, double flops, double bytes)
{
    const double share = adv_cost_pass_share(time, pass);
    if (seconds * share <= 0.0) return;
    time->pass_s[pass] += seconds * share;
    adv_account_busy(account, id, seconds, times * share, flops, bytes);
}
