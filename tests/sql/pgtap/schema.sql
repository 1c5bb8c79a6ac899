-- The tables and what holds them together.
\ir start.sql
SELECT no_plan();

SELECT tables_are('public', ARRAY['audit', 'baseline_history', 'baselines', 'calibration_history', 'calibrations', 'checks',
    'idempotency_keys', 'measurements', 'proofs', 'runs', 'schema_migrations', 'sweep_items', 'sweeps', 'tokens',
    'verification_plans', 'verifications'], 'these tables are there and no others');

SELECT col_is_pk('public', t, k, format('a row of %s is named by %s', t, array_to_string(k, ', '))) FROM (VALUES
    ('runs', ARRAY['id']), ('idempotency_keys', ARRAY['principal', 'key']), ('baselines', ARRAY['project', 'label']),
    ('measurements', ARRAY['id']), ('checks', ARRAY['id']), ('tokens', ARRAY['name']), ('audit', ARRAY['id']),
    ('baseline_history', ARRAY['id']), ('proofs', ARRAY['plan_sha256']), ('verifications', ARRAY['id']),
    ('verification_plans', ARRAY['verification_id', 'rank']), ('sweeps', ARRAY['id']),
    ('sweep_items', ARRAY['sweep_id', 'item']), ('calibrations', ARRAY['id']), ('calibration_history', ARRAY['id'])) v (t, k);

SELECT fk_ok('public'::name, t::name, c::name, 'public'::name, f::name, 'id'::name, format('%s.%s is a row of %s', t, c, f)) FROM (VALUES
    ('idempotency_keys', 'run_id', 'runs'), ('baselines', 'run_id', 'runs'), ('measurements', 'run_id', 'runs'),
    ('checks', 'candidate_id', 'runs'), ('verifications', 'run_id', 'runs'), ('verification_plans', 'verification_id', 'verifications'),
    ('sweep_items', 'sweep_id', 'sweeps'), ('calibration_history', 'calibration_id', 'calibrations'),
    ('calibration_history', 'before_id', 'calibration_history')) v (t, c, f);

SELECT is_empty($$
    SELECT c.conrelid::regclass, c.conname FROM pg_constraint c
    WHERE c.contype = 'f' AND c.connamespace = 'public'::regnamespace AND NOT EXISTS (
        SELECT FROM pg_index i WHERE i.indrelid = c.conrelid AND i.indkey[0] = c.conkey[1])
        AND c.conrelid <> 'calibration_history'::regclass -- rows are never deleted there
$$, 'every reference has an index: a deleted run does not walk tables');

-- The bytes of a question and its answer come back as they were: json keeps them, jsonb does not.
SELECT col_type_is('public', t, c, 'json', format('%s.%s keeps its bytes', t, c)) FROM (VALUES
    ('runs', 'request'), ('runs', 'response'), ('sweep_items', 'request'), ('sweep_items', 'response'), ('proofs', 'result'),
    ('calibrations', 'fit')) v (t, c);
SELECT is_empty($$
    SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public'
        AND (data_type = 'timestamp without time zone' OR data_type = 'real' OR data_type = 'character varying')
$$, 'times have a zone, numbers are doubles, texts are bounded by rules');
SELECT is_empty($$
    SELECT table_name, column_name FROM information_schema.columns c WHERE table_schema = 'public' AND data_type = 'double precision'
        AND NOT table_name = 'sweep_items' -- copies of what an answer says
        AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = c.table_name::regclass AND k.contype = 'c'
            AND pg_get_constraintdef(k.oid) ~ c.column_name)
        AND NOT (table_name = 'verification_plans' AND column_name = 'predicted_hbm_bytes_per_device')
$$, 'every number has a rule of what it can be');
SELECT is_empty($$
    SELECT table_name, column_name FROM information_schema.columns
    WHERE table_schema = 'public' AND column_name IN ('project', 'label', 'principal', 'created_by', 'changed_by') AND is_nullable = 'YES'
$$, 'no name is null');

-- Every documented filter of the list of runs, in every documented order.
SELECT has_index('public', 'runs', format('runs_%s_by_%s', f, o), ARRAY[f, o, 'id']::name[], format('a list by %s in order of %s has its index', f, o))
FROM unnest(ARRAY['project', 'label', 'git_ref', 'model', 'chip', 'kind']) f, unnest(ARRAY['created_at', 'step_time_s', 'hbm_bytes_per_device']) o;
SELECT index_is_type('public', 'runs', 'runs_tags', 'gin');
SELECT index_is_type('public', 'runs', 'runs_words', 'gin');
SELECT is_empty($$
    SELECT indexrelid::regclass FROM pg_index WHERE indrelid = 'runs'::regclass AND NOT indisprimary
        AND coalesce(pg_get_expr(indpred, indrelid), '') !~ 'deleted_at IS (NOT )?NULL'
$$, 'deleted runs are in no index of lists');

SELECT has_trigger('public', t, n, format('%s has %s', t, n)) FROM (VALUES
    ('runs', 'runs_immutable'), ('runs', 'runs_not_truncated'), ('runs', 'runs_audited'), ('runs', 'runs_change_audited'),
    ('runs', 'runs_deleted'), ('baselines', 'baselines_of_runs_there'), ('baselines', 'baselines_audited'),
    ('measurements', 'measurements_audited'), ('checks', 'checks_audited'), ('tokens', 'tokens_audited'),
    ('measurements', 'measurements_of_runs_there'), ('verifications', 'verifications_of_runs_there'),
    ('verification_plans', 'verification_plans_raise_lease'), ('sweeps', 'sweeps_take_key'), ('idempotency_keys', 'idempotency_keys_take_key'),
    ('sweeps', 'sweeps_audited'), ('calibrations', 'calibrations_audited'), ('calibration_history', 'calibration_history_audited'),
    ('sweeps', 'sweeps_cancel_audited'), ('sweep_items', 'sweep_items_count_given_back'), ('verifications', 'verifications_audited'),
    ('verification_plans', 'verification_plans_cancel_audited'),
    ('audit', 'audit_immutable'), ('audit', 'audit_not_truncated')) v (t, n);

SELECT volatility_is('public', f, a::name[], v, format('%s is %s', f, v)) FROM (VALUES
    ('sees_project', ARRAY['text'], 'stable'), ('sees_sweep', ARRAY['uuid'], 'volatile'), ('uuid_v7', ARRAY[]::text[], 'volatile'),
    ('tags_are_good', ARRAY['text[]'], 'immutable'), ('run_words', ARRAY['text[]'], 'immutable'), ('run_search', ARRAY['text'], 'immutable'),
    ('measured_drift', ARRAY['double precision[]'], 'immutable')) x (f, a, v);
SELECT is_empty($$
    SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace AND prosecdef
        AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search\_path=%')
$$, 'what runs with the rights of its owner looks nothing up in a path of its caller');

SELECT * FROM finish();
ROLLBACK;
