/* validate_kernels.h: predicts published kernel timings and compares. */
#ifndef ADV_CALIBRATE_VALIDATE_KERNELS_H
#define ADV_CALIBRATE_VALIDATE_KERNELS_H

#include "engine/calibrate/kernel_rows.h"
#include "engine/kernel/kernel.h"

/* Predicts one row with its own tile; without a published tile with the tuner's best. ADV_E_UNSUPPORTED: a
 * kernel the engine does not model. Over VMEM is no error: the row ran. */
ADV_MUST_CHECK adv_code adv_predict_kernel_row(const struct adv_kernel_machine *machine,
                                               const struct adv_kernel_row *row, struct adv_kernel_time *time,
                                               adv_err *err);

/* Median, 90th percentile and maximum of |predicted / measured - 1|; sorts `errors_frac` in place. */
struct adv_error_summary {
    int count;
    double median_frac, p90_frac, max_frac;
};
struct adv_error_summary adv_summarize_errors(double *errors_frac, int count);

struct adv_catalog;

/* The answer of `validate --kernels`: {rows: [{id, chip, kernel, time_us, measured_us, error_frac, fits_vmem,
 * extrapolated, trusted}], groups: [{chip, kernel, count, median_abs_error_frac, p90_…, max_…}], the same
 * three over all rows}. A row that cannot be predicted, or that contradicts itself, has time_us null, a
 * `reason` and trusted false. malloc'ed text; NULL:
 * out of memory. Defined in engine/json/encode_kernel_validation.c. */
char *adv_encode_kernel_validation(const struct adv_catalog *catalog, const struct adv_kernel_row *rows,
                                   int rows_count);

#endif
