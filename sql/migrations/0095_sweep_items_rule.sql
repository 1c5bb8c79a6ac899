-- A sweep and its items are written by one statement. The rule for items looked for the sweep as it was before that
-- statement, and refused every sweep of a token with a project. A volatile function sees what the statement has written.
CREATE FUNCTION sees_sweep(the_sweep uuid) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN EXISTS (SELECT FROM sweeps WHERE id = the_sweep);
END
$$;
ALTER POLICY by_project ON sweep_items WITH CHECK (sees_sweep(sweep_id));
