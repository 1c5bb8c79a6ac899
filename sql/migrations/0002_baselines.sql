-- Baselines: the run that a project's checks compare with, by label. A run that is a baseline cannot be deleted.
CREATE TABLE baselines (
    project    text NOT NULL CHECK (project <> '' AND octet_length(project) < 96),
    label      text NOT NULL CHECK (label <> '' AND octet_length(label) < 96),
    run_id     uuid NOT NULL REFERENCES runs (id) ON DELETE RESTRICT,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (project, label)
);
CREATE INDEX baselines_run_id ON baselines (run_id);
