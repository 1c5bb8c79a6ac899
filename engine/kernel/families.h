/* families.h: which family a kernel is of. */
#pragma once

#include "engine/kernel/family.h"

/* The rows of ADV_KERNEL_FAMILIES. */
const struct adv_kernel_family *const *adv_kernel_families(int *count);

const struct adv_kernel_family *adv_kernel_family_of(enum adv_kernel kernel);
const struct adv_kernel_info *adv_kernel_info_of(enum adv_kernel kernel);

/* Is there no tile to choose: XLA's own operation, or a kernel that picks its own? */
bool adv_kernel_tiles_itself(const struct adv_kernel_request *request);
