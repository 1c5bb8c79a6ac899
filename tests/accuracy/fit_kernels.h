/* fit_kernels.h: which kernel constants the published timings determine, and how well a set of constants
 * fits.
 *
 * A group is one family of kernels on one generation with the constants that decide it. The optimiser is not
 * here (fit_kernels_main.c drives one); this part knows rows, constants, bounds and the loss.
 */
#pragma once

#include <stddef.h>

#include "engine/calibrate/validate_kernels.h"
#include "engine/catalog/constants.h"
#include "engine/kernel/kernel.h"

enum { ADV_FIT_CONSTANTS = 16 };

struct adv_fit_constant {
    const char *name;
    size_t offset;    /* in struct adv_constants */
    double low, high; /* bounds the physics sets */
};

struct adv_fit_group {
    const char *chip, *name;
    unsigned kernels; /* bit set of 1u << enum adv_kernel */
    int version;      /* of grouped matmul; 0 elsewhere */
    int constants_count;
    struct adv_fit_constant constants[ADV_FIT_CONSTANTS];
};

int adv_fit_groups_count(void);
const struct adv_fit_group *adv_fit_group_at(int index);

/* The index of a chip name in both spellings ("v7x" is "tpu7x"): true when they are the same generation. */
bool adv_fit_same_chip(const char *a, const char *b);

/* True when the row belongs to the group and may be fitted. */
bool adv_fit_uses(const struct adv_fit_group *group, const struct adv_kernel_row *row);

/* ln(predicted / measured) of one row; NAN when the row cannot be predicted. */
double adv_fit_log_error(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row);

/* Sum of a robust loss over rows: quadratic near zero, linear beyond 3 %, so that medians decide and outliers
 * do not. Rows with mask[i] == skip are left out (cross validation); mask may be NULL. Rows are weighted by
 * weights[i]. */
double adv_fit_loss(const struct adv_fit_group *group, const struct adv_kernel_machine *machine,
                    const struct adv_kernel_row *const *rows, int rows_count, const int *mask, int skip);

static inline double *adv_fit_value(struct adv_constants *constants, const struct adv_fit_constant *constant)
{
    return (double *)(void *)((char *)constants + constant->offset);
}
