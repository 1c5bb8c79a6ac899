-- A key stands for one request, also for one that asks for a verification. Whoever takes a key waits for others that are
-- taking it, and writes nothing when it is in force in another table.
ALTER TABLE verifications
    ADD COLUMN idempotency_key text,
    ADD COLUMN body_sha256 text CHECK (length(body_sha256) = 64),
    ADD UNIQUE (created_by, idempotency_key);
CREATE OR REPLACE FUNCTION take_key() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    who      text;
    taken    text;
    is_taken boolean;
BEGIN
    IF TG_TABLE_NAME = 'idempotency_keys' THEN
        who := NEW.principal;
        taken := NEW.key;
    ELSE
        who := NEW.created_by;
        taken := NEW.idempotency_key;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended(who || E'\n' || taken, 0));
    SELECT EXISTS (SELECT FROM (
        SELECT 'idempotency_keys' AS place, created_at FROM idempotency_keys WHERE principal = who AND key = taken
        UNION ALL SELECT 'sweeps', created_at FROM sweeps WHERE created_by = who AND idempotency_key = taken
        UNION ALL SELECT 'verifications', created_at FROM verifications WHERE created_by = who AND idempotency_key = taken) k
        WHERE k.place <> TG_TABLE_NAME AND k.created_at > now() - interval '24 hours') INTO is_taken;
    RETURN CASE WHEN is_taken THEN NULL ELSE NEW END;
END
$$;
CREATE TRIGGER verifications_take_key BEFORE INSERT ON verifications FOR EACH ROW WHEN (NEW.idempotency_key IS NOT NULL) EXECUTE FUNCTION take_key();
