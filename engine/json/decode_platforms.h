/* decode_platforms.h: an advise request that leaves the machine open becomes one request per machine.
 *
 * The machine is open when the request has "clusters": [...], or "topology": "any" with a number of chips;
 * workload.total_tokens (token_budget is its older name) or workload.days_available asks for the whole
 * training, also on one machine; "goodput" says what is assumed of failures and checkpoints. Only this module
 * knows those members: the documents it makes are plain advise requests for adv_decode_advise_request.
 */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/json/json_read.h"
#include "engine/rank/training.h"

enum {
    ADV_PLATFORMS_MAX = 64,      /* machines of one request: a sweep of shapes has about 20 */
    ADV_PLATFORM_SLICES_ANY = 8, /* slices tried when the request leaves their number open: more, smaller
                                    slices only move traffic from ICI to DCN */
};

struct adv_platform_job {
    json_t *document;               /* the request for this machine; NULL: headline numbers only */
    char at[ADV_LIMIT_POINTER];     /* where its cluster stands in the request */
    const struct adv_chip *chip;    /* of a headline row, of the catalog */
    int chips;                      /* of a headline row */
    double price_usd_per_chip_hour; /* of a headline row; NAN when unknown */
    double assumed_mfu_frac;        /* of a headline row; NAN: none is assumed */
};

struct adv_platform_jobs {
    int count;
    int modelled; /* those with a document */
    struct adv_platform_job items[ADV_PLATFORMS_MAX];
    double total_tokens, days_available; /* NAN when not given */
    struct adv_goodput goodput;
};

/* Whether the request has any of the members above. */
bool adv_platforms_asked(const json_t *root);

/* Fills `jobs`, in the order of the request, shapes of "any" with the fewest slices first. ADV_E_INVALID:
 * both or neither of cluster and clusters, a chip count no slices make up (the nearest that work are named),
 * more than ADV_PLATFORMS_MAX machines, GPUs alone. Clusters are decoded once for their findings. The caller
 * gives the documents back with adv_platform_jobs_free, also on error. */
ADV_MUST_CHECK adv_code adv_decode_platforms(const struct adv_catalog *catalog, const json_t *root,
                                             struct adv_platform_jobs *jobs, adv_err *err);
void adv_platform_jobs_free(struct adv_platform_jobs *jobs);
