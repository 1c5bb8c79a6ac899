-- How surely a run fits, as its answer says: a list of runs shows it without reading the answers, which are long. NULL: a
-- run of before; its answer has it.
ALTER TABLE runs ADD COLUMN fit_verdict text CHECK (fit_verdict IN ('fits', 'tight', 'does_not_fit'));
DROP TRIGGER runs_immutable ON runs;
CREATE TRIGGER runs_immutable BEFORE UPDATE OF id, created_at, kind, project, label, git_ref, model, chip, topology, step_time_s,
    hbm_bytes_per_device, fits, fit_verdict, engine_version, catalog_hash, request, response, reevaluates, question_sha256
    ON runs FOR EACH ROW EXECUTE FUNCTION refuse_change();
