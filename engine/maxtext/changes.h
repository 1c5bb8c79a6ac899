/* changes.h: how one plan becomes another: the keys in which they differ, one by one or in groups that only
 * make sense together.
 *
 * Every member of struct adv_plan that a configuration decides belongs to exactly one group (tested), so
 * taking over all groups of a plan makes that plan.
 */
#pragma once

#include "engine/maxtext/read.h"

/* The keys by which two plans differ. */
struct adv_config_changes {
    struct adv_config_change *items; /* the caller's, `capacity` of them */
    int capacity, count;
    bool exact; /* they are all: with them set, the configuration reads as the second plan */
};

/* The keys that turn `before` into `after` (flags are not among them); texts live in the arena. `reread`: the
 * configuration that `before` was read from, which with the changes set in it reads as `after`. A key that
 * has to be said for that although both plans agree on it (a placement that was asleep under a preset, a
 * local tile that would follow the global one) is among the changes, with equal values. NULL: the changes are
 * those between the plans. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_config_changes(const struct adv_reread *reread, const struct adv_plan *before,
                                           const struct adv_plan *after, const struct adv_model *model,
                                           const struct adv_cluster *cluster, struct adv_arena *arena,
                                           struct adv_config_changes *changes, adv_err *err);

/* Takes the value of one key over from another plan. A remat_policy that is a preset brings its placements;
 * local_sa_* follow sa_* where they did. False: the key is not one a plan is written with. */
bool adv_key_copy(const char *name, const struct adv_plan *from, struct adv_plan *plan);

const char *adv_change_group_name(int group); /* of enum adv_key_group: "mesh_and_batch", "remat", … */

/* The group a MaxText key belongs to. */
int adv_change_group_of(const char *name);

/* Copies the members of one group from `from` into `plan`. */
void adv_change_group_apply(int group, const struct adv_plan *from, struct adv_plan *plan);
