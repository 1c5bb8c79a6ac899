/* config.h: a plan written back as MaxText keys: the inverse of the plan decoder.
 *
 * Emits what differs from base.yml plus the keys a reader expects to see (batch, sequence, mesh, remat,
 * attention), in a fixed order, so that MaxText run with the model, these keys and the flags of emit/flags.h
 * trains exactly this plan; only names and paths (run name, output directory, data set, tokenizer) are left
 * to the user. Decoding the result gives the same plan again (tested). A model without a MaxText name is
 * written out as architecture keys.
 */
#ifndef ADV_EMIT_CONFIG_H
#define ADV_EMIT_CONFIG_H

#include "engine/base/arena.h"
#include "engine/spec/request.h"

/* Fills `config` (keys and values; flags are left alone). Keys and values live in the arena or are static.
 * `pins` are keys the user fixed: those the plan does not speak of (steps, dataset_type, …) are passed
 * through as given. ADV_E_MEMORY: arena exhausted or more than ADV_LIMIT_CONFIG_KEYS keys. */
ADV_MUST_CHECK adv_code adv_emit_config(const struct adv_plan *plan, const struct adv_model *model,
                                        const struct adv_cluster *cluster, const struct adv_pin *pins,
                                        int pins_count, struct adv_arena *arena, struct adv_config *config,
                                        adv_err *err);

/* One key by which two plans differ, with MaxText's default spelled out where a plan does not set it. */
struct adv_config_change {
    const char *key, *from_json, *to_json;
};

/* The keys that turn `before` into `after` (flags are not among them), at most `capacity`; texts live in the
 * arena. ADV_E_MEMORY only. */
ADV_MUST_CHECK adv_code adv_emit_changes(const struct adv_plan *before, const struct adv_plan *after,
                                         const struct adv_model *model, const struct adv_cluster *cluster,
                                         struct adv_arena *arena, struct adv_config_change *changes,
                                         int capacity, int *changes_count, adv_err *err);

/* Reads a configuration once more with some keys set over it, as whoever gave it would: what is in it without
 * effect now may have one then. False: it cannot be read. */
struct adv_reread {
    bool (*read)(const void *configuration, const struct adv_config_change *changes, int changes_count,
                 struct adv_plan *plan);
    const void *configuration;
};

/* The same against the configuration that `before` was read from: with the changes set in it, it reads as
 * `after`. What has to be said for that although both plans agree on it (a placement that was asleep under a
 * preset, a local tile that would follow the global one) is among the changes, with equal values. *exact is
 * false when nothing that can be set makes it read as `after`, or when `capacity` is too small. */
ADV_MUST_CHECK adv_code adv_emit_changes_over(const struct adv_reread *reread, const struct adv_plan *before,
                                              const struct adv_plan *after, const struct adv_model *model,
                                              const struct adv_cluster *cluster, struct adv_arena *arena,
                                              struct adv_config_change *changes, int capacity,
                                              int *changes_count, bool *exact, adv_err *err);

/* Takes the value of one key of adv_emit_changes over from another plan. A remat_policy that is a preset
 * brings its placements; local_sa_* follow sa_* where they did. False: the key is not one a plan is written
 * with. */
bool adv_emit_copy_key(const char *key, const struct adv_plan *from, struct adv_plan *plan);

/* The value of `key` in `config` as JSON text, or NULL. */
const char *adv_emit_config_find(const struct adv_config *config, const char *key);

/* What breaks ties. Keys (and mesh axes above 1) by which the plan departs from MaxText's defaults; kernel
 * tiles and layouts are left out, because they are tuned values and not decisions. */
int adv_emit_config_changes_count(const struct adv_plan *plan, const struct adv_model *model);
/* Mesh axes above 1, ICI and DCN apart. */
static inline int adv_emit_config_axes_count(const struct adv_plan *plan)
{
    int count = 0;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) count += (plan->ici[i] > 1) + (plan->dcn[i] > 1);
    return count;
}

#endif
