/* store_measurements.h: what plans of runs took on the machine, beside what was predicted for them. */
#pragma once

#include "engine/base/text.h"
#include "engine/calibrate/measured.h"
#include "server/db.h"

/* In SQL: whether the plan `rank` of run `r` is on what-if hardware, as its answer says; no machine that was
 * measured is like it, so that accuracy and calibrations leave its measurements out. Answers are long: they
 * are read only where the request may have overrides, in letters or as \\u escapes. */
#define ADV_IS_WHAT_IF(rank)                                                                                 \
    "CASE WHEN position('overrides' in r.request::text) > 0 OR position('\\u' in r.request::text) > 0 THEN " \
    "EXISTS (SELECT FROM json_array_elements(CASE r.kind WHEN 'advise' THEN r.response #> ARRAY['ranked', "  \
    "(" rank " - 1)::text, 'estimate', 'warnings'] ELSE r.response -> 'warnings' END) w WHERE w ->> 'code' " \
    "= '" ADV_WHAT_IF_CODE "') ELSE false END"
/* Why they are left out, and where in the request for an estimate of the plan. */
#define ADV_WHAT_IF_CODE    "what-if-hardware"
#define ADV_WHAT_IF_POINTER "/cluster/overrides"
#define ADV_WHAT_IF_DETAIL                                                                                   \
    "the plan is priced for what-if hardware: what another machine has taken says nothing of it"

struct adv_measurement_key {
    const char *run_id;
    int rank;              /* which plan of the run */
    const char *beginning; /* SHA-256 of the beginning of a log, in hexadecimal; NULL: none is known */
};

/* Stores a measurement and appends it as JSON. `created` is false when the same one was stored before: same
 * plan, source and time, same numbers; or a log of the plan with the same beginning, whose numbers it takes
 * over unless the stored ones are of more steps. ADV_E_CONFLICT: same plan, source and time but other
 * numbers.
 */
ADV_MUST_CHECK adv_code adv_store_measurement_save(struct adv_db *db, const struct adv_measurement_key *key,
                                                   const struct adv_measured *measured,
                                                   const struct adv_measured_plan *plan, bool *created,
                                                   struct adv_text *json, adv_err *err);

/* Whether the time is more than `minutes` ahead of the database's clock, which is then appended to `clock`.
 * ADV_E_BAD_REQUEST: the time is not in the calendar. */
ADV_MUST_CHECK adv_code adv_store_measurement_is_ahead(struct adv_db *db, const char *at, int minutes,
                                                       bool *ahead, struct adv_text *clock, adv_err *err);

/* A page of the measurements of a run. */
struct adv_measurement_filter {
    const char *run_id;
    int rank;          /* of this plan; 0 = of all */
    const char *after; /* the id that the page before ended with; NULL */
    int limit_count;
};

/* {"measurements": […], "measurements_count", "next_cursor", "drift"}, newest first, appended; count and
 * drift are of all that the rank has. ADV_E_NOT_FOUND when there is no such run. */
ADV_MUST_CHECK adv_code adv_store_measurements_list(struct adv_db *db,
                                                    const struct adv_measurement_filter *filter,
                                                    struct adv_text *json, adv_err *err);

/* ADV_E_NOT_FOUND when the run has no such measurement. */
ADV_MUST_CHECK adv_code adv_store_measurement_delete(struct adv_db *db, const char *run_id, const char *id,
                                                     adv_err *err);

/* Filters of the accuracy; NULL = any. `after` is the measurement that the previous page ended with. */
struct adv_accuracy_filter {
    const char *project, *label, *model, *chip, *since, *after;
    int limit_count;
};

/* {"rows": [...], "groups": [...], totals, "left_out_count", "left_out": [...], "next_cursor"} appended:
 * predicted against measured. Rows are a page, newest first; groups (chip and model) and totals are of all
 * that match and are not on what-if hardware, and `left_out` has the newest 100 plans of those that are.
 * Median, nearest-rank p90 and interval coverage as `validate` has them. ADV_E_BAD_REQUEST: `since` is not in
 * the calendar. */
ADV_MUST_CHECK adv_code adv_store_accuracy(struct adv_db *db, const struct adv_accuracy_filter *filter,
                                           struct adv_text *json, adv_err *err);

/* {"rows", "compiled_count", …}: predicted, compiled and measured memory of the plans that the real compiler
 * has spoken of, newest first, at most `limit_count`; the statistics are of all that match, predicted against
 * compiled, and "left_out_count" says how many plans are on what-if hardware and left out. "measured" has the
 * statistics of predicted against measured bytes, of all plans with such a measurement, compiled or not. The
 * cursor does not count. */
ADV_MUST_CHECK adv_code adv_store_memory_accuracy(struct adv_db *db, const struct adv_accuracy_filter *filter,
                                                  struct adv_text *json, adv_err *err);
