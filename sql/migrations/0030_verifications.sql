-- Verifications: plans of runs before the real compiler. A plan is compiled once per release: what was said of the same
-- canonical plan by the same versions answers every later question.
CREATE TABLE proofs (
    plan_sha256 text NOT NULL CHECK (length(plan_sha256) = 64), -- of plan, mode and the releases asked for
    created_at  timestamptz NOT NULL DEFAULT now(),
    mode        text NOT NULL CHECK (mode IN ('assign', 'whole')),
    versions    text NOT NULL,
    verdict     text NOT NULL CHECK (verdict IN ('compiles', 'does_not_fit', 'refused')),
    compiled_hbm_bytes_per_device double precision CHECK (compiled_hbm_bytes_per_device > 0 AND compiled_hbm_bytes_per_device < 'Infinity'),
    result      json NOT NULL,
    PRIMARY KEY (plan_sha256)
);
COMMENT ON TABLE proofs IS 'What the compiler said of a plan; "failed" is no word on it and is not kept here';

CREATE TABLE verifications (
    id         uuid PRIMARY KEY,
    run_id     uuid NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    mode       text NOT NULL CHECK (mode IN ('assign', 'whole')),
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL DEFAULT '' -- name of the token, '' without tokens
);
CREATE INDEX verifications_run_id ON verifications (run_id, id);

-- One row per plan: what a verifier takes, holds by a lease that it renews, and gives back done. `attempts` tells a
-- verifier that lost its lease from the one that has it now.
CREATE TABLE verification_plans (
    verification_id uuid NOT NULL REFERENCES verifications (id) ON DELETE CASCADE,
    rank            integer NOT NULL CHECK (rank BETWEEN 1 AND 100),
    plan_sha256     text NOT NULL CHECK (length(plan_sha256) = 64),
    plan            text NOT NULL,
    predicted       json NOT NULL,
    predicted_hbm_bytes_per_device double precision,
    state           text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'running', 'done', 'cancelled')),
    stage           text NOT NULL DEFAULT '',
    attempts        integer NOT NULL DEFAULT 0,
    worker          text NOT NULL DEFAULT '',
    lease_until     timestamptz,
    ended_at        timestamptz,
    changes         integer NOT NULL DEFAULT 0, -- counts what a client may want to hear of
    verdict         text CHECK (verdict IN ('compiles', 'does_not_fit', 'refused', 'failed')),
    compiled_hbm_bytes_per_device double precision CHECK (compiled_hbm_bytes_per_device > 0 AND compiled_hbm_bytes_per_device < 'Infinity'),
    result          json,
    PRIMARY KEY (verification_id, rank),
    CHECK ((state = 'running') = (lease_until IS NOT NULL)),
    CHECK ((state = 'done') = (result IS NOT NULL AND verdict IS NOT NULL))
);
CREATE INDEX verification_plans_waiting ON verification_plans (verification_id, rank) WHERE state IN ('queued', 'running');
CREATE INDEX verification_plans_plan ON verification_plans (plan_sha256) WHERE state IN ('queued', 'running');
