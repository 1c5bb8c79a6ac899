/* plan_warnings.h: what an estimate of a plan warns of, whoever asks for it. */
#ifndef ADV_JSON_PLAN_WARNINGS_H
#define ADV_JSON_PLAN_WARNINGS_H

#include "engine/base/arena.h"
#include "engine/catalog/catalog.h"
#include "engine/cost/estimate.h"
#include "engine/json/json_read.h"

/* Adds what only the numbers show: a count of FLOPs that the plan does not execute, kernels over the VMEM
 * limit, overridden fields of the chip that change nothing. */
void adv_warn_of_estimate(const struct adv_catalog *catalog, const struct adv_estimate_input *input,
                          const struct adv_estimate *estimate, const struct adv_ledger *ledger,
                          adv_err *warnings);

/* The warnings of a plan that an answer to `root` writes as `row` ({config, xla_flags}): those that its
 * configuration gets when it is given back for an estimate, and adv_warn_of_estimate's. `arena`: scratch. */
void adv_warn_of_row(const struct adv_catalog *catalog, const json_t *root, const json_t *row,
                     const struct adv_estimate_input *input, const struct adv_estimate *estimate,
                     const struct adv_ledger *ledger, struct adv_arena *arena, adv_err *warnings);

#endif
