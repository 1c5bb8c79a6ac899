/* decode_measurements.h: a measurement file (JSON array of rows: id, request, judged_step_time_s, …) becomes
 * rows. The answer of `validate` is in encode_validation.c.
 */
#pragma once

#include "engine/base/arena.h"
#include "engine/calibrate/measurement.h"

/* Decodes `text`; rows and their strings are owned by `arena`. What is wrong with a row is kept in its
 * findings, pointers start with its index; the other rows do not mind. A plan that breaks a rule was measured
 * all the same: it stays decoded, with the finding. Fails only when the file as a whole cannot be read:
 * ADV_E_SYNTAX, ADV_E_INVALID (no array), ADV_E_MEMORY. */
ADV_MUST_CHECK adv_code adv_decode_measurements(const struct adv_catalog *catalog, const char *text,
                                                size_t text_bytes, struct adv_arena *arena,
                                                struct adv_measurement **rows, int *rows_count, adv_err *err);

/* Adds what was `found` to the findings of the row, which is number `index` of its file. ADV_E_MEMORY. */
ADV_MUST_CHECK adv_code adv_measurement_keep_findings(struct adv_measurement *row, size_t index,
                                                      const adv_err *found, struct adv_arena *arena);

/* The answer of `validate` as JSON text, malloc'ed; NULL only when memory is exhausted. */
char *adv_encode_validation(const struct adv_catalog *catalog, const struct adv_measurement *rows,
                            int rows_count);
