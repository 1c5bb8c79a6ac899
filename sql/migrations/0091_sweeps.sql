-- Sweeps: many requests asked at once. Each is an item that a daemon takes, holds by a lease that it renews, and ends;
-- any daemon on the database may. `attempts` tells a daemon that lost its lease from the one that has it now, so that an
-- item ends once. An advise that is not waited for (Prefer: respond-async) is a sweep of one item.

-- A UUID version 7, as the daemon makes them.
CREATE FUNCTION uuid_v7() RETURNS uuid LANGUAGE sql VOLATILE AS $$
    SELECT encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid())
        PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3) FROM 1 FOR 6), 52, 1), 53, 1), 'hex')::uuid
$$;

CREATE TABLE sweeps (
    id              uuid PRIMARY KEY,
    created_at      timestamptz NOT NULL DEFAULT now(),
    created_by      text NOT NULL DEFAULT '', -- name of the token, '' without tokens
    project         text NOT NULL DEFAULT '' CHECK (octet_length(project) < 96),
    label           text NOT NULL DEFAULT '' CHECK (octet_length(label) < 96),
    kind            text NOT NULL CHECK (kind IN ('estimate', 'advise', 'simulate', 'tune')),
    idempotency_key text,
    body_sha256     text CHECK (length(body_sha256) = 64),
    state           text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'cancelled')),
    items_count     integer NOT NULL CHECK (items_count > 0),
    done_count      integer NOT NULL DEFAULT 0,
    failed_count    integer NOT NULL DEFAULT 0,
    cancelled_count integer NOT NULL DEFAULT 0,
    events_count    bigint NOT NULL DEFAULT 0, -- the number of the last event
    ended_at        timestamptz,
    UNIQUE (created_by, idempotency_key),
    CHECK ((state = 'running') = (done_count + failed_count + cancelled_count < items_count)),
    CHECK (done_count + failed_count + cancelled_count <= items_count)
);
CREATE INDEX sweeps_running ON sweeps (id) WHERE state = 'running';
CREATE INDEX sweeps_project ON sweeps (project, id);
COMMENT ON COLUMN sweeps.failed_count IS 'items that were refused, or ended their daemon too often';

CREATE TABLE sweep_items (
    sweep_id    uuid NOT NULL REFERENCES sweeps (id) ON DELETE CASCADE,
    item        integer NOT NULL CHECK (item >= 0),
    state       text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'failed', 'cancelled')),
    attempts    integer NOT NULL DEFAULT 0,
    worker      text NOT NULL DEFAULT '',
    lease_until timestamptz,
    ended_at    timestamptz,
    event       bigint, -- of the sweep's events, the one that told the end
    run_id      uuid,   -- the same in every attempt, so that a run is stored once
    request     json NOT NULL,
    response    json,
    problem     json,
    step_time_s double precision,
    tokens_per_s_per_chip double precision,
    hbm_bytes_per_device  double precision,
    fits        boolean,
    PRIMARY KEY (sweep_id, item),
    CHECK ((state = 'running') = (lease_until IS NOT NULL)),
    CHECK ((state = 'done') = (response IS NOT NULL)),
    CHECK ((state = 'failed') = (problem IS NOT NULL)),
    CHECK ((state IN ('done', 'failed')) = (event IS NOT NULL))
);
CREATE INDEX sweep_items_queued ON sweep_items (sweep_id, item) WHERE state = 'queued';
CREATE INDEX sweep_items_running ON sweep_items (sweep_id, lease_until) WHERE state = 'running';
CREATE INDEX sweep_items_event ON sweep_items (sweep_id, event) WHERE event IS NOT NULL;

-- Ends items: `results` is [{item, attempt, response | problem, estimate?, fits?}], the answer's first estimate in `estimate`.
-- What the caller no longer holds is left alone. Gives how many it still held. The sweep's row is locked first, so that
-- the numbers of events are committed in their order and a reader misses none.
CREATE FUNCTION sweep_end(the_sweep uuid, results json) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    last_event bigint;
    held       integer;
    good       integer;
BEGIN
    SELECT events_count INTO last_event FROM sweeps WHERE id = the_sweep FOR UPDATE;
    WITH given AS (
        SELECT (r.one ->> 'item')::integer AS item, (r.one ->> 'attempt')::integer AS attempt, r.one -> 'response' AS response,
            r.one -> 'problem' AS problem, r.one -> 'summary' AS summary, r.place
        FROM json_array_elements(results) WITH ORDINALITY r (one, place)
    ), ended AS (
        UPDATE sweep_items i SET state = CASE WHEN g.problem IS NULL THEN 'done' ELSE 'failed' END, lease_until = NULL,
            ended_at = clock_timestamp(), event = last_event + g.place, response = g.response, problem = g.problem,
            step_time_s = (g.summary ->> 'step_time_s')::double precision,
            tokens_per_s_per_chip = coalesce((g.response ->> 'tokens_per_s_per_chip')::double precision,
                (g.response #>> '{ranked,0,estimate,tokens_per_s_per_chip}')::double precision),
            hbm_bytes_per_device = (g.summary ->> 'hbm_bytes_per_device')::double precision,
            fits = (g.summary ->> 'fits')::boolean
        FROM given g
        WHERE i.sweep_id = the_sweep AND i.item = g.item AND i.attempts = g.attempt AND i.state = 'running'
        RETURNING i.state
    )
    SELECT count(*), count(*) FILTER (WHERE state = 'done') INTO held, good FROM ended;
    UPDATE sweeps SET events_count = events_count + json_array_length(results), done_count = done_count + good,
        failed_count = failed_count + held - good,
        state = CASE WHEN state = 'running' AND done_count + failed_count + cancelled_count + held = items_count THEN 'done' ELSE state END,
        ended_at = CASE WHEN done_count + failed_count + cancelled_count + held = items_count THEN coalesce(ended_at, clock_timestamp()) END
    WHERE id = the_sweep AND held > 0;
    RETURN held;
END
$$;

-- Gives up what has ended its holder too often: the dead letters, each with why.
CREATE FUNCTION sweep_give_up(the_sweep uuid, attempts_max integer, why json) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    dead json;
BEGIN
    SELECT json_agg(json_build_object('item', item, 'attempt', attempts, 'problem', why)) INTO dead FROM sweep_items
        WHERE sweep_id = the_sweep AND state = 'running' AND lease_until < now() AND attempts >= attempts_max;
    IF dead IS NOT NULL THEN
        PERFORM sweep_end(the_sweep, dead);
    END IF;
END
$$;

-- Takes up to `most` items of one sweep; sweeps take turns by chance. What a holder has left comes first and alone: if it
-- was the end of him, it takes no other items along.
CREATE FUNCTION sweep_take(holder text, lease_s integer, most integer, attempts_max integer, why json)
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
                AND i.attempts < attempts_max ORDER BY i.lease_until LIMIT 1 FOR UPDATE SKIP LOCKED
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

-- What is not ended becomes cancelled; its holders see it when they renew their lease. False: there is no such sweep.
CREATE FUNCTION sweep_cancel(the_sweep uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    gone integer;
BEGIN
    PERFORM FROM sweeps WHERE id = the_sweep FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE sweep_items SET state = 'cancelled', lease_until = NULL, ended_at = clock_timestamp()
        WHERE sweep_id = the_sweep AND state IN ('queued', 'running');
    GET DIAGNOSTICS gone = ROW_COUNT;
    UPDATE sweeps SET state = 'cancelled', cancelled_count = cancelled_count + gone, ended_at = clock_timestamp()
        WHERE id = the_sweep AND gone > 0;
    RETURN true;
END
$$;

CREATE TRIGGER sweeps_audited AFTER INSERT OR DELETE ON sweeps FOR EACH ROW EXECUTE FUNCTION note_write('id', 'project');
ALTER TABLE sweeps ENABLE ROW LEVEL SECURITY;
ALTER TABLE sweep_items ENABLE ROW LEVEL SECURITY;
CREATE POLICY by_project ON sweeps USING (sees_project(project));
CREATE POLICY by_project ON sweep_items USING (EXISTS (SELECT FROM sweeps WHERE sweeps.id = sweep_id));
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'tpu_advisor_project') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON sweeps, sweep_items TO tpu_advisor_project;
    END IF;
END
$$;
