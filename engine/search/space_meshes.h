/* space_meshes.h: the ICI meshes that a request allows, in a fixed order: degrees of its axes whose product
 * is the slice.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/spec/request.h"

struct adv_mesh_list {
    int count, most; /* most: that there is room for */
    long left_out;   /* beyond it: counted only */
    short (*ici)[ADV_AXIS_COUNT];
};

/* Lists them, of many the first, in a part of the arena that leaves room for families; none where no mesh
 * holds the request's pins. ADV_E_MEMORY: the system has none. ADV_E_TIMEOUT: the request was given up.
 * Neither leaves a finding. */
ADV_MUST_CHECK adv_code adv_space_meshes(const struct adv_advise_request *request, struct adv_arena *arena,
                                         struct adv_mesh_list *list);

/* Whether the model's layers have a kernel for the context strategy, with `base` otherwise. */
bool adv_space_offers_strategy(const struct adv_model *model, const struct adv_plan *base,
                               enum adv_cp_strategy strategy);

/* Whether experts may be sharded by their number over fsdp, which must divide it then. */
bool adv_space_divides_experts(const struct adv_plan *base);
