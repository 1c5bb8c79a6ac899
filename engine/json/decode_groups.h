/* decode_groups.h: how the rows of a grouped matmul are spread: `group_sizes`, or `group_distribution`. */
#ifndef ADV_JSON_DECODE_GROUPS_H
#define ADV_JSON_DECODE_GROUPS_H

#include <jansson.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/spec/kernel_shape.h"

/* Reads both members of `shape` into *gmm, whose m and num_groups are read already (0: unknown). Findings:
 * sizes that are no numbers of rows (the first few by their place), not one per group, or not adding up to m;
 * a distribution that is unknown. A distribution beside sizes is a warning; `warnings` may be NULL. Sizes
 * live in `arena`; sizes that are refused leave *gmm with its distribution. */
void adv_decode_groups(const json_t *shape, struct adv_arena *arena, struct adv_gmm_shape *gmm, adv_err *err,
                       adv_err *warnings);

#endif
