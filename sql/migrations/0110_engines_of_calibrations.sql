-- By which engine a calibration was fitted: its factors are for the predictions of that one, and another says so.
ALTER TABLE calibrations ADD COLUMN engine_version text NOT NULL DEFAULT '', ADD COLUMN catalog_hash text NOT NULL DEFAULT '';
ALTER TABLE calibrations ADD CONSTRAINT calibrations_engine CHECK ((engine_version = '') = (catalog_hash = '') AND octet_length(engine_version) < 96
    AND octet_length(catalog_hash) < 96);
COMMENT ON COLUMN calibrations.engine_version IS 'of the engine that it was fitted by; '''': of an earlier release, which did not say';
COMMENT ON COLUMN calibrations.catalog_hash IS 'of that engine''s catalog';
