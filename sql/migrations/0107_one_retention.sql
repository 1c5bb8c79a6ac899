-- Retention is one daemon's at a time. Two at once purged each a run whose sweep the other deleted, and waited for each
-- other. Who finds another at it leaves it to him.
CREATE OR REPLACE FUNCTION tidy_runs(keep_days integer, restore_days integer, most integer, OUT retired_count integer, OUT purged_count integer)
LANGUAGE plpgsql AS $$
DECLARE
    old  uuid[];
    gone uuid[];
BEGIN
    retired_count := 0;
    purged_count := 0;
    IF NOT pg_try_advisory_xact_lock(hashtextextended('tidy_runs', 0)) THEN
        RETURN;
    END IF;
    PERFORM set_config('tpu_advisor.principal', 'retention', true);
    IF keep_days > 0 THEN
        SELECT array_agg(locked.id) INTO old FROM (
            SELECT r.id FROM runs r WHERE r.deleted_at IS NULL AND r.created_at < now() - keep_days * interval '1 day'
                AND NOT EXISTS (SELECT FROM baselines b WHERE b.run_id = r.id)
                AND NOT EXISTS (SELECT FROM measurements m WHERE m.run_id = r.id)
            ORDER BY r.created_at LIMIT most FOR UPDATE OF r SKIP LOCKED) locked;
    END IF;
    UPDATE runs r SET deleted_at = now() WHERE r.id = ANY (old)
        AND NOT EXISTS (SELECT FROM baselines b WHERE b.run_id = r.id)
        AND NOT EXISTS (SELECT FROM measurements m WHERE m.run_id = r.id);
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
