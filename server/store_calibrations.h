/* store_calibrations.h: calibrations of projects in the database: fitted once, kept as fitted, in force or
 * not.
 *
 * Errors are those of adv_db_run besides the named; ADV_E_NOT_FOUND: there is no such calibration. */
#pragma once

#include "engine/base/text.h"
#include "engine/catalog/catalog.h"
#include "server/db.h"
#include "server/request_id.h"

#define ADV_LIMIT_CALIBRATED_CHIPS 16
#define ADV_LIMIT_CALIBRATION_ROWS 5000 /* newest measurements of a project that a fit looks at */

/* A measurement beside what the published fit of one engine predicts, which is not read from the store. NAN:
 * not known. */
struct adv_calibration_row {
    const char *chip, *run_id, *rank, *measurement_id;
    double measured_step_time_s, published_step_time_s, measured_hbm_bytes, published_hbm_bytes;
    bool is_what_if; /* its plan is on hardware that does not exist: not to be fitted */
};

/* The newest measurements of a project, ordered by chip, run and plan. `rows` is malloc'ed, its texts live in
 * `held` (adv_rows_free). */
ADV_MUST_CHECK adv_code adv_calibration_rows(struct adv_db *db, const char *project, struct adv_rows *held,
                                             struct adv_calibration_row **rows, int *count, adv_err *err);

/* A measured plan of a run. */
struct adv_calibration_plan {
    const char *run_id, *rank;
    const char *request; /* of the run; NULL: it is not there any more */
    const char *answer;  /* that of an advise; "{}" of an estimate, whose request says all */
};

/* Fills `request` and `answer` of the plans, at most ADV_LIMIT_CALIBRATION_PLANS; the texts live in `held`.
 * Those of a run whose plans lie beside each other are read once. */
#define ADV_LIMIT_CALIBRATION_PLANS 64 /* answers of an advise have 300 KiB */
ADV_MUST_CHECK adv_code adv_calibration_plans(struct adv_db *db, struct adv_calibration_plan *plans,
                                              int count, struct adv_rows *held, adv_err *err);

/* An engine: its factors are for the predictions of the one that they were fitted on. */
struct adv_calibration_engine {
    const char *version, *catalog_hash;
};

struct adv_new_calibration {
    const char *project, *principal;
    struct adv_calibration_engine engine;
    const char *factors, *fit; /* JSON, see calibration_documents.h */
};
ADV_MUST_CHECK adv_code adv_calibration_save(struct adv_db *db, const struct adv_new_calibration *made,
                                             char id[ADV_UUID_BYTES], adv_err *err);

/* Appends the calibration as JSON: what was fitted, "active", in "refusal" why it cannot be (null: it can),
 * and whether it is "outdated": fitted by another engine than this one. */
ADV_MUST_CHECK adv_code adv_calibration_print(struct adv_db *db, const char *id,
                                              const struct adv_calibration_engine *engine,
                                              struct adv_text *json, adv_err *err);

/* {"calibrations", "history", "next_cursor"} of a project appended, newest first. `engine`: this one. */
ADV_MUST_CHECK adv_code adv_calibrations_list(struct adv_db *db, const char *project, const char *cursor,
                                              int limit_count, const struct adv_calibration_engine *engine,
                                              struct adv_text *json, adv_err *err);

/* Puts it in force. ADV_E_CONFLICT: it corrects nothing, or more than any machine explains, and by which
 * measurement. Again changes nothing. */
ADV_MUST_CHECK adv_code adv_calibration_activate(struct adv_db *db, const char *id, const char *principal,
                                                 adv_err *err);
/* Puts in force what was before it. ADV_E_CONFLICT: it is not in force. */
ADV_MUST_CHECK adv_code adv_calibration_revert(struct adv_db *db, const char *id, const char *principal,
                                               adv_err *err);

struct adv_active_calibration {
    char project[ADV_LIMIT_NAME], id[ADV_UUID_BYTES];
    char engine_version[ADV_LIMIT_NAME], catalog_hash[ADV_LIMIT_NAME]; /* that fitted it; "" = not known */
    int corrections_count;
    struct adv_correction corrections[ADV_LIMIT_CALIBRATED_CHIPS];
};
/* Those in force of all projects; `active` is malloc'ed. */
ADV_MUST_CHECK adv_code adv_calibrations_active(struct adv_db *db, struct adv_active_calibration **active,
                                                int *count, adv_err *err);
