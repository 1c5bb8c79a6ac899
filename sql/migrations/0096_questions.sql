-- What a run answers: a run of the same question, engine, catalog and calibration is found and its answer given again, by
-- any daemon, also after a restart. Null: it is computed faster than it is found, or the answer is not for others.
ALTER TABLE runs ADD COLUMN question_sha256 text CHECK (question_sha256 ~ '^[0-9a-f]{64}$');
COMMENT ON COLUMN runs.question_sha256 IS 'of the canonical question, engine, catalog, calibration and the token''s project';
CREATE INDEX runs_question ON runs (question_sha256, id) WHERE deleted_at IS NULL AND question_sha256 IS NOT NULL;

DROP TRIGGER runs_immutable ON runs;
CREATE TRIGGER runs_immutable BEFORE UPDATE OF id, created_at, kind, project, label, git_ref, model, chip, topology, step_time_s,
    hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response, reevaluates, question_sha256
    ON runs FOR EACH ROW EXECUTE FUNCTION refuse_change();
