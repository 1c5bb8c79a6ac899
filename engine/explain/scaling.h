/* scaling.h: one plan on more or fewer slices and chips, with longer or shorter sequences and other batches.
 *
 * Each point is the plan estimated again with one thing changed. Slices and chips: the batch per device
 * stays, new slices go along the data axis, new chips along fsdp. Sequence: the tokens per device stay (the
 * batch shrinks as the sequence grows) where the batch allows it.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/base/budget.h"
#include "engine/cost/estimate.h"

enum adv_scale { ADV_SCALE_SLICES, ADV_SCALE_CHIPS, ADV_SCALE_SEQ_LEN, ADV_SCALE_BATCH, ADV_SCALE_COUNT };
const char *
adv_scale_name(enum adv_scale scale); /* "slices" "chips_per_slice" "seq_len" "per_device_batch_size" */

enum { ADV_SCALING_POINTS = 12 };

struct adv_scaling_point {
    double value;
    char topology[ADV_LIMIT_NAME]; /* of chips: the slice's shape; else "" */
    const char *broken_rule;       /* what forbids it, NULL when it is legal: static */
    struct adv_estimate estimate;  /* where legal */
};

struct adv_scaling {
    struct {
        double value; /* of the plan as it is */
        int count;
        struct adv_scaling_point points[ADV_SCALING_POINTS]; /* by value, the plan as it is among them */
    } scales[ADV_SCALE_COUNT];
};

/* `shapes`: slices of the chip in the catalog ("4x4x4"), by size. Some 40 estimates, each a fraction of a
 * millisecond. ADV_E_MEMORY, and ADV_E_TIMEOUT when the budget is over. */
ADV_MUST_CHECK adv_code adv_scaling_find(const struct adv_estimate_input *input, const char *const *shapes,
                                         int shapes_count, const struct adv_budget *budget,
                                         struct adv_arena *arena, struct adv_scaling *scaling, adv_err *err);
