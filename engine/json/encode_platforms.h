/* encode_platforms.h: the machines of one workload side by side: member "platforms" of an advise answer. */
#pragma once

#include "engine/json/decode_platforms.h"
#include "engine/json/encode_advise.h"
#include "engine/rank/platform.h"

/* One machine after its search. */
struct adv_platform_row {
    struct adv_cluster cluster;
    struct adv_platform platform;
    struct adv_platform_bill bill;
    bool has_best;
    struct adv_training training;      /* where a training was asked for */
    struct adv_told_plan best;         /* without advice; where has_best */
    char reason[3 * ADV_LIMIT_DETAIL]; /* why there is no plan; "" */
    bool refused;                      /* the request does not hold on this machine */
};

/* A GPU: peaks from the catalog, and the time that the model's FLOPs take at them. Nothing of the machine is
 * modelled, and nobody asks whether the model fits. */
struct adv_headline_row {
    const struct adv_chip *chip;
    struct adv_platform platform;
    struct adv_platform_bill bill;
    double mfu_frac; /* of the peak, that step_time_s assumes */
    char label[ADV_LIMIT_NAME];
};

struct adv_platforms_answer {
    int count, headlines_count;
    struct adv_platform_row *rows[ADV_PLATFORMS_MAX]; /* best first; those without a plan last */
    struct adv_headline_row headlines[ADV_PLATFORMS_MAX];
    bool has_bill;     /* a number of tokens was given */
    bool has_training; /* that, or a number of days */
};

/* [{"rank", "cluster", "best", "tie_group", "on_front"}], with the bill and the training, and with "reason"
 * where there is no plan; then {"rank": null, "cluster", "best": null, "headline"} of each GPU. New
 * reference. */
json_t *adv_encode_platforms(const struct adv_platforms_answer *answer);
