/* space_batch.h: the ways to cut the workload's global batch into per-device batch and gradient accumulation.
 */
#pragma once

#include "engine/maxtext/keys.h"
#include "engine/spec/request.h"

enum { ADV_BATCH_SPLITS = 128 }; /* divisors of a batch; 720,720 has 240, real batches fewer than 60 */

struct adv_batch_split {
    double per_device_batch_size;
    int gradient_accumulation_steps;
};

/* Fills `splits`, fewest accumulation steps first; returns the count, 0 with a finding when the batch cannot
 * be cut: not a whole number of sequences, or a pinned per-device batch that does not divide it. */
int adv_batch_splits(const struct adv_advise_request *request,
                     struct adv_batch_split splits[ADV_BATCH_SPLITS], adv_err *err);

/* Whether the request pins `key`. */
bool adv_request_pins(const struct adv_advise_request *request, const char *key);

/* Whether two plans give a key of theirs the same value: several keys may decide one member together. */
bool adv_key_says_the_same(const struct adv_key *key, const struct adv_plan *a, const struct adv_plan *b);
