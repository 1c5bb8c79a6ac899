/* decode_calibration.h: POST /v1/calibrations: {"project": "alpha"}. */
#ifndef ADV_JSON_DECODE_CALIBRATION_H
#define ADV_JSON_DECODE_CALIBRATION_H

#include <stddef.h>

#include "engine/base/err.h"

/* The project's name into `project`. */
ADV_MUST_CHECK adv_code adv_decode_calibration(const char *json, size_t json_bytes,
                                               char project[ADV_LIMIT_NAME], adv_err *err);

#endif
