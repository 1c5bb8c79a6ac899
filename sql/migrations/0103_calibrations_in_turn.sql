-- Each change of a project's calibration follows the one that was in force when it was decided: of two that follow the same
-- one, the second is refused, and decided again.
ALTER TABLE calibration_history ADD COLUMN follows_id bigint NOT NULL DEFAULT 0; -- 0: it is the project's first
UPDATE calibration_history h SET follows_id = coalesce((SELECT max(o.id) FROM calibration_history o WHERE o.project = h.project AND o.id < h.id), 0);
ALTER TABLE calibration_history ALTER COLUMN follows_id DROP DEFAULT;
ALTER TABLE calibration_history ADD CONSTRAINT calibration_history_in_turn UNIQUE (project, follows_id);
COMMENT ON COLUMN calibration_history.follows_id IS 'the row that was in force until then';
