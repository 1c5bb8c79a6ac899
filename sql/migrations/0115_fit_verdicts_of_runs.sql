-- How surely a run fits, as its answer says: a list of runs shows it without reading the answers, which are long. NULL: a
-- run of before; its answer has it.
ALTER TABLE runs ADD COLUMN fit_verdict text CHECK (fit_verdict IN ('fits', 'tight', 'does_not_fit'));
