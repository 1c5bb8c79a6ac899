/* validate_kernels.h: published kernel timings as the engine sees them, predicted and compared. Fits of
 * constants (tests/accuracy/fit_kernels.c) use those that can be trusted. */
#pragma once

#include <stdbool.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
#include "engine/kernel/kernel.h"
#include "engine/kernel/request.h"

struct adv_kernel_row {
    const char *id, *chip, *name; /* name: the kernel as the file calls it; chip as the file spells it */
    const char *commit_date, *shape_id;
    bool known;        /* false: the engine has no such kernel */
    bool has_tile;     /* false: the tile is not published, or XLA chose */
    bool trusted;      /* usable for fits: not suspect, tile meaning certain, unmodified kernel */
    const char *fault; /* why the row contradicts itself and is not predicted: static; NULL = sound */
    double measured_s;
    struct adv_kernel_request request; /* kernel, shape, tile and flags; the rest is 0 */
    bool is_copy;                      /* no kernel but a copy in HBM */
    double copy_bytes;                 /* read plus written */
};

/* Reads a JSON array of rows (kernels.json, kernel_baselines.json, or the matmul and copy rows of
 * microbench.json). Everything is allocated in `arena`. ADV_E_SYNTAX, ADV_E_INVALID: with pointers; rows of a
 * kernel the engine does not know are not `known`. Declared here, defined in
 * engine/json/decode_measurements_kernel.c. */
ADV_MUST_CHECK adv_code adv_decode_kernel_rows(const char *text, size_t length_bytes, struct adv_arena *arena,
                                               struct adv_kernel_row **rows, int *rows_count, adv_err *err);

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
