/* decode_baseline.h: a baseline beside the workload that it is compared with. */
#pragma once

#include <jansson.h>

#include "engine/base/err.h"
#include "engine/spec/request.h"

/* Number formats and optimizer of the configuration, where neither the workload nor the pins say them: plans
 * are compared with it in the same ones. */
void adv_baseline_formats(const json_t *config, const json_t *pins, json_t *workload);

/* The request with such a workload, a new reference; one to `root` itself where there is nothing to say. */
json_t *adv_baseline_merge(const json_t *root);

/* What the baseline's configuration leaves out of the work of a step is the workload's, not MaxText's
 * default: the length, and the batch where neither of its keys is there. */
void adv_baseline_complete(json_t *config, const struct adv_advise_request *request);

/* Warns where the baseline's step is other work than the workload's: what plans gain on it is the time of a
 * token then; and where it computes in other formats or with another optimizer, which plans do not keep. */
void adv_baseline_warn(const struct adv_advise_request *request, adv_err *warnings);
