/* why_remedy.h: the cheapest change of a plan that makes it fit its memory. */
#ifndef ADV_SEARCH_WHY_REMEDY_H
#define ADV_SEARCH_WHY_REMEDY_H

#include "engine/cost/estimate.h"

struct adv_remedy {
    bool found;
    bool tight;           /* fits, with less left than a search leaves (adv_rank_memory_frac) */
    int cost;             /* orders remedies: less is better, INT_MAX where none is found */
    struct adv_plan plan; /* changed, and its estimate; of all savers together where none is found */
    struct adv_estimate estimate;
    char text[ADV_LIMIT_DETAIL]; /* what it is and what it costs, or why nothing helps */
};

/* Changes are rows of a table (tiling, offload, remat, accumulation, formats, batch); each is estimated. In
 * this order: the fastest single change that leaves the training as it is, the fastest that does not (number
 * formats, the largest batch that fits), the fewest of all of them together; then the same with memory filled
 * to the very limit, which the text says. A plan that is tight already is only helped by what leaves room.
 * A rule that `plan` breaks already does not count against a change. */
void adv_remedy_find(const struct adv_model *model, const struct adv_cluster *cluster,
                     const struct adv_constants *constants, const struct adv_plan *plan,
                     struct adv_remedy *remedy);

#endif
