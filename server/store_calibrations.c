#include "server/store_calibrations.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/store_measurements.h"

#define LIST_LIMIT_BYTES (40u * ADV_LIMIT_CALIBRATION_PLANS) /* a UUID and a comma each */

/* The calibration in force of the project of row `c`. */
#define ACTIVE                                                                                               \
    "(SELECT h.calibration_id FROM calibration_history h WHERE h.project = c.project ORDER BY h.id DESC "    \
    "LIMIT 1)"

/* The measurement of the chip of row `f` whose value, of row `b`, is furthest from its prediction. */
#define FURTHEST                                                                                             \
    "SELECT r ->> 'measurement_id' AS id, r ->> 'run_id' AS run, (r ->> ('measured_' || "                    \
    "b.value))::float8 AS measured, (r ->> ('published_' || b.value))::float8 AS published FROM "            \
    "json_array_elements(c.fit -> 'rows') r WHERE r ->> 'chip' = f.key ORDER BY abs(ln((r ->> "              \
    "('measured_' || b.value))::float8 / nullif((r ->> ('published_' || b.value))::float8, 0))) DESC NULLS " \
    "LAST LIMIT 1"

/* How many of the measurements that the calibration of row `c` stands on are no more. */
#define GONE                                                                                                 \
    "(SELECT count(*) FROM json_array_elements(c.fit -> 'rows') r WHERE NOT EXISTS (SELECT FROM "            \
    "measurements m WHERE m.id = (r ->> 'measurement_id')::uuid))"

/* Why the calibration of row `c` cannot be put in force; null: it can. The published fit is within a sixth of
 * every measured step (tests/accuracy/report.md) and within a tenth of the memory of nine in ten compiled
 * plans (tests/compile/report.md): a factor of 5 on the time or 2 on the memory is not of a chip, but of a
 * measurement in another unit or of another plan. */
#define REFUSAL                                                                                              \
    "CASE WHEN c.factors::text = '{}' THEN 'it corrects nothing: fewer than three measured plans of each "   \
    "chip' WHEN " GONE " > 0 THEN format('%s of its measurements have been deleted since: fit again', " GONE \
    ") ELSE (SELECT format('it multiplies the %s of %s by %s, where %s to %s is plausible: %s %s were "      \
    "measured, %s predicted. If that is another unit or plan, DELETE /v1/runs/%s/measurements/%s and fit "   \
    "again', b.what, f.key, least(1 + (f.value ->> b.member)::float8, 1e9)::real, b.least, b.most, "         \
    "w.measured, b.unit, w.published, w.run, w.id) FROM json_each(c.factors) f CROSS JOIN (VALUES ('step "   \
    "time', 'step_time_correction_frac', 'step_time_s', 'seconds', 0.2, 5), ('memory', "                     \
    "'hbm_correction_frac', 'hbm_bytes_per_device', 'bytes', 0.5, 2)) b (what, member, value, unit, least, " \
    "most) CROSS JOIN LATERAL (" FURTHEST ") w WHERE 1 + (f.value ->> b.member)::float8 NOT BETWEEN "        \
    "b.least AND b.most ORDER BY f.key, b.member LIMIT 1) END"

static const struct adv_db_kind calibration = {"calibration", "a calibration id is a UUID"};

adv_code adv_calibration_rows(struct adv_db *db, const char *project, struct adv_rows *held,
                              struct adv_calibration_row **rows, int *count, adv_err *err)
{
    static const char sql[] =
        "SELECT * FROM (SELECT r.chip, m.run_id, m.rank, m.id, m.measured_step_time_s, "
        "m.measured_hbm_bytes_per_device, " ADV_IS_WHAT_IF(
            "m.rank") " FROM measurements m JOIN runs r ON r.id = m.run_id WHERE r.project = "
                      "$1 AND r.deleted_at IS NULL ORDER BY m.id DESC LIMIT $2::int) n ORDER BY chip, run_id, rank, id";
    adv_code code =
        adv_db_run(db, sql, ADV_VALUES(project, ADV_INTEGER(ADV_LIMIT_CALIBRATION_ROWS)), held, err);
    if (code) return code;
    *count = held->count;
    *rows = calloc((size_t)held->count + 1, sizeof **rows);
    if (!*rows) {
        adv_rows_free(held);
        return adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the measurements");
    }
    for (int i = 0; i < held->count; i++)
        (*rows)[i] = (struct adv_calibration_row){
            .chip = adv_rows_text(held, i, 0),
            .run_id = adv_rows_text(held, i, 1),
            .rank = adv_rows_text(held, i, 2),
            .measurement_id = adv_rows_text(held, i, 3),
            .measured_step_time_s = adv_rows_number(held, i, 4),
            .published_step_time_s = (double)NAN,
            .measured_hbm_bytes = adv_rows_number(held, i, 5),
            .published_hbm_bytes = (double)NAN,
            .is_what_if = adv_rows_true(held, i, 6),
        };
    return ADV_OK;
}

adv_code adv_calibration_plans(struct adv_db *db, struct adv_calibration_plan *plans, int count,
                               struct adv_rows *held, adv_err *err)
{
    /* The whole answer: for the server to cut a plan out of it takes longer than to send it. */
    static const char sql[] =
        "SELECT p.place - 1, r.request, CASE r.kind WHEN 'advise' THEN r.response ELSE '{}' END FROM "
        "unnest($1::uuid[]) WITH ORDINALITY p (run_id, place) JOIN runs r ON r.id = p.run_id WHERE "
        "r.deleted_at IS NULL";
    struct adv_text runs = adv_text_empty(LIST_LIMIT_BYTES);
    int places[ADV_LIMIT_CALIBRATION_PLANS]; /* of a plan's run among those asked for */
    int runs_count = 0;
    for (int i = 0; i < count; i++) {
        if (i == 0 || strcmp(plans[i].run_id, plans[i - 1].run_id) != 0)
            adv_text_format(&runs, "%c%s", runs_count++ ? ',' : '{', plans[i].run_id);
        places[i] = runs_count - 1;
    }
    adv_text_append(&runs, "}");
    adv_code code = runs.overflow
                        ? adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the measured plans")
                        : adv_db_run(db, sql, ADV_VALUES(runs.data), held, err);
    adv_text_free(&runs);
    if (code) return code;
    int rows[ADV_LIMIT_CALIBRATION_PLANS]; /* of a run, from 1; 0: it is not there */
    memset(rows, 0, sizeof rows);
    for (int row = 0; row < held->count; row++) rows[(int)adv_rows_number(held, row, 0)] = row + 1;
    for (int i = 0; i < count; i++) {
        const int row = rows[places[i]] - 1;
        plans[i].request = row < 0 ? NULL : adv_rows_text(held, row, 1);
        plans[i].answer = row < 0 ? NULL : adv_rows_text(held, row, 2);
    }
    return ADV_OK;
}

adv_code adv_calibration_save(struct adv_db *db, const struct adv_new_calibration *made,
                              char id[ADV_UUID_BYTES], adv_err *err)
{
    return adv_db_id(db,
                     "INSERT INTO calibrations (id, project, created_by, engine_version, catalog_hash, "
                     "factors, fit) VALUES (uuid_v7(), $1, $2, $3, $4, $5::json, $6::json) RETURNING id",
                     ADV_VALUES(made->project, made->principal, made->engine.version,
                                made->engine.catalog_hash, made->factors, made->fit),
                     id, err);
}

/* Of row `c`; $2 and $3 name this engine and its catalog. */
#define MEMBERS                                                                                              \
    "'calibration_id', c.id, 'project', c.project, 'created_at', to_char(c.created_at" ADV_AS_TIME ", "      \
    "'name', 'calibration/' || c.id, 'active', c.id IS NOT DISTINCT FROM " ACTIVE ", 'refusal', " REFUSAL    \
    ", 'fitted_by', CASE WHEN c.engine_version <> '' THEN json_build_object('version', c.engine_version, "   \
    "'catalog_hash', c.catalog_hash) END, 'outdated', (c.engine_version, c.catalog_hash) <> ($2::text, "     \
    "$3::text), 'left_out_count', coalesce((c.fit ->> 'left_out_count')::int, 0), 'chips', c.fit -> 'chips'"

adv_code adv_calibration_print(struct adv_db *db, const char *id, const struct adv_calibration_engine *engine,
                               struct adv_text *json, adv_err *err)
{
    static const char sql[] =
        "SELECT json_build_object(" MEMBERS
        ", 'rows', c.fit -> 'rows', 'left_out', coalesce(c.fit -> 'left_out', '[]'::json)) FROM "
        "calibrations c WHERE c.id = $1::uuid";
    return adv_db_print_of(db, &calibration, sql, ADV_VALUES(id, engine->version, engine->catalog_hash), json,
                           err);
}

adv_code adv_calibrations_list(struct adv_db *db, const char *project, const char *cursor, int limit_count,
                               const struct adv_calibration_engine *engine, struct adv_text *json,
                               adv_err *err)
{
    static const char sql[] =
        "WITH shown AS (SELECT c.*, row_number() OVER (ORDER BY c.id DESC) AS place FROM calibrations c "
        "WHERE ($1::text IS NULL OR c.project = $1) AND ($4::uuid IS NULL OR c.id < $4::uuid) ORDER BY c.id "
        "DESC LIMIT $5::int + 1) SELECT json_build_object('calibrations', coalesce((SELECT "
        "json_agg(json_build_object(" MEMBERS ") ORDER BY c.place) FROM shown c WHERE c.place <= $5::int), "
        "'[]'::json), 'history', coalesce((SELECT json_agg(json_build_object('project', h.project, "
        "'calibration_id', h.calibration_id, 'changed_at', to_char(h.changed_at" ADV_AS_TIME ", "
        "'changed_by', nullif(h.changed_by, '')) ORDER BY h.id DESC) FROM (SELECT * FROM "
        "calibration_history WHERE $1::text IS NULL OR project = $1 ORDER BY id DESC LIMIT 100) h), "
        "'[]'::json), 'next_cursor', (SELECT c.id FROM shown c WHERE c.place = $5::int AND (SELECT count(*) "
        "FROM shown) > $5::int))";
    return adv_db_print(
        db, sql, ADV_VALUES(project, engine->version, engine->catalog_hash, cursor, ADV_INTEGER(limit_count)),
        json, err);
}

#define CHANGE_TRIES 16 /* of who finds each time that another has changed it meanwhile */

/* A statement of $1 id, $2 principal that gives 'done', or why not; no row: there is no such calibration. One
 * that another change has overtaken is decided again. */
static adv_code change(struct adv_db *db, const char *sql, const char *id, const char *principal,
                       adv_err *err)
{
    struct adv_rows rows;
    if (!adv_uuid_valid(id)) return adv_db_not_found(&calibration, id, err);
    adv_code code = ADV_E_CONFLICT;
    for (int i = 0; i < CHANGE_TRIES && code == ADV_E_CONFLICT; i++) {
        adv_err_init(err);
        code = adv_db_run(db, sql, ADV_VALUES(id, principal), &rows, err);
    }
    if (code) return code;
    const char *said = rows.count > 0 ? adv_rows_text(&rows, 0, 0) : NULL;
    if (!said)
        code = adv_db_not_found(&calibration, id, err);
    else if (strcmp(said, "done") != 0)
        code = adv_err_add(err, ADV_E_CONFLICT, "", NULL, "%s", said);
    adv_rows_free(&rows);
    return code;
}

/* The row of the history that is in force for the project of row `c`. */
#define NOW "(SELECT h.id FROM calibration_history h WHERE h.project = c.project ORDER BY h.id DESC LIMIT 1)"

adv_code adv_calibration_activate(struct adv_db *db, const char *id, const char *principal, adv_err *err)
{
    static const char sql[] =
        "WITH c AS (SELECT c.*, " REFUSAL " AS refusal FROM calibrations c WHERE c.id = $1::uuid), put AS "
        "(INSERT INTO calibration_history (project, calibration_id, before_id, follows_id, changed_by) SELECT "
        "c.project, c.id, " NOW ", coalesce(" NOW
        ", 0), $2 FROM c WHERE c.refusal IS NULL AND c.id IS DISTINCT FROM " ACTIVE
        ") SELECT coalesce(c.refusal, 'done') FROM c";
    return change(db, sql, id, principal, err);
}

adv_code adv_calibration_revert(struct adv_db *db, const char *id, const char *principal, adv_err *err)
{
    /* The row that is put back names the calibration before it, so that it can be reverted in turn. */
    static const char sql[] =
        "WITH c AS (SELECT * FROM calibrations WHERE id = $1::uuid), now AS (SELECT c.project, "
        "h.id, h.calibration_id = c.id AS active, h.before_id FROM c LEFT JOIN calibration_history h ON h.id = " NOW
        "), put AS (INSERT INTO calibration_history (project, calibration_id, before_id, follows_id, changed_by) "
        "SELECT now.project, b.calibration_id, b.before_id, now.id, $2 FROM now LEFT JOIN calibration_history b ON b.id = "
        "now.before_id WHERE now.active) SELECT CASE WHEN now.active THEN 'done' ELSE 'it is not in force' "
        "END FROM now";
    return change(db, sql, id, principal, err);
}

adv_code adv_calibrations_active(struct adv_db *db, struct adv_active_calibration **active, int *count,
                                 adv_err *err)
{
    static const char sql[] =
        "SELECT c.project, c.id, c.engine_version, c.catalog_hash, f.key, coalesce((f.value ->> 'step_time_correction_frac')::float8, 0), "
        "coalesce((f.value ->> 'hbm_correction_frac')::float8, 0) FROM calibrations c, json_each(c.factors) "
        "f "
        "WHERE c.id = " ACTIVE " ORDER BY c.project, f.key";
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, ADV_NO_VALUES, &rows, err);
    if (code) return code;
    *active = calloc((size_t)rows.count + 1, sizeof **active);
    *count = 0;
    for (int i = 0; i < rows.count && *active; i++) {
        const char *project = adv_rows_text(&rows, i, 0);
        struct adv_active_calibration *row = *count > 0 ? &(*active)[*count - 1] : NULL;
        if (!row || strcmp(row->project, project) != 0) {
            row = &(*active)[(*count)++];
            (void)snprintf(row->project, sizeof row->project, "%s", project);
            (void)snprintf(row->id, sizeof row->id, "%s", adv_rows_text(&rows, i, 1));
            (void)snprintf(row->engine_version, sizeof row->engine_version, "%s", adv_rows_text(&rows, i, 2));
            (void)snprintf(row->catalog_hash, sizeof row->catalog_hash, "%s", adv_rows_text(&rows, i, 3));
        }
        if (row->corrections_count == ADV_LIMIT_CALIBRATED_CHIPS) continue;
        struct adv_correction *correction = &row->corrections[row->corrections_count++];
        (void)snprintf(correction->chip, sizeof correction->chip, "%s", adv_rows_text(&rows, i, 4));
        correction->step_time_frac = adv_rows_number(&rows, i, 5);
        correction->hbm_frac = adv_rows_number(&rows, i, 6);
    }
    adv_rows_free(&rows);
    return *active ? ADV_OK : adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the calibrations");
}
