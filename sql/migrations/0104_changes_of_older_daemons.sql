-- A daemon of an earlier release that works on this schema does not say what its change of a calibration follows.
ALTER TABLE calibration_history ALTER COLUMN follows_id DROP NOT NULL;
COMMENT ON COLUMN calibration_history.follows_id IS 'the row that was in force until then; 0: it is the project''s first; null: of an earlier release';
