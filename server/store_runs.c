#include "server/store_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/json_text.h"

#define KEY_LIFETIME "interval '24 hours'"

adv_code adv_store_key_find(struct adv_db *db, const struct adv_idempotency *idempotency,
                            enum adv_store_outcome *outcome, char **response, adv_err *err)
{
    static const char sql[] =
        "SELECT k.body_sha256, r.response FROM idempotency_keys k JOIN runs r ON r.id = k.run_id "
        "WHERE k.principal = $1 AND k.key = $2 AND k.created_at > now() - " KEY_LIFETIME;
    const char *const values[] = {idempotency->principal, idempotency->key};
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, 2, values, &rows, err);
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

/* A number as SQL text in `buffer`, NULL when it is not one. */
static const char *number_text(double value, char buffer[32])
{
    if (!isfinite(value)) return NULL;
    (void)snprintf(buffer, 32, "%.17g", value);
    return buffer;
}

#define RUN_COLUMNS                                                                                          \
    "id, kind, project, label, git_ref, model, chip, topology, step_time_s, hbm_bytes_per_device, fits, "    \
    "engine_version, catalog_hash, request, response"
#define RUN_VALUES                                                                                           \
    "$1::uuid, $2, $3, $4, $5, $6, $7, $8, $9::float8, $10::float8, $11::boolean, $12, $13, $14::json, "     \
    "$15::json"

adv_code adv_store_run_save(struct adv_db *db, const struct adv_run *run,
                            const struct adv_idempotency *idempotency, enum adv_store_outcome *outcome,
                            adv_err *err)
{
    static const char plain[] =
        "INSERT INTO runs (" RUN_COLUMNS ") SELECT " RUN_VALUES " ON CONFLICT (id) DO NOTHING";
    /* The run is only written when the key was free or out of date. */
    static const char keyed[] =
        "WITH taken AS (INSERT INTO idempotency_keys AS k (principal, key, body_sha256, run_id) VALUES ($16, "
        "$17, $18, $1::uuid) "
        "ON CONFLICT (principal, key) DO UPDATE SET body_sha256 = excluded.body_sha256, run_id = "
        "excluded.run_id, "
        "created_at = now() WHERE k.created_at <= now() - " KEY_LIFETIME " RETURNING 1) "
        "INSERT INTO runs (" RUN_COLUMNS ") SELECT " RUN_VALUES " FROM taken";
    const struct adv_answer *answer = run->answer;
    char step_time[32];
    char hbm[32];
    const char *const values[] = {run->id,
                                  run->kind,
                                  answer->project,
                                  answer->label,
                                  answer->git_ref,
                                  answer->model,
                                  answer->chip,
                                  answer->topology,
                                  number_text(answer->step_time_s, step_time),
                                  number_text(answer->hbm_bytes_per_device, hbm),
                                  isfinite(answer->step_time_s) ? (answer->fits ? "true" : "false") : NULL,
                                  run->engine_version,
                                  run->catalog_hash,
                                  run->request,
                                  run->response,
                                  idempotency ? idempotency->principal : NULL,
                                  idempotency ? idempotency->key : NULL,
                                  idempotency ? idempotency->body_digest : NULL};
    struct adv_rows rows;
    adv_code code = adv_db_run(db, idempotency ? keyed : plain, idempotency ? 18 : 15, values, &rows, err);
    if (code) return code;
    *outcome = rows.affected_count ? ADV_STORE_SAVED : ADV_STORE_UNKNOWN_KEY;
    adv_rows_free(&rows);
    return ADV_OK;
}

#define CREATED_AT "to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"
#define SUMMARY_COLUMNS                                                                                      \
    "id, " CREATED_AT                                                                                        \
    ", kind, project, label, git_ref, model, chip, topology, engine_version, catalog_hash, "                 \
    "step_time_s, hbm_bytes_per_device, fits"
enum {
    COLUMN_ID,
    COLUMN_KIND = 2,
    COLUMN_STEP_TIME = 11,
    COLUMN_HBM,
    COLUMN_FITS,
    COLUMN_REQUEST,
    COLUMN_RESPONSE
};

/* A number as answers show it: 12 digits. The column keeps all of them. */
static void print_number(struct adv_text *json, const char *name, const char *value)
{
    char number[32];
    (void)snprintf(number, sizeof number, "%.12g", value ? strtod(value, NULL) : 0.0);
    adv_json_text_raw(json, name, value ? number : NULL);
}

/* The members of a run without request and response, without the closing brace. */
static void print_summary(const struct adv_rows *rows, int row, struct adv_text *json)
{
    static const char *const names[] = {"run_id",   "created_at",     "kind",        "project",
                                        "label",    "git_ref",        "model",       "chip",
                                        "topology", "engine_version", "catalog_hash"};
    adv_text_append(json, "{");
    for (int i = 0; i < COLUMN_STEP_TIME; i++) {
        const char *value = adv_rows_text(rows, row, i);
        adv_json_text_string(json, names[i], value && *value ? value : NULL);
    }
    print_number(json, "step_time_s", adv_rows_text(rows, row, COLUMN_STEP_TIME));
    print_number(json, "hbm_bytes_per_device", adv_rows_text(rows, row, COLUMN_HBM));
    const char *fits = adv_rows_text(rows, row, COLUMN_FITS);
    adv_json_text_raw(json, "fits", !fits ? NULL : *fits == 't' ? "true" : "false");
}

adv_code adv_store_runs_list(struct adv_db *db, const struct adv_run_filter *filter, struct adv_text *json,
                             adv_err *err)
{
    /* Ids sort by time, so the id is the key of the page; one row more than asked tells whether there is
     * another page. */
    static const char sql[] =
        "SELECT " SUMMARY_COLUMNS
        " FROM runs WHERE ($1::text IS NULL OR project = $1) AND ($2::text IS NULL OR label = $2) "
        "AND ($3::text IS NULL OR model = $3) AND ($4::text IS NULL OR chip = $4) AND ($5::text IS NULL OR "
        "kind = $5) "
        "AND ($6::timestamptz IS NULL OR created_at >= $6::timestamptz) AND ($7::uuid IS NULL OR id < "
        "$7::uuid) "
        "ORDER BY id DESC LIMIT $8::int";
    char limit[16];
    (void)snprintf(limit, sizeof limit, "%d", filter->limit_count + 1);
    const char *const values[] = {filter->project, filter->label, filter->model, filter->chip,
                                  filter->kind,    filter->since, filter->after, limit};
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, 8, values, &rows, err);
    if (code) return code;
    int shown = rows.count > filter->limit_count ? filter->limit_count : rows.count;
    adv_text_append(json, "{\"runs\":[");
    for (int i = 0; i < shown; i++) {
        if (i) adv_text_append(json, ",");
        print_summary(&rows, i, json);
        adv_text_append(json, "}");
    }
    adv_text_append(json, "]");
    adv_json_text_string(json, "next_cursor",
                         rows.count > shown ? adv_rows_text(&rows, shown - 1, COLUMN_ID) : NULL);
    adv_text_append(json, "}");
    adv_rows_free(&rows);
    return ADV_OK;
}

static double number_of(const char *text)
{
    return text ? strtod(text, NULL) : (double)NAN;
}

adv_code adv_store_run_get(struct adv_db *db, const char *id, struct adv_stored_run *run, adv_err *err)
{
    if (!adv_uuid_valid(id))
        return adv_err_add(err, ADV_E_NOT_FOUND, "", "a run id is a UUID", "there is no run '%.64s'", id);
    memset(run, 0, sizeof *run);
    adv_code code =
        adv_db_run(db, "SELECT " SUMMARY_COLUMNS ", request, response FROM runs WHERE id = $1::uuid", 1, &id,
                   &run->rows, err);
    if (code) return code;
    if (run->rows.count == 0) {
        adv_rows_free(&run->rows);
        return adv_err_add(err, ADV_E_NOT_FOUND, "", NULL, "there is no run '%.64s'", id);
    }
    const char *fits = adv_rows_text(&run->rows, 0, COLUMN_FITS);
    run->id = adv_rows_text(&run->rows, 0, COLUMN_ID);
    run->kind = adv_rows_text(&run->rows, 0, COLUMN_KIND);
    run->request = adv_rows_text(&run->rows, 0, COLUMN_REQUEST);
    run->response = adv_rows_text(&run->rows, 0, COLUMN_RESPONSE);
    run->step_time_s = number_of(adv_rows_text(&run->rows, 0, COLUMN_STEP_TIME));
    run->hbm_bytes = number_of(adv_rows_text(&run->rows, 0, COLUMN_HBM));
    run->fits = fits && *fits == 't';
    return ADV_OK;
}

void adv_store_run_free(struct adv_stored_run *run)
{
    adv_rows_free(&run->rows);
}

void adv_store_run_print(const struct adv_stored_run *run, struct adv_text *json)
{
    print_summary(&run->rows, 0, json);
    adv_json_text_raw(json, "request", run->request);
    adv_json_text_raw(json, "response", run->response);
    adv_text_append(json, "}");
}

adv_code adv_store_run_delete(struct adv_db *db, const char *id, adv_err *err)
{
    if (!adv_uuid_valid(id))
        return adv_err_add(err, ADV_E_NOT_FOUND, "", "a run id is a UUID", "there is no run '%.64s'", id);
    struct adv_rows rows;
    adv_err database;
    adv_err_init(&database);
    adv_code code = adv_db_run(db, "DELETE FROM runs WHERE id = $1::uuid", 1, &id, &rows, &database);
    if (code == ADV_E_CONFLICT)
        return adv_err_add(err, code, "", "move the baseline to another run first", "the run is a baseline");
    if (code) {
        adv_err_merge(err, &database, "");
        return code;
    }
    int deleted = rows.affected_count;
    adv_rows_free(&rows);
    return deleted ? ADV_OK : adv_err_add(err, ADV_E_NOT_FOUND, "", NULL, "there is no run '%.64s'", id);
}
