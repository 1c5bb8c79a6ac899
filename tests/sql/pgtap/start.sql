-- Included first by every file: what the tests write is rolled back, and statements run as somebody else.
\set QUIET 1
\set ON_ERROR_STOP 1
\pset format unaligned
\pset tuples_only true
\pset pager off
SET client_min_messages = warning;
BEGIN;
SET LOCAL search_path = public, tap;

-- Runs a statement as a role, in a project, and gives its first value. pgTAP's own notes belong to the role of the session.
CREATE FUNCTION pg_temp.as_role(the_role text, the_project text, statement text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    given text;
BEGIN
    PERFORM set_config('tpu_advisor.project', the_project, true);
    PERFORM set_config('role', the_role, true);
    EXECUTE statement INTO given;
    PERFORM set_config('role', 'none', true);
    RETURN given;
END
$$;
CREATE FUNCTION pg_temp.in_project(the_project text, statement text) RETURNS text LANGUAGE sql AS $$
    SELECT pg_temp.as_role('tpu_advisor_project', the_project, statement)
$$;
-- Run number n: an id that sorts by n.
CREATE FUNCTION pg_temp.id(n integer) RETURNS uuid LANGUAGE sql AS $$
    SELECT ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid
$$;
CREATE FUNCTION pg_temp.add_run(n integer, in_project text) RETURNS uuid LANGUAGE sql AS $$
    INSERT INTO runs (id, kind, project, label, model, chip, step_time_s, hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response)
    VALUES (pg_temp.id(n), 'estimate', in_project, 'main', 'llama3.1-8b', 'v5e', 1.5, 1e9, true, 'v', 'h', '{}', '{}') RETURNING id
$$;
CREATE FUNCTION pg_temp.add_measurement(n integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO measurements (id, run_id, source, measured_at, measured_step_time_s, step_time_s, step_time_low_s, step_time_high_s, hbm_bytes_per_device)
    VALUES (gen_random_uuid(), pg_temp.id(n), 'log', '2026-11-20', 1.5, 1.4, 1, 2, 1e9)
$$;
CREATE FUNCTION pg_temp.add_sweep(n integer, in_project text, items integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO sweeps (id, project, kind, items_count) VALUES (pg_temp.id(n), in_project, 'estimate', items);
    INSERT INTO sweep_items (sweep_id, item, request) SELECT pg_temp.id(n), item, '{}' FROM generate_series(0, items - 1) item
$$;
