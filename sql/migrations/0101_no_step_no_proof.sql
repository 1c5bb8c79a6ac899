-- A program without a training step proves nothing, and a word without bytes is no word. Earlier verifiers said "compiles"
-- of both: of a step that XLA had removed they found a forward part and a loss, but nothing that runs backward. Such words
-- are taken back. What asks for one of these plans again has it compiled.
DELETE FROM proofs WHERE verdict = 'compiles' AND (compiled_hbm_bytes_per_device IS NULL
    OR ((result -> 'moments')::jsonb <> '{}' AND NOT (result -> 'moments')::jsonb ? 'backward'));
UPDATE verification_plans SET verdict = 'failed', compiled_hbm_bytes_per_device = NULL, changes = changes + 1,
    result = (result::jsonb || '{"verdict": "failed", "compiled_hbm_bytes_per_device": null,
        "reason": "an earlier release took the compiled program for a training step, which it does not hold: verify the plan again"}')::json
WHERE verdict = 'compiles' AND (compiled_hbm_bytes_per_device IS NULL
    OR ((result -> 'moments')::jsonb <> '{}' AND NOT (result -> 'moments')::jsonb ? 'backward'));
ALTER TABLE proofs ADD CONSTRAINT proofs_compiled_bytes CHECK (verdict <> 'compiles' OR compiled_hbm_bytes_per_device IS NOT NULL);
