-- Runs: answers kept as they were given. The id is a UUID version 7 made by the daemon: it sorts by time, so it is also
-- the key of the pages of a list, and a save that is tried twice writes one row.
CREATE TABLE runs (
    id                   uuid PRIMARY KEY,
    created_at           timestamptz NOT NULL DEFAULT now(),
    kind                 text NOT NULL CHECK (kind IN ('estimate', 'advise', 'simulate', 'tune', 'lint')),
    project              text NOT NULL DEFAULT '' CHECK (octet_length(project) < 96),
    label                text NOT NULL DEFAULT '' CHECK (octet_length(label) < 96),
    git_ref              text NOT NULL DEFAULT '' CHECK (octet_length(git_ref) < 96),
    model                text NOT NULL DEFAULT '',
    chip                 text NOT NULL DEFAULT '',
    topology             text NOT NULL DEFAULT '',
    step_time_s          double precision CHECK (step_time_s >= 0 AND step_time_s < 'Infinity'),
    hbm_bytes_per_device double precision CHECK (hbm_bytes_per_device >= 0 AND hbm_bytes_per_device < 'Infinity'),
    fits                 boolean,
    engine_version       text NOT NULL,
    catalog_hash         text NOT NULL,
    request              json NOT NULL, -- json, not jsonb: the bytes as they came and went
    response             json NOT NULL
);

COMMENT ON TABLE runs IS 'Stored answers; immutable';
COMMENT ON COLUMN runs.step_time_s IS 'seconds, of the answer''s first estimate; null when it has none';
COMMENT ON COLUMN runs.hbm_bytes_per_device IS 'bytes, of the same estimate';

-- One index per filter of the list, each ending in the key of its pages.
CREATE INDEX runs_project_label ON runs (project, label, id);
CREATE INDEX runs_model ON runs (model, id);
CREATE INDEX runs_chip ON runs (chip, id);
CREATE INDEX runs_created_at ON runs (created_at);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'runs are immutable' USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER runs_immutable BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER runs_not_truncated BEFORE TRUNCATE ON runs FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Idempotency-Key: which request a client's key stood for. Rows are dropped after 24 hours.
CREATE TABLE idempotency_keys (
    principal   text NOT NULL, -- name of the token, '' without tokens
    key         text NOT NULL,
    body_sha256 text NOT NULL CHECK (length(body_sha256) = 64),
    run_id      uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (principal, key)
);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
CREATE INDEX idempotency_keys_run_id ON idempotency_keys (run_id);
