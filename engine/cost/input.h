/* input.h: what a prediction is made from. */
#pragma once

#include "engine/catalog/catalog.h"
#include "engine/spec/cluster.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"

struct adv_estimate_input {
    const struct adv_model *model;
    const struct adv_cluster *cluster;
    const struct adv_constants *constants;
    const struct adv_plan *plan;
    enum adv_flops_convention flops_convention;
};
