-- Who may do what. The daemon's role reads and writes rows; that of a project sees no token and no audit.
\ir start.sql
SELECT no_plan();

SELECT is_empty($$
    SELECT relname, pg_get_userbyid(relowner) FROM pg_class WHERE relkind IN ('r', 'S') AND relnamespace = 'public'::regnamespace
        AND relowner <> 'tpu_advisor_migrate'::regrole
$$, 'all tables are owned by the role of migrations');
SELECT table_privs_are('public', relname, 'tpu_advisor_app', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE'], format('the daemon works with the rows of %s', relname))
FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace;
SELECT schema_privs_are('public', 'tpu_advisor_app', ARRAY['USAGE'], 'it makes no tables');
SELECT schema_privs_are('public', 'tpu_advisor_project', ARRAY['USAGE'], 'nor does the role of a project');
SELECT database_privs_are(current_database(), 'tpu_advisor_app', ARRAY['CONNECT'], 'nor temporary ones');
SELECT table_privs_are('public', t, 'tpu_advisor_project', p, format('the role of a project may %s in %s', coalesce(nullif(lower(array_to_string(p, ', ')), ''), 'nothing'), t)) FROM (VALUES
    ('tokens', ARRAY[]::name[]), ('audit', ARRAY[]::name[]), ('schema_migrations', ARRAY[]::name[]), ('proofs', ARRAY['SELECT']::name[]),
    ('calibrations', ARRAY['SELECT', 'INSERT']::name[]), ('calibration_history', ARRAY['SELECT', 'INSERT']::name[]),
    ('runs', ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']::name[])) v (t, p);
SELECT is_member_of('tpu_advisor_project', 'tpu_advisor_app', 'the daemon may become the role of a project');
SELECT isnt_superuser('tpu_advisor_app', 'the daemon is no superuser');
SELECT isnt_superuser('tpu_advisor_migrate', 'nor is who migrates');
SELECT is_empty($$SELECT rolname FROM pg_roles WHERE rolname LIKE 'tpu_advisor\_%' AND (rolbypassrls OR rolcreatedb OR rolcreaterole OR rolreplication)$$,
    'none of them is above the rules of rows or makes roles and databases');
SELECT throws_ok(format('SELECT pg_temp.as_role(%L, %L, %L)', r, 'alpha', s), '42501', NULL, format('%s is refused: %s', r, s)) FROM (VALUES
    ('tpu_advisor_app', 'ALTER TABLE runs DISABLE TRIGGER ALL'), ('tpu_advisor_app', 'ALTER TABLE runs DISABLE ROW LEVEL SECURITY'),
    ('tpu_advisor_app', 'DROP POLICY by_project ON runs'), ('tpu_advisor_app', 'TRUNCATE runs CASCADE'), ('tpu_advisor_app', 'CREATE TABLE x ()'),
    ('tpu_advisor_project', 'SELECT sha256 FROM tokens'), ('tpu_advisor_project', 'SELECT * FROM audit'),
    ('tpu_advisor_project', $$INSERT INTO audit (principal, db_user, action, object, object_id, project) VALUES ('', '', 'insert', '', '', '')$$),
    ('tpu_advisor_project', 'DELETE FROM calibrations'), ('tpu_advisor_project', 'SELECT * FROM schema_migrations')) v (r, s);
SELECT is((SELECT setting FROM unnest((SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'tpu_advisor_app'::regrole)) setting
    WHERE setting LIKE n || '=%'), n || '=' || v, format('a %s of the daemon ends after %s', n, v))
FROM (VALUES ('statement_timeout', '5s'), ('lock_timeout', '2s'), ('idle_in_transaction_session_timeout', '10s')) x (n, v);

-- Who wrote what is noted also for the role that cannot read it.
SELECT pg_temp.add_run(1, 'alpha');
SELECT set_config('tpu_advisor.principal', 'ci', true);
SELECT pg_temp.in_project('alpha', $$UPDATE runs SET tags = '{x}' RETURNING id$$), pg_temp.in_project('alpha', 'UPDATE runs SET deleted_at = now() RETURNING id'),
    pg_temp.in_project('alpha', 'UPDATE runs SET deleted_at = NULL RETURNING id'), pg_temp.in_project('alpha', 'DELETE FROM runs RETURNING id');
SELECT results_eq($$SELECT action, principal, object_id, project FROM audit WHERE object = 'runs' ORDER BY id$$,
    $$SELECT a, p, pg_temp.id(1)::text, 'alpha' FROM (VALUES (1, 'insert', ''), (2, 'update', 'ci'), (3, 'delete', 'ci'), (4, 'restore', 'ci'), (5, 'purge', 'ci')) v (n, a, p) ORDER BY n$$,
    'the audit names who changed a run, and how');

SELECT * FROM finish();
ROLLBACK;
