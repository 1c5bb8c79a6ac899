/* encode_platforms.h: the machines of one workload side by side: member "platforms" of an advise answer. */
#ifndef ADV_JSON_ENCODE_PLATFORMS_H
#define ADV_JSON_ENCODE_PLATFORMS_H

#include "engine/json/decode_platforms.h"
#include "engine/rank/platform.h"

/* One machine after its search. */
struct adv_platform_row {
    json_t *cluster;                   /* owned by the row until encoded */
    json_t *best;                      /* {config, xla_flags, estimate}; NULL: no plan */
    char reason[2 * ADV_LIMIT_DETAIL]; /* why there is no plan; "" */
    bool refused;                      /* the request does not hold on this machine */
};

/* {"rank", "cluster", "best", "tie_group", "on_front"} of each in `order`, with the bill where `token_budget`
 * is a number, "reason" where there is no plan. Takes over the rows' values. New reference. */
json_t *adv_encode_platforms(struct adv_platform_row *rows, const struct adv_platform *platforms,
                             const int *order, int count, double token_budget);

/* A GPU's row: {"rank": null, "cluster", "best": null, "headline"}: peaks from the catalog and the time the
 * model's FLOPs (MaxText's count) take at them, times 1 / assumed_mfu_frac where the request assumes one.
 * Labelled as what it is: nothing of the machine is modelled, and nobody asks whether the model fits. */
json_t *adv_encode_headline(const struct adv_platform_job *job, const struct adv_model *model,
                            const struct adv_workload *workload, double token_budget);

#endif
