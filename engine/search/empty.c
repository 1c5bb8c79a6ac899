#include "engine/search/empty.h"

#include <stdio.h>

#include "engine/search/batch.h"

/* The pinned axes, fsdp for what is left of the slice, data between slices. False: fsdp may not take it. */
static bool simplest_mesh(const struct adv_space *space, struct adv_plan *plan)
{
    const struct adv_advise_request *request = space->request;
    int left = request->cluster.devices_per_slice, slices = request->cluster.slices;
    *plan = space->base;
    for (int i = 0; i < ADV_AXIS_COUNT; i++) {
        plan->ici[i] = request->axis_pinned[i] ? request->workload.base.ici[i] : 1;
        char key[ADV_LIMIT_NAME];
        (void)snprintf(key, sizeof key, "dcn_%s_parallelism", adv_axis_key((enum adv_axis)i));
        bool pinned = request->workload.base.dcn[i] > 0 && adv_request_pins(request, key);
        plan->dcn[i] = pinned ? request->workload.base.dcn[i] : 1;
        slices /= plan->dcn[i] <= slices ? plan->dcn[i] : 1;
        if (plan->ici[i] > 0 && left % plan->ici[i] == 0) left /= plan->ici[i];
    }
    if (!request->axis_pinned[ADV_AXIS_FSDP]) plan->ici[ADV_AXIS_FSDP] = left;
    plan->dcn[ADV_AXIS_DATA] *= slices;
    return left == 1 || request->axis_pinned[ADV_AXIS_FSDP] || request->axis_allowed[ADV_AXIS_FSDP];
}

void adv_space_explain_empty(const struct adv_space *space, char *text, size_t text_bytes)
{
    const struct adv_advise_request *request = space->request;
    struct adv_batch_split splits[ADV_BATCH_SPLITS];
    adv_err broken;
    struct adv_finding nearest;
    double nearest_batch = 0;
    int nearest_count = ADV_LIMIT_FINDINGS + 1;
    struct adv_plan plan;
    bool has_mesh = simplest_mesh(space, &plan);
    int splits_count = has_mesh ? adv_batch_splits(request, splits, NULL) : 0;
    for (int i = 0; i < splits_count; i++) {
        plan.per_device_batch_size = splits[i].per_device_batch_size;
        plan.gradient_accumulation_steps = splits[i].gradient_accumulation_steps;
        adv_err_init(&broken);
        if (adv_plan_check(&plan, &request->model, &request->cluster, &broken, NULL) == ADV_OK ||
            broken.count >= nearest_count)
            continue;
        nearest_count = broken.count;
        nearest = broken.findings[0];
        nearest_batch = splits[i].per_device_batch_size;
    }
    if (nearest_count >
        ADV_LIMIT_FINDINGS) { /* the simplest mesh is legal by itself: the axes asked for exclude it */
        (void)snprintf(text, text_bytes,
                       "none of %ld combinations is legal: allow more axes in search.axes (the rule that "
                       "forbids most is %s)",
                       space->considered, space->most_broken_rule ? space->most_broken_rule : "ici-product");
        return;
    }
    (void)snprintf(
        text, text_bytes,
        "none of %ld combinations is legal; with fsdp=%d and per_device_batch_size=%.6g %.140s%s%.100s",
        space->considered, plan.ici[ADV_AXIS_FSDP], nearest_batch, nearest.detail,
        nearest.hint[0] ? ": " : "", nearest.hint);
}
