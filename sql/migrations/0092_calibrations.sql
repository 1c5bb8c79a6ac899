-- Calibrations: what the measurements of a project say of its chips, fitted once and kept as fitted; and which of them was
-- in force when. Answers name theirs as "calibration/<id>", so that what it did can be taken out of their numbers again.
CREATE TABLE calibrations (
    id         uuid PRIMARY KEY,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT '', -- name of the token, '' without tokens
    project    text NOT NULL CHECK (project <> '' AND octet_length(project) < 96),
    factors    json NOT NULL, -- {chip: {"step_time_correction_frac", "hbm_correction_frac"}}
    fit        json NOT NULL
);
CREATE INDEX calibrations_project ON calibrations (project, id);

CREATE TABLE calibration_history (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    project        text NOT NULL,
    calibration_id uuid REFERENCES calibrations (id), -- null: the published fit from then on
    before_id      bigint REFERENCES calibration_history (id), -- what a revert puts back; null: the published fit
    changed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    changed_by     text NOT NULL DEFAULT ''
);
CREATE INDEX calibration_history_project ON calibration_history (project, id);

CREATE TRIGGER calibrations_audited AFTER INSERT OR UPDATE OR DELETE ON calibrations FOR EACH ROW EXECUTE FUNCTION note_write('id', 'project');
CREATE TRIGGER calibration_history_audited AFTER INSERT OR UPDATE OR DELETE ON calibration_history FOR EACH ROW EXECUTE FUNCTION note_write('id', 'project');
ALTER TABLE calibrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE calibration_history ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_project ON calibrations USING (sees_project(project));
CREATE POLICY by_project ON calibration_history USING (sees_project(project));
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
        GRANT SELECT, INSERT ON calibrations, calibration_history TO tpu_advisor_project;
    END IF;
END
$$;
