-- What is added to a run is added to one that is there, also when it is being deleted at that moment.
CREATE TRIGGER measurements_of_runs_there BEFORE INSERT ON measurements FOR EACH ROW EXECUTE FUNCTION refuse_deleted_run();
CREATE TRIGGER verifications_of_runs_there BEFORE INSERT ON verifications FOR EACH ROW EXECUTE FUNCTION refuse_deleted_run();
