/* validate_kernels.h: predicts published kernel timings and compares. */
#ifndef ADV_CALIBRATE_VALIDATE_KERNELS_H
#define ADV_CALIBRATE_VALIDATE_KERNELS_H

#include "engine/calibrate/kernel_rows.h"
#include "engine/kernel/kernel.h"

/* Predicts one row with its own tile; without a published tile with the tuner's best. ADV_E_UNSUPPORTED: a kernel
 * the engine does not model. Over VMEM is no error: the row ran. */
ADV_MUST_CHECK adv_code adv_predict_kernel_row(const struct adv_kernel_machine *machine, const struct adv_kernel_row *row,
                                               struct adv_kernel_time *time, adv_err *err);

/* Median, 90th percentile and maximum of |predicted / measured - 1|; sorts `errors_frac` in place. */
struct adv_error_summary { int count; double median_frac, p90_frac, max_frac; };
struct adv_error_summary adv_summarize_errors(double *errors_frac, int count);

#endif
