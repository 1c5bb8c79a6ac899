#include "server/store_baselines.h"

#include <stdio.h>
#include <string.h>

#define STAMP(column) "to_char(" column " AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')"

adv_code adv_store_baseline_get(struct adv_db *db, const char *project, const char *label, bool or_newest,
                                struct adv_baseline *baseline, adv_err *err)
{
    static const char pinned[] =
        "SELECT run_id, " STAMP("updated_at") " FROM baselines WHERE project = $1 AND label = $2";
    static const char newest[] = "SELECT id, " STAMP(
        "created_at") " FROM runs WHERE project = $1 AND label = $2 AND kind = 'estimate' "
                      "ORDER BY id DESC LIMIT 1";
    const char *const values[] = {project, label};
    for (int attempt = 0; attempt < (or_newest ? 2 : 1); attempt++) {
        struct adv_rows rows;
        adv_code code = adv_db_run(db, attempt ? newest : pinned, 2, values, &rows, err);
        if (code) return code;
        bool found = rows.count > 0;
        if (found) {
            (void)snprintf(baseline->run_id, sizeof baseline->run_id, "%s", adv_rows_text(&rows, 0, 0));
            (void)snprintf(baseline->updated_at, sizeof baseline->updated_at, "%s",
                           adv_rows_text(&rows, 0, 1));
            baseline->pinned = attempt == 0;
        }
        adv_rows_free(&rows);
        if (found) return ADV_OK;
    }
    return adv_err_add(err, ADV_E_NOT_FOUND, "", "PUT /v1/baselines/{project}/{label} with a run_id",
                       "project '%.64s' has no baseline '%.64s'", project, label);
}

adv_code adv_store_baseline_put(struct adv_db *db, const char *project, const char *label, const char *run_id,
                                bool *created, adv_err *err)
{
    if (!adv_uuid_valid(run_id))
        return adv_err_add(err, ADV_E_INVALID, "/run_id", "a run id is a UUID", "there is no run '%.64s'",
                           run_id);
    /* xmax is 0 in a row that was inserted, not updated. */
    static const char sql[] =
        "INSERT INTO baselines (project, label, run_id) SELECT $1, $2, id FROM runs WHERE id = $3::uuid "
        "ON CONFLICT (project, label) DO UPDATE SET run_id = excluded.run_id, updated_at = now() "
        "RETURNING xmax = 0";
    const char *const values[] = {project, label, run_id};
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, 3, values, &rows, err);
    if (code) return code;
    bool found = rows.count > 0;
    if (found) *created = strcmp(adv_rows_text(&rows, 0, 0), "t") == 0;
    adv_rows_free(&rows);
    return found ? ADV_OK
                 : adv_err_add(err, ADV_E_NOT_FOUND, "/run_id", NULL, "there is no run '%.64s'", run_id);
}
