/* calibration_documents.h: what a fit says of priced measurements, as the store keeps it and answers show it.
 *
 * Pure: rows in, texts out. What is fitted, and how, is engine/calibrate/correction.h's.
 */
#pragma once

#include "engine/base/text.h"
#include "server/store_calibrations.h"

#define ADV_LIMIT_CALIBRATION_BYTES (8u * 1024u * 1024u) /* 5,000 rows, or plans, of at most 0.7 KiB */

/* Measured plans that are not fitted: the engine does not price them, or they are on what-if hardware. */
struct adv_calibration_left_out {
    int measurements_count;
    struct adv_text plans; /* objects, with commas between: {"run_id", "rank", "measurements_count",
                              "pointer", "code", "detail"} */
};

/* Adds a plan with `measurements_count` measurements, and why it is not fitted. */
void adv_calibration_leave_out(struct adv_calibration_left_out *left_out,
                               const struct adv_calibration_plan *plan, int measurements_count,
                               const struct adv_finding *why);

struct adv_calibration_documents {
    struct adv_text factors; /* {chip: {"step_time_correction_frac", "hbm_correction_frac"}} */
    struct adv_text fit;     /* {"chips": [...], "left_out_count", "left_out": [...], "rows": [...]} */
};

/* Fits the rows, which are ordered by chip, run and plan and have their predictions. `made` is to be freed,
 * also on an error. ADV_E_MEMORY. */
ADV_MUST_CHECK adv_code adv_calibration_documents_make(const struct adv_calibration_row *rows, int count,
                                                       const struct adv_calibration_left_out *left_out,
                                                       struct adv_calibration_documents *made, adv_err *err);
void adv_calibration_documents_free(struct adv_calibration_documents *made);
