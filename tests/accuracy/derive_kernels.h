/* derive_kernels.h: kernel constants of generations (or kernels) without measurements, from those that have
 * some.
 *
 * A table of rules says where each comes from: copied, scaled with the clock (vector work), with HBM
 * bandwidth (per-row traffic) or with the generation's own forward wrapper. What is derived is marked so in
 * the data file and answers that rest on it say `extrapolated`.
 */
#pragma once

#include <stddef.h>

#include "engine/catalog/constants.h"
#include "engine/spec/chip.h"

struct adv_kernel_constant {
    const char *name, *unit;
    size_t offset; /* in struct adv_constants */
};

int adv_kernel_constants_count(void);
const struct adv_kernel_constant *adv_kernel_constant_at(int index);

/* One generation: its record and constants. */
struct adv_derive_chip {
    const struct adv_chip *chip;
    struct adv_constants *constants;
};

/* Derives constant `index` of `chips[to]` from another of `chips`; false when no rule covers it (it is then
 * measured on the generation itself, assumed, or a flag). `donor` and `how` describe what was done (static
 * strings). */
bool adv_derive_kernel_constant(const struct adv_derive_chip *chips, int chips_count, int to, int index,
                                const char **donor, const char **how);
