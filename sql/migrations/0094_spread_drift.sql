-- How steady a measurement was, and whether measurements of the same plans change over time.
ALTER TABLE measurements
    ADD COLUMN warm_up_steps_count integer CHECK (warm_up_steps_count >= 0),
    ADD COLUMN measured_step_time_p25_s double precision CHECK (measured_step_time_p25_s > 0 AND measured_step_time_p25_s <= measured_step_time_s),
    ADD COLUMN measured_step_time_p75_s double precision CHECK (measured_step_time_p75_s >= measured_step_time_s AND measured_step_time_p75_s < 'Infinity'),
    ADD COLUMN measured_step_time_mad_s double precision CHECK (measured_step_time_mad_s >= 0 AND measured_step_time_mad_s < 'Infinity');
COMMENT ON COLUMN measurements.warm_up_steps_count IS 'steps of the log that were left out';
COMMENT ON COLUMN measurements.measured_step_time_mad_s IS 'median distance of a step from the median step';
CREATE INDEX measurements_measured_at ON measurements (measured_at);

-- Whether a series changed between its earlier and its recent half. Each value is a measured step time over the median of
-- the same plan, in the order of time. The scatter is what the values do around the median of their own half; a change
-- is called drift when it is more than three standard errors of the two medians, and more than 2 %.
CREATE FUNCTION measured_drift(series double precision[]) RETURNS json LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    total    integer := coalesce(cardinality(series), 0);
    recent   integer := total / 2;
    earlier  integer := total - recent;
    before_m double precision;
    after_m  double precision;
    noise    double precision;
    change   double precision;
    limit_f  double precision;
    word     text;
BEGIN
    IF total < 6 THEN
        RETURN json_build_object('drifts', NULL, 'change_frac', NULL, 'threshold_frac', NULL, 'noise_frac', NULL, 'earlier_count', earlier,
            'recent_count', recent, 'says', format('not known: there are %s measurements of plans that were measured more than once, and 6 are needed', total));
    END IF;
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FILTER (WHERE n <= earlier), percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FILTER (WHERE n > earlier)
        INTO before_m, after_m FROM unnest(series) WITH ORDINALITY s (v, n);
    SELECT 1.4826 * percentile_cont(0.5) WITHIN GROUP (ORDER BY abs(v / CASE WHEN n <= earlier THEN before_m ELSE after_m END - 1))
        INTO noise FROM unnest(series) WITH ORDINALITY s (v, n);
    change := after_m / before_m - 1;
    limit_f := greatest(0.02, 3 * 1.2533 * noise * sqrt(1.0 / earlier + 1.0 / recent));
    word := format('the last %s measurements took %s %% %s than the %s before them, measured on the same plans; they scatter by %s %%, so that more than %s %% is drift',
        recent, round(abs(100 * change)::numeric, 1), CASE WHEN change < 0 THEN 'less' ELSE 'more' END, earlier, round((100 * noise)::numeric, 1), round((100 * limit_f)::numeric, 1));
    RETURN json_build_object('drifts', abs(change) > limit_f, 'change_frac', change, 'threshold_frac', limit_f, 'noise_frac', noise,
        'earlier_count', earlier, 'recent_count', recent, 'says', CASE WHEN abs(change) > limit_f THEN 'drift: ' ELSE 'steady: ' END || word);
END
$$;
