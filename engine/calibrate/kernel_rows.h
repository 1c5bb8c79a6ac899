/* kernel_rows.h: published kernel timings as the engine sees them: shape, tile, flags, measured time.
 *
 * engine/json/decode_measurements_kernel.c makes them from a measurement file; validate_kernels.c predicts
 * them, tests/accuracy/fit_kernels.c fits constants to those that can be trusted.
 */
#ifndef ADV_CALIBRATE_KERNEL_ROWS_H
#define ADV_CALIBRATE_KERNEL_ROWS_H

#include <stdbool.h>

#include "engine/base/arena.h"
#include "engine/base/err.h"
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

#endif
