/* decode_tags.h: tags of a run, given with its request or by PATCH /v1/runs/{run_id}. Thread safe. */
#pragma once

#include <stddef.h>

#include "engine/json/json_read.h"

#define ADV_LIMIT_TAGS      32
#define ADV_LIMIT_TAG_BYTES 63

/* {"tags": [...]}: at most 32 different strings of 1 to 63 bytes without commas and control characters, as a
 * JSON array in *tags, malloc'ed. ADV_E_INVALID with a finding for each that is not. */
ADV_MUST_CHECK adv_code adv_decode_tags(const char *json, size_t json_bytes, char **tags, adv_err *err);

/* The same of the member "tags" of the request `root`, which may be absent. */
void adv_check_tags(const json_t *root, adv_err *err);
