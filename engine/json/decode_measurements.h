/* decode_measurements.h: a measurement file (JSON array of rows: id, request, judged_step_time_s, …) becomes
 * rows. The answer of `validate` is in encode_validation.c.
 */
#ifndef ADV_JSON_DECODE_MEASUREMENTS_H
#define ADV_JSON_DECODE_MEASUREMENTS_H

#include "engine/base/arena.h"
#include "engine/calibrate/measurement.h"

/* Decodes `text`; rows and their strings are owned by `arena`. All findings of all rows are collected;
 * pointers start with the row's index. A row that cannot be decoded makes the call fail; old keys are fine.
 */
ADV_MUST_CHECK adv_code adv_decode_measurements(const struct adv_catalog *catalog, const char *text,
                                                size_t text_bytes, struct adv_arena *arena,
                                                struct adv_measurement **rows, int *rows_count, adv_err *err);

/* The answer of `validate` as JSON text, malloc'ed; NULL only when memory is exhausted. */
char *adv_encode_validation(const struct adv_catalog *catalog, const struct adv_measurement *rows,
                            int rows_count);

#endif
