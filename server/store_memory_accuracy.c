/* store_memory_accuracy.c: predicted, compiled and measured memory side by side. */
#include <stdio.h>

#include "server/store_measurements.h"

adv_code adv_store_memory_accuracy(struct adv_db *db, const struct adv_accuracy_filter *filter,
                                   struct adv_text *json, adv_err *err)
{
    /* One row per plan of a run: its newest word, and its newest measurement that has bytes. */
    static const char sql[] =
        "WITH word AS (SELECT DISTINCT ON (v.run_id, p.rank) v.run_id, p.rank, v.id AS verification_id, "
        "p.verdict, p.ended_at, p.predicted_hbm_bytes_per_device AS predicted, "
        "p.compiled_hbm_bytes_per_device AS compiled, r.project, r.label, r.model, r.chip, r.topology FROM "
        "verification_plans p JOIN verifications v ON v.id = p.verification_id JOIN runs r ON r.id = "
        "v.run_id WHERE p.state = 'done' AND r.deleted_at IS NULL AND p.compiled_hbm_bytes_per_device IS NOT "
        "NULL AND ($1::text IS NULL OR r.project = $1) AND ($2::text IS NULL OR r.label = $2) AND ($3::text "
        "IS NULL OR r.model = $3) AND ($4::text IS NULL OR r.chip = $4) AND ($5::timestamptz IS NULL OR "
        "p.ended_at >= $5::timestamptz) ORDER BY v.run_id, p.rank, v.id DESC), picked AS (SELECT w.*, "
        "w.predicted / w.compiled - 1 AS error, (SELECT m.measured_hbm_bytes_per_device FROM measurements m "
        "WHERE m.run_id = w.run_id AND m.rank = w.rank AND m.measured_hbm_bytes_per_device IS NOT NULL ORDER "
        "BY m.id DESC LIMIT 1) AS measured FROM word w), shown AS (SELECT * FROM picked ORDER BY "
        "verification_id DESC, rank LIMIT $6::int) SELECT json_build_object('rows', coalesce((SELECT "
        "json_agg(json_build_object('run_id', run_id, 'rank', rank, 'verification_id', verification_id, "
        "'project', nullif(project, ''), 'label', nullif(label, ''), 'model', model, 'chip', chip, "
        "'topology', topology, 'verdict', verdict, 'predicted_hbm_bytes_per_device', predicted, "
        "'compiled_hbm_bytes_per_device', compiled, 'measured_hbm_bytes_per_device', measured, "
        "'hbm_error_frac', error) ORDER BY verification_id DESC, rank) FROM shown), '[]'::json), "
        "'compiled_count', count(*), 'measured_count', count(measured), 'median_abs_error_frac', "
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(error)), 'p90_abs_error_frac', percentile_disc(0.9) "
        "WITHIN GROUP (ORDER BY abs(error)), 'max_abs_error_frac', max(abs(error)), 'bias_frac', "
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY error)) FROM picked";
    char limit[16];
    (void)snprintf(limit, sizeof limit, "%d", filter->limit_count);
    const char *const values[] = {filter->project, filter->label, filter->model,
                                  filter->chip,    filter->since, limit};
    return adv_db_print(db, sql, 6, values, json, err);
}
