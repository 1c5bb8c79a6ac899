-- Bearer tokens: only the SHA-256 of each is here. `tpu-advisor token` makes, lists and revokes them.
CREATE TABLE tokens (
    name       text PRIMARY KEY CHECK (name <> '' AND octet_length(name) < 64),
    sha256     text NOT NULL UNIQUE CHECK (sha256 ~ '^[0-9a-f]{64}$'),
    scopes     text NOT NULL CHECK (scopes ~ '^(read|write|admin)(,(read|write|admin))*$'),
    project    text NOT NULL DEFAULT '' CHECK (octet_length(project) < 96),
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    revoked_at timestamptz
);
COMMENT ON COLUMN tokens.project IS 'the only project that the token sees; '''' = all';

-- Who wrote what: a row for every row that is written, by a trigger, so that no way around it is forgotten. Who is the
-- name of the token, which the daemon says in each transaction of one; '' without tokens or by hand.
CREATE TABLE audit (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    principal  text NOT NULL,
    db_user    text NOT NULL,
    action     text NOT NULL CHECK (action IN ('insert', 'update', 'delete')),
    object     text NOT NULL, -- table
    object_id  text NOT NULL,
    project    text NOT NULL
);
CREATE INDEX audit_object ON audit (object, object_id);
CREATE INDEX audit_at ON audit (at);

-- Arguments: the column that names the row, and that of its project ('' when it has none).
CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    changed    record;
    object_id  text;
    in_project text := '';
BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
    EXECUTE format('SELECT ($1).%I::text', TG_ARGV[0]) INTO object_id USING changed;
    IF TG_ARGV[1] <> '' THEN
        EXECUTE format('SELECT ($1).%I', TG_ARGV[1]) INTO in_project USING changed;
    END IF;
    INSERT INTO audit (principal, db_user, action, object, object_id, project)
        VALUES (coalesce(current_setting('tpu_advisor.principal', true), ''), session_user, lower(TG_OP), TG_TABLE_NAME, object_id, in_project);
    RETURN NULL;
END
$$;

CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit is only added to' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_immutable BEFORE UPDATE OR DELETE ON audit FOR EACH ROW EXECUTE FUNCTION refuse_audit_change();
CREATE TRIGGER audit_not_truncated BEFORE TRUNCATE ON audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change();

CREATE TRIGGER runs_audited AFTER INSERT OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION note_write('id', 'project');
CREATE TRIGGER baselines_audited AFTER INSERT OR UPDATE OR DELETE ON baselines FOR EACH ROW EXECUTE FUNCTION note_write('label', 'project');
CREATE TRIGGER measurements_audited AFTER INSERT OR UPDATE OR DELETE ON measurements FOR EACH ROW EXECUTE FUNCTION note_write('id', '');
CREATE TRIGGER checks_audited AFTER INSERT OR UPDATE OR DELETE ON checks FOR EACH ROW EXECUTE FUNCTION note_write('id', '');
CREATE TRIGGER tokens_audited AFTER INSERT OR UPDATE OR DELETE ON tokens FOR EACH ROW EXECUTE FUNCTION note_write('name', 'project');

-- The boundary of a token with a project: its statements run as tpu_advisor_project, for whom the rows of other projects
-- do not exist. The role belongs to the cluster; where the migration may not make it (sql/roles.sql does), tokens with a
-- project are not served.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
        CREATE ROLE tpu_advisor_project NOLOGIN;
        EXECUTE format('GRANT tpu_advisor_project TO %I', current_user);
    END IF;
EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
END
$$;

CREATE FUNCTION sees_project(project text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT current_user <> 'tpu_advisor_project' OR project = current_setting('tpu_advisor.project', true)
$$;

ALTER TABLE runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE baselines ENABLE ROW LEVEL SECURITY;
ALTER TABLE baseline_history ENABLE ROW LEVEL SECURITY;
ALTER TABLE measurements ENABLE ROW LEVEL SECURITY;
ALTER TABLE checks ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_project ON runs USING (sees_project(project));
CREATE POLICY by_project ON baselines USING (sees_project(project));
CREATE POLICY by_project ON baseline_history USING (sees_project(project));
CREATE POLICY by_project ON measurements USING (EXISTS (SELECT FROM runs WHERE runs.id = run_id));
CREATE POLICY by_project ON checks USING (EXISTS (SELECT FROM runs WHERE runs.id = candidate_id));

-- Tokens and audit are not for it. Tables of later migrations are granted there.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON runs, baselines, baseline_history, measurements, checks, idempotency_keys TO tpu_advisor_project;
    END IF;
END
$$;
