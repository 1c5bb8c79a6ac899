-- What the functions promise to the daemons that call them.
\ir start.sql
SELECT no_plan();

-- --- items of a sweep ------------------------------------------------------------------------------------------
SELECT pg_temp.add_sweep(1, 'alpha', 5);
CREATE TEMP TABLE taken AS SELECT * FROM sweep_take('one', 60, 2, 3, '{}');
SELECT results_eq('SELECT item, attempt FROM taken ORDER BY item', 'VALUES (0, 1), (1, 1)', 'as many items are taken as were asked for');
SELECT is((SELECT count(DISTINCT run_id)::integer FROM taken), 2, 'each has a run id of its own');
SELECT results_eq($$SELECT item FROM sweep_take('two', 60, 100, 3, '{}') ORDER BY item$$, 'VALUES (2), (3), (4)', 'what one has is not taken by another');
SELECT is_empty($$SELECT * FROM sweep_take('three', 60, 100, 3, '{}')$$, 'nothing is left to take');
SELECT is(sweep_end(pg_temp.id(1), '[{"item":0,"attempt":1,"response":{},"summary":{"step_time_s":1.5,"fits":true}}]'), 1, 'who holds an item ends it');
SELECT is(sweep_end(pg_temp.id(1), '[{"item":0,"attempt":1,"response":{},"summary":{}}]'), 0, 'once');
SELECT results_eq('SELECT state, step_time_s, fits, event FROM sweep_items WHERE item = 0', $$VALUES ('done', 1.5::double precision, true, 1::bigint)$$, 'the first answer stays');
SELECT is(sweep_end(pg_temp.id(1), '[{"item":1,"attempt":2,"response":{},"summary":{}}]'), 0, 'an attempt that is not its holder''s ends nothing');

UPDATE sweep_items SET lease_until = now() - interval '1 second' WHERE item IN (2, 3);
SELECT is((SELECT count(*)::integer FROM sweep_take('four', 60, 100, 3, '{}')), 1, 'what a dead holder left is taken alone');
SELECT is((SELECT count(*)::integer FROM sweep_take('four', 60, 100, 3, '{}')), 1, 'one after the other');
SELECT is((SELECT count(*)::integer FROM sweep_items WHERE attempts = 2 AND worker = 'four'), 2, 'as a second attempt');
SELECT results_eq('SELECT count(DISTINCT run_id) FROM sweep_items', 'VALUES (5::bigint)', 'with the run id of the first, so that its run is stored once');
SELECT is(sweep_end(pg_temp.id(1), '[{"item":2,"attempt":1,"response":{},"summary":{}}]'), 0, 'the dead holder, come back, ends nothing');
UPDATE sweep_items SET lease_until = now() - interval '1 second', attempts = 3 WHERE item = 2;
SELECT is_empty($$SELECT * FROM sweep_take('five', 60, 100, 3, '{"code":"dead"}')$$, 'after the last attempt it is taken no more');
SELECT results_eq('SELECT state, problem ->> ''code'' FROM sweep_items WHERE item = 2', $$VALUES ('failed', 'dead')$$, 'but is a dead letter that says why');
SELECT ok(sweep_cancel(pg_temp.id(1)), 'a sweep is cancelled');
SELECT results_eq('SELECT state, done_count, failed_count, cancelled_count FROM sweeps', $$VALUES ('cancelled', 1, 1, 3)$$, 'its counts add up');
SELECT is(sweep_end(pg_temp.id(1), '[{"item":4,"attempt":1,"response":{},"summary":{}}]'), 0, 'what was cancelled is not ended by who had it');
SELECT ok(NOT sweep_cancel(pg_temp.id(9)), 'there is no other to cancel');
SELECT pg_temp.add_sweep(2, 'alpha', 1);
SELECT count(*) AS taken FROM sweep_take('one', 60, 1, 3, '{}') \gset
SELECT sweep_end(pg_temp.id(2), '[{"item":0,"attempt":1,"problem":{"code":"x"}}]') AS ended \gset
SELECT results_eq('SELECT state, failed_count, ended_at IS NOT NULL FROM sweeps WHERE id = pg_temp.id(2)', $$VALUES ('done', 1, true)$$, 'a sweep whose last item failed is done');
SELECT results_eq('SELECT array_agg(event ORDER BY event) FROM sweep_items WHERE sweep_id = pg_temp.id(1) AND event IS NOT NULL', 'VALUES (ARRAY[1, 2]::bigint[])',
    'events are numbered without a gap');

-- --- leases of verifications -----------------------------------------------------------------------------------
SELECT pg_temp.add_run(81, 'alpha');
INSERT INTO verifications (id, run_id, mode) SELECT pg_temp.id(82), pg_temp.id(81), 'assign';
INSERT INTO verification_plans (verification_id, rank, plan_sha256, plan, predicted) SELECT pg_temp.id(82), 1, repeat('a', 64), 'p', '{}';
CREATE FUNCTION pg_temp.lease_after(change text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    given bigint;
BEGIN
    EXECUTE 'UPDATE verification_plans SET ' || change || ' WHERE verification_id = pg_temp.id(82) RETURNING lease' INTO given;
    RETURN given;
END
$$;
SELECT is(pg_temp.lease_after(change), number::bigint, what) FROM (VALUES
    (1, $$stage = ''$$, 0, 'what nobody has claimed has no lease'),
    (2, $$state = 'running', lease_until = now(), attempts = attempts + 1$$, 1, 'a claim has one'),
    (3, $$lease_until = now() + interval '1 minute', stage = 'compiling'$$, 1, 'which is renewed'),
    (4, $$attempts = attempts + 1, lease_until = now()$$, 2, 'who takes it from one who has gone has another'),
    (5, $$state = 'queued', lease_until = NULL, attempts = attempts - 1$$, 2, 'giving it back lowers no lease'),
    (6, $$state = 'running', lease_until = now(), attempts = attempts + 1$$, 3, 'so that the next attempt of the same number has its own'),
    (7, $$lease = 1$$, 3, 'no statement sets it'), (8, $$lease = 9, attempts = attempts + 1$$, 4, 'nor lets it leap')) v (n, change, number, what) ORDER BY n;
DELETE FROM runs WHERE id = pg_temp.id(81);

-- --- keys ------------------------------------------------------------------------------------------------------
SELECT pg_temp.add_run(91, 'alpha');
INSERT INTO idempotency_keys (principal, key, body_sha256, run_id) VALUES ('one', 'of a run', repeat('0', 64), pg_temp.id(91)), ('one', 'old', repeat('0', 64), pg_temp.id(91));
UPDATE idempotency_keys SET created_at = now() - interval '25 hours' WHERE key = 'old';
INSERT INTO sweeps (id, kind, items_count, created_by, idempotency_key, body_sha256)
    SELECT pg_temp.id(91 + n), 'estimate', 1, p, k, repeat('0', 64) FROM (VALUES (1, 'one', 'of a sweep'), (2, 'one', 'of a run'), (3, 'two', 'of a run'), (4, 'one', 'old')) v (n, p, k);
SELECT set_eq('SELECT created_by, idempotency_key FROM sweeps WHERE idempotency_key IS NOT NULL',
    $$VALUES ('one', 'of a sweep'), ('two', 'of a run'), ('one', 'old')$$, 'a key that a run has stored makes no sweep, for a day, of the same token');
INSERT INTO idempotency_keys (principal, key, body_sha256, run_id)
    SELECT p, 'of a sweep', repeat('0', 64), pg_temp.id(91) FROM unnest(ARRAY['one', 'two']) p;
SELECT set_eq($$SELECT principal FROM idempotency_keys WHERE key = 'of a sweep'$$, ARRAY['two'], 'nor a key of a sweep a run');
UPDATE sweeps SET created_at = now() - interval '25 hours' WHERE idempotency_key = 'of a sweep';
INSERT INTO idempotency_keys (principal, key, body_sha256, run_id) VALUES ('one', 'of a sweep', repeat('0', 64), pg_temp.id(91));
SELECT is((SELECT count(*)::integer FROM idempotency_keys WHERE key = 'of a sweep'), 2, 'for a day');
DELETE FROM sweeps WHERE idempotency_key IS NOT NULL;
DELETE FROM runs WHERE id = pg_temp.id(91);

-- --- ids, tags, words ------------------------------------------------------------------------------------------
SELECT matches(uuid_v7()::text, '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$', 'an id is a UUID version 7');
SELECT cmp_ok(abs(('x' || lpad(translate(left(uuid_v7()::text, 13), '-', ''), 16, '0'))::bit(64)::bigint - extract(epoch FROM clock_timestamp()) * 1000)::integer,
    '<', 2000, 'whose first 48 bits are the milliseconds of now');
CREATE FUNCTION pg_temp.two_ids() RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    first uuid := uuid_v7();
    since timestamptz := clock_timestamp();
BEGIN
    WHILE clock_timestamp() < since + interval '1 microsecond' LOOP
    END LOOP;
    RETURN ARRAY[first, uuid_v7()];
END
$$;
SELECT is((SELECT count(*)::integer FROM generate_series(1, 200), LATERAL pg_temp.two_ids() two WHERE two[1] < two[2]), 200, 'ids made within a millisecond are in order');
SELECT is(run_words(ARRAY['Llama3.1-8B', 'feature/x', '', 'v5e'])::text, $$'1' '8b' 'feature' 'llama3' 'v5e' 'x'$$, 'words are cut at what is no letter or digit');
SELECT ok(run_words(ARRAY['Llama3.1-8B']) @@ run_search(q) = wanted, format('%L %s', q, CASE WHEN wanted THEN 'finds it' ELSE 'does not' END))
FROM (VALUES ('llama', true), ('LLAMA3 8b', true), ('lama', false), ('llama 70b', false), ($$'; DROP--$$, false), ('ll:*&!', true), ('!llama', true)) v (q, wanted);
SELECT is(run_search('  .,- '), NULL, 'no word asks for nothing');

-- --- drift -----------------------------------------------------------------------------------------------------
SELECT is(measured_drift(s) ->> 'drifts', d, n) FROM (VALUES
    (ARRAY[1, 1, 1, 1, 1]::double precision[], NULL, 'five measurements are too few'), (NULL, NULL, 'none are too few'),
    (ARRAY[1, 1.001, 0.999, 1.001, 1, 0.999], 'false', 'a steady series does not drift'),
    (ARRAY[1, 1.001, 0.999, 1.1, 1.101, 1.099], 'true', 'ten per cent more is drift'),
    (ARRAY[1, 1.3, 0.7, 1.05, 1.35, 0.75], 'false', 'five per cent within thirty of scatter is none'),
    (ARRAY[1, 1, 1, 1.015, 1.015, 1.015], 'false', 'nor are less than two')) v (s, d, n);

-- --- retention -------------------------------------------------------------------------------------------------
INSERT INTO runs (id, created_at, kind, project, engine_version, catalog_hash, request, response)
    SELECT pg_temp.id(n), now() - interval '40 days', 'estimate', 'alpha', 'v', 'h', '{}', '{}' FROM generate_series(101, 106) n;
INSERT INTO baselines (project, label, run_id) SELECT 'alpha', 'main', pg_temp.id(101);
SELECT pg_temp.add_measurement(102);
SELECT pg_temp.add_run(107, 'alpha');
SELECT results_eq('SELECT * FROM tidy_runs(0, 30, 100)', 'VALUES (0, 0)', 'without a number of days all runs are kept');
SELECT results_eq('SELECT * FROM tidy_runs(30, 30, 3)', 'VALUES (3, 0)', 'a piece at a time');
SELECT results_eq('SELECT * FROM tidy_runs(30, 30, 100)', 'VALUES (1, 0)', 'and the rest');
SELECT set_eq('SELECT id FROM runs WHERE deleted_at IS NULL', 'SELECT pg_temp.id(n) FROM unnest(ARRAY[101, 102, 107]) n', 'baselines, measured and recent runs stay');
UPDATE runs SET deleted_at = now() - interval '31 days' WHERE id = pg_temp.id(103);
SELECT results_eq('SELECT * FROM tidy_runs(30, 30, 100)', 'VALUES (0, 1)', 'what was deleted for long is purged');
SELECT ok(EXISTS (SELECT FROM audit WHERE principal = 'retention' AND action = 'purge' AND object_id = pg_temp.id(103)::text), 'the audit says that it was retention');
SELECT pg_temp.add_sweep(n, 'alpha', 2) FROM generate_series(11, 13) n;
SELECT sweep_cancel(pg_temp.id(n)) FROM generate_series(12, 13) n;
UPDATE sweeps SET ended_at = now() - interval '31 days' WHERE id = pg_temp.id(13);
SELECT results_eq('SELECT * FROM tidy_runs(0, 30, 100)', 'VALUES (0, 0)', 'without a number of days all sweeps are kept');
SELECT ok(EXISTS (SELECT FROM sweeps WHERE id = pg_temp.id(13)), 'also those that ended long ago');
SELECT results_eq('SELECT * FROM tidy_runs(30, 30, 100)', 'VALUES (0, 0)', 'sweeps are no runs');
SELECT set_eq('SELECT DISTINCT sweep_id FROM sweep_items WHERE sweep_id >= pg_temp.id(11)', 'SELECT pg_temp.id(n) FROM generate_series(11, 12) n', 'those that run or ended lately stay, the others go with their items');

SELECT * FROM finish();
ROLLBACK;
