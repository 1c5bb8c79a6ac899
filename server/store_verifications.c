/* store_verifications.c: asking for verifications and looking at them. */
#include "server/store_verifications.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/compiler.h"
#include "server/json_text.h"
#include "server/store_runs.h"

#define DIGEST_LIMIT_BYTES (2u * 1024u * 1024u)
#define PLANS_LIMIT_BYTES  (16u * 1024u * 1024u) /* 100 plans of 20 KiB take 2 MiB */
#define CREATED_AT         "to_char(v.created_at" ADV_AS_TIME

/* The whole is running while a plan is, and queued while one is; it is cancelled when its last plans were. */
#define STATE_OF_ALL                                                                                         \
    "CASE WHEN bool_or(p.state = 'running') THEN 'running' WHEN bool_or(p.state = 'queued') THEN CASE WHEN " \
    "bool_or(p.state = 'done') THEN 'running' ELSE 'queued' END WHEN bool_or(p.state = 'cancelled') THEN "   \
    "'cancelled' ELSE 'done' END"

void adv_verification_digest(const char *plan, bool whole, char digest[ADV_SHA256_HEX])
{
    struct adv_text text = adv_text_empty(DIGEST_LIMIT_BYTES);
    adv_text_format(&text, "%s\n", whole ? "whole" : "assign");
    adv_text_append(&text, adv_compiler_versions());
    adv_text_append(&text, plan);
    adv_sha256_hex(text.data ? text.data : "", text.length_bytes, digest);
    adv_text_free(&text);
}

/* The plans of the order as a JSON array. */
static adv_code list_plans(const struct adv_verification_order *order, struct adv_text *list, adv_err *err)
{
    adv_code code = ADV_OK;
    int ranks_count = order->last_rank;
    adv_text_init(list, PLANS_LIMIT_BYTES);
    for (int rank = order->first_rank; rank <= order->last_rank && rank <= ranks_count && !code; rank++) {
        struct adv_proof_plan plan;
        char digest[ADV_SHA256_HEX];
        code = adv_proof_plan_read(order->catalog, order->response, strlen(order->response), rank, &plan,
                                   &ranks_count, err);
        if (code) break;
        adv_verification_digest(plan.plan, order->whole, digest);
        adv_text_format(list, "%s{\"rank\":%d", rank == order->first_rank ? "[" : ",", rank);
        adv_json_text_string(list, "digest", digest);
        adv_json_text_string(list, "plan", plan.plan);
        adv_json_text_raw(list, "predicted", plan.predicted);
        adv_text_append(list, "}");
        adv_proof_plan_free(&plan);
    }
    adv_text_append(list, "]");
    if (!code && list->overflow) code = adv_err_add(err, ADV_E_MEMORY, "", NULL, "no memory for the plans");
    return code;
}

adv_code adv_verification_newest_id(struct adv_db *db, const char *run_id, char id[ADV_UUID_BYTES],
                                    adv_err *err)
{
    static const char sql[] = "SELECT id FROM verifications WHERE run_id = $1::uuid ORDER BY id DESC LIMIT 1";
    return adv_db_id(db, sql, ADV_VALUES(run_id), id, err);
}

/* The verification that the key has made. */
static adv_code find_by_key(struct adv_db *db, const struct adv_idempotency *key, char id[ADV_UUID_BYTES],
                            adv_err *err)
{
    static const char sql[] =
        "SELECT id FROM verifications WHERE created_by = $1 AND idempotency_key = $2 AND body_sha256 = $3";
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, ADV_VALUES(key->principal, key->key, key->body_digest), &rows, err);
    if (code) return code;
    if (rows.count)
        (void)snprintf(id, ADV_UUID_BYTES, "%s", adv_rows_text(&rows, 0, 0));
    else
        code = adv_store_refuse_key(err);
    adv_rows_free(&rows);
    return code;
}

adv_code adv_verification_create(struct adv_db *db, const struct adv_verification_order *order,
                                 char id[ADV_UUID_BYTES], bool *created, adv_err *err)
{
    /* A word that is there already ends the plan where it begins. */
    static const char sql[] =
        "WITH v AS (INSERT INTO verifications (id, run_id, mode, created_by, idempotency_key, body_sha256) "
        "VALUES (uuid_v7(), $1::uuid, $2, $3, $5, $6) ON CONFLICT (created_by, idempotency_key) DO NOTHING "
        "RETURNING id), plans AS (INSERT INTO verification_plans (verification_id, rank, plan_sha256, plan, "
        "predicted, predicted_hbm_bytes_per_device, state, ended_at, verdict, compiled_hbm_bytes_per_device, "
        "result) SELECT v.id, (p ->> 'rank')::int, p ->> 'digest', p ->> 'plan', p -> 'predicted', (p #>> "
        "'{predicted,hbm_bytes_per_device}')::float8, CASE WHEN k.result IS NULL THEN 'queued' ELSE 'done' "
        "END, CASE WHEN k.result IS NOT NULL THEN now() END, k.verdict, k.compiled_hbm_bytes_per_device, "
        "k.result FROM v CROSS JOIN json_array_elements($4::json) p LEFT JOIN proofs k ON k.plan_sha256 = p "
        "->> 'digest') SELECT id FROM v";
    static const char outdate[] =
        "UPDATE verifications SET idempotency_key = NULL, body_sha256 = NULL WHERE created_by = $1 AND "
        "idempotency_key = $2 AND created_at <= now() - " ADV_KEY_LIFETIME;
    const struct adv_idempotency *key = order->idempotency;
    struct adv_text list;
    adv_code code = list_plans(order, &list, err);
    id[0] = '\0';
    if (!code && key) code = adv_db_run(db, outdate, ADV_VALUES(key->principal, key->key), NULL, err);
    if (!code)
        code = adv_db_id(db, sql,
                         ADV_VALUES(order->run_id, order->whole ? "whole" : "assign", order->principal,
                                    list.data, key ? key->key : NULL, key ? key->body_digest : NULL),
                         id, err);
    adv_text_free(&list);
    *created = id[0] != '\0';
    code = adv_store_run_added(db, order->run_id, code, err);
    return code || *created || !key ? code : find_by_key(db, key, id, err);
}

/* One plan of the list, with the result and the prediction beside it where it is done. */
static adv_code print_plan(const struct adv_rows *rows, int row, struct adv_text *json, adv_err *err)
{
    enum { RANK = 4, STATE, STAGE, ATTEMPTS, PREDICTED, RESULT, BYTES };
    const char *result = adv_rows_text(rows, row, RESULT);
    const char *state = adv_rows_text(rows, row, STATE), *attempts = adv_rows_text(rows, row, ATTEMPTS);
    if (!result) {
        adv_text_append(json, "{");
        adv_json_text_raw(json, "rank", adv_rows_text(rows, row, RANK));
        adv_json_text_string(json, "state", state);
        adv_json_text_string(json, "stage", adv_rows_text(rows, row, STAGE));
        adv_json_text_raw(json, "attempts", attempts);
        adv_json_text_raw(json, "predicted_hbm_bytes_per_device", adv_rows_text(rows, row, BYTES));
        adv_json_text_raw(json, "verdict", NULL);
        adv_text_append(json, "}");
        return ADV_OK;
    }
    char members[64];
    struct adv_text joined = adv_text_empty(ADV_LIMIT_PROOF_BYTES);
    const adv_code code = adv_proof_join(result, adv_rows_text(rows, row, PREDICTED),
                                         atoi(adv_rows_text(rows, row, RANK)), &joined, err);
    (void)snprintf(members, sizeof members, "\"state\":\"%s\",\"attempts\":%s", state, attempts);
    if (!code) adv_json_text_extend(json, joined.data, joined.length_bytes, members);
    adv_text_free(&joined);
    return code;
}

static const struct adv_db_kind verification = {"verification", "a verification's id is a UUID"};

static adv_code print_plans(const struct adv_rows *rows, struct adv_text *json, adv_err *err)
{
    adv_json_text_raw(json, "result", "");
    adv_code code = print_plan(rows, 0, json, err);
    adv_json_text_raw(json, "results", "[");
    for (int i = 0; i < rows->count && !code; i++) {
        if (i) adv_text_append(json, ",");
        code = print_plan(rows, i, json, err);
    }
    adv_text_append(json, "]}");
    return code;
}

adv_code adv_verification_print(struct adv_db *db, const char *id, struct adv_text *json, char state[16],
                                long *changes, adv_err *err)
{
    static const char of_all[] =
        "SELECT v.run_id, v.mode, " CREATED_AT ", " STATE_OF_ALL ", min(p.rank) FILTER (WHERE p.verdict = "
        "'compiles'), sum(p.changes) FROM verifications v JOIN runs r ON r.id = v.run_id AND r.deleted_at IS "
        "NULL JOIN verification_plans p ON p.verification_id = v.id WHERE v.id = $1::uuid GROUP BY v.id";
    static const char of_each[] =
        "SELECT 1, 1, 1, 1, p.rank, p.state, p.stage, p.attempts, p.predicted, p.result, "
        "p.predicted_hbm_bytes_per_device FROM verification_plans p WHERE p.verification_id = $1::uuid ORDER "
        "BY p.rank";
    static const char *const names[] = {"run_id", "mode", "created_at", "state"};
    struct adv_rows rows;
    if (!adv_uuid_valid(id)) return adv_db_not_found(&verification, id, err);
    adv_code code = adv_db_run(db, of_all, ADV_VALUES(id), &rows, err);
    if (code) return code;
    const bool found = rows.count > 0;
    if (found) {
        adv_text_append(json, "{");
        adv_json_text_string(json, "verification_id", id);
        for (int i = 0; i < 4; i++) adv_json_text_string(json, names[i], adv_rows_text(&rows, 0, i));
        adv_json_text_raw(json, "first_proven_rank", adv_rows_text(&rows, 0, 4));
        if (state) (void)snprintf(state, 16, "%s", adv_rows_text(&rows, 0, 3));
        if (changes) *changes = atol(adv_rows_text(&rows, 0, 5));
    }
    adv_rows_free(&rows);
    if (!found) return adv_db_not_found(&verification, id, err);
    code = adv_db_run(db, of_each, ADV_VALUES(id), &rows, err);
    if (code) return code;
    code = rows.count > 0 ? print_plans(&rows, json, err) : adv_db_not_found(&verification, id, err);
    adv_rows_free(&rows);
    return code;
}

adv_code adv_verification_cancel(struct adv_db *db, const char *id, adv_err *err)
{
    /* The verification is locked before its plans, as by who deletes it. That of a deleted run is not there.
     */
    static const char sql[] =
        "WITH known AS (SELECT v.id FROM verifications v WHERE v.id = $1::uuid AND EXISTS (SELECT FROM runs r "
        "WHERE r.id = v.run_id AND r.deleted_at IS NULL) FOR NO KEY UPDATE), ended AS (UPDATE "
        "verification_plans p SET state = 'cancelled', lease_until = NULL, ended_at = now(), changes = "
        "p.changes + 1 FROM known k WHERE p.verification_id = k.id AND p.state IN ('queued', 'running')) "
        "SELECT FROM known";
    return adv_db_change_of(db, &verification, sql, ADV_VALUES(id), err);
}

adv_code adv_verifications_list(struct adv_db *db, const struct adv_verification_filter *filter,
                                struct adv_text *json, adv_err *err)
{
    /* One row more than asked tells whether there is another page; ids sort by time. */
    static const char sql[] =
        "WITH shown AS (SELECT v.*, row_number() OVER (ORDER BY v.id DESC) AS place FROM verifications v "
        "WHERE v.run_id = $1::uuid AND ($2::int = 0 OR EXISTS (SELECT FROM verification_plans p WHERE "
        "p.verification_id = v.id AND p.rank = $2::int)) AND ($3::uuid IS NULL OR v.id < $3::uuid) ORDER BY "
        "v.id DESC LIMIT $4::int + 1) SELECT json_build_object('verifications', coalesce((SELECT "
        "json_agg(w.json ORDER BY w.place) FROM (SELECT v.place, json_build_object('verification_id', v.id, "
        "'mode', v.mode, 'created_at', " CREATED_AT ", 'state', " STATE_OF_ALL
        ", 'ranks', json_agg(p.rank ORDER BY p.rank), 'first_proven_rank', min(p.rank) FILTER (WHERE "
        "p.verdict = 'compiles')) AS json FROM shown v JOIN verification_plans p ON p.verification_id = v.id "
        "WHERE v.place <= $4::int GROUP BY v.id, v.place, v.mode, v.created_at) w), '[]'::json), "
        "'next_cursor', (SELECT v.id FROM shown v WHERE v.place = $4::int AND (SELECT count(*) FROM shown) > "
        "$4::int)) FROM runs r WHERE r.id = $1::uuid AND r.deleted_at IS NULL";
    return adv_db_print_of(db, &adv_db_run_kind, sql,
                           ADV_VALUES(filter->run_id, ADV_INTEGER(filter->rank), filter->after,
                                      ADV_INTEGER(filter->limit_count)),
                           json, err);
}

adv_code adv_verification_of_run(struct adv_db *db, const char *run_id, struct adv_text *json, adv_err *err)
{
    /* Ids sort by time: of each rank the newest word counts, or that of the same releases on the whole, which
     * goes further; before there is a word, the newest of what failed or is under way. */
    static const char sql[] =
        "WITH asked AS (SELECT p.*, v.id AS of, p.state = 'done' AND p.verdict <> 'failed' AS is_word, v.mode "
        "= 'whole' AS is_whole, (p.result -> 'versions')::text AS versions FROM verification_plans p JOIN "
        "verifications v ON v.id = p.verification_id WHERE v.run_id = $1::uuid AND p.state <> 'cancelled'), "
        "latest AS (SELECT DISTINCT ON (rank) rank, versions FROM asked WHERE is_word ORDER BY rank, of "
        "DESC), newest AS (SELECT DISTINCT ON (a.rank) a.* FROM asked a LEFT JOIN latest l ON l.rank = "
        "a.rank ORDER BY a.rank, a.is_word DESC, a.is_word AND a.is_whole AND a.versions IS NOT DISTINCT "
        "FROM l.versions DESC, a.of DESC), proven AS (SELECT min(rank) AS rank FROM newest "
        "WHERE verdict = 'compiles') SELECT json_build_object('plans', json_agg(json_build_object('rank', "
        "n.rank, 'verification_id', n.of, 'state', n.state, 'verdict', n.verdict, "
        "'compiled_hbm_bytes_per_device', n.compiled_hbm_bytes_per_device, 'predicted_hbm_bytes_per_device', "
        "n.predicted_hbm_bytes_per_device, 'hbm_error_frac', n.predicted_hbm_bytes_per_device / "
        "n.compiled_hbm_bytes_per_device - 1, 'reason', n.result->>'reason', 'versions', n.result->'versions') "
        "ORDER BY n.rank), "
        "'first_proven_rank', (SELECT rank FROM proven), 'message', (SELECT 'the compiler does not take plan "
        "1 (' || f.verdict || coalesce(': ' || (f.result->>'reason'), '') || '); ' || coalesce('plan ' || "
        "(SELECT rank FROM proven) || ' is the first that compiles and fits', 'none of the plans that were "
        "tried compiles and fits') FROM newest f WHERE f.rank = 1 AND f.verdict IN ('refused', "
        "'does_not_fit'))) FROM newest n HAVING count(*) > 0";
    adv_code code = adv_db_print(db, sql, ADV_VALUES(run_id), json, err);
    if (code != ADV_E_NOT_FOUND) return code;
    adv_text_append(json, "null");
    return ADV_OK;
}

/* What became of the newest verification of a plan that has no word. */
static adv_code find_asked(struct adv_db *db, const char *assign, const char *whole,
                           struct adv_verification_word *word, adv_err *err)
{
    static const char sql[] =
        "SELECT state <> 'done', coalesce(result ->> 'reason', 'it ended without saying why') FROM "
        "verification_plans WHERE plan_sha256 IN ($1, $2) AND state <> 'cancelled' AND (state <> 'done' OR "
        "verdict = 'failed') ORDER BY verification_id DESC LIMIT 1";
    struct adv_rows rows;
    const adv_code code = adv_db_run(db, sql, ADV_VALUES(assign, whole), &rows, err);
    if (code) return code;
    word->is_waited_for = rows.count > 0 && adv_rows_true(&rows, 0, 0);
    if (rows.count > 0 && !word->is_waited_for)
        (void)snprintf(word->failure, sizeof word->failure, "%s", adv_rows_text(&rows, 0, 1));
    adv_text_mend(word->failure);
    adv_rows_free(&rows);
    return ADV_OK;
}

adv_code adv_verification_find(struct adv_db *db, const char *plan, struct adv_verification_word *word,
                               adv_err *err)
{
    char assign[ADV_SHA256_HEX], whole[ADV_SHA256_HEX];
    struct adv_rows rows;
    adv_verification_digest(plan, false, assign);
    adv_verification_digest(plan, true, whole);
    memset(word, 0, sizeof *word);
    /* The word on the whole goes further: code that cannot be generated has its memory assigned before. */
    adv_code code = adv_db_run(db,
                               "SELECT verdict, compiled_hbm_bytes_per_device, versions FROM proofs WHERE "
                               "plan_sha256 IN ($1, $2) ORDER BY mode = 'whole' DESC LIMIT 1",
                               ADV_VALUES(assign, whole), &rows, err);
    if (code) return code;
    word->known = rows.count > 0;
    if (word->known) {
        (void)snprintf(word->verdict, sizeof word->verdict, "%s", adv_rows_text(&rows, 0, 0));
        word->compiled_hbm_bytes_per_device = adv_rows_number(&rows, 0, 1);
        (void)snprintf(word->versions, sizeof word->versions, "%s", adv_rows_text(&rows, 0, 2));
    }
    adv_rows_free(&rows);
    if (word->known) return ADV_OK;
    adv_proof_versions(adv_compiler_versions(), word->versions);
    return find_asked(db, assign, whole, word, err);
}
