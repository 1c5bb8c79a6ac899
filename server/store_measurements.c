#include "server/store_measurements.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/request_id.h"
#include "server/sha256.h"
#include "server/store_runs.h"

/* One measurement as JSON; the database builds it. */
#define MEASUREMENT_MEMBERS                                                                                  \
    "'measurement_id', m.id, 'run_id', m.run_id, 'rank', m.rank, 'at', to_char(m.measured_at" ADV_AS_TIME    \
    ", 'source', m.source, 'steps_count', m.steps_count, 'warm_up_steps_count', m.warm_up_steps_count, "     \
    "'measured_step_time_p25_s', m.measured_step_time_p25_s, 'measured_step_time_p75_s', "                   \
    "m.measured_step_time_p75_s, 'measured_step_time_mad_s', m.measured_step_time_mad_s, "                   \
    "'measured_step_time_s', m.measured_step_time_s, 'step_time_s', m.step_time_s, 'step_time_low_s', "      \
    "m.step_time_low_s, 'step_time_high_s', m.step_time_high_s, 'error_frac', m.step_time_s / "              \
    "m.measured_step_time_s - 1, 'inside_interval', m.measured_step_time_s BETWEEN m.step_time_low_s AND "   \
    "m.step_time_high_s, 'measured_tokens_per_s_per_chip', m.measured_tokens_per_s_per_chip, "               \
    "'measured_hbm_bytes_per_device', m.measured_hbm_bytes_per_device, 'hbm_bytes_per_device', "             \
    "m.hbm_bytes_per_device, 'hbm_error_frac', m.hbm_bytes_per_device / m.measured_hbm_bytes_per_device - 1"

/* What tells one log that says no time from another: its numbers, to the last bit. */
static void digest_of_log(const struct adv_measured *measured, char digest[ADV_SHA256_HEX])
{
    char numbers[256];
    const int length =
        snprintf(numbers, sizeof numbers, "%d %d %.17g %.17g %.17g %.17g %.17g", measured->steps_count,
                 measured->warm_up_steps_count, measured->step_time_s, measured->step_time_p25_s,
                 measured->step_time_p75_s, measured->tokens_per_s_per_chip, measured->hbm_bytes_per_device);
    adv_sha256_hex(numbers, (size_t)length, digest);
}

/* The log that has grown takes the place of what it was, or is that. One that is shorter, as one that was
 * sent before, changes nothing. ADV_E_NOT_FOUND: no log of the plan begins like it. */
static adv_code supersede(struct adv_db *db, const struct adv_measurement_key *key,
                          const struct adv_measured *measured, const char *at, struct adv_text *json,
                          adv_err *err)
{
    static const char sql[] =
        "WITH before AS (SELECT id, (steps_count, warm_up_steps_count, measured_step_time_s, "
        "measured_step_time_p25_s, measured_step_time_p75_s) IS NOT DISTINCT FROM ($5::int, $6::int, "
        "$7::float8, $8::float8, $9::float8) AS is_same FROM measurements WHERE run_id = $1::uuid AND rank = "
        "$2::int AND log_beginning_sha256 = $3), grown AS (UPDATE measurements m SET measured_at = "
        "coalesce($4::timestamptz, now()), steps_count = $5::int, warm_up_steps_count = $6::int, "
        "measured_step_time_s = $7::float8, measured_step_time_p25_s = $8::float8, measured_step_time_p75_s "
        "= $9::float8, measured_step_time_mad_s = $10::float8, measured_tokens_per_s_per_chip = $11::float8, "
        "source = $12, log_sha256 = NULL FROM before b WHERE m.id = b.id AND NOT b.is_same AND m.steps_count "
        "<= $5::int RETURNING m.*), m AS (SELECT * FROM grown UNION ALL SELECT * FROM measurements WHERE id "
        "IN (SELECT id FROM before) AND NOT EXISTS (SELECT FROM grown)) SELECT "
        "json_build_object(" MEASUREMENT_MEMBERS ") FROM m";
    if (!key->beginning) return ADV_E_NOT_FOUND;
    return adv_db_print(
        db, sql,
        ADV_VALUES(key->run_id, ADV_INTEGER(key->rank), key->beginning, at,
                   ADV_INTEGER(measured->steps_count), ADV_INTEGER(measured->warm_up_steps_count),
                   ADV_NUMBER(measured->step_time_s), ADV_NUMBER(measured->step_time_p25_s),
                   ADV_NUMBER(measured->step_time_p75_s), ADV_NUMBER(measured->step_time_mad_s),
                   ADV_NUMBER(measured->tokens_per_s_per_chip), measured->source),
        json, err);
}

adv_code adv_store_measurement_save(struct adv_db *db, const struct adv_measurement_key *key,
                                    const struct adv_measured *measured, const struct adv_measured_plan *plan,
                                    bool *created, struct adv_text *json, adv_err *err)
{
    static const char insert[] =
        "WITH m AS (INSERT INTO measurements (id, run_id, rank, measured_at, source, steps_count, "
        "measured_step_time_s, measured_tokens_per_s_per_chip, measured_hbm_bytes_per_device, step_time_s, "
        "step_time_low_s, step_time_high_s, hbm_bytes_per_device, warm_up_steps_count, "
        "measured_step_time_p25_s, measured_step_time_p75_s, measured_step_time_mad_s, log_sha256, "
        "log_beginning_sha256) VALUES (uuid_v7(), "
        "$1::uuid, $2::int, coalesce($3::timestamptz, now()), $4, $5::int, $6::float8, $7::float8, "
        "$8::float8, $9::float8, $10::float8, $11::float8, $12::float8, $13::int, $14::float8, $15::float8, "
        "$16::float8, $17, $18) ON CONFLICT DO NOTHING RETURNING *) SELECT json_build_object(" MEASUREMENT_MEMBERS
        ") FROM m";
    /* A log without a beginning says no time: the same numbers of as many steps are the same log, sent twice.
     * Sent at the same moment, the second is refused by its digest. Of logs that earlier releases took in the
     * beginning is not known. */
    static const char same[] =
        "SELECT json_build_object(" MEASUREMENT_MEMBERS ") FROM measurements m WHERE run_id = $1::uuid AND "
        "rank = $2::int AND ($3::timestamptz IS NULL OR measured_at = $3::timestamptz) AND source = $4 AND "
        "measured_step_time_s = $5::float8 AND measured_tokens_per_s_per_chip IS NOT DISTINCT FROM "
        "$6::float8 AND measured_hbm_bytes_per_device IS NOT DISTINCT FROM $7::float8 AND ($3::timestamptz "
        "IS NOT NULL OR (steps_count, warm_up_steps_count, measured_step_time_p25_s, "
        "measured_step_time_p75_s) IS NOT DISTINCT FROM ($8::int, $9::int, $10::float8, $11::float8) AND "
        "($12::text IS NULL OR log_beginning_sha256 IS NULL)) LIMIT 1";
    char digest[ADV_SHA256_HEX];
    const bool counted = measured->steps_count > 0;
    const char *rank = ADV_INTEGER(key->rank);
    const char *at = measured->at[0] ? measured->at : NULL;
    const char *step_time = ADV_NUMBER(measured->step_time_s);
    const char *tokens = ADV_NUMBER(measured->tokens_per_s_per_chip);
    const char *hbm = ADV_NUMBER(measured->hbm_bytes_per_device);
    const char *steps = counted ? ADV_INTEGER(measured->steps_count) : NULL;
    const char *warm_up = counted ? ADV_INTEGER(measured->warm_up_steps_count) : NULL;
    const char *p25 = ADV_NUMBER(measured->step_time_p25_s), *p75 = ADV_NUMBER(measured->step_time_p75_s);
    const struct adv_values as_before = ADV_VALUES(key->run_id, rank, at, measured->source, step_time, tokens,
                                                   hbm, steps, warm_up, p25, p75, key->beginning);
    *created = false;
    adv_code code = supersede(db, key, measured, at, json, err);
    if (code == ADV_E_NOT_FOUND && counted && !at) code = adv_db_print(db, same, as_before, json, err);
    if (code != ADV_E_NOT_FOUND) return code;
    digest_of_log(measured, digest);
    code = adv_db_print(db, insert,
                        ADV_VALUES(key->run_id, rank, at, measured->source, steps, step_time, tokens, hbm,
                                   ADV_NUMBER(plan->step_time_s), ADV_NUMBER(plan->step_time_low_s),
                                   ADV_NUMBER(plan->step_time_high_s), ADV_NUMBER(plan->hbm_bytes_per_device),
                                   warm_up, p25, p75, ADV_NUMBER(measured->step_time_mad_s),
                                   counted && !at && !key->beginning ? digest : NULL, key->beginning),
                        json, err);
    *created = code == ADV_OK;
    if (code != ADV_E_NOT_FOUND) return adv_store_run_added(db, key->run_id, code, err);
    code = supersede(db, key, measured, at, json, err); /* the same log, sent at the same moment */
    if (code == ADV_E_NOT_FOUND) code = adv_db_print(db, same, as_before, json, err);
    if (code != ADV_E_NOT_FOUND) return code;
    return adv_err_add(err, ADV_E_CONFLICT, "", "give each measurement the time at which it was taken",
                       "'%.64s' has measured this plan at that time with other numbers", measured->source);
}

adv_code adv_store_measurement_is_ahead(struct adv_db *db, const char *at, int minutes, bool *ahead,
                                        struct adv_text *clock, adv_err *err)
{
    static const char sql[] =
        "SELECT to_char(now()" ADV_AS_TIME " WHERE $1::timestamptz > now() + make_interval(mins => $2::int)";
    const adv_code code = adv_db_print(db, sql, ADV_VALUES(at, ADV_INTEGER(minutes)), clock, err);
    *ahead = code == ADV_OK;
    return code == ADV_E_NOT_FOUND ? ADV_OK : code;
}

/* Some measurements, each with its ratio to the median of its plan; a plan measured once has none. */
#define RATIOS(some)                                                                                         \
    "(SELECT d.*, d.measured_step_time_s / t.typical AS ratio FROM (SELECT * FROM " some                     \
    ") d JOIN (SELECT run_id, rank, percentile_cont(0.5) WITHIN GROUP (ORDER BY measured_step_time_s) AS "   \
    "typical FROM " some " GROUP BY run_id, rank HAVING count(*) > 1) t ON t.run_id = d.run_id AND t.rank "  \
    "= d.rank)"
#define RATIOS_OF_MINE   RATIOS("mine")
#define RATIOS_OF_PICKED RATIOS("picked")
/* The drift of ratios, in the order of time; they follow. */
#define DRIFT_OF "measured_drift(array_agg(ratio ORDER BY measured_at, id)) AS drift FROM "

adv_code adv_store_measurements_list(struct adv_db *db, const struct adv_measurement_filter *filter,
                                     struct adv_text *json, adv_err *err)
{
    /* One row more than asked tells whether there is another page; ids sort by time. */
    static const char sql[] =
        "WITH mine AS (SELECT * FROM measurements WHERE run_id = $1::uuid AND ($2::int = 0 OR rank = "
        "$2::int)), shown AS (SELECT *, row_number() OVER (ORDER BY id DESC) AS place FROM mine WHERE "
        "$3::uuid IS NULL OR id < $3::uuid ORDER BY id DESC LIMIT $4::int + 1) SELECT "
        "json_build_object('measurements', coalesce((SELECT json_agg(json_build_object(" MEASUREMENT_MEMBERS
        ") ORDER BY m.place) FROM shown m WHERE m.place <= $4::int), '[]'::json), 'measurements_count', "
        "(SELECT count(*) FROM mine), 'next_cursor', (SELECT m.id FROM shown m WHERE m.place = $4::int AND "
        "(SELECT count(*) FROM shown) > $4::int), 'drift', (SELECT " DRIFT_OF RATIOS_OF_MINE
        " q)) FROM runs r WHERE r.id = $1::uuid AND r.deleted_at IS NULL";
    return adv_db_print_of(db, &adv_db_run_kind, sql,
                           ADV_VALUES(filter->run_id, ADV_INTEGER(filter->rank), filter->after,
                                      ADV_INTEGER(filter->limit_count)),
                           json, err);
}

adv_code adv_store_measurement_delete(struct adv_db *db, const char *run_id, const char *id, adv_err *err)
{
    static const char sql[] =
        "DELETE FROM measurements WHERE run_id = $1::uuid AND id = $2::uuid AND EXISTS (SELECT FROM runs r "
        "WHERE r.id = $1::uuid AND r.deleted_at IS NULL)";
    int deleted = 0;
    if (adv_uuid_valid(run_id) && adv_uuid_valid(id) &&
        adv_db_change(db, sql, ADV_VALUES(run_id, id), &deleted, err))
        return err->code;
    return deleted ? ADV_OK
                   : adv_err_add(err, ADV_E_NOT_FOUND, "", NULL, "the run has no measurement '%.64s'", id);
}

/* Of the column `error` of some rows. */
#define ERRORS                                                                                               \
    "'median_abs_error_frac', percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(error)), "                     \
    "'p90_abs_error_frac', percentile_disc(0.9) WITHIN GROUP (ORDER BY abs(error)), 'max_abs_error_frac', "  \
    "max(abs(error)), 'bias_frac', percentile_cont(0.5) WITHIN GROUP (ORDER BY error)"
#define STATISTICS "'judged_count', count(*), " ERRORS ", 'interval_coverage_frac', avg(inside::int)::float8"

/* Of the measurements `m` and their runs `r`, those that a filter of five values asks for. */
#define MATCHED                                                                                              \
    "measurements m JOIN runs r ON r.id = m.run_id WHERE r.deleted_at IS NULL AND ($1::text IS NULL OR "     \
    "r.project = $1) AND ($2::text IS NULL OR r.label = $2) AND ($3::text IS NULL OR r.model = $3) AND "     \
    "($4::text IS NULL OR r.chip = $4) AND ($5::timestamptz IS NULL OR m.measured_at >= $5::timestamptz) "   \
    "AND "

/* Appends the members "left_out_count" and "left_out", with commas before them. */
static adv_code print_left_out(struct adv_db *db, const struct adv_accuracy_filter *filter,
                               struct adv_text *json, adv_err *err)
{
    static const char sql[] =
        "WITH o AS (SELECT m.run_id, m.rank, count(*) AS measurements_count FROM " MATCHED ADV_IS_WHAT_IF(
            "m.rank") " GROUP BY m.run_id, m.rank) SELECT format(',\"left_out_count\":%s,\"left_out\":%s', "
                      "coalesce(sum(measurements_count), 0), coalesce((SELECT json_agg(json_build_object("
                      "'run_id', run_id, 'rank', rank, 'measurements_count', measurements_count, 'pointer', "
                      "'" ADV_WHAT_IF_POINTER "', 'code', '" ADV_WHAT_IF_CODE
                      "', 'detail', '" ADV_WHAT_IF_DETAIL
                      "')) FROM (SELECT * FROM o ORDER BY run_id DESC, rank LIMIT 100) n), '[]'::json)) FROM o";
    return adv_db_print(
        db, sql, ADV_VALUES(filter->project, filter->label, filter->model, filter->chip, filter->since), json,
        err);
}

adv_code adv_store_accuracy(struct adv_db *db, const struct adv_accuracy_filter *filter,
                            struct adv_text *json, adv_err *err)
{
    /* One row more than asked tells whether there is another page; ids sort by time. */
    static const char sql[] =
        "WITH picked AS (SELECT m.*, r.project, r.label, r.model, r.chip, r.topology, m.step_time_s / "
        "m.measured_step_time_s - 1 AS error, m.measured_step_time_s BETWEEN m.step_time_low_s AND "
        "m.step_time_high_s AS inside FROM " MATCHED "NOT " ADV_IS_WHAT_IF(
            "m.rank") "), ratios AS " RATIOS_OF_PICKED ", drifts AS (SELECT chip, model, " DRIFT_OF
                      "ratios GROUP BY chip, model), shown AS (SELECT *, "
                      "row_number() OVER (ORDER BY id DESC) AS place FROM picked WHERE $6::uuid IS NULL OR id < $6::uuid "
                      "ORDER BY id DESC LIMIT $7::int + 1) SELECT json_build_object('rows', coalesce((SELECT "
                      "json_agg(json_build_object('project', nullif(m.project, ''), 'label', nullif(m.label, ''), 'model', "
                      "m.model, 'chip', m.chip, 'topology', m.topology, " MEASUREMENT_MEMBERS
                      ") ORDER BY m.place) FROM "
                      "shown m WHERE m.place <= $7::int), '[]'::json), 'groups', coalesce((SELECT json_agg(g.json) FROM "
                      "(SELECT json_build_object('chip', chip, 'model', model, " STATISTICS ", 'drift', "
                      "coalesce((array_agg(drift))[1], measured_drift(NULL))) AS json FROM picked LEFT JOIN drifts USING "
                      "(chip, model) GROUP BY chip, model ORDER BY chip, model) g), '[]'::json), " STATISTICS
                      ", 'drift', "
                      "(SELECT " DRIFT_OF
                      "ratios), 'next_cursor', (SELECT m.id FROM shown m WHERE m.place = $7::int AND "
                      "(SELECT count(*) FROM shown) > $7::int)) FROM picked";
    const adv_code code =
        adv_db_print(db, sql,
                     ADV_VALUES(filter->project, filter->label, filter->model, filter->chip, filter->since,
                                filter->after, ADV_INTEGER(filter->limit_count)),
                     json, err);
    if (code || json->length_bytes == 0) return code;
    json->data[--json->length_bytes] = '\0'; /* the } */
    const adv_code more = print_left_out(db, filter, json, err);
    adv_text_append(json, "}");
    return more;
}

/* Appends the member "measured", with a comma before it: of each plan its newest measurement that has bytes.
 */
static adv_code print_measured_memory(struct adv_db *db, const struct adv_accuracy_filter *filter,
                                      struct adv_text *json, adv_err *err)
{
    static const char sql[] =
        "WITH judged AS (SELECT DISTINCT ON (m.run_id, m.rank) m.hbm_bytes_per_device / "
        "m.measured_hbm_bytes_per_device - 1 AS error FROM " MATCHED "NOT " ADV_IS_WHAT_IF(
            "m.rank") " AND m.measured_hbm_bytes_per_device IS NOT NULL AND m.hbm_bytes_per_device IS NOT NULL "
                      "ORDER BY m.run_id, m.rank, m.id DESC) SELECT format(',\"measured\":%s', "
                      "json_build_object('judged_count', count(*), " ERRORS ")) FROM judged";
    return adv_db_print(
        db, sql, ADV_VALUES(filter->project, filter->label, filter->model, filter->chip, filter->since), json,
        err);
}

adv_code adv_store_memory_accuracy(struct adv_db *db, const struct adv_accuracy_filter *filter,
                                   struct adv_text *json, adv_err *err)
{
    /* One row per plan of a run: its newest word, and its newest measurement that has bytes. */
    static const char sql[] = "WITH word AS (SELECT DISTINCT ON (v.run_id, p.rank) v.run_id, p.rank, " ADV_IS_WHAT_IF(
        "p.rank") " AS what_if, v.id AS verification_id, "
                  "p.verdict, p.ended_at, p.predicted_hbm_bytes_per_device AS predicted, "
                  "p.compiled_hbm_bytes_per_device AS compiled, r.project, r.label, r.model, r.chip, r.topology FROM "
                  "verification_plans p JOIN verifications v ON v.id = p.verification_id JOIN runs r ON r.id = "
                  "v.run_id WHERE p.state = 'done' AND r.deleted_at IS NULL AND p.compiled_hbm_bytes_per_device IS NOT "
                  "NULL AND ($1::text IS NULL OR r.project = $1) AND ($2::text IS NULL OR r.label = $2) AND ($3::text "
                  "IS NULL OR r.model = $3) AND ($4::text IS NULL OR r.chip = $4) AND ($5::timestamptz IS NULL OR "
                  "p.ended_at >= $5::timestamptz) ORDER BY v.run_id, p.rank, v.id DESC), picked AS (SELECT w.*, "
                  "w.predicted / w.compiled - 1 AS error, (SELECT m.measured_hbm_bytes_per_device FROM measurements m "
                  "WHERE m.run_id = w.run_id AND m.rank = w.rank AND m.measured_hbm_bytes_per_device IS NOT NULL ORDER "
                  "BY m.id DESC LIMIT 1) AS measured FROM word w WHERE NOT w.what_if), shown AS (SELECT * FROM picked ORDER BY "
                  "verification_id DESC, rank LIMIT $6::int) SELECT json_build_object('rows', coalesce((SELECT "
                  "json_agg(json_build_object('run_id', run_id, 'rank', rank, 'verification_id', verification_id, "
                  "'project', nullif(project, ''), 'label', nullif(label, ''), 'model', model, 'chip', chip, "
                  "'topology', topology, 'verdict', verdict, 'predicted_hbm_bytes_per_device', predicted, "
                  "'compiled_hbm_bytes_per_device', compiled, 'measured_hbm_bytes_per_device', measured, "
                  "'hbm_error_frac', error) ORDER BY verification_id DESC, rank) FROM shown), '[]'::json), "
                  "'left_out_count', (SELECT count(*) FROM word WHERE what_if), 'compiled_count', count(*), 'measured_count', count(measured), " ERRORS
                  ") FROM picked";
    const adv_code code = adv_db_print(db, sql,
                                       ADV_VALUES(filter->project, filter->label, filter->model, filter->chip,
                                                  filter->since, ADV_INTEGER(filter->limit_count)),
                                       json, err);
    if (code || json->length_bytes == 0) return code;
    json->data[--json->length_bytes] = '\0'; /* the } */
    const adv_code more = print_measured_memory(db, filter, json, err);
    adv_text_append(json, "}");
    return more;
}
