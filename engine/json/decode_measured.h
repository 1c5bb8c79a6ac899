/* decode_measured.h: a measurement of a stored run, and the answer it belongs to. Thread safe. */
#ifndef ADV_JSON_DECODE_MEASURED_H
#define ADV_JSON_DECODE_MEASURED_H

#include <stdbool.h>

#include "engine/calibrate/measured.h"

/* {step_time_s, tokens_per_s_per_chip?, hbm_bytes_per_device?, source, at}; all findings at once. */
ADV_MUST_CHECK adv_code adv_decode_measured(const char *json, size_t json_bytes,
                                            struct adv_measured *measured, adv_err *err);

/* The prediction for plan `rank` (from 1) of a stored answer of an estimate or advise request. Errors as
 * adv_decode_answer. */
ADV_MUST_CHECK adv_code adv_decode_measured_plan(const char *response_json, size_t response_bytes, int rank,
                                                 struct adv_measured_plan *plan, adv_err *err);

/* 2026-11-21 or 2026-11-21T05:00:00Z (fractions and offsets are fine) by its looks; not the calendar. */
bool adv_looks_like_time(const char *text);

#endif
