-- Who holds a plan is told by his lease, a number that every claim raises and nothing lowers. `attempts` goes down when a plan
-- is given back: who gave it back had the number of the next holder, and a late word of his counted as that one's. A verifier
-- of an earlier release does not say that it raises the number, so the table does it.
ALTER TABLE verification_plans ADD COLUMN lease bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN verification_plans.lease IS 'counts the claims: the last one''s number is its holder''s; 0: nobody has claimed it';
COMMENT ON COLUMN verification_plans.attempts IS 'claims that were not given back';
CREATE FUNCTION raise_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.lease := OLD.lease + (NEW.attempts > OLD.attempts)::integer;
    RETURN NEW;
END
$$;
CREATE TRIGGER verification_plans_raise_lease BEFORE UPDATE OF attempts, lease ON verification_plans FOR EACH ROW EXECUTE FUNCTION raise_lease();
