/* constants.h: the fitted physics, one record per chip generation.
 *
 * Values live in catalog/data/kernel_, link_, step_ and memory_constants.json (value, unit, standard error,
 * rows behind it, "fitted" | "measured" | "assumed" | "borrowed from <chip>"); `make fit` regenerates them. A
 * constant belongs to a generation or a kernel, never to a model or a row. NAN is not allowed: the loader
 * refuses it.
 */
#pragma once

#include <stdbool.h>

#include "engine/catalog/kernel_constants.h"
#include "engine/catalog/link_constants.h"
#include "engine/catalog/memory_constants.h"
#include "engine/catalog/step_constants.h"

struct adv_constants {
#define ADV_CONSTANT_MEMBER(name, unit, what) double name;
    ADV_KERNEL_CONSTANTS(ADV_CONSTANT_MEMBER)
    ADV_LINK_CONSTANTS(ADV_CONSTANT_MEMBER)
    ADV_STEP_CONSTANTS(ADV_CONSTANT_MEMBER)
    ADV_MEMORY_CONSTANTS(ADV_CONSTANT_MEMBER)
#undef ADV_CONSTANT_MEMBER
    bool steps_extrapolated; /* no whole-step measurement of this chip */
    /* no published step says what overlap_*_exposed_frac is: assumed, or taken from a neighbour */
    bool overlap_offload_assumed, overlap_fusion_assumed, overlap_async_assumed, overlap_none_assumed;
    /* By which a calibration multiplies the step's time and the bytes of device memory, less 1: 0 = not at
     * all. */
    double step_time_correction_frac, hbm_correction_frac;
};
