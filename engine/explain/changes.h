/* changes.h: what a plan changes in a baseline, group by group and key by key, each with its own gain.
 *
 * Keys that only make sense together (the axes of a mesh, the placements of a remat policy) form a group; a
 * group's gain is that of the baseline with this group alone taken over, estimated. NAN where that is not a
 * legal plan by itself. Up to ADV_CHANGES_ORDERED keys are also put in order: each step takes over the key
 * that gains most by itself on what is there, or, where no single one is legal, all that is left of a group.
 * The gains of the steps add up to the whole.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/maxtext/changes.h"
#include "engine/search/search.h"

enum { ADV_CHANGES_MAX = 160, ADV_CHANGES_ORDERED = 48 };

struct adv_change {
    const char *key, *from_json, *to_json; /* a MaxText key, or an XLA flag without dashes */
    int group;
    int order;            /* the step it is taken in, from 1; 0: too many keys, or no time to order them */
    double gain_frac;     /* of that step, of the baseline's time; the whole step's at each of its keys */
    double own_gain_frac; /* of the key alone on the baseline; NAN: not legal alone */
};

struct adv_changes {
    int count;
    struct adv_change items[ADV_CHANGES_MAX];
    double group_gain_frac[ADV_GROUPS]; /* of the group alone on the baseline; NAN: nothing changes or
                                                  not legal alone */
    bool group_fits[ADV_GROUPS];
    double gain_frac; /* of all changes together */
};

/* `reread` (may be NULL): the configuration that the baseline was read from; with all changes in it, it reads
 * as the candidate. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_changes_find(const struct adv_advise_request *request,
                                         const struct adv_constants *constants,
                                         const struct adv_candidate *baseline,
                                         const struct adv_candidate *candidate,
                                         const struct adv_reread *reread, struct adv_arena *arena,
                                         struct adv_changes *changes, adv_err *err);
