#include "server/store_sweeps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEP_MEMBERS                                                                                        \
    "'sweep_id', s.id, 'kind', s.kind, 'state', s.state, 'project', nullif(s.project, ''), 'label', "        \
    "nullif(s.label, ''), 'created_at', to_char(s.created_at" ADV_AS_TIME ", 'ended_at', "                   \
    "to_char(s.ended_at" ADV_AS_TIME ", 'items_count', s.items_count, 'queued_count', s.items_count - "      \
    "s.done_count - s.failed_count - s.cancelled_count - w.running, 'running_count', w.running, "            \
    "'done_count', s.done_count, 'failed_count', s.failed_count, 'cancelled_count', s.cancelled_count"
#define RUNNING                                                                                              \
    "CROSS JOIN LATERAL (SELECT count(*) AS running FROM sweep_items r WHERE r.sweep_id = s.id AND r.state " \
    "= 'running') w "

/* Beside item i: whether its run was deleted or purged (g.gone), and its answer, not told then (t). */
#define ANSWER                                                                                               \
    "CROSS JOIN LATERAL (SELECT i.state = 'done' AND (json_typeof(i.response) = 'null' OR EXISTS (SELECT "   \
    "FROM runs r WHERE r.id = i.run_id AND r.deleted_at IS NOT NULL)) AS gone) g LEFT JOIN LATERAL (SELECT " \
    "i.step_time_s, i.tokens_per_s_per_chip, i.hbm_bytes_per_device, i.fits, i.run_id, i.response) t ON "    \
    "NOT g.gone "
#define ITEM_MEMBERS                                                                                         \
    "'item', i.item, 'state', i.state, 'attempts', i.attempts, 'ended_at', to_char(i.ended_at" ADV_AS_TIME   \
    ", 'step_time_s', t.step_time_s, 'tokens_per_s_per_chip', t.tokens_per_s_per_chip, "                     \
    "'hbm_bytes_per_device', t.hbm_bytes_per_device, 'fits', t.fits, 'fit_verdict', coalesce(t.response "    \
    "->> 'fit_verdict', t.response #>> '{ranked,0,estimate,fit_verdict}'), 'run_id', CASE WHEN t.response "  \
    "->> 'stored' = 'true' THEN t.run_id END, 'run_deleted', g.gone, 'calibration', t.response #>> "         \
    "'{engine,calibration}'"

/* The warnings of the answer, and of the plan that it puts first what was not said before. */
#define ITEM_WARNINGS                                                                                        \
    "'warnings', (SELECT coalesce(json_agg(d.warning ORDER BY d.place), '[]'::json) FROM (SELECT DISTINCT "  \
    "ON (a.warning ->> 'code', a.warning ->> 'detail') a.* FROM (SELECT w.warning, w.place FROM "            \
    "json_array_elements(t.response -> 'warnings') WITH ORDINALITY w (warning, place) UNION ALL SELECT "     \
    "w.warning, 1000 + w.place FROM json_array_elements(t.response #> '{ranked,0,estimate,warnings}') WITH " \
    "ORDINALITY w (warning, place)) a ORDER BY a.warning ->> 'code', a.warning ->> 'detail', a.place) d)"

/* Members of `json` of item i that item z has otherwise: (pointer, value). What is no object has none. */
#define AS_POINTER "replace(replace(k.key, '~', '~0'), '/', '~1')"
#define MEMBERS_CHANGED(json, before)                                                                        \
    "SELECT '" before "' || " AS_POINTER " AS pointer, k.value FROM json_each(CASE WHEN json_typeof(i." json \
    ") = 'object' THEN i." json " END) k WHERE k.value::text IS DISTINCT FROM (z." json " -> k.key)::text"

/* The differences of an item's request from item 0's; of item 0's, from the last one's. */
#define ITEM_CHANGES                                                                                         \
    "(SELECT coalesce(json_object_agg(c.pointer, c.value), '{}'::json) FROM sweep_items z CROSS JOIN "       \
    "LATERAL (" MEMBERS_CHANGED("request -> 'config'", "/config/") " UNION ALL " MEMBERS_CHANGED(            \
        "request", "/") " AND k.key <> 'config') c WHERE z.sweep_id = s.id AND z.item = CASE WHEN i.item "   \
                        "= 0 THEN s.items_count - 1 ELSE 0 END)"

static const struct adv_db_kind sweep = {"sweep", "a sweep id is a UUID"};

adv_code adv_sweep_of_key(struct adv_db *db, const struct adv_idempotency *idempotency,
                          char id[ADV_UUID_BYTES], adv_err *err)
{
    static const char sql[] =
        "SELECT id, body_sha256 FROM sweeps WHERE created_by = $1 AND idempotency_key = "
        "$2 AND created_at > now() - " ADV_KEY_LIFETIME;
    struct adv_rows rows;
    adv_code code = adv_db_run(db, sql, ADV_VALUES(idempotency->principal, idempotency->key), &rows, err);
    if (code) return code;
    id[0] = '\0';
    if (rows.count && strcmp(adv_rows_text(&rows, 0, 1), idempotency->body_digest) != 0)
        code = adv_store_refuse_key(err);
    else if (rows.count)
        (void)snprintf(id, ADV_UUID_BYTES, "%s", adv_rows_text(&rows, 0, 0));
    adv_rows_free(&rows);
    return code;
}

adv_code adv_sweep_create(struct adv_db *db, const struct adv_sweep_order *order, char id[ADV_UUID_BYTES],
                          bool *created, adv_err *err)
{
    static const char sql[] =
        "WITH s AS (INSERT INTO sweeps (id, created_by, project, label, kind, items_count, idempotency_key, "
        "body_sha256) VALUES (uuid_v7(), $1, $2, $3, $4, $5::int, $6, $7) ON CONFLICT (created_by, "
        "idempotency_key) DO NOTHING RETURNING id), items AS (INSERT INTO sweep_items (sweep_id, item, "
        "request) SELECT s.id, r.place - 1, r.one FROM s, json_array_elements($8::json) WITH ORDINALITY r "
        "(one, place)) SELECT id FROM s";
    static const char outdate[] =
        "UPDATE sweeps SET idempotency_key = NULL, body_sha256 = NULL WHERE created_by = $1 AND "
        "idempotency_key = $2 AND created_at <= now() - " ADV_KEY_LIFETIME;
    const struct adv_idempotency *key = order->idempotency;
    adv_code code = ADV_OK;
    *created = false;
    if (key) code = adv_db_run(db, outdate, ADV_VALUES(key->principal, key->key), NULL, err);
    if (code) return code;
    code = adv_db_id(db, sql,
                     ADV_VALUES(order->principal, order->project, order->label, order->kind,
                                ADV_INTEGER(order->items_count), key ? key->key : NULL,
                                key ? key->body_digest : NULL, order->list),
                     id, err);
    *created = id[0] != '\0';
    return code || *created || !key ? code : adv_sweep_of_key(db, key, id, err);
}

adv_code adv_sweep_print(struct adv_db *db, const char *id, const struct adv_sweep_page *page,
                         struct adv_text *json, adv_err *err)
{
    /* One row more than asked tells whether there is another page. */
    static const char sql[] =
        "WITH shown AS (SELECT i.*, row_number() OVER (ORDER BY i.item) AS place FROM sweep_items i WHERE "
        "i.sweep_id = $1::uuid AND ($2::text IS NULL OR i.state = $2) AND i.item > coalesce($3::int, -1) "
        "ORDER BY i.item LIMIT $4::int + 1) SELECT json_build_object(" SWEEP_MEMBERS
        ", 'items', coalesce((SELECT json_agg(json_build_object(" ITEM_MEMBERS
        ", 'problem', i.problem, " ITEM_WARNINGS ", 'changes', " ITEM_CHANGES
        ") ORDER BY i.place) FROM shown i " ANSWER "WHERE i.place <= $4::int), '[]'::json), "
        "'next_cursor', (SELECT i.item::text FROM shown i WHERE i.place = $4::int AND (SELECT count(*) FROM "
        "shown) > $4::int), 'engine', coalesce((SELECT mode() WITHIN GROUP (ORDER BY (t.response -> "
        "'engine')::text) FROM shown i " ANSWER "WHERE i.place <= $4::int), (SELECT (i.response -> "
        "'engine')::text FROM sweep_items i WHERE i.sweep_id = s.id AND i.state = 'done' LIMIT 1), $5)::json) "
        "FROM sweeps s " RUNNING "WHERE s.id = $1::uuid";
    return adv_db_print_of(
        db, &sweep, sql,
        ADV_VALUES(id, page->state, page->cursor, ADV_INTEGER(page->limit_count), page->engine), json, err);
}

adv_code adv_sweep_item_print(struct adv_db *db, const char *id, const char *item, const char *engine,
                              struct adv_text *json, adv_err *err)
{
    static const char sql[] =
        "SELECT json_build_object('sweep_id', i.sweep_id, " ITEM_MEMBERS
        ", 'request', i.request, 'response', t.response, 'problem', i.problem, " ITEM_WARNINGS ", "
        "'engine', coalesce(t.response -> 'engine', $3::json)) FROM sweep_items i " ANSWER
        "WHERE i.sweep_id = $1::uuid AND i.item = $2::int";
    int number = 0;
    if (!adv_uuid_valid(id)) return adv_db_not_found(&sweep, id, err);
    adv_code code = !adv_text_whole(item, 1000000, &number)
                        ? ADV_E_NOT_FOUND
                        : adv_db_print(db, sql, ADV_VALUES(id, item, engine), json, err);
    if (code == ADV_E_NOT_FOUND && err->count == 0)
        return adv_err_add(err, ADV_E_NOT_FOUND, "", "items are counted from 0",
                           "the sweep has no item '%.64s'", item);
    return code;
}

adv_code adv_sweeps_list(struct adv_db *db, const struct adv_sweeps_filter *filter, struct adv_text *json,
                         adv_err *err)
{
    static const char sql[] =
        "WITH shown AS (SELECT s.*, row_number() OVER (ORDER BY s.id DESC) AS place FROM sweeps s WHERE "
        "($1::text IS NULL OR s.project = $1) AND ($2::text IS NULL OR s.state = $2) AND ($3::uuid IS NULL "
        "OR s.id < $3::uuid) ORDER BY s.id DESC LIMIT $4::int + 1) SELECT json_build_object('sweeps', "
        "coalesce((SELECT json_agg(json_build_object(" SWEEP_MEMBERS
        ") ORDER BY s.place) FROM shown s " RUNNING
        "WHERE s.place <= $4::int), '[]'::json), 'next_cursor', (SELECT s.id FROM shown s WHERE s.place = "
        "$4::int AND (SELECT count(*) FROM shown) > $4::int))";
    return adv_db_print(
        db, sql, ADV_VALUES(filter->project, filter->state, filter->after, ADV_INTEGER(filter->limit_count)),
        json, err);
}

adv_code adv_sweep_events(struct adv_db *db, const char *id, long after, int limit_count,
                          struct adv_text *events, adv_err *err)
{
    /* The sweep and its items as of one moment: its end is told when no item is left to be told. */
    static const char sql[] =
        "WITH told AS (SELECT i.* FROM sweep_items i WHERE i.sweep_id = $1::uuid AND i.event > $2::bigint "
        "ORDER BY i.event LIMIT $3::int) SELECT coalesce((SELECT string_agg('id: ' || i.event || "
        "E'\\nevent: item\\ndata: ' || json_build_object(" ITEM_MEMBERS
        ")::text || E'\\n\\n', '' ORDER BY i.event) FROM told i " ANSWER
        "), '') || CASE WHEN s.state <> 'running' AND "
        "(SELECT count(*) FROM told) < $3::int THEN E'id: end\\nevent: ' || s.state || E'\\ndata: ' || "
        "json_build_object(" SWEEP_MEMBERS ")::text || E'\\n\\n' ELSE '' END FROM sweeps s " RUNNING
        "WHERE s.id = $1::uuid";
    return adv_db_print_of(db, &sweep, sql, ADV_VALUES(id, ADV_INTEGER(after), ADV_INTEGER(limit_count)),
                           events, err);
}

adv_code adv_sweep_cancel(struct adv_db *db, const char *id, adv_err *err)
{
    return adv_db_change_of(db, &sweep, "SELECT WHERE sweep_cancel($1::uuid)", ADV_VALUES(id), err);
}
