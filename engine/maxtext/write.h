/* write.h: a plan written back as MaxText keys: the inverse of read.h.
 *
 * Writes what differs from base.yml plus the keys a reader expects to see (batch, sequence, mesh, remat,
 * attention), in the order of the rows of keys.h, so that MaxText run with the model, these keys and the
 * flags of flags.h trains exactly this plan; only names and paths (run name, output directory, data set,
 * tokenizer) are left to the user. Reading the result gives the same plan again (tested). A model without a
 * MaxText name is written out as architecture keys.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/spec/request.h"

/* Fills `config` (keys and values; flags are left alone). Keys and values live in the arena or are static.
 * `pins` are keys the user fixed: those the plan does not speak of (steps, dataset_type, …) are passed
 * through as given, and a pin that names the plan's value by another word keeps it (intmp, priced as int8).
 * ADV_E_MEMORY: arena exhausted or more than ADV_LIMIT_CONFIG_KEYS keys. */
ADV_MUST_CHECK adv_code adv_config_write(const struct adv_plan *plan, const struct adv_model *model,
                                         const struct adv_cluster *cluster, const struct adv_pin *pins,
                                         int pins_count, struct adv_arena *arena, struct adv_config *config,
                                         adv_err *err);

/* The tie breaker: keys (and mesh axes above 1) by which the plan departs from MaxText's defaults; kernel
 * tiles and layouts are left out, because they are tuned values and not decisions. */
int adv_config_departures(const struct adv_plan *plan);
/* Mesh axes above 1, ICI and DCN apart. */
static inline int adv_config_axes_count(const struct adv_plan *plan)
{
    int count = 0;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) count += (plan->family.ici[i] > 1) + (plan->family.dcn[i] > 1);
    return count;
}
