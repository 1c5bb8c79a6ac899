#include "server/store_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cost/estimate.h"
#include "server/json_text.h"

adv_code adv_store_key_find(struct adv_db *db, const struct adv_idempotency *idempotency,
                            enum adv_store_outcome *outcome, char **response, adv_err *err)
{
    static const char sql[] =
        "SELECT k.body_sha256, r.response FROM idempotency_keys k JOIN runs r ON r.id = k.run_id WHERE "
        "k.principal = $1 AND k.key = $2 AND k.created_at > now() - " ADV_KEY_LIFETIME
        " UNION ALL SELECT body_sha256, NULL FROM verifications WHERE created_by = $1 AND idempotency_key = "
        "$2 AND created_at > now() - " ADV_KEY_LIFETIME;
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, ADV_VALUES(idempotency->principal, idempotency->key), &rows, err);
    if (code) return code;
    *outcome = ADV_STORE_UNKNOWN_KEY;
    if (rows.count) {
        bool same = strcmp(adv_rows_text(&rows, 0, 0), idempotency->body_digest) == 0;
        *outcome = same ? ADV_STORE_REPLAYED : ADV_STORE_OTHER_BODY;
        if (same) *response = strdup(adv_rows_text(&rows, 0, 1));
        if (same && !*response)
            code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the stored answer");
    }
    adv_rows_free(&rows);
    return code;
}

adv_code adv_store_refuse_key(adv_err *err)
{
    return adv_err_add(err, ADV_E_INVALID, "/headers/Idempotency-Key", "use a new key for a new request",
                       "the key was used with another request");
}

adv_code adv_store_refuse_pending_key(adv_err *err)
{
    return adv_err_add(err, ADV_E_CONFLICT, "/headers/Idempotency-Key", "send it again",
                       "a request with this key is being answered");
}

adv_code adv_store_key_run(struct adv_db *db, const struct adv_idempotency *idempotency,
                           char run_id[ADV_UUID_BYTES], adv_err *err)
{
    /* A sweep's key and a verification's have other bodies than any run's. */
    static const char sql[] =
        "SELECT body_sha256, run_id FROM idempotency_keys WHERE principal = $1 AND key = $2 UNION ALL SELECT "
        "body_sha256, NULL FROM sweeps WHERE created_by = $1 AND idempotency_key = $2 UNION ALL SELECT "
        "body_sha256, NULL FROM verifications WHERE created_by = $1 AND idempotency_key = $2";
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, ADV_VALUES(idempotency->principal, idempotency->key), &rows, err);
    if (code) return code;
    if (rows.count == 0)
        code = adv_store_refuse_pending_key(err);
    else if (strcmp(adv_rows_text(&rows, 0, 0), idempotency->body_digest) != 0)
        code = adv_store_refuse_key(err);
    else
        (void)snprintf(run_id, ADV_UUID_BYTES, "%s", adv_rows_text(&rows, 0, 1));
    adv_rows_free(&rows);
    return code;
}

#define RUN_COLUMNS                                                                                          \
    "id, kind, project, label, git_ref, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, "    \
    "engine_version, catalog_hash, request, response, reevaluates, question_sha256, fit_verdict, tags"
#define RUN_VALUES                                                                                           \
    "$1::uuid, $2, $3, $4, $5, $6, $7, $8, $9::float8, $10::float8, $11::boolean, $12, $13, $14::json, "     \
    "$15::json, $16::uuid, $17, $18, ARRAY(SELECT json_array_elements_text($14::json->'tags'))"

adv_code adv_store_run_save(struct adv_db *db, const struct adv_run *run,
                            const struct adv_idempotency *idempotency, enum adv_store_outcome *outcome,
                            adv_err *err)
{
    static const char plain[] =
        "INSERT INTO runs (" RUN_COLUMNS ") SELECT " RUN_VALUES " ON CONFLICT (id) DO NOTHING";
    /* The run is only written when the key was free or out of date. */
    static const char keyed[] =
        "WITH taken AS (INSERT INTO idempotency_keys AS k (principal, key, body_sha256, run_id) VALUES ($19, "
        "$20, $21, $1::uuid) ON CONFLICT (principal, key) DO UPDATE SET body_sha256 = excluded.body_sha256, "
        "run_id = excluded.run_id, "
        "created_at = now() WHERE k.created_at <= now() - " ADV_KEY_LIFETIME " RETURNING 1) "
        "INSERT INTO runs (" RUN_COLUMNS ") SELECT " RUN_VALUES " FROM taken";
    const struct adv_answer *answer = run->answer;
    const char *fits = isfinite(answer->step_time_s) ? (answer->fits ? "true" : "false") : NULL;
    struct adv_values values = ADV_VALUES(
        run->id, run->kind, answer->project, answer->label, answer->git_ref, answer->model, answer->chip,
        answer->topology, ADV_NUMBER(answer->step_time_s), ADV_NUMBER(answer->hbm_bytes_per_device), fits,
        run->engine_version, run->catalog_hash, run->request, run->response, run->reevaluates, run->question,
        answer->fit_verdict, idempotency ? idempotency->principal : NULL,
        idempotency ? idempotency->key : NULL, idempotency ? idempotency->body_digest : NULL);
    values.count -= idempotency ? 0 : 3;
    int saved = 0;
    adv_code code = adv_db_change(db, idempotency ? keyed : plain, values, &saved, err);
    if (!code) *outcome = saved ? ADV_STORE_SAVED : ADV_STORE_UNKNOWN_KEY;
    return code;
}

/* The answer within a stored one: what follows the last `,"run_id":` was added when it was stored. */
static char *answer_within(const char *response, size_t *bytes)
{
    static const char added[] = ",\"run_id\":\"";
    const char *end = NULL;
    for (const char *at = response; (at = strstr(at, added)); at++) end = at;
    char *json = end ? malloc((size_t)(end - response) + 2) : NULL;
    if (!json) return NULL;
    *bytes = (size_t)(end - response) + 1;
    memcpy(json, response, *bytes - 1);
    memcpy(json + *bytes - 1, "}", 2);
    return json;
}

static void copy_name(char into[ADV_LIMIT_NAME], const struct adv_rows *rows, int column)
{
    (void)snprintf(into, ADV_LIMIT_NAME, "%s", adv_rows_text(rows, 0, column));
}

adv_code adv_store_run_find_answer(struct adv_db *db, const char *question, bool *found,
                                   struct adv_answer *answer, adv_err *err)
{
    static const char sql[] =
        "SELECT response, project, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, "
        "fit_verdict FROM runs WHERE question_sha256 = $1 AND deleted_at IS NULL ORDER BY id DESC LIMIT 1";
    struct adv_rows rows;
    *found = false;
    memset(answer, 0, sizeof *answer);
    adv_code code = adv_db_run(db, sql, ADV_VALUES(question), &rows, err);
    if (code) return code;
    if (rows.count) {
        answer->json = answer_within(adv_rows_text(&rows, 0, 0), &answer->json_bytes);
        copy_name(answer->project, &rows, 1);
        copy_name(answer->model, &rows, 2);
        copy_name(answer->chip, &rows, 3);
        copy_name(answer->topology, &rows, 4);
        answer->step_time_s = adv_rows_number(&rows, 0, 5);
        answer->hbm_bytes_per_device = adv_rows_number(&rows, 0, 6);
        answer->fits = adv_rows_true(&rows, 0, 7);
        answer->fit_verdict = adv_fit_known(adv_rows_text(&rows, 0, 8));
        *found = answer->json != NULL;
    }
    adv_rows_free(&rows);
    return ADV_OK;
}

/* Why there is no such run: it was deleted, and how it comes back. */
static adv_code no_run(struct adv_db *db, const char *id, adv_err *err)
{
    int deleted = 0;
    adv_code code = adv_db_change(db, "SELECT FROM runs WHERE id = $1::uuid", ADV_VALUES(id), &deleted, err);
    if (code) return code;
    if (deleted)
        return adv_err_add(err, ADV_E_NOT_FOUND, "", "POST /v1/runs/{id}/restore brings it back",
                           "the run '%.64s' was deleted", id);
    return adv_err_add(err, ADV_E_NOT_FOUND, "", NULL, "there is no run '%.64s'", id);
}

adv_code adv_store_run_get(struct adv_db *db, const char *id, struct adv_stored_run *run, adv_err *err)
{
    if (!adv_uuid_valid(id)) return adv_db_not_found(&adv_db_run_kind, id, err);
    memset(run, 0, sizeof *run);
    adv_code code = adv_db_run(db,
                               "SELECT " ADV_RUN_ROW_COLUMNS
                               ", request, response FROM runs WHERE id = $1::uuid AND deleted_at IS NULL",
                               ADV_VALUES(id), &run->rows, err);
    if (code) return code;
    if (run->rows.count == 0) {
        adv_rows_free(&run->rows);
        return no_run(db, id, err);
    }
    run->id = adv_rows_text(&run->rows, 0, ADV_RUN_ID);
    run->kind = adv_rows_text(&run->rows, 0, ADV_RUN_KIND);
    const char *project = adv_rows_text(&run->rows, 0, ADV_RUN_PROJECT);
    run->project = project ? project : "";
    const char *git_ref = adv_rows_text(&run->rows, 0, ADV_RUN_GIT_REF);
    run->git_ref = git_ref ? git_ref : "";
    run->created_at = adv_rows_text(&run->rows, 0, ADV_RUN_CREATED_AT);
    run->tags = adv_rows_text(&run->rows, 0, ADV_RUN_TAGS);
    run->request = adv_rows_text(&run->rows, 0, ADV_RUN_REQUEST);
    run->response = adv_rows_text(&run->rows, 0, ADV_RUN_RESPONSE);
    return ADV_OK;
}

void adv_store_run_free(struct adv_stored_run *run)
{
    adv_rows_free(&run->rows);
}

adv_code adv_store_run_added(struct adv_db *db, const char *id, adv_code code, adv_err *err)
{
    struct adv_stored_run run;
    adv_err gone = adv_err_empty();
    if (code != ADV_E_CONFLICT) return code;
    if (adv_store_run_get(db, id, &run, &gone) == ADV_OK) {
        adv_store_run_free(&run);
        return code;
    }
    *err = gone;
    return err->code;
}

void adv_store_run_print(const struct adv_stored_run *run, struct adv_text *json)
{
    adv_run_row_print(&run->rows, 0, json);
    adv_json_text_raw(json, "request", run->request);
    adv_json_text_raw(json, "response", run->response);
}

/* One change of the run $1; whether it was there. */
static adv_code change(struct adv_db *db, const char *sql, struct adv_values values, int *found, adv_err *err)
{
    *found = 0;
    if (!adv_uuid_valid(values.list[0])) return adv_db_not_found(&adv_db_run_kind, values.list[0], err);
    return adv_db_change(db, sql, values, found, err);
}

adv_code adv_store_run_delete(struct adv_db *db, const char *id, const char *before, adv_err *err)
{
    static const char sql[] =
        "UPDATE runs SET deleted_at = clock_timestamp() WHERE id = $1::uuid AND deleted_at IS NULL AND "
        "($2::text IS NULL OR to_json(tags)::text = $2)";
    int found = 0;
    adv_err database = adv_err_empty();
    adv_code code = change(db, sql, ADV_VALUES(id, before), &found, &database);
    if (code == ADV_E_CONFLICT)
        return adv_err_add(err, code, "", "move the baseline to another run first", "the run is a baseline");
    if (code) {
        adv_err_merge(err, &database, "");
        return code;
    }
    if (found) return ADV_OK;
    return before ? adv_store_refuse_match("run", err) : no_run(db, id, err);
}

adv_code adv_store_run_restore(struct adv_db *db, const char *id, adv_err *err)
{
    int found = 0;
    adv_code code =
        change(db, "UPDATE runs SET deleted_at = NULL WHERE id = $1::uuid AND deleted_at IS NOT NULL",
               ADV_VALUES(id), &found, err);
    if (code || found) return code;
    struct adv_stored_run run; /* that it is there already is as good; purged or never there is not */
    code = adv_store_run_get(db, id, &run, err);
    if (!code) adv_store_run_free(&run);
    return code;
}

adv_code adv_store_refuse_match(const char *kind, adv_err *err)
{
    return adv_err_add(err, ADV_E_PRECONDITION, "/headers/If-Match", "GET it again, then decide again",
                       "the %s is not what the request takes it for", kind);
}

adv_code adv_store_run_tag(struct adv_db *db, const char *id, const char *before, const char *tags,
                           adv_err *err)
{
    static const char sql[] =
        "UPDATE runs SET tags = ARRAY(SELECT json_array_elements_text($2::json)) WHERE id "
        "= $1::uuid AND deleted_at IS NULL AND ($3::text IS NULL OR to_json(tags)::text = $3)";
    int found = 0;
    adv_code code = change(db, sql, ADV_VALUES(id, tags, before), &found, err);
    if (code || found) return code;
    return before ? adv_store_refuse_match("run", err) : no_run(db, id, err);
}
