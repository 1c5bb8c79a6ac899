/* space_walk.h: the families on one ICI mesh: meshes between slices, context strategies, pipelines, batches,
 * number formats and expert exchanges, in a fixed order.
 */
#pragma once

#include "engine/search/space.h"

enum { ADV_WALKED_RULES = 48 };

/* What walks have found, in their order. Zero-initialised but for `most` means nothing; families are the
 * caller's to free. */
struct adv_walked {
    struct adv_family *families; /* bounded_by counts from the first of them */
    int count, capacity;
    int most; /* families that are kept; those beyond are counted only */
    long considered, illegal;
    const char *rules[ADV_WALKED_RULES]; /* those that were broken, and by how many combinations */
    long rule_counts[ADV_WALKED_RULES];
};

/* Counts combinations that were looked at and break `rule`. */
void adv_walked_count(struct adv_walked *found, const char *rule, long combinations);

/* What the walks over all meshes of a space share; of the arena. The space has all but its families.
 * ADV_E_INVALID: the workload's batch is not a whole number of sequences. */
struct adv_walk_shared;
ADV_MUST_CHECK adv_code adv_walk_prepare(const struct adv_space *space, struct adv_arena *arena,
                                         const struct adv_walk_shared **shared, adv_err *err);

/* Adds the families on a mesh to `found`. Thread safe. */
void adv_walk_mesh(const struct adv_walk_shared *shared, const short ici[ADV_AXIS_COUNT],
                   struct adv_walked *found);
