-- Verdicts of checks: a run that passed all of its checks may stand in where no baseline is set; a run that failed one
-- never does, however often it is tried.
CREATE TABLE checks (
    id              uuid PRIMARY KEY,
    created_at      timestamptz NOT NULL DEFAULT now(),
    candidate_id    uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    baseline_id     uuid NOT NULL, -- may be deleted later: the verdict stands
    passed          boolean NOT NULL
);
CREATE INDEX checks_candidate_id ON checks (candidate_id, passed);

COMMENT ON TABLE checks IS 'Verdicts about stored candidates';

-- Which run was the baseline when, and who said so.
CREATE TABLE baseline_history (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project    text NOT NULL,
    label      text NOT NULL,
    run_id     uuid, -- null: there was none from then on
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by text NOT NULL DEFAULT '' -- name of the token, '' without tokens
);
CREATE INDEX baseline_history_name ON baseline_history (project, label, id);

INSERT INTO baseline_history (project, label, run_id, changed_at)
    SELECT project, label, run_id, updated_at FROM baselines ORDER BY updated_at;
