-- A key stands for one request, whether that is answered at once (idempotency_keys) or later (sweeps). Whoever takes a key
-- waits for others that are taking it, and writes nothing when it is in force in the other table.
CREATE FUNCTION take_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    is_taken boolean;
BEGIN
    IF TG_TABLE_NAME = 'sweeps' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(NEW.created_by || E'\n' || NEW.idempotency_key, 0));
        SELECT EXISTS (SELECT FROM idempotency_keys WHERE principal = NEW.created_by AND key = NEW.idempotency_key
                       AND created_at > now() - interval '24 hours') INTO is_taken;
    ELSE
        PERFORM pg_advisory_xact_lock(hashtextextended(NEW.principal || E'\n' || NEW.key, 0));
        SELECT EXISTS (SELECT FROM sweeps WHERE created_by = NEW.principal AND idempotency_key = NEW.key
                       AND created_at > now() - interval '24 hours') INTO is_taken;
    END IF;
    RETURN CASE WHEN is_taken THEN NULL ELSE NEW END;
END
$$;
CREATE TRIGGER sweeps_take_key BEFORE INSERT ON sweeps FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL) EXECUTE FUNCTION take_key();
CREATE TRIGGER idempotency_keys_take_key BEFORE INSERT ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION take_key();
