-- What a row can be. Each statement breaks one rule and no other.
\ir start.sql
SELECT no_plan();
SELECT pg_temp.add_run(1, 'alpha');

-- A row that is good, and one column of it that is not: check violation or what `code` says.
CREATE TEMP TABLE good (relation text, columns text, vals text);
INSERT INTO good VALUES
    ('runs', 'id, kind, engine_version, catalog_hash, request, response', $v$pg_temp.id(2), 'advise', 'v', 'h', '{}', '{}'$v$),
    ('measurements', 'id, run_id, source, measured_at, measured_step_time_s, step_time_s, step_time_low_s, step_time_high_s, hbm_bytes_per_device',
        $v$gen_random_uuid(), pg_temp.id(1), 's', now(), 2, 2, 1, 3, 1$v$),
    ('tokens', 'name, sha256, scopes', $v$'t', repeat('a', 64), 'read,write'$v$),
    ('sweeps', 'id, kind, items_count', $v$pg_temp.id(3), 'tune', 2$v$),
    ('proofs', 'plan_sha256, mode, versions, verdict, result, compiled_hbm_bytes_per_device', $v$repeat('a', 64), 'whole', 'v', 'compiles', '{}', 1$v$),
    ('calibrations', 'id, project, factors, fit', $v$pg_temp.id(4), 'alpha', '{}', '{}'$v$);
CREATE FUNCTION pg_temp.with_column(the_relation text, the_column text, val text) RETURNS text LANGUAGE sql AS $$
    SELECT format('INSERT INTO %I (%s, %I) SELECT %s, %s', the_relation,
        (SELECT string_agg(c, ', ') FROM regexp_split_to_table(columns, ', ') c WHERE c <> the_column), the_column,
        (SELECT string_agg(v, ', ') FROM regexp_split_to_table(columns, ', ') WITH ORDINALITY c (c, n)
            JOIN regexp_split_to_table(vals, ', ?(?![^(]*\))(?=(?:[^'']*''[^'']*'')*[^'']*$)') WITH ORDINALITY v (v, n) USING (n) WHERE c <> the_column), val)
    FROM good WHERE relation = the_relation
$$;
SELECT lives_ok(format('INSERT INTO %I (%s) VALUES (%s)', relation, columns, vals), 'a good row of ' || relation || ' is taken') FROM good;
DELETE FROM runs WHERE id = pg_temp.id(2);
DELETE FROM measurements; DELETE FROM tokens; DELETE FROM sweeps; DELETE FROM proofs; DELETE FROM calibrations;

SELECT throws_ok(pg_temp.with_column(r, c, v), '23514', NULL, format('%s.%s is not %s', r, c, v)) FROM (VALUES
    ('runs', 'kind', $$'simulate'$$), ('runs', 'project', $$repeat('é', 48)$$), ('runs', 'git_ref', $$repeat('x', 96)$$),
    ('runs', 'step_time_s', '-1'), ('runs', 'step_time_s', $$'NaN'$$), ('runs', 'step_time_s', $$'Infinity'$$),
    ('runs', 'tags', $$ARRAY['']$$), ('runs', 'tags', $$ARRAY['a,b']$$), ('runs', 'tags', $$ARRAY[E'a\tb']$$), ('runs', 'tags', $$ARRAY[NULL]$$),
    ('runs', 'tags', $$array_fill('x'::text, ARRAY[33])$$), ('runs', 'tags', $$ARRAY[repeat('x', 64)]$$),
    ('measurements', 'rank', '0'), ('measurements', 'rank', '101'), ('measurements', 'source', $$''$$),
    ('measurements', 'measured_step_time_s', '0'), ('measurements', 'measured_step_time_s', $$'NaN'$$),
    ('measurements', 'step_time_low_s', '2.5'), ('measurements', 'step_time_high_s', '1.5'), ('measurements', 'steps_count', '0'),
    ('measurements', 'measured_hbm_bytes_per_device', '0'), ('measurements', 'measured_step_time_p25_s', '2.5'),
    ('measurements', 'measured_step_time_p75_s', '1.5'), ('measurements', 'measured_step_time_mad_s', '-1'), ('measurements', 'warm_up_steps_count', '-1'),
    ('tokens', 'name', $$''$$), ('tokens', 'sha256', $$'tpu_secret'$$), ('tokens', 'scopes', $$'root'$$), ('tokens', 'scopes', $$''$$),
    ('tokens', 'scopes', $$'read,'$$), ('sweeps', 'items_count', '0'), ('sweeps', 'kind', $$'kernel'$$), ('sweeps', 'state', $$'done'$$),
    ('sweeps', 'done_count', '3'), ('proofs', 'verdict', $$'failed'$$), ('proofs', 'mode', $$'half'$$), ('proofs', 'plan_sha256', $$'short'$$),
    ('proofs', 'compiled_hbm_bytes_per_device', 'NULL'), ('measurements', 'log_sha256', $$'short'$$), ('measurements', 'log_beginning_sha256', $$'short'$$),
    ('calibrations', 'project', $$''$$), ('calibrations', 'engine_version', $$'v'$$), ('calibrations', 'catalog_hash', $$'h'$$)) v (r, c, v);
SELECT throws_ok(format('INSERT INTO calibrations (id, project, factors, fit, engine_version, catalog_hash) VALUES (pg_temp.id(4), %L, %L, %L, %s)', 'alpha', '{}', '{}', e),
    '23514', NULL, 'no engine of a calibration is: ' || e) FROM unnest(ARRAY[$$repeat('v', 96), 'h'$$, $$'v', repeat('h', 96)$$]) e;
SELECT lives_ok($$INSERT INTO calibrations (id, project, factors, fit, engine_version, catalog_hash) VALUES (pg_temp.id(4), 'alpha', '{}', '{}', '1.0.0+a', 'h')$$,
    'a calibration says which engine and catalog it was fitted by');

-- An item is in one state, and has what belongs to it.
SELECT pg_temp.add_sweep(5, 'alpha', 1);
SELECT throws_ok(format('UPDATE sweep_items SET %s', s), '23514', NULL, 'an item is not: ' || s) FROM unnest(ARRAY[
    $$state = 'running'$$, $$lease_until = now()$$, $$state = 'done', event = 1$$, $$state = 'done', response = '{}'$$,
    $$response = '{}'$$, $$state = 'failed', event = 1$$, $$event = 1$$, $$state = 'lost'$$]) s;
SELECT throws_ok($$INSERT INTO sweep_items (sweep_id, item, request) SELECT pg_temp.id(5), 0, '{}'$$, '23505', NULL, 'an item is there once');

-- Runs stay as they were stored.
SELECT throws_ok(format('UPDATE runs SET %I = %I', column_name, column_name), '23001', 'runs are immutable', format('runs.%s does not change', column_name))
FROM information_schema.columns WHERE table_schema = 'public' AND table_name = 'runs' AND column_name NOT IN ('tags', 'deleted_at');
SELECT lives_ok($$UPDATE runs SET tags = '{a}'$$, 'tags change');
SELECT throws_ok('TRUNCATE runs CASCADE', '23001', 'runs are immutable', 'runs are not swept away');
SELECT throws_ok(s, '23001', 'the audit is only added to', 'the audit stays: ' || s) FROM unnest(ARRAY[
    'DELETE FROM audit', $$UPDATE audit SET principal = 'me'$$, 'TRUNCATE audit']) s;

-- Runs and what hangs on them.
SELECT throws_ok($$INSERT INTO measurements (id, run_id, source, measured_at, measured_step_time_s, step_time_s, step_time_low_s, step_time_high_s, hbm_bytes_per_device)
    SELECT gen_random_uuid(), pg_temp.id(99), 's', now(), 1, 1, 1, 1, 1$$, '23503', NULL, 'a measurement is of a run that is there');
SELECT pg_temp.add_measurement(1);
UPDATE measurements SET log_sha256 = repeat('a', 64);
SELECT throws_ok($$INSERT INTO measurements (id, run_id, source, measured_at, measured_step_time_s, step_time_s, step_time_low_s, step_time_high_s, hbm_bytes_per_device, log_sha256)
    SELECT gen_random_uuid(), run_id, source, now(), 1, 1, 1, 1, 1, log_sha256 FROM measurements$$, '23505', NULL, 'a log is one measurement');
UPDATE runs SET deleted_at = now() WHERE id = pg_temp.id(1);
SELECT throws_ok($$SELECT pg_temp.add_measurement(1)$$, '23503', 'there is no such run', 'a deleted run is measured no more');
SELECT throws_ok($$INSERT INTO verifications (id, run_id, mode) VALUES (gen_random_uuid(), pg_temp.id(1), 'assign')$$, '23503', 'there is no such run', 'nor verified');
UPDATE runs SET deleted_at = NULL WHERE id = pg_temp.id(1);
SELECT throws_ok('SELECT pg_temp.add_measurement(1)', '23505', NULL, 'one measurement is stored once');
INSERT INTO baselines (project, label, run_id) SELECT 'alpha', 'main', pg_temp.id(1);
SELECT throws_ok('DELETE FROM runs', '23503', NULL, 'a baseline keeps its run');
SELECT throws_ok('UPDATE runs SET deleted_at = now()', '23001', 'the run is a baseline', 'and from being marked as deleted');
DELETE FROM baselines;
INSERT INTO idempotency_keys (principal, key, body_sha256, run_id) SELECT '', 'k', repeat('0', 64), pg_temp.id(1);
SELECT lives_ok('UPDATE runs SET deleted_at = now()', 'a run that is none is deleted');
SELECT is_empty('SELECT FROM idempotency_keys', 'and its key is free');
SELECT throws_ok($$INSERT INTO baselines (project, label, run_id) SELECT 'alpha', 'main', pg_temp.id(1)$$, '23503', NULL, 'a deleted run becomes no baseline');
SELECT isnt_empty('SELECT FROM measurements', 'its measurements stay until it is purged');
DELETE FROM runs;
SELECT is_empty('SELECT FROM measurements', 'and go with it');

SELECT * FROM finish();
ROLLBACK;
