-- Measurements: what a plan of a run took on the machine, beside what was predicted for it. The predicted columns repeat
-- the stored answer, which never changes, so that accuracy is a question to one table.
CREATE TABLE measurements (
    id                             uuid PRIMARY KEY,
    run_id                         uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    rank                           integer NOT NULL DEFAULT 1 CHECK (rank BETWEEN 1 AND 100),
    measured_at                    timestamptz NOT NULL,
    created_at                     timestamptz NOT NULL DEFAULT now(),
    source                         text NOT NULL CHECK (source <> '' AND octet_length(source) < 96),
    steps_count                    integer CHECK (steps_count > 0),
    measured_step_time_s           double precision NOT NULL CHECK (measured_step_time_s > 0 AND measured_step_time_s < 'Infinity'),
    measured_tokens_per_s_per_chip double precision CHECK (measured_tokens_per_s_per_chip > 0 AND measured_tokens_per_s_per_chip < 'Infinity'),
    measured_hbm_bytes_per_device  double precision CHECK (measured_hbm_bytes_per_device > 0 AND measured_hbm_bytes_per_device < 'Infinity'),
    step_time_s                    double precision NOT NULL CHECK (step_time_s > 0 AND step_time_s < 'Infinity'),
    step_time_low_s                double precision NOT NULL CHECK (step_time_low_s > 0 AND step_time_low_s <= step_time_s),
    step_time_high_s               double precision NOT NULL CHECK (step_time_high_s >= step_time_s AND step_time_high_s < 'Infinity'),
    hbm_bytes_per_device           double precision NOT NULL CHECK (hbm_bytes_per_device >= 0 AND hbm_bytes_per_device < 'Infinity'),
    UNIQUE (run_id, rank, source, measured_at)
);

COMMENT ON TABLE measurements IS 'Measured steps of runs and what was predicted for them';
COMMENT ON COLUMN measurements.rank IS 'which plan of an advise run';
COMMENT ON COLUMN measurements.steps_count IS 'steps of a log that the time is the median of; null when it was given';
