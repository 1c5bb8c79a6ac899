-- A log that is sent again while the training goes on is of one run, and one measurement: its beginning, which stays as it is,
-- tells. Null: the numbers were given, the log has no beginning (its end alone was sent), or an earlier release took it in.
ALTER TABLE measurements ADD COLUMN log_beginning_sha256 text CHECK (log_beginning_sha256 ~ '^[0-9a-f]{64}$');
COMMENT ON COLUMN measurements.log_beginning_sha256 IS 'of the bytes of a log up to its first step that is warm';
ALTER TABLE measurements ADD CONSTRAINT measurements_log_of_one_run UNIQUE (run_id, rank, log_beginning_sha256);
