-- The boundary of a project: who is in one neither sees nor touches a row of another, in any table.
\ir start.sql
SELECT no_plan();
SELECT pg_temp.add_run(1, 'alpha'), pg_temp.add_run(2, 'beta'), pg_temp.add_run(3, '');
SELECT pg_temp.add_measurement(n) FROM generate_series(1, 3) n;
SELECT pg_temp.add_sweep(10, 'alpha', 2), pg_temp.add_sweep(20, 'beta', 3);
INSERT INTO baselines (project, label, run_id) SELECT p, 'main', pg_temp.id(n) FROM (VALUES ('alpha', 1), ('beta', 2)) v (p, n);
INSERT INTO baseline_history (project, label, run_id) SELECT project, label, run_id FROM baselines;
INSERT INTO checks (id, candidate_id, baseline_id, passed) SELECT gen_random_uuid(), id, id, true FROM runs;
INSERT INTO verifications (id, run_id, mode) SELECT id, id, 'assign' FROM runs;
INSERT INTO verification_plans (verification_id, rank, plan_sha256, plan, predicted) SELECT id, 1, repeat('a', 64), 'p', '{}' FROM verifications;
INSERT INTO calibrations (id, project, factors, fit) SELECT id, project, '{}', '{}' FROM runs WHERE project <> '';
INSERT INTO calibration_history (project, calibration_id) SELECT project, id FROM calibrations;

-- Every table with rows of somebody, also those that a later migration brings, is behind a rule.
SELECT is_empty($$
    SELECT c.relname FROM pg_class c WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND NOT relrowsecurity
        AND relname NOT IN ('tokens', 'audit', 'idempotency_keys', 'proofs', 'schema_migrations')
$$, 'every table of projects has row-level security');
SELECT policies_are('public', relname, ARRAY['by_project']::name[], format('%s has one rule', relname))
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relrowsecurity;
SELECT policy_cmd_is('public', relname, 'by_project'::name, 'all', format('the rule of %s is for reading and writing', relname))
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relrowsecurity;

SELECT is(pg_temp.in_project(p, 'SELECT count(*) FROM ' || t), n::text, format('%s sees its %s of %s', p, n, t)) FROM (VALUES
    ('alpha', 'runs', 1), ('alpha', 'measurements', 1), ('alpha', 'baselines', 1), ('alpha', 'baseline_history', 1), ('alpha', 'checks', 1),
    ('alpha', 'verifications', 1), ('alpha', 'verification_plans', 1), ('alpha', 'sweeps', 1), ('alpha', 'sweep_items', 2), ('beta', 'sweep_items', 3),
    ('alpha', 'calibrations', 1), ('alpha', 'calibration_history', 1), ('gamma', 'runs', 0), ('gamma', 'measurements', 0),
    ('gamma', 'sweep_items', 0), ('gamma', 'verification_plans', 0)) v (p, t, n);
SELECT is(pg_temp.as_role('tpu_advisor_app', '', 'SELECT count(*) FROM runs'), '3', 'the daemon, in no project, sees all');
SELECT is(pg_temp.in_project('alpha', format('WITH d AS (%s RETURNING 1) SELECT count(*) FROM d', s)), '0', 'alpha changes nothing of beta: ' || s)
FROM unnest(ARRAY[
    $$UPDATE runs SET tags = '{x}' WHERE project = 'beta'$$, $$UPDATE runs SET deleted_at = now() WHERE id = pg_temp.id(2)$$,
    $$DELETE FROM runs WHERE project = 'beta'$$, $$DELETE FROM baselines WHERE project = 'beta'$$, $$DELETE FROM measurements WHERE run_id = pg_temp.id(2)$$,
    $$UPDATE sweeps SET state = 'cancelled' WHERE project = 'beta'$$, $$DELETE FROM sweep_items WHERE sweep_id = pg_temp.id(20)$$]) s;
SELECT is(pg_temp.in_project('alpha', 'SELECT sweep_cancel(pg_temp.id(20))'), 'false', 'nor does it cancel a sweep of beta');
SELECT is(pg_temp.in_project('alpha', $$SELECT count(*) FROM sweep_take('w', 60, 100, 3, '{}')$$), '2', 'it takes items of its own sweep only');
SELECT throws_ok(format('SELECT pg_temp.in_project(%L, %L)', 'alpha', s), '42501', NULL, 'alpha writes nothing into beta: ' || s) FROM unnest(ARRAY[
    $$INSERT INTO runs (id, kind, project, engine_version, catalog_hash, request, response) SELECT pg_temp.id(7), 'estimate', 'beta', 'v', 'h', '{}', '{}'$$,
    $$INSERT INTO baselines (project, label, run_id) SELECT 'beta', 'other', pg_temp.id(1)$$,
    $$SELECT pg_temp.add_measurement(2)$$,
    $$INSERT INTO checks (id, candidate_id, baseline_id, passed) SELECT gen_random_uuid(), pg_temp.id(2), pg_temp.id(2), true$$,
    $$INSERT INTO sweeps (id, project, kind, items_count) SELECT pg_temp.id(8), 'beta', 'estimate', 1$$,
    $$INSERT INTO sweep_items (sweep_id, item, request) SELECT pg_temp.id(20), 9, '{}'$$,
    $$INSERT INTO verification_plans (verification_id, rank, plan_sha256, plan, predicted) SELECT pg_temp.id(2), 2, repeat('b', 64), 'p', '{}'$$,
    $$INSERT INTO calibrations (id, project, factors, fit) SELECT pg_temp.id(9), 'beta', '{}', '{}'$$,
    $$UPDATE baselines SET project = 'beta' WHERE project = 'alpha'$$]) s;
SELECT lives_ok($$SELECT pg_temp.in_project('alpha', 'WITH s AS (INSERT INTO sweeps (id, project, kind, items_count)
    SELECT pg_temp.id(11), ''alpha'', ''estimate'', 1 RETURNING id), i AS (INSERT INTO sweep_items (sweep_id, item, request) SELECT id, 0, ''{}'' FROM s) SELECT 1')$$,
    'a sweep and its items are written by one statement');
SELECT lives_ok($$SELECT pg_temp.in_project('alpha', 'WITH v AS (INSERT INTO verifications (id, run_id, mode) SELECT pg_temp.id(12), pg_temp.id(1), ''assign'' RETURNING id),
    p AS (INSERT INTO verification_plans (verification_id, rank, plan_sha256, plan, predicted) SELECT id, 1, repeat(''b'', 64), ''p'', ''{}'' FROM v) SELECT 1')$$,
    'as are a verification and its plans');

-- Nobody is in a project by accident.
SELECT is(pg_temp.as_role('tpu_advisor_project', '', $$SELECT count(*) FROM runs WHERE project <> ''$$), '0', 'without a project none is seen');
SELECT is((SELECT rolcanlogin OR rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles WHERE rolname = 'tpu_advisor_project'), false,
    'the role of a project cannot log in and is above no rule');

SELECT * FROM finish();
ROLLBACK;
