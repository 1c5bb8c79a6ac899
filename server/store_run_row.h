/* store_run_row.h: a row of the table runs as answers show it; for store_run*.c. */
#pragma once

#include "engine/base/text.h"
#include "server/db.h"

/* The columns of a SELECT, in the order of the enum. */
#define ADV_RUN_ROW_COLUMNS                                                                                  \
    "id, to_char(created_at" ADV_AS_TIME ", kind, project, label, git_ref, model, chip, topology, "          \
    "engine_version, catalog_hash, reevaluates, to_char(deleted_at" ADV_AS_TIME ", step_time_s, "            \
    "hbm_bytes_per_device, fits, to_json(tags)"
enum adv_run_column {
    ADV_RUN_ID,
    ADV_RUN_KIND = 2,
    ADV_RUN_STEP_TIME = 13,
    ADV_RUN_HBM,
    ADV_RUN_FITS,
    ADV_RUN_TAGS,
    ADV_RUN_REQUEST, /* what a SELECT has beyond the columns */
    ADV_RUN_RESPONSE
};

/* Appends the members of a run without request and response, without the closing brace. */
void adv_run_row_print(const struct adv_rows *rows, int row, struct adv_text *json);
