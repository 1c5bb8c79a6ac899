/* microbatches.h: what a batch that is asked for per device would gain in several microbatches.
 *
 * workload.per_device_batch_size is MaxText's key: the sequences of one microstep. A search for it keeps to
 * one microstep, and beyond what the devices hold it recomputes or offloads. The same sequences a step, asked
 * for as a global batch, may be accumulated, which often is faster.
 */
#pragma once

#include "engine/search/search.h"

/* Warns where accumulation over the same axes of the slice as the first plan's would be ranked before it, and
 * not as its tie: who asks for the global batch gets that plan, or a better one. Not asked where the request
 * pins the microbatch or its number. Takes memory of its own, and stops with the request's budget. */
void adv_microbatches_warn(const struct adv_advise_request *request, const struct adv_constants *constants,
                           const struct adv_search_result *found, adv_err *warnings);
