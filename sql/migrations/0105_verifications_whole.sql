-- A verification and its plans are written by one statement, so that none is there without plans. As with sweeps, the rule
-- for plans must see what the statement has written.
CREATE FUNCTION sees_verification(the_verification uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM verifications WHERE id = the_verification);
END
$$;
ALTER POLICY by_project ON verification_plans WITH CHECK (sees_verification(verification_id));
