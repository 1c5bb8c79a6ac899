-- The history of runs: found by words, tags and git reference, in several orders; deleted in a way that can be taken
-- back; kept as long as somebody wants.

-- --- what may change of a run: its tags, and whether it is deleted ---------------------------------------------
CREATE FUNCTION tags_are_good(tags text[]) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT cardinality(tags) <= 32 AND array_position(tags, NULL) IS NULL
        AND coalesce((SELECT bool_and(octet_length(t) BETWEEN 1 AND 63 AND t !~ '[,[:cntrl:]]') FROM unnest(tags) t), true)
$$;

ALTER TABLE runs
    ADD COLUMN tags text[] NOT NULL DEFAULT '{}',
    ADD COLUMN deleted_at timestamptz, -- null: it is there
    ADD COLUMN reevaluates uuid;       -- the run whose request was asked again; may be purged later
ALTER TABLE runs ADD CONSTRAINT runs_tags_check CHECK (tags_are_good(tags));
COMMENT ON COLUMN runs.deleted_at IS 'since then it is in no list and no baseline; purged later';

DROP TRIGGER runs_immutable ON runs;
CREATE TRIGGER runs_immutable BEFORE UPDATE OF id, created_at, kind, project, label, git_ref, model, chip, topology, step_time_s,
    hbm_bytes_per_device, fits, engine_version, catalog_hash, request, response, reevaluates
    ON runs FOR EACH ROW EXECUTE FUNCTION refuse_change();

-- The audit says what an update was: 'delete' and 'restore' of somebody, 'purge' when nothing is left.
ALTER TABLE audit DROP CONSTRAINT audit_action_check;
ALTER TABLE audit ADD CONSTRAINT audit_action_check CHECK (action IN ('insert', 'update', 'delete', 'restore', 'purge'));
CREATE FUNCTION note_run_change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    what text := 'update';
BEGIN
    IF TG_OP = 'DELETE' THEN
        what := 'purge';
    ELSIF OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL THEN
        what := 'delete';
    ELSIF OLD.deleted_at IS NOT NULL AND NEW.deleted_at IS NULL THEN
        what := 'restore';
    END IF;
    INSERT INTO audit (principal, db_user, action, object, object_id, project)
        VALUES (coalesce(current_setting('tpu_advisor.principal', true), ''), session_user, what, 'runs', OLD.id::text, OLD.project);
    RETURN NULL;
END
$$;
DROP TRIGGER runs_audited ON runs;
CREATE TRIGGER runs_audited AFTER INSERT ON runs FOR EACH ROW EXECUTE FUNCTION note_write('id', 'project');
CREATE TRIGGER runs_change_audited AFTER UPDATE OR DELETE ON runs FOR EACH ROW EXECUTE FUNCTION note_run_change();

-- A deleted run is no baseline, and a baseline is not deleted, also when both are asked for at once: each side sees what
-- the other has committed, because it waits for the other's lock on the run's row first. A key of a deleted run is free.
CREATE FUNCTION delete_run() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    IF EXISTS (SELECT FROM baselines WHERE run_id = NEW.id) THEN
        RAISE EXCEPTION 'the run is a baseline' USING ERRCODE = 'restrict_violation';
    END IF;
    DELETE FROM idempotency_keys WHERE run_id = NEW.id;
    RETURN NEW;
END
$$;
CREATE TRIGGER runs_deleted BEFORE UPDATE OF deleted_at ON runs FOR EACH ROW
    WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL) EXECUTE FUNCTION delete_run();

CREATE FUNCTION refuse_deleted_run() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM FROM runs WHERE id = NEW.run_id AND deleted_at IS NULL FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'there is no such run' USING ERRCODE = 'foreign_key_violation';
    END IF;
    RETURN NEW;
END
$$;
CREATE TRIGGER baselines_of_runs_there BEFORE INSERT OR UPDATE OF run_id ON baselines FOR EACH ROW EXECUTE FUNCTION refuse_deleted_run();

-- Housekeeping, a bounded piece at a time, by any number of daemons. With `keep_days` above 0, runs that are older and
-- neither a baseline nor measured (calibrations learn from those) are deleted; what has been deleted for `restore_days`
-- is purged with all that hangs on it.
CREATE FUNCTION tidy_runs(keep_days integer, restore_days integer, most integer, OUT retired_count integer, OUT purged_count integer)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('tpu_advisor.principal', 'retention', true);
    UPDATE runs SET deleted_at = now() WHERE keep_days > 0 AND id IN (
        SELECT r.id FROM runs r WHERE r.deleted_at IS NULL AND r.created_at < now() - keep_days * interval '1 day'
            AND NOT EXISTS (SELECT FROM baselines b WHERE b.run_id = r.id)
            AND NOT EXISTS (SELECT FROM measurements m WHERE m.run_id = r.id)
        ORDER BY r.created_at LIMIT most FOR UPDATE OF r SKIP LOCKED);
    GET DIAGNOSTICS retired_count = ROW_COUNT;
    DELETE FROM runs WHERE id IN (
        SELECT r.id FROM runs r WHERE r.deleted_at < now() - restore_days * interval '1 day'
        ORDER BY r.deleted_at LIMIT most FOR UPDATE OF r SKIP LOCKED);
    GET DIAGNOSTICS purged_count = ROW_COUNT;
END
$$;

-- --- finding runs ----------------------------------------------------------------------------------------------
-- The words of a run: its names and tags, in small letters, cut at everything that is neither letter nor digit. The cost
-- is what it is, so that a search for rare words asks the index and not row after row.
CREATE FUNCTION run_words(names text[]) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE COST 2000 AS $$
    SELECT array_to_tsvector(coalesce((SELECT array_agg(DISTINCT w) FROM regexp_split_to_table(lower(array_to_string(names, ' ')), '[^[:alnum:]]+') w
        WHERE w <> ''), '{}'))
$$;
-- What is asked for: each word begins a word of the run. Null: there is no word in it.
CREATE FUNCTION run_search(words text) RETURNS tsquery LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT nullif(string_agg(quote_literal(w) || ':*', ' & '), '')::tsquery
    FROM regexp_split_to_table(lower(words), '[^[:alnum:]]+') w WHERE w <> ''
$$;

-- One index for each filter in each order, and for each order alone: a page is read where it begins and no further,
-- however few rows match and however many others there are. Deleted runs are in none of them.
DO $$
DECLARE
    filter text;
    sorted record;
BEGIN
    FOR sorted IN SELECT * FROM (VALUES ('created_at', 'deleted_at IS NULL'),
        ('step_time_s', 'deleted_at IS NULL AND step_time_s IS NOT NULL'),
        ('hbm_bytes_per_device', 'deleted_at IS NULL AND hbm_bytes_per_device IS NOT NULL')) v (name, which)
    LOOP
        EXECUTE format('CREATE INDEX runs_by_%s ON runs (%I, id) WHERE %s', sorted.name, sorted.name, sorted.which);
        FOREACH filter IN ARRAY ARRAY['project', 'label', 'git_ref', 'model', 'chip', 'kind'] LOOP
            EXECUTE format('CREATE INDEX runs_%s_by_%s ON runs (%I, %I, id) WHERE %s', filter, sorted.name, filter, sorted.name, sorted.which);
        END LOOP;
    END LOOP;
END
$$;
CREATE INDEX runs_tags ON runs USING gin (tags) WHERE deleted_at IS NULL;
CREATE INDEX runs_words ON runs USING gin (run_words(ARRAY[project, label, git_ref, model, chip, topology, kind] || tags)) WHERE deleted_at IS NULL;
CREATE INDEX runs_deleted_at ON runs (deleted_at, id) WHERE deleted_at IS NOT NULL;
DROP INDEX runs_project_label;
DROP INDEX runs_model;
DROP INDEX runs_chip;
DROP INDEX runs_created_at;
CREATE INDEX runs_project_label ON runs (project, label, id) WHERE deleted_at IS NULL; -- what stands in for a baseline
