-- Sweeps are kept as long as runs are: with `keep_days` above 0, those that ended longer ago are deleted. And what a sweep
-- answered with a run that was purged is purged too: a deleted run is not to be read in another place.
CREATE INDEX sweep_items_run ON sweep_items (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX sweeps_ended ON sweeps (ended_at) WHERE ended_at IS NOT NULL;
CREATE OR REPLACE FUNCTION tidy_runs(keep_days integer, restore_days integer, most integer, OUT retired_count integer, OUT purged_count integer)
LANGUAGE plpgsql AS $$
DECLARE
    gone uuid[];
BEGIN
    PERFORM set_config('tpu_advisor.principal', 'retention', true);
    UPDATE runs SET deleted_at = now() WHERE keep_days > 0 AND id IN (
        SELECT r.id FROM runs r WHERE r.deleted_at IS NULL AND r.created_at < now() - keep_days * interval '1 day'
            AND NOT EXISTS (SELECT FROM baselines b WHERE b.run_id = r.id)
            AND NOT EXISTS (SELECT FROM measurements m WHERE m.run_id = r.id)
        ORDER BY r.created_at LIMIT most FOR UPDATE OF r SKIP LOCKED);
    GET DIAGNOSTICS retired_count = ROW_COUNT;
    WITH purged AS (
        DELETE FROM runs WHERE id IN (
            SELECT r.id FROM runs r WHERE r.deleted_at < now() - restore_days * interval '1 day'
            ORDER BY r.deleted_at LIMIT most FOR UPDATE OF r SKIP LOCKED)
        RETURNING id)
    SELECT coalesce(array_agg(id), '{}') INTO gone FROM purged;
    purged_count := cardinality(gone);
    UPDATE sweep_items SET response = 'null' WHERE run_id = ANY (gone) AND state = 'done';
    DELETE FROM sweeps WHERE keep_days > 0 AND id IN (
        SELECT s.id FROM sweeps s WHERE s.ended_at < now() - keep_days * interval '1 day'
        ORDER BY s.ended_at LIMIT greatest(most / 100, 1) FOR UPDATE OF s SKIP LOCKED);
END
$$;
