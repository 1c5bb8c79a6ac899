/* frugal.h: plans that are likely to fit, found without pricing any: what a search asks first, or last, when
 * its budget of evaluations is too small to find out. */
#pragma once

#include "engine/search/remat_space.h"
#include "engine/search/space.h"

enum { ADV_FRUGAL_PLANS = 8 };

struct adv_frugal {
    const struct adv_family *family;
    double bytes;            /* rough, per device; only compared */
    bool fits;               /* by the rough count, with room to spare */
    int axes;                /* beside fsdp */
    bool offloads_optimizer; /* beside the gradients, moments would fill the device */
};

/* By a rough count of memory (state, gradients, the widest tensors of a layer): the simplest families among
 * those that need at most `trusted_frac` of it, then those that miss least. Returns how many. */
int adv_frugal_families(const struct adv_space *space, double trusted_frac,
                        struct adv_frugal frugal[ADV_FRUGAL_PLANS]);

/* The family's plan with least memory: nothing kept that may be recomputed, layer inputs on the host, the
 * finest tiling of the vocabulary. */
void adv_frugal_plan(const struct adv_space *space, const struct adv_remat_space *open,
                     const struct adv_frugal *frugal, struct adv_plan *plan);
