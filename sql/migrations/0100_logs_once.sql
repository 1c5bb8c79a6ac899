-- A log says no time of its own: that it is the same one is told by its numbers. Null: the time was given, or the log was
-- taken in by an earlier release, which compared the numbers themselves.
ALTER TABLE measurements ADD COLUMN log_sha256 text CHECK (log_sha256 ~ '^[0-9a-f]{64}$');
COMMENT ON COLUMN measurements.log_sha256 IS 'of the numbers of a log that said no time';
ALTER TABLE measurements ADD CONSTRAINT measurements_log_once UNIQUE (run_id, rank, source, log_sha256);
