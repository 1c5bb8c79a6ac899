-- The rows of a project, in every table that has them: by its column `project`, or by the run that `run_id` names. May be
-- called again: a later migration that makes such a table ends with SELECT guard_projects().
CREATE FUNCTION guard_projects() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    named record;
    rule  text;
BEGIN
    FOR named IN
        SELECT c.oid, c.relname, bool_or(a.attname = 'project') AS by_project
        FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN ('project', 'run_id') AND NOT a.attisdropped
        WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
            AND c.relname NOT IN ('tokens', 'audit', 'idempotency_keys')
        GROUP BY c.oid, c.relname
    LOOP
        IF EXISTS (SELECT FROM pg_policy WHERE polrelid = named.oid) THEN CONTINUE; END IF;
        rule := CASE WHEN named.by_project THEN 'sees_project(project)' ELSE 'EXISTS (SELECT FROM runs WHERE runs.id = run_id)' END;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', named.relname);
        EXECUTE format('CREATE POLICY by_project ON %I USING (%s)', named.relname, rule);
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO tpu_advisor_project', named.relname);
        END IF;
    END LOOP;
END
$$;

SELECT guard_projects();

-- Plans of a verification are its run's; what the compiler said of a canonical plan is nobody's.
ALTER TABLE verification_plans ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_project ON verification_plans
    USING (EXISTS (SELECT FROM verifications v WHERE v.id = verification_id));
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON verification_plans TO tpu_advisor_project;
        GRANT SELECT ON proofs TO tpu_advisor_project;
    END IF;
END
$$;
