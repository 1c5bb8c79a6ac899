-- Who cancelled a sweep, and who asked for a compile or took it back: the audit says who wrote every row, but said neither.
CREATE TRIGGER sweeps_cancel_audited AFTER UPDATE OF state ON sweeps FOR EACH ROW
    WHEN (NEW.state = 'cancelled' AND OLD.state <> 'cancelled') EXECUTE FUNCTION note_write('id', 'project');
CREATE TRIGGER verifications_audited AFTER INSERT OR DELETE ON verifications FOR EACH ROW EXECUTE FUNCTION note_write('id', '');
CREATE TRIGGER verification_plans_cancel_audited AFTER UPDATE OF state ON verification_plans FOR EACH ROW
    WHEN (NEW.state = 'cancelled' AND OLD.state <> 'cancelled') EXECUTE FUNCTION note_write('verification_id', '');
