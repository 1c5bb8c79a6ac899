-- Two kinds of words of earlier verifiers were not the compiler's.
-- They said "refused" of a compile that the machine had ended. A refusal that names no key and no flag may be one of
-- these: it is forgotten, and what asks for the plan again has it compiled.
DELETE FROM proofs WHERE verdict = 'refused' AND coalesce(json_array_length(result -> 'refused_keys'), 0) = 0
    AND coalesce(json_array_length(result -> 'refused_flags'), 0) = 0;
-- And they took buffers of computations that run on the host for HBM. The compiler's own sum is that of arguments and
-- heap, and of constants, which take a few thousandths: what is further from the two is set to them.
UPDATE proofs p SET compiled_hbm_bytes_per_device = own.bytes,
    result = (p.result::jsonb || jsonb_build_object('compiled_hbm_bytes_per_device', own.bytes))::json
FROM (SELECT plan_sha256, (result ->> 'argument_bytes_per_device')::float8 + (result ->> 'heap_bytes_per_device')::float8 AS bytes
      FROM proofs WHERE (result ->> 'heap_bytes_per_device')::float8 > 0) own
WHERE own.plan_sha256 = p.plan_sha256 AND p.compiled_hbm_bytes_per_device > 1.005 * own.bytes;
UPDATE verification_plans p SET compiled_hbm_bytes_per_device = own.bytes, changes = p.changes + 1,
    result = (p.result::jsonb || jsonb_build_object('compiled_hbm_bytes_per_device', own.bytes))::json
FROM (SELECT verification_id, rank, (result ->> 'argument_bytes_per_device')::float8 + (result ->> 'heap_bytes_per_device')::float8 AS bytes
      FROM verification_plans WHERE (result ->> 'heap_bytes_per_device')::float8 > 0) own
WHERE own.verification_id = p.verification_id AND own.rank = p.rank AND p.compiled_hbm_bytes_per_device > 1.005 * own.bytes;
