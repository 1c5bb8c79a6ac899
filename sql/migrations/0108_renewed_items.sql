-- Gives up what has ended its holder too often: the dead letters, each with why. They are looked at when they are locked: one
-- whose holder renewed it between the look and the lock was given up while he worked on it. What another has in hand is his.
CREATE OR REPLACE FUNCTION sweep_give_up(the_sweep uuid, attempts_max integer, why json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    dead json;
BEGIN
    PERFORM FROM sweep_items WHERE sweep_id = the_sweep AND state = 'running' AND lease_until < now() AND attempts >= attempts_max LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM FROM sweeps WHERE id = the_sweep FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    SELECT json_agg(json_build_object('item', locked.item, 'attempt', locked.attempts, 'problem', why)) INTO dead FROM (
        SELECT item, attempts FROM sweep_items
        WHERE sweep_id = the_sweep AND state = 'running' AND lease_until < now() AND attempts >= attempts_max
        FOR UPDATE SKIP LOCKED) locked;
    IF dead IS NOT NULL THEN
        PERFORM sweep_end(the_sweep, dead);
    END IF;
END
$$;
