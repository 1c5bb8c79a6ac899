/* store_verification_jobs.c: the queue of plans, from the side of the verifiers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/compiler.h"
#include "server/store_verifications.h"

#define TAKE_TRIES 16 /* of a verifier whose every choice another takes first, before it pauses */
/* A plan whose holder let its lease run out. */
#define LEFT_ALONE    "(p.state = 'running' AND p.lease_until < now())"
#define REFUSED_AFTER "failed after too many attempts: a compile of this plan ended its verifier each time"

/* Ends the plans that are `due`, with the word beside them. Who settles never waits for a plan that another
 * has in hand: he would meet one who has the same plans in another order. He finds it the next time. */
#define END_DUE                                                                                              \
    " FOR UPDATE OF p SKIP LOCKED) UPDATE verification_plans p SET state = 'done', lease_until = NULL, "     \
    "ended_at = now(), stage = '', changes = p.changes + 1, verdict = d.verdict, "                           \
    "compiled_hbm_bytes_per_device = d.bytes, result = d.result FROM due d WHERE p.verification_id = "       \
    "d.verification_id AND p.rank = d.rank"

/* Ends what need not be compiled: plans that others have answered meanwhile, and those that were tried too
 * often. */
static adv_code settle(struct adv_db *db, adv_err *err)
{
    static const char answered[] =
        "WITH due AS (SELECT p.verification_id, p.rank, k.verdict, k.compiled_hbm_bytes_per_device AS bytes, "
        "k.result FROM verification_plans p JOIN proofs k ON k.plan_sha256 = p.plan_sha256 WHERE p.state = "
        "'queued' OR " LEFT_ALONE END_DUE;
    static const char given_up[] =
        "WITH due AS (SELECT p.verification_id, p.rank, 'failed' AS verdict, NULL::float8 AS bytes, $1::json "
        "AS result FROM verification_plans p WHERE " LEFT_ALONE " AND p.attempts >= $2::int" END_DUE;
    char *result = adv_proof_failed(REFUSED_AFTER, false, 0.0);
    adv_code code = adv_db_change(db, answered, ADV_NO_VALUES, NULL, err);
    if (!code)
        code = adv_db_change(db, given_up, ADV_VALUES(result, ADV_INTEGER(ADV_VERIFICATION_ATTEMPTS)), NULL,
                             err);
    free(result);
    return code;
}

/* A plan that waits or whose holder has gone. Not one that was tried too often, not one that has its word,
 * and not the like of one that is running: that one's word will be the answer to both. One that waits
 * and whose run was deleted waits until that is restored. The index of running plans refuses the second of
 * two verifiers that take equal plans in the same moment: ADV_E_CONFLICT. Another attempt is another lease,
 * which the table numbers. */
static adv_code take_next(struct adv_db *db, const char *worker, int lease_s, struct adv_rows *rows,
                          adv_err *err)
{
    static const char sql[] =
        "WITH next AS (SELECT p.verification_id, p.rank FROM verification_plans p WHERE ((" LEFT_ALONE
        " AND p.attempts < $3::int) OR (p.state = 'queued' AND NOT EXISTS (SELECT FROM verification_plans o "
        "WHERE o.plan_sha256 = p.plan_sha256 AND o.state = 'running') AND EXISTS (SELECT FROM verifications "
        "w JOIN runs r ON r.id = w.run_id WHERE w.id = p.verification_id AND r.deleted_at IS NULL))) AND NOT "
        "EXISTS (SELECT FROM proofs k WHERE k.plan_sha256 = p.plan_sha256) ORDER BY p.verification_id, "
        "p.rank LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE verification_plans p SET state = 'running', attempts "
        "= p.attempts + 1, worker = $1, "
        "stage = 'starting', changes = p.changes + 1, lease_until = now() + $2::int * interval '1 second' "
        "FROM next n, verifications v WHERE p.verification_id = n.verification_id AND p.rank = n.rank AND "
        "v.id = p.verification_id RETURNING p.verification_id, p.rank, p.attempts, v.mode, p.plan, p.lease";
    return adv_db_run(
        db, sql, ADV_VALUES(worker, ADV_INTEGER(lease_s), ADV_INTEGER(ADV_VERIFICATION_ATTEMPTS)), rows, err);
}

adv_code adv_verification_take(struct adv_db *db, const char *worker, int lease_s,
                               struct adv_verification_job *job, bool *taken, adv_err *err)
{
    struct adv_rows rows = {0};
    memset(job, 0, sizeof *job);
    *taken = false;
    adv_code code = settle(db, err);
    for (int tries = 0; !code && tries < TAKE_TRIES; tries++) {
        code = take_next(db, worker, lease_s, &rows, err);
        if (code != ADV_E_CONFLICT) break;
        code = ADV_OK; /* another was faster: look again */
        *err = adv_err_empty();
    }
    if (code) return code;
    if (rows.count > 0) {
        (void)snprintf(job->verification_id, sizeof job->verification_id, "%s", adv_rows_text(&rows, 0, 0));
        job->rank = atoi(adv_rows_text(&rows, 0, 1));
        job->attempt = atoi(adv_rows_text(&rows, 0, 2));
        job->whole = strcmp(adv_rows_text(&rows, 0, 3), "whole") == 0;
        job->plan = strdup(adv_rows_text(&rows, 0, 4));
        job->lease = atol(adv_rows_text(&rows, 0, 5));
        *taken = job->plan != NULL;
    }
    adv_rows_free(&rows);
    return ADV_OK;
}

/* The values $1 to $3 of HELD. */
#define KEY(job) (job)->verification_id, ADV_INTEGER((job)->rank), ADV_INTEGER((job)->lease)
#define HELD     "verification_id = $1::uuid AND rank = $2::int AND lease = $3::bigint AND state = 'running'"

adv_code adv_verification_renew(struct adv_db *db, const struct adv_verification_job *job, int lease_s,
                                const char *stage, bool *held, adv_err *err)
{
    static const char sql[] =
        "UPDATE verification_plans SET lease_until = now() + $4::int * interval '1 second', stage = "
        "coalesce($5, stage), changes = changes + ($5::text IS DISTINCT FROM NULL AND $5 <> stage)::int "
        "WHERE " HELD;
    int changed = 0;
    adv_code code = adv_db_change(db, sql, ADV_VALUES(KEY(job), ADV_INTEGER(lease_s), stage), &changed, err);
    *held = changed > 0;
    return code;
}

adv_code adv_verification_finish(struct adv_db *db, const struct adv_verification_job *job,
                                 const char *result, bool *held, adv_err *err)
{
    /* In one statement: a plan that is done but has no proof yet looks like one that nobody compiled. */
    static const char sql[] =
        "WITH held AS (UPDATE verification_plans SET state = 'done', lease_until = NULL, ended_at = now(), "
        "stage = '', changes = changes + 1, verdict = $4, compiled_hbm_bytes_per_device = $5::float8, result "
        "= $6::json WHERE " HELD " RETURNING 1), kept AS (INSERT INTO proofs (plan_sha256, mode, "
        "versions, verdict, compiled_hbm_bytes_per_device, result) SELECT $9, $7, $8, $4, $5::float8, "
        "$6::json FROM held WHERE $4 <> 'failed' AND $9::text IS NOT NULL ON CONFLICT DO NOTHING) SELECT FROM held";
    struct adv_proof_summary summary;
    char digest[ADV_SHA256_HEX];
    int changed = 0;
    adv_code code = adv_proof_summarize(result, &summary, err);
    if (code) return code;
    /* Who asked may have had other releases in mind: the word is kept under those that gave it. */
    adv_verification_digest(job->plan, job->whole, digest);
    code = adv_db_change(db, sql,
                         ADV_VALUES(KEY(job), adv_proof_verdict_name(summary.verdict),
                                    summary.compiled_hbm_bytes_per_device > 0.0
                                        ? ADV_NUMBER(summary.compiled_hbm_bytes_per_device)
                                        : NULL,
                                    result, job->whole ? "whole" : "assign", summary.versions,
                                    adv_proof_is_by(result, adv_compiler_versions()) ? digest : NULL),
                         &changed, err);
    *held = changed > 0;
    return code || !*held ? code : settle(db, err);
}

adv_code adv_verification_release(struct adv_db *db, const struct adv_verification_job *job, adv_err *err)
{
    /* The attempt did not end its verifier: it is none of those that give a plan up. */
    static const char sql[] =
        "UPDATE verification_plans SET state = 'queued', attempts = attempts - 1, lease_until = NULL, stage "
        "= '', changes = changes + 1 WHERE " HELD;
    return adv_db_change(db, sql, ADV_VALUES(KEY(job)), NULL, err);
}
