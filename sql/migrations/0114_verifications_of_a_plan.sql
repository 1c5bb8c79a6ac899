-- Whoever asks for the compiler's word on a plan that has none is told what became of the newest verification of it.
DROP INDEX verification_plans_plan;
CREATE INDEX verification_plans_plan ON verification_plans (plan_sha256, verification_id DESC) WHERE state <> 'cancelled';
