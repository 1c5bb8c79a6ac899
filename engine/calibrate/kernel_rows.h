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
#include "engine/spec/kernel_shape.h"

enum adv_row_kind {
    ADV_ROW_SPLASH,
    ADV_ROW_ATTENTION_XLA,
    ADV_ROW_GMM,
    ADV_ROW_GMM_XLA,
    ADV_ROW_MATMUL,
    ADV_ROW_XENT,
    ADV_ROW_HBM_COPY,
    ADV_ROW_UNKNOWN,
    ADV_ROW_KINDS
};

struct adv_kernel_row {
    const char *id, *chip, *name; /* name: the kernel as the file calls it; chip as the file spells it */
    const char *commit_date, *shape_id;
    enum adv_row_kind kind;
    enum adv_kernel kernel; /* of XLA's own: the kernel of the same result that has tiles */
    bool backward;          /* XLA attention */
    bool has_tile;          /* false: the tile is not published, or XLA chose */
    bool trusted;           /* usable for fits: not suspect, tile meaning certain, unmodified kernel */
    const char *fault;      /* why the row contradicts itself and is not predicted: static; NULL = sound */
    double measured_s;
    struct adv_attention_shape attention;
    struct adv_attention_tile attention_tile;
    struct adv_attention_flags attention_flags;
    struct adv_gmm_shape gmm;
    struct adv_gmm_tile gmm_tile;
    struct adv_matmul_shape matmul;
    struct adv_xent_shape xent;
    struct adv_xent_tile xent_tile;
    double copy_bytes; /* HBM_COPY: read plus written */
};

/* Reads a JSON array of rows (kernels.json, kernel_baselines.json, or the matmul and copy rows of
 * microbench.json). Everything is allocated in `arena`. ADV_E_SYNTAX, ADV_E_INVALID: with pointers; rows of a
 * kernel the engine does not know become ADV_ROW_UNKNOWN. Declared here, defined in
 * engine/json/decode_measurements_kernel.c. */
ADV_MUST_CHECK adv_code adv_decode_kernel_rows(const char *text, size_t length_bytes, struct adv_arena *arena,
                                               struct adv_kernel_row **rows, int *rows_count, adv_err *err);

#endif
