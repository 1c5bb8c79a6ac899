-- An item that its holder gives back, because its daemon is told to leave or the database does not take its end now, has
-- ended nobody: a rolling update that came five times over a long item made it a dead letter. `attempts` stays the number
-- that tells one holder from the next, so what was given back is counted beside it, by the table: daemons of earlier
-- releases do not say so.
ALTER TABLE sweep_items ADD COLUMN given_back integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN sweep_items.given_back IS 'of the attempts, those whose holder gave the item back';
CREATE FUNCTION count_given_back() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.given_back := OLD.given_back + 1;
    RETURN NEW;
END
$$;
CREATE TRIGGER sweep_items_count_given_back BEFORE UPDATE OF state ON sweep_items FOR EACH ROW
    WHEN (OLD.state = 'running' AND NEW.state = 'queued') EXECUTE FUNCTION count_given_back();

-- As in 0108 and 0091, but for what counts as an attempt.
CREATE OR REPLACE FUNCTION sweep_give_up(the_sweep uuid, attempts_max integer, why json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    dead json;
BEGIN
    PERFORM FROM sweep_items WHERE sweep_id = the_sweep AND state = 'running' AND lease_until < now() AND attempts - given_back >= attempts_max LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM FROM sweeps WHERE id = the_sweep FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT json_agg(json_build_object('item', locked.item, 'attempt', locked.attempts, 'problem', why)) INTO dead FROM (
        SELECT item, attempts FROM sweep_items
        WHERE sweep_id = the_sweep AND state = 'running' AND lease_until < now() AND attempts - given_back >= attempts_max
        FOR UPDATE SKIP LOCKED) locked;
    IF dead IS NOT NULL THEN
        PERFORM sweep_end(the_sweep, dead);
    END IF;
END
$$;

CREATE OR REPLACE FUNCTION sweep_take(holder text, lease_s integer, most integer, attempts_max integer, why json)
RETURNS TABLE (sweep_id uuid, kind text, project text, created_by text, item integer, attempt integer, run_id uuid, request json)
LANGUAGE plpgsql AS $$
DECLARE
    s record;
BEGIN
    FOR s IN SELECT w.id, w.kind, w.project, w.created_by FROM sweeps w WHERE w.state = 'running' ORDER BY random() LOOP
        PERFORM sweep_give_up(s.id, attempts_max, why);
        RETURN QUERY
        WITH next AS (
            SELECT i.item FROM sweep_items i WHERE i.sweep_id = s.id AND i.state = 'running' AND i.lease_until < now()
                AND i.attempts - i.given_back < attempts_max ORDER BY i.lease_until LIMIT 1 FOR UPDATE SKIP LOCKED
        )
        UPDATE sweep_items i SET attempts = i.attempts + 1, worker = holder, lease_until = now() + lease_s * interval '1 second'
        FROM next n WHERE i.sweep_id = s.id AND i.item = n.item
        RETURNING i.sweep_id, s.kind, s.project, s.created_by, i.item, i.attempts, i.run_id, i.request;
        IF FOUND THEN
            RETURN;
        END IF;
        RETURN QUERY
        WITH next AS (
            SELECT i.item FROM sweep_items i WHERE i.sweep_id = s.id AND i.state = 'queued' ORDER BY i.item LIMIT most FOR UPDATE SKIP LOCKED
        )
        UPDATE sweep_items i SET state = 'running', attempts = i.attempts + 1, worker = holder, run_id = coalesce(i.run_id, uuid_v7()),
            lease_until = now() + lease_s * interval '1 second'
        FROM next n WHERE i.sweep_id = s.id AND i.item = n.item
        RETURNING i.sweep_id, s.kind, s.project, s.created_by, i.item, i.attempts, i.run_id, i.request;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
END
$$;
