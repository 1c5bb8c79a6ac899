-- roles.sql: two roles for a server that others use too; run once per database by its administrator, before the migrations:
--   psql -d tpu_advisor -f sql/roles.sql
-- tpu_advisor_migrate owns the tables (`tpu-advisor migrate`); tpu_advisor_app is the daemon (--auto-migrate=false): it
-- reads and writes rows and can neither change a table nor switch the triggers off. Give them passwords or peer rules
-- of your own. tpu_advisor_project cannot log in: row-level security shows it one project. May be repeated. The time limits hold for every session of the role, also where the daemon's own are lost
-- (a pooler in transaction mode).
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_migrate') THEN
        CREATE ROLE tpu_advisor_migrate LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_app') THEN
        CREATE ROLE tpu_advisor_app LOGIN;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
        CREATE ROLE tpu_advisor_project NOLOGIN;
    END IF;
    EXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO tpu_advisor_migrate, tpu_advisor_app', current_database());
END
$$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO tpu_advisor_migrate;
GRANT USAGE ON SCHEMA public TO tpu_advisor_app, tpu_advisor_project;
GRANT tpu_advisor_project TO tpu_advisor_app; -- statements of a token with a project run as it
ALTER DEFAULT PRIVILEGES FOR ROLE tpu_advisor_migrate IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tpu_advisor_app;

-- What is there already, where migrations came before roles.
DO $$
DECLARE
    name regclass;
BEGIN
    FOR name IN SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
        AND pg_has_role(relowner, 'USAGE') LOOP
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO tpu_advisor_app', name);
    END LOOP;
END
$$;

ALTER ROLE tpu_advisor_app SET statement_timeout = '5s';
ALTER ROLE tpu_advisor_app SET lock_timeout = '2s';
ALTER ROLE tpu_advisor_app SET idle_in_transaction_session_timeout = '10s';
