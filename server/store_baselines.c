#include "server/store_baselines.h"

#include <stdio.h>
#include <string.h>

#include "server/store_runs.h"

#define AS_TAG " AT TIME ZONE 'UTC', 'YYYYMMDDHH24MISSUS')" /* behind "to_char(column" */

static adv_code no_baseline(const struct adv_baseline_name *name, adv_err *err)
{
    return adv_err_add(err, ADV_E_NOT_FOUND, "", "PUT /v1/baselines/{project}/{label} with a run_id",
                       "project '%.64s' has no baseline '%.64s'", name->project, name->label);
}

/* Of the columns run_id, updated_at and tag; `created`, when not NULL, is the fourth. */
static adv_code read_baseline(struct adv_db *db, const char *sql, struct adv_values values,
                              struct adv_baseline *baseline, bool *found, bool *created, adv_err *err)
{
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, values, &rows, err);
    if (code) return code;
    *found = rows.count > 0;
    if (*found) {
        (void)snprintf(baseline->run_id, sizeof baseline->run_id, "%s", adv_rows_text(&rows, 0, 0));
        (void)snprintf(baseline->updated_at, sizeof baseline->updated_at, "%s", adv_rows_text(&rows, 0, 1));
        (void)snprintf(baseline->tag, sizeof baseline->tag, "%s", adv_rows_text(&rows, 0, 2));
        if (created) *created = adv_rows_true(&rows, 0, 3);
    }
    adv_rows_free(&rows);
    return ADV_OK;
}

adv_code adv_store_baseline_get(struct adv_db *db, const struct adv_baseline_name *name,
                                struct adv_baseline *baseline, adv_err *err)
{
    static const char sql[] =
        "SELECT run_id, to_char(updated_at" ADV_AS_TIME ", to_char(updated_at" AS_TAG " FROM baselines "
        "WHERE project = $1 AND label = $2";
    bool found = false;
    adv_code code =
        read_baseline(db, sql, ADV_VALUES(name->project, name->label), baseline, &found, NULL, err);
    baseline->pinned = true;
    return code || found ? code : no_baseline(name, err);
}

adv_code adv_store_baseline_find(struct adv_db *db, const struct adv_baseline_name *name,
                                 const struct adv_baseline_candidate *candidate,
                                 struct adv_baseline *baseline, adv_err *err)
{
    /* The last is so by the clock of the database; ids go by those of the daemons. */
    static const char sql[] =
        "SELECT r.id, to_char(r.created_at" ADV_AS_TIME ", '' FROM runs r WHERE r.project = $1 AND r.label "
        "= $2 AND r.deleted_at IS NULL AND r.fits AND r.kind IN ('estimate', 'advise') AND r.id IS DISTINCT "
        "FROM $3::uuid AND NOT EXISTS (SELECT FROM idempotency_keys k WHERE k.principal = $4 AND k.key = $5 "
        "AND k.run_id = r.id AND k.created_at > now() - " ADV_KEY_LIFETIME ") AND (r.git_ref !~ "
        "'^[0-9a-f]{7,64}$' OR r.git_ref <> coalesce((SELECT git_ref FROM runs WHERE id = $3::uuid), $6)) AND EXISTS (SELECT FROM "
        "checks c WHERE c.candidate_id = r.id AND c.passed) AND NOT EXISTS (SELECT FROM checks c WHERE "
        "c.candidate_id = r.id AND NOT c.passed) ORDER BY r.created_at DESC, r.id DESC LIMIT 1";
    const char *own_id = adv_uuid_valid(candidate->run_id) ? candidate->run_id : NULL;
    adv_err unset = adv_err_empty();
    adv_code code = adv_store_baseline_get(db, name, baseline, &unset);
    if (code != ADV_E_NOT_FOUND) {
        adv_err_merge(err, &unset, "");
        return code;
    }
    bool found = false;
    code = read_baseline(db, sql,
                         ADV_VALUES(name->project, name->label, own_id, candidate->principal, candidate->key,
                                    candidate->git_ref),
                         baseline, &found, NULL, err);
    baseline->pinned = false;
    return code || found ? code : no_baseline(name, err);
}

/* Whether a run can be a baseline of the project; what it is never changes. */
static adv_code check_run(struct adv_db *db, const char *project, const char *run_id, adv_err *err)
{
    struct adv_rows rows;
    if (!adv_uuid_valid(run_id))
        return adv_err_add(err, ADV_E_INVALID, "/run_id", "a run id is a UUID", "there is no run '%.64s'",
                           run_id);
    adv_code code = adv_db_run(
        db, "SELECT step_time_s IS NULL, fits, project FROM runs WHERE id = $1::uuid AND deleted_at IS NULL",
        ADV_VALUES(run_id), &rows, err);
    if (code) return code;
    const char *own = rows.count ? adv_rows_text(&rows, 0, 2) : "";
    if (!rows.count)
        code = adv_err_add(err, ADV_E_NOT_FOUND, "/run_id", NULL, "there is no run '%.64s'", run_id);
    else if (adv_rows_true(&rows, 0, 0))
        code = adv_err_add(err, ADV_E_INVALID, "/run_id", "use a run of an estimate or advise",
                           "the run has no step time to compare with");
    else if (!adv_rows_true(&rows, 0, 1))
        code = adv_err_add(err, ADV_E_INVALID, "/run_id", "use a run that fits",
                           "the run does not fit in memory: it is nothing to compare with");
    else if (*own && strcmp(own, project) != 0)
        code = adv_err_add(err, ADV_E_INVALID, "/run_id", "use a run of this project",
                           "the run is of project '%.64s'", own);
    adv_rows_free(&rows);
    return code;
}

#define NOTED                                                                                                \
    " RETURNING project, label, run_id, updated_at, xmax = 0 AS created), noted AS (INSERT INTO "            \
    "baseline_history (project, label, run_id, changed_by) SELECT project, label, run_id, $4 FROM put "      \
    "WHERE updated_at >= statement_timestamp()) "                                                            \
    "SELECT run_id, to_char(updated_at" ADV_AS_TIME ", to_char(updated_at" AS_TAG ", created FROM put"
#define INSERTED                                                                                             \
    "WITH put AS (INSERT INTO baselines (project, label, run_id, updated_at) SELECT $1, $2, id, "            \
    "clock_timestamp() FROM runs WHERE id = $3::uuid AND deleted_at IS NULL ON CONFLICT (project, label) "   \
    "DO "

adv_code adv_store_baseline_put(struct adv_db *db, const struct adv_baseline_name *name, const char *run_id,
                                const struct adv_baseline_condition *condition, struct adv_baseline *baseline,
                                bool *created, adv_err *err)
{
    /* Of these rows, those that were inserted and not updated have an xmax of 0. To name the run that is the
     * baseline already, as who had no answer does again, changes neither its tag nor its history. */
    static const char always[] =
        INSERTED "UPDATE SET run_id = excluded.run_id, updated_at = CASE WHEN baselines.run_id = "
                 "excluded.run_id THEN baselines.updated_at ELSE clock_timestamp() END" NOTED;
    static const char when_new[] = INSERTED "NOTHING" NOTED;
    static const char when_same[] =
        "WITH put AS (UPDATE baselines b SET run_id = $3::uuid, updated_at = clock_timestamp() WHERE "
        "project = $1 AND label = $2 AND ($5::text IS NULL OR to_char(b.updated_at" AS_TAG " = ANY "
        "(string_to_array($5, ',')))" NOTED;
    adv_code code = check_run(db, name->project, run_id, err);
    if (code) return code;
    const char *sql = condition->must_exist ? when_same : condition->must_be_new ? when_new : always;
    struct adv_values values =
        ADV_VALUES(name->project, name->label, run_id, condition->maker, condition->tags);
    values.count -= !condition->must_exist;
    bool done = false;
    code = read_baseline(db, sql, values, baseline, &done, created, err);
    baseline->pinned = true;
    *created = *created && !condition->must_exist;
    if (code || done) return code;
    if (condition->must_exist || condition->must_be_new) return adv_store_refuse_match("baseline", err);
    return adv_err_add(err, ADV_E_NOT_FOUND, "/run_id", NULL, "there is no run '%.64s'", run_id);
}

adv_code adv_store_baseline_delete(struct adv_db *db, const struct adv_baseline_name *name,
                                   const struct adv_baseline_condition *condition, adv_err *err)
{
    static const char sql[] =
        "WITH gone AS (DELETE FROM baselines b WHERE project = $1 AND label = $2 AND ($4::text IS NULL OR "
        "to_char(b.updated_at" AS_TAG " = ANY (string_to_array($4, ','))) RETURNING project, label), noted "
        "AS (INSERT INTO baseline_history (project, label, changed_by) SELECT project, label, $3 FROM gone) "
        "SELECT FROM gone";
    int gone = 0;
    adv_code code = adv_db_change(
        db, sql, ADV_VALUES(name->project, name->label, condition->maker, condition->tags), &gone, err);
    if (code || gone > 0) return code;
    return condition->must_exist ? adv_store_refuse_match("baseline", err) : no_baseline(name, err);
}

adv_code adv_store_baseline_history(struct adv_db *db, const struct adv_baseline_name *name,
                                    struct adv_text *json, adv_err *err)
{
    static const char sql[] =
        "SELECT coalesce(json_agg(json_build_object('run_id', run_id, 'changed_at', "
        "to_char(changed_at" ADV_AS_TIME ", 'changed_by', nullif(changed_by, '')) ORDER BY id DESC), "
        "'[]'::json) FROM (SELECT * FROM baseline_history WHERE project = $1 AND label = $2 ORDER BY id "
        "DESC LIMIT 100) h";
    return adv_db_print(db, sql, ADV_VALUES(name->project, name->label), json, err);
}

adv_code adv_store_baselines_list(struct adv_db *db, const char *project, const char *cursor, int limit_count,
                                  struct adv_text *json, adv_err *err)
{
    /* The cursor is the name that the page before ended with: ["project","label"] in hexadecimal. */
    static const char sql[] =
        "WITH after AS (SELECT convert_from(decode($2, 'hex'), 'UTF8')::json AS name), shown AS (SELECT b.*, "
        "row_number() OVER (ORDER BY b.project, b.label) AS place FROM baselines b, after WHERE ($1::text "
        "IS NULL OR b.project = $1) AND (after.name IS NULL OR (b.project, b.label) > "
        "(after.name ->> 0, after.name ->> 1)) ORDER BY b.project, "
        "b.label LIMIT $3::int + 1) SELECT json_build_object('baselines', coalesce((SELECT "
        "json_agg(json_build_object('project', project, 'label', label, 'run_id', run_id, 'updated_at', "
        "to_char(updated_at" ADV_AS_TIME ") ORDER BY place) FROM shown WHERE place <= $3::int), "
        "'[]'::json), 'next_cursor', (SELECT encode(convert_to(json_build_array(project, label)::text, 'UTF8'), "
        "'hex') FROM shown WHERE place = $3::int AND (SELECT count(*) FROM shown) > $3::int))";
    return adv_db_print(db, sql, ADV_VALUES(project, cursor, ADV_INTEGER(limit_count)), json, err);
}

adv_code adv_store_verdict(struct adv_db *db, const char *candidate_id, const char *baseline_id, bool passed,
                           adv_err *err)
{
    return adv_db_run(
        db,
        "INSERT INTO checks (id, candidate_id, baseline_id, passed) VALUES (uuid_v7(), $1::uuid, $2::uuid, "
        "$3::boolean)",
        ADV_VALUES(candidate_id, baseline_id, passed ? "true" : "false"), NULL, err);
}
