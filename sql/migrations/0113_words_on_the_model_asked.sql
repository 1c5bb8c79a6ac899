-- Earlier releases put plans before the compiler that did not say their model: of models that MaxText has no file for, and
-- of answers that did not hold it. The compiler spoke of MaxText's default model then. Such words are taken back, and such
-- plans wait no more.
WITH of_no_model AS (
    SELECT p.verification_id, p.rank, p.plan_sha256
    FROM verification_plans p JOIN verifications v ON v.id = p.verification_id JOIN runs r ON r.id = v.run_id
    WHERE r.response -> 'model' ->> 'without_maxtext' = 'true'
        OR (r.kind = 'estimate' AND r.response -> 'model' IS NOT NULL AND r.response -> 'model' -> 'config' IS NULL)),
forgotten AS (DELETE FROM proofs k USING of_no_model o WHERE k.plan_sha256 = o.plan_sha256),
ended AS (
    UPDATE verification_plans p SET state = 'cancelled', lease_until = NULL, ended_at = now(), changes = p.changes + 1
    FROM of_no_model o WHERE p.verification_id = o.verification_id AND p.rank = o.rank AND p.state IN ('queued', 'running'))
UPDATE verification_plans p SET verdict = 'failed', compiled_hbm_bytes_per_device = NULL, changes = p.changes + 1,
    result = (p.result::jsonb || '{"verdict": "failed", "compiled_hbm_bytes_per_device": null,
        "reason": "an earlier release asked the compiler about another model than that of the plan"}')::json
FROM of_no_model o WHERE p.verification_id = o.verification_id AND p.rank = o.rank AND p.state = 'done' AND p.verdict <> 'failed';
